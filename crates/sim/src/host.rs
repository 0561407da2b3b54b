//! A host in the world: a shard, and the application on it.

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::{RxFrame, Shard, TxBatch};

/// What runs on a host. Called whenever something happened there that it may care about.
pub trait Application {
    /// Something happened on `shard`, or the deadline passed: take its events, read, send.
    fn on_wake(&mut self, shard: &mut Shard, now: Instant);

    /// When it wants to be called although nothing happened.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// A number that grows whenever the application comes nearer to its end: bytes verified,
    /// requests answered. The world calls a run stuck when the sum of these stands still too long.
    fn progress(&self) -> u64 {
        0
    }

    /// True if it has done what it came for.
    fn is_done(&self) -> bool {
        true
    }

    /// What it found to be wrong: ends the run at once.
    fn failure(&self) -> Option<String> {
        None
    }

    /// Its state in a few lines, for whoever must find out why it is stuck.
    fn dump(&self) -> String {
        String::new()
    }
}

/// An application that does nothing: its host answers what a host answers by itself.
#[derive(Clone, Copy, Default, Debug)]
pub struct Idle;

impl Application for Idle {
    fn on_wake(&mut self, _: &mut Shard, _: Instant) {}
}

/// Names a host of a world.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostId(pub(crate) usize);

/// A shard, its application, and what is between them and the world.
#[derive(Debug)]
pub struct Host<A> {
    /// The stack that the world drives.
    pub shard: Shard,
    /// What runs on it.
    pub application: A,
    batch: TxBatch,
}

impl<A: Application> Host<A> {
    /// A host of these two, which has done nothing yet.
    pub fn new(shard: Shard, application: A) -> Self {
        Self { shard, application, batch: TxBatch::new(64) }
    }

    /// When it must be called at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        Instant::earliest([self.shard.next_deadline(), self.application.next_deadline()])
    }

    /// Frames arrived, or time passed.
    pub fn wake(&mut self, now: Instant, frames: &[Bytes]) {
        self.take(now, frames);
        self.act(now);
    }

    /// Frames arrived: the stack takes them.
    pub fn take(&mut self, now: Instant, frames: &[Bytes]) {
        match frames {
            // Nearly always there is one, which takes no memory.
            [frame] => self.shard.rx(now, &[single(frame)]),
            _ => self.shard.rx(now, &frames.iter().map(single).collect::<Vec<_>>()),
        }
    }

    /// What is due is done, and the application has its turn.
    pub fn act(&mut self, now: Instant) {
        // What a budget left over is due at once: the world comes back for it.
        self.shard.advance(now, ADVANCE_BUDGET);
        self.application.on_wake(&mut self.shard, now);
    }

    /// Hands over everything that is to be sent now.
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

/// A frame as a device hands it over that joins none.
fn single(frame: &Bytes) -> RxFrame<'_> {
    RxFrame::new(frame, SegMeta::SINGLE)
}

/// Work of one wake: as much as a driver of a real device grants between two bursts.
const ADVANCE_BUDGET: usize = 64;
