//! How many shards a stack has: each runs on a thread of its own, at a queue of the wire.

use std::str::FromStr;
use std::thread;

use crate::{ConfigError, TunConfig, WireSpec};

/// How many shards a stack is to have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ShardCount {
    /// As many as the wire has queues (default).
    #[default]
    PerQueue,
    /// As many as there are processors, queues and work for. Typed `auto`.
    Auto,
    /// So many: 1 to [`ShardCount::MOST`]. Typed as a number.
    Exactly(u16),
}

/// A wire, and how many shards are on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardPlan {
    /// The wire, with a queue for each; `mem:` makes them when it is opened.
    pub wire: WireSpec,
    /// How many shards there are, one at least.
    pub shards: u16,
}

/// Why a wire cannot have so many shards.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardPlanError {
    /// The kernel's sockets, on which there are none.
    #[error("{0}: the kernel's sockets have none: leave it out")]
    Kernel(u16),
    /// A wire with another number of queues.
    #[error("{shards}: the wire has {queues} queues, give as many or none")]
    Queues {
        /// The shards that were asked for.
        shards: u16,
        /// The queues of the wire.
        queues: u16,
    },
    /// A wire that cannot have so many queues.
    #[error(transparent)]
    Wire(#[from] ConfigError),
}

impl ShardPlan {
    /// The wire with a queue for each shard. What they divide among themselves comes in so many
    /// `parts`, if that is known beforehand: [`ShardCount::Auto`] makes no shard that has none.
    pub fn new(
        wire: WireSpec,
        count: ShardCount,
        parts: Option<u64>,
    ) -> Result<Self, ShardPlanError> {
        Ok(match count {
            ShardCount::PerQueue => Self { shards: wire.queues(), wire },
            ShardCount::Auto => Self::automatic(wire, parts),
            ShardCount::Exactly(shards) => Self::exactly(wire, shards)?,
        })
    }

    fn exactly(wire: WireSpec, shards: u16) -> Result<Self, ShardPlanError> {
        let queues = wire.queues();
        if wire == WireSpec::Kernel && shards != 1 {
            return Err(ShardPlanError::Kernel(shards));
        }
        if queues != 1 && queues != shards {
            return Err(ShardPlanError::Queues { shards, queues });
        }
        Ok(Self { wire: with_queues(wire, shards)?, shards })
    }

    /// As many as have a processor, a queue and work.
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

/// A wire in memory has as many queues as somebody asks for.
fn with_queues(wire: WireSpec, queues: u16) -> Result<WireSpec, ConfigError> {
    match wire {
        WireSpec::Mem(_) => Ok(wire),
        wire => wire.with_queues(queues),
    }
}

impl ShardCount {
    /// The most shards: as many queues as an interface may have.
    pub const MOST: u16 = TunConfig::MAX_QUEUES;
}

/// What was typed is neither a number of shards nor `auto`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("give 1 to {}, or auto", ShardCount::MOST)]
pub struct ShardCountError;

impl FromStr for ShardCount {
    type Err = ShardCountError;

    fn from_str(text: &str) -> Result<Self, ShardCountError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let count = text.parse().ok().filter(|count| (1..=Self::MOST).contains(count));
        count.map(Self::Exactly).ok_or(ShardCountError)
    }
}

#[cfg(test)]
mod tests;
