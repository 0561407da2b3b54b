//! Pacing: text leaves in quanta, spread over the round trip.

use core::time::Duration;

use whimbrel_base::{Instant, Micros};

use crate::cc::Window;

/// When a flow that is paced may send text next, and how much of it at once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pacer {
    next: Instant,
    /// The most bytes that leave at once; 0 before a rate is known.
    quantum: u32,
}

/// How fast text leaves where the algorithm has no rate of its own, percent of a window in each round
/// trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacingRatios {
    /// In slow start, up to half of ssthresh: the window doubles meanwhile.
    pub slow_start: u16,
    /// Later.
    pub avoidance: u16,
}

impl PacingRatios {
    /// Bytes per second of a flow with this window; `None` where its round trip is less than a
    /// millisecond, which a quantum fills, or was not measured.
    pub fn rate(self, window: &Window, srtt: Micros) -> Option<u64> {
        if srtt < SHORTEST_TRIP {
            return None;
        }
        let ratio =
            if window.cwnd < window.ssthresh / 2 { self.slow_start } else { self.avoidance };
        // In hundredths of a microsecond: 2^30 bytes by 1,000 per cent by 10^4 fit.
        Some(u64::from(window.cwnd) * u64::from(ratio) * 10_000 / u64::from(srtt.get()))
    }
}

impl Pacer {
    /// Most of what one segment, or one super-segment, may have while a flow is paced, bytes; `u32::MAX`
    /// before that.
    #[inline]
    pub const fn quantum(&self) -> u32 {
        if self.quantum == 0 { u32::MAX } else { self.quantum }
    }

    /// When text may leave next.
    #[inline]
    pub const fn next(&self) -> Instant {
        self.next
    }

    /// Notes that `bytes` of text left at `now`, of a flow that has `rate` bytes per second and full
    /// segments of `mss` bytes. Returns true if the next have to wait.
    pub fn on_sent(&mut self, bytes: u32, rate: u64, mss: u32, now: Instant) -> bool {
        let rate = rate.max(1);
        self.quantum =
            ((rate / QUANTA_PER_SECOND) as u32).clamp(2 * mss, MOST_AT_ONCE.max(2 * mss));
        let credit = time_of(self.quantum, rate).max(LEAST_CREDIT);
        let begun = Instant::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos() as u64));
        // A wait that ended late is caught up with, up to the credit: without that a thread that sleeps
        // 50 us too long each time would lose them each time.
        self.next = self.next.max(begun) + time_of(bytes, rate);
        self.next > now + SHORTEST_WAIT
    }
}

/// How long a flow of `rate` bytes per second takes for so many bytes.
fn time_of(bytes: u32, rate: u64) -> Duration {
    Duration::from_nanos(u64::from(bytes) * 1_000_000_000 / rate)
}

/// A quantum is what the flow sends in a millisecond, within these bounds and two full segments.
const QUANTA_PER_SECOND: u64 = 1_000;
const SHORTEST_TRIP: Micros = Micros::from_millis(1);
const MOST_AT_ONCE: u32 = 64_000;
/// What wakes a thread up comes late by as much.
const LEAST_CREDIT: Duration = Duration::from_micros(100);
/// A timer is no more exact than this: less is not waited for, and made up for by the next wait.
const SHORTEST_WAIT: Duration = Duration::from_nanos(8_192);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Algorithm;

    const MSS: u32 = 1_448;
    /// 20 Mb/s.
    const RATE: u64 = 2_500_000;

    /// Sends quanta for a second of a flow whose waits end `late`. Returns the bytes that left.
    fn send_for_a_second(rate: u64, late: Duration) -> u64 {
        let (mut pacer, mut now, mut sent) = (Pacer::default(), Instant::from_millis(5), 0);
        let end = now + Duration::from_secs(1);
        while now < end {
            let bytes = pacer.quantum().min(64_000);
            sent += u64::from(bytes);
            if pacer.on_sent(bytes, rate, MSS, now) {
                now = pacer.next() + late;
            }
        }
        sent
    }

    #[test]
    fn flow_keeps_its_rate() {
        for rate in [125_000, RATE, 125_000_000, 1_250_000_000] {
            let sent = send_for_a_second(rate, Duration::ZERO);
            assert!(sent.abs_diff(rate) <= rate / 20 + 64_000, "{sent} at {rate}");
        }
    }

    #[test]
    fn waits_that_end_late_cost_no_rate() {
        let rate = 1_250_000_000;
        let sent = send_for_a_second(rate, Duration::from_micros(60));
        assert!(sent >= rate / 100 * 95, "{sent}");
    }

    #[test]
    fn credit_of_a_pause_is_a_quantum() {
        let (mut pacer, mut now) = (Pacer::default(), Instant::from_millis(5));
        assert!(pacer.on_sent(2 * MSS, RATE, MSS, now) || pacer.next() <= now);
        now = now + Duration::from_secs(3);
        let at_once = (1..).find(|_| pacer.on_sent(pacer.quantum(), RATE, MSS, now));
        assert_eq!(at_once, Some(2));
    }

    #[test]
    fn quantum_is_a_millisecond_of_text_within_bounds() {
        for (rate, quantum) in [(1_000, 2 * MSS), (5_000_000, 5_000), (1 << 40, 64_000)] {
            let mut pacer = Pacer::default();
            assert_eq!(pacer.quantum(), u32::MAX);
            pacer.on_sent(MSS, rate, MSS, Instant::from_millis(1));
            assert_eq!(pacer.quantum(), quantum);
        }
    }

    #[test]
    fn least_rate_and_longest_time_do_not_overflow() {
        let mut pacer = Pacer::default();
        assert!(pacer.on_sent(u32::MAX, 0, 65_535, Instant::from_millis(1)));
        assert!(pacer.next() > Instant::from_millis(1_000_000));
        pacer.on_sent(u32::MAX, u64::MAX, 65_535, Instant::NEVER);
        assert!(pacer.next() > Instant::from_millis(u64::MAX / 2_000_000));
    }

    #[test]
    fn rate_is_a_share_of_the_window_in_each_round_trip() {
        let ratios = PacingRatios { slow_start: 200, avoidance: 120 };
        let mut window = Window::new(Algorithm::CUBIC, 1_000);
        window.cwnd = 100_000;
        assert_eq!(ratios.rate(&window, Micros::from_millis(100)), Some(2_000_000));
        window.ssthresh = 150_000;
        assert_eq!(ratios.rate(&window, Micros::from_millis(100)), Some(1_200_000));
        for trip in [0, 999] {
            assert_eq!(ratios.rate(&window, Micros::new(trip)), None);
        }
        window.cwnd = Window::MOST;
        assert!(ratios.rate(&window, Micros::from_millis(1)) > Some(1 << 40));
    }
}
