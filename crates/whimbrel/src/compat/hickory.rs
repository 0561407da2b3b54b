//! Sockets for hickory-resolver.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hickory_resolver::proto::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_resolver::proto::runtime::{RuntimeProvider, TokioHandle, TokioTime};
use hickory_resolver::proto::udp::DnsUdpSocket;
use tokio::io::ReadBuf;
use tokio::time::timeout;

use crate::{Stack, TcpSocket, TcpStream, UdpSocket};

/// Opens the sockets of a `hickory_resolver::Resolver` on a stack, within a tokio runtime.
#[derive(Clone)]
pub struct HickoryProvider {
    stack: Stack,
    handle: TokioHandle,
}

/// A [`UdpSocket`] with hickory's trait.
#[derive(Debug)]
pub struct HickoryUdpSocket(UdpSocket);

impl HickoryProvider {
    /// Creates a provider of sockets on `stack`.
    pub fn new(stack: Stack) -> Self {
        Self { stack, handle: TokioHandle::default() }
    }
}

impl std::fmt::Debug for HickoryProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HickoryProvider").field("stack", &self.stack).finish_non_exhaustive()
    }
}

impl RuntimeProvider for HickoryProvider {
    type Handle = TokioHandle;
    type Timer = TokioTime;
    type Udp = HickoryUdpSocket;
    type Tcp = AsyncIoTokioAsStd<TcpStream>;

    fn create_handle(&self) -> TokioHandle {
        self.handle.clone()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        bind: Option<SocketAddr>,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Tcp>>>> {
        let stack = self.stack.clone();
        Box::pin(async move {
            let socket = match server {
                SocketAddr::V4(_) => TcpSocket::new_v4(&stack)?,
                SocketAddr::V6(_) => TcpSocket::new_v6(&stack)?,
            };
            if let Some(bind) = bind {
                socket.bind(bind)?;
            }
            let connected = timeout(limit.unwrap_or(CONNECT), socket.connect(server)).await;
            Ok(AsyncIoTokioAsStd(connected.map_err(|_| io::ErrorKind::TimedOut)??))
        })
    }

    fn bind_udp(
        &self,
        local: SocketAddr,
        _server: SocketAddr,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<HickoryUdpSocket>>>> {
        let stack = self.stack.clone();
        Box::pin(async move { UdpSocket::bind(&stack, local).await.map(HickoryUdpSocket) })
    }
}

impl DnsUdpSocket for HickoryUdpSocket {
    type Time = TokioTime;

    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let mut buf = ReadBuf::new(buf);
        let from = ready!(self.0.poll_recv_from(cx, &mut buf))?;
        Poll::Ready(Ok((buf.filled().len(), from)))
    }

    fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.0.poll_send_to(cx, buf, target)
    }
}

/// Time for a connection where the resolver sets none: hickory's own for the kernel's sockets.
const CONNECT: Duration = Duration::from_secs(5);
