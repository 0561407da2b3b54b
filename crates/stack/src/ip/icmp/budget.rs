//! How many ICMP errors leave: a token bucket (RFC 4443 2.4 (f), RFC 1812 4.3.2.8).

use whimbrel_base::Instant;

/// Admits [`ErrorBudget::PER_SECOND`] errors, and [`ErrorBudget::BURST`] at once after a pause.
///
/// One bucket serves all destinations, and whoever drains it learns that others provoke errors,
/// too. That tells of open UDP ports where those stay silent (CVE-2020-25705); there are none here.
#[derive(Debug)]
pub(crate) struct ErrorBudget {
    /// Nanoseconds' worth of admission saved up.
    saved: u64,
    last: Instant,
}

impl ErrorBudget {
    /// Linux' `icmp_msgs_per_sec`. Less leaves honest senders without an answer while somebody
    /// scans; more makes this host a louder reflector.
    pub(crate) const PER_SECOND: u64 = 1_000;
    /// Linux' `icmp_msgs_burst`. Less loses errors that arrive in one burst of frames.
    pub(crate) const BURST: u64 = 50;

    const COST: u64 = 1_000_000_000 / Self::PER_SECOND;

    /// A bucket that is full: a burst of errors may leave at once.
    pub(crate) const fn new() -> Self {
        Self { saved: Self::BURST * Self::COST, last: Instant::ZERO }
    }

    /// Whether one more error may leave now.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        let passed = now.as_nanos().saturating_sub(self.last.as_nanos());
        self.last = self.last.max(now);
        self.saved = self.saved.saturating_add(passed).min(Self::BURST * Self::COST);
        let admitted = self.saved >= Self::COST;
        if admitted {
            self.saved -= Self::COST;
        }
        admitted
    }
}
