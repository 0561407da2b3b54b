use std::sync::Weak;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::*;
use crate::{Driver, TcpListener, TcpStream};

#[tokio::test]
async fn threads_and_tasks_end_when_stack_is_dropped() {
    for driver in [Driver::Thread, Driver::Runtime] {
        they_end_when_nothing_is_held(driver).await;
    }
}

async fn they_end_when_nothing_is_held(driver: Driver) {
    let (server, client) = crate::mem_wire(Default::default(), Default::default(), 0).unwrap();
    let server = Stack::builder().mem(server).address("10.0.0.1", 24).unwrap().driver(driver);
    let client = Stack::builder().mem(client).address("10.0.0.2", 24).unwrap().driver(driver);
    let (server, client) = (server.build().unwrap(), client.shards(3).build().unwrap());
    let mailboxes = server.mailboxes().iter().chain(client.mailboxes());
    let threads: Vec<_> = mailboxes.map(Arc::downgrade).collect();
    let listener = TcpListener::bind(&server, "10.0.0.1:7").await.unwrap();
    let stream = TcpStream::connect(&client, "10.0.0.1:7").await.unwrap();
    drop((server, client));
    sleep(Duration::from_millis(50)).await;
    assert!(threads.iter().all(|thread| Weak::strong_count(thread) > 0), "they are still needed");
    drop((listener, stream));
    for _ in 0..10_000 {
        if threads.iter().all(|thread| Weak::strong_count(thread) == 0) {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    panic!("{driver:?} goes on though it is not needed");
}

#[tokio::test]
async fn who_panics_while_it_looks_at_a_shard_harms_itself_alone() {
    let (server, client) = Stack::pair().unwrap();
    let listener = TcpListener::bind(&server, "10.0.0.1:7").await.unwrap();
    let mut stream = TcpStream::connect(&client, "10.0.0.1:7").await.unwrap();
    let (mut accepted, _) = listener.accept().await.unwrap();
    let looker = server.clone();
    let looking = tokio::spawn(async move { looker.inspect(0, |_| panic!("cannot look")).await });
    let panic = looking.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"cannot look"));
    stream.write_all(b"still here").await.unwrap();
    drop(stream);
    let mut text = String::new();
    accepted.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "still here");
    assert_eq!(server.census().await.unwrap().listeners, 1);
}

#[tokio::test]
async fn who_awaits_the_end_of_a_stack_hears_why_and_does_not_keep_it() {
    let (server, _client) = Stack::pair().unwrap();
    let (before, clone) = (server.ended(), server.clone());
    drop(server);
    let early = tokio::time::timeout(Duration::from_millis(20), clone.ended()).await;
    early.expect_err("it is still held");
    let after = clone.ended();
    drop(clone);
    for ended in [before.await, after.await] {
        assert!(ended.to_string().contains("nothing of it was held any more"), "{ended}");
    }
}
