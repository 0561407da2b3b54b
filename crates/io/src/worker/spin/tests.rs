use super::*;

/// The decision of a worker, with a time in microseconds and the counters of a device.
#[derive(Default)]
struct Watched {
    spin: Spin,
    micros: u64,
    delivered: DeviceCounters,
}

impl Watched {
    /// Delivers frames of `bytes` bytes each, `later` microseconds on. Returns whether it polls
    /// once more.
    fn polls_again(&mut self, later: u64, frames: u64, bytes: u64) -> bool {
        self.micros += later;
        self.delivered.rx_frames += frames;
        self.delivered.rx_bytes += frames * bytes;
        self.spin.polls_again(Instant::ZERO + Duration::from_micros(self.micros), &self.delivered)
    }
}

#[test]
fn behind_long_frames_it_looks_for_more_and_then_sleeps() {
    let mut worker = Watched::default();
    assert!(!worker.polls_again(1, 0, 0), "nothing came");
    assert!(!worker.polls_again(1, 64, 1_500), "much, in short frames");
    assert!(worker.polls_again(1, 1, LONG));
    assert!(worker.polls_again(49, 0, 0), "the while is not over");
    assert!(!worker.polls_again(1, 0, 0));
    assert!(!worker.polls_again(1, 0, 0), "once");
}

#[test]
fn polling_continues_with_frames_and_backs_off_without() {
    let mut worker = Watched::default();
    assert!((0..1_000).all(|_| worker.polls_again(30, 1, 65_000)));
    // One long frame each millisecond.
    let mut looked = 0;
    for _ in 0..1_000 {
        if worker.polls_again(1_000, 1, 65_000) {
            looked += 1;
            assert!(!worker.polls_again(51, 0, 0), "for so long and no longer");
        }
    }
    assert!((10..30).contains(&looked), "{looked}");
    // And bulk again.
    assert!((0..200).filter(|_| worker.polls_again(30, 1, 65_000)).count() > 100);
}
