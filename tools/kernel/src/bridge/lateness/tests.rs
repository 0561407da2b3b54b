//! Percentiles are those of the packets.

use std::time::Duration;

use super::Lateness;

#[test]
fn percentiles_are_ranks_and_what_is_very_late_is_told_as_the_latest() {
    let mut lateness = Lateness::default();
    assert_eq!(lateness.percentile(99.0), Duration::ZERO);
    (1..=99).for_each(|micros| lateness.note(Duration::from_micros(micros)));
    lateness.note(Duration::from_secs(1));
    assert_eq!(lateness.percentile(50.0), Duration::from_micros(50));
    assert_eq!(lateness.percentile(99.0), Duration::from_micros(99));
    assert_eq!(lateness.percentile(99.9), Duration::from_secs(1));
    assert_eq!(lateness.max(), Duration::from_secs(1));
}
