//! From a wire to the machine's own network: what arrives on the stack goes on over the kernel's sockets.
//!
//! ```sh
//! sudo cargo run -p whimbrel --example proxy -- \
//!     tun:whim0,addr=10.9.0.2/24,host=10.9.0.1 10.9.0.2:80 127.0.0.1:8080
//! curl http://10.9.0.2/      # is answered by what listens on port 8080 of this machine
//! ```

use std::process::ExitCode;

use whimbrel::{Stack, TcpListener, TcpStream};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("proxy: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Outcome<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [wire, listen, target] = arguments.as_slice() else {
        return Err("usage: proxy WIRE ADDR:PORT TARGET:PORT".into());
    };
    let stack = Stack::builder().wire(wire.parse()?).build()?;
    let listener = TcpListener::bind(&stack, listen.as_str()).await?;
    forward(listener, target.clone()).await
}

/// A task for each connection, until the stack ends.
pub(crate) async fn forward(listener: TcpListener, target: String) -> Outcome<()> {
    loop {
        let (stream, peer) = listener.accept().await?;
        let target = target.clone();
        tokio::spawn(async move {
            match splice(stream, &target).await {
                Ok((there, back)) => println!("{peer}: {there} bytes there, {back} back"),
                Err(error) => eprintln!("{peer}: {error}"),
            }
        });
    }
}

/// Both ways until both have ended; half-closing passes through.
async fn splice(mut near: TcpStream, target: &str) -> std::io::Result<(u64, u64)> {
    let mut far = tokio::net::TcpStream::connect(target).await?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await
}
