//! Futures dropped midway leak nothing and lose nothing.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use whimbrel::TcpStream;

use crate::world::{SERVER, World, text, until};

#[tokio::test]
async fn a_dropped_connect_ends_the_attempt() {
    for shards in SHARDS {
        connects_are_dropped(World::over("loss=100%", shards, shards)).await;
    }
}

async fn connects_are_dropped(world: World) {
    for _ in 0..200 {
        // Dropped before the shard has heard of it, mostly.
        let mut connect = Box::pin(TcpStream::connect(&world.client, SERVER));
        assert!(poll_fn(|cx| Poll::Ready(connect.as_mut().poll(cx).is_pending())).await);
    }
    for wait in 0..20 {
        let connect = TcpStream::connect(&world.client, SERVER);
        assert!(timeout(Duration::from_millis(wait), connect).await.is_err());
    }
    world.assert_empty().await;
}

#[tokio::test]
async fn a_dropped_accept_loses_no_connection() {
    for shards in SHARDS {
        accepts_are_dropped(World::of_shards(shards, 1)).await;
    }
}

async fn accepts_are_dropped(world: World) {
    let listener = world.listener().await;
    let clients = tokio::spawn({
        let client = world.client.clone();
        async move {
            let mut streams = Vec::new();
            for _ in 0..200 {
                streams.push(TcpStream::connect(&client, SERVER).await.unwrap());
            }
            streams
        }
    });
    let mut accepted = Vec::new();
    while accepted.len() < 200 {
        // Dropped after every poll that found nothing.
        tokio::select! {
            biased;
            next = listener.accept() => accepted.push(next.unwrap().1),
            () = sleep(Duration::from_micros(50)) => {}
        }
    }
    let mut connected: Vec<_> =
        clients.await.unwrap().iter().map(|stream| stream.local_addr().unwrap()).collect();
    accepted.sort();
    connected.sort();
    assert_eq!(accepted, connected);
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn of_a_dropped_write_what_was_taken_arrives() {
    let world = World::new();
    let (mut server, mut client) = world.connection().await;
    let sent = text(8 << 20);
    assert!(timeout(Duration::from_millis(50), client.write_all(&sent)).await.is_err());
    drop(client);
    let mut received = Vec::new();
    server.read_to_end(&mut received).await.unwrap();
    assert!(received.len() > 256 << 10 && received.len() < sent.len());
    assert!(sent.starts_with(&received), "the bytes taken are not those that arrived");
    drop(server);
    world.assert_empty().await;
}

#[tokio::test]
async fn a_dropped_listener_resets_whom_nobody_accepted() {
    for shards in SHARDS {
        nobody_accepts(World::of_shards(shards, 2)).await;
    }
}

async fn nobody_accepts(world: World) {
    let listener = world.listener().await;
    let mut first = TcpStream::connect(&world.client, SERVER).await.unwrap();
    let mut second = TcpStream::connect(&world.client, SERVER).await.unwrap();
    until("both wait", async || listener.stats().await.unwrap().waiting == 2).await;
    drop(listener);
    for stream in [&mut first, &mut second] {
        let error = stream.read(&mut [0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
    drop((first, second));
    world.assert_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_panic_or_are_aborted_leak_nothing() {
    for shards in SHARDS {
        tasks_panic(World::over("delay=1ms", shards, shards)).await;
    }
}

async fn tasks_panic(world: World) {
    let listener = world.listener().await;
    let server = tokio::spawn(async move {
        let mut streams = JoinSet::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            streams.spawn(async move {
                let mut buf = vec![0; 4096];
                while let Ok(len @ 1..) = stream.read(&mut buf).await {
                    assert_ne!(buf[0], b'!', "a task that panics, as asked");
                    stream.write_all(&buf[..len]).await.unwrap();
                }
            });
        }
    });
    let mut clients = JoinSet::new();
    for number in 0..200_u64 {
        let client = world.client.clone();
        clients.spawn(async move {
            let mut stream = TcpStream::connect(&client, SERVER).await.unwrap();
            let first = if number % 4 == 0 { b'!' } else { b'.' };
            stream.write_all(&[first; 100_000]).await?;
            let mut echo = vec![0; 100_000];
            stream.read_exact(&mut echo).await
        });
    }
    // Some end, some are aborted in whatever they are doing.
    sleep(Duration::from_millis(20)).await;
    clients.abort_all();
    while clients.join_next().await.is_some() {}
    server.abort();
    assert!(server.await.unwrap_err().is_cancelled());
    world.assert_empty().await;
}

#[test]
fn stack_survives_runtime_shutdown_without_leaks() {
    for shards in SHARDS {
        // The stacks' own goes on, if it is that what drives them.
        let own = tokio::runtime::Runtime::new().unwrap();
        let world = own.block_on(async { World::of_shards(shards, shards) });
        a_runtime_is_shut_down(&world);
    }
}

fn a_runtime_is_shut_down(world: &World) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let listener = world.listener().await;
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
            }
        });
        for _ in 0..50 {
            let mut stream = TcpStream::connect(&world.client, SERVER).await.unwrap();
            tokio::spawn(async move { stream.read_u8().await });
        }
    });
    runtime.shutdown_background();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        world.assert_empty().await;
        let (mut server, mut client) = world.connection().await;
        client.write_u8(7).await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), 7);
        drop((server, client));
        world.assert_empty().await;
    });
}

/// Each of these tests is on stacks of so many shards.
const SHARDS: [u16; 3] = [1, 2, 4];
