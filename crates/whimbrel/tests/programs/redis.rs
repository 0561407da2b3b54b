//! A client of Redis, which wants nothing of its stream but that tokio could read and write it,
//! against a real server over TUN.
//!
//! Needs root and `redis-server`. Without them the test says so and passes; `WHIMBREL_REQUIRE_NET=1`
//! makes it fail.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, RedisConnectionInfo};
use tokio::task::JoinSet;
use whimbrel::{Stack, TcpStream};
use whimbrel_io::process::end_with_starter;

use crate::namespace::in_a_namespace;
use crate::needs::{self, TUN};
use crate::scratch::scratch;

/// Runs itself once more, in a network namespace that ends with that process.
#[test]
fn a_redis_client_and_a_real_server_understand_each_other() {
    let name = "redis::a_redis_client_and_a_real_server_understand_each_other";
    in_a_namespace(name, &[TUN, "redis-server"], inside);
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn inside() {
    let wire = "tun:whim0,addr=10.9.0.2/24,host=10.9.0.1";
    let stack = Stack::builder().wire(wire.parse().unwrap()).build().unwrap();
    let _server = Server::start();
    let stream = connect(&stack).await;
    // Of the two ways to begin, the one whose driver outlives its arguments.
    let (info, config) = (RedisConnectionInfo::default(), AsyncConnectionConfig::default());
    let begun = MultiplexedConnection::new_with_config(&info, stream, config).await;
    let (client, driver) = begun.unwrap();
    let driving = tokio::spawn(driver);

    // Many at once over the one stream, with values larger than any segment.
    let mut tasks = JoinSet::new();
    for number in 0..64_u32 {
        let mut client = client.clone();
        tasks.spawn(async move {
            let (key, value) = (format!("key:{number}"), vec![number as u8; 100_000]);
            client.set::<_, _, ()>(&key, &value).await.unwrap();
            assert!(client.get::<_, Vec<u8>>(&key).await.unwrap() == value, "{key}: another value");
            client.incr::<_, _, u32>("counter", number).await.unwrap();
        });
    }
    while tasks.join_next().await.transpose().unwrap().is_some() {}
    let mut client = client;
    assert_eq!(client.get::<_, u32>("counter").await.unwrap(), (0..64).sum::<u32>());
    let lines: (u32, Vec<String>) = redis::pipe()
        .atomic()
        .rpush("list", &["a", "b"])
        .lrange("list", 0, -1)
        .query_async(&mut client)
        .await
        .unwrap();
    assert_eq!(lines, (2, vec!["a".to_owned(), "b".to_owned()]));

    drop(client);
    driving.await.unwrap();
    crate::assert_empty([&stack, &stack]).await;
}

/// Connects as soon as the server listens.
async fn connect(stack: &Stack) -> TcpStream {
    for _ in 0..500 {
        if let Ok(stream) = TcpStream::connect(stack, "10.9.0.1:6379").await {
            return stream;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("redis-server does not listen")
}

/// A server with a folder of its own, in a namespace where its port is free. Both end with it.
struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    fn start() -> Self {
        let folder = scratch("redis");
        fs::create_dir_all(&folder).unwrap();
        let mut command = needs::command("redis-server");
        command.args(["--bind", "10.9.0.1", "--port", "6379", "--protected-mode", "no"]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(&folder);
        let child = end_with_starter(command.stdout(Stdio::null())).spawn().unwrap();
        Self { child, folder }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
