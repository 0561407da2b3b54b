use std::sync::Arc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use clap::Parser;
use whimbrel_apps::record::Connections;

use super::*;
use crate::drive::Ran;
use crate::load::{Arguments, Outcome, Plan, Told, carry_out, json, summary};
use crate::report::Report;

/// What is typed behind `load`.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    arguments: Arguments,
}

/// Runs it, while `hand` is at its reins on another thread.
fn steer(words: &str, hand: impl FnOnce(&Reins) + Send) -> (Plan, Ran<Outcome>) {
    let line = ["load"].into_iter().chain(words.split_whitespace());
    let Line { arguments } = Line::parse_from(line);
    let mut report = Report::new(&arguments.output, &[], &[]).unwrap();
    let plan = Plan::new(&arguments).unwrap();
    let parts = plan.threads.max(plan.ground.shards.into());
    let reins = Arc::new(Reins::new(plan.load.connections, parts));
    let told = Told::new(&mut report, arguments.screen, &plan.load);
    let ran = thread::scope(|scope| {
        let held = reins.clone();
        scope.spawn(move || hand(&held));
        carry_out(&plan, told, Some(reins)).unwrap()
    });
    (plan, ran)
}

#[test]
fn every_driver_of_loads_pauses_takes_more_connections_and_ends_when_it_is_told_to() {
    let tenth = Duration::from_millis(100);
    for wire in ["mem:", "mem: --shards 2", "kernel:", "kernel: --threads 2"] {
        let began = Instant::now();
        let (plan, ran) = steer(&format!("-z 60s -c 4 --quiet -w {wire}"), |reins| {
            sleep(tenth);
            reins.pause_or_go_on();
            sleep(4 * tenth);
            reins.set_connections(6);
            reins.pause_or_go_on();
            sleep(tenth);
            reins.pause_or_go_on();
            sleep(4 * tenth);
            reins.end();
        });
        let record = &ran.outcome.record;
        assert_eq!(record.connections, Connections { least: 4, most: 6, last: 6 }, "{wire}");
        assert!(record.answered() > 0 && record.failed() == 0, "{wire}: {:?}", record.troubles);
        // Twice four tenths, as far as a busy machine looks in time.
        assert!(record.paused > 5 * tenth, "{wire}: {:?}", record.paused);
        assert!(record.elapsed() + 5 * tenth < began.elapsed(), "{wire}: {:?}", record.elapsed());
        let document = json::document(&plan, &ran);
        assert_eq!(document["summary"]["paused"], record.paused.as_secs_f64());
        assert_eq!(document["summary"]["connections"]["most"], 6);
        let text = summary::text(&plan, &ran);
        for part in ["  Paused:        ", "  Connections:   6 at the end, of 4 to 6"] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
}

fn wanted(reins: &Reins, of: u32) -> Vec<u32> {
    (0..of).map(|number| reins.wanted(Part { number, of }).connections).collect()
}

#[test]
fn parts_share_what_is_wanted_and_each_has_one_at_least() {
    let reins = Reins::new(7, 3);
    assert_eq!(wanted(&reins, 3), [3, 2, 2]);
    reins.set_connections(8);
    assert_eq!(wanted(&reins, 3), [3, 3, 2]);
    reins.set_connections(0);
    assert_eq!((wanted(&reins, 3), reins.connections()), (vec![1, 1, 1], 3));
    reins.set_connections(u32::MAX);
    assert_eq!(reins.connections(), 1_000_000);
}

#[test]
fn a_pause_lasts_until_it_is_asked_for_again() {
    let (reins, part) = (Reins::new(1, 1), Part::WHOLE);
    reins.pause_or_go_on();
    assert_eq!(reins.wanted(part), Wanted { connections: 1, motion: Motion::Paused });
    reins.pause_or_go_on();
    assert_eq!((reins.motion(), reins.has_ended()), (Motion::Running, false));
    reins.end();
    assert!(reins.has_ended());
}
