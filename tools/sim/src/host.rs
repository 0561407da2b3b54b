//! A host in the world: a shard, and its application.

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::{RxFrame, Shard, TxBatch};

/// Application on a host. It is called after each event there that may concern it.
pub trait Application {
    /// Called after an event on `shard`, or at the deadline: take its events, read, send.
    fn on_wake(&mut self, shard: &mut Shard, now: Instant);

    /// Time of a call without an event.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// A number that grows with the application's progress: bytes verified, requests answered. A
    /// run is stuck when the sum of these stays the same for too long.
    fn progress(&self) -> u64 {
        0
    }

    /// True if it is finished.
    fn is_done(&self) -> bool {
        true
    }

    /// A failure that the application found: it ends the run at once.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Its state in a few lines, to find out why it is stuck.
    fn dump(&self) -> String {
        String::new()
    }
}

/// An application that does nothing: its host answers only on its own.
#[derive(Clone, Copy, Default, Debug)]
pub struct Idle;

impl Application for Idle {
    fn on_wake(&mut self, _: &mut Shard, _: Instant) {}
}

/// Name of a host of a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostId(pub(crate) usize);

/// A shard, its application, and their connection to the world.
#[derive(Debug)]
pub struct Host<A> {
    /// The stack that the world drives.
    pub shard: Shard,
    /// Application on the host.
    pub application: A,
    batch: TxBatch,
}

impl<A: Application> Host<A> {
    /// A host before its first event.
    pub fn new(shard: Shard, application: A) -> Self {
        Self { shard, application, batch: TxBatch::new(64) }
    }

    /// Latest time of the next call.
    pub fn next_deadline(&self) -> Option<Instant> {
        Instant::earliest([self.shard.next_deadline(), self.application.next_deadline()])
    }

    /// Handles frames, or the passage of time.
    pub fn wake(&mut self, now: Instant, frames: &[Bytes]) {
        self.take(now, frames);
        self.act(now);
    }

    /// Passes frames to the stack.
    pub fn take(&mut self, now: Instant, frames: &[Bytes]) {
        match frames {
            // Usually there is one, which needs no allocation.
            [frame] => self.shard.rx(now, &[single(frame)]),
            _ => self.shard.rx(now, &frames.iter().map(single).collect::<Vec<_>>()),
        }
    }

    /// Runs what is due, then the application.
    pub fn act(&mut self, now: Instant) {
        // Work beyond a budget is due at once: the world returns to it.
        self.shard.advance(now, ADVANCE_BUDGET);
        self.application.on_wake(&mut self.shard, now);
    }

    /// Passes on all segments to send now.
    pub fn send(&mut self, mut carry: impl FnMut(&whimbrel_base::packet::TxSegment)) {
        loop {
            let more = self.shard.tx(&mut self.batch);
            let pending = self.batch.pending();
            pending.iter().for_each(&mut carry);
            let count = pending.len();
            self.batch.consume(count);
            if !more {
                return;
            }
        }
    }
}

/// A frame as from a device that merges none.
fn single(frame: &Bytes) -> RxFrame<'_> {
    RxFrame::new(frame, SegMeta::SINGLE)
}

/// Work of one wake: as much as a driver of a real device allows between two bursts.
const ADVANCE_BUDGET: usize = 64;
