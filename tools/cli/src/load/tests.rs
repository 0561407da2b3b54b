use std::thread::{self, sleep};
use std::time::Instant;

use clap::Parser;
use whimbrel_apps::Part;
use whimbrel_apps::load::{Controls, LoadState, Wanted};
use whimbrel_apps::record::Connections;

use super::*;

/// The arguments of `load`.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

/// Runs it, while `hand` controls it from another thread.
fn steer(
    words: &str,
    hand: impl FnOnce(&LoadControl) + Send,
) -> (LoadRunPlan, FinishedRun<Outcome>) {
    let line = ["load"].into_iter().chain(words.split_whitespace());
    let Line { arguments } = Line::parse_from(line);
    let mut report = Reporter::new(&arguments.output, &[], &[]).unwrap();
    let plan = plan::new(&arguments).unwrap();
    let parts = plan.threads.max(plan.setup.shards.into());
    let control = Arc::new(LoadControl::new(plan.load.connections, parts));
    let told = LoadReporter::new(&mut report, arguments.screen, &plan.load);
    let ran = thread::scope(|scope| {
        let held = control.clone();
        scope.spawn(move || hand(&held));
        carry_out(&plan, told, Some(control)).unwrap()
    });
    (plan, ran)
}

#[test]
fn every_load_driver_pauses_adds_connections_and_ends() {
    let tenth = Duration::from_millis(100);
    for wire in ["mem:", "mem: --shards 2", "kernel:", "kernel: --threads 2"] {
        let began = Instant::now();
        let (plan, ran) = steer(&format!("-z 60s -c 4 --quiet -w {wire}"), |control| {
            sleep(tenth);
            control.pause_or_go_on();
            sleep(4 * tenth);
            control.set_connections(6);
            control.pause_or_go_on();
            sleep(tenth);
            control.pause_or_go_on();
            sleep(4 * tenth);
            control.end();
        });
        let record = &ran.outcome.record;
        assert_eq!(record.connections, Connections { least: 4, most: 6, last: 6 }, "{wire}");
        assert!(record.answered() > 0 && record.failed() == 0, "{wire}: {:?}", record.conn_errors);
        // Twice four tenths, as far as a busy machine looks in time.
        assert!(record.paused > 5 * tenth, "{wire}: {:?}", record.paused);
        assert!(record.elapsed() + 5 * tenth < began.elapsed(), "{wire}: {:?}", record.elapsed());
        let document = json::document(&plan, &ran);
        assert_eq!(document["summary"]["paused"], record.paused.as_secs_f64());
        assert_eq!(document["summary"]["connections"]["most"], 6);
        let text = text(&plan, &ran);
        for part in ["  Paused:        ", "  Connections:   6 at the end, of 4 to 6"] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
}

fn wanted(control: &LoadControl, of: u32) -> Vec<u32> {
    (0..of).map(|number| control.wanted(Part { number, of }).connections).collect()
}

#[test]
fn parts_share_connections_with_at_least_one_each() {
    let control = LoadControl::new(7, 3);
    assert_eq!(wanted(&control, 3), [3, 2, 2]);
    control.set_connections(8);
    assert_eq!(wanted(&control, 3), [3, 3, 2]);
    control.set_connections(0);
    assert_eq!((wanted(&control, 3), control.connections()), (vec![1, 1, 1], 3));
    control.set_connections(u32::MAX);
    assert_eq!(control.connections(), 1_000_000);
}

#[test]
fn pause_lasts_until_resumed() {
    let (control, part) = (LoadControl::new(1, 1), Part::WHOLE);
    control.pause_or_go_on();
    assert_eq!(control.wanted(part), Wanted { connections: 1, state: LoadState::Paused });
    control.pause_or_go_on();
    assert_eq!((control.state(), control.has_ended()), (LoadState::Running, false));
    control.end();
    assert!(control.has_ended());
}
