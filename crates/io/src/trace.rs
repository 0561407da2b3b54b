//! What becomes of each connection of a stack, as lines of JSON in a file: what a [`Tracer`] makes of it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use whimbrel_base::Instant;
use whimbrel_link::tracer::Tracer;
use whimbrel_stack::{Medium, RxFrame, Shard, TxBatch};

use crate::witnessed::{Witness, Witnessed};

/// The trace of a shard. Ends, and says how it went, by [`Trace::finish`].
pub struct Trace {
    tracer: Tracer,
    /// Where all shards write.
    out: Arc<Mutex<Witnessed>>,
}

impl Trace {
    /// A trace of each of so many (>= 1) shards of a host, all written to `out`, which is best buffered:
    /// lines of one burst stay together. If no more can be written, `witness` is told why, once and at
    /// once, and the stack goes on without its trace.
    pub fn begin(
        witness: Witness,
        medium: Medium,
        shards: usize,
        out: impl Write + Send + 'static,
    ) -> Vec<Self> {
        let out = Arc::new(Mutex::new(Witnessed::new(Some(witness), out)));
        let tracer = |shard| Tracer::new(medium, shard as u64, shards as u64);
        (0..shards).map(|shard| Self { tracer: tracer(shard), out: Arc::clone(&out) }).collect()
    }

    /// The run is over for this shard: connections that are still there get a last line. Returns why no
    /// more could be written, which the first of several is told.
    pub fn finish(mut self, now: Instant, shard: &Shard) -> io::Result<()> {
        self.tracer.end(now, shard);
        self.write();
        self.out.lock().unwrap_or_else(PoisonError::into_inner).finish()
    }

    /// Frames arrived, and the shard has dealt with them.
    pub(crate) fn rx(&mut self, now: Instant, shard: &Shard, burst: &[RxFrame<'_>]) {
        self.tracer.rx(now, shard, burst);
        self.write();
    }

    /// Segments go to the device.
    pub(crate) fn tx(&mut self, now: Instant, shard: &Shard, batch: &TxBatch) {
        self.tracer.tx(now, shard, batch.pending());
        self.write();
    }

    fn write(&mut self) {
        let lines = self.tracer.take();
        if !lines.is_empty() {
            // A panic in a writer leaves nothing of ours half done.
            self.out.lock().unwrap_or_else(PoisonError::into_inner).write(lines);
            lines.clear();
        }
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("tracer", &self.tracer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
