//! Samples of the delivery rate, by the steps of draft-ietf-ccwg-bbr: segments of a thousand bytes.

use core::ops::Range;
use std::collections::VecDeque;
use std::vec::Vec;

use whimbrel_base::{Instant, Micros};

use crate::cc::{LostText, Rate};
use crate::flight::{Delivered, Flight};

const MSS: u64 = 1_000;

/// A flight that is sampled, and its clock.
struct Sampled {
    flight: Flight,
    now: u64,
}

impl Sampled {
    fn new() -> Self {
        let mut flight = Flight::default();
        flight.set_sampled(true);
        Self { flight, now: 1_000 }
    }

    fn at(&mut self, millis: u64) -> &mut Self {
        self.now = 1_000 + millis;
        self
    }

    fn instant(&self) -> Instant {
        Instant::from_millis(self.now)
    }

    fn send(&mut self, segments: Range<u64>) {
        let now = self.instant();
        for segment in segments {
            let range = segment * MSS..(segment + 1) * MSS;
            let again = self.flight.transmit(range.clone(), MSS as u16, now);
            let in_flight = self.flight.pipe();
            self.flight.sample(&range, again, in_flight, now);
            self.flight.check().expect("nothing is wrong");
        }
    }

    fn ack(&mut self, to: u64) -> Option<Rate> {
        self.flight.acknowledge(to * MSS, &mut Delivered::default());
        self.taken()
    }

    fn sack(&mut self, segments: Range<u64>) -> Option<Rate> {
        self.flight.sack(segments.start * MSS..segments.end * MSS, &mut Delivered::default());
        self.taken()
    }

    fn taken(&mut self) -> Option<Rate> {
        self.flight.check().expect("nothing is wrong");
        self.flight.take_rate(self.instant(), Some(Micros::from_millis(10)), true)
    }

    /// Bytes, and milliseconds in which they arrived.
    fn measured(rate: Option<Rate>) -> (u64, u32) {
        let rate = rate.expect("a sample");
        (rate.delivered, rate.interval.expect("a reliable one").get() / 1_000)
    }

    fn losses(&mut self) -> Vec<LostText> {
        std::iter::from_fn(|| self.flight.next_loss(true)).collect()
    }
}

#[test]
fn what_was_sent_to_an_idle_path_is_measured_from_then_on() {
    let mut it = Sampled::new();
    it.at(500).send(0..4);
    assert_eq!(Sampled::measured(it.at(600).ack(2)), (2 * MSS, 100));
    assert_eq!(Sampled::measured(it.at(610).ack(4)), (4 * MSS, 110));
}

#[test]
fn interval_is_longer_of_send_and_ack_times() {
    let mut it = Sampled::new();
    // Sent over 60 ms, and acknowledged within 10: acknowledgments were held up.
    for (millis, segment) in [(0, 0), (20, 1), (40, 2), (60, 3)] {
        it.at(millis).send(segment..segment + 1);
    }
    assert_eq!(Sampled::measured(it.at(100).ack(1)), (MSS, 100));
    it.at(100).send(4..5);
    assert_eq!(Sampled::measured(it.at(110).ack(4)), (4 * MSS, 110));
    // The fifth left at 100, 100 ms after the first, which was the last known to arrive then; 15 ms pass between
    // acknowledgments.
    assert_eq!(Sampled::measured(it.at(115).ack(5)), (4 * MSS, 100));
}

#[test]
fn an_interval_below_the_least_round_trip_is_no_measure() {
    let mut it = Sampled::new();
    it.send(0..1);
    let rate = it.at(9).ack(1).expect("a sample");
    assert_eq!((rate.delivered, rate.interval, rate.total), (MSS, None, MSS));
}

#[test]
fn byte_named_and_then_acknowledged_counts_once() {
    let mut it = Sampled::new();
    it.send(0..5);
    assert_eq!(Sampled::measured(it.at(100).sack(2..4)), (2 * MSS, 100));
    let rate = it.at(120).ack(5).expect("a sample");
    assert_eq!((rate.total, rate.delivered), (5 * MSS, 5 * MSS));
}

#[test]
fn an_acknowledgment_of_nothing_new_gives_none() {
    let mut it = Sampled::new();
    it.send(0..5);
    assert!(it.at(100).sack(2..4).is_some());
    assert_eq!(it.at(101).sack(2..4), None);
}

#[test]
fn duplicate_acknowledgments_tell_of_the_rate_without_sack() {
    let mut it = Sampled::new();
    for segment in 0..10 {
        it.at(segment * 10).send(segment..segment + 1);
    }
    // The first is lost. A duplicate comes for each of the others, 10 ms apart, as they left.
    for segment in 1..10 {
        assert_eq!(it.at(100 + segment * 10).flight.credit((segment - 1) * MSS), MSS);
        let (delivered, interval) = Sampled::measured(it.taken());
        assert_eq!((delivered, interval), (segment * MSS, 100 + segment as u32 * 10));
    }
    assert_eq!(it.flight.credit(9 * MSS), 0, "there is no more behind it");
    it.flight.lose(0..MSS);
    it.at(190).send(0..1);
    it.flight.acknowledge(10 * MSS, &mut Delivered::default());
    it.flight.discount(9 * MSS);
    let rate = it.at(290).taken();
    assert_eq!(Sampled::measured(rate), (MSS, 100));
    assert_eq!(rate.map(|rate| rate.total), Some(10 * MSS));
}

#[test]
fn a_repair_is_measured_from_when_it_left() {
    let mut it = Sampled::new();
    it.send(0..4);
    assert!(it.at(100).sack(1..4).is_some());
    it.flight.lose(0..MSS);
    it.at(110).send(0..1);
    // Since the repair left a kilobyte arrived, the repair itself: 3 had before. The last of these at 100 ms.
    let rate = it.at(210).ack(4);
    // Nothing was in flight when it left: it is measured from then on.
    assert_eq!(Sampled::measured(rate), (MSS, 100));
    assert_eq!(rate.map(|rate| rate.lost), Some(0), "what was lost before it left does not count");
}

#[test]
fn lost_transmission_is_reported_with_its_snapshot() {
    let mut it = Sampled::new();
    it.send(0..4);
    it.flight.lose(0..2 * MSS);
    let lost = |in_flight: u64, lost: u64| LostText {
        bytes: MSS as u32,
        in_flight: (in_flight * MSS) as u32,
        lost: (lost * MSS) as u32,
        app_limited: false,
        sack: true,
    };
    assert_eq!(it.losses(), [lost(1, 1), lost(2, 2)]);
    it.flight.lose(0..2 * MSS);
    assert_eq!(it.losses(), [], "they were lost before");
    it.at(50).send(0..1);
    it.flight.lose(0..MSS);
    assert_eq!(it.losses(), [lost(3, 1)], "the repair is a transmission of its own");
    let rate = it.at(100).ack(4).expect("a sample");
    assert_eq!(rate.lost, 3 * MSS as u32, "since the last one left");
}

#[test]
fn what_was_too_big_for_the_path_is_no_loss() {
    let mut it = Sampled::new();
    it.send(0..4);
    it.flight.lose_larger(500);
    assert_eq!(it.losses(), []);
    it.at(10).send(0..4);
    assert_eq!(it.at(110).ack(4).map(|rate| rate.lost), Some(0));
}

#[test]
fn application_limits_until_all_that_was_out_is_delivered() {
    let mut it = Sampled::new();
    it.send(0..2);
    let in_flight = it.flight.pipe();
    it.flight.note_app_limited(in_flight);
    it.at(10).send(2..4);
    assert_eq!(it.at(100).ack(2).map(|rate| rate.app_limited), Some(false), "sent before");
    assert_eq!(it.at(110).ack(3).map(|rate| rate.app_limited), Some(true));
    it.at(110).send(4..5);
    assert_eq!(it.at(120).ack(4).map(|rate| rate.app_limited), Some(true));
    assert_eq!(it.at(210).ack(5).map(|rate| rate.app_limited), Some(false));
}

#[test]
fn what_was_out_when_sampling_began_gives_none() {
    let mut flight = Flight::default();
    flight.transmit(0..MSS, MSS as u16, Instant::from_millis(1));
    flight.set_sampled(true);
    let mut it = Sampled { flight, now: 1_000 };
    it.send(1..2);
    assert_eq!(it.at(100).ack(1), None);
    assert_eq!(it.at(110).ack(2).map(|rate| rate.total), Some(2 * MSS));
    it.flight.set_sampled(false);
    assert!(it.flight.is_plain());
}

#[test]
fn of_single_bytes_that_share_a_record_none_is_measured() {
    let mut it = Sampled::new();
    let now = it.instant();
    for byte in 0..3_000 {
        let again = it.flight.transmit(byte..byte + 1, 1, now);
        let in_flight = it.flight.pipe();
        it.flight.sample(&(byte..byte + 1), again, in_flight, now);
    }
    it.flight.check().expect("nothing is wrong");
    it.at(100).flight.acknowledge(3_000, &mut Delivered::default());
    assert_eq!(it.taken(), None);
}

#[test]
fn whoever_forgets_all_goes_on_with_the_samples() {
    let mut it = Sampled::new();
    it.send(0..4);
    it.flight.forget_all();
    assert!(it.flight.is_sampled());
    it.at(10).send(0..1);
    assert_eq!(Sampled::measured(it.at(110).ack(1)), (MSS, 100));
}

/// A path that carries a segment in each millisecond, and takes 100 ms: no sample exceeds its rate, and one tells
/// of it as soon as as much is in flight as fills it, though one segment is lost and never sent again.
#[test]
fn no_sample_exceeds_the_rate_of_the_path() {
    for (window, lost) in [(3, 0), (20, 7), (60, 59), (102, 50), (250, 20)] {
        let best = best_rate(window, lost);
        // The lost one is thought to be in flight for ever.
        let full = ((window - 1) as f64 / 102.0).min(1.0) * MSS as f64;
        assert!((0.9 * full..=1.02 * MSS as f64).contains(&best), "{best} of {window} segments");
    }
}

/// The highest rate, bytes in a millisecond, of all samples in 400 ms with so many segments in flight.
fn best_rate(window: u64, lost: u64) -> f64 {
    let mut it = Sampled::new();
    let mut arrivals = VecDeque::new();
    let (mut next, mut idle, mut best) = (0, 0, 0.0_f64);
    for millis in 0..400 {
        it.at(millis);
        while let Some((_, segment)) = arrivals.pop_front_if(|(at, _)| *at <= millis) {
            let is_missing = segment > lost;
            let rate = if is_missing { it.sack(segment..segment + 1) } else { it.ack(segment + 1) };
            if let Some((rate, interval)) = rate.and_then(|rate| Some((rate, rate.interval?))) {
                best = best.max(rate.delivered as f64 / f64::from(interval.get()) * 1_000.0);
            }
        }
        while it.flight.pipe() < (window * MSS) as u32 {
            it.send(next..next + 1);
            if next != lost {
                idle = (millis + 1).max(idle + 1);
                arrivals.push_back((idle + 100, next));
            }
            next += 1;
        }
    }
    best
}
