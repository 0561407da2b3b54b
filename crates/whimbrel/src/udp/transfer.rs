//! Sending and receiving datagrams.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::BufMut;
use tokio::io::{Interest, ReadBuf};
use tokio::net::{ToSocketAddrs, lookup_host};
use whimbrel_stack::SendTo;
use whimbrel_udp::Received;

use super::{UdpSocket, endpoint};
use crate::fault;
use crate::ways::check_family;

/// Receiving. Bytes of a datagram that do not fit the buffer are lost, as with tokio.
impl UdpSocket {
    /// Waits for the next datagram from any sender.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.async_io(RECEIVING, || self.try_recv(buf)).await
    }

    /// Polls for the next datagram. If several tasks poll, only the latest is woken.
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, RECEIVING, |it| it.take(|data| fill(buf, data)).map(|_| ()))
    }

    /// Receives the next datagram, if one waits.
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.take(|data| copy(buf, data)).map(|(len, _)| len)
    }

    /// Waits for the next datagram and appends it to `buf`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.async_io(RECEIVING, || self.try_recv_buf(buf)).await
    }

    /// Appends the next datagram to `buf`, if one waits.
    pub fn try_recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.try_recv_buf_from(buf).map(|(len, _)| len)
    }

    /// Waits for the next datagram, appends it to `buf` and returns its sender.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.async_io(RECEIVING, || self.try_recv_buf_from(buf)).await
    }

    /// Appends the next datagram to `buf` and returns its sender, if one waits.
    pub fn try_recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.take(|data| {
            let len = data.len().min(buf.chunk_mut().len());
            buf.put_slice(data.split_at(len).0);
            len
        })
    }

    /// Waits for the next datagram and returns its sender.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.async_io(RECEIVING, || self.try_recv_from(buf)).await
    }

    /// Polls for the next datagram and its sender. If several tasks poll, only the latest is woken.
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.poll_with(cx, RECEIVING, |it| it.take(|data| fill(buf, data)).map(|(_, from)| from))
    }

    /// Receives the next datagram and returns its sender, if one waits.
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.take(|data| copy(buf, data))
    }

    /// Waits for the next datagram and returns it without copying, with its sender, its destination and
    /// the fields of its packet (RFC 1122 4.1.3.5). Not in tokio.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn recv_datagram(&self) -> io::Result<Received> {
        self.async_io(RECEIVING, || self.try_recv_datagram()).await
    }

    /// Returns the next datagram without copying, if one waits.
    pub fn try_recv_datagram(&self) -> io::Result<Received> {
        let taken = self.cell.lock().take_first()?;
        self.do_post(taken.post);
        Ok(taken.received)
    }

    fn take(&self, copy: impl FnOnce(&[u8]) -> usize) -> io::Result<(usize, SocketAddr)> {
        let received = self.try_recv_datagram()?;
        Ok((copy(&received.data), received.from.into()))
    }
}

/// Peeking at the next datagram, which stays in the queue.
impl UdpSocket {
    /// Waits for the next datagram and copies it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.async_io(RECEIVING, || self.try_peek(buf)).await
    }

    /// Polls for a copy of the next datagram. If several tasks poll, only the latest is woken.
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, RECEIVING, |it| it.look(|data| fill(buf, data)).map(|_| ()))
    }

    /// Copies the next datagram, if one waits.
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.look(|data| copy(buf, data)).map(|(len, _)| len)
    }

    /// Waits for the next datagram, copies it and returns its sender.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.async_io(RECEIVING, || self.try_peek_from(buf)).await
    }

    /// Polls for a copy of the next datagram and its sender. If several tasks poll, only the latest is
    /// woken.
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.poll_with(cx, RECEIVING, |it| it.look(|data| fill(buf, data)).map(|(_, from)| from))
    }

    /// Copies the next datagram and returns its sender, if one waits.
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.look(|data| copy(buf, data))
    }

    /// Waits for the next datagram and returns its sender.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no datagram.
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        self.async_io(RECEIVING, || self.try_peek_sender()).await
    }

    /// Polls for the sender of the next datagram. If several tasks poll, only the latest is woken.
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.poll_with(cx, RECEIVING, Self::try_peek_sender)
    }

    /// Returns the sender of the next datagram, if one waits.
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.look(|_| 0).map(|(_, from)| from)
    }

    fn look(&self, copy: impl FnOnce(&[u8]) -> usize) -> io::Result<(usize, SocketAddr)> {
        let mut state = self.cell.lock();
        let first = state.first()?;
        Ok((copy(&first.data), first.from.into()))
    }
}

/// Sending; a datagram is sent as a whole or not at all.
impl UdpSocket {
    /// Sends to the connected peer.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing is sent.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.async_io(Interest::WRITABLE, || self.try_send(buf)).await
    }

    /// Polls to send to the connected peer. If several tasks poll, only the latest is woken.
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(cx, Interest::WRITABLE, |it| it.try_send(buf))
    }

    /// Sends to the connected peer, if there is room in the queue.
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.try_send_datagram(buf, &SendTo::CONNECTED)
    }

    /// Sends to `target`, or to its first address if it resolves to several.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing is sent.
    ///
    /// # Errors
    ///
    /// `InvalidInput` (too long, port 0, not an address of a single host, or another family than the
    /// socket's), `Unsupported` (multicast or broadcast), `NetworkUnreachable` (no route). Connected
    /// sockets also return errors of earlier datagrams (see [`UdpSocket`]).
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], target: A) -> io::Result<usize> {
        let target = lookup_host(target).await?.next().ok_or_else(fault::no_address)?;
        self.async_io(Interest::WRITABLE, || self.try_send_to(buf, target)).await
    }

    /// Polls to send to `target`. If several tasks poll, only the latest is woken.
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, Interest::WRITABLE, |it| it.try_send_to(buf, target))
    }

    /// Sends to `target`, if there is room in the queue.
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.try_send_datagram(buf, &SendTo::peer(endpoint(target)))
    }

    /// Sends `buf` with the destination, source and packet fields of `send` (RFC 1122 4.1.3.5, 4.1.4).
    /// With [`SendTo::segment`] it sends many datagrams of that many bytes each (Linux' `UDP_SEGMENT`,
    /// with GSO where the device has it). Not in tokio.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing is sent.
    pub async fn send_datagram(&self, buf: &[u8], send: &SendTo) -> io::Result<usize> {
        self.async_io(Interest::WRITABLE, || self.try_send_datagram(buf, send)).await
    }

    /// Sends as `send_datagram`, if there is room in the queue.
    pub fn try_send_datagram(&self, buf: &[u8], send: &SendTo) -> io::Result<usize> {
        // The shard is woken without the lock: it may exchange at once, on another thread.
        let post = {
            let mut state = self.cell.lock();
            let peer = state.peer.map(endpoint);
            let to = send.to.or(peer).ok_or_else(fault::udp_no_destination)?;
            let options = send.options.unwrap_or(state.options);
            check_family(state.local, to)?;
            let whole = self.mailbox.ways().judge(&mut state.judged, to)?;
            send.judge_size(buf.len(), to.addr.family(), options.fragmenting, || whole)
                .map_err(fault::udp)?;
            let mut complete = send.with_options(options);
            complete.to = Some(to);
            state.leave(buf, complete)?
        };
        self.do_post(post);
        Ok(buf.len())
    }
}

fn copy(buf: &mut [u8], data: &[u8]) -> usize {
    let len = buf.len().min(data.len());
    buf.split_at_mut(len).0.copy_from_slice(data.split_at(len).0);
    len
}

fn fill(buf: &mut ReadBuf<'_>, data: &[u8]) -> usize {
    let len = buf.remaining().min(data.len());
    buf.put_slice(data.split_at(len).0);
    len
}

/// Events that a receiving call waits for.
const RECEIVING: Interest = Interest::READABLE.add(Interest::ERROR);
