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
    /// Binds a socket that receives every datagram without another socket: at all ports of the stack's
    /// addresses and, with [`any_address`](crate::StackBuilder::any_address), of all other addresses. A
    /// stack has at most one. Without one, such datagrams are answered with port unreachable.
    ///
    /// ```
    /// use std::io;
    /// use whimbrel::{AnyUdpSocket, Stack, UdpSocket, Unreachable, mem_wire};
    ///
    /// /// Our resolver answers all DNS queries, for any server; other datagrams are refused.
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
    /// # let client = Stack::builder().mem(inner).address("10.0.0.2", 24)?;
    /// # let client = client.route(whimbrel::Route::default_via("10.0.0.1".parse()?)).build()?;
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
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket.
    ///
    /// # Errors
    ///
    /// `AddrInUse`: the stack has one already.
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
/// Each datagram has its sender ([`Received::from`]) and its destination ([`Received::to`]); both are
/// given again when sending. All datagrams wait in one queue, whose size is set by
/// [`set_recv_buffer_size`](AnyUdpSocket::set_recv_buffer_size). Datagrams that find it full are
/// dropped and counted as [`rcvbuf_errors`](crate::UdpCounters::rcvbuf_errors).
pub struct AnyUdpSocket(UdpSocket);

impl AnyUdpSocket {
    /// Waits for the next datagram and returns it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    ///
    /// # Errors
    ///
    /// `NotConnected`: the stack has ended, for the reason in the message.
    pub async fn recv(&self) -> io::Result<Received> {
        self.0.recv_datagram().await
    }

    /// Returns the next datagram, if one waits.
    pub fn try_recv(&self) -> io::Result<Received> {
        self.0.try_recv_datagram()
    }

    /// Polls for the next datagram. If several tasks poll, only the latest is woken.
    pub fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<io::Result<Received>> {
        self.0.poll_with(cx, Interest::READABLE.add(Interest::ERROR), UdpSocket::try_recv_datagram)
    }

    /// Answers a datagram: sends `buf` to its sender from the address it was sent to.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing is sent.
    ///
    /// # Errors
    ///
    /// As [`send`](AnyUdpSocket::send).
    pub async fn answer(&self, received: &Received, buf: &[u8]) -> io::Result<()> {
        self.send_datagram(buf, &SendTo::answer(received)).await
    }

    /// Sends to `to` from `from`, which is any source address that the stack may use.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing is sent.
    ///
    /// # Errors
    ///
    /// `InvalidInput` (too long, port 0, or not an address of a single host), `Unsupported` (multicast
    /// or broadcast), `NetworkUnreachable` (no route), `NotConnected` (the stack has ended). Errors
    /// that only the shard finds (`from` is not an address of the stack) are reported by
    /// [`take_error`](AnyUdpSocket::take_error), because a server does not fail for one of its clients.
    pub async fn send(&self, buf: &[u8], from: SocketAddr, to: SocketAddr) -> io::Result<()> {
        self.send_datagram(buf, &between(from, to)).await
    }

    /// Sends to `to` from `from`, if there is room in the queue.
    pub fn try_send(&self, buf: &[u8], from: SocketAddr, to: SocketAddr) -> io::Result<()> {
        self.0.try_send_datagram(buf, &between(from, to)).map(drop)
    }

    /// Sends `buf` with the destination, source and packet fields of `send`.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing is sent.
    ///
    /// # Errors
    ///
    /// As [`send`](AnyUdpSocket::send).
    pub async fn send_datagram(&self, buf: &[u8], send: &SendTo) -> io::Result<()> {
        self.0.send_datagram(buf, send).await.map(drop)
    }

    /// Reports to the sender of `received` that its destination is unreachable: [`Unreachable::Port`]
    /// as the destination would, other errors as a router would. The limit of 1,000 ICMP errors a
    /// second includes it; beyond the limit nothing is sent.
    pub fn refuse(&self, received: &Received, what: Unreachable) {
        let request = UdpRequest::Refuse { received: received.clone(), what };
        self.0.mailbox.ask(Request::Udp(request));
    }

    /// Returns the last error of sending, if no call has returned it yet.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    /// Sets the size of the shard's receive queue in bytes: see [`UdpSocket::set_recv_buffer_size`].
    pub fn set_recv_buffer_size(&self, size: usize) -> io::Result<()> {
        self.0.set_recv_buffer_size(size)
    }

    /// Sets the size of the shard's send queue in bytes: see [`UdpSocket::set_send_buffer_size`].
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
    SendTo::peer(endpoint(to)).with_source(from.addr).with_source_port(from.port)
}
