//! Mean and percentiles of known times.

use std::time::Duration;

use whimbrel_base::Instant;

use super::{Waits, longest_at, place_of};

fn micros(count: u64) -> Duration {
    Duration::from_micros(count)
}

#[test]
fn percentile_of_known_times_is_within_one_128th() {
    let mut waits = Waits::new(Instant::ZERO);
    assert_eq!((waits.mean(), waits.percentile(99)), (None, None));
    (1..=1_000).for_each(|time| waits.count(Instant::ZERO, micros(time)));
    assert_eq!(waits.mean(), Some(Duration::from_nanos(500_500)));
    for (percent, exact) in [(50, 500), (95, 950), (99, 990)] {
        let found = waits.percentile(percent).expect("counted");
        assert!(found >= micros(exact) && found <= micros(exact) * 129 / 128, "{found:?}");
    }
    assert_eq!(waits.percentile(100), Some(micros(1_000)), "never above the longest");
}

#[test]
fn frames_that_come_before_measurement_are_not_counted() {
    let mut waits = Waits::new(Instant::from_millis(5));
    waits.count(Instant::from_millis(4), micros(100));
    waits.count(Instant::from_millis(5), micros(7));
    assert_eq!(waits.mean(), Some(micros(7)));
    let mut both = Waits::new(Instant::ZERO);
    both.count(Instant::ZERO, micros(9));
    both += &waits;
    assert_eq!((both.mean(), both.percentile(100)), (Some(micros(8)), Some(micros(9))));
}

#[test]
fn every_time_lies_in_its_place() {
    let mut nanos = 1u64;
    while nanos < 1 << 43 {
        for time in [nanos - 1, nanos, nanos + 1] {
            let place = place_of(Duration::from_nanos(time));
            let longest = longest_at(place).as_nanos() as u64;
            assert!(longest >= time && longest <= time + time / 128, "{time}: {longest}");
            assert!(place == 0 || longest_at(place - 1) < Duration::from_nanos(time), "{time}");
        }
        nanos = nanos * 5 / 4 + 1;
    }
    assert_eq!(place_of(Duration::MAX), Waits::PLACES - 1);
}
