//! A socket before `connect` or `listen`, with the interface of tokio's `TcpSocket`.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::backlog::ListenOptions;
use crate::bind_table::{ReservedAddr, Share};
use crate::cell::{Settings, rate_limit, rate_of};
use crate::stream::ConnectRequest;
use crate::{BufferSize, Stack, TcpListener, TcpStream, fault};

/// A socket to be configured. Methods have the names and behaviour of `tokio::net::TcpSocket`. Options
/// apply to the stream, or to every stream that the listener accepts.
pub struct TcpSocket {
    stack: Stack,
    any: IpAddr,
    draft: Mutex<Draft>,
}

#[derive(Debug)]
struct Draft {
    settings: Settings,
    /// Limit of the rate, bytes per second.
    rate: Option<NonZeroU64>,
    share: Share,
    bound: Option<ReservedAddr>,
    /// Address that was bound without a port.
    source: Option<IpAddr>,
    /// True if `bind` leaves the port to `connect`.
    no_port: bool,
    /// Limit of concurrent Fast Open handshakes of a listener.
    fast_open: u32,
}

impl TcpSocket {
    /// Creates an IPv4 socket.
    pub fn new_v4(stack: &Stack) -> io::Result<Self> {
        Ok(Self::new(stack, Ipv4Addr::UNSPECIFIED.into()))
    }

    /// Creates an IPv6 socket. If it listens at `::`, it also accepts IPv4 connections.
    pub fn new_v6(stack: &Stack) -> io::Result<Self> {
        Ok(Self::new(stack, Ipv6Addr::UNSPECIFIED.into()))
    }

    fn new(stack: &Stack, any: IpAddr) -> Self {
        let settings = Settings::new(stack.tunables());
        let draft = Draft {
            settings,
            rate: None,
            share: Share::NONE,
            bound: None,
            source: None,
            no_port: false,
            fast_open: 0,
        };
        Self { stack: stack.clone(), any, draft: Mutex::new(draft) }
    }

    /// Binds the socket to `addr`. Port 0 selects a free port.
    ///
    /// With [`any_address`](crate::StackBuilder::any_address) it may be the address of any other host, as
    /// Linux allows with `IP_TRANSPARENT`: a gateway connects from its client's address, and the peer's
    /// answers must be routed to this stack. Such a socket cannot listen.
    ///
    /// # Errors
    ///
    /// `AddrInUse`; `AddrNotAvailable`: not an address of this stack; `InvalidInput`: the other address
    /// family, or the socket is bound already; `NotConnected`: the stack has ended.
    pub fn bind(&self, addr: SocketAddr) -> io::Result<()> {
        self.check_family(addr)?;
        let mut draft = self.lock();
        if let Some(bound) = draft.local() {
            return Err(fault::bound_already(bound));
        }
        // IP_BIND_ADDRESS_NO_PORT: the shard chooses a port for the peer, which many flows may share.
        if addr.port() == 0 && draft.no_port {
            self.stack.check_source(addr)?;
            draft.source = Some(addr.ip());
        } else {
            draft.bound = Some(self.stack.reserve_source(addr, draft.share)?);
        }
        Ok(())
    }

    /// True if `bind` with port 0 leaves the port to `connect`.
    pub fn bind_address_no_port(&self) -> io::Result<bool> {
        Ok(self.lock().no_port)
    }

    /// Makes `bind` with port 0 leave the port to `connect` (`IP_BIND_ADDRESS_NO_PORT`). The port then
    /// needs to be free only towards the peer, so that one port serves many peers. Otherwise `bind`
    /// selects a port that no other socket has. Call it before `bind`. Not in tokio.
    pub fn set_bind_address_no_port(&self, no_port: bool) -> io::Result<()> {
        self.lock().no_port = no_port;
        Ok(())
    }

    /// Opens a connection to `addr`. Errors as [`TcpStream::connect`].
    ///
    /// # Cancel safety
    ///
    /// As [`TcpStream::connect`].
    pub async fn connect(self, addr: SocketAddr) -> io::Result<TcpStream> {
        self.check_family(addr)?;
        let (stack, draft) = self.into_parts();
        let Draft { bound, source, settings, rate, .. } = draft;
        let options = ConnectRequest { peer: addr, bound, source, settings, rate, first: None };
        TcpStream::open(&stack, options).await
    }

    /// Opens a connection to `addr` and writes `data`. If the peer granted a Fast Open cookie before
    /// (RFC 7413), the SYN carries the first part of `data`. Otherwise the SYN requests a cookie, and
    /// `data` follows the handshake. Returns when the connection is established and all data is queued.
    /// Not in tokio.
    ///
    /// The peer's application may receive the data of a SYN twice, on two connections, because a
    /// network can repeat a SYN after its connection has ended. Send only idempotent requests this way.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the attempt, or closes the connection if it is open. The peer
    /// may have received part of `data`.
    ///
    /// # Errors
    ///
    /// As [`TcpStream::connect`].
    pub async fn connect_fast(self, addr: SocketAddr, data: &[u8]) -> io::Result<TcpStream> {
        self.check_family(addr)?;
        let (stack, draft) = self.into_parts();
        let Draft { bound, source, settings, rate, .. } = draft;
        // No SYN has room for more; the rest is sent after the handshake.
        let (first, mut rest) = data.split_at(data.len().min(FIRST));
        let first = Some(Bytes::copy_from_slice(first));
        let options = ConnectRequest { peer: addr, bound, source, settings, rate, first };
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

    /// Starts listening with a backlog of `backlog` completed connections, and one more. An unbound
    /// socket gets a free port.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        let any = self.local_addr()?;
        self.stack.check_own(any)?;
        let (stack, draft) = self.into_parts();
        let bound = match draft.bound {
            Some(bound) => bound,
            None => stack.reserve(any, draft.share)?,
        };
        let Draft { fast_open, settings, rate, .. } = draft;
        let options = ListenOptions { backlog, fast_open, settings, rate };
        TcpListener::listen(&stack, bound, options)
    }

    /// Returns the limit of concurrent Fast Open handshakes of the listener.
    pub fn fastopen(&self) -> io::Result<u32> {
        Ok(self.lock().fast_open)
    }

    /// Makes a listener accept data in SYNs with a valid cookie (`TCP_FASTOPEN`, RFC 7413), while at
    /// most `pending` such handshakes are in progress. 0, the default, disables it.
    /// [`TcpListener::accept`] then returns streams before their handshake is complete. Not in tokio.
    ///
    /// The same data may arrive twice, on two streams: see [`TcpSocket::connect_fast`].
    pub fn set_fastopen(&self, pending: u32) -> io::Result<()> {
        self.lock().fast_open = pending;
        Ok(())
    }

    /// Returns the local address and port; unspecified before `bind`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.lock().local().unwrap_or(SocketAddr::new(self.any, 0)))
    }

    /// Always returns `None`: a socket without a connection has no error.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// True if other sockets with this option may bind the same address and port (`SO_REUSEADDR`).
    pub fn reuseaddr(&self) -> io::Result<bool> {
        Ok(self.lock().share.address)
    }

    /// Lets other sockets with this option bind the same address and port while none of them listens.
    /// Connections in TIME-WAIT never prevent `bind`, so that servers do not need this option.
    pub fn set_reuseaddr(&self, reuseaddr: bool) -> io::Result<()> {
        self.set_share(|share| share.address = reuseaddr)
    }

    /// True if several listeners may have this address and port (`SO_REUSEPORT`).
    pub fn reuseport(&self) -> io::Result<bool> {
        Ok(self.lock().share.port)
    }

    /// Lets other sockets with this option bind the same address and port, and listen there. Linux
    /// assigns each connection to one of the listeners; here all accept from one queue, so that no
    /// connection waits for a listener that does not accept. Backlog and options are those of the first
    /// listener. Dropping the last one resets the connections that were not accepted.
    pub fn set_reuseport(&self, reuseport: bool) -> io::Result<()> {
        self.set_share(|share| share.port = reuseport)
    }

    /// True if the connection will be probed when idle (`SO_KEEPALIVE`).
    pub fn keepalive(&self) -> io::Result<bool> {
        Ok(self.lock().settings.keepalive())
    }

    /// Probes the connection when it is idle, as the tunables `net.ipv4.tcp_keepalive_*` say.
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.set(|settings| settings.set_keepalive(keepalive))
    }

    /// True if Nagle's algorithm will be off (`TCP_NODELAY`).
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.lock().settings.nodelay())
    }

    /// Disables Nagle's algorithm (`true`).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set(|settings| settings.set_nodelay(nodelay))
    }

    /// Returns the linger time (`SO_LINGER`).
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.lock().settings.linger())
    }

    /// Calls [`TcpStream::set_linger`] on the future connection.
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        self.set(|settings| settings.set_linger(dur))
    }

    /// Calls [`TcpStream::set_zero_linger`] on the future connection.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Returns the congestion control of the future connection (`TCP_CONGESTION`): the one that was
    /// set, or else the stack's default, which a route can override. Not in tokio; socket2 has this
    /// method with another type for the name.
    pub fn tcp_congestion(&self) -> io::Result<String> {
        let asked = self.lock().settings.congestion_control();
        Ok(self.stack.congestion_names()?.name(asked))
    }

    /// Sets the congestion control of the future connection, or of those that the listener accepts. It
    /// is one of the stack's own, such as `"cubic"` and `"reno"`, or one added by
    /// [`StackBuilder::add_congestion_control`]. It overrides that of the route and of the stack.
    ///
    /// ```
    /// # use whimbrel::{Stack, TcpSocket};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (stack, _other) = Stack::pair()?;
    /// let socket = TcpSocket::new_v4(&stack)?;
    /// socket.set_tcp_congestion("reno")?;
    /// let error = socket.set_tcp_congestion("vegas").unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// assert!(error.to_string().contains("give one of reno, cubic"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `NotFound`: no congestion control has this name. The message lists the available ones.
    ///
    /// [`StackBuilder::add_congestion_control`]: crate::StackBuilder::add_congestion_control
    pub fn set_tcp_congestion(&self, name: &str) -> io::Result<()> {
        let algorithm = self.stack.congestion_names()?.find(name)?;
        self.set(|settings| settings.set_congestion_control(algorithm))
    }

    /// Returns the limit of the rate at which data will leave, bytes per second (`SO_MAX_PACING_RATE`);
    /// `u64::MAX` without one. Not in tokio.
    pub fn max_pacing_rate(&self) -> io::Result<u64> {
        Ok(rate_of(self.lock().rate))
    }

    /// Calls [`TcpStream::set_max_pacing_rate`] on the future connection, or on each one that the
    /// listener accepts, as on Linux: at most `rate` bytes per second. Not in tokio.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: `rate` is 0. Linux accepts it.
    pub fn set_max_pacing_rate(&self, rate: u64) -> io::Result<()> {
        self.lock().rate = rate_limit(rate)?;
        Ok(())
    }

    /// Returns the size of the send buffer in bytes.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        Ok(self.lock().settings.send_size())
    }

    /// Sets the size of the send buffer (2 KiB to 1 GiB; like Linux, other values are clamped without
    /// an error). It is a minimum, and the buffer grows as the path needs it, unless the tunable
    /// `buffers` says otherwise.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|settings| settings.set_send_size(size))
    }

    /// Sets how the send buffer is sized: automatically, automatically above a minimum, or fixed. Not
    /// in tokio.
    pub fn set_send_buffer(&self, size: BufferSize) -> io::Result<()> {
        self.set(|settings| settings.set_send_size(size))
    }

    /// Returns the size of the receive buffer in bytes.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        Ok(self.lock().settings.recv_size())
    }

    /// Sets the size of the receive buffer (2 KiB to 1 GiB; like Linux, other values are clamped
    /// without an error). It is a minimum, and the buffer grows as the path needs it, unless the
    /// tunable `buffers` says otherwise.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|settings| settings.set_recv_size(size))
    }

    /// Sets how the receive buffer is sized: automatically, automatically above a minimum, or fixed.
    /// Not in tokio.
    pub fn set_recv_buffer(&self, size: BufferSize) -> io::Result<()> {
        self.set(|settings| settings.set_recv_size(size))
    }

    /// Returns the type of service of IPv4 packets.
    pub fn tos_v4(&self) -> io::Result<u32> {
        Ok(self.lock().settings.tos().into())
    }

    /// Sets the type of service of IPv4 packets. As on Linux, the low eight bits count, except the two
    /// for ECN, which TCP sets.
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.set(|settings| settings.set_tos(tos as u8))
    }

    /// Former name of [`TcpSocket::tos_v4`].
    #[deprecated(note = "tokio calls it `tos_v4` now")]
    pub fn tos(&self) -> io::Result<u32> {
        self.tos_v4()
    }

    /// Former name of [`TcpSocket::set_tos_v4`].
    #[deprecated(note = "tokio calls it `set_tos_v4` now")]
    pub fn set_tos(&self, tos: u32) -> io::Result<()> {
        self.set_tos_v4(tos)
    }

    /// Returns the traffic class of IPv6 packets.
    ///
    /// # Errors
    ///
    /// `Unsupported` on an IPv4 socket.
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.check_v6()?;
        Ok(self.lock().settings.traffic_class().into())
    }

    /// Sets the traffic class of IPv6 packets (0 to 255), except the two bits for ECN, which TCP sets.
    ///
    /// # Errors
    ///
    /// `InvalidInput` above 255; `Unsupported` on an IPv4 socket.
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
    /// Returns the bound address and port; port 0 if none is bound yet.
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

/// In bytes; more than a segment of any link.
const FIRST: usize = 64 << 10;
