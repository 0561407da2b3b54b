//! What a link is like, and the text that says so.
//!
//! ```
//! use whimbrel_link::LinkConfig;
//!
//! let config: LinkConfig = "rate=45M,delay=35ms,loss=0.1%,queue=100p,mtu=4352".parse().unwrap();
//! assert_eq!(config.rate, Some(45_000_000));
//! let error = "loss=0.1".parse::<LinkConfig>().unwrap_err();
//! assert_eq!(error.to_string(), "loss=0.1: give 0% to 100%, as in loss=0.1%");
//! ```

mod parse;

use alloc::string::String;
use core::time::Duration;

/// One direction of a link. The default is perfect: unlimited rate, no delay, nothing lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// `rate`: bits a second, counted over whole frames as handed to the link (1 ..= 1,000 G,
    /// default none: frames take no time to send, and no queue forms).
    pub rate: Option<u64>,
    /// `delay`: how long a frame travels after it was sent (0 ..= 1 h, default 0).
    pub delay: Duration,
    /// `jitter`: up to this is added to the delay, evenly distributed (0 ..= 1 h, default 0).
    /// Jitter alone keeps frames in order, as a queue somewhere on the way would.
    pub jitter: Duration,
    /// `loss`: the chance of each frame to be lost.
    pub loss: Probability,
    /// `burst-loss`: losses that come together.
    pub burst_loss: Option<BurstLoss>,
    /// `reorder`: frames that later ones overtake.
    pub reorder: Option<Reorder>,
    /// `dup`: the chance of each frame to arrive twice.
    pub duplicate: Probability,
    /// `corrupt`: the chance of each frame to have one bit flipped.
    pub corrupt: Probability,
    /// `queue`: what may wait in front of the link, the frame that is being sent included; what
    /// exceeds it is dropped (default 1,000 packets).
    pub queue: QueueLimit,
    /// `mtu`: the longest frame that the link takes, octets (68 ..= 65,535, default 1,500).
    pub mtu: u16,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: Probability::ZERO,
            burst_loss: None,
            reorder: None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            queue: QueueLimit::Packets(1_000),
            mtu: 1_500,
        }
    }
}

/// A probability in millionths: exact, comparable, and finer than anybody configures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Probability(u32);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(Self::SCALE);
    pub(crate) const SCALE: u32 = 1_000_000;

    /// `millionths` of a million; more than all counts as always.
    pub const fn from_millionths(millionths: u32) -> Self {
        Self(if millionths > Self::SCALE { Self::SCALE } else { millionths })
    }

    /// `percent` of a hundred; more than all counts as always.
    pub const fn from_percent(percent: u32) -> Self {
        Self::from_millionths(percent.saturating_mul(10_000))
    }

    /// In millionths.
    pub const fn millionths(self) -> u32 {
        self.0
    }
}

/// Losses in bursts: two states, good and bad, and frames lost in the bad one (Gilbert 1960,
/// Elliott 1963). Typed `burst-loss=ENTER:LEAVE[:LOSS]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BurstLoss {
    /// The chance, at each frame, that the good state becomes bad.
    pub enter: Probability,
    /// The chance, at each frame, that the bad state becomes good: its inverse is the mean length
    /// of a burst in frames.
    pub leave: Probability,
    /// The chance of a frame in the bad state to be lost (default all).
    pub loss: Probability,
}

/// Frames that later ones overtake. Typed `reorder=CHANCE[:EXTRA]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reorder {
    /// The chance of each frame.
    pub chance: Probability,
    /// How much later than its turn it arrives (default 1 ms; less than the time between two
    /// frames changes nothing).
    pub extra: Duration,
}

/// What may wait in front of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// This many frames: `queue=100p`.
    Packets(u32),
    /// Frames of this many octets together: `queue=256k`.
    Octets(u64),
}

/// Why what was typed describes no link.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not of the form `key=value`.
    #[error("{0:?} is no key=value; a link has the keys {KEYS}, as in {EXAMPLE}")]
    NoValue(String),
    /// A key that is none.
    #[error("key {0:?} is unknown; a link has the keys {KEYS}, as in {EXAMPLE}")]
    UnknownKey(String),
    /// A key twice.
    #[error("{0} is given twice: give it once")]
    Repeated(&'static str),
    /// A value out of its key's range.
    #[error("{key}={value}: give {range}, as in {key}={example}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// What was given.
        value: String,
        /// What is allowed.
        range: &'static str,
        /// A value that is.
        example: &'static str,
    },
}

const KEYS: &str = "rate, delay, jitter, loss, burst-loss, reorder, dup, corrupt, queue and mtu";
const EXAMPLE: &str = "rate=45M,delay=35ms,loss=0.1%,queue=100p";

#[cfg(test)]
mod tests;
