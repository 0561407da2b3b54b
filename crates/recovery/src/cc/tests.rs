//! Both algorithms on a path that is a queue and a delay, packet by packet, without the rest of TCP.

mod bottleneck;

use std::time::Duration;

use bottleneck::Bottleneck;

use whimbrel_base::{Instant, Micros};

use super::{Ack, Algorithm, Phase, SlowStart};

/// Acknowledges bytes that the congestion window limited, the last of the flight, and tells no round trip.
pub(super) fn ack(delivered: u32, mss: u32) -> Ack {
    Ack {
        now: Instant::ZERO,
        delivered,
        arrived: delivered,
        limited: delivered,
        in_flight: 0,
        rtt: None,
        srtt: Micros::default(),
        rate: None,
        phase: Phase::Open,
        mss,
        slow_start: SlowStart::default(),
    }
}

const fn path(megabits: u64, millis: u64) -> Bottleneck {
    Bottleneck {
        rate: megabits * 1_000_000 / 8,
        round_trip: Duration::from_millis(millis),
        mss: 1_448,
    }
}

const PATHS: [Bottleneck; 10] = [
    path(10, 1),
    path(10, 10),
    path(10, 70),
    path(10, 200),
    path(10, 600),
    path(100, 1),
    path(100, 10),
    path(100, 70),
    path(100, 200),
    path(1_000, 10),
];

/// The share of the path that is used in the longer of 20 s and 20 round trips, beginning when slow start
/// should be over.
fn shares(algorithm: Algorithm) -> impl Iterator<Item = (Bottleneck, f64)> {
    PATHS.into_iter().map(move |path| (path, path.run(algorithm)))
}

#[test]
fn cubic_fills_a_path_whose_queue_holds_what_is_in_flight() {
    for (path, share) in shares(Algorithm::CUBIC) {
        assert!(share >= 0.98, "{share:.4} of {path:?}");
    }
}

#[test]
fn reno_fills_a_path_whose_queue_holds_what_is_in_flight() {
    for (path, share) in shares(Algorithm::RENO) {
        assert!(share >= 0.97, "{share:.4} of {path:?}");
    }
}

#[test]
fn slow_start_overflows_no_queue_of_what_is_in_flight() {
    // On the others so few segments fill the path that their acknowledgments are no train.
    let long = |path: &Bottleneck| path.product() > 64 * u64::from(path.mss);
    for path in PATHS.into_iter().filter(long) {
        for algorithm in [Algorithm::RENO, Algorithm::CUBIC] {
            let lost = path.lost_at_first(algorithm);
            assert!(lost <= 0.02, "{lost:.4} of {path:?} {algorithm:?}");
        }
    }
}
