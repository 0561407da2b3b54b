//! `--shards N|auto` and `--pin LIST`: a stack on several threads.

use std::thread;

use clap::Args;
use whimbrel_io::{WireSpec, sys};

use crate::failure::Failure;

/// What was typed.
#[derive(Args, Debug)]
pub(crate) struct ShardOptions {
    /// Run the stack on so many threads, each with a queue of the wire and connections of its own;
    /// auto: as many as the machine has processors [default: as many as the wire has queues].
    #[arg(long, value_name = "N|auto", value_parser = count)]
    shards: Option<u16>,
    /// Let each thread run on one of these processors alone, in turn: 0,1.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pin: Vec<usize>,
}

impl ShardOptions {
    /// The wire with a queue for each shard.
    pub(crate) fn spread(&self, wire: WireSpec) -> Result<WireSpec, Failure> {
        let Some(shards) = self.shards else { return Ok(wire) };
        let queues = wire.queues();
        if queues != 1 && queues != shards {
            let text = format!("{shards}: the wire has {queues} queues, give as many or none");
            return Err(Failure::usage("--shards", text));
        }
        wire.with_queues(shards).map_err(|error| Failure::usage("--shards", error))
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
    sys::bpf::pin_to(*processor).map_err(refused)
}

fn count(text: &str) -> Result<u16, String> {
    let most = whimbrel_io::TunConfig::MAX_QUEUES;
    if text == "auto" {
        let there = thread::available_parallelism().map_or(1, usize::from);
        return Ok(u16::try_from(there).unwrap_or(most).min(most));
    }
    let count = text.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| format!("give 1 to {most}, or auto"))
}

#[cfg(test)]
mod tests;
