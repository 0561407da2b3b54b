use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn only_whole_intervals_are_compared_and_an_empty_one_counts() {
    let mut intervals = Intervals::new(SECOND);
    for (at, count) in [(0, 100), (1, 200), (3, 50)] {
        for _ in 0..count {
            intervals.count(SECOND * at, 7);
        }
    }
    assert_eq!(intervals.rates(SECOND * 7 / 2), [100.0, 200.0, 0.0]);
    assert_eq!(intervals.counts()[1], Count { exchanges: 200, octets: 1_400, failed: 0 });
    let spread = intervals.spread(SECOND * 7 / 2).unwrap();
    assert_eq!((spread.intervals, spread.min, spread.max, spread.mean), (3, 0.0, 200.0, 100.0));
    assert!((spread.variation() - (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
}

#[test]
fn without_a_whole_interval_there_is_nothing_to_compare() {
    let mut intervals = Intervals::new(SECOND);
    intervals.count(Duration::ZERO, 0);
    assert_eq!(intervals.spread(SECOND / 2), None);
}
