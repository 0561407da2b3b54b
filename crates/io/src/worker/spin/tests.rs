use super::*;

/// A worker's, at a time in microseconds, of a device.
#[derive(Default)]
struct Watched {
    spin: Spin,
    micros: u64,
    delivered: DeviceCounters,
}

impl Watched {
    /// So much later so many frames came, of so many bytes each. Whether it looks once more.
    fn goes_on(&mut self, later: u64, frames: u64, octets: u64) -> bool {
        self.micros += later;
        self.delivered.rx_frames += frames;
        self.delivered.rx_octets += frames * octets;
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
fn where_more_comes_it_goes_on_for_ever_and_where_none_does_it_looks_more_and_more_seldom() {
    let mut worker = Watched::default();
    assert!((0..1_000).all(|_| worker.goes_on(30, 1, 65_000)));
    // A long frame each millisecond.
    let mut looked = 0;
    for _ in 0..1_000 {
        if worker.goes_on(1_000, 1, 65_000) {
            looked += 1;
            assert!(!worker.goes_on(51, 0, 0), "for so long and no longer");
        }
    }
    assert!((10..30).contains(&looked), "{looked}");
    // And in bulk again.
    assert!((0..200).filter(|_| worker.goes_on(30, 1, 65_000)).count() > 100);
}
