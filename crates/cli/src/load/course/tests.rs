use super::*;

fn run(elapsed: u64, life: Life) -> Run {
    let elapsed = Duration::from_millis(elapsed);
    Run { intervals: Intervals::new(SECOND), elapsed, life, answered: 10, failed: 1, over: 11 }
}

fn course(runs: Vec<Run>) -> Course {
    let asking = runs.len() as u64;
    Course {
        runs,
        latency: Histogram::new(3).unwrap(),
        answers: BTreeMap::from([(200, 9)]),
        troubles: BTreeMap::from([(Trouble::Reset, 1)]),
        states: States { asking, ..States::default() },
        standing: None,
    }
}

#[test]
fn an_interval_is_whole_once_it_is_for_every_client_that_is_under_way() {
    let parts = [
        course(vec![run(2_300, Life::UnderWay)]),
        course(vec![run(1_900, Life::UnderWay)]),
        // Its share is done.
        course(vec![run(400, Life::Over)]),
    ];
    let sum = Course::sum(&parts).unwrap();
    assert_eq!(sum.runs[0].whole(), 1);
    assert_eq!((sum.runs[0].life, sum.runs[0].answered), (Life::UnderWay, 30));
    assert_eq!(sum.steps(Until::Exchanges(100)), 33);
}

#[test]
fn a_run_that_not_all_have_begun_is_not_told_of() {
    let parts = [
        course(vec![run(2_000, Life::Over), run(100, Life::UnderWay)]),
        course(vec![run(1_999, Life::UnderWay)]),
    ];
    let sum = Course::sum(&parts).unwrap();
    assert_eq!(sum.runs.len(), 1);
    assert_eq!(sum.runs[0].life, Life::UnderWay);
}

#[test]
fn what_shards_hold_is_summed_and_they_draw_from_one_range() {
    let standing = |time_wait| Standing { time_wait, ports_in_use: Some(10), ports: 4 };
    let part = |standing| Course { standing, ..course(vec![run(10, Life::UnderWay)]) };
    let sum = Course::sum(&[part(Some(standing(1))), part(None), part(Some(standing(2)))]).unwrap();
    let all = Standing { time_wait: 3, ports_in_use: Some(20), ports: 4 };
    assert_eq!((sum.standing, sum.states.asking), (Some(all), 3));
    assert_eq!((sum.answers[&200], sum.troubles[&Trouble::Reset]), (27, 3));
}

const SECOND: Duration = Duration::from_secs(1);
