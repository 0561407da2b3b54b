//! Percentiles of known distributions.

use std::time::Duration;

use super::Lateness;

#[test]
fn percentile_beyond_ten_milliseconds_is_the_maximum() {
    let mut lateness = Lateness::default();
    assert_eq!(lateness.percentile(99.0), Duration::ZERO);
    (1..=99).for_each(|micros| lateness.note(Duration::from_micros(micros)));
    lateness.note(Duration::from_secs(1));
    assert_eq!(lateness.percentile(50.0), Duration::from_micros(50));
    assert_eq!(lateness.percentile(99.0), Duration::from_micros(99));
    assert_eq!(lateness.percentile(99.9), Duration::from_secs(1));
    assert_eq!(lateness.max(), Duration::from_secs(1));
}
