use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn spread_compares_whole_intervals_and_empty_ones() {
    let mut intervals = Intervals::new(SECOND);
    for (at, count) in [(0, 100), (1, 200), (3, 50)] {
        for _ in 0..count {
            intervals.count(SECOND * at, 7);
        }
    }
    assert_eq!(intervals.rates(SECOND * 7 / 2), [100.0, 200.0, 0.0]);
    assert_eq!(intervals.counts()[1], Count { exchanges: 200, bytes: 1_400, failed: 0 });
    let spread = intervals.spread(SECOND * 7 / 2).unwrap();
    assert_eq!((spread.intervals, spread.min, spread.max, spread.mean), (3, 0.0, 200.0, 100.0));
    assert!((spread.variation() - (2.0f64 / 3.0).sqrt()).abs() < 1e-9);
}

#[test]
fn finished_run_has_intervals_for_exactly_its_time() {
    let mut intervals = Intervals::new(SECOND);
    for at in [500, 1_900, 2_000, 2_100] {
        intervals.count(Duration::from_millis(at), 1);
    }
    intervals.close(2 * SECOND);
    let counts: Vec<_> = intervals.counts().iter().map(|count| count.exchanges).collect();
    assert_eq!(counts, [1, 3], "what ended with the run counts with its last interval");
    intervals.close(SECOND * 7 / 2);
    assert_eq!(intervals.counts().len(), 4, "empty intervals are counted");
}

#[test]
fn counts_of_another_part_are_added_interval_by_interval() {
    let (mut one, mut other) = (Intervals::new(SECOND), Intervals::new(SECOND));
    one.count(Duration::ZERO, 7);
    other.count(Duration::ZERO, 3);
    other.count_failed(2 * SECOND);
    one += &other;
    let count = |exchanges, bytes, failed| Count { exchanges, bytes, failed };
    assert_eq!(one.counts(), [count(2, 10, 0), count(0, 0, 0), count(0, 0, 1)]);
}

#[test]
fn spread_needs_a_whole_interval() {
    let mut intervals = Intervals::new(SECOND);
    intervals.count(Duration::ZERO, 0);
    assert_eq!(intervals.spread(SECOND / 2), None);
}
