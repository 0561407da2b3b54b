//! A SOCKS proxy (RFC 1928): programs of this machine connect to any destination over the stack.
//!
//! ```sh
//! sudo cargo run -p whimbrel --example socks -- \
//!     tun:whim0,addr=10.9.0.2/24,host=10.9.0.1 127.0.0.1:1080
//! curl --socks5-hostname 127.0.0.1:1080 http://10.9.0.1:8080/
//! ```
//!
//! It needs no name and no password, so let it listen only where you trust every program.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener as KernelListener, TcpStream as KernelStream};
use tokio::time::timeout;
use whimbrel::{Stack, TcpStream};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("socks: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [wire, listen] = arguments.as_slice() else {
        return Err("usage: socks WIRE ADDR:PORT".into());
    };
    let stack = Stack::builder().wire(wire.parse()?).build()?;
    Ok(serve(KernelListener::bind(listen.as_str()).await?, stack).await?)
}

/// Serves each client in a task of its own, until the listener fails.
pub(crate) async fn serve(listener: KernelListener, stack: Stack) -> io::Result<()> {
    loop {
        let (client, peer) = listener.accept().await?;
        let stack = stack.clone();
        tokio::spawn(async move {
            match connect(client, &stack).await {
                Ok((there, back)) => println!("{peer}: {there} bytes there, {back} back"),
                Err(error) => eprintln!("{peer}: {error}"),
            }
        });
    }
}

/// Connects a client to the destination that it names, and carries bytes until both have ended.
async fn connect(mut client: KernelStream, stack: &Stack) -> io::Result<(u64, u64)> {
    let (host, port) = timeout(PATIENCE, request(&mut client)).await??;
    let opened = TcpStream::connect(stack, (host.as_str(), port)).await;
    client.write_all(&reply(opened.as_ref().err().map(io::Error::kind))).await?;
    tokio::io::copy_bidirectional(&mut client, &mut opened?).await
}

/// Reads the greeting and the request (RFC 1928 3 and 4).
async fn request(client: &mut KernelStream) -> io::Result<(String, u16)> {
    let [version, methods] = read(client).await?;
    let mut offered = vec![0; usize::from(methods)];
    client.read_exact(&mut offered).await?;
    if version != VERSION || !offered.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Err(invalid("SOCKS 5 without authentication is spoken here"));
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [_version, command, _reserved, kind] = read(client).await?;
    if command != CONNECT {
        client.write_all(&reply(Some(ErrorKind::Unsupported))).await?;
        return Err(invalid("only CONNECT is served"));
    }
    let host = match kind {
        1 => Ipv4Addr::from(read::<4>(client).await?).to_string(),
        4 => Ipv6Addr::from(read::<16>(client).await?).to_string(),
        _ => {
            let [len] = read(client).await?;
            let mut name = vec![0; usize::from(len)];
            client.read_exact(&mut name).await?;
            String::from_utf8(name).map_err(|_| invalid("the name is not UTF-8"))?
        }
    };
    Ok((host, u16::from_be_bytes(read(client).await?)))
}

async fn read<const N: usize>(client: &mut KernelStream) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    client.read_exact(&mut bytes).await.map(|_| bytes)
}

/// The reply to a request (RFC 1928 6), with an unspecified local address.
fn reply(error: Option<ErrorKind>) -> [u8; 10] {
    let code = match error {
        None => 0,
        Some(ErrorKind::NetworkUnreachable) => 3,
        Some(ErrorKind::HostUnreachable | ErrorKind::TimedOut) => 4,
        Some(ErrorKind::ConnectionRefused) => 5,
        Some(ErrorKind::Unsupported) => 7,
        Some(_) => 1,
    };
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
/// Time within which a client names its destination, so that silent clients hold no task for ever.
const PATIENCE: Duration = Duration::from_secs(10);
