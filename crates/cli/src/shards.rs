//! `--shards N|auto` and `--pin LIST`: a stack on several threads.

use std::thread;

use clap::Args;
use whimbrel_io::process::pin_to;
use whimbrel_io::{Stop, WireSpec};

use crate::failure::Failure;

/// What was typed.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct ShardOptions {
    /// Run the stack on this many threads, each with its own connections and queue of the wire;
    /// auto: as many as there are processors, queues and work for [default: as many as the wire has
    /// queues].
    #[arg(long, value_name = "N|auto", value_parser = count)]
    shards: Option<Count>,
    /// Pin each thread to one of these processors, in turn, as in 0,1.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = processor)]
    pin: Vec<usize>,
}

fn processor(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "give processors by number, as in 0,1")
}

/// How many shards were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Count {
    Auto,
    Exactly(u16),
}

/// What shards divide among themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// The parts that it can be divided into.
    pub(crate) parts: u64,
    /// The option that says so.
    pub(crate) option: &'static str,
}

/// A wire, and how many shards are on it.
#[derive(Debug)]
pub(crate) struct Spread {
    /// The wire, with a queue for each.
    pub(crate) wire: WireSpec,
    /// How many.
    pub(crate) shards: u16,
}

impl ShardOptions {
    /// The wire with a queue for each shard, of which each shall have some of the work, if that is
    /// known beforehand.
    pub(crate) fn spread(&self, wire: WireSpec, work: Option<Work>) -> Result<Spread, Failure> {
        let spread = match self.shards {
            None => Spread { shards: wire.queues(), wire },
            Some(Count::Auto) => automatic(wire, work),
            Some(Count::Exactly(shards)) => exactly(wire, shards)?,
        };
        match work {
            Some(Work { parts, option }) if u64::from(spread.shards) > parts => {
                let text = format!(
                    "{}: {option} leaves work for {parts}: raise it, or give fewer shards",
                    spread.shards
                );
                Err(Failure::usage("--shards", text))
            }
            _ => Ok(spread),
        }
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

fn exactly(wire: WireSpec, shards: u16) -> Result<Spread, Failure> {
    if wire == WireSpec::Kernel && shards != 1 {
        let text = format!(
            "{shards}: the kernel's sockets have none: leave it out; `load` shares them among --threads"
        );
        return Err(Failure::usage("--shards", text));
    }
    let queues = wire.queues();
    if queues != 1 && queues != shards {
        let text = format!("{shards}: the wire has {queues} queues, give as many or none");
        return Err(Failure::usage("--shards", text));
    }
    let wire = with_queues(wire, shards).map_err(|error| Failure::usage("--shards", error))?;
    Ok(Spread { wire, shards })
}

/// As many as have a processor, a queue and work.
fn automatic(wire: WireSpec, work: Option<Work>) -> Spread {
    if wire.queues() > 1 {
        return Spread { shards: wire.queues(), wire };
    }
    let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
    let most = work.map_or(u64::MAX, |work| work.parts).min(u64::from(MOST));
    let shards = u16::try_from(processors.min(most)).unwrap_or(MOST).max(1);
    match with_queues(wire.clone(), shards) {
        Ok(wire) => Spread { wire, shards },
        Err(_one_queue) => Spread { wire, shards: 1 },
    }
}

/// A wire in memory has as many queues as somebody asks for.
fn with_queues(wire: WireSpec, queues: u16) -> Result<WireSpec, whimbrel_io::ConfigError> {
    match wire {
        WireSpec::Mem(_) => Ok(wire),
        wire => wire.with_queues(queues),
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

fn count(text: &str) -> Result<Count, String> {
    if text == "auto" {
        return Ok(Count::Auto);
    }
    let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
    count.map(Count::Exactly).ok_or_else(|| format!("give 1 to {MOST}, or auto"))
}

const MOST: u16 = whimbrel_io::TunConfig::MAX_QUEUES;

#[cfg(test)]
mod tests;
