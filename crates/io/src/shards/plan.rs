//! Derives the number of shards of a wire from the requested number.

use std::thread;

use super::{ShardConfigError, ShardCount};
use crate::{ConfigError, TunConfig, WireSpec};

/// A wire and its number of shards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardPlan {
    /// The wire, with a queue for each shard; `mem:` creates the queues when it is opened.
    pub wire: WireSpec,
    /// Number of shards, at least 1.
    pub shards: u16,
}

impl ShardPlan {
    /// Plans a queue of the wire for each shard. `parts` is the number of units of work to be
    /// divided among them, if it is known: [`ShardCount::Auto`] creates no shard without work.
    pub fn new(
        wire: WireSpec,
        count: ShardCount,
        parts: Option<u64>,
    ) -> Result<Self, ShardConfigError> {
        Ok(match count {
            ShardCount::PerQueue => Self { shards: wire.queues(), wire },
            ShardCount::Auto => Self::automatic(wire, parts),
            ShardCount::Exactly(shards) => Self::exactly(wire, shards)?,
        })
    }

    fn exactly(wire: WireSpec, shards: u16) -> Result<Self, ShardConfigError> {
        let queues = wire.queues();
        if wire == WireSpec::Kernel && shards != 1 {
            return Err(ShardConfigError::Kernel(shards));
        }
        if queues != 1 && queues != shards {
            return Err(ShardConfigError::Queues { shards, queues });
        }
        Ok(Self { wire: with_queues(wire, shards)?, shards })
    }

    /// Plans as many shards as there are processors, queues and units of work.
    fn automatic(wire: WireSpec, parts: Option<u64>) -> Self {
        if wire.queues() > 1 {
            return Self { shards: wire.queues(), wire };
        }
        let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
        let most = parts.unwrap_or(u64::MAX).min(ShardCount::MOST.into());
        let shards = u16::try_from(processors.min(most)).unwrap_or(ShardCount::MOST).max(1);
        match with_queues(wire.clone(), shards) {
            Ok(wire) => Self { wire, shards },
            Err(_one_queue) => Self { wire, shards: 1 },
        }
    }
}

/// Returns the wire with this number of queues; a wire in memory takes any number.
fn with_queues(wire: WireSpec, queues: u16) -> Result<WireSpec, ConfigError> {
    match wire {
        WireSpec::Mem(_) => Ok(wire),
        wire => wire.with_queues(queues),
    }
}

const _: () = assert!(ShardCount::MOST == TunConfig::MAX_QUEUES);
