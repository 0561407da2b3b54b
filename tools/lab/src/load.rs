//! Runs the cases of a client and a web server, and records evidence.

use std::time::Duration;

use hdrhistogram::Histogram;
use whimbrel_apps::http::{KeepAlive, Limits};
use whimbrel_apps::load::{Finished, LoadPlan, Repeat};
use whimbrel_apps::record::Phase;
use whimbrel_apps::{Pace, Record};
use whimbrel_base::Instant;
use whimbrel_link::LinkConfig;
use whimbrel_sim::path::GoOn;
use whimbrel_stack::Profile;
use whimbrel_tcp::Tunables;

use super::evidence::Search;
use super::hosts::Scene;
use super::{Distribution, Measured, Moment, Series, Setup, Unit};

/// A web server on a local network, without a rate limit, under this load.
pub(super) fn scene(rules: [Tunables; 2], load: LoadPlan, setup: &Setup) -> Scene {
    Scene {
        rules,
        link: LinkConfig::default().with_delay(ONE_WAY),
        load,
        repeat: Repeat::times(1, Duration::ZERO),
        limits: Limits { keep_alive: KeepAlive::AsAsked, ..Limits::default() },
        pace: Pace::default(),
        seed: setup.seed,
    }
}

/// Plays the scene, and adds the figures of every case; evidence is a connection that begins at
/// `from` or later.
pub(super) fn play(scene: &Scene, from: Duration, go_on: GoOn<'_>) -> Result<Measured, String> {
    let mut search = Search::from(Instant::ZERO + from);
    let played = scene.play(&mut search, go_on)?;
    let lacks_ports = |run: &Finished| run.record.shortage.is_some() && run.record.failed() > 0;
    let sighting = search.found().map(|it| match played.runs.iter().any(lacks_ports) {
        true => it.keeping_its_port(),
        false => it,
    });
    let evidence = sighting.map(|it| it.write_down(scene, go_on)).transpose()?;
    let ports = scene.rules[0].port_last - scene.rules[0].port_first;
    let waiting = played.runs.iter().map(|run| run.close.opening_for);
    let unanswered = played.runs.iter().map(|run| run.close.unanswered_for);
    let all =
        |of: fn(&Record) -> &Histogram<u64>| played.runs.iter().map(move |run| of(&run.record));
    let distributions = vec![
        Distribution::of("opening", all(|record| record.phase(Phase::Connect)), waiting),
        Distribution::of("response", all(|record| &record.corrected), unanswered),
    ];
    Ok(Measured {
        series: series(&played.moments, u64::from(ports) + 1),
        distributions,
        runs: played.runs,
        moments: played.moments,
        counters: played.counters.into(),
        evidence,
        ..Measured::default()
    })
}

/// Rules of a profile that must exist.
pub(super) fn rules_of(profile: &str) -> Result<Tunables, String> {
    let profile = Profile::by_name(profile).ok_or_else(|| format!("no profile {profile}"))?;
    profile.tunables().map_err(|error| error.to_string())
}

/// Exchanges whose connection took a tenth of a second or longer to open.
pub(super) fn late(record: &Record) -> Late {
    let connects = record.phase(Phase::Connect);
    let mut late = Late { count: 0, least: 0.0, most: 0.0 };
    for step in connects.iter_recorded() {
        let time = Duration::from_nanos(step.value_iterated_to()).as_secs_f64();
        if time >= LATE {
            late.least = if late.count == 0 { time } else { late.least };
            (late.count, late.most) = (late.count + step.count_at_value(), time);
        }
    }
    late
}

/// Exchanges whose connection opened late.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Late {
    pub count: u64,
    /// Least delay, seconds.
    pub least: f64,
    pub most: f64,
}

fn series(moments: &[Moment], ports: u64) -> Vec<Series> {
    let step = Duration::from_secs(1);
    let each = |name, of: &dyn Fn(&Moment) -> u64| {
        let values = moments.iter().skip(1).map(|it| of(it) as f64).collect();
        Series { name, unit: Unit::Count, step, values }
    };
    let differences = |name, of: fn(&Moment) -> u64| {
        let pairs = moments.windows(2).filter_map(|pair| pair.first_chunk::<2>());
        let values = pairs.map(|[before, after]| (of(after) - of(before)) as f64).collect();
        Series { name, unit: Unit::PerSecond, step, values }
    };
    vec![
        differences("requests/s", |it| it.answered),
        each("TIME-WAIT, server", &|it| it.time_wait[1]),
        each("TIME-WAIT, client", &|it| it.time_wait[0]),
        each("ports in use", &|it| it.ports_in_use),
        each("ports free", &|it| ports.saturating_sub(it.ports_in_use)),
        differences("SYNs sent again/s", |it| it.syns_repeated),
        differences("segments sent again/s", |it| it.repeated),
    ]
}

/// A local network: 100 us per round trip.
const ONE_WAY: Duration = Duration::from_micros(50);
/// Delay that a user notices, seconds.
const LATE: f64 = 0.1;
