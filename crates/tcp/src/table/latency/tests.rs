use core::time::Duration;

use proptest::prelude::*;

use super::LatencyHistogram;

/// The bucket of a time, by definition.
fn bucket(nanos: u64) -> usize {
    let time = Duration::from_nanos(nanos);
    LatencyHistogram::BOUNDS.partition_point(|bound| *bound < time)
}

/// The bucket that `note` counts it in.
fn noted(nanos: u64) -> usize {
    let mut histogram = LatencyHistogram::default();
    histogram.note(nanos);
    assert_eq!(histogram.sum(), Duration::from_nanos(nanos));
    assert_eq!(histogram.counts().iter().sum::<u64>(), 1);
    histogram.counts().iter().position(|count| *count == 1).expect("counted")
}

#[test]
fn each_bound_is_in_its_bucket_and_more_in_next() {
    for (number, bound) in LatencyHistogram::BOUNDS.iter().enumerate() {
        let nanos = bound.as_nanos() as u64;
        assert_eq!((noted(nanos), noted(nanos + 1)), (number, number + 1), "{bound:?}");
    }
    assert_eq!((noted(0), noted(u64::MAX)), (0, LatencyHistogram::BOUNDS.len()));
}

proptest! {
    #[test]
    fn note_finds_bucket_of_any_time(bits in 0_u32..64, low: u64) {
        let nanos = 1 << bits | low & ((1 << bits) - 1);
        prop_assert_eq!(noted(nanos), bucket(nanos));
    }
}
