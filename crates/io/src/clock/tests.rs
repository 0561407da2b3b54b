use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

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

#[test]
fn clock_follows_times_it_is_given() {
    static MILLIS: AtomicU64 = AtomicU64::new(0);
    static BEGAN: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    let read = || *BEGAN + Duration::from_millis(MILLIS.load(Ordering::Relaxed));
    let clock = Clock::start_with(read);
    assert_eq!(clock.now(), Instant::ZERO);
    MILLIS.store(7, Ordering::Relaxed);
    assert_eq!(clock.now(), Instant::from_millis(7));
    assert_eq!(clock.until(Instant::from_millis(9)), Duration::from_millis(2));
}
