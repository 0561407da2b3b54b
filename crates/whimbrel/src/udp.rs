//! A UDP socket, with the interface of tokio's `UdpSocket`.

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

/// A UDP socket. Methods have the names and behaviour of `tokio::net::UdpSocket`; additions are marked.
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
/// A call that sends fails at once, as on Linux, if the datagram cannot be sent: it is too long, longer
/// than the path's MTU while [fragmenting is off](UdpSocket::set_fragmenting), for a multicast or
/// broadcast address, or without a route. Errors found later are reported once:
///
/// - The next call on a connected socket, of any kind, fails with an ICMP error for an earlier datagram
///   (RFC 1122 4.1.3.3: `ConnectionRefused` and others), or because the shard had no memory. Transient
///   errors (network or host unreachable, hop limit exceeded) are reported only by
///   [`UdpSocket::take_error`].
/// - An unconnected socket never fails for earlier datagrams, because an error of one peer says nothing
///   about the others. [`UdpSocket::take_error`] reports what the shard found.
///
/// # Buffers
///
/// Up to 64 KiB wait on the way to the shard, and as much on the way from it. Further datagrams wait in
/// the shard's queues ([`UdpSocket::set_recv_buffer_size`]). Received datagrams that find this queue
/// full are dropped and counted (`UdpRcvbufErrors`).
///
/// # Shards
///
/// On a stack of several shards, all UDP sockets belong to the first.
///
/// # Not supported
///
/// Multicast and broadcast; calls that need them return an error.
pub struct UdpSocket {
    cell: Arc<UdpCell>,
    mailbox: Arc<Mailbox>,
}

/// Binding and connecting.
impl UdpSocket {
    /// Binds a socket to `addr`. Port 0 selects a free port. If `addr` resolves to several addresses,
    /// the first that is available is used. At `::` it also receives IPv4 datagrams, whose senders have
    /// IPv4 addresses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future releases the port.
    ///
    /// # Errors
    ///
    /// `AddrInUse`: another socket has the port, or no port is free. `AddrNotAvailable`: not an address
    /// of this stack. `Unsupported`: a multicast or broadcast address.
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
        // From here on, dropping `socket` releases the port.
        let cell = Arc::clone(&socket.cell);
        socket.ask(|answer| UdpRequest::Bind { cell, bind: Some(bind), answer }).await?;
        Ok(socket)
    }

    fn unbound(stack: &Stack, at: SocketAddr) -> io::Result<Self> {
        let mailbox = stack.mailboxes().first().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Self { cell: UdpCell::new(at), mailbox: Arc::clone(mailbox) })
    }

    /// Connects the socket to `addr`: it sends there by default, receives only from there, and reports
    /// ICMP errors for datagrams sent there. If `addr` resolves to several addresses, the first with a
    /// route is used.
    ///
    /// # Cancel safety
    ///
    /// After the future was dropped, the socket may be connected or not.
    ///
    /// # Errors
    ///
    /// `NetworkUnreachable` (no route), `AddrNotAvailable` (no local address of the peer's family),
    /// `InvalidInput` (port 0, not an address of a single host, or another family than the socket's),
    /// `Unsupported` (multicast or broadcast).
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

/// Properties and options.
impl UdpSocket {
    /// Returns the local address and port.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.cell.lock().local)
    }

    /// Returns the address and port that the socket is connected to.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.cell.lock().peer.ok_or_else(fault::udp_not_connected)
    }

    /// Returns the pending error, if no call has returned it yet.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.cell.lock().failure.take().map(|failure| failure.error))
    }

    /// Returns the time to live (IPv4) or hop limit (IPv6) of sent packets; 0 is the stack's default.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.cell.lock().options.hop_limit.unwrap_or_default().into())
    }

    /// Sets the time to live (IPv4) or hop limit (IPv6) of sent packets, 1 to 255. The default is the
    /// tunable `net.ipv4.ip_default_ttl`.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let hops = hop_limit(ttl)?;
        self.cell.lock().options.hop_limit = Some(hops);
        Ok(())
    }

    /// Returns the type of service of sent packets (`IP_TOS`), with the two ECN bits.
    pub fn tos_v4(&self) -> io::Result<u32> {
        Ok(self.cell.lock().options.class.0.into())
    }

    /// Sets the type of service of sent packets; only the low eight bits count. The two ECN bits are
    /// sent as given (RFC 8085 3.1.7).
    pub fn set_tos_v4(&self, tos: u32) -> io::Result<()> {
        self.cell.lock().options.class = TrafficClass(tos as u8);
        Ok(())
    }

    /// Returns the traffic class of sent packets (`IPV6_TCLASS`), the same field as
    /// [`UdpSocket::tos_v4`].
    pub fn tclass_v6(&self) -> io::Result<u32> {
        self.tos_v4()
    }

    /// Sets the traffic class of sent packets (0 to 255).
    pub fn set_tclass_v6(&self, tclass: u32) -> io::Result<()> {
        let class = u8::try_from(tclass).map_err(|_| fault::traffic_class(tclass))?;
        self.cell.lock().options.class = TrafficClass(class);
        Ok(())
    }

    /// Sets what happens to a datagram larger than the path's MTU: it is fragmented or fails with an
    /// error (Linux' `IP_MTU_DISCOVER`). Not in tokio.
    pub fn set_fragmenting(&self, fragmenting: Fragmenting) -> io::Result<()> {
        self.cell.lock().options.fragmenting = fragmenting;
        Ok(())
    }

    /// Sets the size of the shard's receive queue in bytes, overhead of each datagram included: 2 KiB
    /// to `buffers.recv.max`, by default 208 KiB. Not in tokio; the name is socket2's.
    pub fn set_recv_buffer_size(&self, size: usize) -> io::Result<()> {
        self.set(|state| state.sizes.recv = Some(size))
    }

    /// Sets the size of the shard's send queue in bytes: 2 KiB to `buffers.send.max`, by default 208
    /// KiB. Not in tokio; the name is socket2's.
    pub fn set_send_buffer_size(&self, size: usize) -> io::Result<()> {
        self.set(|state| state.sizes.send = Some(size))
    }

    /// Returns `false`: see [`UdpSocket::set_broadcast`].
    pub fn broadcast(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// # Errors
    ///
    /// `Unsupported` if `on` is true: this stack sends to single hosts only.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        if on { Err(fault::no_groups("broadcast")) } else { Ok(()) }
    }

    /// # Errors
    ///
    /// Always `Unsupported`: this stack joins no multicast group.
    pub fn join_multicast_v4(&self, multiaddr: Ipv4Addr, _interface: Ipv4Addr) -> io::Result<()> {
        Err(fault::no_groups(&format!("multicast group {multiaddr}")))
    }

    /// # Errors
    ///
    /// Always `Unsupported`: this stack joins no multicast group.
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
    /// Datagrams that were sent still leave.
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
        // A waker runs the executor's code, which may lock this cell, so it is not dropped under the
        // lock.
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

/// Converts `addr`; IPv4-mapped addresses become IPv4.
fn endpoint(addr: SocketAddr) -> Endpoint {
    Endpoint::new(addr.ip().to_canonical().into(), addr.port())
}
