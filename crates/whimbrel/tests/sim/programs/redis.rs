//! A client of Redis, against 40 lines of its protocol, through a partition.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, RedisConnectionInfo};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::{Instant, sleep};
use whimbrel::sim::{Net, Outcome, World, explore};
use whimbrel::{TcpListener, TcpStream};

type Store = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

async fn serve(net: Net) -> Outcome {
    let (store, listener) =
        (Store::default(), TcpListener::bind(net.stack(), "0.0.0.0:6379").await?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer(BufReader::new(stream), Arc::clone(&store)));
    }
}

/// Reads a length behind `mark`, as in `*3` or `$5`.
async fn length(stream: &mut BufReader<TcpStream>, mark: char) -> std::io::Result<usize> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let length = line.trim_end().strip_prefix(mark).and_then(|length| length.parse().ok());
    length.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

async fn answer(mut stream: BufReader<TcpStream>, store: Store) -> std::io::Result<()> {
    loop {
        let mut words = Vec::new();
        for _ in 0..length(&mut stream, '*').await? {
            let mut word = vec![0; length(&mut stream, '$').await? + 2];
            stream.read_exact(&mut word).await?;
            word.truncate(word.len() - 2);
            words.push(word);
        }
        let text = |place: usize| String::from_utf8_lossy(&words[place]).into_owned();
        let reply = match text(0).as_str() {
            "SET" => {
                store.lock().unwrap().insert(text(1), words[2].clone());
                b"+OK\r\n".to_vec()
            }
            "GET" => match store.lock().unwrap().get(&text(1)) {
                Some(value) => {
                    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
                }
                None => b"$-1\r\n".to_vec(),
            },
            _ => b"+OK\r\n".to_vec(),
        };
        stream.write_all(&reply).await?;
    }
}

fn store_through_partition(world: &World) {
    world.set_link("rate=10M,delay=5ms,loss=1%".parse().unwrap());
    world.host("redis", serve);
    let net = world.net("client");
    world.run(async {
        let address = (net.lookup("redis").unwrap(), 6379);
        let stream = TcpStream::connect(net.stack(), address).await.unwrap();
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let info = RedisConnectionInfo::default();
        let made = MultiplexedConnection::new_with_config(&info, stream, config).await;
        let (mut client, driver) = made.unwrap();
        tokio::spawn(driver);
        let value = vec![7; 10_000];
        client.set::<_, _, ()>("key", &value).await.unwrap();
        world.partition("client", "redis");
        let (began, mut other) = (Instant::now(), client.clone());
        let got = tokio::spawn(async move { other.get::<_, Vec<u8>>("key").await });
        sleep(Duration::from_secs(20)).await;
        world.heal("client", "redis");
        assert_eq!(got.await.unwrap().unwrap(), value);
        assert!(began.elapsed() > Duration::from_secs(20));
    });
}

#[test]
fn redis_command_completes_after_partition() {
    explore(0..1_000, store_through_partition);
}
