//! A connection, as tokio's `TcpStream`.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{ToSocketAddrs, lookup_host};
use whimbrel_tcp::conn::Snapshot;
use whimbrel_wire::{Endpoint, Flow};

use crate::bind_table::ReservedAddr;
use crate::cell::{Flags, PostAction, Settings, StreamCell};
use crate::mailbox::{Connect, Mailbox, Request};
use crate::waiters::wake_all;
use crate::{BufferSize, Stack, fault, stack};

mod readiness;
mod transfer;

/// The variables of a connection at one moment, as `ss -i` shows them.
pub type TcpInfo = Snapshot;

/// A connection. Everything is named and behaves as in `tokio::net::TcpStream`; what has no
/// counterpart there says so.
///
/// # Dropping
///
/// What was written is still delivered, then the peer learns of the end, without anybody waiting.
/// If something was received and not read, the connection is reset after what can be sent at once; if
/// [`TcpStream::set_linger`] said zero, it is reset instead. A stack ends with its process, whatever is
/// still on its way: see [`Stack::wait_drained`].
///
/// # Buffers
///
/// A write is done once its octets are on their way to the shard. On top of the send buffer, as much
/// again may be on its way, 256 KiB at most; and so many octets may wait here to be read, on top of
/// the receive buffer.
pub struct TcpStream {
    cell: Arc<StreamCell>,
    mailbox: Arc<Mailbox>,
    local: SocketAddr,
    peer: SocketAddr,
    /// The end that a socket was bound to.
    _reserved: Option<ReservedAddr>,
}

/// What a connection is opened with.
#[derive(Debug)]
pub(crate) struct ConnectRequest {
    pub(crate) peer: SocketAddr,
    pub(crate) bound: Option<ReservedAddr>,
    /// This side's address, if that alone was bound.
    pub(crate) source: Option<IpAddr>,
    pub(crate) settings: Settings,
    /// What the SYN is to bring, if it can.
    pub(crate) first: Option<Bytes>,
}

/// How a stream begins: it is opened, or accepted.
impl TcpStream {
    /// Opens a connection to `addr`; if that has several addresses, to the first that answers.
    /// Names are resolved by the machine's resolver.
    ///
    /// Dropping the future ends the attempt: nothing more is sent.
    ///
    /// # Errors
    ///
    /// `ConnectionRefused`, `TimedOut`, `HostUnreachable`, `NetworkUnreachable` (no route),
    /// `AddrNotAvailable` (ports exhausted, or there is a connection of both ends), `QuotaExceeded`
    /// (`max_connections`), `InvalidInput` (port 0, or no address of one host), `Unsupported` (one of the
    /// stack's own addresses): each names what was hit.
    pub async fn connect<A: ToSocketAddrs>(stack: &Stack, addr: A) -> io::Result<Self> {
        let mut last = None;
        for peer in lookup_host(addr).await? {
            let settings = Settings::new(stack.tunables());
            let options = ConnectRequest { peer, bound: None, source: None, settings, first: None };
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
        let ConnectRequest { peer, source, settings, first, .. } = options;
        // Each shard has ports of its own, and one may be out of them while others are not.
        let (mut tries, mut former) = (stack.shards(), None);
        loop {
            tries -= 1;
            let options =
                ConnectRequest { peer, bound: None, source, settings, first: first.clone() };
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
        let ConnectRequest { mut peer, bound, source, settings, first } = options;
        // As of accepted streams: what goes by IPv4 says so.
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
        let fast = first.is_some();
        if let Some(first) = first {
            // Without a handle there is nobody to tell.
            let _ = cell.lock().leave(first);
        }
        let connect = Connect { cell, remote: Endpoint::from(peer), local, fast };
        mailbox.ask(Request::Connect(Box::new(connect)));
        // From here on `stream` ends the attempt if it is dropped.
        let (index, port) = poll_fn(|cx| stream.poll_open(cx)).await?;
        stream.local = stack.local_end(mailbox, index, port).ok_or_else(fault::unknown)?;
        Ok(stream)
    }

    /// This side's address, by its index, and port, once the connection is established.
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

    /// What a shard accepted.
    pub(crate) fn accepted(cell: Arc<StreamCell>, mailbox: Arc<Mailbox>, flow: Flow) -> Self {
        let (local, peer) = (flow.local.into(), flow.remote.into());
        Self { cell, mailbox, local, peer, _reserved: None }
    }
}

/// What it is, and what is set.
impl TcpStream {
    /// The address and port of this side.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    /// The peer's end; unlike the kernel's sockets, a stream still tells when the connection is over.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }

    /// Why the connection is over, if that is an error and nobody was told yet.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.cell.lock().take_error())
    }

    /// Whether Nagle's algorithm is off (`TCP_NODELAY`).
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(self.cell.lock().settings.nodelay())
    }

    /// Switches Nagle's algorithm off (`true`), so that small segments do not wait for earlier
    /// ones to be acknowledged.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.set(|settings| settings.set_nodelay(nodelay))
    }

    /// Whether text is acknowledged at once (`TCP_QUICKACK`).
    pub fn quickack(&self) -> io::Result<bool> {
        Ok(self.cell.lock().settings.quickack())
    }

    /// Acknowledges text at once (`true`), or as the tunables `delayed_ack` and `ack_every` have it.
    /// Unlike Linux, which goes its own way again after a while, it stays as it was set.
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        self.set(|settings| settings.set_quickack(quickack))
    }

    /// How long closing lingers (`SO_LINGER`).
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(self.cell.lock().settings.linger())
    }

    /// With zero, dropping resets the connection and discards what was not sent. Any other value
    /// changes nothing, since dropping never waits.
    pub fn set_linger(&self, dur: Option<Duration>) -> io::Result<()> {
        self.set(|settings| settings.set_linger(dur))
    }

    /// The same as `set_linger(Some(Duration::ZERO))`.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// The time to live (IPv4) or hop limit (IPv6) of what is sent.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.cell.lock().settings.hop_limit().into())
    }

    /// Sends with this time to live, or hop limit (1 ..= 255; by default as the tunable
    /// `net.ipv4.ip_default_ttl` has it).
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hop_limit(ttl)?;
        self.set(|settings| settings.set_hop_limit(hops))
    }

    /// Whether the connection is probed when it is silent (`SO_KEEPALIVE`). Tokio has this on
    /// `TcpSocket` alone.
    pub fn keepalive(&self) -> io::Result<bool> {
        Ok(self.cell.lock().settings.keepalive())
    }

    /// Probes the connection when it is silent, as the tunables `net.ipv4.tcp_keepalive_*` say.
    /// Tokio has this on `TcpSocket` alone.
    pub fn set_keepalive(&self, keepalive: bool) -> io::Result<()> {
        self.set(|settings| settings.set_keepalive(keepalive))
    }

    /// How many octets may wait to be acknowledged (2 KiB ..= 1 GiB, as Linux without complaint): a
    /// floor, unless the tunable `buffers` says otherwise. Tokio has this on `TcpSocket` alone.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|settings| settings.set_send_size(size))
    }

    /// How many octets may wait to be read (2 KiB ..= 1 GiB, as Linux without complaint): a floor,
    /// unless the tunable `buffers` says otherwise. A window that was announced is not taken back. Tokio
    /// has this on `TcpSocket` alone.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.set(|settings| settings.set_recv_size(size))
    }

    /// How the send buffer is sized: by itself, from a floor on, or exactly so. Tokio has no such
    /// method.
    pub fn set_send_buffer(&self, size: BufferSize) -> io::Result<()> {
        self.set(|settings| settings.set_send_size(size))
    }

    /// How the receive buffer is sized: by itself, from a floor on, or exactly so. Tokio has no such
    /// method.
    pub fn set_recv_buffer(&self, size: BufferSize) -> io::Result<()> {
        self.set(|settings| settings.set_recv_size(size))
    }

    /// The congestion control of the connection (`TCP_CONGESTION`): what was asked for, or what its
    /// listener, its route or the stack had when it began. Tokio has no such method; it is socket2's, but
    /// for the type of the name.
    pub fn tcp_congestion(&self) -> io::Result<String> {
        let known = self.cell.lock().settings.congestion_control();
        Ok(self.mailbox.congestion_names().name(known))
    }

    /// Has another congestion control go on with the window that there is. Names and errors as
    /// [`TcpSocket::set_tcp_congestion`](crate::TcpSocket::set_tcp_congestion).
    pub fn set_tcp_congestion(&self, name: &str) -> io::Result<()> {
        let algorithm = self.mailbox.congestion_names().find(name)?;
        self.set(|settings| settings.set_congestion_control(algorithm))
    }

    /// The connection's variables at this moment (`TCP_INFO`). Tokio has no such method.
    pub async fn tcp_info(&self) -> io::Result<TcpInfo> {
        let handle = self.cell.lock().handle.ok_or_else(fault::unknown)?;
        let look = move |shard: &mut whimbrel_stack::Shard, _| shard.snapshot(handle);
        stack::inspect(&self.mailbox, look).await?.ok_or_else(fault::unknown)
    }

    /// Sends FIN after what was written; does nothing the second time.
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
        let post = {
            let mut state = self.cell.lock();
            set(&mut state.settings);
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

/// Both ends: what crosses between them is nobody's business who keeps a log.
impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (local, peer) = (&self.local, &self.peer);
        f.debug_struct("TcpStream").field("addr", local).field("peer", peer).finish()
    }
}

/// A hop limit that packets can have.
pub(crate) fn hop_limit(ttl: u32) -> io::Result<u8> {
    u8::try_from(ttl).ok().filter(|hops| *hops > 0).ok_or_else(|| fault::hop_limit(ttl))
}
