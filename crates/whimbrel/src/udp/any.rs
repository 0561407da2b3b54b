//! A UDP socket for any destination.

use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::Interest;
use whimbrel_stack::SendTo;
use whimbrel_udp::Received;

use super::{UdpSocket, endpoint};
use crate::mailbox::Request;
use crate::udp_port::UdpRequest;
use crate::{Stack, Unreachable};

impl UdpSocket {
    /// Receives whatever datagram finds no other socket: at every port of the stack's addresses, and with
    /// [`any_address`](crate::StackBuilder::any_address) at every port of all others. There is one such socket
    /// a stack. Without one, datagrams for any destination are answered as by a host where nobody has the port.
    ///
    /// ```
    /// use std::io;
    /// use whimbrel::{AnyUdpSocket, Stack, UdpSocket, Unreachable, mem_wire};
    ///
    /// /// Names are asked of a server of ours, whomever they were asked of; nothing else gets through.
    /// async fn intercept(socket: AnyUdpSocket) -> io::Result<()> {
    ///     loop {
    ///         let query = socket.recv().await?;
    ///         match query.to.port {
    ///             53 => {
    ///                 let answer = look_up(&query.data).await;
    ///                 socket.answer(&query, &answer).await?;
    ///             }
    ///             _ => socket.refuse(&query, Unreachable::Port),
    ///         }
    ///     }
    /// }
    ///
    /// # async fn look_up(query: &[u8]) -> Vec<u8> {
    /// #     query.to_ascii_uppercase()
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (inner, outer) = mem_wire(Default::default(), Default::default(), 1)?;
    /// let gateway = Stack::builder().mem(outer).address("10.0.0.1", 24)?.any_address().build()?;
    /// tokio::spawn(intercept(UdpSocket::bind_any(&gateway).await?));
    /// # let route = whimbrel::Route {
    /// #     network: whimbrel::Address::from_v4_octets([0; 4]),
    /// #     prefix_len: 0,
    /// #     gateway: None,
    /// #     metric: 0,
    /// #     metrics: Default::default(),
    /// # };
    /// # let client = Stack::builder().mem(inner).address("10.0.0.2", 24)?.route(route).build()?;
    /// # let asks = UdpSocket::bind(&client, "0.0.0.0:0").await?;
    /// # asks.connect("192.0.2.7:53").await?;
    /// # asks.send(b"whimbrel").await?;
    /// # let mut heard = [0; 8];
    /// # asks.recv(&mut heard).await?;
    /// # assert_eq!(&heard, b"WHIMBREL");
    /// # asks.connect("192.0.2.7:54").await?;
    /// # asks.send(b"whimbrel").await?;
    /// # let refused = asks.recv(&mut heard).await.unwrap_err();
    /// # assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `AddrInUse`: there is one already.
    pub async fn bind_any(stack: &Stack) -> io::Result<AnyUdpSocket> {
        let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        let socket = Self::unbound(stack, everywhere)?;
        let cell = Arc::clone(&socket.cell);
        socket.ask(|answer| UdpRequest::Bind { cell, bind: None, answer }).await?;
        Ok(AnyUdpSocket(socket))
    }
}

/// A UDP socket for any destination, made by [`UdpSocket::bind_any`].
///
/// Each datagram says who sent it ([`Received::from`]) and whom it was for ([`Received::to`]); what is sent says
/// the same of itself. All wait in one queue, of the size that
/// [`set_recv_buffer_size`](AnyUdpSocket::set_recv_buffer_size) gives it; what finds it full is dropped, and
/// counted as [`rcvbuf_errors`](crate::UdpCounters::rcvbuf_errors).
pub struct AnyUdpSocket(UdpSocket);

impl AnyUdpSocket {
    /// The next datagram. Dropping the future loses none.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, and why.
    pub async fn recv(&self) -> io::Result<Received> {
        self.0.recv_datagram().await
    }

    /// The same, if there is one.
    pub fn try_recv(&self) -> io::Result<Received> {
        self.0.try_recv_datagram()
    }

    /// The same. Of several tasks that poll, only the latest is woken.
    pub fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<io::Result<Received>> {
        self.0.poll_with(cx, Interest::READABLE.add(Interest::ERROR), UdpSocket::try_recv_datagram)
    }

    /// Answers a datagram: its sender receives `buf` from where it had sent it to.
    ///
    /// # Errors
    ///
    /// As [`send`](AnyUdpSocket::send).
    pub async fn answer(&self, received: &Received, buf: &[u8]) -> io::Result<()> {
        self.send_datagram(buf, &SendTo::answer(received)).await
    }

    /// Sends to `to`, from whatever `from` the stack speaks for.
    ///
    /// # Errors
    ///
    /// `InvalidInput` (too long; port 0, or no address of one host), `Unsupported` (a group of hosts),
    /// `NetworkUnreachable` (no route), `NotConnected` (the stack has ended). What only the shard finds out of
    /// a datagram (`from` is no address of the stack) only [`take_error`](AnyUdpSocket::take_error) tells: a server of
    /// many does not fail for one of them.
    pub async fn send(&self, buf: &[u8], from: SocketAddr, to: SocketAddr) -> io::Result<()> {
        self.send_datagram(buf, &between(from, to)).await
    }

    /// The same, if there is room.
    pub fn try_send(&self, buf: &[u8], from: SocketAddr, to: SocketAddr) -> io::Result<()> {
        self.0.try_send_datagram(buf, &between(from, to)).map(drop)
    }

    /// Sends as `send` says: to whom, from where, and what the packets say beside that.
    ///
    /// # Errors
    ///
    /// As [`send`](AnyUdpSocket::send).
    pub async fn send_datagram(&self, buf: &[u8], send: &SendTo) -> io::Result<()> {
        self.0.send_datagram(buf, send).await.map(drop)
    }

    /// Says to who sent `received` that where it was for cannot be reached: [`Unreachable::Port`] as its
    /// receiver would, others as a router on the way. It counts against what a host may send of these, 1,000 a
    /// second; beyond that nothing is said.
    pub fn refuse(&self, received: &Received, what: Unreachable) {
        let request = UdpRequest::Refuse { received: received.clone(), what };
        self.0.mailbox.ask(Request::Udp(request));
    }

    /// What went wrong last with what was sent, if nobody was told yet.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    /// How many bytes may wait in the shard to be received: see [`UdpSocket::set_recv_buffer_size`].
    pub fn set_recv_buffer_size(&self, size: usize) -> io::Result<()> {
        self.0.set_recv_buffer_size(size)
    }

    /// How many bytes may wait in the shard to be sent: see [`UdpSocket::set_send_buffer_size`].
    pub fn set_send_buffer_size(&self, size: usize) -> io::Result<()> {
        self.0.set_send_buffer_size(size)
    }
}

impl fmt::Debug for AnyUdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyUdpSocket").finish_non_exhaustive()
    }
}

fn between(from: SocketAddr, to: SocketAddr) -> SendTo {
    let from = endpoint(from);
    let (source, source_port) = (Some(from.addr), Some(from.port));
    SendTo { source, source_port, ..SendTo::peer(endpoint(to)) }
}
