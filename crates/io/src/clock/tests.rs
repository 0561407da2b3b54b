use super::*;

#[test]
fn a_clock_starts_at_zero_and_does_not_go_back() {
    let clock = Clock::start();
    let first = clock.now();
    assert!(first < Instant::from_millis(1_000), "{first:?}");
    assert!(clock.now() >= first);
    assert_eq!(clock.until(Instant::ZERO), Duration::ZERO);
    assert!(clock.until(Instant::from_millis(100_000)) > Duration::from_secs(90));
}
