//! The bytes of a connection, between a transport that polls and a protocol that is polled.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes, BytesMut};
use hyper::rt::{Read, ReadBufCursor, Write};

/// The end of the pipe that the protocol reads and writes.
pub(super) struct Pipe(Rc<RefCell<Ends>>);

/// The end of the pipe that the transport is served from.
pub(super) struct Near(Rc<RefCell<Ends>>);

#[derive(Default)]
struct Ends {
    input: Bytes,
    ended: bool,
    fed: bool,
    output: BytesMut,
    /// Wakers of the reader and of the writer.
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// A pipe without bytes.
pub(super) fn pair() -> (Near, Pipe) {
    let ends = Rc::new(RefCell::new(Ends::default()));
    (Near(Rc::clone(&ends)), Pipe(ends))
}

impl Near {
    /// True if all input was read, and more may come.
    pub(super) fn wants_input(&self) -> bool {
        let ends = self.0.borrow();
        ends.input.is_empty() && !ends.ended
    }

    /// True if input came since the last call: more may have come meanwhile.
    pub(super) fn was_fed(&self) -> bool {
        std::mem::take(&mut self.0.borrow_mut().fed)
    }

    /// Gives the protocol bytes that came.
    pub(super) fn give(&self, bytes: Bytes) {
        let mut ends = self.0.borrow_mut();
        ends.input = bytes;
        ends.fed = true;
        wake(&mut ends.reader);
    }

    /// Signals the end of input to the protocol.
    pub(super) fn end(&self) {
        let mut ends = self.0.borrow_mut();
        ends.ended = true;
        ends.fed = true;
        wake(&mut ends.reader);
    }

    /// True if there is output.
    pub(super) fn has_output(&self) -> bool {
        !self.0.borrow().output.is_empty()
    }

    /// Bytes that wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.0.borrow().output.len()
    }

    /// Takes the output.
    pub(super) fn take_output(&self) -> Bytes {
        let mut ends = self.0.borrow_mut();
        wake(&mut ends.writer);
        ends.output.split().freeze()
    }
}

impl Read for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut ends = self.0.borrow_mut();
        if ends.input.is_empty() && !ends.ended {
            ends.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let count = room.remaining().min(ends.input.len());
        room.put_slice(ends.input.get(..count).unwrap_or_default());
        ends.input.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl Write for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut ends = self.0.borrow_mut();
        let count = bytes.len().min(MOST.saturating_sub(ends.output.len()));
        if count == 0 && !bytes.is_empty() {
            ends.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        ends.output.extend_from_slice(bytes.get(..count).unwrap_or_default());
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn wake(waiting: &mut Option<Waker>) {
    if let Some(waker) = waiting.take() {
        waker.wake();
    }
}

/// The most bytes that wait for the transport.
const MOST: usize = 32 << 10;
