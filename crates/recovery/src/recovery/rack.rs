//! RACK (RFC 8985): whatever was sent before something that arrived is lost once it is old enough.

use core::time::Duration;

use whimbrel_base::{Instant, Micros};

use super::{Acked, Path};
use crate::flight::{Flight, LossFound, Transmission};

/// The state of RACK (RFC 8985 5.3), RACK.fack aside, which is the flight's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: of what arrived, the transmission that was the last to leave.
    latest: Transmission,
    /// RACK.rtt: the round trip of what arrived last.
    rtt: Duration,
    /// When what was sent before RACK.segment is to be found again.
    due: Option<Instant>,
    /// RACK.dsack_round: SND.NXT when the reordering window grew last, until that is acknowledged.
    dsack_round: Option<u64>,
    /// RACK.reo_wnd_mult: quarters of the least round trip in the reordering window (RFC 8985 6.2).
    mult: u8,
    /// RACK.reo_wnd_persist: recoveries until that is one again, at most 16.
    persist: u8,
}

/// The values from which the reordering window follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) min_rtt: Option<Micros>,
    pub(super) srtt: Option<Duration>,
    /// Fast recovery, or after a time-out.
    pub(super) in_recovery: bool,
    /// RACK.segs_sacked: segments above SND.UNA that SACK names.
    pub(super) segs_sacked: u32,
    /// RACK.reordering_seen: something arrived behind what was sent later.
    pub(super) reorders: bool,
}

impl Default for Rack {
    fn default() -> Self {
        Self {
            latest: (Instant::ZERO, 0),
            rtt: Duration::ZERO,
            due: None,
            dsack_round: None,
            mult: 1,
            persist: 0,
        }
    }
}

impl Rack {
    /// When [`Rack::judge`] is to be asked again, though nothing arrives.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// True if duplicates made the reordering window wider than it is at first.
    pub(super) const fn is_widened(&self) -> bool {
        self.persist > 0
    }

    pub(super) const fn stop(&mut self) {
        self.due = None;
    }

    /// RFC 8985 6.2, steps 2 and 3; SND.UNA is `una` since.
    pub(super) fn update(&mut self, acked: &Acked, una: u64) {
        let Acked { delivered, echoed, path: Path { now, min_rtt, .. }, .. } = acked;
        // RFC 8985 6.2: "ignore a segment as invalid if any of its sequence range has been retransmitted
        // before and if either of two conditions is true": the echo is older than its last transmission,
        // or "the segment was last retransmitted less than RACK.min_rtt ago." The echo says nothing of what
        // is only named: RFC 7323 4.3, "An <ACK> for an out-of-order segment SHOULD, therefore, contain the
        // timestamp from the most recent segment that advanced RCV.NXT."
        let again = delivered.again.filter(|(at, end)| {
            let is_echo = |echoed: Instant| *end > una || !is_older(echoed, *at);
            let least = min_rtt.map_or(Duration::ZERO, Duration::from);
            echoed.is_none_or(is_echo) && now.since(*at) >= least
        });
        // "in ascending order of Segment.xmit_ts"
        let latest = delivered.once.max(again);
        if let Some(latest) = latest {
            self.rtt = now.since(latest.0);
            self.latest = self.latest.max(latest);
        }
    }

    /// RFC 8985 6.2, step 4: text came twice.
    pub(super) fn on_duplicate(&mut self, flight: &Flight) {
        if self.dsack_round.is_some_and(|round| flight.una() >= round) {
            self.dsack_round = None;
        }
        if self.dsack_round.is_none() {
            self.dsack_round = Some(flight.end());
            self.mult = self.mult.saturating_add(1);
            self.persist = 16;
        }
    }

    /// A recovery ends: after sixteen without D-SACK the reordering window is as small as it began.
    pub(super) const fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.mult = 1;
        }
    }

    /// RACK.reo_wnd (RFC 8985 6.2, step 4).
    fn reo_wnd(&self, window: &Window) -> Duration {
        // "the RACK.reo_wnd is set to 0 both upon entering and during fast recovery or RTO recovery."
        let enough = window.in_recovery || window.segs_sacked >= DUP_THRESH;
        if !window.reorders && enough {
            return Duration::ZERO;
        }
        let quarter = window.min_rtt.map_or(self.rtt, Duration::from) / 4;
        let most = window.srtt.unwrap_or(Duration::MAX);
        quarter.saturating_mul(u32::from(self.mult)).min(most)
    }

    /// RFC 8985 6.2, step 5: what is lost by now.
    pub(super) fn detect_loss(
        &mut self,
        flight: &mut Flight,
        now: Instant,
        window: &Window,
    ) -> LossFound {
        let wait = self.rtt + self.reo_wnd(window);
        let found = flight.detect_loss(self.latest, before(now, wait));
        self.due = found.pending.map(|at| at + wait);
        found
    }

    /// RFC 8985 6.3: what was sent until then may be lost when the retransmission timer runs out.
    pub(super) fn timed_out_until(&self, now: Instant, window: &Window) -> Instant {
        let rtt = if self.rtt.is_zero() { window.srtt.unwrap_or_default() } else { self.rtt };
        before(now, rtt + self.reo_wnd(window))
    }
}

/// The instant `wait` before `now`.
fn before(now: Instant, wait: Duration) -> Instant {
    let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    Instant::from_nanos(now.as_nanos().saturating_sub(nanos))
}

/// True if a segment left before another, as far as the milliseconds of an echo tell.
pub(super) fn is_older(echoed: Instant, other: Instant) -> bool {
    echoed < other && echoed.tick() != other.tick()
}

/// RFC 5681 3.2: the third duplicate acknowledgment tells of a loss.
pub(super) const DUP_THRESH: u32 = 3;
