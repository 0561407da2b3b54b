use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::*;
use crate::{
    BuildError, Driver, LinkConfig, Stack, StackBuilder, TcpListener, TcpStream, mem_wire,
};

#[test]
fn clock_without_runtime_is_not_paused() {
    assert!(!is_paused());
}

#[tokio::test]
async fn pause_is_seen_until_clock_resumes() {
    assert!(!is_paused());
    tokio::time::pause();
    assert!(is_paused());
    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(is_paused());
    tokio::time::resume();
    assert!(!is_paused());
}

/// Builds the stacks of a wire, the second one a listener's at port 7.
fn build(first: StackBuilder, second: StackBuilder) -> Result<(Stack, Stack), BuildError> {
    let first = first.address("10.0.0.1", 24)?.seed(1).build()?;
    Ok((first, second.address("10.0.0.2", 24)?.seed(2).build()?))
}

/// Sends text from the first stack to the second and back. Returns the time that passed.
async fn echo(first: &Stack, second: &Stack, bytes: usize) -> Duration {
    let began = Instant::now();
    let listener = TcpListener::bind(second, "10.0.0.2:7").await.unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = vec![0; bytes];
        stream.read_exact(&mut text).await.unwrap();
        stream.write_all(&text).await.unwrap();
    });
    let mut stream = TcpStream::connect(first, "10.0.0.2:7").await.unwrap();
    stream.write_all(&vec![7; bytes]).await.unwrap();
    let mut text = vec![0; bytes];
    stream.read_exact(&mut text).await.unwrap();
    assert_eq!(text, vec![7; bytes]);
    server.await.unwrap();
    began.elapsed()
}

#[test]
fn wire_made_before_runtime_costs_no_virtual_time() {
    let delay: LinkConfig = "delay=80ms".parse().unwrap();
    let (left, right) = mem_wire(delay.clone(), delay, 1).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let took = runtime.enable_all().start_paused(true).build().unwrap().block_on(async {
        let stacks = build(Stack::builder().mem(left), Stack::builder().mem(right));
        let (first, second) = stacks.unwrap();
        echo(&first, &second, 100).await
    });
    // A handshake and an echo are two round trips.
    assert_eq!(took, Duration::from_millis(320));
}

#[tokio::test(start_paused = true)]
async fn packets_follow_paused_clock() {
    let (first, near) = Stack::builder().packets(1_500);
    let (second, far) = Stack::builder().packets(1_500);
    let (first, second) = build(first, second).unwrap();
    let (near, far) = (std::sync::Arc::new(near), std::sync::Arc::new(far));
    for (from, to) in [(near.clone(), far.clone()), (far, near)] {
        tokio::spawn(async move {
            while let Ok(packet) = from.recv().await {
                tokio::time::sleep(Duration::from_secs(3)).await;
                if to.send(packet).await.is_err() {
                    return;
                }
            }
        });
    }
    let began = std::time::Instant::now();
    let took = echo(&first, &second, 10).await;
    assert!(took >= Duration::from_secs(12), "{took:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "virtual time passed as the machine's");
}

#[tokio::test(start_paused = true)]
async fn echoes_of_one_hour_take_seconds() {
    let path: LinkConfig = "delay=100ms,loss=1%".parse().unwrap();
    let (left, right) = mem_wire(path.clone(), path, 5).unwrap();
    let stacks = build(Stack::builder().mem(left), Stack::builder().mem(right));
    let (first, second) = stacks.unwrap();
    let (hour, machine) = (Instant::now() + Duration::from_secs(3_600), std::time::Instant::now());
    let listener = TcpListener::bind(&second, "10.0.0.2:7").await.unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while let Ok(byte) = stream.read_u8().await {
            stream.write_u8(byte).await.unwrap();
        }
    });
    let mut stream = TcpStream::connect(&first, "10.0.0.2:7").await.unwrap();
    let mut echoes = 0_u32;
    while Instant::now() < hour {
        stream.write_u8(echoes as u8).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), echoes as u8);
        echoes += 1;
    }
    assert!(echoes > 10_000, "{echoes} echoes of 200 ms");
    // Some seconds, but on a busy machine.
    let took = machine.elapsed();
    assert!(took < Duration::from_secs(360), "an hour of echoes took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn threads_refuse_paused_clock() {
    let (left, _right) = mem_wire(LinkConfig::default(), LinkConfig::default(), 1).unwrap();
    let stack = Stack::builder().mem(left).driver(Driver::Thread).build();
    let error = stack.err().unwrap();
    assert!(matches!(error, BuildError::PausedClock(_)), "{error}");
    assert!(
        error.to_string().starts_with("tokio's clock is paused, and Driver::Thread"),
        "{error}"
    );
}
