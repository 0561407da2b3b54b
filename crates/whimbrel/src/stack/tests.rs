use std::sync::Weak;
use std::time::Duration;

use tokio::time::sleep;

use super::*;
use crate::{TcpListener, TcpStream};

#[tokio::test]
async fn the_threads_end_when_nothing_of_the_stack_is_held_any_more() {
    let (server, client) = crate::mem_wire(Default::default(), Default::default(), 0).unwrap();
    let server = Stack::builder().mem(server).address("10.0.0.1", 24).unwrap();
    let client = Stack::builder().mem(client).shards(3).address("10.0.0.2", 24).unwrap();
    let (server, client) = (server.build().unwrap(), client.build().unwrap());
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
    panic!("a worker thread goes on though nobody needs it");
}
