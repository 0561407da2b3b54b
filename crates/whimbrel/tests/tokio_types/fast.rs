//! Fast Open: what is written first travels with the SYN.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use whimbrel::{TcpListener, TcpSocket, TcpStream};

use crate::world::{SERVER, World, text};

fn server_at() -> SocketAddr {
    SERVER.parse().unwrap()
}

/// A listener that takes up to eight such handshakes at a time.
fn listen(world: &World) -> TcpListener {
    let socket = TcpSocket::new_v4(&world.server).unwrap();
    assert_eq!(socket.fastopen().unwrap(), 0);
    socket.set_fastopen(8).unwrap();
    assert_eq!(socket.fastopen().unwrap(), 8);
    socket.bind(server_at()).unwrap();
    socket.listen(8).unwrap()
}

/// Sends `sent` with the SYN, if it can, and reads it back: both ends.
async fn echo(world: &World, listener: &TcpListener, sent: &[u8]) -> (TcpStream, TcpStream) {
    let socket = TcpSocket::new_v4(&world.client).unwrap();
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut received = vec![0; sent.len()];
        stream.read_exact(&mut received).await.unwrap();
        assert_eq!(received, sent);
        stream.write_all(&received).await.unwrap();
        stream
    };
    let asking = async {
        let mut stream = socket.connect_fast(server_at(), sent).await.unwrap();
        let mut answer = vec![0; sent.len()];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, sent);
        stream
    };
    let (client, server) = tokio::join!(asking, serving);
    (client, server)
}

#[tokio::test]
async fn first_write_travels_in_syn_with_cookie() {
    let world = World::with("delay=2ms", &[]);
    let listener = listen(&world);
    for (round, sent) in [text(9), text(9), text(1_400), text(300_000)].iter().enumerate() {
        let (client, server) = echo(&world, &listener, sent).await;
        for stream in [&client, &server] {
            assert_eq!(stream.tcp_info().await.unwrap().syn_data, round > 0, "{}", sent.len());
        }
    }
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn a_listener_that_was_not_asked_takes_it_after_the_handshake() {
    let world = World::with("delay=2ms", &[]);
    let listener = world.listener().await;
    for _ in 0..2 {
        let (client, server) = echo(&world, &listener, b"whimbrel").await;
        assert!(!client.tcp_info().await.unwrap().syn_data);
        drop((client, server));
    }
    drop(listener);
    world.assert_empty().await;
}

#[tokio::test]
async fn nobody_there_is_an_error_as_ever() {
    let world = World::new();
    let socket = TcpSocket::new_v4(&world.client).unwrap();
    let error = socket.connect_fast(server_at(), b"whimbrel").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    world.assert_empty().await;
}
