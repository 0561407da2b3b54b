//! Configuration of a link, and its text form.
//!
//! ```
//! use whimbrel_link::LinkConfig;
//!
//! let config: LinkConfig = "rate=45M,delay=35ms,loss=0.1%,queue=100p,mtu=4352".parse().unwrap();
//! assert_eq!(config.rate, Some(45_000_000));
//! let error = "loss=0.1".parse::<LinkConfig>().unwrap_err();
//! assert_eq!(error.to_string(), "loss=0.1: give 0% to 100%, as in loss=0.1%");
//! ```

mod build;
mod parse;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_wire::tcp::StrippedOptions;

/// One direction of a link. The default is perfect: unlimited rate, no delay, nothing lost.
///
/// It is parsed from text, which checks each value, or built from the default:
///
/// ```
/// use core::time::Duration;
/// use whimbrel_link::{LinkConfig, Probability};
///
/// let built = LinkConfig::default()
///     .with_rate(10_000_000)
///     .with_delay(Duration::from_millis(80))
///     .with_loss(Probability::from_percent(1));
/// assert_eq!(Ok(built), "rate=10M,delay=80ms,loss=1%".parse());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LinkConfig {
    /// `rate`: bits per second, counted over whole frames as passed to the link (1 ..= 1,000 G,
    /// default none: frames take no time to send, and no queue forms).
    pub rate: Option<u64>,
    /// `delay`: travel time of a frame after it was sent (0 ..= 1 h, default 0).
    pub delay: Duration,
    /// `host-delay`: additional delay at a slow receiving host (0 ..= 1 h, default 0). Frames do
    /// not wait for each other there, and the delay is no part of the round trip that `queue=1bdp`
    /// counts by.
    pub host_delay: Duration,
    /// `jitter`: up to this is added to the delay, evenly distributed (0 ..= 1 h, default 0).
    /// Jitter keeps frames in order, as a queue on the path would.
    pub jitter: Duration,
    /// `loss`: probability that a frame is lost.
    pub loss: Probability,
    /// `burst-loss`: losses that come together.
    pub burst_loss: Option<BurstLoss>,
    /// `reorder`: frames overtaken by later ones.
    pub reorder: Option<Reorder>,
    /// `dup`: probability that a frame arrives twice.
    pub duplicate: Probability,
    /// `corrupt`: probability that one bit of a frame is flipped.
    pub corrupt: Probability,
    /// `drop`: transmissions lost by their position in their stream, in each direction and of each
    /// connection (default none).
    pub drop: Vec<TargetedDrop>,
    /// `ecn`: frames of an ECN-capable transport are marked "congestion experienced" (RFC 3168 5)
    /// while at least this many bytes wait, themselves included (0 ..= 1 G, default none). 0 marks
    /// all, with or without a queue.
    pub ecn: Option<u64>,
    /// `queue`: limit of the queue in front of the link, with the frame being sent; excess is
    /// dropped (default 1,000 packets).
    pub queue: QueueLimit,
    /// `mtu`: longest frame of the link, bytes (68 ..= 65,535, default 1,500).
    pub mtu: u16,
    /// `police`: frames above a rate are dropped in front of the queue (default none).
    pub police: Option<Policing>,
    /// `ack-batch`: acknowledgments without text wait and leave together, at the multiples of this
    /// time (0 ..= 1 h, default 0: none waits).
    pub ack_batch: Duration,
    /// `ack-filter`: a newer acknowledgment replaces an older one of its connection in the queue,
    /// if it covers it (default off).
    pub ack_filter: bool,
    /// `ecn-bleach`: frames enter without their ECN codepoint (default off).
    pub ecn_bleach: bool,
    /// `accecn-strip`: Accurate ECN options (RFC 9768 3.2.3) are overwritten (default off).
    pub accecn_strip: bool,
    /// `strip`: options overwritten in all segments (default none).
    pub strip: StrippedOptions,
    /// `forget`: a middlebox forgets flows that are idle for this time (default none).
    pub forget: Option<Forgetting>,
    /// `inject`: a middlebox resets the receiver of each flow's first text, in the sender's name
    /// (default off).
    pub inject_rst: bool,
    /// `at`: later changes, in order of time (at most 1,000, default none).
    pub steps: Vec<Step>,
    /// `back.KEY`: the way back, if it differs ([`LinkConfig::back`]).
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
            strip: StrippedOptions::default(),
            forget: None,
            inject_rst: false,
            steps: Vec::new(),
            back: None,
        }
    }
}

/// A probability in millionths: exact, comparable, and fine enough for any configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Probability(u32);

impl Probability {
    /// Probability of an impossible event.
    pub const ZERO: Self = Self(0);
    /// Probability of a certain event.
    pub const ONE: Self = Self(Self::SCALE);
    pub(crate) const SCALE: u32 = 1_000_000;

    /// `millionths` of a million; more count as 1.
    pub const fn from_millionths(millionths: u32) -> Self {
        Self(if millionths > Self::SCALE { Self::SCALE } else { millionths })
    }

    /// `percent` of a hundred; more count as 1.
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
    /// Probability, at each frame, that the good state becomes bad.
    pub enter: Probability,
    /// Probability, at each frame, that the bad state becomes good: its inverse is the mean length
    /// of a burst in frames.
    pub leave: Probability,
    /// Probability that a frame in the bad state is lost (default 1).
    pub loss: Probability,
}

/// Frames overtaken by later ones. Typed `reorder=CHANCE[:EXTRA]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reorder {
    /// Probability for each frame.
    pub chance: Probability,
    /// Additional delay of a frame (default 1 ms; less than the time between two frames changes
    /// nothing).
    pub extra: Duration,
}

/// Limit of the queue in front of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueLimit {
    /// This many frames: `queue=100p`.
    Packets(u32),
    /// Frames of this many bytes together: `queue=256k`.
    Bytes(u64),
    /// Thousandths of the product of rate and round trip (twice `delay`), in bytes, but at least
    /// [`QueueLimit::LEAST_BDP_FRAMES`] full frames: `queue=1bdp`.
    Bdp(u32),
}

impl QueueLimit {
    /// A queue measured in round trips holds at least this many frames of the MTU: less would lose
    /// packets of a burst that any real device keeps.
    pub const LEAST_BDP_FRAMES: u64 = 16;
}

/// Limit of the queue in frames and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueBounds {
    pub frames: u64,
    pub bytes: u64,
}

impl LinkConfig {
    /// The way back of this path: from its `back.KEY`, or the same, except that the slow host is at
    /// one end only.
    #[must_use]
    pub fn back(&self) -> Self {
        let alike = || Self { host_delay: Duration::ZERO, ..self.clone() };
        self.back.as_deref().map_or_else(alike, Self::clone)
    }

    /// True if frames of different connections affect each other, and so need one link for all.
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
            QueueLimit::Bytes(most) => bytes(most),
            QueueLimit::Bdp(thousandths) => {
                let bits = u128::from(self.rate.unwrap_or(0)) * (2 * self.delay.as_nanos());
                let product = bits * u128::from(thousandths) / (8 * 1_000 * 1_000_000_000);
                let least = QueueLimit::LEAST_BDP_FRAMES * u64::from(self.mtu);
                bytes(u64::try_from(product).unwrap_or(u64::MAX).max(least))
            }
        }
    }
}

/// A transmission named to be lost. Typed `drop=N[/K][+N[/K]…]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetedDrop {
    /// Number of the full segment in a stream's text, from 1 on; the packet with its first byte is
    /// lost. A full segment fits the link's MTU with the headers of the first segment with text (1
    /// ..= 100,000, within the first GiB of text).
    pub segment: u32,
    /// Number of the transmission of that byte, from 1 on, lost ones included (1 ..= 255, default
    /// 1).
    pub transmission: u8,
}

/// Rate limit of a policer. Typed `police=RATE:BURST`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policing {
    /// Rate of tokens, bits per second of whole frames.
    pub rate: u64,
    /// Bytes that pass at once after a silence: the most tokens.
    pub burst: u64,
}

/// A middlebox that forgets idle flows, each direction by itself. Typed `forget=TIME[:rst]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forgetting {
    /// Time without a frame of the flow in this direction (1 ns ..= 1 h).
    pub after: Duration,
    /// Fate of the flow.
    pub then: Forgotten,
}

/// Fate of a forgotten flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forgotten {
    /// Its frames are lost until the next SYN.
    Lost,
    /// Its receiver is reset at once, unless the sender has sent its FIN.
    Reset,
}

/// A change of a link at a known time. Typed `at=TIME:CHANGE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Time since the clock of the link's users started (0 ..= 1 h).
    pub at: Duration,
    /// The change.
    pub change: Change,
}

/// A change of one property. Hosts are not notified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// `rate=RATE`: waiting frames are sent at the new rate, and so is the rest of the frame being
    /// sent.
    Rate(u64),
    /// `delay=TIME`: applies to frames sent from then on. A shorter delay does not reorder frames.
    Delay(Duration),
    /// `mtu=BYTES`: longer frames that arrive from then on are dropped.
    Mtu(u16),
    /// `down`: frames on the link are lost, and new ones too.
    Down,
    /// `up`: the link carries frames again.
    Up,
}

/// Error of a link's text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Not of the form `key=value`.
    #[error("{0:?} is no key=value; a link has the keys {KEYS}, as in {EXAMPLE}")]
    NoValue(String),
    /// An unknown key.
    #[error("key {0:?} is unknown; a link has the keys {KEYS}, as in {EXAMPLE}")]
    UnknownKey(String),
    /// A key was given twice.
    #[error("{0} is given twice: give it once")]
    Repeated(&'static str),
    /// A value out of its key's range.
    #[error("{key}={value}: give {range}, as in {key}={example}")]
    BadValue {
        /// The key, as the specification names it.
        key: &'static str,
        /// The value given.
        value: String,
        /// Valid values, in words.
        range: &'static str,
        /// A valid value.
        example: &'static str,
    },
    /// A queue requires a line with a rate.
    #[error("{key}={value}: without rate= no frame ever waits: give a rate, too, as in rate=45M")]
    NeedsRate {
        /// The key, as the specification names it.
        key: &'static str,
        /// The value given.
        value: String,
    },
    /// A queue that is shorter than one frame.
    #[error(
        "queue={bytes}: a full frame has {mtu} bytes (mtu=), none of which would ever pass: give {mtu} \
         or more, or packets, as in queue=100p"
    )]
    QueueTooShort {
        /// Size given, bytes.
        bytes: u64,
        /// MTU of this link, bytes.
        mtu: u16,
    },
    /// A bucket smaller than one frame.
    #[error(
        "police={rate}:{burst}: a full frame has {mtu} bytes (mtu=), none of which would ever pass: give a \
         burst of {mtu} or more, as in police=10M:30k"
    )]
    BurstTooShort {
        /// Rate given, bits per second.
        rate: u64,
        /// Burst given, bytes.
        burst: u64,
        /// MTU of this link, bytes.
        mtu: u16,
    },
    /// A step to an MTU that `mtu=` excludes.
    #[error(
        "at={at:?}:mtu={step}: no packet longer than {mtu} bytes (mtu=) ever passes: give {mtu} or less, or \
         mtu={step}, too"
    )]
    StepTooLong {
        /// Time of the step.
        at: Duration,
        /// MTU given for the step, bytes.
        step: u16,
        /// MTU of this link, bytes.
        mtu: u16,
    },
    /// An error in a key of the way back.
    #[error("back.{0}")]
    Back(Box<Self>),
}

const KEYS: &str = "rate, delay, host-delay, jitter, loss, burst-loss, drop, reorder, dup, corrupt, ecn, queue, \
     mtu, police, ack-batch, ack-filter, ecn-bleach, accecn-strip, strip, forget, inject, at, and back.KEY for the way back";
const EXAMPLE: &str = "rate=45M,delay=35ms,loss=0.1%,queue=100p";

#[cfg(test)]
mod tests;
