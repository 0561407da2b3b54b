//! Memory of a connection that is idle after an exchange: its record, what is counted of it, its place in
//! each table, and its stream, as the allocator counts them.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;
use whimbrel::{Driver, LinkConfig, Stack, TcpListener, TcpStream, mem_wire};

#[path = "../../../tests/harness/allocator.rs"]
mod allocator;

/// Two hosts that the runtime's only thread drives: whatever they hold, that thread has allocated.
fn pair() -> (Stack, Stack) {
    let (first, second) = mem_wire(LinkConfig::default(), LinkConfig::default(), 0).unwrap();
    let host = |end, address| {
        let builder = Stack::builder().driver(Driver::Runtime).mem(end);
        builder.address(address, 24).unwrap().build().unwrap()
    };
    (host(first, "10.0.0.1"), host(second, "10.0.0.2"))
}

/// A connection over which each side has told the other something.
async fn exchange(client: &Stack, listener: &TcpListener) -> [TcpStream; 2] {
    let (near, far) = tokio::join!(TcpStream::connect(client, SERVER), listener.accept());
    let (mut near, mut far) = (near.unwrap(), far.unwrap().0);
    near.write_all(&[1; 100]).await.unwrap();
    far.read_exact(&mut [0; 100]).await.unwrap();
    far.write_all(&[2; 1_000]).await.unwrap();
    near.read_exact(&mut [0; 1_000]).await.unwrap();
    [near, far]
}

#[tokio::test]
async fn idle_connection_memory_is_bounded() {
    let (server, client) = pair();
    let listener = TcpListener::bind(&server, SERVER).await.unwrap();
    // What there is once for all of them.
    let mut streams = Vec::with_capacity(2 * (1 + MANY));
    streams.extend(exchange(&client, &listener).await);
    sleep(QUIET).await;
    let before = allocator::held();
    for _ in 0..MANY {
        streams.extend(exchange(&client, &listener).await);
    }
    sleep(QUIET).await;
    let each = (allocator::held() - before) as usize / (2 * MANY);
    println!("{each} bytes");
    assert!((256..=MOST).contains(&each), "{each} bytes");
    drop(streams);
    sleep(QUIET).await;
}

const SERVER: &str = "10.0.0.1:80";
const MANY: usize = 8_192;
/// Bytes.
const MOST: usize = 512;
/// Until nothing is remembered of what was sent, and no chunk waits for text.
const QUIET: Duration = Duration::from_millis(600);
