//! Whether a worker with nothing to do looks once more, or sleeps.
//!
//! Who sends in bulk has the next frames ready within microseconds, and to wake a thread on another processor
//! costs the sender more than it costs to look. So behind much that came at once the worker goes on looking
//! for a while. Where nothing more came in that while, it does so more and more seldom.

use std::time::Duration;

use whimbrel_base::Instant;

/// What a worker knows of it.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// What the device had delivered when it was asked last, octets.
    delivered: u64,
    /// Until when it goes on looking, if it does.
    until: Option<Instant>,
    /// How often nothing came, one after the other.
    failures: u8,
    /// So many times it is not to be tried.
    skipped: u32,
}

impl Spin {
    /// There is nothing to do at `now`, and the device has delivered so many octets in all. Whether to look
    /// once more.
    pub(super) fn goes_on(&mut self, now: Instant, delivered: u64) -> bool {
        let came = delivered - self.delivered;
        self.delivered = delivered;
        if came >= MUCH {
            if self.until.is_some() {
                self.failures = 0;
            }
            let tries = self.skipped == 0;
            self.skipped = self.skipped.saturating_sub(1);
            self.until = tries.then_some(now + WHILE);
            return tries;
        }
        let Some(until) = self.until else { return false };
        if now < until {
            return true;
        }
        self.until = None;
        self.failures = (self.failures + 1).min(MOST_FAILURES);
        self.skipped = 1 << self.failures;
        false
    }
}

/// What is worth a look for more, octets: a long frame.
const MUCH: u64 = 32 << 10;
/// How long it looks: less than the machine takes to put a thread to sleep and wake it, twice.
const WHILE: Duration = Duration::from_micros(50);
/// From then on it is tried once in 64 times.
const MOST_FAILURES: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    /// So many microseconds later.
    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn behind_much_that_came_it_looks_for_more_and_then_sleeps() {
        let mut spin = Spin::default();
        assert!(!spin.goes_on(at(0), 20_000), "little came");
        assert!(spin.goes_on(at(1), 20_000 + MUCH));
        assert!(spin.goes_on(at(50), 20_000 + MUCH), "the while is not over");
        assert!(!spin.goes_on(at(51), 20_000 + MUCH));
        assert!(!spin.goes_on(at(52), 20_000 + MUCH), "once");
    }

    #[test]
    fn where_more_comes_it_goes_on_for_ever_and_where_none_does_it_looks_more_and_more_seldom() {
        let (mut spin, mut now, mut delivered) = (Spin::default(), 0, 0);
        for _ in 0..1_000 {
            (now, delivered) = (now + 30, delivered + MUCH);
            assert!(spin.goes_on(at(now), delivered));
        }
        // A long frame each millisecond.
        let mut looked = 0;
        for _ in 0..1_000 {
            (now, delivered) = (now + 1_000, delivered + MUCH);
            if spin.goes_on(at(now), delivered) {
                looked += 1;
                assert!(!spin.goes_on(at(now + 51), delivered), "for so long and no longer");
            }
        }
        assert!((10..30).contains(&looked), "{looked}");
        // And in bulk again.
        let again = (0..200).filter(|_| {
            (now, delivered) = (now + 30, delivered + MUCH);
            spin.goes_on(at(now), delivered)
        });
        assert!(again.count() > 100);
    }
}
