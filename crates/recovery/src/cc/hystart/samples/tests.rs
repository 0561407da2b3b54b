//! The least of a few round trips.

use super::Samples;

#[test]
fn the_least_of_eight_is_told() {
    let mut samples = Samples::default();
    for (number, rtt) in [90, 80, 110, 70, 100, 95, 85].into_iter().enumerate() {
        assert_eq!(samples.on_sample(number as u32 * 1_000, rtt), None);
    }
    assert_eq!(samples.on_sample(7_000, 120), Some(70));
    assert_eq!(samples.on_sample(8_000, 60), None, "the next begin anew");
}

#[test]
fn eight_at_once_are_not_enough() {
    let mut samples = Samples::default();
    for number in 0..1_000 {
        assert_eq!(samples.on_sample(u32::MAX - 400, 500 + number), None);
    }
    // Across the end of the clock.
    assert_eq!(samples.on_sample(598, 400), None);
    assert_eq!(samples.on_sample(599, 900), Some(400));
}
