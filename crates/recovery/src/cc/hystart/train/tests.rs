//! Trains that begin, go on and end.

use super::Train;

#[test]
fn acknowledgments_without_a_gap_make_it_longer() {
    let mut train = Train::default();
    assert_eq!(train.on_ack(1_000, 100), Some(0), "there was none");
    train.on_ack(1_000_000, 100);
    for now in [1_000_100, 1_000_100, 1_000_150] {
        assert_eq!(train.on_ack(now, 100), None);
    }
    assert_eq!(train.length(), 150);
}

#[test]
fn a_gap_ends_it_and_begins_another() {
    let mut train = Train::default();
    train.on_ack(1_000_000, 100);
    train.on_ack(1_000_070, 100);
    assert_eq!(train.on_ack(1_000_171, 100), Some(70));
    assert_eq!(train.length(), 0);
}

#[test]
fn it_goes_on_across_the_end_of_the_clock() {
    let mut train = Train::default();
    train.on_ack(u32::MAX - 30, 100);
    assert_eq!(train.on_ack(20, 100), None);
    assert_eq!(train.length(), 51);
}
