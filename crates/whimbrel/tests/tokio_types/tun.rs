//! Tokio-like types over a stack and the kernel's own sockets, over TUN.
//!
//! Needs root. Without it the test says so and passes; `WHIMBREL_REQUIRE_NET=1` makes it fail.

use axum::Router;
use axum::routing::get;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use whimbrel::{TcpListener, TcpStream};

use crate::namespace::in_a_namespace;
use crate::needs::{self, IPV6, TUN};
use crate::world::{assert_empties, builder, text};

#[test]
fn tasks_on_both_sides_of_a_tun_device_talk_whoever_began() {
    let name = "tun::tasks_on_both_sides_of_a_tun_device_talk_whoever_began";
    in_a_namespace(name, &[TUN, IPV6], inside);
}

#[test]
fn tasks_talk_to_the_kernel_over_packet_sockets_whoever_began() {
    let name = "tun::tasks_talk_to_the_kernel_over_packet_sockets_whoever_began";
    in_a_namespace(name, &["ip"], over_packet_sockets);
}

#[test]
fn axum_serve_ends_with_reason_when_tun_is_deleted() {
    let name = "tun::axum_serve_ends_with_reason_when_tun_is_deleted";
    in_a_namespace(name, &[TUN, "ip"], serves_until_the_device_is_gone);
}

#[tokio::main(flavor = "current_thread")]
async fn inside() {
    for shards in [1, 2] {
        on_shards(shards).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn serves_until_the_device_is_gone() {
    for shards in [1, 2] {
        let host = format!("10.9.{shards}.2");
        let wire = format!("tun:whim{shards},addr={host}/24");
        let stack = builder().wire(wire.parse().unwrap()).shards(shards).build().unwrap();
        let listener = TcpListener::bind(&stack, (host.as_str(), 80)).await.unwrap();
        let routes = Router::new().route("/", get(|| async { "from axum" }));
        let serving = tokio::spawn(whimbrel::serve(listener, routes));
        let mut client = tokio::net::TcpStream::connect((host.as_str(), 80)).await.unwrap();
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("from axum"), "{answer}");

        let device = format!("whim{shards}");
        let removed = needs::command(&format!("ip link delete {device}")).status();
        assert!(removed.unwrap().success());
        for why in [serving.await.unwrap().unwrap_err(), stack.ended().await] {
            assert!(why.to_string().contains("the interface is gone"), "{why}");
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn over_packet_sockets() {
    for words in [
        "link add whimk type veth peer name whims",
        "link set whimk up",
        "link set whims up",
        "address add 10.8.0.1/24 dev whimk",
    ] {
        let status = needs::command(&format!("ip {words}")).status();
        assert!(status.unwrap().success(), "{words}");
    }
    let wire = "packet:whims,addr=10.8.0.2/24,dad=off".parse().unwrap();
    let stack = builder().wire(wire).build().unwrap();
    let listener = TcpListener::bind(&stack, "10.8.0.2:80").await.unwrap();
    let (kernel, face) =
        tokio::join!(tokio::net::TcpStream::connect("10.8.0.2:80"), listener.accept());
    talk(kernel.unwrap(), face.unwrap().0).await;
    drop(listener);
    let listener = tokio::net::TcpListener::bind("10.8.0.1:81").await.unwrap();
    let (face, kernel) = tokio::join!(TcpStream::connect(&stack, "10.8.0.1:81"), listener.accept());
    talk(face.unwrap(), kernel.unwrap().0).await;
    assert_empties(&stack).await;
}

async fn on_shards(shards: u16) {
    // Each in networks of its own: the interface of the one before may still be going.
    let (v4, v6) = (format!("10.9.{shards}"), format!("fd0{shards}"));
    let hosts = [format!("{v4}.2"), format!("{v6}::2")];
    let wire = format!("tun:whim{shards},addr={v4}.2/24,addr={v6}::2/64");
    let stack = builder().wire(wire.parse().unwrap()).shards(shards).build().unwrap();
    for host in &hosts {
        let host = host.as_str();
        let listener = TcpListener::bind(&stack, (host, 80)).await.unwrap();
        let (kernel, face) =
            tokio::join!(tokio::net::TcpStream::connect((host, 80)), listener.accept());
        talk(kernel.unwrap(), face.unwrap().0).await;
    }
    let kernel = format!("{v4}.1:81");
    let listener = tokio::net::TcpListener::bind(&kernel).await.unwrap();
    let (face, kernel) = tokio::join!(TcpStream::connect(&stack, &kernel), listener.accept());
    talk(face.unwrap(), kernel.unwrap().0).await;
    assert_empties(&stack).await;
}

/// Four megabytes there and back.
async fn talk<A, B>(mut one: A, other: B)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let echoing = tokio::spawn(async move {
        let (mut read, mut write) = tokio::io::split(other);
        tokio::io::copy(&mut read, &mut write).await?;
        write.shutdown().await
    });
    let sent = text(4 << 20);
    let mut received = Vec::new();
    {
        let (mut read, mut write) = tokio::io::split(&mut one);
        let writing = async {
            write.write_all(&sent).await?;
            write.shutdown().await
        };
        let (written, read) = tokio::join!(writing, read.read_to_end(&mut received));
        written.unwrap();
        read.unwrap();
    }
    assert!(received == sent, "other bytes came back");
    echoing.await.unwrap().unwrap();
}
