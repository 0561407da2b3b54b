//! One program, word for word, over tokio's own types and over ours: that it compiles holds the
//! signatures against each other, that it passes over the kernel holds the meanings.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, ReadBuf, Ready};
use whimbrel::Stack;

use crate::needs::{self, IPV6};
use crate::world::World;

#[tokio::test]
async fn the_kernel_does_as_the_story_tells() {
    if needs::found(&[IPV6]) {
        kernel::story("127.0.0.1".parse().unwrap()).await;
    }
}

#[tokio::test]
async fn so_does_whimbrel() {
    let world = World::new();
    whimbrel_face::story(&world.server, &world.client, "10.0.0.1".parse().unwrap()).await;
    world.assert_empty().await;
}

/// The program over the types of `$from`, whose constructors take `$server` or `$client` first.
macro_rules! program {
    ($name:ident, $($from:ident)::+, ($($server:ident, $client:ident)?)) => {
        mod $name {
            use super::*;
            use $($from)::+::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
            use $($from)::+::{TcpListener, TcpSocket, TcpStream};

            type Out<T> = io::Result<T>;

            #[test]
            fn signatures_of_streams_are_tokios() {
                signatures! {
                    TcpStream::local_addr: fn(&TcpStream) -> Out<SocketAddr>;
                    TcpStream::peer_addr: fn(&TcpStream) -> Out<SocketAddr>;
                    TcpStream::take_error: fn(&TcpStream) -> Out<Option<io::Error>>;
                    TcpStream::nodelay: fn(&TcpStream) -> Out<bool>;
                    TcpStream::set_nodelay: fn(&TcpStream, bool) -> Out<()>;
                    TcpStream::quickack: fn(&TcpStream) -> Out<bool>;
                    TcpStream::set_quickack: fn(&TcpStream, bool) -> Out<()>;
                    TcpStream::set_zero_linger: fn(&TcpStream) -> Out<()>;
                    TcpStream::ttl: fn(&TcpStream) -> Out<u32>;
                    TcpStream::set_ttl: fn(&TcpStream, u32) -> Out<()>;
                    TcpStream::poll_peek:
                        fn(&TcpStream, &mut Context<'_>, &mut ReadBuf<'_>) -> Poll<Out<usize>>;
                    TcpStream::poll_read_ready: fn(&TcpStream, &mut Context<'_>) -> Poll<Out<()>>;
                    TcpStream::poll_write_ready: fn(&TcpStream, &mut Context<'_>) -> Poll<Out<()>>;
                    TcpStream::try_read: fn(&TcpStream, &mut [u8]) -> Out<usize>;
                    TcpStream::try_read_vectored:
                        fn(&TcpStream, &mut [IoSliceMut<'_>]) -> Out<usize>;
                    TcpStream::try_read_buf::<Vec<u8>>: fn(&TcpStream, &mut Vec<u8>) -> Out<usize>;
                    TcpStream::try_write: fn(&TcpStream, &[u8]) -> Out<usize>;
                    TcpStream::try_write_vectored: fn(&TcpStream, &[IoSlice<'_>]) -> Out<usize>;
                    TcpStream::split: fn(&mut TcpStream) -> (ReadHalf<'_>, WriteHalf<'_>);
                    TcpStream::into_split: fn(TcpStream) -> (OwnedReadHalf, OwnedWriteHalf);
                    OwnedReadHalf::reunite:
                        fn(OwnedReadHalf, OwnedWriteHalf) -> Result<TcpStream, ReuniteError>;
                    OwnedWriteHalf::reunite:
                        fn(OwnedWriteHalf, OwnedReadHalf) -> Result<TcpStream, ReuniteError>;
                    OwnedWriteHalf::forget: fn(OwnedWriteHalf);
                    OwnedReadHalf::try_read: fn(&OwnedReadHalf, &mut [u8]) -> Out<usize>;
                    OwnedWriteHalf::try_write: fn(&OwnedWriteHalf, &[u8]) -> Out<usize>;
                    OwnedReadHalf::peer_addr: fn(&OwnedReadHalf) -> Out<SocketAddr>;
                    OwnedWriteHalf::local_addr: fn(&OwnedWriteHalf) -> Out<SocketAddr>;
                }
            }

            #[test]
            fn signatures_of_listeners_and_sockets_are_tokios() {
                signatures! {
                    TcpListener::local_addr: fn(&TcpListener) -> Out<SocketAddr>;
                    TcpListener::ttl: fn(&TcpListener) -> Out<u32>;
                    TcpListener::set_ttl: fn(&TcpListener, u32) -> Out<()>;
                    TcpListener::poll_accept:
                        fn(&TcpListener, &mut Context<'_>) -> Poll<Out<(TcpStream, SocketAddr)>>;
                    TcpSocket::bind: fn(&TcpSocket, SocketAddr) -> Out<()>;
                    TcpSocket::listen: fn(TcpSocket, u32) -> Out<TcpListener>;
                    TcpSocket::local_addr: fn(&TcpSocket) -> Out<SocketAddr>;
                    TcpSocket::take_error: fn(&TcpSocket) -> Out<Option<io::Error>>;
                    TcpSocket::keepalive: fn(&TcpSocket) -> Out<bool>;
                    TcpSocket::set_keepalive: fn(&TcpSocket, bool) -> Out<()>;
                    TcpSocket::reuseaddr: fn(&TcpSocket) -> Out<bool>;
                    TcpSocket::set_reuseaddr: fn(&TcpSocket, bool) -> Out<()>;
                    TcpSocket::reuseport: fn(&TcpSocket) -> Out<bool>;
                    TcpSocket::set_reuseport: fn(&TcpSocket, bool) -> Out<()>;
                    TcpSocket::tos_v4: fn(&TcpSocket) -> Out<u32>;
                    TcpSocket::set_tos_v4: fn(&TcpSocket, u32) -> Out<()>;
                    TcpSocket::tclass_v6: fn(&TcpSocket) -> Out<u32>;
                    TcpSocket::set_tclass_v6: fn(&TcpSocket, u32) -> Out<()>;
                    TcpSocket::nodelay: fn(&TcpSocket) -> Out<bool>;
                    TcpSocket::set_nodelay: fn(&TcpSocket, bool) -> Out<()>;
                    TcpSocket::send_buffer_size: fn(&TcpSocket) -> Out<u32>;
                    TcpSocket::set_send_buffer_size: fn(&TcpSocket, u32) -> Out<()>;
                    TcpSocket::recv_buffer_size: fn(&TcpSocket) -> Out<u32>;
                    TcpSocket::set_recv_buffer_size: fn(&TcpSocket, u32) -> Out<()>;
                    TcpSocket::set_zero_linger: fn(&TcpSocket) -> Out<()>;
                }
                fn like_what_went(stream: &TcpStream, socket: &TcpSocket) {
                    #![allow(deprecated, reason = "as long as tokio has them, so do we")]
                    let _: Out<u32> = socket.tos();
                    let _: Out<()> = socket.set_tos(0);
                    let _: Out<Option<Duration>> = stream.linger();
                    let _: Out<()> = stream.set_linger(Some(Duration::ZERO));
                    let _: Out<Option<Duration>> = socket.linger();
                    let _: Out<()> = socket.set_linger(None);
                }
                let _ = like_what_went;
            }

            /// A future that can go to another thread.
            async fn give<T>(future: impl Future<Output = T> + Send) -> T {
                future.await
            }

            pub(super) async fn story(
                $($server: &Stack, $client: &Stack,)?
                host: std::net::IpAddr,
            ) {
                let at = SocketAddr::new(host, 0);
                let listening: Out<TcpListener> =
                    give(TcpListener::bind($($server,)? at)).await;
                let listener = listening.unwrap();
                let at = listener.local_addr().unwrap();
                let again = TcpListener::bind($($server,)? at).await;
                assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);

                let connecting: Out<TcpStream> =
                    give(TcpStream::connect($($client,)? (host, at.port()))).await;
                let mut connected = connecting.unwrap();
                let accepting: Out<(TcpStream, SocketAddr)> = give(listener.accept()).await;
                let (accepted, peer) = accepting.unwrap();
                assert_eq!(connected.local_addr().unwrap(), peer);
                assert_eq!((connected.peer_addr().unwrap(), accepted.local_addr().unwrap()), (at, at));

                empty(&accepted).await;
                connected.set_nodelay(true).unwrap();
                assert!(connected.nodelay().unwrap());
                connected.write_all(b"whimbrel").await.unwrap();
                let readable: Out<()> = give(accepted.readable()).await;
                readable.unwrap();
                let mut bytes = [0; 16];
                let peeked: Out<usize> = give(accepted.peek(&mut bytes)).await;
                assert_eq!(peeked.unwrap(), 8);
                assert_eq!(accepted.try_read(&mut bytes).unwrap(), 8);

                let taken: Out<usize> = give(connected.async_io(Interest::WRITABLE, || {
                    connected.try_write(b"again")
                }))
                .await;
                assert_eq!(taken.unwrap(), 5);
                let read = || accepted.try_read(&mut bytes);
                let taken: Out<usize> = give(accepted.async_io(Interest::READABLE, read)).await;
                assert_eq!(taken.unwrap(), 5);

                let (mut read, mut write) = accepted.into_split();
                write.write_all(b"done").await.unwrap();
                drop(write);
                let mut text = String::new();
                connected.read_to_string(&mut text).await.unwrap();
                assert_eq!(text, "done");
                ended(&connected).await;
                // The other direction is as it was.
                connected.write_all(b"more").await.unwrap();
                let (mut lent, _) = connected.split();
                assert_eq!(lent.read(&mut bytes).await.unwrap(), 0);
                read.read_exact(&mut bytes[..4]).await.unwrap();
                connected.shutdown().await.unwrap();
                assert_eq!(connected.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
                drop((listener, read));

                // Another process may listen at a port that is free, so a socket holds this one.
                let silent = TcpSocket::new_v4($($server)?).unwrap();
                silent.bind(SocketAddr::new(host, 0)).unwrap();
                let at = silent.local_addr().unwrap();
                let refused = TcpStream::connect($($client,)? at).await;
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
                drop(connected);
                sockets($($server, $client,)? host).await;
            }

            /// A stream with nothing to read and room to write.
            async fn empty(stream: &TcpStream) {
                // Tokio may report it readable until a read has failed.
                let looked = || Err::<(), _>(ErrorKind::WouldBlock.into());
                let error = stream.try_io(Interest::READABLE, looked).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                stream.set_quickack(true).unwrap();
                let error = stream.try_read(&mut [0; 8]).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                let ready: Out<Ready> = give(stream.ready(Interest::WRITABLE)).await;
                assert!(ready.unwrap().is_writable());
                let writable: Out<()> = give(stream.writable()).await;
                writable.unwrap();
            }

            /// A stream whose peer shut its direction down.
            async fn ended(stream: &TcpStream) {
                let ready = stream.ready(Interest::READABLE).await.unwrap();
                assert!(ready.is_readable() && ready.is_read_closed());
                assert_eq!(stream.try_io(Interest::READABLE, || Ok(7)).unwrap(), 7);
                assert_eq!(stream.try_read(&mut [0; 8]).unwrap(), 0);
                assert_eq!(stream.peek(&mut [0; 8]).await.unwrap(), 0);
            }

            async fn sockets($($server: &Stack, $client: &Stack,)? host: std::net::IpAddr) {
                let socket: Out<TcpSocket> = TcpSocket::new_v4($($server)?);
                let socket = socket.unwrap();
                socket.set_reuseaddr(true).unwrap();
                assert!(socket.reuseaddr().unwrap());
                socket.bind(SocketAddr::new(host, 0)).unwrap();
                let at = socket.local_addr().unwrap();
                let again = socket.bind(SocketAddr::new(host, 0)).unwrap_err();
                assert_eq!(again.kind(), ErrorKind::InvalidInput);
                let listener = socket.listen(16).unwrap();

                let connecting: Out<TcpStream> =
                    give(TcpSocket::new_v4($($client)?).unwrap().connect(at)).await;
                let mut connected = connecting.unwrap();
                let (accepted, _) = listener.accept().await.unwrap();
                accepted.set_zero_linger().unwrap();
                drop(accepted);
                let error = connected.read(&mut [0; 8]).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                assert_eq!(connected.read(&mut [0; 8]).await.unwrap(), 0, "told once");
                let v6: Out<TcpSocket> = TcpSocket::new_v6($($client)?);
                let v6 = v6.unwrap();
                v6.set_tclass_v6(0x63).unwrap();
                assert_eq!(v6.tclass_v6().unwrap(), 0x60, "without what ECN says");
                assert_eq!(v6.set_tclass_v6(256).unwrap_err().kind(), ErrorKind::InvalidInput);
                let wrong = v6.connect(at).await.unwrap_err();
                assert_ne!(wrong.kind(), ErrorKind::ConnectionRefused);
                let v4 = TcpSocket::new_v4($($client)?).unwrap();
                v4.set_tos_v4(0x1bb).unwrap();
                assert_eq!(v4.tos_v4().unwrap(), 0xb8, "eight bits, and without what ECN says");
                assert!(v4.tclass_v6().is_err());
                drop((listener, connected));
                shared($($server, $client,)? host).await;
            }

            /// Two listeners at one port.
            async fn shared($($server: &Stack, $client: &Stack,)? host: std::net::IpAddr) {
                let socket = |at: SocketAddr| {
                    let socket = TcpSocket::new_v4($($server)?).unwrap();
                    assert!(!socket.reuseport().unwrap());
                    socket.set_reuseport(true).unwrap();
                    assert!(socket.reuseport().unwrap());
                    socket.bind(at).unwrap();
                    socket.listen(16).unwrap()
                };
                let first = socket(SocketAddr::new(host, 0));
                let at = first.local_addr().unwrap();
                let second = socket(at);
                let alone = TcpSocket::new_v4($($server)?).unwrap();
                assert_eq!(alone.bind(at).unwrap_err().kind(), ErrorKind::AddrInUse);
                drop(first);
                let connected = TcpStream::connect($($client,)? at).await.unwrap();
                let (_accepted, peer) = second.accept().await.unwrap();
                assert_eq!(connected.local_addr().unwrap(), peer);
            }
        }
    };
}

/// Tokio's.
mod tokio_net {
    pub(crate) use tokio::net::tcp::{
        OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf,
    };
    pub(crate) use tokio::net::{TcpListener, TcpSocket, TcpStream};
}

program!(kernel, super::tokio_net, ());
program!(whimbrel_face, whimbrel, (server, client));
