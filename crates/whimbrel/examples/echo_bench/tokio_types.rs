//! By tasks.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use whimbrel::{Stack, TcpListener, TcpStream};

use super::{Begun, Load, MESSAGE, Outcome, PORT, WRITE};

pub(crate) fn run(load: Load) -> Outcome {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let (server, client) = Stack::pair().unwrap();
        let listener = TcpListener::bind(&server, ("10.0.0.1", PORT)).await.unwrap();
        match load {
            Load::PingPong { connections } => ping_pong(listener, &client, connections).await,
            Load::Stream { octets } => stream(listener, &client, octets).await,
        }
    })
}

async fn ping_pong(listener: TcpListener, client: &Stack, connections: usize) -> Outcome {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut message = MESSAGE;
                while stream.read_exact(&mut message).await.is_ok() {
                    stream.write_all(&message).await.unwrap();
                }
            });
        }
    });
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(client, ("10.0.0.1", PORT)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        streams.push(stream);
    }
    let begun = Begun::now();
    let mut tasks = JoinSet::new();
    for mut stream in streams {
        tasks.spawn(async move {
            let (mut message, mut done) = (MESSAGE, 0);
            while !begun.is_over() {
                stream.write_all(&message).await.unwrap();
                stream.read_exact(&mut message).await.unwrap();
                done += 1;
            }
            done
        });
    }
    let done = tasks.join_all().await.into_iter().sum();
    begun.outcome(done)
}

async fn stream(listener: TcpListener, client: &Stack, octets: u64) -> Outcome {
    let (connected, accepted) =
        tokio::join!(TcpStream::connect(client, ("10.0.0.1", PORT)), listener.accept());
    let (mut source, mut sink) = (connected.unwrap(), accepted.unwrap().0);
    let begun = Begun::now();
    let writing = tokio::spawn(async move {
        let text = vec![7; WRITE];
        for _ in 0..octets / WRITE as u64 {
            source.write_all(&text).await.unwrap();
        }
    });
    let (mut buf, mut done) = (vec![0; WRITE], 0);
    while let Ok(len @ 1..) = sink.read(&mut buf).await {
        done += len as u64;
    }
    writing.await.unwrap();
    begun.outcome(done)
}
