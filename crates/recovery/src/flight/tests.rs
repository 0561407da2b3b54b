//! A flight by example; [`model`] checks it byte by byte.

mod model;
mod rates;

use whimbrel_base::Instant;

use super::{Delivered, Flight};

#[test]
fn of_a_super_segment_that_lost_its_middle_only_that_is_lost() {
    let mut flight = Flight::default();
    let at = Instant::from_millis;
    flight.transmit(0..45_000, 1_000, at(1));
    flight.transmit(45_000..46_000, 1_000, at(2));
    let mut delivered = Delivered::default();
    flight.acknowledge(10_000, &mut delivered);
    flight.sack(13_000..46_000, &mut delivered);
    assert_eq!((delivered.bytes, delivered.once), (43_000, Some((at(2), 46_000))));
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
fn single_byte_segments_take_no_more_memory_than_text() {
    let mut flight = Flight::default();
    let bytes = 1 << 18;
    for at in 0..bytes {
        flight.transmit(at..at + 1, 1_448, Instant::from_millis(at));
    }
    assert!(flight.memory() < 2 * bytes as usize, "{} bytes", flight.memory());
    let before = flight.memory();
    for at in (1..bytes).step_by(2) {
        flight.sack(at..at + 1, &mut Delivered::default());
    }
    let ranges = flight.sacked().len();
    assert!((64..=8_192).contains(&ranges), "{ranges} ranges");
    assert!(flight.memory() - before < 100 * 8_192, "{} bytes", flight.memory() - before);
    let mut delivered = Delivered::default();
    flight.acknowledge(bytes, &mut delivered);
    assert_eq!((delivered.bytes, flight.pipe()), (bytes - ranges as u64, 0));
    assert!(flight.is_plain());
}

#[test]
fn reneging_peer_is_distrusted_until_all_is_acknowledged() {
    let mut flight = Flight::default();
    flight.transmit(0..4_000, 1_000, Instant::from_millis(1));
    flight.sack(1_000..3_000, &mut Delivered::default());
    flight.acknowledge(1_000, &mut Delivered::default());
    flight.forget_sacked();
    let mut delivered = Delivered::default();
    flight.sack(1_500..3_000, &mut delivered);
    assert_eq!((delivered.bytes, flight.sacked().bytes()), (0, 0));
    flight.sack(2_000..4_000, &mut delivered);
    assert_eq!((delivered.bytes, flight.sacked().first()), (1_000, Some(3_000..4_000)));
    flight.acknowledge(3_000, &mut delivered);
    assert_eq!(flight.pipe(), 0);
}

#[test]
fn undone_flight_is_known_until_it_is_acknowledged() {
    let mut flight = Flight::default();
    let at = Instant::from_millis;
    flight.transmit(0..4_000, 1_000, at(1));
    flight.lose(0..3_000);
    assert!(!flight.was_undone());
    flight.forget_lost();
    assert_eq!((flight.pipe(), flight.was_undone()), (4_000, true));
    flight.transmit(4_000..6_000, 1_000, at(2));
    flight.acknowledge(3_999, &mut Delivered::default());
    assert!(flight.was_undone());
    flight.acknowledge(4_000, &mut Delivered::default());
    assert!(!flight.was_undone() && flight.is_plain());
}

#[test]
fn records_of_129_segments_take_a_twentieth_of_text() {
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
