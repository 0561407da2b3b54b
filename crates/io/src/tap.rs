//! A capture of what passes between a device and its shard, into files: what a [`Recorder`] makes of
//! it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whimbrel_base::Instant;
use whimbrel_link::recorder::Recorder;
use whimbrel_stack::{RxFrame, Shard, TxBatch};

use crate::Stop;
use crate::witnessed::Witnessed;

pub use crate::witnessed::Witness;

pub use whimbrel_link::recorder::RecorderConfig as TapConfig;

/// A capture under way. Ends, and says how it went, by [`Tap::finish`].
pub struct Tap {
    recorder: Recorder,
    /// Segments of the batch that were recorded already and still wait for the device.
    kept: usize,
    /// Set once all frames that there may be are written.
    enough: Option<Stop>,
    files: Arc<Mutex<Files>>,
}

/// Where frames are written, by one tap or by those of several shards.
struct Files {
    out: Witnessed,
    rotation: Option<Rotation>,
    /// Octets in this file.
    written: u64,
}

/// When a capture goes on in another file.
pub struct Rotation {
    /// Once a file has so many octets; it may exceed them by a burst of frames.
    pub octets: u64,
    /// Where it goes on.
    pub next: Box<dyn FnMut() -> io::Result<Box<dyn Write + Send>> + Send>,
}

impl Tap {
    /// A capture written to `out`, which is best buffered: there is a write for each burst.
    pub fn begin(config: TapConfig, out: impl Write + Send + 'static) -> Self {
        Self::begin_before(None, config, out)
    }

    /// The same; if the capture cannot be written any more, `witness` is told why, once and at once.
    pub fn begin_before(
        witness: Option<Witness>,
        config: TapConfig,
        out: impl Write + Send + 'static,
    ) -> Self {
        let files = Files { out: Witnessed::new(witness, out), rotation: None, written: 0 };
        let files = Arc::new(Mutex::new(files));
        let mut tap = Self { recorder: Recorder::begin(config), kept: 0, enough: None, files };
        tap.write();
        tap
    }

    /// The same in several files.
    pub fn with_rotation(self, rotation: Option<Rotation>) -> Self {
        lock(&self.files).rotation = rotation;
        self
    }

    /// Sets `stop` once as many frames are written as there may be ([`TapConfig::most`]), or no more
    /// can be.
    pub fn until(mut self, stop: Stop) -> Self {
        self.enough = Some(stop);
        self
    }

    /// A tap of another shard of the same host, into the same files. Each may write as many frames as
    /// there may be; those of one burst stay together, and bursts stand as they were written.
    pub fn of_another_shard(&self) -> Self {
        Self {
            recorder: self.recorder.of_another_shard(),
            kept: 0,
            enough: self.enough.clone(),
            files: Arc::clone(&self.files),
        }
    }

    /// Ends the capture, or its part of one: how many packets it recorded, or why no more could be
    /// written, which the first of several is told.
    pub fn finish(self) -> io::Result<u64> {
        lock(&self.files).out.finish().map(|()| self.recorder.packets())
    }

    /// Frames arrived, and go to the shard.
    pub(crate) fn rx(&mut self, now: Instant, shard: &mut Shard, burst: &[RxFrame<'_>]) {
        self.recorder.rx(now, shard, burst);
        self.write();
    }

    /// Segments go to the device.
    pub(crate) fn tx(&mut self, now: Instant, shard: &Shard, batch: &TxBatch) {
        let new = batch.pending().get(self.kept..).unwrap_or_default();
        self.recorder.tx(now, shard, new);
        self.write();
    }

    /// The device took of the batch what it could; the rest comes again.
    pub(crate) fn keep(&mut self, batch: &TxBatch) {
        self.kept = batch.pending().len();
    }

    /// After a failure nothing is written any more: the stack goes on without its capture.
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
            && self.written >= rotation.octets
        {
            self.out.go_on(&mut rotation.next);
            let header = recorder.header();
            self.out.write(&header);
            self.written = header.len() as u64;
        }
        let recorded = recorder.take();
        self.written += recorded.len() as u64;
        self.out.write(recorded);
    }
}

/// A panic in a writer leaves nothing of ours half done.
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
