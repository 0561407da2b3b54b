//! Datagrams in and out.

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

/// Receiving. What of a datagram does not fit the buffer is lost, as it is with tokio's.
impl UdpSocket {
    /// The next datagram, from whomever it comes. Dropping the future loses none.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.async_io(RECEIVING, || self.try_recv(buf)).await
    }

    /// The same, if there is one. Of several tasks that poll, only the latest is woken.
    pub fn poll_recv(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, RECEIVING, |it| it.take(|data| fill(buf, data)).map(|_| ()))
    }

    /// The next datagram, if there is one.
    pub fn try_recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.take(|data| copy(buf, data)).map(|(len, _)| len)
    }

    /// The next datagram, behind what `buf` has.
    pub async fn recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.async_io(RECEIVING, || self.try_recv_buf(buf)).await
    }

    /// The same, if there is one.
    pub fn try_recv_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        self.try_recv_buf_from(buf).map(|(len, _)| len)
    }

    /// The next datagram, behind what `buf` has, and who sent it.
    pub async fn recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.async_io(RECEIVING, || self.try_recv_buf_from(buf)).await
    }

    /// The same, if there is one.
    pub fn try_recv_buf_from<B: BufMut>(&self, buf: &mut B) -> io::Result<(usize, SocketAddr)> {
        self.take(|data| {
            let len = data.len().min(buf.chunk_mut().len());
            buf.put_slice(data.split_at(len).0);
            len
        })
    }

    /// The next datagram, and who sent it. Dropping the future loses none.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.async_io(RECEIVING, || self.try_recv_from(buf)).await
    }

    /// The same, if there is one. Of several tasks that poll, only the latest is woken.
    pub fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.poll_with(cx, RECEIVING, |it| it.take(|data| fill(buf, data)).map(|(_, from)| from))
    }

    /// The next datagram, and who sent it, if there is one.
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.take(|data| copy(buf, data))
    }

    /// The next datagram as it came: uncopied, with who sent it, to which address of the stack's, and
    /// what its packet said (RFC 1122 4.1.3.5). Tokio has no such method.
    pub async fn recv_datagram(&self) -> io::Result<Received> {
        self.async_io(RECEIVING, || self.try_recv_datagram()).await
    }

    /// The same, if there is one.
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

/// Looking at what will be received next.
impl UdpSocket {
    /// The next datagram; it stays.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.async_io(RECEIVING, || self.try_peek(buf)).await
    }

    /// The same, if there is one. Of several tasks that poll, only the latest is woken.
    pub fn poll_peek(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.poll_with(cx, RECEIVING, |it| it.look(|data| fill(buf, data)).map(|_| ()))
    }

    /// The next datagram, if there is one; it stays.
    pub fn try_peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.look(|data| copy(buf, data)).map(|(len, _)| len)
    }

    /// The next datagram, and who sent it; it stays.
    pub async fn peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.async_io(RECEIVING, || self.try_peek_from(buf)).await
    }

    /// The same, if there is one. Of several tasks that poll, only the latest is woken.
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        self.poll_with(cx, RECEIVING, |it| it.look(|data| fill(buf, data)).map(|(_, from)| from))
    }

    /// The next datagram, and who sent it, if there is one; it stays.
    pub fn try_peek_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.look(|data| copy(buf, data))
    }

    /// Who sent the next datagram; it stays.
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        self.async_io(RECEIVING, || self.try_peek_sender()).await
    }

    /// The same, if there is one. Of several tasks that poll, only the latest is woken.
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.poll_with(cx, RECEIVING, Self::try_peek_sender)
    }

    /// Who sent the next datagram, if there is one; it stays.
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.look(|_| 0).map(|(_, from)| from)
    }

    fn look(&self, copy: impl FnOnce(&[u8]) -> usize) -> io::Result<(usize, SocketAddr)> {
        let mut state = self.cell.lock();
        let first = state.first()?;
        Ok((copy(&first.data), first.from.into()))
    }
}

/// Sending, whole or not at all.
impl UdpSocket {
    /// Sends to whom the socket is connected to. Dropping the future before it is done sends nothing.
    pub async fn send(&self, buf: &[u8]) -> io::Result<usize> {
        self.async_io(Interest::WRITABLE, || self.try_send(buf)).await
    }

    /// The same, if there is room. Of several tasks that poll, only the latest is woken.
    pub fn poll_send(&self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_with(cx, Interest::WRITABLE, |it| it.try_send(buf))
    }

    /// Sends to whom the socket is connected to, if there is room.
    pub fn try_send(&self, buf: &[u8]) -> io::Result<usize> {
        self.try_send_datagram(buf, &SendTo::CONNECTED)
    }

    /// Sends to `target`; if that has several addresses, to the first.
    ///
    /// # Errors
    ///
    /// `InvalidInput` (too long; port 0 or no address of one host; another family than the socket's),
    /// `Unsupported` (a group of hosts), `NetworkUnreachable` (no route); of a connected socket also what was
    /// heard of what it sent before (see [`UdpSocket`]).
    pub async fn send_to<A: ToSocketAddrs>(&self, buf: &[u8], target: A) -> io::Result<usize> {
        let target = lookup_host(target).await?.next().ok_or_else(fault::no_address)?;
        self.async_io(Interest::WRITABLE, || self.try_send_to(buf, target)).await
    }

    /// The same, if there is room. Of several tasks that poll, only the latest is woken.
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        target: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, Interest::WRITABLE, |it| it.try_send_to(buf, target))
    }

    /// Sends to `target`, if there is room.
    pub fn try_send_to(&self, buf: &[u8], target: SocketAddr) -> io::Result<usize> {
        self.try_send_datagram(buf, &SendTo::peer(endpoint(target)))
    }

    /// Sends as `send` says: to whom, from which address of the stack's, and what the packets say (RFC
    /// 1122 4.1.3.5, 4.1.4); many datagrams at once, of [`SendTo::segment`] bytes each (Linux' `UDP_SEGMENT`,
    /// with GSO where the device has it). Tokio has no such method.
    pub async fn send_datagram(&self, buf: &[u8], send: &SendTo) -> io::Result<usize> {
        self.async_io(Interest::WRITABLE, || self.try_send_datagram(buf, send)).await
    }

    /// The same, if there is room.
    pub fn try_send_datagram(&self, buf: &[u8], send: &SendTo) -> io::Result<usize> {
        // The shard is woken without the lock: it may be exchanging at once, on another thread.
        let post = {
            let mut state = self.cell.lock();
            let peer = state.peer.map(endpoint);
            let to = send.to.or(peer).ok_or_else(fault::udp_no_destination)?;
            let options = send.options.unwrap_or(state.options);
            check_family(state.local, to)?;
            let whole = self.mailbox.ways().judge(&mut state.judged, to)?;
            send.judge_size(buf.len(), to.addr.family(), options.fragmenting, || whole)
                .map_err(fault::udp)?;
            state.leave(buf, SendTo { to: Some(to), options: Some(options), ..*send })?
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

/// What a call that receives waits for.
const RECEIVING: Interest = Interest::READABLE.add(Interest::ERROR);
