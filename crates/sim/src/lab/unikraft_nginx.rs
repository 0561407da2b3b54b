//! nginx on lwIP, loaded four times by wrk: every other run nearly stands still.

use std::time::Duration;

use whimbrel_apps::Pace;
use whimbrel_apps::http::{KeepAlive, Limits};
use whimbrel_apps::load::{Finished, LoadPlan, Repeat};
use whimbrel_apps::record::Phase;

use super::load::{play, rules_of, scene};
use super::{
    Bound, Case, Glance, Measure, Measured, Parameter, Picture, Role, Row, Setup, Unit, at_least,
    within,
};
use crate::lab::hosts::Scene;
use crate::path::GoOn;

pub(super) const CASE: Case = Case {
    name: "unikraft-nginx",
    about: "wrk loads a web server four times, a minute each; requests/s of each run",
    story: "\
People saw nginx on Unikraft, whose TCP is lwIP, answer 5,303 requests per second in a first run of wrk
(30 connections, a minute), 193 in a second, 3,170 in a third and 164 in a fourth. Handshakes took 20 to
30 seconds.

They made the maximum segment lifetime shorter: with TIME-WAIT of 10 seconds instead of 120, all four runs
had about 20,000 to 28,000 requests per second.

What was wrong: the server closes its connections after some requests each, and so keeps each port of the
client in TIME-WAIT. lwIP never accepts a SYN for such a port, whatever its sequence number or timestamp; it
answers an ACK, and ignores the RST that a Linux client sends back. So the client waits: a second, three,
seven, fifteen. Linux takes even ports first, of which there are 14,116; after 14,116 x 22 requests no port
is left that opens, until 2 MSL are over, which is in the third run.

By default Whimbrel keeps 60 seconds of MSL and accepts such a SYN at once where its timestamp is newer
(RFC 6191): nobody waits, and the lifetime does not matter.",
    parameters: &[
        Parameter { name: "connections", about: "connections; wrk -t14 -c30 itself opens 28, 2 on each thread", unit: Unit::Count, default: 30.0, least: 1.0, most: 10_000.0 },
        Parameter { name: "requests", about: "requests after which the server closes a connection", unit: Unit::Count, default: 22.0, least: 1.0, most: 1e9 },
        Parameter { name: "service-rate", about: "responses per second that the server has time for", unit: Unit::PerSecond, default: 27_645.0, least: 1.0, most: 1e6 },
        Parameter { name: "lasts", about: "the length of a run", unit: Unit::Time, default: 60.0, least: 1.0, most: 3_600.0 },
        Parameter { name: "gap", about: "the pause between two runs", unit: Unit::Time, default: 1.0, least: 0.0, most: 3_600.0 },
        Parameter { name: "runs", about: "runs, one after the other", unit: Unit::Count, default: 4.0, least: 1.0, most: 8.0 },
    ],
    rows: &[
        Row { profile: "lwip-2.1", settings: &[], role: Role::Report, bounds: SWINGING },
        Row { profile: "lwip-2.1+msl5s", settings: &[], role: Role::Report, bounds: FLAT },
        Row { profile: "whimbrel", settings: &[], role: Role::Cure, bounds: CURED },
        Row { profile: "whimbrel", settings: &[("msl", "5s")], role: Role::Cure, bounds: CURED },
    ],
    ablation: &[Row { profile: "lwip-2.1", settings: &[("requests", "2"), ("service-rate", "2512"), ("lasts", "30s"), ("runs", "2")], role: Role::Report, bounds: &[within("run_2", 0.0, 250.0)] }],
    columns: &[
        ("run_1", "run 1"),
        ("run_2", "run 2"),
        ("run_3", "run 3"),
        ("run_4", "run 4"),
        ("longest_wait", "longest wait"),
    ],
    picture: Picture::Line("requests/s"),
    glance: Glance {
        title: "A web server that stands still every other minute",
        why: "\
The server remembers each connection that it closed for two minutes, and until then refuses a new one from the
same port of the client. After the first run nearly every port that the client comes with is such a port: it
tries again and again, and waits. The cure is not to forget sooner, but to look at the new connection: its
timestamp says that it is new, so Whimbrel lets it in at once.",
        figure: "run_2",
        what: "requests/s in the second run",
        rows: [0, 2],
    },
    distribution: Some("opening"),
    steps: &[
        (1.0, "first repeat of the SYN"),
        (3.0, "second, if each wait is twice the last"),
        (7.0, "third"),
        (15.0, "fourth"),
        (31.0, "fifth"),
    ],
    measure: Measure::Virtual(measure),
};

/// Runs that begin with fresh ports do well, and those that follow a tenth as well at most.
const SWINGING: &[Bound] = &[
    within("run_1", 4_000.0, 6_000.0),
    within("run_3", 4_000.0, 6_000.0),
    within("bad_to_good", 0.0, 0.1),
    at_least("longest_wait", 15.0),
];
const FLAT: &[Bound] = &[within("least", 19_000.0, 28_000.0), within("most", 19_000.0, 28_000.0)];
/// As much as the server has time for, whatever the lifetime.
const CURED: &[Bound] =
    &[within("spread", 0.0, 5.0), at_least("least", 27_000.0), within("longest_wait", 0.0, 0.1)];

fn measure(setup: &Setup, go_on: GoOn<'_>) -> Result<Measured, String> {
    let scene = plan(setup)?;
    let mut measured = play(&scene, Duration::ZERO, go_on)?;
    let rates: Vec<f64> = measured.runs.iter().map(|run| run.record.rate()).collect();
    for (name, rate) in RUNS.iter().zip(&rates) {
        measured.add(name, Unit::PerSecond, *rate);
    }
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    measured.add("least", Unit::PerSecond, least);
    measured.add("most", Unit::PerSecond, most);
    measured.add("spread", Unit::Percent, 100.0 * (most - least) / most.max(1.0));
    measured.add("bad_to_good", Unit::Count, bad_to_good(&rates));
    let longest = measured.runs.iter().map(longest_wait).max().unwrap_or_default();
    measured.add("longest_wait", Unit::Time, longest.as_secs_f64());
    Ok(measured)
}

fn plan(setup: &Setup) -> Result<Scene, String> {
    let values = &setup.values;
    let load = LoadPlan::wrk(values.of_name("connections") as u32, values.time("lasts"));
    let rules = [rules_of("linux-6.18")?, setup.rules.clone()];
    let requests = values.of_name("requests") as u64;
    Ok(Scene {
        repeat: Repeat::times(values.of_name("runs") as u32, values.time("gap")),
        limits: Limits { keep_alive: KeepAlive::UpTo(requests), ..Limits::default() },
        pace: Pace { work: Pace::work_at(values.of_name("service-rate")), ..Pace::default() },
        ..scene(rules, load, setup)
    })
}

/// The best of the runs with an even number to the worst of those with an odd one.
fn bad_to_good(rates: &[f64]) -> f64 {
    let bad = rates.iter().skip(1).step_by(2).copied().fold(0.0, f64::max);
    let good = rates.iter().step_by(2).copied().fold(f64::INFINITY, f64::min);
    if good > 0.0 { bad / good } else { f64::INFINITY }
}

/// How long a connection took to open, or tried to until the end.
fn longest_wait(run: &Finished) -> Duration {
    let opened = Duration::from_nanos(run.record.phase(Phase::Connect).max());
    opened.max(run.close.opening_for.oldest())
}

const RUNS: [&str; 8] = ["run_1", "run_2", "run_3", "run_4", "run_5", "run_6", "run_7", "run_8"];
