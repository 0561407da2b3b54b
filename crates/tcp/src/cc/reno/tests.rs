//! RFC 5681, window by window.

use proptest::prelude::*;

use whimbrel_base::Instant;

use super::NewReno;
use crate::cc::{Ack, CongestionControl, Loss, Phase, Timeout, TimeoutKind, Window};

const MSS: u32 = 1_460;

/// An acknowledgment of so many octets, with nothing lost.
fn ack(delivered: u32, mss: u32) -> Ack {
    let (now, phase) = (Instant::ZERO, Phase::Open);
    Ack { now, delivered, in_flight: 0, rtt: None, rate: None, app_limited: false, phase, mss }
}

fn time_out(window: &mut Window, kind: TimeoutKind) {
    NewReno.on_rto(window, &Timeout { kind, in_flight: 20 * MSS, mss: MSS });
}

#[test]
fn the_initial_window_is_that_of_rfc_6928() {
    for (mss, cwnd) in [(1_460, 14_600), (536, 5_360), (1_000, 10_000), (8_960, 17_920)] {
        assert_eq!(Window::new(mss).cwnd, cwnd, "an MSS of {mss}");
    }
}

#[test]
fn slow_start_grows_by_what_is_acknowledged_and_stops_at_ssthresh() {
    let mut window = Window { cwnd: 10 * MSS, ssthresh: 12 * MSS };
    NewReno.on_ack(&mut window, &ack(MSS, MSS));
    assert_eq!(window.cwnd, 11 * MSS);
    NewReno.on_ack(&mut window, &ack(5 * MSS, MSS));
    assert_eq!(window.cwnd, 12 * MSS, "and not beyond");
}

#[test]
fn congestion_avoidance_grows_by_a_segment_each_round_trip() {
    let mut window = Window { cwnd: 20 * MSS, ssthresh: 10 * MSS };
    for _ in 0..20 {
        NewReno.on_ack(&mut window, &ack(MSS, MSS));
    }
    assert!((20 * MSS + MSS * 9 / 10..=21 * MSS).contains(&window.cwnd), "{}", window.cwnd);
}

#[test]
fn acknowledging_a_syn_or_a_fin_alone_grows_nothing() {
    for ssthresh in [u32::MAX, MSS] {
        let mut window = Window { cwnd: 10 * MSS, ssthresh };
        NewReno.on_ack(&mut window, &ack(0, MSS));
        assert_eq!(window.cwnd, 10 * MSS);
    }
}

#[test]
fn a_loss_halves_what_was_in_flight_and_leaves_two_segments_at_least() {
    let mut window = Window::new(MSS);
    for (in_flight, ssthresh) in [(20 * MSS, 10 * MSS), (3 * MSS, 2 * MSS), (0, 2 * MSS)] {
        let cwnd = window.cwnd;
        NewReno.on_loss_event(&mut window, &Loss { in_flight, mss: MSS });
        assert_eq!((window.ssthresh, window.cwnd), (ssthresh, cwnd));
    }
}

#[test]
fn a_timeout_leaves_one_segment_and_a_repeated_one_keeps_the_threshold() {
    let mut window = Window::new(MSS);
    time_out(&mut window, TimeoutKind::First);
    assert_eq!((window.cwnd, window.ssthresh), (MSS, 10 * MSS));
    time_out(&mut window, TimeoutKind::Repeated);
    assert_eq!((window.cwnd, window.ssthresh), (MSS, 10 * MSS));
}

#[test]
fn a_lost_syn_leaves_one_segment_and_no_threshold() {
    let mut window = Window::new(MSS);
    window.on_lost_syn(MSS);
    assert_eq!((window.cwnd, window.ssthresh), (MSS, u32::MAX));
}

proptest! {
    #[test]
    fn the_window_never_shrinks_by_an_acknowledgment_nor_overflows(
        cwnd in 1u32..=1 << 30,
        ssthresh: u32,
        acked in 0u32..=1 << 30,
        mss in 36u32..=65_535,
    ) {
        let mut window = Window { cwnd, ssthresh };
        NewReno.on_ack(&mut window, &ack(acked, mss));
        prop_assert!(window.cwnd >= cwnd && window.cwnd <= 1 << 30);
        prop_assert!(cwnd >= ssthresh || window.cwnd - cwnd <= acked && window.cwnd <= ssthresh);
    }
}

#[test]
fn a_pause_leads_back_to_the_initial_window_and_never_above_it() {
    let mut window = Window { cwnd: 100_000, ssthresh: 40_000 };
    window.on_idle(1_000);
    assert_eq!((window.cwnd, window.ssthresh), (10_000, 75_000));
    window.on_idle(1_000);
    assert_eq!((window.cwnd, window.ssthresh), (10_000, 75_000));
    let mut small = Window { cwnd: 1_000, ssthresh: 2_000 };
    small.on_idle(1_000);
    assert_eq!((small.cwnd, small.ssthresh), (1_000, 2_000));
}
