//! A UDP socket, as tokio's `UdpSocket`.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::sync::oneshot;
use whimbrel_stack::UdpHandle;
use whimbrel_udp::{Bind, Fragmenting, Local, Sharing};
use whimbrel_wire::{Address, Endpoint, Family, TrafficClass};

use crate::mailbox::{Mailbox, Request};
use crate::stream::hop_limit;
use crate::udp_cell::{UdpCell, UdpState};
use crate::udp_port::{Answer, UdpRequest};
use crate::{Stack, fault};

mod any;
mod readiness;
mod transfer;

pub use any::AnyUdpSocket;

/// A UDP socket. Everything is named and behaves as in `tokio::net::UdpSocket`; what has no counterpart
/// there says so.
///
/// ```
/// use whimbrel::{Stack, UdpSocket};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (left, right) = Stack::pair()?;
/// let server = UdpSocket::bind(&left, "10.0.0.1:7").await?;
/// tokio::spawn(async move {
///     let mut buf = [0; 1_500];
///     while let Ok((len, peer)) = server.recv_from(&mut buf).await {
///         server.send_to(&buf[..len], peer).await?;
///     }
///     std::io::Result::Ok(())
/// });
/// let client = UdpSocket::bind(&right, "0.0.0.0:0").await?;
/// client.connect("10.0.0.1:7").await?;
/// client.send(b"whimbrel").await?;
/// let mut echo = [0; 8];
/// client.recv(&mut echo).await?;
/// assert_eq!(&echo, b"whimbrel");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// A call that sends fails at once, as on Linux, if the datagram cannot be sent: too long for a datagram, or
/// for what the path carries where it [must not be cut](UdpSocket::set_fragmenting); for a group of hosts,
/// or for no address; no route. What is found out later is told once:
///
/// - A connected socket's next call fails, whatever it does, for what was sent to its peer: the path says so
///   (RFC 1122 4.1.3.3: `ConnectionRefused` and others), or the shard had no memory. What may pass by itself
///   (a network or host that cannot be reached, a hop limit that ran out) only [`UdpSocket::take_error`] tells.
/// - A socket that is not connected never fails for what it sent before: its peers are many, and one
///   without a route, or without that port, says nothing of the others. [`UdpSocket::take_error`] tells
///   what the shard found out.
///
/// # Buffers
///
/// Up to 64 KiB are on their way to the shard, and as much from it; beyond, datagrams wait in the
/// shard's own queues ([`UdpSocket::set_recv_buffer_size`]), and what finds that full is dropped and
/// counted (`UdpRcvbufErrors`).
///
/// # Shards
///
/// On a stack of several shards all UDP sockets are at the first.
///
/// # Not here
///
/// Multicast and broadcast, each with an error that says so.
pub struct UdpSocket {
    cell: Arc<UdpCell>,
    mailbox: Arc<Mailbox>,
}

/// How a socket begins, and whom it speaks to.
impl UdpSocket {
    /// A socket that receives at `addr`, port 0 for one that is drawn; if `addr` has several addresses, at
    /// the first that can be had. At `::` it receives IPv4 too, and says so by IPv4 addresses.
    ///
    /// # Errors
    ///
    /// `AddrInUse` (the port is another's, or there is none left), `AddrNotAvailable` (none of the
    /// stack's), `Unsupported` (a group of hosts).
    pub async fn bind<A: ToSocketAddrs>(stack: &Stack, addr: A) -> io::Result<Self> {
        let mut last = None;
        for addr in lookup_host(addr).await? {
            match Self::bind_at(stack, addr).await {
                Ok(socket) => return Ok(socket),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(fault::no_address))
    }

    async fn bind_at(stack: &Stack, at: SocketAddr) -> io::Result<Self> {
        let socket = Self::unbound(stack, at)?;
        let addr = Address::from(at.ip().to_canonical());
        let local = match addr.family() {
            Family::V6 if addr.is_unspecified() => Local::Both,
            family if addr.is_unspecified() => Local::Every(family),
            _ => Local::Address(addr),
        };
        let bind = Bind { local, port: at.port(), sharing: Sharing::Alone };
        // From here on `socket` lets go if it is dropped.
        let cell = Arc::clone(&socket.cell);
        socket.ask(|answer| UdpRequest::Bind { cell, bind: Some(bind), answer }).await?;
        Ok(socket)
    }

    fn unbound(stack: &Stack, at: SocketAddr) -> io::Result<Self> {
        let mailbox = stack.mailboxes().first().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Self { cell: UdpCell::new(at), mailbox: Arc::clone(mailbox) })
    }

    /// Sends to `addr` from now on, where nothing else is said, receives from there alone, and hears what
    /// the path says of what is sent there; if `addr` has several addresses, the first that there is a way
    /// to.
    ///
    /// # Errors
    ///
    /// `NetworkUnreachable` (no route), `AddrNotAvailable` (no address of the peer's family),
    /// `InvalidInput` (port 0, no address of one host, another family than the socket's), `Unsupported`
    /// (a group of hosts, or one of the stack's own addresses).
    pub async fn connect<A: ToSocketAddrs>(&self, addr: A) -> io::Result<()> {
        let mut last = None;
        for addr in lookup_host(addr).await? {
            let remote = endpoint(addr);
            let cell = Arc::clone(&self.cell);
            match self.ask(|answer| UdpRequest::Connect { cell, remote, answer }).await {
                Ok(()) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(fault::no_address))
    }

    async fn ask(&self, request: impl FnOnce(Answer) -> UdpRequest) -> io::Result<()> {
        let (sender, answer) = oneshot::channel();
        self.mailbox.ask(Request::Udp(request(sender)));
        answer.await.map_err(|_| self.mailbox.ended())?
    }
}

/// What it is, and what is set.
impl UdpSocket {
    /// The address and port that it receives at.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.cell.lock().local)
    }

    /// Whom it is connected to.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.cell.lock().peer.ok_or_else(fault::udp_not_connected)
    }

    /// What went wrong, if nobody was told yet.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.cell.lock().failure.take().map(|failure| failure.error))
    }

    /// The time to live (IPv4) or hop limit (IPv6) of what is sent; 0: the stack's usual one.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.cell.lock().options.hop_limit.unwrap_or_default().into())
    }

    /// Sends with this time to live, or hop limit (1 ..= 255; by default as the tunable
    /// `net.ipv4.ip_default_ttl` has it).
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hop_limit(ttl)?;
        self.cell.lock().options.hop_limit = Some(hops);
        Ok(())
    }

    /// The type of service of what is sent (`IP_TOS`), ECN's two bits included.
    pub fn tos_v4(&self) -> io::Result<u32> {
        Ok(self.cell.lock().options.class.0.into())
    }

    /// Sends with this type of service; of a greater number the low eight bits count. ECN's two bits
    /// leave as they are given (RFC 8085 3.1.7).
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.cell.lock().options.class = TrafficClass(tos as u8);
        Ok(())
    }

    /// The traffic class of what is sent (`IPV6_TCLASS`): the same field as [`UdpSocket::tos_v4`].
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.tos_v4()
    }

    /// Sends with this traffic class (0 ..= 255).
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        let class = u8::try_from(tclass).map_err(|_| fault::traffic_class(tclass))?;
        self.cell.lock().options.class = TrafficClass(class);
        Ok(())
    }

    /// What becomes of a datagram that the path does not carry whole: fragments, or an error (Linux'
    /// `IP_MTU_DISCOVER`). Tokio has no such method.
    pub fn set_fragmenting(&self, fragmenting: Fragmenting) -> io::Result<()> {
        self.cell.lock().options.fragmenting = fragmenting;
        Ok(())
    }

    /// How many bytes may wait in the shard to be received, what each datagram takes beside its data
    /// included (2 KiB to `buffers.recv.max`; 208 KiB from the start). Tokio has no such method; it is
    /// socket2's.
    pub fn set_recv_buffer_size(&self, size: usize) -> io::Result<()> {
        self.set(|state| state.sizes.recv = Some(size))
    }

    /// How many bytes may wait in the shard to be sent (2 KiB to `buffers.send.max`; 208 KiB from the
    /// start). Tokio has no such method; it is socket2's.
    pub fn set_send_buffer_size(&self, size: usize) -> io::Result<()> {
        self.set(|state| state.sizes.send = Some(size))
    }

    /// Always `false`: see [`UdpSocket::set_broadcast`].
    pub fn broadcast(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// # Errors
    ///
    /// `Unsupported`, if it is to be on: this stack sends to single hosts only.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        if on { Err(fault::no_groups("broadcast")) } else { Ok(()) }
    }

    /// # Errors
    ///
    /// `Unsupported`, always: this stack joins no group.
    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, _interface: Ipv4Addr) -> io::Result<()> {
        Err(fault::no_groups(&format!("multicast group {multiaddr}")))
    }

    /// # Errors
    ///
    /// `Unsupported`, always: this stack joins no group.
    pub fn join_multicast_v6(&self, multiaddr: &Ipv6Addr, _interface: u32) -> io::Result<()> {
        Err(fault::no_groups(&format!("multicast group {multiaddr}")))
    }

    fn set(&self, set: impl FnOnce(&mut UdpState)) -> io::Result<()> {
        let post = {
            let mut state = self.cell.lock();
            set(&mut state);
            state.dirty()
        };
        self.do_post(post);
        Ok(())
    }

    fn do_post(&self, post: Option<UdpHandle>) {
        if let Some(handle) = post {
            self.mailbox.post_udp(handle);
        }
    }
}

impl Drop for UdpSocket {
    /// What was sent still leaves.
    fn drop(&mut self) {
        let mut wakers = Vec::new();
        {
            let mut state = self.cell.lock();
            state.is_dropped = true;
            state.readers.take_all(&mut wakers);
            state.writers.take_all(&mut wakers);
        }
        let cell = Arc::clone(&self.cell);
        self.mailbox.ask(Request::Udp(UdpRequest::Close { cell }));
        // A waker runs the executor's code, which may lock this cell: not under its lock.
        drop(wakers);
    }
}

impl AsRef<Self> for UdpSocket {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.cell.lock();
        let (local, peer) = (&state.local, &state.peer);
        f.debug_struct("UdpSocket").field("addr", local).field("peer", peer).finish()
    }
}

/// What goes by IPv4 says so.
fn endpoint(addr: SocketAddr) -> Endpoint {
    Endpoint::new(addr.ip().to_canonical().into(), addr.port())
}
