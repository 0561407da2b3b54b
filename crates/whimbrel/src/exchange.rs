//! The shard's side of a stream's cell, on the shard's thread.

use std::task::Waker;

use bytes::Bytes;
use whimbrel_stack::shard::SendError;
use whimbrel_stack::{Handle, Recv, Shard};
use whimbrel_tcp::CloseReason;

use crate::cell::{Flags, StreamState};
use crate::fault;

/// Future of a cell at its shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum CellDisposition {
    /// The shard keeps the cell.
    Kept,
    /// The shard keeps it while sent data leaves; then the connection is reset.
    Resetting,
    /// The stream has ended on both sides.
    Parted,
}

/// Wakers to call after unlocking.
pub(crate) type Wakers = Vec<Waker>;

impl StreamState {
    /// Moves data in both directions, as far as room and credit last.
    pub(crate) fn exchange(
        &mut self,
        shard: &mut Shard,
        handle: Handle,
        out: &mut Wakers,
    ) -> CellDisposition {
        self.flags.take(Flags::DIRTY);
        if self.flags.take(Flags::SETTINGS) {
            self.apply_settings(shard, handle);
        }
        if self.flags.has(Flags::DROPPED) {
            return self.release(shard, handle, out);
        }
        self.push(shard, handle, out);
        self.pull(shard, handle, out);
        CellDisposition::Kept
    }

    /// Records that the connection is established.
    pub(crate) fn on_connected(&mut self, out: &mut Wakers) {
        self.flags.set(Flags::OPEN);
        self.writers.take_all(out);
    }

    /// Records that the connection has ended or failed to open.
    pub(crate) fn on_over(&mut self, error: Option<std::io::Error>, out: &mut Wakers) {
        if self.flags.has(Flags::OVER) {
            return;
        }
        self.flags.set(Flags::OVER);
        if let Some(error) = error {
            self.set_error(error);
        }
        self.discard_inward();
        self.readers.take_all(out);
        self.writers.take_all(out);
    }

    /// Records that nothing more can be read: the shard has ended or never knew the stream.
    pub(crate) fn on_lost(&mut self, error: std::io::Error, out: &mut Wakers) {
        self.on_over(Some(error), out);
        self.flags.set(Flags::READ_END);
        self.readers.take_all(out);
    }

    /// Moves data inward, then the end of it.
    pub(crate) fn push(&mut self, shard: &mut Shard, handle: Handle, out: &mut Wakers) {
        let before = self.unsent;
        self.send_all(shard, handle);
        if self.unsent == 0 && self.flags.has(Flags::SHUT) && !self.flags.has(Flags::SHUT_TOLD) {
            self.flags.set(Flags::SHUT_TOLD);
            shard.shutdown(handle);
        }
        // At half, so that a writer is not woken for each acknowledgment.
        if self.unsent < before && self.unsent <= self.send_credit() / 2 {
            self.writers.take_all(out);
        }
    }

    /// Sends while there is room. The shard reports new room by an event.
    fn send_all(&mut self, shard: &mut Shard, handle: Handle) {
        self.send_by(|chunk| shard.send(handle, chunk));
    }

    /// Sends queued data until `send` leaves a part.
    fn send_by(&mut self, mut send: impl FnMut(&mut Bytes) -> Result<usize, SendError>) {
        let mut refused = false;
        self.drain_inward(|chunk| {
            send(chunk).unwrap_or_else(|_| {
                refused = true;
                0
            })
        });
        if refused {
            // The shard reports the reason by an event of its own.
            self.discard_inward();
        }
    }

    /// Moves data outward, as far as there is credit.
    fn pull(&mut self, shard: &mut Shard, handle: Handle, out: &mut Wakers) {
        if self.flags.has(Flags::READ_END) || !self.flags.has(Flags::OPEN) {
            return;
        }
        // Set again below if credit ends before the data.
        self.flags.take(Flags::STARVED);
        let before = self.unread;
        let mut room = self.recv_room();
        while room > 0 {
            match shard.recv_up_to(handle, room as usize) {
                Recv::Data(chunk) => self.push_outward(chunk),
                Recv::Pending => break,
                Recv::End => {
                    self.flags.set(Flags::FIN);
                    return self.on_read_end(out);
                }
                Recv::Closed(reason) => {
                    self.on_closed(shard, handle, reason, out);
                    return self.on_read_end(out);
                }
                Recv::Unknown => {
                    return self.on_lost(fault::unknown(), out);
                }
            }
            room = self.recv_room();
        }
        if room == 0 {
            self.flags.set(Flags::STARVED);
        }
        if self.unread > before {
            self.readers.take_all(out);
        }
    }

    fn on_read_end(&mut self, out: &mut Wakers) {
        self.flags.set(Flags::READ_END);
        self.readers.take_all(out);
    }

    /// Records that the connection has closed.
    pub(crate) fn on_closed(
        &mut self,
        shard: &Shard,
        handle: Handle,
        reason: CloseReason,
        out: &mut Wakers,
    ) {
        let peer = shard.flow(handle).map(|flow| flow.remote);
        // Both may have arrived in one burst.
        if shard.snapshot(handle).is_some_and(|it| it.fin_received) {
            self.flags.set(Flags::FIN);
        }
        let (opened, tunables) = (self.flags.has(Flags::OPEN), shard.tunables());
        let error = match shard.attempt(handle).filter(|_| !opened) {
            Some(attempt) => Some(fault::not_opened(reason, peer, &attempt)),
            None => fault::closed(reason, peer, tunables),
        };
        self.on_over(error, out);
        if !opened {
            self.flags.set(Flags::READ_END);
        }
    }

    /// Releases a dropped stream: its data is delivered, then FIN, unless the connection is to be
    /// reset.
    fn release(&mut self, shard: &mut Shard, handle: Handle, out: &mut Wakers) -> CellDisposition {
        if self.settings.linger().is_some_and(|it| it.is_zero()) {
            shard.abort(handle);
            return CellDisposition::Parted;
        }
        // RFC 9293 3.6.1: unread data counts wherever it waits; the shard checks its own part. A reply
        // to a request that was not read to its end goes first, as on Linux, which sends within the
        // call that writes.
        if self.unread > 0 && !self.flags.has(Flags::OVER) {
            self.push(shard, handle, out);
            return CellDisposition::Resetting;
        }
        // The rest must not wait here for room: once it is in the shard, the connection is an orphan
        // with a time limit.
        self.send_by(|chunk| shard.send_whole(handle, chunk));
        shard.close(handle);
        CellDisposition::Parted
    }
}

/// An empty chunk, to fill arrays.
pub(crate) const NO_CHUNK: Bytes = Bytes::new();
