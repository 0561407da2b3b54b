use super::*;

const BEGAN: Instant = Instant::from_millis(5);

fn millis(millis: u64) -> Instant {
    BEGAN + Duration::from_millis(millis)
}

#[test]
fn arrivals_at_a_rate_fall_due_evenly() {
    let mut arrivals = Arrivals::new(Some(100.0), BEGAN);
    assert_eq!(arrivals.take(BEGAN), Some(BEGAN));
    assert_eq!(arrivals.take(millis(9)), None);
    assert_eq!(arrivals.next(millis(9)), millis(10));
    // A delay does not move the later ones.
    assert_eq!(arrivals.take(millis(35)), Some(millis(10)));
    assert_eq!(arrivals.take(millis(35)), Some(millis(20)));
    assert_eq!((arrivals.taken(), arrivals.missed(millis(35))), (3, 1));
}

#[test]
fn arrivals_without_rate_are_always_due() {
    let mut arrivals = Arrivals::new(None, BEGAN);
    assert_eq!(arrivals.take(millis(7)), Some(millis(7)));
    assert_eq!((arrivals.taken(), arrivals.missed(millis(1_000))), (1, 0));
}

#[test]
fn rounding_does_not_add_up() {
    let mut arrivals = Arrivals::new(Some(3.0), BEGAN);
    let last = (0..3_000_000).filter_map(|_| arrivals.take(Instant::from_nanos(u64::MAX))).last();
    let exact = BEGAN + Duration::from_nanos(2_999_999 * 1_000_000_000 / 3);
    assert!(last.unwrap().since(exact) < Duration::from_micros(1));
}
