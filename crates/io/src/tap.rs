//! Captures of the frames between a device and its shard, written to files by a [`Recorder`].

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_base::Instant;
use whimbrel_link::recorder::Recorder;
use whimbrel_stack::{RxFrame, Shard, TxBatch};

use crate::Stop;
use crate::checked_writer::CheckedWriter;

mod attached;

pub use crate::checked_writer::ErrorHandler;
pub(crate) use attached::Taps;
pub use attached::{FrameQueue, TapSlot};

pub use whimbrel_link::recorder::RecorderConfig as TapConfig;

/// A running capture. [`Tap::finish`] ends it and returns its result.
pub struct Tap {
    recorder: Recorder,
    /// Segments of the batch that are recorded and still wait for the device.
    kept: usize,
    /// Set once the limit of frames is written.
    enough: Option<Stop>,
    files: Arc<Mutex<Files>>,
}

/// Output of one tap, or of those of several shards.
struct Files {
    out: CheckedWriter,
    rotation: Option<Rotation>,
    /// Bytes in this file.
    written: u64,
}

/// Continuation of a capture in another file.
pub struct Rotation {
    /// Size in bytes at which a file ends; a burst of frames may exceed it.
    pub bytes: u64,
    /// Opens the next file.
    pub next: Box<dyn FnMut() -> io::Result<Box<dyn Write + Send>> + Send>,
}

impl Tap {
    /// Begins a capture to `out`, which is best buffered: there is a write for each burst.
    pub fn begin(config: TapConfig, out: impl Write + Send + 'static) -> Self {
        Self::begin_with(None, config, out)
    }

    /// Begins a capture; if writing fails, `handler` gets the error, once and immediately.
    pub fn begin_with(
        handler: Option<ErrorHandler>,
        config: TapConfig,
        out: impl Write + Send + 'static,
    ) -> Self {
        let files = Files { out: CheckedWriter::new(handler, out), rotation: None, written: 0 };
        let files = Arc::new(Mutex::new(files));
        let mut tap = Self { recorder: Recorder::begin(config), kept: 0, enough: None, files };
        tap.write();
        tap
    }

    /// Continues the capture in several files.
    pub fn with_rotation(self, rotation: Option<Rotation>) -> Self {
        lock(&self.files).rotation = rotation;
        self
    }

    /// Sets `stop` once the limit of frames ([`TapConfig::most`]) is written or writing fails.
    pub fn until(mut self, stop: Stop) -> Self {
        self.enough = Some(stop);
        self
    }

    /// Returns a tap for another shard of the host, into the same files. Each has its own limit of
    /// frames. Frames of one burst stay together, and bursts are in the order of their writes.
    pub fn of_another_shard(&self) -> Self {
        Self {
            recorder: self.recorder.of_another_shard(),
            kept: 0,
            enough: self.enough.clone(),
            files: Arc::clone(&self.files),
        }
    }

    /// Ends the capture of this tap. Returns the number of recorded packets, or the write error, which
    /// only the first of several callers gets.
    pub fn finish(self) -> io::Result<u64> {
        lock(&self.files).out.finish().map(|()| self.recorder.packets())
    }

    /// Records arrived frames on their way to the shard.
    fn rx(&mut self, now: Instant, shard: &mut Shard, burst: &[RxFrame<'_>]) {
        self.recorder.rx(now, shard, burst);
        self.write();
    }

    /// Records segments on their way to the device.
    fn tx(&mut self, now: Instant, shard: &Shard, batch: &TxBatch) {
        let new = batch.pending().get(self.kept..).unwrap_or_default();
        self.recorder.tx(now, shard, new);
        self.write();
    }

    /// Notes which segments the device left in the batch; they come again.
    fn keep(&mut self, batch: &TxBatch) {
        self.kept = batch.pending().len();
    }

    /// Writes nothing after a failure: the stack goes on without its capture.
    fn write(&mut self) {
        let mut files = lock(&self.files);
        files.write(&mut self.recorder);
        self.recorder.take().clear();
        if let Some(enough) = &self.enough
            && (self.recorder.is_full() || files.out.is_broken())
        {
            enough.set();
        }
    }
}

impl Files {
    fn write(&mut self, recorder: &mut Recorder) {
        if recorder.take().is_empty() {
            return;
        }
        if let Some(rotation) = &mut self.rotation
            && self.written >= rotation.bytes
        {
            self.out.continue_in(&mut rotation.next);
            let header = recorder.header();
            self.out.write(&header);
            self.written = header.len() as u64;
        }
        let recorded = recorder.take();
        self.written += recorded.len() as u64;
        self.out.write(recorded);
    }
}

/// Locks the files. A panic in a writer leaves our state whole.
fn lock(files: &Mutex<Files>) -> MutexGuard<'_, Files> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap").field("recorder", &self.recorder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
