//! Worlds in virtual time, and programs in them.
#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod programs;
mod repeat;
#[path = "../../../../tests/harness/scratch.rs"]
mod scratch;
mod wire;
mod world;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::sim::{Net, Outcome};
use whimbrel::{TcpListener, TcpStream};

/// Serves echoes at port 7.
async fn echo(net: Net) -> Outcome {
    let listener = TcpListener::bind(net.stack(), "0.0.0.0:7").await?;
    loop {
        let (mut stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let (mut read, mut write) = stream.split();
            tokio::io::copy(&mut read, &mut write).await
        });
    }
}

/// Connects to port 7 of a host.
async fn connect(net: &Net, name: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect(net.stack(), (net.lookup(name)?, 7)).await
}

/// Sends text to an echo server and awaits it.
async fn exchange(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<()> {
    stream.write_all(text).await?;
    let mut echoed = vec![0; text.len()];
    stream.read_exact(&mut echoed).await?;
    assert_eq!(echoed, text);
    Ok(())
}

/// Returns the message of the panic of `act`.
fn panic_of(act: impl FnOnce()) -> String {
    let payload: Box<dyn Any + Send> = catch_unwind(AssertUnwindSafe(act)).unwrap_err();
    let text = payload.downcast_ref::<String>().cloned();
    text.unwrap_or_else(|| (*payload.downcast_ref::<&str>().unwrap()).to_owned())
}
