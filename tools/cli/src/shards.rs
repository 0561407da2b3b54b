//! `--shards N|auto` and `--pin LIST`: a stack on several threads.

use std::thread;

use clap::Args;
use whimbrel_io::{ShardConfigError, ShardCount, ShardPlan, WireSpec};

use crate::failure::Failure;

/// The options about threads and queues, as they were typed.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct ShardOptions {
    /// Run the stack on this many threads, each with its own connections and wire queue; auto: as many
    /// as processors, queues and load allow [default: as many as the wire has queues].
    #[arg(long, value_name = "N|auto")]
    shards: Option<ShardCount>,
    /// Pin each thread to one of these processors, in turn, for example 0,1.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = processor)]
    pin: Vec<usize>,
}

fn processor(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "give processors by number, as in 0,1")
}

/// Work that shards divide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// The parts that it can be divided into.
    pub(crate) parts: u64,
    /// The option that limits it.
    pub(crate) option: &'static str,
}

impl ShardOptions {
    /// The wire with a queue for each shard, of which each shall have some of the work, if that is
    /// known beforehand.
    pub(crate) fn plan(&self, wire: WireSpec, work: Option<Work>) -> Result<ShardPlan, Failure> {
        let plan = ShardPlan::new(wire, self.shards.unwrap_or_default(), work.map(|it| it.parts));
        let plan = plan.map_err(|error| match error {
            ShardConfigError::Kernel(_) => format!("{error}; `load` shares them among --threads"),
            _ => error.to_string(),
        });
        let refused = match (plan, work) {
            (Ok(ShardPlan { shards, .. }), Some(Work { parts, option }))
                if u64::from(shards) > parts =>
            {
                format!(
                    "{shards}: {option} gives work for only {parts}: raise it, or use fewer shards"
                )
            }
            (Ok(plan), _) => return Ok(plan),
            (Err(text), _) => text,
        };
        Err(Failure::usage("--shards", refused))
    }

    /// The processors to run on, given to shards in turn.
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

#[cfg(test)]
mod tests;
