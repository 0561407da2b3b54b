//! A waker that panics harms its own task, not the stack and not other tasks.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::{Stack, TcpListener, TcpStream};

use crate::world::{SERVER, World, until};

/// A waker that counts its calls, and panics at each.
#[derive(Default)]
struct Broken(AtomicUsize);

impl Wake for Broken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("this waker is broken on purpose");
    }
}

/// Polls `future` once with a broken waker, and `happen`s; the waker is called, and the stack goes on.
async fn with_broken_waker<F: Future, E: Future>(
    future: F,
    happen: impl FnOnce() -> E,
) -> E::Output {
    let broken = Arc::new(Broken::default());
    let waker = Waker::from(Arc::clone(&broken));
    let mut future = pin!(future);
    assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let output = happen().await;
    until("the waker is called", async || broken.0.load(Ordering::SeqCst) > 0).await;
    output
}

async fn connected(client: &Stack, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let (connected, accepted) = tokio::join!(TcpStream::connect(client, SERVER), listener.accept());
    (connected.unwrap(), accepted.unwrap().0)
}

#[tokio::test]
async fn panicking_waker_harms_only_its_own_task() {
    let world = World::with("delay=5ms", &[]);
    let listener = world.listener().await;
    let dialled =
        with_broken_waker(listener.accept(), || TcpStream::connect(&world.client, SERVER));
    let first = dialled.await.unwrap();
    let accepted = listener.accept().await.unwrap().0;
    let connect = TcpStream::connect(&world.client, SERVER);
    let (_second, _) = with_broken_waker(connect, || listener.accept()).await.unwrap();
    let (mut reader, mut writer) = connected(&world.client, &listener).await;
    let mut byte = [0];
    with_broken_waker(reader.read(&mut byte), || writer.write_all(b"x")).await.unwrap();
    // The stacks are alive, and so is the stream.
    reader.read_exact(&mut byte).await.unwrap();
    assert_eq!(&byte, b"x");
    let address = SERVER.parse::<std::net::SocketAddr>().unwrap().ip();
    with_broken_waker(world.client.ping(address), || async {}).await;
    drop((
        first,
        accepted,
        _second,
        connected(&world.client, &listener).await,
        reader,
        writer,
        listener,
    ));
    world.assert_empty().await;
}
