//! Ten thousand connections at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;
use whimbrel::{TcpSocket, TcpStream};

use crate::world::{SERVER, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_concurrent_connections_echo() {
    ten_thousand_echo(World::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_concurrent_connections_echo_on_two_shards() {
    ten_thousand_echo(World::of_shards(2, 2)).await;
}

async fn ten_thousand_echo(world: World) {
    let socket = TcpSocket::new_v4(&world.server).unwrap();
    socket.bind(SERVER.parse().unwrap()).unwrap();
    let listener = socket.listen(4_096).unwrap();
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    let everybody = Arc::new(Barrier::new(MANY + 1));
    let mut clients = JoinSet::new();
    for number in 0..MANY as u32 {
        let (client, everybody) = (world.client.clone(), Arc::clone(&everybody));
        clients.spawn(async move {
            let mut stream = TcpStream::connect(&client, SERVER).await.unwrap();
            for round in 0..4 {
                let sent = number.wrapping_mul(0x9e37_79b9).wrapping_add(round);
                stream.write_u32(sent).await.unwrap();
                assert_eq!(stream.read_u32().await.unwrap(), sent);
                if round < 2 {
                    everybody.wait().await;
                }
            }
        });
    }
    all_are_here(&everybody, &world).await;
    let census = world.server.census().await.unwrap();
    assert_eq!((census.shards.connections, census.streams), (MANY, MANY));
    all_are_here(&everybody, &world).await;
    let all = async { while clients.join_next().await.transpose().unwrap().is_some() {} };
    timeout(PATIENCE, all).await.unwrap();
    server.abort();
    assert!(server.await.unwrap_err().is_cancelled());
    world.assert_empty().await;
}

/// Waits for them; where one is held up, says how far they are.
async fn all_are_here(everybody: &Barrier, world: &World) {
    if timeout(PATIENCE, everybody.wait()).await.is_err() {
        let server = (world.server.census().await, world.server.counters().await);
        let client = (world.client.census().await, world.client.counters().await);
        panic!("not all clients are here: server {server:?}, client {client:?}");
    }
}

/// Several times as long as it takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(100);
const MANY: usize = 10_000;
