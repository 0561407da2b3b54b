//! hickory-resolver asks its name servers over a stack. The glue is [`OverStack`]: where it has its
//! sockets from.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hickory_resolver::Resolver;
use hickory_resolver::config::{NameServerConfigGroup, ResolverConfig};
use hickory_resolver::name_server::GenericConnector;
use hickory_resolver::proto::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_resolver::proto::runtime::{RuntimeProvider, TokioHandle, TokioTime};
use hickory_resolver::proto::udp::DnsUdpSocket;
use tokio::io::ReadBuf;
use tokio::time::timeout;
use whimbrel::{Stack, TcpStream, UdpSocket};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Opens the resolver's sockets on a stack.
#[derive(Clone)]
pub(crate) struct OverStack {
    stack: Stack,
    handle: TokioHandle,
}

/// A UDP socket with hickory's trait.
pub(crate) struct Socket(UdpSocket);

impl RuntimeProvider for OverStack {
    type Handle = TokioHandle;
    type Timer = TokioTime;
    type Udp = Socket;
    type Tcp = AsyncIoTokioAsStd<TcpStream>;

    fn create_handle(&self) -> TokioHandle {
        self.handle.clone()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        _bind: Option<SocketAddr>,
        limit: Option<Duration>,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Tcp>>>> {
        let stack = self.stack.clone();
        Box::pin(async move {
            let connect = TcpStream::connect(&stack, server);
            let stream = timeout(limit.unwrap_or(Duration::from_secs(5)), connect).await??;
            Ok(AsyncIoTokioAsStd(stream))
        })
    }

    fn bind_udp(
        &self,
        local: SocketAddr,
        _server: SocketAddr,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Socket>>>> {
        let stack = self.stack.clone();
        Box::pin(async move { UdpSocket::bind(&stack, local).await.map(Socket) })
    }
}

impl DnsUdpSocket for Socket {
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

#[tokio::main]
async fn main() -> Outcome<()> {
    let addresses = resolve(3).await?;
    println!("host0.test to host2.test are {addresses:?}");
    Ok(())
}

/// Resolves `host0.test` and so on, from a name server on another stack.
pub(crate) async fn resolve(count: u8) -> Outcome<Vec<IpAddr>> {
    let (near, far) = Stack::pair()?;
    let serving = tokio::spawn(serve(UdpSocket::bind(&near, "10.0.0.1:53").await?));
    let servers = NameServerConfigGroup::from_ips_clear(&[[10, 0, 0, 1].into()], 53, true);
    let config = ResolverConfig::from_parts(None, Vec::new(), servers);
    let over = GenericConnector::new(OverStack { stack: far, handle: TokioHandle::default() });
    let resolver = Resolver::builder_with_config(config, over).build();
    let mut addresses = Vec::new();
    for number in 0..count {
        let found = resolver.ipv4_lookup(format!("host{number}.test.")).await?;
        addresses.extend(found.iter().map(|address| IpAddr::from(address.0)));
    }
    serving.abort();
    Ok(addresses)
}

/// Answers a question for hostN.test by 192.0.2.N (RFC 1035 4).
async fn serve(socket: UdpSocket) -> io::Result<()> {
    let mut query = [0; 512];
    loop {
        let (len, from) = socket.recv_from(&mut query).await?;
        let Some((head, rest)) = query[..len].split_at_checked(12) else { continue };
        // The name ends with an empty label; type and class follow.
        let Some(end) = rest.iter().position(|byte| *byte == 0) else { continue };
        let Some(question) = rest.get(..end + 5) else { continue };
        let digits = question.iter().filter(|byte| byte.is_ascii_digit());
        let number = digits.fold(0_u8, |number, digit| number.wrapping_mul(10) + (digit - b'0'));
        // A response with one question and one answer.
        let counts = [0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0];
        let address = Ipv4Addr::new(192, 0, 2, number).octets();
        let answer = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4];
        let reply = [&head[..2], &counts, question, &answer, &address].concat();
        socket.send_to(&reply, from).await?;
    }
}
