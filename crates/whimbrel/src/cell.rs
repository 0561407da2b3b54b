//! What a stream's task and its shard share: one cell, and in it a lock that only they ever take.
//!
//! Octets cross as owned chunks, in both directions, each bounded by a credit: a task may leave
//! octets here that the shard has no room for yet, the shard some that the task did not read; what
//! exceeds the credit waits where TCP's own window sees it. Whoever leaves something for the shard
//! marks the cell dirty, once, until the shard has looked.
//!
//! Here is the task's side. The shard's is in [`exchange`](crate::exchange).

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use bytes::Bytes;
use tokio::io::Interest;
use whimbrel_stack::Handle;

use crate::readiness::{self, Readiness};
use crate::waiters::Waiters;

pub(crate) use flags::Flags;
pub(crate) use settings::Settings;

mod flags;
mod settings;

/// The shared half of a stream.
#[derive(Debug)]
pub(crate) struct StreamCell(Mutex<StreamState>);

/// What the lock guards. "Inward" is towards the shard, "outward" towards the task.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// Tasks that wait for something to read.
    pub(crate) readers: Waiters,
    /// Tasks that wait for room to write, or to be connected.
    pub(crate) writers: Waiters,
    /// What is on its way; none while nothing is.
    queues: Option<Box<StreamQueues>>,
    /// What the shard knows it by, once it knows it.
    pub(crate) handle: Option<Handle>,
    /// Octets on their way outward.
    pub(crate) unread: u32,
    /// Octets on their way inward.
    pub(crate) unsent: u32,
    /// The socket options that the task has set.
    pub(crate) settings: Settings,
    /// The port at this side, once it is known.
    pub(crate) local_port: u16,
    /// This side's address, as an index into the stack's.
    pub(crate) local_index: u16,
    pub(crate) flags: Flags,
}

/// Chunks each way, and what a task is to be told.
#[derive(Default, Debug)]
struct StreamQueues {
    outward: VecDeque<Bytes>,
    inward: VecDeque<Bytes>,
    /// Why it is over, until somebody was told.
    error: Option<io::Error>,
}

/// What a task finds when it reads.
#[derive(Debug)]
pub(crate) enum Readable {
    /// There are octets to read.
    Octets,
    /// The end of the stream: there is nothing, and nothing will come.
    End,
    /// There is nothing to read yet.
    Pending,
}

/// What a task must do for the shard after it unlocked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum PostAction {
    /// There is nothing to do.
    None,
    /// Post this handle: the shard is to look.
    Post(Handle),
}

impl StreamCell {
    /// Of a stream that the shard is yet to hear of.
    pub(crate) fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self(Mutex::new(StreamState::new(settings))))
    }

    /// Of an accepted stream.
    pub(crate) fn accepted(handle: Handle, settings: Settings) -> Arc<Self> {
        let mut state = StreamState::new(settings);
        state.handle = Some(handle);
        state.flags.set(Flags::OPEN);
        Arc::new(Self(Mutex::new(state)))
    }

    /// Waits for any of what `interest` names.
    pub(crate) const fn ready(&self, interest: Interest) -> Readiness<'_, StreamState> {
        Readiness::new(&self.0, interest)
    }

    /// The state, which nobody else sees until the guard is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, StreamState> {
        readiness::lock(&self.0)
    }
}

/// A cell as it begins, and how many octets either side may leave in it.
impl StreamState {
    fn new(settings: Settings) -> Self {
        Self {
            readers: Waiters::default(),
            writers: Waiters::default(),
            queues: None,
            handle: None,
            unread: 0,
            unsent: 0,
            settings,
            local_port: 0,
            local_index: 0,
            flags: Flags::default(),
        }
    }

    /// The most octets that wait for the shard: as much again as its send buffer, within bounds.
    pub(crate) fn send_credit(&self) -> u32 {
        self.settings.send_size().min(CREDIT)
    }

    /// The most octets that wait for the task: as much again as the receive buffer, within bounds.
    pub(crate) fn recv_credit(&self) -> u32 {
        self.settings.recv_size().min(CREDIT)
    }

    /// How many octets more may wait for the shard.
    pub(crate) fn send_room(&self) -> u32 {
        // Bytes alone would not bound memory: each piece costs its place and its header, too.
        let pieces = self.queues.as_ref().map_or(0, |queues| queues.inward.len());
        if pieces < PIECES { self.send_credit().saturating_sub(self.unsent) } else { 0 }
    }

    /// How many octets more may wait for the task.
    pub(crate) fn recv_room(&self) -> u32 {
        if self.pieces_outward() < PIECES {
            self.recv_credit().saturating_sub(self.unread)
        } else {
            0
        }
    }

    fn has_half_read(&self) -> bool {
        self.unread <= self.recv_credit() / 2 && self.pieces_outward() <= PIECES / 2
    }

    fn pieces_outward(&self) -> usize {
        self.queues.as_ref().map_or(0, |queues| queues.outward.len())
    }
}

/// What a task that reads finds and takes.
impl StreamState {
    /// What there is to read.
    pub(crate) fn readable(&self) -> Readable {
        match self.unread {
            0 if self.flags.has(Flags::READ_END) => Readable::End,
            0 => Readable::Pending,
            _ => Readable::Octets,
        }
    }

    /// What a task is told at the end: nothing, or the error, once. As on Linux, after the peer's FIN
    /// the end stays the end, and errors are for whoever writes.
    pub(crate) fn end(&mut self) -> io::Result<usize> {
        if self.flags.has(Flags::FIN) {
            return Ok(0);
        }
        self.take_error().map_or(Ok(0), Err)
    }

    /// Moves chunks of at most `most` octets in all to `places`. Returns how many chunks.
    pub(crate) fn take_outward(&mut self, mut most: usize, places: &mut [Bytes]) -> usize {
        let Some(queues) = &mut self.queues else { return 0 };
        let mut count = 0;
        for place in places {
            let Some(first) = queues.outward.front_mut().filter(|_| most > 0) else { break };
            let chunk = match first.len() {
                len if len > most => first.split_to(most),
                _ => queues.outward.pop_front().unwrap_or_default(),
            };
            most -= chunk.len();
            self.unread -= chunk.len() as u32;
            *place = chunk;
            count += 1;
        }
        self.drop_empty_queues();
        count
    }

    /// Copies the first octets to `out`; they stay. Returns how many.
    pub(crate) fn peek(&self, out: &mut [u8]) -> usize {
        let mut done = 0;
        for chunk in self.queues.iter().flat_map(|queues| &queues.outward) {
            let room = out.get_mut(done..).unwrap_or_default();
            let take = room.len().min(chunk.len());
            room.split_at_mut(take).0.copy_from_slice(chunk.split_at(take).0);
            done += take;
        }
        done
    }

    /// The task has read: if the shard holds text back for want of credit, it gets it.
    pub(crate) fn return_credit(&mut self) -> PostAction {
        // Half, not any: a task that reads a byte at a time would wake its shard for each of them.
        if self.flags.has(Flags::STARVED) && self.has_half_read() {
            return self.dirty();
        }
        PostAction::None
    }
}

/// What is to be told to whoever reads or writes next.
impl StreamState {
    /// Whether somebody is to be told.
    pub(crate) fn has_error(&self) -> bool {
        self.queues.as_ref().is_some_and(|queues| queues.error.is_some())
    }

    /// The error, for whoever is told.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        let error = self.queues.as_mut()?.error.take();
        self.drop_empty_queues();
        error
    }

    /// Somebody is to be told `error`.
    pub(crate) fn set_error(&mut self, error: io::Error) {
        self.queues.get_or_insert_default().error = Some(error);
    }
}

/// What a task that writes may leave, and how it says that this was all.
impl StreamState {
    /// How many octets the task may leave here, or why it may leave none.
    pub(crate) fn room(&mut self) -> io::Result<usize> {
        // Before anything else, and once: a write is where tasks look for what went wrong.
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        if self.flags.has(Flags::OVER) || self.flags.has(Flags::SHUT) {
            return Err(crate::fault::broken_pipe());
        }
        Ok(self.send_room() as usize)
    }

    /// Leaves `chunk` for the shard.
    pub(crate) fn leave(&mut self, chunk: Bytes) -> PostAction {
        if chunk.is_empty() {
            return PostAction::None;
        }
        self.unsent += chunk.len() as u32;
        self.queues.get_or_insert_default().inward.push_back(chunk);
        self.dirty()
    }

    /// The shard is to look.
    pub(crate) fn dirty(&mut self) -> PostAction {
        // Marked already, or not known to a shard yet: whoever comes to look finds this as well.
        self.flags.mark_dirty(self.handle).map_or(PostAction::None, PostAction::Post)
    }

    /// The task let go. What it waited with is returned, to be dropped after unlocking.
    pub(crate) fn on_drop(&mut self) -> (PostAction, Vec<Waker>) {
        // A waker runs the executor's code when it is dropped, which may lock this cell: not under its lock.
        let mut wakers = Vec::new();
        self.readers.take_all(&mut wakers);
        self.writers.take_all(&mut wakers);
        self.flags.set(Flags::DROPPED);
        (self.dirty(), wakers)
    }
}

/// The shard's side of the queues.
impl StreamState {
    /// Appends octets that arrived to what the task will read.
    pub(crate) fn push_outward(&mut self, chunk: Bytes) {
        self.unread += chunk.len() as u32;
        self.queues.get_or_insert_default().outward.push_back(chunk);
    }

    /// Takes what waits inward from the front, as long as `send` takes the whole chunk.
    pub(crate) fn drain_inward(&mut self, mut send: impl FnMut(&mut Bytes) -> usize) {
        let Some(queues) = &mut self.queues else { return };
        while let Some(first) = queues.inward.front_mut() {
            // `send` leaves in `first` what it had no room for, so that the rest keeps its place.
            self.unsent -= send(first) as u32;
            if !first.is_empty() {
                break;
            }
            queues.inward.pop_front();
        }
        self.drop_empty_queues();
    }

    /// Nobody will ever take what waits inward.
    pub(crate) fn discard_inward(&mut self) {
        self.unsent = 0;
        if let Some(queues) = &mut self.queues {
            queues.inward.clear();
        }
        self.drop_empty_queues();
    }

    /// An idle connection holds no queues.
    fn drop_empty_queues(&mut self) {
        if self.unread == 0 && self.unsent == 0 && !self.has_error() {
            self.queues = None;
        }
    }
}

/// The most octets that wait in a cell, each way. With a quarter of it a stream of 2 GiB took 1.1 to
/// 1.75 times the processor time, in five pairs of runs in turns (1.3 to 2.6 against 1.0
/// to 1.5 s/GB, on threads), because its two ends wake each other so much more often.
const CREDIT: u32 = 256 << 10;

/// The most pieces of them, each way: whoever writes an octet at a time, here or at the peer, must not
/// take a hundred octets of memory for each. Text that waits beyond is gathered by the shard's buffers.
const PIECES: usize = 1_024;

/// With the two counts in front of it, the cell has 120 octets, and with the allocator's 8 two cache lines.
// Elsewhere the standard library's lock is larger.
#[cfg(target_os = "linux")]
const _: () = assert!(size_of::<StreamCell>() + 2 * size_of::<usize>() <= 120);

#[cfg(test)]
mod tests;
