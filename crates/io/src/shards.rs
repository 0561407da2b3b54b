//! Number of shards of a stack; each runs on its own thread with a queue of the wire.

use std::str::FromStr;

use crate::ConfigError;

#[cfg(target_os = "linux")]
pub use plan::ShardPlan;

#[cfg(target_os = "linux")]
mod plan;

/// Requested number of shards.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ShardCount {
    /// One for each queue of the wire (default).
    #[default]
    PerQueue,
    /// The smaller of the numbers of processors and possible queues. Typed `auto`.
    Auto,
    /// A fixed number, 1 to [`ShardCount::MOST`]. Typed as a number.
    Exactly(u16),
}

/// Reason why a wire does not support a number of shards.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardConfigError {
    /// Kernel sockets, which have no shards.
    #[error("{0}: the kernel's sockets have none: leave it out")]
    Kernel(u16),
    /// The wire has another number of queues.
    #[error("{shards}: the wire has {queues} queues, give as many or none")]
    Queues {
        /// Requested shards.
        shards: u16,
        /// Queues of the wire.
        queues: u16,
    },
    /// The wire does not support this number of queues.
    #[error(transparent)]
    Wire(#[from] ConfigError),
}

impl ShardCount {
    /// Limit of shards: the limit of queues of an interface.
    pub const MOST: u16 = 256;
}

/// The text is neither a number of shards nor `auto`.
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
