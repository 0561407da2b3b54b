//! `--shards N|auto` and `--pin LIST`: a stack on several threads.

use std::thread;

use clap::Args;
use whimbrel_io::process::pin_to;
use whimbrel_io::shards::{ShardCount, ShardPlan, ShardPlanError};
use whimbrel_io::{Stop, WireSpec};

use crate::failure::Failure;

/// What was typed.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct ShardOptions {
    /// Run the stack on this many threads, each with its own connections and queue of the wire;
    /// auto: as many as there are processors, queues and work for [default: as many as the wire has
    /// queues].
    #[arg(long, value_name = "N|auto")]
    shards: Option<ShardCount>,
    /// Pin each thread to one of these processors, in turn, as in 0,1.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = processor)]
    pin: Vec<usize>,
}

fn processor(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "give processors by number, as in 0,1")
}

/// What shards divide among themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// The parts that it can be divided into.
    pub(crate) parts: u64,
    /// The option that says so.
    pub(crate) option: &'static str,
}

impl ShardOptions {
    /// The wire with a queue for each shard, of which each shall have some of the work, if that is
    /// known beforehand.
    pub(crate) fn plan(&self, wire: WireSpec, work: Option<Work>) -> Result<ShardPlan, Failure> {
        let plan =
            ShardPlan::new(wire, self.shards.unwrap_or_default(), work.map(|work| work.parts));
        plan.map_err(|error| {
            let text = match (&error, work) {
                (ShardPlanError::Idle { shards, parts }, Some(Work { option, .. })) => format!(
                    "{shards}: {option} leaves work for {parts}: raise it, or give fewer shards"
                ),
                (ShardPlanError::Kernel(_), _) => {
                    format!("{error}; `load` shares them among --threads")
                }
                _ => error.to_string(),
            };
            Failure::usage("--shards", text)
        })
    }

    /// The processors to run on, as they are given to shards in turn.
    pub(crate) fn processors(&self) -> Result<Vec<usize>, Failure> {
        let there = thread::available_parallelism().map_or(1, usize::from);
        match self.pin.iter().find(|processor| **processor >= there) {
            None => Ok(self.pin.clone()),
            Some(beyond) => {
                let text = format!("{beyond}: this machine has the processors 0 to {}", there - 1);
                Err(Failure::usage("--pin", text))
            }
        }
    }
}

/// Has the calling thread, that of the shard numbered `shard`, run where `processors` say.
pub(crate) fn pin(processors: &[usize], shard: usize) -> Result<(), Failure> {
    if processors.is_empty() {
        return Ok(());
    }
    let Some(processor) = processors.get(shard % processors.len()) else { return Ok(()) };
    let refused = |error| Failure::run(format!("cannot run on processor {processor}: {error}"));
    pin_to(*processor).map_err(refused)
}

/// Ends all shards with one that ends, by whatever it does: without it the others are no host, since
/// its flows go unanswered.
pub(crate) struct EndsAll<'s>(pub(crate) &'s Stop);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// What a thread came to; its panic is this one's.
pub(crate) fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests;
