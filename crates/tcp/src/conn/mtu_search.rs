//! The search for the largest segment that a path carries, where no router reports it (RFC 4821).
//!
//! A full segment that is not answered twice in a row makes the path suspect. Smaller ones are sent, and once they
//! arrive, the first probe is as large as segments were before: an outage and a narrow path look alike until then.
//! If it arrives, it was an outage. Otherwise the search halves the range that is left.
//!
//! search_low is the sender's MSS. All sizes are bytes of text of a segment.

use core::mem::take;
use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_recovery::MtuProbeOutcome;

/// The state of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MtuSearch {
    /// The size that both ends and the link admit: search_high at the beginning of a search.
    ceiling: u16,
    /// search_high: the largest size that is not known to be too large.
    high: u16,
    /// The size to be tried before others; 0: none.
    first: u16,
    /// The size of the probe that is out; 0: none.
    out: u16,
    /// True if the range is too small for another probe, until it is searched anew.
    is_settled: bool,
    /// True if the last probe was not answered, nor what followed it.
    has_timed_out: bool,
    /// When the path became suspect last.
    suspected_at: Instant,
    /// When the next probe may leave.
    next_at: Instant,
    /// News of the path that were not passed on.
    news: Option<PathFinding>,
}

/// A finding of probes about a path, for other connections to the same host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathFinding {
    /// It carries so many bytes of an IP packet, and less than was hoped for.
    Narrow(u16),
    /// It carries the largest packets that are sent.
    Wide,
}

/// The verdict of a probe on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ProbeVerdict {
    /// Segments of this size arrive.
    Fits(u16),
    /// Segments of its size do not arrive.
    TooLarge,
    /// Nothing: it goes again.
    Unknown,
}

/// A connection as its search looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchView {
    pub(super) now: Instant,
    /// The size of segments that are no probes.
    pub(super) mss: u16,
    /// The headers of a packet with such a segment.
    pub(super) headers: u16,
    /// The time between two losses by congestion.
    pub(super) loss_interval: Duration,
    /// The time after which a search begins anew.
    pub(super) interval: Duration,
}

impl MtuSearch {
    /// A search from a smaller size up to `ceiling`, which is tried first.
    pub(super) const fn new(ceiling: u16, now: Instant) -> Self {
        Self {
            ceiling,
            high: ceiling,
            first: ceiling,
            out: 0,
            is_settled: false,
            has_timed_out: false,
            suspected_at: now,
            next_at: now,
            news: None,
        }
    }

    /// Segments of `mss` bytes were not answered, and smaller ones are sent.
    pub(super) fn on_suspicion(&mut self, mss: u16, now: Instant) {
        // What was in use before is tried first, whatever was tried since the last that arrived.
        if self.first == 0 {
            self.first = mss;
        }
        self.high = self.high.max(self.first);
        (self.out, self.is_settled, self.has_timed_out) = (0, false, false);
        (self.suspected_at, self.next_at) = (now, now);
    }

    /// Takes the arrival of segments of `size` bytes that were `sent` before the path became suspect, if they were: late
    /// ones look like lost ones. Returns true if that ends the suspicion.
    pub(super) fn refutes(&mut self, sent: Instant, size: u16) -> bool {
        let is_refuted = sent < self.suspected_at && size >= self.first && self.first > 0;
        if is_refuted {
            (self.first, self.has_timed_out) = (0, false);
        }
        is_refuted
    }

    /// A router reports that the path carries `mss` bytes: nothing more is tried for some time.
    pub(super) fn on_report(&mut self, mss: u16, view: &SearchView) {
        (self.high, self.first) = (self.high.min(mss), 0);
        self.settle(view);
    }

    /// The link carries no more than `mss` bytes.
    pub(super) fn limit(&mut self, mss: u16) {
        self.ceiling = self.ceiling.min(mss);
        self.high = self.high.min(mss);
        self.first = self.first.min(mss);
    }

    /// Returns the size of the probe that may leave now, if one may.
    pub(super) fn poll_size(&mut self, view: &SearchView) -> Option<u16> {
        let SearchView { now, mss, .. } = *view;
        if self.out > 0 || now < self.next_at {
            return None;
        }
        if self.is_settled {
            // RFC 4821 7.3: "When the timer expires, search_high should be reset to its initial value (described
            // above) so that probing can resume."
            (self.high, self.first, self.is_settled) = (self.ceiling, self.ceiling, false);
        }
        let first = self.first.min(self.high);
        if first > mss {
            return Some(first);
        }
        self.first = 0;
        let range = self.high.saturating_sub(mss);
        if range < LEAST_RANGE {
            self.settle(view);
            return None;
        }
        Some(mss + range.div_ceil(2))
    }

    /// RFC 4821 7.3: "When probing has converged, a timer SHOULD be set."
    fn settle(&mut self, view: &SearchView) {
        self.is_settled = true;
        self.next_at = view.now + view.interval;
    }

    /// A probe with `size` bytes left.
    pub(super) const fn on_sent(&mut self, size: u16) {
        self.out = size;
    }

    /// True if a probe is out.
    pub(super) const fn is_out(&self) -> bool {
        self.out > 0
    }

    /// A probe has this outcome.
    pub(super) fn on_outcome(
        &mut self,
        outcome: MtuProbeOutcome,
        view: &SearchView,
    ) -> ProbeVerdict {
        let size = take(&mut self.out);
        match outcome {
            MtuProbeOutcome::Arrived => {
                (self.first, self.has_timed_out) = (0, false);
                self.next_at = view.now;
                self.news = Some(match size >= self.ceiling {
                    true => PathFinding::Wide,
                    false => PathFinding::Narrow(size.saturating_add(view.headers)),
                });
                return ProbeVerdict::Fits(size);
            }
            // RFC 4821 7.6.2: "PLPMTUD MUST NOT probe again until an interval that is larger than the expected
            // interval between congestion control events."
            MtuProbeOutcome::Lost => return self.on_failure(size, view, view.loss_interval),
            // RFC 4821 7.6.3: "A time interval that is five times the non-timeout failure case (Section 7.6.2) is
            // RECOMMENDED." The first time the path may have failed altogether.
            MtuProbeOutcome::TimedOut if self.has_timed_out => {
                return self.on_failure(size, view, 5 * view.loss_interval);
            }
            MtuProbeOutcome::TimedOut => {
                self.has_timed_out = true;
                self.next_at = view.now + 5 * view.loss_interval;
            }
            // RFC 4821 7.6.4: "the same-sized probe SHOULD be attempted again as soon as the probing preconditions
            // are met".
            MtuProbeOutcome::Inconclusive => self.next_at = view.now,
        }
        ProbeVerdict::Unknown
    }

    /// RFC 4821 7.6.2: "In the absence of other indications, set search_high to the probe size minus one."
    fn on_failure(&mut self, size: u16, view: &SearchView, wait: Duration) -> ProbeVerdict {
        (self.high, self.first, self.has_timed_out) = (size.saturating_sub(1), 0, false);
        self.next_at = view.now + wait;
        self.news = Some(PathFinding::Narrow(view.mss.saturating_add(view.headers)));
        ProbeVerdict::TooLarge
    }

    /// True if there are news to pass on.
    pub(super) const fn has_news(&self) -> bool {
        self.news.is_some()
    }

    /// Takes the news.
    pub(super) const fn take_news(&mut self) -> Option<PathFinding> {
        self.news.take()
    }

    /// True if there is nothing left to search for, where segments have `mss` bytes.
    pub(super) const fn is_over(&self, mss: u16) -> bool {
        mss >= self.ceiling
    }
}

/// Linux' `tcp_probe_threshold`: a range of fewer bytes is worth no probe.
const LEAST_RANGE: u16 = 8;

#[cfg(test)]
mod tests;
