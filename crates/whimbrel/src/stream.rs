//! A TCP connection, with the interface of tokio's `TcpStream`.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{ToSocketAddrs, lookup_host};
use whimbrel_tcp::conn::Snapshot;
use whimbrel_wire::{Endpoint, Flow};

use crate::bind_table::ReservedAddr;
use crate::cell::{Flags, PostAction, Settings, StreamCell, StreamState, rate_limit, rate_of};
use crate::mailbox::{Connect, Mailbox, Request};
use crate::waiters::wake_all;
use crate::{BufferSize, Stack, fault, stack};

mod readiness;
mod transfer;

/// Variables of a connection at one moment, as `ss -i` shows them.
pub type TcpInfo = Snapshot;

/// A TCP connection. Methods have the names and behaviour of `tokio::net::TcpStream`; additions are
/// marked.
///
/// # Dropping
///
/// Written data is still delivered, followed by FIN; dropping never waits. If received data was not
/// read, the connection is reset after the data that can be sent at once. After
/// [`TcpStream::set_linger`] with zero, it is reset immediately. A stack ends with its process, so see
/// [`Stack::wait_drained`].
///
/// # Buffers
///
/// A write completes when its bytes are queued for the shard. In addition to the send buffer, this
/// queue holds as much again, at most 256 KiB. In the other direction, as many bytes may wait here in
/// addition to the receive buffer.
pub struct TcpStream {
    cell: Arc<StreamCell>,
    mailbox: Arc<Mailbox>,
    local: SocketAddr,
    peer: SocketAddr,
    /// The address and port that the socket was bound to.
    _reserved: Option<ReservedAddr>,
}

/// Parameters of an active open.
#[derive(Debug)]
pub(crate) struct ConnectRequest {
    pub(crate) peer: SocketAddr,
    pub(crate) bound: Option<ReservedAddr>,
    /// Local address, if it was bound without a port.
    pub(crate) source: Option<IpAddr>,
    pub(crate) settings: Settings,
    /// Limit of the rate, bytes per second.
    pub(crate) rate: Option<NonZeroU64>,
    /// Data for the SYN, if the peer takes it.
    pub(crate) first: Option<Bytes>,
}

/// Opening and accepting.
impl TcpStream {
    /// Opens a connection to `addr`. If that resolves to several addresses, the first that answers is
    /// used. The host's resolver resolves names.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the attempt. If the peer has the connection already, its `accept`
    /// returns it and its first read returns the end, as with the kernel's sockets.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] with the reason, whose kind is `ConnectionRefused`, `TimedOut`,
    /// `HostUnreachable`, `NetworkUnreachable` (no route), `AddrNotAvailable` (ports exhausted, or the
    /// connection exists already), `QuotaExceeded` (`max_connections`) or `InvalidInput` (not an address
    /// of a single host, or port 0: the kernel sends a SYN to that port and reports
    /// `ConnectionRefused`, which hides the mistake). The message names the limit.
    ///
    /// [`ConnectError`]: crate::ConnectError
    pub async fn connect<A: ToSocketAddrs>(stack: &Stack, addr: A) -> io::Result<Self> {
        let mut last = None;
        for peer in lookup_host(addr).await? {
            let settings = Settings::new(stack.tunables());
            let options = ConnectRequest {
                peer,
                bound: None,
                source: None,
                settings,
                rate: None,
                first: None,
            };
            match Self::open(stack, options).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(fault::no_address))
    }

    pub(crate) async fn open(stack: &Stack, options: ConnectRequest) -> io::Result<Self> {
        if options.bound.is_some() {
            return Self::open_at_shard(stack, options).await;
        }
        let ConnectRequest { peer, source, settings, rate, first, .. } = options;
        // Each shard has its own ports, so one may run out before the others.
        let (mut tries, mut former) = (stack.shards(), None);
        loop {
            tries -= 1;
            let options =
                ConnectRequest { peer, bound: None, source, settings, rate, first: first.clone() };
            let opened = Self::open_at_shard(stack, options).await;
            let error = match opened {
                Ok(stream) => return Ok(stream),
                Err(error) => fault::connect_again(former, error),
            };
            if error.kind() != io::ErrorKind::AddrNotAvailable || tries == 0 {
                return Err(error);
            }
            former = Some(error);
        }
    }

    async fn open_at_shard(stack: &Stack, options: ConnectRequest) -> io::Result<Self> {
        let ConnectRequest { mut peer, bound, source, settings, rate, first } = options;
        // As for accepted streams: IPv4 connections have IPv4 addresses.
        peer.set_ip(peer.ip().to_canonical());
        let at = bound.as_ref().map(ReservedAddr::at);
        let mailbox = stack.mailbox_for(at.map(|at| at.port), peer.port())?;
        let local = at.or_else(|| source.map(|addr| SocketAddr::new(addr, 0).into()));
        let mut stream = Self {
            cell: StreamCell::new(settings),
            mailbox: Arc::clone(mailbox),
            local: local.map_or(peer, SocketAddr::from),
            peer,
            _reserved: bound,
        };
        let cell = Arc::clone(&stream.cell);
        cell.lock().set_max_pacing_rate(rate);
        let fast = first.is_some();
        if let Some(first) = first {
            // Without a handle there is no connection to close.
            let _ = cell.lock().leave(first);
        }
        let connect = Connect { cell, remote: Endpoint::from(peer), local, fast };
        mailbox.ask(Request::Connect(Box::new(connect)));
        // From here on, dropping `stream` aborts the attempt.
        let (index, port) = poll_fn(|cx| stream.poll_open(cx)).await?;
        // Another host's address is not among the stack's.
        let bound = local.filter(|local| !local.addr.is_unspecified());
        let own = || stack.local_end(mailbox, index, port);
        let local = bound.map(|local| Endpoint::new(local.addr, port).into()).or_else(own);
        stream.local = local.ok_or_else(fault::unknown)?;
        Ok(stream)
    }

    /// Returns the index of the local address and the port, once the connection is established.
    fn poll_open(&self, cx: &Context<'_>) -> Poll<io::Result<(u16, u16)>> {
        let mut replaced = None;
        let mut state = self.cell.lock();
        let result = if state.flags.has(Flags::OPEN) {
            Poll::Ready(Ok((state.local_index, state.local_port)))
        } else if state.flags.has(Flags::OVER) {
            Poll::Ready(Err(state.take_error().unwrap_or_else(fault::unknown)))
        } else {
            replaced = state.writers.register(cx.waker());
            Poll::Pending
        };
        drop(state);
        drop(replaced);
        result
    }

    /// Returns the stream of a connection that a shard accepted.
    pub(crate) fn accepted(cell: Arc<StreamCell>, mailbox: Arc<Mailbox>, flow: Flow) -> Self {
        let (local, peer) = (flow.local.into(), flow.remote.into());
        Self { cell, mailbox, local, peer, _reserved: None }
    }
}

/// Properties and options.
impl TcpStream {
    /// Returns the local address and port.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    /// Returns the peer's address and port. Unlike kernel sockets, which report `NotConnected`, a stream
    /// returns it even after a reset, so that a log can name the peer.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }

    /// Returns the error that ended the connection, if no call has returned it yet.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.cell.lock().take_error())
    }

    /// True if Nagle's algorithm is off (`TCP_NODELAY`).
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.cell.lock().settings.nodelay())
    }

    /// Disables Nagle's algorithm (`true`), so that small segments do not wait for earlier data to be
    /// acknowledged.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set(|settings| settings.set_nodelay(nodelay))
    }

    /// True if data is acknowledged at once (`TCP_QUICKACK`).
    pub fn quickack(&self) -> io::Result<bool> {
        Ok(self.cell.lock().settings.quickack())
    }

    /// Acknowledges data at once (`true`), or as the tunables `delayed_ack` and `ack_every` say. Unlike
    /// on Linux, the setting is permanent.
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.set(|settings| settings.set_quickack(quickack))
    }

    /// Returns the linger time (`SO_LINGER`).
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.cell.lock().settings.linger())
    }

    /// With zero, dropping the stream resets the connection and discards unsent data. Other values have
    /// no effect, because dropping never waits.
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        self.set(|settings| settings.set_linger(dur))
    }

    /// Calls `set_linger(Some(Duration::ZERO))`.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Returns the time to live (IPv4) or hop limit (IPv6) of sent packets.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.cell.lock().settings.hop_limit().into())
    }

    /// Sets the time to live (IPv4) or hop limit (IPv6) of sent packets, 1 to 255. The default is the
    /// tunable `net.ipv4.ip_default_ttl`.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hop_limit(ttl)?;
        self.set(|settings| settings.set_hop_limit(hops))
    }

    /// True if idle connections are probed (`SO_KEEPALIVE`). Tokio has this only on `TcpSocket`.
    pub fn keepalive(&self) -> io::Result<bool> {
        Ok(self.cell.lock().settings.keepalive())
    }

    /// Probes the connection when it is idle, as the tunables `net.ipv4.tcp_keepalive_*` say. Tokio has
    /// this only on `TcpSocket`.
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.set(|settings| settings.set_keepalive(keepalive))
    }

    /// Sets the size of the send buffer (2 KiB to 1 GiB; like Linux, other values are clamped without
    /// an error). It is a minimum unless the tunable `buffers` says otherwise. Tokio has this only on
    /// `TcpSocket`.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|settings| settings.set_send_size(size))
    }

    /// Sets the size of the receive buffer (2 KiB to 1 GiB; like Linux, other values are clamped
    /// without an error). It is a minimum unless the tunable `buffers` says otherwise. A window that
    /// was advertised is not withdrawn. Tokio has this only on `TcpSocket`.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|settings| settings.set_recv_size(size))
    }

    /// Sets how the send buffer is sized: automatically, automatically above a minimum, or fixed. Not
    /// in tokio.
    pub fn set_send_buffer(&self, size: BufferSize) -> io::Result<()> {
        self.set(|settings| settings.set_send_size(size))
    }

    /// Sets how the receive buffer is sized: automatically, automatically above a minimum, or fixed.
    /// Not in tokio.
    pub fn set_recv_buffer(&self, size: BufferSize) -> io::Result<()> {
        self.set(|settings| settings.set_recv_size(size))
    }

    /// Returns the congestion control of the connection (`TCP_CONGESTION`): the requested one, or else
    /// that of its listener, its route or the stack when it began. Not in tokio; socket2 has this
    /// method with another type for the name.
    pub fn tcp_congestion(&self) -> io::Result<String> {
        let known = self.cell.lock().settings.congestion_control();
        Ok(self.mailbox.congestion_names().name(known))
    }

    /// Changes the congestion control; the new one continues with the current window. Names and errors
    /// as [`TcpSocket::set_tcp_congestion`](crate::TcpSocket::set_tcp_congestion).
    pub fn set_tcp_congestion(&self, name: &str) -> io::Result<()> {
        let algorithm = self.mailbox.congestion_names().find(name)?;
        self.set(|settings| settings.set_congestion_control(algorithm))
    }

    /// Returns the limit of the rate at which data leaves, bytes per second (`SO_MAX_PACING_RATE`);
    /// `u64::MAX` without one. Not in tokio.
    pub fn max_pacing_rate(&self) -> io::Result<u64> {
        Ok(rate_of(self.cell.lock().max_pacing_rate()))
    }

    /// Limits the rate at which data leaves, retransmitted data included, to `rate` bytes per second
    /// (`SO_MAX_PACING_RATE`). The connection is paced from then on; its first 14,600 bytes leave at once,
    /// as on Linux. No wait exceeds a second, so that less than two segments per second has no effect.
    /// `u64::MAX` removes the limit. Not in tokio.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: `rate` is 0. Linux accepts it.
    pub fn set_max_pacing_rate(&self, rate: u64) -> io::Result<()> {
        let rate = rate_limit(rate)?;
        self.change(|state| state.set_max_pacing_rate(rate))
    }

    /// Returns the variables of the connection at this moment (`TCP_INFO`). Not in tokio.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing; the shards may still run the request.
    pub async fn tcp_info(&self) -> io::Result<TcpInfo> {
        let handle = self.cell.lock().handle.ok_or_else(fault::unknown)?;
        let look = move |shard: &mut whimbrel_stack::Shard, _| shard.snapshot(handle);
        stack::inspect(&self.mailbox, look).await?.ok_or_else(fault::unknown)
    }

    /// Sends FIN after the written data. Further calls have no effect.
    pub(crate) fn shut_down(&self) {
        let mut woken = Vec::new();
        let post = {
            let mut state = self.cell.lock();
            if state.flags.has(Flags::SHUT) {
                PostAction::None
            } else {
                state.flags.set(Flags::SHUT);
                state.writers.take_all(&mut woken);
                state.dirty()
            }
        };
        self.do_post(post);
        wake_all(&mut woken);
    }

    fn set(&self, set: impl FnOnce(&mut Settings)) -> io::Result<()> {
        self.change(|state| set(&mut state.settings))
    }

    /// Changes the settings and has the shard apply them.
    fn change(&self, change: impl FnOnce(&mut StreamState)) -> io::Result<()> {
        let post = {
            let mut state = self.cell.lock();
            change(&mut state);
            state.flags.set(Flags::SETTINGS);
            state.dirty()
        };
        self.do_post(post);
        Ok(())
    }

    fn do_post(&self, post: PostAction) {
        if let PostAction::Post(handle) = post {
            self.mailbox.post(handle);
        }
    }
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        let (post, wakers) = self.cell.lock().on_drop();
        self.do_post(post);
        drop(wakers);
    }
}

impl AsRef<Self> for TcpStream {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Shows both endpoints only: transferred data does not belong in logs.
impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (local, peer) = (&self.local, &self.peer);
        f.debug_struct("TcpStream").field("addr", local).field("peer", peer).finish()
    }
}

/// Converts `ttl` into a hop limit that packets can have.
pub(crate) fn hop_limit(ttl: u32) -> io::Result<u8> {
    u8::try_from(ttl).ok().filter(|hops| *hops > 0).ok_or_else(|| fault::hop_limit(ttl))
}
