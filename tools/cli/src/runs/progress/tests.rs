use super::*;

fn run(elapsed: u64, state: RunState) -> Run {
    let elapsed = Duration::from_millis(elapsed);
    Run { intervals: Intervals::new(SECOND), elapsed, state, answered: 10, failed: 1, over: 11 }
}

fn progress(runs: Vec<Run>) -> LoadProgress {
    let asking = runs.len() as u64;
    LoadProgress {
        runs,
        latency: Histogram::new(3).unwrap(),
        answers: BTreeMap::from([(200, 9)]),
        conn_errors: BTreeMap::from([(ConnError::Reset, 1)]),
        states: States { asking, ..States::default() },
        stack_usage: None,
    }
}

#[test]
fn interval_completes_with_the_slowest_running_client() {
    let parts = [
        progress(vec![run(2_300, RunState::UnderWay)]),
        progress(vec![run(1_900, RunState::UnderWay)]),
        // Its share is done.
        progress(vec![run(400, RunState::Over)]),
    ];
    let sum = LoadProgress::sum(&parts).unwrap();
    assert_eq!(sum.runs[0].whole(), 1);
    assert_eq!((sum.runs[0].state, sum.runs[0].answered), (RunState::UnderWay, 30));
    assert_eq!(sum.steps(StopCondition::Exchanges(100)), 33);
}

#[test]
fn run_is_reported_once_all_clients_have_begun() {
    let parts = [
        progress(vec![run(2_000, RunState::Over), run(100, RunState::UnderWay)]),
        progress(vec![run(1_999, RunState::UnderWay)]),
    ];
    let sum = LoadProgress::sum(&parts).unwrap();
    assert_eq!(sum.runs.len(), 1);
    assert_eq!(sum.runs[0].state, RunState::UnderWay);
}

#[test]
fn shard_usage_is_summed_over_one_port_range() {
    let stack_usage = |time_wait| StackUsage { time_wait, ports_in_use: Some(10), ports: 4 };
    let part =
        |stack_usage| LoadProgress { stack_usage, ..progress(vec![run(10, RunState::UnderWay)]) };
    let sum =
        LoadProgress::sum(&[part(Some(stack_usage(1))), part(None), part(Some(stack_usage(2)))])
            .unwrap();
    let all = StackUsage { time_wait: 3, ports_in_use: Some(20), ports: 4 };
    assert_eq!((sum.stack_usage, sum.states.asking), (Some(all), 3));
    assert_eq!((sum.answers[&200], sum.conn_errors[&ConnError::Reset]), (27, 3));
}

const SECOND: Duration = Duration::from_secs(1);
