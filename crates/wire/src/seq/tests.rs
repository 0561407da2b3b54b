//! Tests of `seq`.

use proptest::prelude::*;

use super::*;

#[test]
fn the_circle_closes_behind_its_last_number() {
    let last = SeqNum::new(u32::MAX);
    let first = last + 1;
    assert_eq!(first, SeqNum::new(0));
    assert!(last.before(first));
    assert!(first.after(last));
    assert_eq!(first.distance_from(last), 1);
    assert_eq!(last.distance_from(first), -1);
    assert_eq!(last.offset_from(first), u32::MAX);
}

#[test]
fn opposite_numbers_each_lie_before_the_other() {
    let (a, b) = (SeqNum::new(7), SeqNum::new(7 + (1 << 31)));
    assert!(a.before(b) && b.before(a));
}

#[test]
fn window_includes_its_first_number_and_excludes_its_end() {
    let start = SeqNum::new(u32::MAX - 1);
    assert!(start.in_window(start, 4));
    assert!((start + 3).in_window(start, 4));
    assert!(!(start + 4).in_window(start, 4));
    assert!(!(start - 1).in_window(start, 4));
    assert!(!start.in_window(start, 0));
}

proptest! {
    #[test]
    fn neighbours_less_than_half_the_circle_apart_are_ordered(a: u32, ahead in 1u32..1 << 31) {
        let (a, b) = (SeqNum::new(a), SeqNum::new(a) + ahead);
        prop_assert!(a.before(b) && a.at_or_before(b) && b.after(a) && b.at_or_after(a));
        prop_assert_eq!((a.later(b), b.later(a)), (b, b));
        prop_assert_eq!((a.earlier(b), b.earlier(a)), (a, a));
        prop_assert_eq!(b.offset_from(a), ahead);
        prop_assert_eq!(b - ahead, a);
    }
}
