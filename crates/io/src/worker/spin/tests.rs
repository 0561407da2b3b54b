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
    fn goes_on(&mut self, later: u64, frames: u64, bytes: u64) -> bool {
        self.micros += later;
        self.delivered.rx_frames += frames;
        self.delivered.rx_bytes += frames * bytes;
        self.spin.goes_on(Instant::ZERO + Duration::from_micros(self.micros), &self.delivered)
    }
}

#[test]
fn behind_long_frames_it_looks_for_more_and_then_sleeps() {
    let mut worker = Watched::default();
    assert!(!worker.goes_on(1, 0, 0), "nothing came");
    assert!(!worker.goes_on(1, 64, 1_500), "much, in short frames");
    assert!(worker.goes_on(1, 1, LONG));
    assert!(worker.goes_on(49, 0, 0), "the while is not over");
    assert!(!worker.goes_on(1, 0, 0));
    assert!(!worker.goes_on(1, 0, 0), "once");
}

#[test]
fn polling_continues_with_frames_and_backs_off_without() {
    let mut worker = Watched::default();
    assert!((0..1_000).all(|_| worker.goes_on(30, 1, 65_000)));
    // One long frame each millisecond.
    let mut looked = 0;
    for _ in 0..1_000 {
        if worker.goes_on(1_000, 1, 65_000) {
            looked += 1;
            assert!(!worker.goes_on(51, 0, 0), "for so long and no longer");
        }
    }
    assert!((10..30).contains(&looked), "{looked}");
    // And bulk again.
    assert!((0..200).filter(|_| worker.goes_on(30, 1, 65_000)).count() > 100);
}
