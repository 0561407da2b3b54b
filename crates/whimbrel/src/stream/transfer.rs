//! Reading and writing.

use std::io::{self, IoSlice, IoSliceMut};
use std::pin::Pin;
use std::sync::MutexGuard;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop::poll_proceed;

use super::TcpStream;
use crate::cell::{Readable, StreamState};
use crate::exchange::NO_CHUNK;
use crate::fault;

/// Calls that never wait but fail with `WouldBlock`.
impl TcpStream {
    /// Reads the available data; returns 0 at the end of the stream.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let mut room = ReadBuf::new(buf);
        at_once(self.read(room.remaining(), None, |bytes| room.put_slice(bytes)))
    }

    /// Reads the available data into several buffers, one after the other.
    pub fn try_read_vectored(&self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let most = bufs.iter().map(|buf| buf.len()).sum();
        let mut rooms = bufs.iter_mut().map(|buf| ReadBuf::new(buf));
        let mut room = ReadBuf::new(&mut []);
        at_once(self.read(most, None, |mut bytes| {
            while !bytes.is_empty() {
                let (now, later) = bytes.split_at(bytes.len().min(room.remaining()));
                room.put_slice(now);
                bytes = later;
                if room.remaining() == 0 {
                    let Some(next) = rooms.next() else { break };
                    room = next;
                }
            }
        }))
    }

    /// Reads the available data into the spare room of `buf`.
    pub fn try_read_buf<B: BufMut>(&self, buf: &mut B) -> io::Result<usize> {
        let most = buf.chunk_mut().len();
        at_once(self.read(most, None, |bytes| buf.put_slice(bytes)))
    }

    /// Writes as much as there is room for.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
        at_once(self.write(&[IoSlice::new(buf)], None))
    }

    /// Writes as much of several buffers as there is room for.
    pub fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        at_once(self.write(bufs, None))
    }
}

/// Peeking: the data stay for the next read.
impl TcpStream {
    /// Waits until data is available and copies it. Returns 0 at the end of the stream.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            self.readable().await?;
            if let Poll::Ready(result) = self.look(buf, None) {
                return result;
            }
        }
    }

    /// Polls for a copy of the available data. If several tasks poll, only the latest is woken.
    pub fn poll_peek(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let coop = ready!(poll_proceed(cx));
        let len = ready!(self.look(buf.initialize_unfilled(), Some(cx)))?;
        coop.made_progress();
        buf.advance(len);
        Poll::Ready(Ok(len))
    }

    fn look(&self, buf: &mut [u8], cx: Option<&Context<'_>>) -> Poll<io::Result<usize>> {
        self.once_readable(cx, |state| state.peek(buf))
    }
}

impl TcpStream {
    /// Passes up to `most` bytes to `put`, piece by piece. Copying happens outside of the lock, which the
    /// shard may need. As on Linux, a reader with an empty buffer also waits until data is available.
    fn read(
        &self,
        most: usize,
        cx: Option<&Context<'_>>,
        mut put: impl FnMut(&[u8]),
    ) -> Poll<io::Result<usize>> {
        let (mut done, mut chunks) = (0, [NO_CHUNK; CHUNKS]);
        let mut count = ready!(self.take(most, cx, &mut chunks))?;
        loop {
            for chunk in chunks.iter_mut().take(count).map(std::mem::take) {
                put(&chunk);
                done += chunk.len();
            }
            // Fewer chunks than there was room for: the cell was empty, and another look would cost a
            // lock.
            if count < CHUNKS || done == most {
                return Poll::Ready(Ok(done));
            }
            // Takes only data: an error is for the next read.
            count = self.take_chunks(self.cell.lock(), most - done, &mut chunks);
        }
    }

    /// Takes chunks of up to `most` bytes out of the cell. Returns how many; 0 at the end of the
    /// stream.
    fn take(
        &self,
        most: usize,
        cx: Option<&Context<'_>>,
        chunks: &mut [Bytes; CHUNKS],
    ) -> Poll<io::Result<usize>> {
        self.once_readable(cx, |state| self.take_chunks(state, most, chunks))
    }

    /// Returns the result of `read` when data is available, 0 at the end; registers `cx` otherwise.
    fn once_readable(
        &self,
        cx: Option<&Context<'_>>,
        read: impl FnOnce(MutexGuard<'_, StreamState>) -> usize,
    ) -> Poll<io::Result<usize>> {
        let mut replaced = None;
        let mut state = self.cell.lock();
        let result = match state.readable() {
            Readable::Data => return Poll::Ready(Ok(read(state))),
            Readable::End => Poll::Ready(state.end()),
            Readable::Pending => {
                replaced = cx.and_then(|cx| state.readers.register(cx.waker()));
                Poll::Pending
            }
        };
        // A replaced waker is dropped outside of the lock, because that runs the executor's code.
        drop(state);
        drop(replaced);
        result
    }

    fn take_chunks(
        &self,
        mut state: MutexGuard<'_, StreamState>,
        most: usize,
        chunks: &mut [Bytes; CHUNKS],
    ) -> usize {
        let count = state.take_outward(most, chunks);
        let post = state.return_credit();
        drop(state);
        self.do_post(post);
        count
    }

    /// Copies the first bytes of `bufs` into the cell, as many as there is room for.
    fn write(&self, bufs: &[IoSlice<'_>], cx: Option<&Context<'_>>) -> Poll<io::Result<usize>> {
        let all: usize = bufs.iter().map(|buf| buf.len()).sum();
        let mut replaced = None;
        let mut state = self.cell.lock();
        let room = state.room();
        if matches!(room, Ok(0)) && all > 0 {
            replaced = cx.and_then(|cx| state.writers.register(cx.waker()));
        }
        drop(state);
        drop(replaced);
        // Another task may take some of this room first: each write may exceed the limit once.
        let take = room?.min(all);
        if take == 0 && all > 0 {
            return Poll::Pending;
        }
        // Copied before the cell is locked, because the shard may need it.
        let chunk = gather(bufs, take);
        let post = self.cell.lock().leave(chunk);
        self.do_post(post);
        Poll::Ready(Ok(take))
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_read_by_ref(cx, buf)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_by_ref(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_by_ref(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Returns at once: written data is queued already.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Succeeds on a connection that has failed, as tokio's does: the next read or write reports it.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut_down();
        Poll::Ready(Ok(()))
    }
}

/// Used by the halves, which share a stream.
impl TcpStream {
    pub(crate) fn poll_read_by_ref(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let coop = ready!(poll_proceed(cx));
        ready!(self.read(buf.remaining(), Some(cx), |bytes| buf.put_slice(bytes)))?;
        coop.made_progress();
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_write_by_ref(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let coop = ready!(poll_proceed(cx));
        let len = ready!(self.write(bufs, Some(cx)))?;
        coop.made_progress();
        Poll::Ready(Ok(len))
    }
}

fn gather(bufs: &[IoSlice<'_>], len: usize) -> Bytes {
    if let [only] = bufs {
        // One allocation of the exact size; a growing buffer would be cut again.
        return Bytes::copy_from_slice(only.split_at(len).0);
    }
    let mut chunk = BytesMut::with_capacity(len);
    for buf in bufs {
        let take = buf.len().min(len - chunk.len());
        chunk.extend_from_slice(buf.split_at(take).0);
    }
    chunk.freeze()
}

fn at_once<T>(result: Poll<io::Result<T>>) -> io::Result<T> {
    match result {
        Poll::Ready(result) => result,
        Poll::Pending => Err(fault::would_block()),
    }
}

/// Number of chunks taken under one lock.
const CHUNKS: usize = 16;
