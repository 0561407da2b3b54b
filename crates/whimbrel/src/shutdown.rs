//! How the shards of a stack end: all together.
//!
//! A shard that nobody needs any more goes on until the others are not needed either: without its
//! queue the wire would deal its flows to them. One that fails takes the others with it, for what it
//! does not answer the stack does not answer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use whimbrel_io::{Stop, Waker};

/// The end of a stack.
#[derive(Debug)]
pub(crate) struct Shutdown {
    stop: Stop,
    /// What wakes the shards that are tasks, which do not wait for `stop` itself.
    wakers: Box<[Waker]>,
    /// Shards that are needed still.
    needed: AtomicUsize,
    /// Why it ended too early.
    why: OnceLock<String>,
}

impl Shutdown {
    /// Of the shards that these wake; sets `stop`.
    pub(crate) fn new(stop: Stop, wakers: Box<[Waker]>) -> Self {
        Self { stop, needed: AtomicUsize::new(wakers.len()), wakers, why: OnceLock::new() }
    }

    /// What ends the workers.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// A shard is not needed any more; it says so once.
    pub(crate) fn release(&self) {
        if self.needed.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.end();
        }
    }

    /// A shard can go on no longer. The first reason counts.
    pub(crate) fn fail(&self, why: String) {
        let _ = self.why.set(why);
        self.end();
    }

    fn end(&self) {
        self.stop.set();
        self.wakers.iter().for_each(Waker::wake);
    }

    /// Why the stack ended, in words for its users.
    pub(crate) fn why(&self) -> String {
        self.why.get().cloned().unwrap_or_else(|| "nobody held it any more".into())
    }
}
