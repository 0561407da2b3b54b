//! The limit on ICMP errors: a token bucket (RFC 4443 2.4 (f), RFC 1812 4.3.2.8).

use whimbrel_base::{Instant, Key, SipHasher24};

/// Admits [`ErrorBudget::PER_SECOND`] errors, and [`ErrorBudget::BURST`] at once after a pause.
///
/// One bucket serves all destinations, and a host that drains it learns that others provoke errors,
/// too. That would tell which UDP ports are open, as those stay silent (CVE-2020-25705): so an error takes
/// nothing from it, or one's worth, or two's, and no host can count what others took.
#[derive(Debug)]
pub(crate) struct ErrorBudget {
    prf: SipHasher24,
    admitted: u64,
    /// Nanoseconds' worth of admission saved up.
    saved: u64,
    last: Instant,
}

impl ErrorBudget {
    /// Linux' `icmp_msgs_per_sec`. Less leaves honest senders without an answer while another
    /// scans; more makes this host a louder reflector.
    pub(crate) const PER_SECOND: u64 = 1_000;
    /// Linux' `icmp_msgs_burst`. Less loses errors that arrive in one burst of frames.
    pub(crate) const BURST: u64 = 50;

    const COST: u64 = 1_000_000_000 / Self::PER_SECOND;

    /// A bucket that is full: a burst of errors may leave at once.
    pub(crate) fn new(key: &Key) -> Self {
        let saved = Self::BURST * Self::COST;
        Self { prf: key.prf(), admitted: 0, saved, last: Instant::ZERO }
    }

    /// True if one more error may leave now.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        let passed = now.as_nanos().saturating_sub(self.last.as_nanos());
        self.last = self.last.max(now);
        self.saved = self.saved.saturating_add(passed).min(Self::BURST * Self::COST);
        let admitted = self.saved >= Self::COST;
        if admitted {
            self.saved = self.saved.saturating_sub(Self::COST * self.draw());
            self.admitted = self.admitted.wrapping_add(1);
        }
        admitted
    }

    /// 0, 1 or 2, each as often as the others.
    fn draw(&self) -> u64 {
        // A length that nothing else has under this key.
        let [a, b, c, d, e, f, g, h] = self.admitted.to_be_bytes();
        self.prf.hash(&[b'i', b'c', b'm', b'p', 0, a, b, c, d, e, f, g, h]) % 3
    }
}
