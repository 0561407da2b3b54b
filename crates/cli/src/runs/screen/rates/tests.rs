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
fn quarters_that_nobody_saw_share_their_rate() {
    let mut sampler = Sampler::default();
    sampler.look(moment(0, 1_100, 110));
    assert_eq!(sampler.samples(), [100; 4]);
    // Another 150 ms were seen with the last.
    sampler.look(moment(0, 1_350, 135));
    assert_eq!(sampler.samples(), [100; 5]);
}

#[test]
fn a_run_begins_anew_and_a_load_that_stands_still_has_no_rates() {
    let mut sampler = Sampler::default();
    sampler.look(moment(0, 250, 1_000));
    sampler.look(moment(0, 250, 1_001));
    sampler.look(moment(1, 250, 10));
    assert_eq!(sampler.samples(), [4_000, 40]);
}

#[test]
fn what_no_screen_shows_is_forgotten() {
    let mut sampler = Sampler::default();
    sampler.look(moment(0, 86_400_000, 86_400));
    assert_eq!(sampler.samples().len(), KEPT);
    assert_eq!(sampler.max(), 1);
}
