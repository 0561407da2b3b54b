//! Rates, quanta and credits of a paced flow.

use core::time::Duration;

use super::*;
use crate::cc::Algorithm;

const MSS: u32 = 1_448;
/// The rate of a path of 20 Mb/s, bytes per second.
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
    for (rate, quantum) in [(1_000, 2 * MSS), (5_000_000, 5_000), (u64::MAX, 64_000)] {
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
    assert_eq!(pacer.next(), Instant::from_millis(1_001), "a wait is at most a second");
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
