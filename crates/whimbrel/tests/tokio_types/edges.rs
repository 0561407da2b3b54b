//! Streams and sockets that end, overflow or collide: the same program over tokio's own types, on the
//! kernel's loopback, and over ours. What it asserts is what the kernel does.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, Ready};
use tokio::time::{sleep, timeout};
use whimbrel::Stack;

use crate::world::World;

/// Kind of an error, without its message.
fn kind<T>(result: io::Result<T>) -> Result<T, ErrorKind> {
    result.map_err(|error| error.kind())
}

/// Kind of an error that may not come at all; then `WouldBlock`.
async fn soon<T>(future: impl Future<Output = io::Result<T>>) -> Result<T, ErrorKind> {
    let waited = timeout(Duration::from_millis(300), future).await;
    waited.map_or(Err(ErrorKind::WouldBlock), kind)
}

/// Lets data in flight arrive.
async fn let_tasks_run() {
    sleep(Duration::from_millis(100)).await;
}

/// A test of each of these functions.
macro_rules! tests {
    ($($test:ident)*) => {
        mod edges {
            $(#[tokio::test]
            async fn $test() {
                let net = super::Net::new();
                super::$test(&net).await;
                net.end().await;
            })*
        }
    };
}

/// The program over the types of `$from`, whose constructors take `$server` or `$client` first.
macro_rules! program {
    ($name:ident, $($from:ident)::+, $host:literal, ($($server:ident, $client:ident)?)) => {
        mod $name {
            use super::*;
            use $($from)::+::{TcpListener, TcpSocket, TcpStream};

            struct Net {
                $($server: Stack, $client: Stack,)?
                host: IpAddr,
            }

            impl Net {
                fn new() -> Self {
                    $(let World { $server, $client } = World::new();)?
                    Self { $($server, $client,)? host: $host.parse().unwrap() }
                }

                async fn end(self) {
                    $(World { server: self.$server, client: self.$client }.assert_empty().await;)?
                }

                fn any(&self) -> SocketAddr {
                    SocketAddr::new(self.host, 0)
                }

                async fn listen(&self) -> (TcpListener, SocketAddr) {
                    let listener = TcpListener::bind($(&self.$server,)? self.any()).await.unwrap();
                    let at = listener.local_addr().unwrap();
                    (listener, at)
                }

                async fn connect(&self, at: SocketAddr) -> io::Result<TcpStream> {
                    TcpStream::connect($(&self.$client,)? at).await
                }

                /// The server's end, the client's end.
                async fn pair(&self) -> (TcpStream, TcpStream) {
                    let (listener, at) = self.listen().await;
                    let connected = self.connect(at).await.unwrap();
                    (listener.accept().await.unwrap().0, connected)
                }

                fn socket(&self) -> TcpSocket {
                    TcpSocket::new_v4($(&self.$server)?).unwrap()
                }

                fn clients_socket(&self) -> TcpSocket {
                    TcpSocket::new_v4($(&self.$client)?).unwrap()
                }
            }

            /// The other traits of tokio's types.
            const _: () = {
                const fn has_traits<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe + Unpin>() {}
                has_traits::<TcpStream>();
                has_traits::<TcpListener>();
                has_traits::<TcpSocket>();
            };

            tests! {
                buffers_of_nothing
                the_ends_of_both_directions
                a_reset_is_told_once
                a_reset_after_fin_is_told_to_who_writes
                sixteen_pieces_and_a_reset
                written_before_a_reset
                a_full_stream
                halves
                shared_addresses
                both_ends_twice
                in_logs
                a_busy_stream_lets_others_run
            }

            async fn buffers_of_nothing(net: &Net) {
                let (mut server, mut client) = net.pair().await;
                // Without a look before, tokio would assume readiness.
                assert_eq!(soon(client.read_u8()).await, Err(ErrorKind::WouldBlock));
                assert_eq!(soon(client.read(&mut [])).await, Err(ErrorKind::WouldBlock));
                assert_eq!(kind(client.try_read(&mut [])), Err(ErrorKind::WouldBlock));
                assert_eq!(soon(client.peek(&mut [])).await, Err(ErrorKind::WouldBlock));
                assert_eq!(soon(client.write(&[])).await, Ok(0));
                assert_eq!(soon(client.write_vectored(&[])).await, Ok(0));
                server.write_all(b"x").await.unwrap();
                assert_eq!(soon(client.peek(&mut [])).await, Ok(0));
                assert_eq!(soon(client.read(&mut [])).await, Ok(0));
                assert_eq!(soon(client.read(&mut [0; 8])).await, Ok(1));
                drop(server);
                assert_eq!(soon(client.read(&mut [])).await, Ok(0));
            }

            async fn the_ends_of_both_directions(net: &Net) {
                let both = Interest::READABLE | Interest::WRITABLE;
                let read_closed = Ready::READABLE | Ready::READ_CLOSED;
                let (mut server, mut client) = net.pair().await;
                server.shutdown().await.unwrap();
                let_tasks_run().await;
                assert_eq!(soon(client.ready(both)).await, Ok(read_closed | Ready::WRITABLE));
                let urgent = soon(client.ready(Interest::PRIORITY)).await.unwrap();
                assert!(urgent.is_read_closed(), "{urgent:?}");
                assert_eq!(soon(client.ready(Interest::ERROR)).await, Err(ErrorKind::WouldBlock));
                client.shutdown().await.unwrap();
                client.shutdown().await.unwrap();
                assert_eq!(soon(client.write(b"x")).await, Err(ErrorKind::BrokenPipe));
                assert_eq!(soon(client.write(b"")).await, Err(ErrorKind::BrokenPipe));
                let_tasks_run().await;
                let closed = read_closed | Ready::WRITABLE | Ready::WRITE_CLOSED;
                assert_eq!(soon(client.ready(both)).await, Ok(closed));
                assert!(client.take_error().unwrap().is_none());
                client.set_nodelay(true).unwrap();

                let (_server, mut client) = net.pair().await;
                client.shutdown().await.unwrap();
                let_tasks_run().await;
                // The other direction goes on: it is not over.
                let writable = soon(client.ready(Interest::WRITABLE)).await;
                assert_eq!(writable, Ok(Ready::WRITABLE));
            }

            /// Does what the letters say, one after the other.
            async fn told(stream: &mut TcpStream, steps: &str) -> Vec<Result<usize, ErrorKind>> {
                let mut all = Vec::new();
                for step in steps.chars() {
                    all.push(match step {
                        'r' => soon(stream.read(&mut [0; 8])).await,
                        'p' => soon(stream.peek(&mut [0; 8])).await,
                        'w' => soon(stream.write(b"x")).await,
                        'z' => soon(stream.write(b"")).await,
                        's' => soon(stream.shutdown()).await.map(|()| 0),
                        _ => stream.take_error().unwrap().map_or(Ok(0), |error| Err(error.kind())),
                    });
                }
                all
            }

            async fn a_reset_is_told_once(net: &Net) {
                let (reset, broken) = (Err(ErrorKind::ConnectionReset), Err(ErrorKind::BrokenPipe));
                for (steps, expected) in [
                    ("wrwr", &[reset, Ok(0), broken, Ok(0)][..]),
                    ("rwr", &[reset, broken, Ok(0)]),
                    ("prw", &[reset, Ok(0), broken]),
                    ("zwr", &[reset, broken, Ok(0)]),
                    ("eew", &[reset, Ok(0), broken]),
                    ("srr", &[Ok(0), reset, Ok(0)]),
                ] {
                    let (server, mut client) = net.pair().await;
                    server.set_zero_linger().unwrap();
                    drop(server);
                    let_tasks_run().await;
                    assert_eq!(told(&mut client, steps).await, expected, "{steps}");
                }
            }

            async fn a_reset_after_fin_is_told_to_who_writes(net: &Net) {
                let broken = Err(ErrorKind::BrokenPipe);
                for (steps, expected) in [
                    ("rwr", &[Ok(0), broken, Ok(0)][..]),
                    ("wr", &[broken, Ok(0)]),
                    ("pew", &[Ok(0), broken, broken]),
                ] {
                    let (server, mut client) = net.pair().await;
                    drop(server);
                    let_tasks_run().await;
                    // Data that cannot be delivered causes the reset.
                    client.write_all(b"x").await.unwrap();
                    let_tasks_run().await;
                    assert_eq!(told(&mut client, steps).await, expected, "{steps}");
                }
            }

            /// Read with room to spare, they do not take the error with them.
            async fn sixteen_pieces_and_a_reset(net: &Net) {
                let (mut server, mut client) = net.pair().await;
                server.set_nodelay(true).unwrap();
                for _ in 0..16 {
                    server.write_all(b"four").await.unwrap();
                    sleep(Duration::from_millis(5)).await;
                }
                server.set_zero_linger().unwrap();
                drop(server);
                let_tasks_run().await;
                assert_eq!(soon(client.read(&mut [0; 256])).await, Ok(64));
                assert_eq!(soon(client.read(&mut [0; 8])).await, Err(ErrorKind::ConnectionReset));
            }

            /// An answer to a request that was not read to its end.
            async fn written_before_a_reset(net: &Net) {
                let (mut server, mut client) = net.pair().await;
                client.write_all(b"a long request").await.unwrap();
                server.read_u8().await.unwrap();
                server.write_all(b"no").await.unwrap();
                drop(server);
                let mut answer = [0; 2];
                client.read_exact(&mut answer).await.unwrap();
                assert_eq!(&answer, b"no");
                assert_eq!(soon(client.read(&mut answer)).await, Err(ErrorKind::ConnectionReset));
            }

            async fn a_full_stream(net: &Net) {
                let (server, client) = net.pair().await;
                // Buffers grow while there is something to fill them, and then no more.
                let mut written = 0;
                while soon(client.writable()).await.is_ok() {
                    written += client.try_write(&[0; 1 << 16]).unwrap_or(0);
                    assert!(written < 1 << 30, "unread data is accepted without a limit");
                }
                drop(server);
                soon(client.writable()).await.unwrap();
                assert_eq!(kind(client.try_write(b"x")), Err(ErrorKind::ConnectionReset));
                assert_eq!(kind(client.try_write(b"x")), Err(ErrorKind::BrokenPipe));
            }

            async fn halves(net: &Net) {
                let (mut server, client) = net.pair().await;
                let (mut read, write) = client.into_split();
                write.forget();
                server.write_all(b"x").await.unwrap();
                assert_eq!(soon(read.read(&mut [0; 8])).await, Ok(1));
                assert_eq!(soon(server.read_u8()).await, Err(ErrorKind::WouldBlock));
                drop(read);
                assert_eq!(soon(server.read(&mut [0; 8])).await, Ok(0));

                let (mut server, client) = net.pair().await;
                let (read, mut write) = client.into_split();
                drop(read);
                server.write_all(b"this is unread.").await.unwrap();
                assert_eq!(soon(write.write(b"x")).await, Ok(1));
                assert_eq!(soon(server.read(&mut [0; 8])).await, Ok(1));
                let theirs: &TcpStream = server.as_ref();
                assert!(theirs.peer_addr().is_ok());
            }

            async fn shared_addresses(net: &Net) {
                let shares = |at: SocketAddr| {
                    let socket = net.socket();
                    socket.set_reuseaddr(true).unwrap();
                    kind(socket.bind(at)).map(|()| socket)
                };
                let first = shares(net.any()).unwrap();
                let at = first.local_addr().unwrap();
                let second = shares(at).unwrap();
                assert_eq!(kind(net.socket().bind(at)), Err(ErrorKind::AddrInUse));
                let listener = first.listen(4).unwrap();
                assert_eq!(kind(second.listen(4)).err(), Some(ErrorKind::AddrInUse));
                assert_eq!(shares(at).err(), Some(ErrorKind::AddrInUse));
                let anywhere = SocketAddr::new("0.0.0.0".parse().unwrap(), at.port());
                assert_eq!(shares(anywhere).err(), Some(ErrorKind::AddrInUse));
                // Who listens hears who calls.
                net.connect(at).await.unwrap();
                listener.accept().await.unwrap();

                let late = net.socket();
                late.bind(net.any()).unwrap();
                let at = late.local_addr().unwrap();
                assert_eq!(shares(at).err(), Some(ErrorKind::AddrInUse));
                late.set_reuseaddr(true).unwrap();
                assert!(shares(at).is_ok());
            }

            /// Two connections of the same ends.
            async fn both_ends_twice(net: &Net) {
                let (listener, at) = net.listen().await;
                let sockets = [net.clients_socket(), net.clients_socket()];
                for socket in &sockets {
                    socket.set_reuseaddr(true).unwrap();
                }
                let [first, second] = sockets;
                first.bind("0.0.0.0:0".parse().unwrap()).unwrap();
                let own = first.local_addr().unwrap();
                second.bind(own).unwrap();
                let connected = first.connect(at).await.unwrap();
                let local = connected.local_addr().unwrap();
                assert_eq!((local.port(), local.ip().is_unspecified()), (own.port(), false));
                let error = second.connect(at).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
                drop(listener);
            }

            /// One that always has something to read, on a thread that has others to run.
            async fn a_busy_stream_lets_others_run(net: &Net) {
                let (mut server, mut client) = net.pair().await;
                server.write_all(&[7; 50_000]).await.unwrap();
                let_tasks_run().await;
                let reading = tokio::spawn(async move {
                    for _ in 0..50_000 {
                        client.read_u8().await.unwrap();
                    }
                });
                let mut turns = 0;
                while !reading.is_finished() {
                    tokio::task::yield_now().await;
                    turns += 1;
                }
                reading.await.unwrap();
                assert!(turns > 100, "{turns} turns while 50,000 bytes were read");
            }

            /// `Debug` shows the endpoints of a stream and no data.
            async fn in_logs(net: &Net) {
                let (mut server, client) = net.pair().await;
                server.write_all(b"a secret").await.unwrap();
                client.readable().await.unwrap();
                let told = format!("{client:?}");
                let ends = [client.local_addr().unwrap(), client.peer_addr().unwrap()];
                assert!(ends.iter().all(|end| told.contains(&end.to_string())), "{told}");
                assert!(told.len() < 120, "{told}");
                let (listener, at) = net.listen().await;
                let told = format!("{listener:?}");
                assert!(told.contains(&at.to_string()) && told.len() < 120, "{told}");
            }
        }
    };
}

/// Tokio's.
mod tokio_net {
    pub(crate) use tokio::net::{TcpListener, TcpSocket, TcpStream};
}

program!(kernel, super::tokio_net, "127.0.0.1", ());
program!(whimbrel_face, whimbrel, "10.0.0.1", (server, client));
