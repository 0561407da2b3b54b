//! The flight against a model that knows of each octet what became of it.

use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_base::Instant;

use super::{Delivered, Flight};

/// One octet between SND.UNA and SND.NXT.
#[derive(Clone, Copy, Debug)]
struct Octet {
    first: Instant,
    again: Option<Instant>,
    ever_again: bool,
    is_sacked: bool,
    is_lost: bool,
}

/// What is in flight, octet by octet.
#[derive(Debug, Default)]
struct Model {
    una: u64,
    fack: u64,
    /// Below this what is named does not count.
    reneged: u64,
    octets: Vec<Octet>,
}

impl Model {
    fn end(&self) -> u64 {
        self.una + self.octets.len() as u64
    }

    fn of(&mut self, offset: u64) -> Option<&mut Octet> {
        let place = offset.checked_sub(self.una)?;
        self.octets.get_mut(place as usize)
    }

    fn transmit(&mut self, from: u64, to: u64, at: Instant) {
        let end = self.end();
        for offset in from..to.min(end) {
            let octet = self.of(offset).unwrap();
            (octet.again, octet.ever_again, octet.is_lost) = (Some(at), true, false);
        }
        for _ in end..to {
            let (first, again) = (at, None);
            self.octets.push(Octet {
                first,
                again,
                ever_again: false,
                is_sacked: false,
                is_lost: false,
            });
        }
    }

    /// Whether it had not arrived, as far as anybody knew.
    fn deliver(&mut self, offset: u64, heard: &mut Heard) -> bool {
        let (fack, octet) = (self.fack, *self.of(offset).unwrap());
        if octet.is_sacked {
            return false;
        }
        heard.octets += 1;
        heard.is_reordered |= !octet.ever_again && offset + 1 < fack;
        heard.once_from = heard.once_from.or((!octet.ever_again).then_some(offset));
        let octet = self.of(offset).unwrap();
        (octet.is_sacked, octet.is_lost, octet.again) = (true, false, None);
        true
    }

    fn sack(&mut self, from: u64, to: u64, heard: &mut Heard) {
        let mut new = false;
        for offset in from.max(self.reneged)..to {
            new |= self.deliver(offset, heard);
        }
        if new {
            self.fack = self.fack.max(to);
        }
    }

    fn acknowledge(&mut self, to: u64, heard: &mut Heard) {
        for offset in self.una..to {
            if self.deliver(offset, heard) {
                self.fack = self.fack.max(offset + 1);
            }
        }
        self.octets.drain(..(to - self.una) as usize);
        self.una = to;
    }

    /// All that was sent before `rack` and not after `limit` is lost.
    fn detect_loss(&mut self, rack: (Instant, u64), limit: Instant) {
        for place in 0..self.octets.len() {
            let offset = self.una + place as u64;
            let octet = &mut self.octets[place];
            let at = octet.again.unwrap_or(octet.first);
            // Each octet is as old as a segment of its own.
            let older = at < rack.0 || at == rack.0 && offset < rack.1;
            if !octet.is_sacked && older && at <= limit {
                (octet.is_lost, octet.again) = (true, None);
            }
        }
    }

    fn count(&self, holds: impl Fn(&Octet) -> bool) -> u64 {
        self.octets.iter().filter(|octet| holds(octet)).count() as u64
    }
}

#[derive(Debug, Default, PartialEq)]
struct Heard {
    octets: u64,
    once_from: Option<u64>,
    is_reordered: bool,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn whatever_happens_each_octet_is_what_the_model_says(
        steps in vec((0u8..8, 0u64..100, 1u64..40), 1..80),
    ) {
        let (mut flight, mut model) = (Flight::default(), Model::default());
        let mut rack = (Instant::ZERO, 0);
        for (now, (what, at, len)) in steps.into_iter().enumerate() {
            // Two steps share a time, as those of a burst do.
            let now = Instant::from_millis(now as u64 / 2);
            let size = (model.end() - model.una).max(1);
            let from = model.una + at % size;
            let to = (from + len).min(model.end());
            let (mut delivered, mut heard) = (Delivered::default(), Heard::default());
            match what {
                0..=2 => {
                    let end = model.end();
                    flight.transmit(end..end + len, 5, now);
                    model.transmit(end, end + len, now);
                }
                3 if to > from && from > model.una => {
                    flight.sack(from..to, &mut delivered);
                    model.sack(from, to, &mut heard);
                    prop_assert_eq!(delivered.octets, heard.octets);
                    prop_assert!(delivered.once_from.is_none_or(|from| heard.once_from <= Some(from)));
                }
                4 if to > model.una => {
                    flight.acknowledge(to, &mut delivered);
                    model.acknowledge(to, &mut heard);
                    prop_assert_eq!(delivered.octets, heard.octets);
                }
                5 => {
                    let Some(lost) = flight.lost().first() else { continue };
                    let to = lost.end.min(lost.start + len);
                    prop_assert_eq!(flight.transmit(lost.start..to, 5, now), to - lost.start);
                    model.transmit(lost.start, to, now);
                }
                6 => {
                    let age = (len % 4).min(now.as_nanos() / 1_000_000);
                    let limit = Instant::from_millis(now.as_nanos() / 1_000_000 - age);
                    flight.detect_loss(rack, limit);
                    model.detect_loss(rack, limit);
                }
                7 if at == 0 => {
                    flight.forget_sacked();
                    let held = model.octets.iter().rposition(|octet| octet.is_sacked);
                    model.reneged = held.map_or(model.una, |last| model.una + last as u64 + 1);
                    model.octets.iter_mut().for_each(|octet| octet.is_sacked = false);
                    model.fack = model.una;
                }
                _ => {}
            }
            rack = rack.max(delivered.once.max(delivered.again).unwrap_or(rack));
            prop_assert_eq!((flight.una(), flight.end()), (model.una, model.end()));
            prop_assert_eq!(flight.sacked().octets(), model.count(|octet| octet.is_sacked));
            prop_assert_eq!(flight.repaired(), model.count(|octet| octet.again.is_some()));
            for offset in model.una..model.end() {
                let octet = *model.of(offset).unwrap();
                prop_assert_eq!(flight.sacked().contains(offset), octet.is_sacked, "{}", offset);
                prop_assert_eq!(flight.lost().contains(offset), octet.is_lost, "{} of {:?}", offset, flight);
            }
            let under_way = model.count(|octet| !octet.is_sacked && !octet.is_lost);
            prop_assert_eq!(u64::from(flight.pipe()), under_way);
            prop_assert_eq!(flight.check(), Ok(()));
        }
    }
}

#[test]
fn of_a_super_segment_that_lost_its_middle_only_that_is_lost() {
    let mut flight = Flight::default();
    let at = Instant::from_millis;
    flight.transmit(0..45_000, 1_000, at(1));
    flight.transmit(45_000..46_000, 1_000, at(2));
    let mut delivered = Delivered::default();
    flight.acknowledge(10_000, &mut delivered);
    flight.sack(13_000..46_000, &mut delivered);
    assert_eq!((delivered.octets, delivered.once), (43_000, Some((at(2), 46_000))));
    let found = flight.detect_loss((at(2), 46_000), at(2));
    assert!(found.is_lost && found.pending.is_none());
    assert_eq!(flight.lost().first(), Some(10_000..13_000));
    assert_eq!(flight.pipe(), 0);
    assert_eq!(flight.transmit(10_000..13_000, 1_000, at(3)), 3_000);
    assert_eq!((flight.pipe(), flight.repaired()), (3_000, 3_000));
}

#[test]
fn a_repair_is_lost_once_something_sent_later_arrived() {
    let mut flight = Flight::default();
    let at = Instant::from_millis;
    flight.transmit(0..3_000, 1_000, at(1));
    flight.lose(0..1_000);
    flight.transmit(0..1_000, 1_000, at(5));
    flight.transmit(3_000..4_000, 1_000, at(6));
    let found = flight.detect_loss((at(1), 3_000), at(9));
    assert!(found.is_lost && !found.repair_is_lost, "what was sent once: {flight:?}");
    let mut delivered = Delivered::default();
    flight.sack(3_000..4_000, &mut delivered);
    let found = flight.detect_loss(delivered.once.unwrap(), at(4));
    assert_eq!(found.pending, Some(at(5)), "not old enough");
    let found = flight.detect_loss(delivered.once.unwrap(), at(5));
    assert!(found.repair_is_lost);
    assert_eq!(flight.lost().first(), Some(0..3_000));
}

#[test]
fn what_is_sent_and_named_octet_by_octet_takes_no_more_than_its_text() {
    let mut flight = Flight::default();
    let octets = 1 << 18;
    for at in 0..octets {
        flight.transmit(at..at + 1, 1_448, Instant::from_millis(at));
    }
    assert!(flight.memory() < 2 * octets as usize, "{} bytes", flight.memory());
    let before = flight.memory();
    for at in (1..octets).step_by(2) {
        flight.sack(at..at + 1, &mut Delivered::default());
    }
    let ranges = flight.sacked().len();
    assert!((64..=8_192).contains(&ranges), "{ranges} ranges");
    assert!(flight.memory() - before < 100 * 8_192, "{} bytes", flight.memory() - before);
    let mut delivered = Delivered::default();
    flight.acknowledge(octets, &mut delivered);
    assert_eq!((delivered.octets, flight.pipe()), (octets - ranges as u64, 0));
    assert!(flight.is_plain());
}

#[test]
fn whoever_let_go_of_what_it_named_is_not_believed_there_until_that_is_acknowledged() {
    let mut flight = Flight::default();
    flight.transmit(0..4_000, 1_000, Instant::from_millis(1));
    flight.sack(1_000..3_000, &mut Delivered::default());
    flight.acknowledge(1_000, &mut Delivered::default());
    flight.forget_sacked();
    let mut delivered = Delivered::default();
    flight.sack(1_500..3_000, &mut delivered);
    assert_eq!((delivered.octets, flight.sacked().octets()), (0, 0));
    flight.sack(2_000..4_000, &mut delivered);
    assert_eq!((delivered.octets, flight.sacked().first()), (1_000, Some(3_000..4_000)));
    flight.acknowledge(3_000, &mut delivered);
    assert_eq!(flight.pipe(), 0);
}

#[test]
fn a_flight_whose_losses_were_forgotten_is_known_until_it_is_acknowledged() {
    let mut flight = Flight::default();
    let at = Instant::from_millis;
    flight.transmit(0..4_000, 1_000, at(1));
    flight.lose(0..3_000);
    assert!(!flight.was_forgiven());
    flight.forget_lost();
    assert_eq!((flight.pipe(), flight.was_forgiven()), (4_000, true));
    flight.transmit(4_000..6_000, 1_000, at(2));
    flight.acknowledge(3_999, &mut Delivered::default());
    assert!(flight.was_forgiven());
    flight.acknowledge(4_000, &mut Delivered::default());
    assert!(!flight.was_forgiven() && flight.is_plain());
}

#[test]
fn records_of_129_segments_and_more_take_a_twentieth_of_their_text_at_most() {
    let mut flight = Flight::default();
    for at in 0..100_000 {
        flight.transmit(at * 1_448..(at + 1) * 1_448, 1_448, Instant::from_millis(at));
        let (segments, whole) = (at + 1, flight.memory() + size_of::<Flight>());
        assert!(
            segments < 129 || whole as u64 * 20 <= segments * 1_448,
            "{segments} segments: {whole} bytes"
        );
    }
}

#[test]
fn the_room_of_a_large_flight_goes_with_it() {
    let mut flight = Flight::default();
    for at in 0..10_000 {
        flight.transmit(at * 1_000..at * 1_000 + 1_000, 1_000, Instant::from_millis(at));
    }
    assert!(flight.memory() >= 240_000, "{} bytes", flight.memory());
    flight.acknowledge(10_000_000, &mut Delivered::default());
    flight.clear();
    assert!(flight.memory() < 2_000, "{} bytes", flight.memory());
}
