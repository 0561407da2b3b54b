//! Traces of a stack's connections, written by a [`Tracer`] as lines of JSON.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use whimbrel_base::Instant;
use whimbrel_link::tracer::{EntryHandler, Tracer};
use whimbrel_stack::{Medium, RxFrame, Shard, TxBatch};

use crate::checked_writer::{CheckedWriter, ErrorHandler};

/// Trace of a shard. [`Trace::finish`] ends it and returns its result.
pub struct Trace {
    tracer: Tracer,
    /// Output of all shards; `None` if a function takes the entries.
    out: Option<Arc<Mutex<CheckedWriter>>>,
}

impl Trace {
    /// Begins a trace for each of `shards` (at least 1) shards of a host, all written to `out`, which
    /// is best buffered. Lines of one burst stay together. If writing fails, `handler` gets the error,
    /// once and immediately, and the stack goes on without its trace.
    pub fn begin(
        handler: ErrorHandler,
        medium: Medium,
        shards: usize,
        out: impl Write + Send + 'static,
    ) -> Vec<Self> {
        let out = Arc::new(Mutex::new(CheckedWriter::new(Some(handler), out)));
        let tracer = |shard| Tracer::new(medium, shard as u64, shards as u64);
        let trace = |shard| Self { tracer: tracer(shard), out: Some(Arc::clone(&out)) };
        (0..shards).map(trace).collect()
    }

    /// Begins a trace of shard number `shard` of `shards` (at least 1) shards of a host, whose entries `handler` takes,
    /// on the thread of the shard, between packets.
    pub fn calling(medium: Medium, shard: usize, shards: usize, handler: EntryHandler) -> Self {
        let tracer = Tracer::new(medium, shard as u64, shards as u64);
        Self { tracer: tracer.calling(handler), out: None }
    }

    /// Traces refusals, too: SYNs without a listener, and limits that are exhausted.
    #[must_use]
    pub fn with_refusals(mut self) -> Self {
        self.tracer = self.tracer.with_refusals();
        self
    }

    /// Ends the trace of this shard: open connections get a last line. Returns the write error, if any;
    /// only the first of several callers gets it.
    pub fn finish(mut self, now: Instant, shard: &Shard) -> io::Result<()> {
        self.tracer.end(now, shard);
        self.write();
        let out = self.out.as_ref();
        out.map_or(Ok(()), |out| out.lock().unwrap_or_else(PoisonError::into_inner).finish())
    }

    /// Records arrived frames that the shard has processed.
    pub(crate) fn rx(&mut self, now: Instant, shard: &Shard, burst: &[RxFrame<'_>]) {
        self.tracer.rx(now, shard, burst);
        self.write();
    }

    /// Records segments that go to the device.
    pub(crate) fn tx(&mut self, now: Instant, shard: &Shard, batch: &TxBatch) {
        self.tracer.tx(now, shard, batch.pending());
        self.write();
    }

    fn write(&mut self) {
        let (lines, Some(out)) = (self.tracer.take(), &self.out) else { return };
        if !lines.is_empty() {
            // A panic in a writer leaves our state whole.
            out.lock().unwrap_or_else(PoisonError::into_inner).write(lines);
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
