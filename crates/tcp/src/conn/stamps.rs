//! Timestamps of one connection (RFC 7323): which value is echoed, and what an echo tells.

use whimbrel_base::{Instant, Micros, Tick};

use crate::conn::duplicate::tells_of_duplicate;
use crate::{Context, RxSegment};

/// RFC 7323 timestamps of one connection.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stamps {
    /// The offset that is added to the clock to make TSval.
    pub(super) offset: u32,
    /// TS.Recent (RFC 7323 4.3): the TSval that is echoed.
    pub(super) recent: u32,
}

impl Stamps {
    /// The time since what a segment echoes was sent.
    // Out of line: the time of most round trips is known from what was sent.
    #[inline(never)]
    pub(super) fn echoed(&self, seg: &RxSegment<'_>, now: Tick) -> Option<Micros> {
        // What came twice is acknowledged with the echo of its first copy (RFC 7323 5.3 R2), whose own
        // acknowledgment was lost: the time since then is a time-out, and measuring it as a round
        // trip makes the next one longer still.
        if tells_of_duplicate(seg) {
            return None;
        }
        // RFC 7323 4.1: "A TSecr value received in a segment MAY be used to update the averaged
        // RTT measurement only if the segment advances the left edge of the send window, i.e.,
        // SND.UNA is increased."
        let stamps = seg.header.options.timestamps.filter(|stamps| stamps.ecr != 0)?;
        let sent = stamps.ecr.wrapping_sub(self.offset);
        let millis = now.raw().wrapping_sub(sent);
        (millis < ECHO_LIMIT_MILLIS).then(|| Micros::new(millis.wrapping_mul(1_000)))
    }

    /// When the segment left that this one echoes, to a millisecond.
    #[inline]
    pub(super) fn echoed_at(&self, seg: &RxSegment<'_>, cx: &Context) -> Option<Instant> {
        let stamps = seg.header.options.timestamps.filter(|stamps| stamps.ecr != 0)?;
        let sent = stamps.ecr.wrapping_sub(self.offset);
        let millis = cx.tick.raw().wrapping_sub(sent);
        let age = (millis < ECHO_LIMIT_MILLIS).then_some(millis)?;
        let now = cx.now.as_nanos() / 1_000_000;
        Some(Instant::from_millis(now.saturating_sub(u64::from(age))))
    }

    /// True if TS.Recent tells what is old to a connection that was silent for `idle_millis`. RFC 7323 5.5: not
    /// after 24 days. Nor if it is 0, as in Linux: some peers send that with their SYN, and what is known of a
    /// peer whose cookie came back without timestamps is no more.
    pub(super) fn says_recent(&self, idle_millis: u32) -> bool {
        self.recent != 0 && idle_millis < PAWS_IDLE_MILLIS
    }
}

/// An echo older than this was never ours: 2^31 ms would be ambiguous, ten minutes are absurd.
const ECHO_LIMIT_MILLIS: u32 = 600_000;

/// RFC 7323 5.5: TS.Recent is invalid "when a connection is idle for more than 24 days": 2^31 ms,
/// less a margin.
const PAWS_IDLE_MILLIS: u32 = 24 * 24 * 3600 * 1000;

/// Ticks by which TSval may be older than TS.Recent, as in Linux: of two segments that leave around a tick,
/// the network may deliver the second first. A TSval that has wrapped is older by 2^31 at least.
pub(super) const PAWS_TICKS: i32 = 1;

/// The timestamps option and its padding.
pub(super) const TIMESTAMP_BYTES: u16 = 12;
