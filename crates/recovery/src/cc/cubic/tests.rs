//! RFC 9438, stage by stage. The path has a round trip of 100 ms and never a queue.

use proptest::prelude::*;

use whimbrel_base::{Instant, Micros};

use super::Cubic;
use crate::cc::tests::ack;
use crate::cc::{Ack, Algorithm, CongestionControl, Loss, Timeout, TimeoutKind, Window};

const MSS: u32 = 1_000;
const ROUND_TRIP_MILLIS: u64 = 100;

struct Sender {
    cubic: Cubic,
    window: Window,
    millis: u64,
    round_trip: u64,
}

impl Sender {
    fn new(segments: u32) -> Self {
        let window = window(segments * MSS, MSS, 0);
        Self { cubic: Cubic::default(), window, millis: 5_000, round_trip: ROUND_TRIP_MILLIS }
    }

    fn ack(&mut self, delivered: u32, limited: u32) {
        let now = Instant::from_millis(self.millis);
        let srtt = Micros::from_millis(self.round_trip as u32);
        let (rtt, in_flight) = (Some(srtt), self.window.cwnd - MSS);
        let ack = Ack { now, limited, in_flight, rtt, srtt, ..ack(delivered, MSS) };
        self.cubic.on_ack(&mut self.window, &ack);
    }

    /// A round trip passes, in which a full window is acknowledged, two segments at a time.
    fn round(&mut self) {
        let (begin, pairs) = (self.millis, u64::from(self.window.cwnd / (2 * MSS)));
        for number in 1..=pairs {
            self.millis = begin + self.round_trip * number / pairs;
            self.ack(2 * MSS, 2 * MSS);
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = self.millis + seconds * 1_000;
        while self.millis < end {
            self.round();
        }
    }

    /// A loss with a full window in flight, and its repair.
    fn lose(&mut self) {
        let loss = Loss { in_flight: self.window.cwnd, mss: MSS };
        self.cubic.on_loss_event(&mut self.window, &loss);
        self.cubic.on_recovered(&mut self.window, &loss);
    }

    fn time_out(&mut self) {
        let timeout = Timeout { kind: TimeoutKind::First, in_flight: self.window.cwnd, mss: MSS };
        self.cubic.on_rto(&mut self.window, &timeout);
    }

    fn segments(&self) -> u32 {
        self.window.cwnd / MSS
    }
}

fn window(cwnd: u32, ssthresh: u32, w_max: u32) -> Window {
    Window { cwnd, ssthresh, w_max, ..Window::new(Algorithm::CUBIC, MSS) }
}

#[test]
fn a_loss_takes_three_tenths_and_remembers_what_there_was() {
    let mut sender = Sender::new(1_000);
    sender.lose();
    let Window { cwnd, ssthresh, w_max, .. } = sender.window;
    assert_eq!((cwnd, ssthresh, w_max), (700 * MSS, 700 * MSS, 1_000 * MSS));
}

#[test]
fn the_window_is_back_fast_stays_and_then_looks_further() {
    let mut sender = Sender::new(1_000);
    sender.lose();
    // K is 9.09 s.
    sender.run(3);
    assert!((875..=910).contains(&sender.segments()), "concave: {}", sender.segments());
    sender.run(6);
    assert!((990..=1_001).contains(&sender.segments()), "at the plateau: {}", sender.segments());
    sender.run(3);
    assert!((1_003..=1_030).contains(&sender.segments()), "slow: {}", sender.segments());
    sender.run(6);
    assert!((1_250..=1_330).contains(&sender.segments()), "convex: {}", sender.segments());
}

#[test]
fn the_curve_goes_by_the_clock_and_not_by_the_round_trip() {
    let [mut near, mut far] = [Sender::new(4_000), Sender::new(4_000)];
    (near.round_trip, far.round_trip) = (50, 200);
    for sender in [&mut near, &mut far] {
        sender.lose();
        sender.run(10);
    }
    assert!(
        near.segments().abs_diff(far.segments()) < 60,
        "{} {}",
        near.segments(),
        far.segments()
    );
}

#[test]
fn where_reno_would_have_more_the_window_is_renos() {
    // Over 1 ms and 40 segments the curve takes 3.1 s to come back, Reno 23 round trips.
    let mut sender = Sender::new(40);
    sender.round_trip = 2;
    sender.lose();
    assert_eq!(sender.segments(), 28);
    for _ in 0..17 {
        sender.round();
    }
    // 9 / 17 of a segment each.
    assert!((36..=38).contains(&sender.segments()), "{}", sender.segments());
    for _ in 0..7 {
        sender.round();
    }
    let back = sender.segments();
    assert!((39..=41).contains(&back), "{back}");
    for _ in 0..20 {
        sender.round();
    }
    // Beyond the old window a whole one each.
    assert!((back + 17..=back + 21).contains(&sender.segments()), "{}", sender.segments());
}

#[test]
fn a_second_loss_at_less_leaves_room_for_somebody_else() {
    let mut sender = Sender::new(1_000);
    sender.lose();
    sender.run(3);
    let cwnd = sender.window.cwnd;
    sender.lose();
    let w_max = (u64::from(cwnd) * 85 / 100) as u32;
    assert!(sender.window.w_max.abs_diff(w_max) <= 1, "{:?} of {cwnd}", sender.window);
}

#[test]
fn a_loss_at_more_moves_the_plateau_up() {
    let mut sender = Sender::new(1_000);
    sender.lose();
    sender.run(15);
    let cwnd = sender.window.cwnd;
    assert!(cwnd > 1_000 * MSS);
    sender.lose();
    assert_eq!(sender.window.w_max, cwnd);
}

#[test]
fn after_a_time_out_the_plateau_is_where_slow_start_ended() {
    let mut sender = Sender::new(1_000);
    sender.time_out();
    assert_eq!((sender.window.cwnd, sender.window.ssthresh), (MSS, 700 * MSS));
    while sender.window.in_slow_start() {
        sender.ack(2 * MSS, 2 * MSS);
    }
    assert_eq!(sender.segments(), 700);
    sender.run(2);
    // Neither 0.4 x 2^3 nor 20 x 9 / 17 of Reno are much; toward 1,000 it would be 145.
    assert!((703..=715).contains(&sender.segments()), "{}", sender.segments());
}

#[test]
fn slow_start_that_ended_without_a_loss_goes_on_convex() {
    let mut sender = Sender::new(500);
    sender.window.ssthresh = 500 * MSS;
    sender.run(5);
    // 0.4 x 5^3 of the curve, as much as Reno's 50.
    assert!((545..=560).contains(&sender.segments()), "{}", sender.segments());
    sender.run(5);
    assert!((880..=960).contains(&sender.segments()), "{}", sender.segments());
}

#[test]
fn time_in_which_the_window_limited_nobody_does_not_count() {
    let [mut busy, mut pausing] = [Sender::new(1_000), Sender::new(1_000)];
    for sender in [&mut busy, &mut pausing] {
        sender.lose();
        sender.run(1);
    }
    let before = pausing.segments();
    for _ in 0..600 {
        pausing.millis += 100;
        pausing.ack(2 * MSS, 0);
    }
    assert_eq!(pausing.segments(), before, "a minute with nothing to send");
    for sender in [&mut busy, &mut pausing] {
        sender.run(1);
    }
    assert!(pausing.segments().abs_diff(busy.segments()) <= 8, "{}", pausing.segments());
}

#[test]
fn a_silence_within_a_stage_counts_for_one_round_trip() {
    let mut sender = Sender::new(1_000);
    sender.lose();
    sender.round();
    sender.millis += 30_000;
    sender.round();
    assert!(sender.segments() < 760, "{}", sender.segments());
}

#[test]
fn a_window_grows_by_a_half_at_most_in_a_round_trip() {
    // A plateau far above: the curve would go there at once.
    let mut sender = Sender::new(10);
    sender.window.w_max = 1_000_000 * MSS;
    sender.round();
    assert!((11..=15).contains(&sender.segments()), "{}", sender.segments());
}

#[test]
fn a_loss_that_was_none_leaves_the_stage_as_it_was() {
    let [mut sender, mut other] = [Sender::new(1_000), Sender::new(1_000)];
    for sender in [&mut sender, &mut other] {
        sender.lose();
        sender.run(2);
    }
    let before = sender.window;
    sender.lose();
    assert!(sender.window.cwnd < before.cwnd);
    sender.cubic.undo(&mut sender.window, &before);
    assert_eq!(sender.window, before);
    for sender in [&mut sender, &mut other] {
        sender.run(2);
    }
    assert_eq!(sender.window, other.window, "as if nothing had happened");
}

#[test]
fn a_window_that_outgrew_what_it_was_keeps_its_stage() {
    let mut sender = Sender::new(1_000);
    let before = sender.window;
    sender.lose();
    sender.run(20);
    let grown = sender.window.cwnd;
    assert!(grown > before.cwnd);
    sender.cubic.undo(&mut sender.window, &before);
    assert_eq!(sender.window.cwnd, grown);
    sender.round();
    assert!(sender.window.cwnd > grown, "and the curve goes on");
}

#[test]
fn a_mark_takes_fifteen_hundredths() {
    let mut sender = Sender::new(100);
    sender.cubic.on_ecn(&mut sender.window, &Loss { in_flight: 100 * MSS, mss: MSS });
    assert_eq!((sender.segments(), sender.window.ssthresh), (85, 85 * MSS));
    assert_eq!(sender.window.w_max, 100 * MSS);
}

#[test]
fn a_pause_leads_to_the_initial_window_and_back_to_the_plateau() {
    let mut sender = Sender::new(1_000);
    sender.lose();
    sender.run(20);
    sender.cubic.on_idle(&mut sender.window, 10 * MSS);
    assert_eq!(sender.window.cwnd, 10 * MSS);
    assert_eq!(sender.window.w_max, 1_000 * MSS);
}

proptest! {
    #[test]
    fn the_window_never_shrinks_by_an_acknowledgment_nor_overflows(
        cwnd in 1u32..=1 << 30,
        ssthresh: u32,
        w_max in 0u32..=1 << 30,
        acked in 0u32..=1 << 30,
        mss in 36u32..=65_495,
        srtt: u32,
        nanos: u64,
        pause: u32,
    ) {
        let mut cubic = Cubic::default();
        let mut window = window(cwnd, ssthresh, w_max);
        for step in 0..3 {
            let now = Instant::from_nanos(nanos).after_micros(u64::from(pause) * step);
            let (srtt, before) = (Micros::new(srtt), window.cwnd);
            let ack = Ack { now, in_flight: cwnd, srtt, ..ack(acked, mss) };
            cubic.on_ack(&mut window, &ack);
            prop_assert!(window.cwnd >= before && window.cwnd <= 1 << 30);
            prop_assert!(window.cwnd <= before.saturating_add((before / 2).max(acked).max(mss)));
        }
        let loss = Loss { in_flight: cwnd, mss };
        cubic.on_loss_event(&mut window, &loss);
        prop_assert!(window.ssthresh <= (window.cwnd / 10 * 7 + 7).max(2 * mss));
    }
}
