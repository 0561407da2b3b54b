//! RFC 5681, window by window.

use proptest::prelude::*;

use super::Reno;
use crate::cc::tests::ack;
use crate::cc::{
    Ack, Algorithm, CongestionControl, Loss, Phase, SlowStart, Timeout, TimeoutKind, Window,
};

const MSS: u32 = 1_460;

/// A connection that has `cwnd` and `ssthresh`.
struct Sender {
    reno: Reno,
    window: Window,
}

impl Sender {
    fn new(cwnd: u32, ssthresh: u32) -> Self {
        let window = Window { cwnd, ssthresh, ..Window::new(Algorithm::RENO, MSS) };
        Self { reno: Reno::default(), window }
    }

    fn fresh() -> Self {
        Self { reno: Reno::default(), window: Window::new(Algorithm::RENO, MSS) }
    }

    /// So many bytes of a full window are acknowledged, with nothing lost.
    fn ack(&mut self, bytes: u32) {
        self.reno.on_ack(&mut self.window, &ack(bytes, MSS));
    }

    fn time_out(&mut self, kind: TimeoutKind) {
        let timeout = Timeout { kind, in_flight: self.window.cwnd, mss: MSS };
        self.reno.on_rto(&mut self.window, &timeout);
    }

    fn windows(&self) -> (u32, u32) {
        (self.window.cwnd, self.window.ssthresh)
    }
}

#[test]
fn the_initial_window_is_that_of_rfc_6928() {
    for (mss, cwnd) in [(1_460, 14_600), (536, 5_360), (1_000, 10_000), (8_960, 17_920)] {
        assert_eq!(Window::new(Algorithm::RENO, mss).cwnd, cwnd, "an MSS of {mss}");
    }
}

#[test]
fn the_initial_window_has_as_many_segments_as_a_tunable_says() {
    for (segments, mss, cwnd) in
        [(1, 1_460, 1_460), (3, 1_460, 4_380), (3, 8_960, 17_920), (100, 1_460, 146_000)]
    {
        let mut window = Window::new(Algorithm::RENO, 536);
        window.begin(mss, segments);
        assert_eq!(window.cwnd, cwnd, "{segments} of {mss}");
    }
}

#[test]
fn one_ack_grows_window_by_at_most_slow_start_limit() {
    for (limit, grown) in [(1, 1), (2, 2), (255, 5)] {
        let slow_start = SlowStart { most: limit * MSS, ..SlowStart::default() };
        for ssthresh in [u32::MAX, 100 * MSS] {
            let mut sender = Sender::new(10 * MSS, ssthresh);
            let heard = Ack { slow_start, ..ack(5 * MSS, MSS) };
            sender.reno.on_ack(&mut sender.window, &heard);
            assert_eq!(sender.window.cwnd, (10 + grown) * MSS, "{limit}");
        }
    }
}

#[test]
fn slow_start_grows_by_acked_bytes_up_to_ssthresh() {
    let mut sender = Sender::new(10 * MSS, 12 * MSS);
    sender.ack(MSS);
    assert_eq!(sender.window.cwnd, 11 * MSS);
    sender.ack(5 * MSS);
    assert_eq!(sender.window.cwnd, 12 * MSS, "and not beyond");
}

#[test]
fn avoidance_grows_by_one_segment_for_each_acked_window() {
    let mut sender = Sender::new(20 * MSS, 10 * MSS);
    for _ in 0..19 {
        sender.ack(MSS);
    }
    assert_eq!(sender.window.cwnd, 20 * MSS);
    sender.ack(MSS);
    assert_eq!(sender.window.cwnd, 21 * MSS);
    for _ in 0..21 {
        sender.ack(MSS);
    }
    assert_eq!(sender.window.cwnd, 22 * MSS);
}

#[test]
fn large_window_grows_by_one_segment_each_round_trip() {
    // By an byte for each acknowledgment, as a rounded formula has it, it would be thirty segments.
    let window = 45_000 * MSS;
    let mut sender = Sender::new(window, MSS);
    for _ in 0..45_000 {
        sender.ack(MSS);
    }
    assert_eq!(sender.window.cwnd, window + MSS);
}

#[test]
fn one_ack_of_several_windows_grows_by_one_segment() {
    let mut sender = Sender::new(4 * MSS, 2 * MSS);
    sender.ack(100 * MSS);
    assert_eq!(sender.window.cwnd, 5 * MSS);
}

#[test]
fn what_the_window_did_not_limit_grows_nothing() {
    for ssthresh in [u32::MAX, MSS] {
        let mut sender = Sender::new(10 * MSS, ssthresh);
        let unlimited = Ack { limited: 0, ..ack(5 * MSS, MSS) };
        for _ in 0..100 {
            sender.reno.on_ack(&mut sender.window, &unlimited);
        }
        assert_eq!(sender.windows(), (10 * MSS, ssthresh));
    }
}

#[test]
fn window_keeps_in_recovery_and_grows_by_mss_after_timeout() {
    let mut sender = Sender::new(10 * MSS, 40 * MSS);
    let heard = Ack { phase: Phase::FastRecovery, ..ack(5 * MSS, MSS) };
    sender.reno.on_ack(&mut sender.window, &heard);
    assert_eq!(sender.window.cwnd, 10 * MSS);
    let heard = Ack { phase: Phase::AfterTimeout, ..ack(5 * MSS, MSS) };
    sender.reno.on_ack(&mut sender.window, &heard);
    assert_eq!(sender.window.cwnd, 11 * MSS);
}

#[test]
fn loss_halves_flight_to_at_least_two_segments() {
    for (in_flight, ssthresh) in [(20 * MSS, 10 * MSS), (3 * MSS, 2 * MSS), (0, 2 * MSS)] {
        let mut sender = Sender::new(20 * MSS, u32::MAX);
        let loss = Loss { in_flight, mss: MSS };
        sender.reno.on_loss_event(&mut sender.window, &loss);
        assert_eq!(sender.windows(), (20 * MSS, ssthresh), "recovery says what leaves meanwhile");
        sender.reno.on_recovered(&mut sender.window, &loss);
        assert_eq!(sender.windows(), (ssthresh, ssthresh));
    }
}

#[test]
fn ssthresh_ignores_text_sent_beyond_window() {
    let mut sender = Sender::new(20 * MSS, u32::MAX);
    sender.reno.on_loss_event(&mut sender.window, &Loss { in_flight: 30 * MSS, mss: MSS });
    assert_eq!(sender.window.ssthresh, 10 * MSS);
}

#[test]
fn timeout_leaves_one_segment_repeat_keeps_ssthresh() {
    let mut sender = Sender::fresh();
    sender.time_out(TimeoutKind::First);
    assert_eq!(sender.windows(), (MSS, 5 * MSS));
    sender.time_out(TimeoutKind::Repeated);
    assert_eq!(sender.windows(), (MSS, 5 * MSS));
}

#[test]
fn a_lost_syn_leaves_one_segment_and_no_threshold() {
    let mut sender = Sender::fresh();
    sender.window.on_lost_syn(MSS);
    assert_eq!(sender.windows(), (MSS, u32::MAX));
}

#[test]
fn a_mark_takes_a_fifth() {
    let mut sender = Sender::new(20 * MSS, u32::MAX);
    sender.reno.on_ecn(&mut sender.window, &Loss { in_flight: 20 * MSS, mss: MSS });
    assert_eq!(sender.windows(), (16 * MSS, 16 * MSS));
}

#[test]
fn a_pause_leads_back_to_the_initial_window_and_never_above_it() {
    let mut sender = Sender::new(100_000, 40_000);
    for _ in 0..2 {
        sender.reno.on_idle(&mut sender.window, 10_000);
        assert_eq!(sender.windows(), (10_000, 75_000));
    }
    let mut small = Sender::new(1_000, 2_000);
    small.reno.on_idle(&mut small.window, 10_000);
    assert_eq!(small.windows(), (1_000, 2_000));
}

proptest! {
    #[test]
    fn the_window_never_shrinks_by_an_acknowledgment_nor_overflows(
        cwnd in 1u32..=1 << 30,
        ssthresh: u32,
        acked in 0u32..=1 << 30,
        mss in 36u32..=65_535,
    ) {
        let mut sender = Sender::new(cwnd, ssthresh);
        sender.reno.on_ack(&mut sender.window, &ack(acked, mss));
        let grown = sender.window.cwnd;
        prop_assert!(grown >= cwnd && grown <= 1 << 30);
        prop_assert!(cwnd >= ssthresh || grown - cwnd <= acked && grown <= ssthresh);
        prop_assert!(cwnd < ssthresh || grown - cwnd <= mss);
    }
}
