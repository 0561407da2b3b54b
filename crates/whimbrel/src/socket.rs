//! A socket that is neither a stream nor a listener yet, as tokio's `TcpSocket`.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::backlog::ListenOptions;
use crate::bind_table::{ReservedAddr, Share};
use crate::cell::Settings;
use crate::stream::ConnectRequest;
use crate::{BufferSize, Stack, TcpListener, TcpStream, fault};

/// A socket to be configured. Everything is named and behaves as in `tokio::net::TcpSocket`; what
/// is set goes over to the stream, or to every stream that the listener accepts.
pub struct TcpSocket {
    stack: Stack,
    any: IpAddr,
    draft: Mutex<Draft>,
}

#[derive(Debug)]
struct Draft {
    settings: Settings,
    share: Share,
    bound: Option<ReservedAddr>,
    /// The address that was bound, and no port.
    source: Option<IpAddr>,
    /// Whether `bind` leaves the port to `connect`.
    no_port: bool,
    /// How many handshakes of Fast Open a listener may have at one time.
    fast_open: u32,
}

impl TcpSocket {
    /// A socket for IPv4.
    pub fn new_v4(stack: &Stack) -> io::Result<Self> {
        Ok(Self::new(stack, Ipv4Addr::UNSPECIFIED.into()))
    }

    /// A socket for IPv6; bound to `::` and listening, it takes IPv4 too.
    pub fn new_v6(stack: &Stack) -> io::Result<Self> {
        Ok(Self::new(stack, Ipv6Addr::UNSPECIFIED.into()))
    }

    fn new(stack: &Stack, any: IpAddr) -> Self {
        let settings = Settings::new(stack.tunables());
        let draft = Draft {
            settings,
            share: Share::NONE,
            bound: None,
            source: None,
            no_port: false,
            fast_open: 0,
        };
        Self { stack: stack.clone(), any, draft: Mutex::new(draft) }
    }

    /// Takes `addr` for this side's end, port 0 for one that is drawn.
    ///
    /// # Errors
    ///
    /// `AddrInUse`, `AddrNotAvailable` (none of the stack's), `InvalidInput` (the other family, or
    /// bound already).
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.check_family(addr)?;
        let mut draft = self.lock();
        if let Some(bound) = draft.local() {
            return Err(fault::bound_already(bound));
        }
        // IP_BIND_ADDRESS_NO_PORT: the shard draws a port for the peer, which many flows may share.
        if addr.port() == 0 && draft.no_port {
            self.stack.check_own(addr)?;
            draft.source = Some(addr.ip());
        } else {
            draft.bound = Some(self.stack.reserve(addr, draft.share)?);
        }
        Ok(())
    }

    /// Whether `bind` leaves the port to `connect`, if it is 0.
    pub fn bind_address_no_port(&self) -> io::Result<bool> {
        Ok(self.lock().no_port)
    }

    /// Leaves the port to `connect`, if `bind` names an address and port 0
    /// (`IP_BIND_ADDRESS_NO_PORT`): then it need be free towards that peer alone, and one port serves
    /// many peers. Otherwise `bind` draws one that no other socket has. To be called before it. Tokio
    /// has no such method.
    pub fn set_bind_address_no_port(&self, no_port: bool) -> io::Result<()> {
        self.lock().no_port = no_port;
        Ok(())
    }

    /// Opens a connection to `addr`. Errors and cancellation as [`TcpStream::connect`].
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        self.check_family(addr)?;
        let (stack, draft) = self.into_parts();
        let Draft { bound, source, settings, .. } = draft;
        let options = ConnectRequest { peer: addr, bound, source, settings, first: None };
        TcpStream::open(&stack, options).await
    }

    /// Opens a connection to `addr` and writes `data`, whose beginning travels with the SYN if the
    /// peer granted a Fast Open cookie before (RFC 7413); otherwise the SYN asks for one, and `data`
    /// follows the handshake. Done once the connection is established and all is on its way. Tokio
    /// has no such method.
    ///
    /// What travels with a SYN may come to the peer's application twice, on two connections: a
    /// network can repeat a SYN, and nobody remembers one whose connection is over. Write nothing here
    /// that must not be carried out twice.
    ///
    /// # Errors
    ///
    /// As [`TcpStream::connect`].
    pub async fn connect_fast(self, addr: SocketAddr, data: &[u8]) -> io::Result<TcpStream> {
        self.check_family(addr)?;
        let (stack, draft) = self.into_parts();
        let Draft { bound, source, settings, .. } = draft;
        // No SYN has room for more; the rest finds its way as any other.
        let (first, mut rest) = data.split_at(data.len().min(FIRST));
        let first = Some(Bytes::copy_from_slice(first));
        let options = ConnectRequest { peer: addr, bound, source, settings, first };
        let stream = TcpStream::open(&stack, options).await?;
        while !rest.is_empty() {
            stream.writable().await?;
            match stream.try_write(rest) {
                Ok(taken) => rest = rest.split_at(taken).1,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(stream)
    }

    /// Listens, with room for `backlog` complete connections that wait for `accept`, and one more.
    /// A socket that is not bound gets a port that is drawn.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let any = self.local_addr()?;
        let (stack, draft) = self.into_parts();
        let bound = match draft.bound {
            Some(bound) => bound,
            None => stack.reserve(any, draft.share)?,
        };
        let options =
            ListenOptions { backlog, fast_open: draft.fast_open, settings: draft.settings };
        TcpListener::listen(&stack, bound, options)
    }

    /// How many handshakes of Fast Open the listener will admit at one time.
    pub fn fastopen(&self) -> io::Result<u32> {
        Ok(self.lock().fast_open)
    }

    /// As a listener, takes text that travels with SYNs of peers who were granted a cookie
    /// (`TCP_FASTOPEN`, RFC 7413), while `pending` such handshakes are under way at most; 0, as at
    /// first: not at all. [`TcpListener::accept`] then hands out streams whose handshake is not over
    /// yet. Tokio has no such method.
    ///
    /// The same text may come twice, on two streams: see [`TcpSocket::connect_fast`].
    pub fn set_fastopen(&self, pending: u32) -> io::Result<()> {
        self.lock().fast_open = pending;
        Ok(())
    }

    /// This side's end: unspecified while it is not bound.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.lock().local().unwrap_or(SocketAddr::new(self.any, 0)))
    }

    /// Nothing goes wrong before there is a connection.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Whether the end may be bound by others that allow it too (`SO_REUSEADDR`).
    pub fn reuseaddr(&self) -> io::Result<bool> {
        Ok(self.lock().share.address)
    }

    /// Lets the end be bound by others that allow it too, as long as none of them listens. For
    /// what TIME-WAIT left behind it is not needed: that never keeps anybody from binding here.
    pub fn set_reuseaddr(&self, reuseaddr: bool) -> io::Result<()> {
        self.set_share(|share| share.address = reuseaddr)
    }

    /// Whether several listeners may be at the end (`SO_REUSEPORT`).
    pub fn reuseport(&self) -> io::Result<bool> {
        Ok(self.lock().share.port)
    }

    /// Lets the end be bound by others that allow it too, and all of them listen, if they are bound to
    /// the same address. Unlike those of Linux, which deals connections to one of them each, such
    /// listeners take them from one queue: none waits for a listener that does not accept. Backlog and
    /// settings are those of the first, and the last that is dropped resets whom nobody accepted.
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        self.set_share(|share| share.port = reuseport)
    }

    /// Whether the connection will be probed when it is silent (`SO_KEEPALIVE`).
    pub fn keepalive(&self) -> io::Result<bool> {
        Ok(self.lock().settings.keepalive())
    }

    /// Probes the connection when it is silent, as the tunables `net.ipv4.tcp_keepalive_*` say.
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.set(|settings| settings.set_keepalive(keepalive))
    }

    /// Whether Nagle's algorithm will be off (`TCP_NODELAY`).
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.lock().settings.nodelay())
    }

    /// Switches Nagle's algorithm off (`true`).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set(|settings| settings.set_nodelay(nodelay))
    }

    /// How long closing lingers (`SO_LINGER`).
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.lock().settings.linger())
    }

    /// What [`TcpStream::set_linger`] does, for the connection to come.
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        self.set(|settings| settings.set_linger(dur))
    }

    /// What [`TcpStream::set_zero_linger`] does, for the connection to come.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// The congestion control of the connection to come (`TCP_CONGESTION`): what was set, or what
    /// connections of the stack have where no route says otherwise. Tokio has no such method; it is
    /// socket2's, but for the type of the name.
    pub fn tcp_congestion(&self) -> io::Result<String> {
        let asked = self.lock().settings.congestion_control();
        Ok(self.stack.congestion_names()?.name(asked))
    }

    /// Chooses the congestion control of the connection to come, or of those that the listener accepts:
    /// one of the stack's own, such as `"cubic"` and `"reno"`, or one that
    /// [`StackBuilder::add_congestion_control`] added. It prevails over that of the route and of the stack.
    ///
    /// ```
    /// # use whimbrel::{Stack, TcpSocket};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (stack, _other) = Stack::pair()?;
    /// let socket = TcpSocket::new_v4(&stack)?;
    /// socket.set_tcp_congestion("reno")?;
    /// let error = socket.set_tcp_congestion("bbr").unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// assert!(error.to_string().contains("give one of reno, cubic"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `NotFound`: there is none of this name; the error tells which there are.
    ///
    /// [`StackBuilder::add_congestion_control`]: crate::StackBuilder::add_congestion_control
    pub fn set_tcp_congestion(&self, name: &str) -> io::Result<()> {
        let algorithm = self.stack.congestion_names()?.find(name)?;
        self.set(|settings| settings.set_congestion_control(algorithm))
    }

    /// The size of the send buffer, octets.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        Ok(self.lock().settings.send_size())
    }

    /// How many octets may wait to be acknowledged (2 KiB ..= 1 GiB, as Linux without complaint): a
    /// floor, from which the buffer grows as the path needs it, unless the tunable `buffers` says
    /// otherwise.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|settings| settings.set_send_size(size))
    }

    /// How the send buffer is sized: by itself, from a floor on, or exactly so. Tokio has no such
    /// method.
    pub fn set_send_buffer(&self, size: BufferSize) -> io::Result<()> {
        self.set(|settings| settings.set_send_size(size))
    }

    /// The size of the receive buffer, octets.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        Ok(self.lock().settings.recv_size())
    }

    /// How many octets may wait to be read (2 KiB ..= 1 GiB, as Linux without complaint): a floor,
    /// from which the buffer grows as the path needs it, unless the tunable `buffers` says otherwise.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|settings| settings.set_recv_size(size))
    }

    /// How the receive buffer is sized: by itself, from a floor on, or exactly so. Tokio has no such
    /// method.
    pub fn set_recv_buffer(&self, size: BufferSize) -> io::Result<()> {
        self.set(|settings| settings.set_recv_size(size))
    }

    /// The type of service of IPv4 packets.
    pub fn tos_v4(&self) -> io::Result<u32> {
        Ok(self.lock().settings.tos().into())
    }

    /// Sends IPv4 packets with this type of service: the low eight bits, as on Linux, without the two
    /// for ECN, which are the protocol's.
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.set(|settings| settings.set_tos(tos as u8))
    }

    /// What is called [`TcpSocket::tos_v4`] now.
    #[deprecated(note = "tokio calls it `tos_v4` now")]
    pub fn tos(&self) -> io::Result<u32> {
        self.tos_v4()
    }

    /// What is called [`TcpSocket::set_tos_v4`] now.
    #[deprecated(note = "tokio calls it `set_tos_v4` now")]
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.set_tos_v4(tos)
    }

    /// The traffic class of IPv6 packets.
    ///
    /// # Errors
    ///
    /// `Unsupported` of a socket for IPv4.
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.check_v6()?;
        Ok(self.lock().settings.traffic_class().into())
    }

    /// Sends IPv6 packets with this traffic class (0 ..= 255), without the two bits for ECN, which are
    /// the protocol's.
    ///
    /// # Errors
    ///
    /// `InvalidInput` beyond 255, `Unsupported` of a socket for IPv4.
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        self.check_v6()?;
        let class = u8::try_from(tclass).map_err(|_| fault::traffic_class(tclass))?;
        self.set(|settings| settings.set_traffic_class(class))
    }

    fn check_v6(&self) -> io::Result<()> {
        if self.any.is_ipv6() { Ok(()) } else { Err(fault::not_v6()) }
    }

    fn set(&self, set: impl FnOnce(&mut Settings)) -> io::Result<()> {
        set(&mut self.lock().settings);
        Ok(())
    }

    fn set_share(&self, set: impl FnOnce(&mut Share)) -> io::Result<()> {
        let mut draft = self.lock();
        set(&mut draft.share);
        if let Some(bound) = &draft.bound {
            bound.share(draft.share);
        }
        Ok(())
    }

    fn check_family(&self, addr: SocketAddr) -> io::Result<()> {
        if addr.is_ipv4() == self.any.is_ipv4() { Ok(()) } else { Err(fault::family(addr)) }
    }

    fn into_parts(self) -> (Stack, Draft) {
        (self.stack, self.draft.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn lock(&self) -> MutexGuard<'_, Draft> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Draft {
    /// What is bound; port 0: none yet.
    fn local(&self) -> Option<SocketAddr> {
        let address = self.source.map(|addr| SocketAddr::new(addr, 0));
        self.bound.as_ref().map(|bound| bound.at().into()).or(address)
    }
}

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSocket").field("addr", &self.local_addr()).finish()
    }
}

/// Octets: more than the segment of any link.
const FIRST: usize = 64 << 10;
