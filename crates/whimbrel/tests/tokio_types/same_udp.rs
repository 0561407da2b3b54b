//! One program of datagrams, word for word, over tokio's own type and over ours: that it compiles
//! holds the signatures against each other, that it passes over the kernel holds the meanings.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{Interest, ReadBuf, Ready};
use tokio::time::timeout;
use whimbrel::Stack;

use crate::world::World;

#[tokio::test]
async fn the_kernel_does_as_the_story_of_datagrams_tells() {
    kernel::story("127.0.0.1".parse().unwrap()).await;
}

#[tokio::test]
async fn so_does_whimbrel_with_datagrams() {
    let world = World::new();
    whimbrel_face::story(&world.server, &world.client, "10.0.0.1".parse().unwrap()).await;
    world.assert_empty().await;
}

/// The program over the type of `$from`, whose constructor takes `$server` or `$client` first.
macro_rules! program {
    ($name:ident, $($from:ident)::+, ($($server:ident, $client:ident)?)) => {
        mod $name {
            use super::*;
            use $($from)::+::UdpSocket;

            type Out<T> = io::Result<T>;
            type Polled<T> = Poll<io::Result<T>>;

            #[test]
            fn signatures_of_sockets_are_tokios() {
                signatures! {
                    UdpSocket::local_addr: fn(&UdpSocket) -> Out<SocketAddr>;
                    UdpSocket::peer_addr: fn(&UdpSocket) -> Out<SocketAddr>;
                    UdpSocket::take_error: fn(&UdpSocket) -> Out<Option<io::Error>>;
                    UdpSocket::ttl: fn(&UdpSocket) -> Out<u32>;
                    UdpSocket::set_ttl: fn(&UdpSocket, u32) -> Out<()>;
                    UdpSocket::tos_v4: fn(&UdpSocket) -> Out<u32>;
                    UdpSocket::set_tos_v4: fn(&UdpSocket, u32) -> Out<()>;
                    UdpSocket::tclass_v6: fn(&UdpSocket) -> Out<u32>;
                    UdpSocket::set_tclass_v6: fn(&UdpSocket, u32) -> Out<()>;
                    UdpSocket::broadcast: fn(&UdpSocket) -> Out<bool>;
                    UdpSocket::set_broadcast: fn(&UdpSocket, bool) -> Out<()>;
                    UdpSocket::join_multicast_v4: fn(&UdpSocket, Ipv4Addr, Ipv4Addr) -> Out<()>;
                    UdpSocket::join_multicast_v6: fn(&UdpSocket, &Ipv6Addr, u32) -> Out<()>;
                    UdpSocket::poll_recv_ready: fn(&UdpSocket, &mut Context<'_>) -> Polled<()>;
                    UdpSocket::poll_send_ready: fn(&UdpSocket, &mut Context<'_>) -> Polled<()>;
                    UdpSocket::poll_recv:
                        fn(&UdpSocket, &mut Context<'_>, &mut ReadBuf<'_>) -> Polled<()>;
                    UdpSocket::poll_recv_from:
                        fn(&UdpSocket, &mut Context<'_>, &mut ReadBuf<'_>) -> Polled<SocketAddr>;
                    UdpSocket::poll_peek:
                        fn(&UdpSocket, &mut Context<'_>, &mut ReadBuf<'_>) -> Polled<()>;
                    UdpSocket::poll_peek_from:
                        fn(&UdpSocket, &mut Context<'_>, &mut ReadBuf<'_>) -> Polled<SocketAddr>;
                    UdpSocket::poll_peek_sender:
                        fn(&UdpSocket, &mut Context<'_>) -> Polled<SocketAddr>;
                    UdpSocket::poll_send: fn(&UdpSocket, &mut Context<'_>, &[u8]) -> Polled<usize>;
                    UdpSocket::poll_send_to:
                        fn(&UdpSocket, &mut Context<'_>, &[u8], SocketAddr) -> Polled<usize>;
                    UdpSocket::try_recv: fn(&UdpSocket, &mut [u8]) -> Out<usize>;
                    UdpSocket::try_recv_from:
                        fn(&UdpSocket, &mut [u8]) -> Out<(usize, SocketAddr)>;
                    UdpSocket::try_recv_buf::<Vec<u8>>: fn(&UdpSocket, &mut Vec<u8>) -> Out<usize>;
                    UdpSocket::try_recv_buf_from::<Vec<u8>>:
                        fn(&UdpSocket, &mut Vec<u8>) -> Out<(usize, SocketAddr)>;
                    UdpSocket::try_peek: fn(&UdpSocket, &mut [u8]) -> Out<usize>;
                    UdpSocket::try_peek_from:
                        fn(&UdpSocket, &mut [u8]) -> Out<(usize, SocketAddr)>;
                    UdpSocket::try_peek_sender: fn(&UdpSocket) -> Out<SocketAddr>;
                    UdpSocket::try_send: fn(&UdpSocket, &[u8]) -> Out<usize>;
                    UdpSocket::try_send_to: fn(&UdpSocket, &[u8], SocketAddr) -> Out<usize>;
                }
            }

            /// A future that can go to another thread.
            async fn give<T>(future: impl Future<Output = T> + Send) -> T {
                future.await
            }

            pub(super) async fn story($($server: &Stack, $client: &Stack,)? host: IpAddr) {
                let binding: Out<UdpSocket> =
                    give(UdpSocket::bind($($server,)? SocketAddr::new(host, 0))).await;
                let server = binding.unwrap();
                let at = server.local_addr().unwrap();
                let again = UdpSocket::bind($($server,)? at).await;
                assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
                let foreign = UdpSocket::bind($($server,)? "192.0.2.1:0").await;
                assert_eq!(foreign.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
                let client = UdpSocket::bind($($client,)? "0.0.0.0:0").await.unwrap();
                assert_ne!(client.local_addr().unwrap().port(), 0);

                unconnected(&client, &server).await;
                let sent: Out<usize> = give(client.send_to(b"whimbrel", (host, at.port()))).await;
                assert_eq!(sent.unwrap(), 8);
                let peer = received(&server).await;
                assert_eq!(peer.port(), client.local_addr().unwrap().port());
                talk(&client, &server, peer).await;

                // The port is closed now: the next call reports it, and the socket goes on.
                drop(server);
                let refused = loop {
                    // Sending may be told of what was sent before.
                    if let Err(error) = client.send(b"anybody?").await {
                        break error;
                    }
                    let mut bytes = [0; 8];
                    let received = client.recv(&mut bytes);
                    // One that was under way when the socket was dropped is not answered.
                    match timeout(Duration::from_millis(100), received).await {
                        Ok(received) => break received.unwrap_err(),
                        Err(_elapsed) => {}
                    }
                };
                assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
                let server = UdpSocket::bind($($server,)? at).await.unwrap();
                // What is still on its way to say so.
                while client.send(b"back").await.is_err() {}
                assert_eq!(server.recv(&mut [0; 16]).await.unwrap(), 4);
            }

            /// Unconnected sockets.
            async fn unconnected(client: &UdpSocket, server: &UdpSocket) {
                assert_eq!(client.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
                assert!(client.send(b"no one").await.is_err());
                assert_eq!(server.try_recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
                let looked = || Err::<(), _>(ErrorKind::WouldBlock.into());
                let error = server.try_io(Interest::READABLE, looked).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                let ready: Out<Ready> = give(client.ready(Interest::WRITABLE)).await;
                assert!(ready.unwrap().is_writable());
                let writable: Out<()> = give(client.writable()).await;
                writable.unwrap();
                client.set_ttl(7).unwrap();
                assert_eq!(client.ttl().unwrap(), 7);
                for ttl in [0, 256] {
                    assert_eq!(client.set_ttl(ttl).unwrap_err().kind(), ErrorKind::InvalidInput);
                }
                client.set_tos_v4(0xb8).unwrap();
                assert_eq!(client.tos_v4().unwrap(), 0xb8);
                assert!(!client.broadcast().unwrap());
                let to = server.local_addr().unwrap();
                assert!(client.send_to(&[0; 65_508], to).await.is_err(), "too long");
                let no_port = SocketAddr::new(to.ip(), 0);
                assert_eq!(
                    client.send_to(b"x", no_port).await.unwrap_err().kind(),
                    ErrorKind::InvalidInput
                );
            }

            /// A datagram is looked at, and received; returns who sent it.
            async fn received(server: &UdpSocket) -> SocketAddr {
                let readable: Out<()> = give(server.readable()).await;
                readable.unwrap();
                let mut bytes = [0; 16];
                let peeked: Out<(usize, SocketAddr)> = give(server.peek_from(&mut bytes)).await;
                let (len, peer) = peeked.unwrap();
                assert_eq!(&bytes[..len], b"whimbrel");
                assert_eq!(server.peek(&mut bytes[..3]).await.unwrap(), 3);
                assert_eq!(server.peek_sender().await.unwrap(), peer);
                let mut read = [0; 16];
                let received: Out<(usize, SocketAddr)> = give(server.recv_from(&mut read)).await;
                assert_eq!(received.unwrap(), (8, peer));
                assert_eq!(&read[..8], b"whimbrel");
                assert_eq!(server.try_recv(&mut read).unwrap_err().kind(), ErrorKind::WouldBlock);
                peer
            }

            /// Both sides connected: whole datagrams, of any size, none of which is anybody else's.
            async fn talk(client: &UdpSocket, server: &UdpSocket, peer: SocketAddr) {
                let at = server.local_addr().unwrap();
                let connecting: Out<()> = give(client.connect(at)).await;
                connecting.unwrap();
                server.connect(peer).await.unwrap();
                assert_eq!((client.peer_addr().unwrap(), server.peer_addr().unwrap()), (at, peer));
                assert_eq!(client.local_addr().unwrap(), peer);

                // What does not fit the buffer is lost, and an empty datagram is one.
                for data in [&b"long"[..], b"", b"next"] {
                    assert_eq!(server.send(data).await.unwrap(), data.len());
                }
                let mut bytes = [0; 2];
                assert_eq!(client.recv(&mut bytes).await.unwrap(), 2);
                assert_eq!(client.recv(&mut bytes).await.unwrap(), 0);
                let mut text = b"and ".to_vec();
                assert_eq!(client.recv_buf(&mut text).await.unwrap(), 4);
                assert_eq!(text, b"and next");

                let large: Vec<u8> = (0..65_507_u32).map(|at| (at >> 4) as u8).collect();
                assert_eq!(client.send(&large).await.unwrap(), large.len());
                let mut whole = vec![0; 65_536];
                assert_eq!(server.recv(&mut whole).await.unwrap(), large.len());
                assert!(whole[..large.len()] == large, "another datagram");

                poll_fn(|cx| client.poll_send(cx, b"polled")).await.unwrap();
                let mut bytes = [0; 8];
                let mut buf = ReadBuf::new(&mut bytes);
                let from = poll_fn(|cx| server.poll_recv_from(cx, &mut buf)).await.unwrap();
                assert_eq!((from, buf.filled()), (peer, &b"polled"[..]));
                let sending = || server.try_send(b"again");
                let sent: Out<usize> = give(server.async_io(Interest::WRITABLE, sending)).await;
                assert_eq!(sent.unwrap(), 5);
                assert_eq!(client.recv(&mut [0; 8]).await.unwrap(), 5);
                assert!(client.take_error().unwrap().is_none());
            }
        }
    };
}

/// Tokio's.
mod tokio_net {
    pub(crate) use tokio::net::UdpSocket;
}

program!(kernel, super::tokio_net, ());
program!(whimbrel_face, whimbrel, (server, client));
