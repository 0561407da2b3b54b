//! How many shards a stack has: each runs on a thread of its own, at a queue of the wire.

use std::str::FromStr;

use crate::ConfigError;

#[cfg(target_os = "linux")]
pub use plan::ShardPlan;

#[cfg(target_os = "linux")]
mod plan;

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

/// Why a wire cannot have so many shards.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardConfigError {
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

impl ShardCount {
    /// The most shards: as many queues as an interface may have.
    pub const MOST: u16 = 256;
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
