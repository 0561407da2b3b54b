//! RFC 9406, round by round.

use core::time::Duration;

use whimbrel_base::{Instant, Micros};

use super::HyStart;
use crate::cc::tests::ack;
use crate::cc::{Ack, Algorithm, SlowStart, Window};

const MSS: u32 = 1_000;

struct Sender {
    start: HyStart,
    window: Window,
    slow_start: SlowStart,
    now: Instant,
}

impl Sender {
    fn new() -> Self {
        let (start, slow_start) = (HyStart::default(), SlowStart::default());
        let window = Window::new(Algorithm::RENO, MSS);
        Self { start, window, slow_start, now: Instant::ZERO }
    }

    fn paced() -> Self {
        let mut sender = Self::new();
        sender.slow_start.paced = true;
        sender
    }

    /// A window is sent, and acknowledged segment by segment, each after so many milliseconds. Returns by
    /// how many segments the window grew.
    fn round(&mut self, millis: impl Fn(u32) -> u32) -> u32 {
        let (before, segments) = (self.window.cwnd, self.window.cwnd / MSS);
        for number in 0..segments {
            if !self.window.in_slow_start() {
                break;
            }
            let in_flight =
                (segments - number - 1) * MSS + (self.window.cwnd - before) + number * MSS;
            self.ack(MSS, in_flight, Some(millis(number)));
        }
        (self.window.cwnd - before) / MSS
    }

    /// As [`Sender::round`] on a path of 100 ms that carries 100 segments in that time: each is acknowledged a
    /// millisecond after the last, and the rest of the round trip is silent.
    fn round_at_a_segment_a_millisecond(&mut self) -> u32 {
        let (before, segments) = (self.window.cwnd, self.window.cwnd / MSS);
        for number in 0..segments {
            if !self.window.in_slow_start() {
                break;
            }
            let in_flight = self.window.cwnd - MSS;
            self.ack(MSS, in_flight, Some(100 + number.saturating_sub(100)));
            self.wait(Duration::from_millis(1));
        }
        self.wait(Duration::from_millis(u64::from(100_u32.saturating_sub(segments))));
        (self.window.cwnd - before) / MSS
    }

    /// As [`Sender::round_at_a_segment_a_millisecond`], of a window that leaves over 70 ms.
    fn round_paced(&mut self) -> u32 {
        let (before, segments) = (self.window.cwnd, self.window.cwnd / MSS);
        let (begun, mut free) = (self.now, 0);
        for number in 0..segments {
            if !self.window.in_slow_start() {
                break;
            }
            let sent = number * 70_000 / segments;
            let departs = sent.max(free);
            free = departs + 1_000;
            self.now = begun + Duration::from_micros(departs.into());
            self.ack_micros(MSS, self.window.cwnd - MSS, Some(100_000 + departs - sent));
        }
        self.now = self.now.max(begun + Duration::from_millis(100));
        (self.window.cwnd - before) / MSS
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn ack(&mut self, delivered: u32, in_flight: u32, millis: Option<u32>) {
        self.ack_micros(delivered, in_flight, millis.map(|millis| millis * 1_000));
    }

    fn ack_micros(&mut self, delivered: u32, in_flight: u32, micros: Option<u32>) {
        let rtt = micros.map(Micros::new);
        let (now, slow_start) = (self.now, self.slow_start);
        let ack = Ack { now, in_flight, rtt, slow_start, ..ack(delivered, MSS) };
        self.start.grow(&mut self.window, delivered, &ack);
    }
}

#[test]
fn a_steady_round_trip_doubles_the_window_each_round() {
    let mut sender = Sender::new();
    for segments in [10, 20, 40, 80, 160] {
        assert_eq!(sender.round(|_| 50), segments);
    }
    assert!(sender.window.in_slow_start());
}

#[test]
fn window_doubles_without_hystart_while_round_trip_grows() {
    let mut sender = Sender::new();
    sender.slow_start.hystart = false;
    for (millis, segments) in [(80, 10), (90, 20), (200, 40), (400, 80)] {
        assert_eq!(sender.round(|_| millis), segments);
    }
    assert!(sender.window.in_slow_start());
}

#[test]
fn round_trip_longer_by_an_eighth_quarters_growth() {
    let mut sender = Sender::new();
    assert_eq!(sender.round(|_| 80), 10);
    // Eight round trips are to be seen first: those grow as ever.
    assert_eq!(sender.round(|_| 90), 8 + 12 / 4);
    assert_eq!(sender.round(|_| 90), 31 / 4);
}

#[test]
fn one_that_grew_by_less_leads_to_nothing() {
    let mut sender = Sender::new();
    assert_eq!(sender.round(|_| 80), 10);
    assert_eq!(sender.round(|_| 89), 20);
}

#[test]
fn rtt_threshold_is_between_4_and_16_milliseconds() {
    for (first, below, above) in [(1, 4, 5), (8, 11, 12), (400, 415, 416)] {
        let mut sender = Sender::new();
        sender.round(|_| first);
        assert_eq!(sender.round(|_| below), 20, "{first} ms, then {below}");
        let mut sender = Sender::new();
        sender.round(|_| first);
        assert_eq!(sender.round(|_| above), 11, "{first} ms, then {above}");
    }
}

#[test]
fn the_least_of_a_round_counts_and_not_what_jitter_adds_to_some() {
    let mut sender = Sender::new();
    sender.round(|_| 80);
    assert_eq!(sender.round(|number| if number == 0 { 81 } else { 200 }), 20);
}

#[test]
fn fewer_than_eight_round_trips_say_nothing() {
    let mut sender = Sender::new();
    for _ in 0..10 {
        sender.ack(MSS, 10 * MSS, Some(50));
    }
    let before = sender.window.cwnd;
    for _ in 0..7 {
        sender.ack(MSS, 10 * MSS, Some(500));
    }
    for _ in 0..50 {
        sender.ack(10, 10 * MSS, None);
    }
    assert_eq!(sender.window.cwnd - before, 7 * MSS + 500);
}

#[test]
fn css_enters_congestion_avoidance_after_five_rounds() {
    let mut sender = Sender::new();
    sender.round(|_| 80);
    let mut rounds = 0;
    while sender.window.in_slow_start() {
        sender.round(|_| 100);
        rounds += 1;
        assert!(rounds <= 6, "{:?}", sender.start);
    }
    assert_eq!(sender.window.ssthresh, sender.window.cwnd);
    // 20 segments, of them 8 at full growth, and five rounds of a quarter each.
    assert!((70 * MSS..110 * MSS).contains(&sender.window.cwnd), "{}", sender.window.cwnd);
}

#[test]
fn a_round_trip_below_the_baseline_resumes_slow_start() {
    let mut sender = Sender::new();
    sender.round(|_| 80);
    assert_eq!(sender.round(|_| 100), 11);
    // Half of the round is over before eight of the shorter ones are seen.
    assert!(sender.round(|_| 85) > 20);
    let before = sender.window.cwnd / MSS;
    assert_eq!(sender.round(|_| 85), before, "the window doubles again");
    assert!(sender.window.in_slow_start());
}

#[test]
fn later_slow_starts_go_by_ssthresh_alone() {
    let mut sender = Sender::new();
    sender.window.ssthresh = 100 * MSS;
    assert_eq!(sender.round(|_| 10), 10);
    assert_eq!(sender.round(|_| 1_000), 20);
    assert_eq!(sender.round(|_| 2_000), 40);
    assert_eq!(sender.round(|_| 4_000), 20, "up to ssthresh");
}

#[test]
fn division_of_acknowledgments_gains_nothing() {
    let [mut whole, mut divided] = [Sender::new(), Sender::new()];
    for sender in [&mut whole, &mut divided] {
        sender.round(|_| 80);
        sender.round(|_| 100);
    }
    for _ in 0..4 {
        whole.ack(MSS, 30 * MSS, Some(100));
    }
    for _ in 0..4 * MSS {
        divided.ack(1, 30 * MSS, Some(100));
    }
    assert!(
        divided.window.cwnd <= whole.window.cwnd,
        "{divided:?} {whole:?}",
        divided = divided.window,
        whole = whole.window
    );
}

#[test]
fn long_train_quarters_growth_and_then_ends_slow_start() {
    let mut sender = Sender::new();
    for segments in [10, 20, 40] {
        assert_eq!(sender.round_at_a_segment_a_millisecond(), segments);
    }
    // Of 80 segments the 52nd is acknowledged 51 ms after the first.
    assert_eq!(sender.round_at_a_segment_a_millisecond(), 52 + 28 / 4);
    assert!(sender.window.in_slow_start());
    // The path is full with 100. Of the 139 the 102nd is acknowledged 101 ms after the first.
    assert_eq!(sender.round_at_a_segment_a_millisecond(), 102 / 4);
    assert!(!sender.window.in_slow_start());
    assert_eq!(sender.window.ssthresh, sender.window.cwnd);
}

#[test]
fn slow_start_resumes_when_a_train_was_none() {
    let mut sender = Sender::new();
    // Segments are late for some reason, two milliseconds apart.
    for _ in 0..22 {
        sender.ack(MSS, 10 * MSS, Some(80));
        sender.wait(Duration::from_millis(2));
    }
    assert!(sender.window.in_slow_start());
    let before = sender.window.cwnd;
    sender.ack(MSS, 10 * MSS, Some(80));
    assert_eq!(sender.window.cwnd - before, MSS / 4);
    // Two trains that are short: the second ends the first.
    for _ in 0..2 {
        sender.wait(Duration::from_millis(60));
        sender.ack(MSS, 10 * MSS, Some(80));
    }
    let before = sender.window.cwnd;
    sender.ack(MSS, 10 * MSS, Some(80));
    assert_eq!(sender.window.cwnd - before, MSS);
}

#[test]
fn acknowledgments_three_milliseconds_apart_are_no_train() {
    let mut sender = Sender::new();
    for _ in 0..60 {
        let before = sender.window.cwnd;
        sender.ack(MSS, 10 * MSS, Some(80));
        assert_eq!(sender.window.cwnd - before, MSS);
        sender.wait(Duration::from_millis(3));
    }
}

#[test]
fn queue_of_a_paced_window_quarters_growth_and_ends_slow_start() {
    let mut sender = Sender::paced();
    for segments in [10, 20, 40] {
        assert_eq!(sender.round_paced(), segments);
    }
    // From the 51st of 80 segments on, each waits for 6.25 ms and more; eight of them are needed.
    assert_eq!(sender.round_paced(), 58 + 22 / 4);
    assert!(sender.window.in_slow_start());
    // The 50th of 143 is the first that waits for 25 ms, and the next eight begin with the 51st.
    assert_eq!(sender.round_paced(), 58 / 4);
    assert!(!sender.window.in_slow_start());
    assert_eq!(sender.window.ssthresh, sender.window.cwnd);
}

#[test]
fn slow_start_resumes_after_a_round_without_a_queue() {
    let mut sender = Sender::paced();
    let mut round = |late: core::ops::Range<u32>| {
        let (before, segments) = (sender.window.cwnd, sender.window.cwnd / MSS);
        for number in 0..segments {
            let millis = if late.contains(&number) { 110 } else { 100 };
            sender.ack(MSS, sender.window.cwnd - MSS, Some(millis));
            sender.wait(Duration::from_millis(1));
        }
        (sender.window.cwnd - before) / MSS
    };
    assert_eq!([round(0..0), round(0..0)], [10, 20]);
    // Something of another's was in the way of some.
    assert!((20..40).contains(&round(8..30)));
    round(0..0);
    let segments = round(0..0);
    assert_eq!(round(0..0), 2 * segments, "the window doubles again");
    assert!(sender.window.in_slow_start());
}

#[test]
fn paced_window_doubles_while_every_eighth_segment_is_in_time() {
    let mut sender = Sender::paced();
    for segments in [10, 20, 40, 80, 160, 320] {
        assert_eq!(sender.round(|number| if number % 8 == 0 { 100 } else { 160 }), segments);
    }
    assert!(sender.window.in_slow_start());
}

#[test]
fn round_trip_that_no_window_paces_goes_by_trains() {
    let mut sender = Sender::paced();
    // Half a millisecond: what is sent in it leaves at once.
    for _ in 0..8 {
        sender.ack_micros(MSS, 10 * MSS, Some(500));
        sender.wait(Duration::from_micros(50));
    }
    assert!(sender.start.in_css(), "{:?}", sender.start);
}
