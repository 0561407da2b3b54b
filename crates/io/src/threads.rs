//! Threads for the shards of a stack, which end together.
//!
//! Without one shard the others are no complete host, because its flows are not served. The first
//! that ends (by an error, a panic or a request) therefore ends all.

use std::io;
use std::thread::{self, Builder, ScopedJoinHandle};

use crate::Stop;
use crate::stop::StopOnDrop;
use crate::sys::pin_to;

/// Parameters of a stack's threads.
#[derive(Clone, Copy, Debug)]
pub struct ShardThreads<'s> {
    /// Ends the threads; set when one of them has ended.
    pub stop: &'s Stop,
    /// Processors to which threads are assigned in turn; if empty, the system decides.
    pub processors: &'s [usize],
}

/// Reason why a thread did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// The system could not create a thread.
    #[error("cannot start a thread: {0}")]
    Start(#[from] io::Error),
    /// The thread could not be pinned.
    #[error("cannot run on processor {processor}: {error}")]
    Pin {
        /// Number of the processor.
        processor: usize,
        /// The system's error.
        error: io::Error,
    },
}

impl ShardThreads<'_> {
    /// Runs `run` for each item on its own thread, named `whimbrel-` and its number, and `meanwhile` on
    /// this thread. The end of `meanwhile` ends them too. Returns the results in order, or the first
    /// error, when all have ended. A panic of one continues here.
    pub fn run<S: Send, T: Send, E: Send + From<ThreadError>>(
        &self,
        shards: impl IntoIterator<Item = S>,
        run: impl Fn(S) -> Result<T, E> + Sync,
        meanwhile: impl FnOnce() -> Result<(), E>,
    ) -> Result<Vec<T>, E> {
        let run = |number, shard| {
            let _whatever_happens = StopOnDrop(self.stop);
            self.pin(number)?;
            run(shard)
        };
        let run = &run;
        thread::scope(|scope| {
            let begin =
                |(number, shard)| named(number).spawn_scoped(scope, move || run(number, shard));
            let begun: io::Result<Vec<_>> = shards.into_iter().enumerate().map(begin).collect();
            let ends_all = StopOnDrop(self.stop);
            let begun = begun.map_err(ThreadError::Start)?;
            let watched = meanwhile();
            drop(ends_all);
            let ended: Vec<_> = begun.into_iter().map(join).collect();
            let ended = ended.into_iter().collect::<Result<_, _>>()?;
            watched.map(|()| ended)
        })
    }

    /// Starts a detached thread for each item.
    pub fn spawn<S: Send + 'static>(
        &self,
        shards: impl IntoIterator<Item = S>,
        run: impl Fn(S) + Clone + Send + 'static,
    ) -> io::Result<()> {
        let ends_all = StopOnDrop(self.stop);
        for (number, shard) in shards.into_iter().enumerate() {
            let run = run.clone();
            named(number).spawn(move || run(shard))?;
        }
        std::mem::forget(ends_all);
        Ok(())
    }

    /// Pins the calling thread to the processor for `number`.
    fn pin(&self, number: usize) -> Result<(), ThreadError> {
        let processor = number.checked_rem(self.processors.len());
        let Some(processor) = processor.and_then(|at| self.processors.get(at).copied()) else {
            return Ok(());
        };
        pin_to(processor).map_err(|error| ThreadError::Pin { processor, error })
    }
}

/// Joins a thread and passes its panic on.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns a builder with the thread's name; the system shows 15 bytes.
fn named(number: usize) -> Builder {
    Builder::new().name(format!("whimbrel-{number}"))
}

#[cfg(test)]
mod tests;
