use super::*;

fn moment(run: usize, millis: u64, answered: u64) -> Moment {
    Moment { run, elapsed: Duration::from_millis(millis), answered }
}

#[test]
fn each_quarter_of_a_second_has_a_rate() {
    let mut sampler = Sampler::default();
    for look in [(100, 10), (250, 25), (300, 40), (500, 75)] {
        sampler.look(moment(0, look.0, look.1));
    }
    assert_eq!(sampler.samples(), [100, 200]);
    assert_eq!((sampler.now(), sampler.max()), (150, 200));
}

#[test]
fn unobserved_quarters_share_their_rate() {
    let mut sampler = Sampler::default();
    sampler.look(moment(0, 1_100, 110));
    assert_eq!(sampler.samples(), [100; 4]);
    // Another 150 ms were seen with the last.
    sampler.look(moment(0, 1_350, 135));
    assert_eq!(sampler.samples(), [100; 5]);
}

#[test]
fn new_run_resets_rates_and_paused_load_has_none() {
    let mut sampler = Sampler::default();
    sampler.look(moment(0, 250, 1_000));
    sampler.look(moment(0, 250, 1_001));
    sampler.look(moment(1, 250, 10));
    assert_eq!(sampler.samples(), [4_000, 40]);
}

#[test]
fn rates_beyond_the_screen_are_dropped() {
    let mut sampler = Sampler::default();
    sampler.look(moment(0, 86_400_000, 86_400));
    assert_eq!(sampler.samples().len(), KEPT);
    assert_eq!(sampler.max(), 1);
}
