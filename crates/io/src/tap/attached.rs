//! Captures that other threads attach to a running shard, each into a bounded queue that its thread reads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_base::Instant;
use whimbrel_link::filter::Filter;
use whimbrel_link::recorder::{CountersBefore, Recorder};
use whimbrel_stack::{Medium, RxFrame, Shard, TxBatch};

use super::{Tap, TapConfig};
use crate::Clock;

/// Frames of an attached capture that wait for its reader, as pcapng. A shard never waits for the reader: what
/// finds more than [`FrameQueue::MOST_BYTES`] waiting is dropped and counted. Clones share one queue.
#[derive(Clone, Debug)]
pub struct FrameQueue(Arc<Mutex<Waiting>>);

#[derive(Debug)]
struct Waiting {
    /// Whole blocks, as many in each as [`FrameQueue::PIECE_BYTES`] has room for.
    pieces: Vec<Vec<u8>>,
    /// Bytes in all pieces.
    bytes: usize,
    /// Frames queued so far.
    frames: u64,
    /// Limit of them.
    most: u64,
    dropped: u64,
}

/// The captures of a shard, as a [`CaptureCall`](crate::inspect::CaptureCall) changes them.
#[derive(Debug)]
pub struct TapSlot<'t> {
    taps: &'t mut Option<Box<Taps>>,
    medium: Medium,
    /// `None` in virtual time, which begins in 1970.
    clock: Option<Clock>,
}

/// All captures of a shard: the one that it was started with, and those attached.
#[derive(Debug)]
pub(crate) struct Taps {
    own: Option<Tap>,
    attached: Vec<AttachedTap>,
}

#[derive(Debug)]
struct AttachedTap {
    recorder: Recorder,
    queue: FrameQueue,
    /// Segments of the batch that are recorded and still wait for the device.
    kept: usize,
}

impl FrameQueue {
    /// Limit of waiting bytes; the frame that reaches it may exceed it.
    pub const MOST_BYTES: usize = 4 << 20;

    /// Limit of a piece in bytes; a frame that is longer has its own.
    pub const PIECE_BYTES: usize = 21 << 10;

    /// Creates a queue that takes at most this many frames in all.
    pub fn new(most: u64) -> Self {
        let waiting = Waiting { pieces: Vec::new(), bytes: 0, frames: 0, most, dropped: 0 };
        Self(Arc::new(Mutex::new(waiting)))
    }

    /// Takes all that waits, in pieces of whole blocks of pcapng.
    pub fn take(&self) -> Vec<Vec<u8>> {
        let mut waiting = self.lock();
        waiting.bytes = 0;
        std::mem::take(&mut waiting.pieces)
    }

    /// Returns the number of frames queued so far.
    pub fn frames(&self) -> u64 {
        self.lock().frames
    }

    /// Returns the number of frames dropped because the reader was slow.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// True if the limit of frames is reached.
    pub fn is_full(&self) -> bool {
        let waiting = self.lock();
        waiting.frames >= waiting.most
    }

    /// Queues a frame.
    fn push(&self, record: &[u8]) {
        let mut waiting = self.lock();
        if waiting.frames >= waiting.most {
            return;
        }
        if waiting.bytes >= Self::MOST_BYTES {
            waiting.dropped += 1;
            return;
        }
        waiting.frames += 1;
        waiting.bytes += record.len();
        match waiting.pieces.last_mut() {
            Some(last) if last.len() + record.len() <= Self::PIECE_BYTES => {
                last.extend_from_slice(record);
            }
            _ => waiting.pieces.push(record.to_vec()),
        }
    }

    /// Nothing is half changed after a panic.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'t> TapSlot<'t> {
    pub(crate) const fn new(
        taps: &'t mut Option<Box<Taps>>,
        medium: Medium,
        clock: Option<Clock>,
    ) -> Self {
        Self { taps, medium, clock }
    }

    /// Attaches a capture into `queue`: of frames that `filter` matches, if there is one, the first `snap`
    /// (at least 1) bytes. Returns the header of the capture, which is that of all shards of the stack.
    pub fn attach(
        &mut self,
        queue: FrameQueue,
        name: &str,
        snap: usize,
        filter: Option<Filter>,
    ) -> Vec<u8> {
        let zero = self.clock.map_or(0, |clock| clock.zero_since_1970());
        let config = TapConfig { snap, zero, filter, ..TapConfig::new(name, self.medium) };
        let mut recorder = Recorder::begin(config);
        let header = std::mem::take(recorder.take());
        let taps = self.taps.get_or_insert_with(|| Taps::boxed(None));
        taps.attached.push(AttachedTap { recorder, queue, kept: 0 });
        header
    }

    /// Detaches the capture into `queue`. Without captures the shard's frames cost what they did before.
    pub fn detach(&mut self, queue: &FrameQueue) {
        let Some(taps) = self.taps else { return };
        taps.attached.retain(|tap| !Arc::ptr_eq(&tap.queue.0, &queue.0));
        if taps.own.is_none() && taps.attached.is_empty() {
            *self.taps = None;
        }
    }
}

impl Taps {
    /// The captures of a shard that was started with this one.
    pub(crate) fn own(tap: Tap) -> Box<Self> {
        Self::boxed(Some(tap))
    }

    /// Returns the capture that the shard was started with.
    pub(crate) fn into_own(self) -> Option<Tap> {
        self.own
    }

    fn boxed(own: Option<Tap>) -> Box<Self> {
        Box::new(Self { own, attached: Vec::new() })
    }

    /// Records arrived frames on their way to the shard.
    pub(crate) fn rx(&mut self, now: Instant, shard: &mut Shard, burst: &[RxFrame<'_>]) {
        let Self { own, attached } = self;
        if let (Some(tap), []) = (&mut *own, attached.as_slice()) {
            return tap.rx(now, shard, burst);
        }
        for frame in burst {
            let before = CountersBefore::of(shard);
            shard.rx(now, std::slice::from_ref(frame));
            if let Some(tap) = own {
                tap.recorder.arrived(now, shard, &before, frame);
            }
            for tap in &mut *attached {
                tap.recorder.arrived(now, shard, &before, frame);
                tap.push();
            }
        }
        if let Some(tap) = own {
            tap.write();
        }
    }

    /// Records segments on their way to the device.
    pub(crate) fn tx(&mut self, now: Instant, shard: &Shard, batch: &TxBatch) {
        if let Some(tap) = &mut self.own {
            tap.tx(now, shard, batch);
        }
        for tap in &mut self.attached {
            let new = batch.pending().get(tap.kept..).unwrap_or_default();
            for segment in new {
                tap.recorder.tx(now, shard, std::slice::from_ref(segment));
                tap.push();
            }
        }
    }

    /// Notes which segments the device left in the batch; they come again.
    pub(crate) fn keep(&mut self, batch: &TxBatch) {
        if let Some(tap) = &mut self.own {
            tap.keep(batch);
        }
        self.attached.iter_mut().for_each(|tap| tap.kept = batch.pending().len());
    }
}

impl AttachedTap {
    /// Queues what was recorded of one frame, unless the filter left it out.
    fn push(&mut self) {
        let record = self.recorder.take();
        if !record.is_empty() {
            self.queue.push(record);
            record.clear();
        }
    }
}

#[cfg(test)]
mod tests;
