//! Shutdown of a stack's shards, all together.
//!
//! A shard that is no longer needed runs until the others are not needed either, because the wire would
//! otherwise deliver its flows to them. A shard that fails ends the others, because its flows are no
//! longer served.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use whimbrel_io::{Stop, Waker};

/// Shutdown state of a stack.
#[derive(Debug)]
pub(crate) struct Shutdown {
    stop: Stop,
    /// Wakers of shards that are tasks, which do not wait for `stop` itself.
    wakers: Box<[Waker]>,
    /// Number of shards that are still needed.
    needed: AtomicUsize,
    /// Reason of a premature end.
    why: OnceLock<String>,
}

impl Shutdown {
    /// Creates the state for the shards of these wakers; the end sets `stop`.
    pub(crate) fn new(stop: Stop, wakers: Box<[Waker]>) -> Self {
        Self { stop, needed: AtomicUsize::new(wakers.len()), wakers, why: OnceLock::new() }
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
        let _ = self.why.set(why);
        self.end();
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
