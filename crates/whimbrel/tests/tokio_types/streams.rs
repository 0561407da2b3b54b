//! Streams without errors.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, ReadBuf, Ready};
use tokio::time::timeout;
use whimbrel::{BufferSize, TcpListener, TcpSocket, TcpStream};

use crate::world::{SERVER, World, pair, text, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn megabytes_cross_in_both_directions_at_once_over_a_bad_wire() {
    let world = World::with("rate=400M,delay=1ms,loss=0.2%,reorder=0.5%:2ms,queue=2000p", &[]);
    let (server, client) = world.connection().await;
    let sent = text(3 << 20);
    let mut tasks = Vec::new();
    for stream in [server, client] {
        let sent = sent.clone();
        tasks.push(tokio::spawn(async move {
            let (mut read, mut write) = stream.into_split();
            let writer = tokio::spawn(async move {
                write.write_all(&sent).await.unwrap();
                write
            });
            let mut received = vec![0; 3 << 20];
            read.read_exact(&mut received).await.unwrap();
            drop(read.reunite(writer.await.unwrap()).unwrap());
            received
        }));
    }
    for task in tasks {
        assert_eq!(task.await.unwrap(), sent);
    }
    world.assert_empty().await;
}

#[tokio::test]
async fn shutting_down_ends_one_direction_and_leaves_the_other() {
    let world = World::new();
    let (mut server, mut client) = world.connection().await;
    client.write_all(b"request").await.unwrap();
    client.shutdown().await.unwrap();
    client.shutdown().await.unwrap();
    let error = client.write(b"more").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);

    let mut request = String::new();
    server.read_to_string(&mut request).await.unwrap();
    assert_eq!(request, "request");
    assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0, "the end stays the end");
    server.write_all(b"response").await.unwrap();
    drop(server);
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    assert_eq!(response, "response");
    drop(client);
    world.assert_empty().await;
}

#[tokio::test]
async fn what_is_peeked_stays() {
    let world = World::new();
    let (mut server, mut client) = world.connection().await;
    client.write_all(b"whimbrel").await.unwrap();
    let mut bytes = [0; 4];
    assert_eq!(server.peek(&mut bytes).await.unwrap(), 4);
    assert_eq!(&bytes, b"whim");
    let mut buf = ReadBuf::new(&mut bytes);
    assert_eq!(poll_fn(|cx| server.poll_peek(cx, &mut buf)).await.unwrap(), 4);
    assert_eq!(buf.filled(), b"whim");
    let mut all = [0; 8];
    server.read_exact(&mut all).await.unwrap();
    assert_eq!(&all, b"whimbrel");
    drop(client);
    assert_eq!(server.peek(&mut bytes).await.unwrap(), 0);
    drop(server);
    world.assert_empty().await;
}

#[tokio::test]
async fn trying_never_waits_and_readiness_tells_when_to_try() {
    let world = World::new();
    let (server, client) = world.connection().await;
    assert_eq!(server.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(
        server.ready(Interest::READABLE | Interest::WRITABLE).await.unwrap(),
        Ready::WRITABLE
    );

    let bufs = [IoSlice::new(b"whim"), IoSlice::new(b""), IoSlice::new(b"brel")];
    assert_eq!(client.try_write_vectored(&bufs).unwrap(), 8);
    server.readable().await.unwrap();
    let (mut first, mut second) = ([0; 3], [0; 9]);
    let mut bufs = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
    assert_eq!(server.try_read_vectored(&mut bufs).unwrap(), 8);
    assert_eq!((&first, &second[..5]), (b"whi", &b"mbrel"[..]));

    assert_eq!(client.try_write(b"more").unwrap(), 4);
    server.readable().await.unwrap();
    let mut grows = Vec::with_capacity(16);
    assert_eq!(server.try_read_buf(&mut grows).unwrap(), 4);
    assert_eq!(grows, b"more");

    drop(client);
    let ended = Ready::READABLE | Ready::READ_CLOSED;
    until("the end arrives", async || server.ready(Interest::READABLE).await.unwrap() == ended)
        .await;
    assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 0);
    drop(server);
    world.assert_empty().await;
}

#[tokio::test]
async fn a_writer_waits_for_a_reader_and_goes_on_with_it() {
    let world = World::new();
    let (mut server, client) = world.connection().await;
    let sent = text(16 << 20);
    let mut done = 0;
    // The buffers of both sides, which grow with what is sent until nothing is taken any more.
    while timeout(Duration::from_millis(300), client.writable()).await.is_ok() {
        done += client.try_write(&sent[done..]).unwrap_or(0);
    }
    assert!((512 << 10..=8 << 20).contains(&done), "{done} bytes were taken");
    assert_eq!(client.try_write(&sent[done..]).unwrap_err().kind(), ErrorKind::WouldBlock);

    let reader = tokio::spawn(async move {
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.unwrap();
        received
    });
    let mut client = client;
    client.write_all(&sent[done..]).await.unwrap();
    drop(client);
    assert!(reader.await.unwrap() == sent, "other bytes arrived than were sent");
    world.assert_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_awaiting_task_wakes_despite_dropped_futures() {
    let world = World::new();
    let (server, mut client) = world.connection().await;
    let server = std::sync::Arc::new(server);
    // It waits no more when the byte comes.
    assert!(timeout(Duration::from_millis(5), server.readable()).await.is_err());
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let server = std::sync::Arc::clone(&server);
            tokio::spawn(async move { server.readable().await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(20)).await;
    client.write_all(b"!").await.unwrap();
    for task in waiting {
        timeout(Duration::from_secs(10), task).await.unwrap().unwrap().unwrap();
    }
    assert_eq!(server.try_read(&mut [0; 8]).unwrap(), 1);
    drop((server, client));
    world.assert_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_migrates_wakes_the_task_that_has_it_now() {
    let world = World::new();
    let (mut server, mut client) = world.connection().await;
    for round in 0..100_u8 {
        let mut byte = [0];
        // This task leaves its waker behind, the next one takes over.
        let polled = poll_fn(|cx| {
            let mut buf = ReadBuf::new(&mut byte);
            let stream = Pin::new(&mut server);
            std::task::Poll::Ready(tokio::io::AsyncRead::poll_read(stream, cx, &mut buf))
        });
        assert!(polled.await.is_pending());
        let task = tokio::spawn(async move { (server.read_u8().await.unwrap(), server) });
        client.write_u8(round).await.unwrap();
        let (received, back) = timeout(Duration::from_secs(10), task).await.unwrap().unwrap();
        assert_eq!(received, round);
        server = back;
    }
    drop((server, client));
    world.assert_empty().await;
}

#[tokio::test]
async fn settings_reach_the_shard_and_accepted_streams_inherit_them() {
    let world = World::new();
    let socket = TcpSocket::new_v4(&world.server).unwrap();
    socket.set_nodelay(true).unwrap();
    socket.set_recv_buffer_size(100_000).unwrap();
    socket.set_keepalive(true).unwrap();
    assert_eq!(socket.recv_buffer_size().unwrap(), 100_000);
    assert_eq!(socket.send_buffer_size().unwrap(), 256 << 10);
    socket.bind(SERVER.parse().unwrap()).unwrap();
    let listener = socket.listen(8).unwrap();

    let socket = TcpSocket::new_v4(&world.client).unwrap();
    socket.bind("10.0.0.2:1234".parse().unwrap()).unwrap();
    let (client, server) = tokio::join!(socket.connect(SERVER.parse().unwrap()), listener.accept());
    let (client, (server, peer)) = (client.unwrap(), server.unwrap());
    assert_eq!(peer, "10.0.0.2:1234".parse().unwrap());
    assert_eq!(client.local_addr().unwrap(), peer);
    assert_eq!(server.local_addr().unwrap(), client.peer_addr().unwrap());

    let info = server.tcp_info().await.unwrap();
    assert!(info.no_delay && info.keep_alive);
    assert_eq!(info.recv_size, 100_000);
    assert!(server.nodelay().unwrap() && server.keepalive().unwrap());
    client.set_nodelay(true).unwrap();
    client.set_send_buffer(BufferSize::Exact(1)).unwrap();
    until("the shard has heard of it", async || {
        let info = client.tcp_info().await.unwrap();
        info.no_delay && info.send_size == 2 << 10
    })
    .await;
    assert_eq!(client.ttl().unwrap(), 64);
    client.set_ttl(3).unwrap();
    assert_eq!(client.ttl().unwrap(), 3);
    for ttl in [0, 256] {
        assert_eq!(client.set_ttl(ttl).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    drop((client, server, listener));
    world.assert_empty().await;
}

#[tokio::test]
async fn a_listener_at_any_address_takes_both_families() {
    let world = World::new();
    let listener = TcpListener::bind(&world.server, "[::]:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!((32_768..=60_999).contains(&port));
    for host in ["10.0.0.1", "fd00::1"] {
        let host: std::net::IpAddr = host.parse().unwrap();
        let (client, server) =
            tokio::join!(TcpStream::connect(&world.client, (host, port)), listener.accept());
        let (server, peer) = server.unwrap();
        assert_eq!(client.unwrap().local_addr().unwrap(), peer);
        assert_eq!(server.local_addr().unwrap().ip(), host);
    }
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn wait_drained_returns_after_data_has_arrived() {
    for shards in [1, 2] {
        let world = World::over("delay=20ms", 1, shards);
        let (mut server, mut client) = world.connection().await;
        let held = world.connection().await;
        timeout(Duration::from_secs(5), world.client.wait_drained()).await.unwrap().unwrap();
        let sent = text(300_000);
        client.write_all(&sent).await.unwrap();
        let reader = tokio::spawn(async move {
            let mut received = Vec::new();
            server.read_to_end(&mut received).await.map(|_| received)
        });
        drop(client);
        timeout(Duration::from_secs(5), world.client.wait_drained()).await.unwrap().unwrap();
        // Streams that are held stay, and are not waited for.
        assert_eq!(world.client.census().await.unwrap().shards.connections, 1);
        assert!(reader.is_finished(), "{shards} shards: not all was delivered");
        assert!(reader.await.unwrap().unwrap() == sent);
        drop(held);
        world.assert_empty().await;
    }
}

#[tokio::test]
async fn streams_outlive_the_stack_they_came_from() {
    let (server, client) = pair();
    let world = World { server, client };
    let (mut accepted, mut connected) = world.connection().await;
    let probe = world.server.clone();
    drop(world);
    connected.write_all(b"still here").await.unwrap();
    drop(connected);
    let mut text = String::new();
    accepted.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "still here");
    drop(accepted);
    crate::world::assert_empties(&probe).await;
}
