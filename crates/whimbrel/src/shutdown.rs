//! Shutdown of a stack's shards, all together.
//!
//! A shard that is no longer needed runs until the others are not needed either, because the wire would
//! otherwise deliver its flows to them. A shard that fails ends the others, because its flows are no
//! longer served.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use whimbrel_io::{Stop, Waker};

/// Shutdown state of a stack.
pub(crate) struct Shutdown {
    stop: Stop,
    /// Wakers of shards that are tasks, which do not wait for `stop` itself.
    wakers: Box<[Waker]>,
    /// Number of shards that are still needed.
    needed: AtomicUsize,
    /// Reason of a premature end.
    why: OnceLock<String>,
    /// Learns that reason.
    on_failure: OnceLock<Box<OnFailure>>,
}

// A stream is unwind safe, as tokio's is.
type OnFailure = dyn Fn(&str) + Send + Sync + UnwindSafe + RefUnwindSafe;

impl Shutdown {
    /// Creates the state for the shards of these wakers; the end sets `stop`.
    pub(crate) fn new(stop: Stop, wakers: Box<[Waker]>) -> Self {
        Self {
            stop,
            needed: AtomicUsize::new(wakers.len()),
            wakers,
            why: OnceLock::new(),
            on_failure: OnceLock::new(),
        }
    }

    /// Returns the signal that ends the workers.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Releases one shard, which calls this once.
    pub(crate) fn release(&self) {
        if self.needed.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end();
        }
    }

    /// Records that a shard failed. The first reason counts.
    pub(crate) fn fail(&self, why: String) {
        if self.why.set(why).is_ok()
            && let Some(tell) = self.on_failure.get()
        {
            tell(&self.why());
        }
        self.end();
    }

    /// Ends the stack for this reason, which is no failure of it.
    #[cfg(feature = "sim")]
    pub(crate) fn end_for(&self, why: String) {
        let _ = self.why.set(why);
        self.end();
    }

    /// Calls `tell` with the reason if a shard fails.
    #[cfg(feature = "sim")]
    pub(crate) fn on_failure(
        &self,
        tell: impl Fn(&str) + Send + Sync + UnwindSafe + RefUnwindSafe + 'static,
    ) {
        let _ = self.on_failure.set(Box::new(tell));
    }

    fn end(&self) {
        self.stop.set();
        self.wakers.iter().for_each(Waker::wake);
    }

    /// Returns the reason of the end, as text for users.
    pub(crate) fn why(&self) -> String {
        self.why.get().cloned().unwrap_or_else(|| "nothing of it was held any more".into())
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shutdown").field("why", &self.why).finish_non_exhaustive()
    }
}
