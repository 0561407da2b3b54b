//! What the cases of a client and a web server have in common: they are played, and a witness is written
//! down.

use std::time::Duration;

use whimbrel_apps::http::{KeepAlive, Limits};
use whimbrel_apps::load::{LoadPlan, Repeat};
use whimbrel_apps::record::Phase;
use whimbrel_apps::{Pace, Record};
use whimbrel_base::Instant;
use whimbrel_link::LinkConfig;
use whimbrel_stack::Profile;
use whimbrel_tcp::Tunables;

use super::hosts::{Enough, Scene};
use super::witness::Search;
use super::{Measured, Moment, Series, Setup};
use crate::path::GoOn;

/// A web server on a local network, without a bound of its own, and this load.
pub(super) fn scene(rules: [Tunables; 2], load: LoadPlan, setup: &Setup) -> Scene {
    Scene {
        rules,
        link: LinkConfig { delay: ONE_WAY, ..LinkConfig::default() },
        load,
        repeat: Repeat::times(1, Duration::ZERO),
        limits: Limits { keep_alive: KeepAlive::AsAsked, ..Limits::default() },
        pace: Pace::default(),
        seed: setup.seed,
    }
}

/// Plays it, and says what every case says; a witness is one of those connections that begin from then on.
pub(super) fn play(scene: &Scene, from: Duration, go_on: GoOn<'_>) -> Result<Measured, String> {
    let mut search = Search::from(Instant::ZERO + from);
    let mut onlooker = |at, side, packet: &bytes::Bytes| {
        search.see(at, side, packet);
        Enough::No
    };
    let played = scene.play(&mut onlooker, go_on)?;
    let sighting = search.found();
    let witness = sighting.map(|it| it.write_down(scene, go_on)).transpose()?;
    Ok(Measured {
        series: series(&played.moments),
        runs: played.runs,
        moments: played.moments,
        counters: played.counters.into(),
        witness,
        ..Measured::default()
    })
}

/// The rules of a profile that a case takes for granted.
pub(super) fn rules_of(profile: &str) -> Result<Tunables, String> {
    let profile = Profile::by_name(profile).ok_or_else(|| format!("no profile {profile}"))?;
    profile.tunables().map_err(|error| error.to_string())
}

/// Exchanges whose connection took a tenth of a second or longer to open: when that was, at least and at
/// most, and how many they are.
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
    /// By how much at least, seconds.
    pub least: f64,
    pub most: f64,
}

fn series(moments: &[Moment]) -> Vec<Series> {
    let step = Duration::from_secs(1);
    let each = |of: fn(&Moment) -> u64| moments.iter().skip(1).map(move |it| of(it) as f64);
    let differences = |of: fn(&Moment) -> u64| {
        let pairs = moments.windows(2).filter_map(|pair| pair.first_chunk::<2>());
        pairs.map(move |[before, after]| (of(after) - of(before)) as f64)
    };
    let of = |name, values| Series { name, step, values };
    vec![
        of("requests/s", differences(|it| it.answered).collect()),
        of("TIME-WAIT, server", each(|it| it.time_wait[1]).collect()),
        of("TIME-WAIT, client", each(|it| it.time_wait[0]).collect()),
        of("ports in use", each(|it| it.ports_in_use).collect()),
        of("SYNs sent again/s", differences(|it| it.syns_repeated).collect()),
    ]
}

/// A local network: 100 us there and back.
const ONE_WAY: Duration = Duration::from_micros(50);
/// What a user notices, seconds.
const LATE: f64 = 0.1;
