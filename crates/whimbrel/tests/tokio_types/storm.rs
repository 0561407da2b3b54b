//! Whatever tasks do to their streams, and whatever becomes of the tasks: what arrives is what was
//! sent, and nothing is left.

use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::time::Duration;

use fastrand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use whimbrel::{Stack, TcpListener, TcpSocket, TcpStream};

use crate::world::{SERVER, World, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn cancelled_tasks_corrupt_no_stream_and_leak_nothing() {
    // For longer: WHIMBREL_STORM=seconds.
    let length = std::env::var("WHIMBREL_STORM").map_or(3, |length| length.parse().unwrap());
    let worlds = [("delay=0ms", 1), ("rate=400M,delay=1ms,loss=0.5%,reorder=1%:2ms", 2)];
    for (link, shards) in worlds {
        let seed = fastrand::u64(..);
        println!("seed {seed}, {link}, {shards} shards");
        let world = World::over(link, shards, shards);
        let end = Instant::now() + Duration::from_secs(length) / worlds.len() as u32;
        let serving = tokio::spawn(serve(world.server.clone(), Rng::with_seed(seed), end));
        let mut clients = JoinSet::new();
        for number in 0..48 {
            let rng = Rng::with_seed(seed ^ number);
            clients.spawn(ask_until(world.client.clone(), rng, end));
        }
        let mut echoes = 0;
        while let Some(client) = clients.join_next().await {
            echoes += client.unwrap();
        }
        serving.await.unwrap();
        assert!(echoes > 10, "{echoes} whole echoes");
        world.assert_empty().await;
    }
}

/// Echoes, as long as nothing happens; now and then to the listener, too.
async fn serve(stack: Stack, mut rng: Rng, end: Instant) {
    let mut streams = JoinSet::new();
    while Instant::now() < end {
        let listener = TcpListener::bind(&stack, SERVER).await.unwrap();
        let until = Instant::now() + Duration::from_millis(rng.u64(50..500));
        while let Ok(accepted) = timeout(until - Instant::now(), listener.accept()).await {
            let mut its = rng.fork();
            let aborted = streams.spawn(async move { echo(accepted.unwrap().0, &mut its).await });
            if rng.u8(..10) == 0 {
                let later = Duration::from_micros(rng.u64(..3_000));
                tokio::spawn(async move {
                    sleep(later).await;
                    aborted.abort();
                });
            }
            while streams.try_join_next().is_some() {}
        }
    }
    streams.shutdown().await;
}

async fn echo(mut stream: TcpStream, rng: &mut Rng) {
    let mut buf = vec![0; rng.usize(1..20_000)];
    while let Ok(len @ 1..) = stream.read(&mut buf).await {
        match rng.u8(..200) {
            0 => resume_unwind(Box::new("a task that panics, as it should")),
            1 => stream.set_zero_linger().unwrap(),
            2 => return,
            _ => {}
        }
        if stream.write_all(&buf[..len]).await.is_err() {
            return;
        }
    }
}

/// Returns how many echoes were whole.
async fn ask_until(stack: Stack, mut rng: Rng, end: Instant) -> u32 {
    let mut whole = 0;
    while Instant::now() < end {
        let (stack, mut its) = (stack.clone(), rng.fork());
        let mut asking = tokio::spawn(async move { ask(&stack, &mut its).await });
        let patience = match rng.u8(..4) {
            0 => Duration::from_micros(rng.u64(..5_000)),
            _ => Duration::from_secs(20),
        };
        match timeout(patience, &mut asking).await {
            Ok(Ok(echoed)) => whole += u32::from(echoed),
            Ok(Err(_panicked)) => {}
            Err(_) if patience > Duration::from_secs(1) => panic!("a task waits for ever"),
            Err(_) => asking.abort(),
        }
    }
    whole
}

/// True if all that was sent came back.
async fn ask(stack: &Stack, rng: &mut Rng) -> bool {
    let server: SocketAddr = SERVER.parse().unwrap();
    let socket = TcpSocket::new_v4(stack).unwrap();
    socket.set_keepalive(true).unwrap();
    let Ok(stream) = socket.connect(server).await else {
        sleep(Duration::from_millis(1)).await;
        return false;
    };
    let sent = text(rng.usize(1..100_000));
    let (mut read, mut write) = stream.into_split();
    let (mine, how) = (sent.clone(), rng.u8(..12));
    let writing = tokio::spawn(async move {
        let written = write.write_all(&mine).await;
        match how {
            0 => resume_unwind(Box::new("a task that panics, as it should")),
            1 => write.forget(),
            2 => write.as_ref().set_zero_linger().unwrap(),
            _ => {}
        }
        written
    });
    let mut received = Vec::new();
    let mut buf = vec![0; rng.usize(1..30_000)];
    while received.len() < sent.len() {
        // Waited for, and given up now and then, without losing a byte.
        let Ok(next) = timeout(Duration::from_micros(rng.u64(..20_000)), read.read(&mut buf)).await
        else {
            if how == 1 && writing.is_finished() && rng.u8(..50) == 0 {
                break;
            }
            continue;
        };
        let Ok(len @ 1..) = next else { break };
        received.extend_from_slice(&buf[..len]);
        assert!(sent.starts_with(&received), "bytes came back that were not sent");
    }
    received.len() == sent.len()
}
