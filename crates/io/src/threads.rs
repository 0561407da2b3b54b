//! A thread for each shard of a stack, and the end that they have in common.
//!
//! Without one of them the others are no host, since its flows go unanswered: whichever ends first, by an
//! error, a panic or because it was asked to, ends all.

use std::io;
use std::thread::{self, Builder, ScopedJoinHandle};

use crate::Stop;
use crate::stop::StopOnDrop;
use crate::sys::pin_to;

/// How the threads of a stack run.
#[derive(Clone, Copy, Debug)]
pub struct ShardThreads<'s> {
    /// What ends them, and is set when one of them has ended.
    pub stop: &'s Stop,
    /// The processors that they run on, which they are given in turn; none: wherever the system likes.
    pub processors: &'s [usize],
}

/// Why a thread did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// The system gave none.
    #[error("cannot start a thread: {0}")]
    Start(#[from] io::Error),
    /// It may not run where it was to.
    #[error("cannot run on processor {processor}: {error}")]
    Pin {
        /// The number of the processor that it was to stay on.
        processor: usize,
        /// Why the system refused that.
        error: io::Error,
    },
}

impl ShardThreads<'_> {
    /// Runs each of these on a thread of its own, called `whimbrel-` and its number, and `meanwhile` on
    /// this one, whose end ends them, too. Returns when all have ended: what each came to, in their order,
    /// or the first error. A panic of one of them goes on here.
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

    /// Begins a thread for each of these, and leaves it to itself.
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

    /// Has the calling thread run where that numbered `number` is to.
    fn pin(&self, number: usize) -> Result<(), ThreadError> {
        let processor = number.checked_rem(self.processors.len());
        let Some(processor) = processor.and_then(|at| self.processors.get(at).copied()) else {
            return Ok(());
        };
        pin_to(processor).map_err(|error| ThreadError::Pin { processor, error })
    }
}

/// What a thread came to; its panic is this one's.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The system shows 15 bytes of a name.
fn named(number: usize) -> Builder {
    Builder::new().name(format!("whimbrel-{number}"))
}

#[cfg(test)]
mod tests;
