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

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

/// One direction of a link. The default is perfect: unlimited rate, no delay, nothing lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkConfig {
    /// `rate`: bits a second, counted over whole frames as handed to the link (1 ..= 1,000 G,
    /// default none: frames take no time to send, and no queue forms).
    pub rate: Option<u64>,
    /// `delay`: how long a frame travels after it was sent (0 ..= 1 h, default 0).
    pub delay: Duration,
    /// `host-delay`: how much later the host at its end, a slow one, looks at each frame (0 ..= 1 h, default
    /// 0). Frames do not wait for each other there, and it is no part of the round trip that
    /// `queue=1bdp` counts by.
    pub host_delay: Duration,
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
    /// `drop`: transmissions that are lost by their place in their stream, in each direction and of each
    /// connection (default none).
    pub drop: Vec<TargetedDrop>,
    /// `ecn`: frames of a transport that understands marks are marked "congestion experienced"
    /// (RFC 3168 5) while at least this many bytes wait, themselves included (0 ..= 1 G, default none).
    /// 0 marks all, a queue or not.
    pub ecn: Option<u64>,
    /// `queue`: what may wait in front of the link, the frame that is being sent included; what
    /// exceeds it is dropped (default 1,000 packets).
    pub queue: QueueLimit,
    /// `mtu`: the longest frame that the link takes, bytes (68 ..= 65,535, default 1,500).
    pub mtu: u16,
    /// `police`: what exceeds a rate is dropped in front of the queue (default nothing).
    pub police: Option<Policing>,
    /// `ack-batch`: acknowledgments without text wait and leave together, at the multiples of this time
    /// (0 ..= 1 h, default 0: none waits).
    pub ack_batch: Duration,
    /// `ack-filter`: a newer acknowledgment takes the place of an older one of its connection in the
    /// queue, if it says all that the older says (default off).
    pub ack_filter: bool,
    /// `ecn-bleach`: frames enter without their ECN codepoint (default off).
    pub ecn_bleach: bool,
    /// `accecn-strip`: Accurate ECN options (RFC 9768 3.2.3) are overwritten (default off).
    pub accecn_strip: bool,
    /// `at`: what changes later, in the order of time (at most 1,000, default none).
    pub steps: Vec<Step>,
    /// `back.KEY`: what the way back is like, if it differs ([`LinkConfig::back`]).
    pub back: Option<Box<Self>>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: None,
            delay: Duration::ZERO,
            host_delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: Probability::ZERO,
            burst_loss: None,
            reorder: None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            drop: Vec::new(),
            ecn: None,
            queue: QueueLimit::Packets(1_000),
            mtu: 1_500,
            police: None,
            ack_batch: Duration::ZERO,
            ack_filter: false,
            ecn_bleach: false,
            accecn_strip: false,
            steps: Vec::new(),
            back: None,
        }
    }
}

/// A probability in millionths: exact, comparable, and finer than anybody configures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Probability(u32);

impl Probability {
    /// The probability of what never happens.
    pub const ZERO: Self = Self(0);
    /// The probability of what always happens.
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

    /// The probability in millionths, 0 to 1,000,000.
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
    /// Frames of this many bytes together: `queue=256k`.
    Octets(u64),
    /// So many thousandths of the product of rate and round trip (twice `delay`), in bytes, but at
    /// least [`QueueLimit::LEAST_BDP_FRAMES`] full frames: `queue=1bdp`.
    Bdp(u32),
}

impl QueueLimit {
    /// A queue that is measured in round trips holds this many frames of the MTU even where those are
    /// short: less would lose packets of a burst that any real device keeps.
    pub const LEAST_BDP_FRAMES: u64 = 16;
}

/// What may wait, whatever way it was said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBounds {
    pub frames: u64,
    pub bytes: u64,
}

impl LinkConfig {
    /// The way back of a path that is like this: what `back.KEY` said, or alike, but that the slow host is
    /// at one end alone.
    #[must_use]
    pub fn back(&self) -> Self {
        let alike = || Self { host_delay: Duration::ZERO, ..self.clone() };
        self.back.as_deref().map_or_else(alike, Self::clone)
    }

    /// True if frames of different connections affect each other: they then need one link for all.
    pub fn is_shared(&self) -> bool {
        self.has_queue() || self.police.is_some() || self.burst_loss.is_some()
    }

    /// True if frames wait for each other, now or after a step.
    pub fn has_queue(&self) -> bool {
        let has_rate = |step: &Step| matches!(step.change, Change::Rate(_));
        self.rate.is_some() || self.steps.iter().any(has_rate)
    }

    pub(crate) fn queue_bounds(&self) -> QueueBounds {
        let bytes = |bytes| QueueBounds { frames: u64::MAX, bytes };
        match self.queue {
            QueueLimit::Packets(frames) => {
                QueueBounds { frames: u64::from(frames), bytes: u64::MAX }
            }
            QueueLimit::Octets(most) => bytes(most),
            QueueLimit::Bdp(thousandths) => {
                let bits = u128::from(self.rate.unwrap_or(0)) * (2 * self.delay.as_nanos());
                let product = bits * u128::from(thousandths) / (8 * 1_000 * 1_000_000_000);
                let least = QueueLimit::LEAST_BDP_FRAMES * u64::from(self.mtu);
                bytes(u64::try_from(product).unwrap_or(u64::MAX).max(least))
            }
        }
    }
}

/// A transmission that is lost because it was named. Typed `drop=N[/K][+N[/K]…]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetedDrop {
    /// Which full segment of a stream's text, in the order of its numbers, from 1 on; what carries its
    /// first byte is lost. Full is what fits the link's MTU beside the headers that the first segment
    /// with text has (1 ..= 100,000, within the first GiB of text).
    pub segment: u32,
    /// Which transmission of that byte, from 1 on, lost ones counted (1 ..= 255, default 1).
    pub transmission: u8,
}

/// A rate that nothing may exceed for long. Typed `police=RATE:BURST`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policing {
    /// Bits per second of whole frames by which tokens come.
    pub rate: u64,
    /// Bytes that pass at once after a silence: the most tokens there are.
    pub burst: u64,
}

/// A change of a link at a known time. Typed `at=TIME:CHANGE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// When it happens, since the clock of the link's users began (0 ..= 1 h).
    pub at: Duration,
    /// The property that changes, and its new value.
    pub change: Change,
}

/// A change of one thing. No host learns of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// `rate=RATE`: what waits is sent at the new rate, and so is the rest of the frame that is being sent.
    Rate(u64),
    /// `delay=TIME`: of what is sent from then on. Where it is shorter, nothing is overtaken.
    Delay(Duration),
    /// `mtu=BYTES`: longer frames that come from then on are dropped.
    Mtu(u16),
    /// `down`: what is on the link is lost, and what comes.
    Down,
    /// `up`: the link carries frames again.
    Up,
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
    /// A key was given twice.
    #[error("{0} is given twice: give it once")]
    Repeated(&'static str),
    /// A value out of its key's range.
    #[error("{key}={value}: give {range}, as in {key}={example}")]
    BadValue {
        /// The key whose value it is.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are allowed, in words.
        range: &'static str,
        /// A value that is.
        example: &'static str,
    },
    /// What waits for a line waits only where a line has a rate.
    #[error("{key}={value}: without rate= no frame ever waits: give a rate, too, as in rate=45M")]
    NeedsRate {
        /// The key whose value it is.
        key: &'static str,
        /// The value that was given.
        value: String,
    },
    /// A queue that is shorter than one frame.
    #[error(
        "queue={bytes}: a full frame has {mtu} bytes (mtu=), none of which would ever pass: give {mtu} \
         or more, or packets, as in queue=100p"
    )]
    QueueTooShort {
        /// What was given, bytes.
        bytes: u64,
        /// The MTU of the same link, bytes.
        mtu: u16,
    },
    /// A bucket that holds less than one frame.
    #[error(
        "police={rate}:{burst}: a full frame has {mtu} bytes (mtu=), none of which would ever pass: give a \
         burst of {mtu} or more, as in police=10M:30k"
    )]
    BurstTooShort {
        /// The rate that was given, bits per second.
        rate: u64,
        /// The burst that was given, bytes.
        burst: u64,
        /// The MTU of the same link, bytes.
        mtu: u16,
    },
    /// An error in a key of the way back.
    #[error("back.{0}")]
    Back(Box<Self>),
}

const KEYS: &str = "rate, delay, host-delay, jitter, loss, burst-loss, drop, reorder, dup, corrupt, ecn, queue, \
     mtu, police, ack-batch, ack-filter, ecn-bleach, accecn-strip, at, and back.KEY for the way back";
const EXAMPLE: &str = "rate=45M,delay=35ms,loss=0.1%,queue=100p";

#[cfg(test)]
mod tests;
