//! The shard's side of a stream's cell: what happens to it, where the shard is driven.

use std::task::Waker;

use bytes::Bytes;
use whimbrel_stack::shard::SendError;
use whimbrel_stack::{Handle, Recv, Shard};
use whimbrel_tcp::CloseReason;

use crate::cell::{Flags, StreamState};
use crate::fault;

/// Whether the shard keeps the cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum CellDisposition {
    /// The shard keeps the cell.
    Kept,
    /// As long as what was sent is on its way out; then the connection is reset.
    Resetting,
    /// The stream is gone on both sides.
    Parted,
}

/// Who is to be woken, after everything was unlocked.
pub(crate) type Wakers = Vec<Waker>;

impl StreamState {
    /// Moves what crosses, in both directions, as far as room and credit last.
    pub(crate) fn exchange(
        &mut self,
        shard: &mut Shard,
        handle: Handle,
        out: &mut Wakers,
    ) -> CellDisposition {
        self.flags.take(Flags::DIRTY);
        if self.flags.take(Flags::SETTINGS) {
            self.settings.apply(shard, handle);
        }
        if self.flags.has(Flags::DROPPED) {
            return self.release(shard, handle, out);
        }
        self.push(shard, handle, out);
        self.pull(shard, handle, out);
        CellDisposition::Kept
    }

    /// The connection is established.
    pub(crate) fn on_connected(&mut self, out: &mut Wakers) {
        self.flags.set(Flags::OPEN);
        self.writers.take_all(out);
    }

    /// The connection is over, or never was.
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

    /// Nothing more can be read, either: there is no shard any more, or it never knew the stream.
    pub(crate) fn on_lost(&mut self, error: std::io::Error, out: &mut Wakers) {
        self.on_over(Some(error), out);
        self.flags.set(Flags::READ_END);
        self.readers.take_all(out);
    }

    /// Inward: text, then the end of it.
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

    /// Sends while there is room. If there is not enough, the shard tells when there is.
    fn send_all(&mut self, shard: &mut Shard, handle: Handle) {
        self.send_by(|chunk| shard.send(handle, chunk));
    }

    /// Sends what waits, until `send` leaves something of it.
    fn send_by(&mut self, mut send: impl FnMut(&mut Bytes) -> Result<usize, SendError>) {
        let mut refused = false;
        self.drain_inward(|chunk| {
            send(chunk).unwrap_or_else(|_| {
                refused = true;
                0
            })
        });
        if refused {
            // Why, the shard tells by an event of its own.
            self.discard_inward();
        }
    }

    /// Outward: as much as there is credit for.
    fn pull(&mut self, shard: &mut Shard, handle: Handle, out: &mut Wakers) {
        if self.flags.has(Flags::READ_END) || !self.flags.has(Flags::OPEN) {
            return;
        }
        // Set again below if credit ends before text does.
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

    /// The shard says that the connection is over.
    pub(crate) fn on_closed(
        &mut self,
        shard: &Shard,
        handle: Handle,
        reason: CloseReason,
        out: &mut Wakers,
    ) {
        let peer = shard.flow(handle).map(|flow| flow.remote);
        // Both may have come in one burst.
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

    /// The task let go: what it sent is delivered, then FIN, unless it is to be reset.
    fn release(&mut self, shard: &mut Shard, handle: Handle, out: &mut Wakers) -> CellDisposition {
        if self.settings.linger().is_some_and(|it| it.is_zero()) {
            shard.abort(handle);
            return CellDisposition::Parted;
        }
        // RFC 9293 3.6.1: what was received and not read counts wherever it waits; the shard looks
        // after its own part. An answer to a request that was not read to its end goes first, as by
        // Linux, which sends within the call that writes.
        if self.unread > 0 && !self.flags.has(Flags::OVER) {
            self.push(shard, handle, out);
            return CellDisposition::Resetting;
        }
        // The rest must not wait here for room: with it in the shard, the connection is an orphan,
        // whose time is bounded.
        self.send_by(|chunk| shard.send_whole(handle, chunk));
        shard.close(handle);
        CellDisposition::Parted
    }
}

/// An empty chunk, for arrays of places.
pub(crate) const NO_CHUNK: Bytes = Bytes::new();
