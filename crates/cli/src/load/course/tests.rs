use super::*;

fn run(elapsed: u64, life: Life) -> Run {
    let elapsed = Duration::from_millis(elapsed);
    Run { intervals: Intervals::new(SECOND), elapsed, life, answered: 10, failed: 1, over: 11 }
}

fn course(runs: Vec<Run>) -> Course {
    Course { runs, latency: Histogram::new(3).unwrap() }
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

const SECOND: Duration = Duration::from_secs(1);
