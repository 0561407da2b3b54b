//! The state that a stream's task and its shard share: one cell, whose lock only these two take.
//!
//! Data passes as owned chunks, in each direction up to a credit. A task may leave data here for which
//! the shard has no room yet, and the shard data that the task has not read. Data beyond the credit
//! waits where TCP's window covers it. A change for the shard marks the cell dirty, once, until the
//! shard has looked.
//!
//! This is the task's side. The shard's side is in [`exchange`](crate::exchange).

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use bytes::Bytes;
use tokio::io::Interest;
use whimbrel_stack::{Handle, Shard};
use whimbrel_tcp::conn::SocketOptions;

use crate::readiness::{self, Readiness};
use crate::waiters::Waiters;

pub(crate) use flags::Flags;
pub(crate) use settings::{Settings, rate_limit, rate_of};

mod flags;
mod settings;

/// Shared half of a stream.
#[derive(Debug)]
pub(crate) struct StreamCell(Mutex<StreamState>);

/// State behind the lock. "Inward" is towards the shard, "outward" towards the task.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// Tasks that wait for data.
    pub(crate) readers: Waiters,
    /// Tasks that wait for room to write, or for the connection.
    pub(crate) writers: Waiters,
    /// Queued chunks and what is rarely set; `None` while there is none of it.
    queues: Option<Box<StreamQueues>>,
    /// The shard's handle of the connection, once it has one.
    pub(crate) handle: Option<Handle>,
    /// Bytes queued outward.
    pub(crate) unread: u32,
    /// Bytes queued inward.
    pub(crate) unsent: u32,
    /// Socket options set by the task.
    pub(crate) settings: Settings,
    /// Local port, once it is known.
    pub(crate) local_port: u16,
    /// Index of the local address in the stack's addresses.
    pub(crate) local_index: u16,
    pub(crate) flags: Flags,
}

/// Queued chunks in both directions, the error to report, and the rate that the task set.
#[derive(Default, Debug)]
struct StreamQueues {
    outward: VecDeque<Bytes>,
    inward: VecDeque<Bytes>,
    /// Reason of the end, until it is reported.
    error: Option<io::Error>,
    /// Limit of the rate, bytes per second (`SO_MAX_PACING_RATE`).
    max_pacing_rate: Option<NonZeroU64>,
}

/// State of the receive side, for a task that reads.
#[derive(Debug)]
pub(crate) enum Readable {
    /// Data is available.
    Data,
    /// End of the stream: nothing is left and nothing will arrive.
    End,
    /// No data yet.
    Pending,
}

/// Action for the shard after unlocking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub(crate) enum PostAction {
    /// Nothing to do.
    None,
    /// Post this handle, so that the shard looks.
    Post(Handle),
}

impl StreamCell {
    /// Creates the cell of a stream that the shard does not know yet.
    pub(crate) fn new(settings: Settings) -> Arc<Self> {
        Arc::new(Self(Mutex::new(StreamState::new(settings))))
    }

    /// Creates the cell of an accepted stream.
    pub(crate) fn accepted(handle: Handle, settings: Settings) -> Arc<Self> {
        let mut state = StreamState::new(settings);
        state.handle = Some(handle);
        state.flags.set(Flags::OPEN);
        Arc::new(Self(Mutex::new(state)))
    }

    /// Waits for any event of `interest`.
    pub(crate) const fn ready(&self, interest: Interest) -> Readiness<'_, StreamState> {
        Readiness::new(&self.0, interest)
    }

    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, StreamState> {
        readiness::lock(&self.0)
    }
}

/// Creation, and limits of queued data in both directions.
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

    /// Returns the limit of bytes queued for the shard: as much again as its send buffer, within
    /// bounds.
    pub(crate) fn send_credit(&self) -> u32 {
        self.settings.send_size().min(CREDIT)
    }

    /// Returns the limit of bytes queued for the task: as much again as the receive buffer, within
    /// bounds.
    pub(crate) fn recv_credit(&self) -> u32 {
        self.settings.recv_size().min(CREDIT)
    }

    /// Returns the number of further bytes that may be queued for the shard.
    pub(crate) fn send_room(&self) -> u32 {
        // Bytes alone would not bound memory, because each piece also needs its place and header.
        let pieces = self.queues.as_ref().map_or(0, |queues| queues.inward.len());
        if pieces < PIECES { self.send_credit().saturating_sub(self.unsent) } else { 0 }
    }

    /// Returns the number of further bytes that may be queued for the task.
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

/// Reading by the task.
impl StreamState {
    /// Returns the state of the receive side.
    pub(crate) fn readable(&self) -> Readable {
        match self.unread {
            0 if self.flags.has(Flags::READ_END) => Readable::End,
            0 => Readable::Pending,
            _ => Readable::Data,
        }
    }

    /// Returns the result of a read at the end: 0, or the error, once. As on Linux, reads return 0
    /// after the peer's FIN and errors go to writers.
    pub(crate) fn end(&mut self) -> io::Result<usize> {
        if self.flags.has(Flags::FIN) {
            return Ok(0);
        }
        self.take_error().map_or(Ok(0), Err)
    }

    /// Moves chunks of at most `most` bytes in all to `places`. Returns the number of chunks.
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

    /// Copies the first bytes to `out` without removing them. Returns their number.
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

    /// Returns credit after a read, if the shard holds data back for want of it.
    pub(crate) fn return_credit(&mut self) -> PostAction {
        // At half only: a task that reads single bytes would otherwise wake its shard for each of them.
        if self.flags.has(Flags::STARVED) && self.has_half_read() {
            return self.dirty();
        }
        PostAction::None
    }
}

/// Settings, with the limit of the rate, which stands apart as few streams have one.
impl StreamState {
    /// Applies all settings to the connection at its shard.
    pub(crate) fn apply_settings(&self, shard: &mut Shard, handle: Handle) {
        shard.set_options(handle, &self.options());
    }

    /// Returns all settings in the shard's form.
    pub(crate) fn options(&self) -> SocketOptions {
        self.settings.options(self.max_pacing_rate())
    }

    /// Returns the limit of the rate, bytes per second.
    pub(crate) fn max_pacing_rate(&self) -> Option<NonZeroU64> {
        self.queues.as_ref()?.max_pacing_rate
    }

    /// Sets the limit of the rate, bytes per second.
    pub(crate) fn set_max_pacing_rate(&mut self, rate: Option<NonZeroU64>) {
        if self.max_pacing_rate() != rate {
            self.queues.get_or_insert_default().max_pacing_rate = rate;
            self.drop_empty_queues();
        }
    }
}

/// Errors for the next read or write.
impl StreamState {
    /// True if an error waits to be reported.
    pub(crate) fn has_error(&self) -> bool {
        self.queues.as_ref().is_some_and(|queues| queues.error.is_some())
    }

    /// Returns the error to report and removes it.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        let error = self.queues.as_mut()?.error.take();
        self.drop_empty_queues();
        error
    }

    /// Sets the error to report.
    pub(crate) fn set_error(&mut self, error: io::Error) {
        self.queues.get_or_insert_default().error = Some(error);
    }
}

/// Writing by the task, and the end of writing.
impl StreamState {
    /// Returns the number of bytes that the task may queue, or the reason why it may not.
    pub(crate) fn room(&mut self) -> io::Result<usize> {
        // First and once: tasks look for errors in writes.
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        if self.flags.has(Flags::OVER) || self.flags.has(Flags::SHUT) {
            return Err(crate::fault::broken_pipe());
        }
        Ok(self.send_room() as usize)
    }

    /// Queues `chunk` for the shard.
    pub(crate) fn leave(&mut self, chunk: Bytes) -> PostAction {
        if chunk.is_empty() {
            return PostAction::None;
        }
        self.unsent += chunk.len() as u32;
        self.queues.get_or_insert_default().inward.push_back(chunk);
        self.dirty()
    }

    /// Marks the cell dirty, so that the shard looks.
    pub(crate) fn dirty(&mut self) -> PostAction {
        // If it is marked already, or unknown to a shard yet, the next look finds this change as well.
        self.flags.mark_dirty(self.handle).map_or(PostAction::None, PostAction::Post)
    }

    /// Records that the stream was dropped. Returns the wakers, to be dropped after unlocking.
    pub(crate) fn on_drop(&mut self) -> (PostAction, Vec<Waker>) {
        // Dropping a waker runs the executor's code, which may lock this cell, so it is not done under
        // the lock.
        let mut wakers = Vec::new();
        self.readers.take_all(&mut wakers);
        self.writers.take_all(&mut wakers);
        self.flags.set(Flags::DROPPED);
        (self.dirty(), wakers)
    }
}

/// The shard's side of the queues.
impl StreamState {
    /// Appends received data for the task.
    pub(crate) fn push_outward(&mut self, chunk: Bytes) {
        self.unread += chunk.len() as u32;
        self.queues.get_or_insert_default().outward.push_back(chunk);
    }

    /// Removes chunks from the inward queue while `send` takes them whole.
    pub(crate) fn drain_inward(&mut self, mut send: impl FnMut(&mut Bytes) -> usize) {
        let Some(queues) = &mut self.queues else { return };
        while let Some(first) = queues.inward.front_mut() {
            // `send` leaves in `first` the part without room, so that the rest keeps its place.
            self.unsent -= send(first) as u32;
            if !first.is_empty() {
                break;
            }
            queues.inward.pop_front();
        }
        self.drop_empty_queues();
    }

    /// Discards the inward queue.
    pub(crate) fn discard_inward(&mut self) {
        self.unsent = 0;
        if let Some(queues) = &mut self.queues {
            queues.inward.clear();
        }
        self.drop_empty_queues();
    }

    /// Frees empty queues, so that an idle connection has none.
    fn drop_empty_queues(&mut self) {
        let is_empty = self.unread == 0 && self.unsent == 0 && !self.has_error();
        if is_empty && self.max_pacing_rate().is_none() {
            self.queues = None;
        }
    }
}

/// Limit of bytes in a cell, each way. With a quarter of it a stream of 2 GiB took 1.1 to
/// 1.75 times the processor time, in five pairs of runs in turns (1.3 to 2.6 against 1.0
/// to 1.5 s/GB, on threads), because its two ends wake each other so much more often.
const CREDIT: u32 = 256 << 10;

/// Limit of pieces, each way. Single bytes written here or by the peer must not take a hundred bytes of
/// memory each. Data beyond the limit is gathered in the shard's buffers.
const PIECES: usize = 1_024;

/// With the two counts in front of it, the cell has 120 bytes, and with the allocator's 8 two cache
/// lines.
// On other systems the standard library's lock is larger.
#[cfg(target_os = "linux")]
const _: () = assert!(size_of::<StreamCell>() + 2 * size_of::<usize>() <= 120);

#[cfg(test)]
mod tests;
