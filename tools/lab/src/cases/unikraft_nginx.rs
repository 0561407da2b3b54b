//! nginx on lwIP, loaded four times by wrk: every other run nearly stands still.

use std::time::Duration;

use whimbrel_apps::Pace;
use whimbrel_apps::http::{KeepAlive, Limits};
use whimbrel_apps::load::{Finished, LoadPlan, Repeat};
use whimbrel_apps::record::Phase;
use whimbrel_sim::path::GoOn;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::PortOrder;

use super::{MSL, PORTS};
use crate::hosts::Scene;
use crate::load::{play, rules_of, scene};
use crate::{
    Advice, Bound, Case, CaseSummary, Measure, Measured, Parameter, Picture, Role, Row, Setup,
    TimelineSeries, Unit, at_least, column, strip, within,
};

pub(super) const CASE: Case = Case {
    name: "unikraft-nginx",
    about: "wrk loads a web server four times, a minute each; requests/s of each run",
    advice: Advice {
        symptom: "\
Only servers on lwIP have it, such as those on Unikraft. A Linux server does not, while
`net.ipv4.tcp_timestamps` is 1, the default. Connections take seconds to open, in waves of minutes, while
the server's processor is idle and its log is empty. On a Linux client `nstat -az TcpExtTCPSynRetrans` grows
and `ss -tno state syn-sent` lists many connections. In a capture, a SYN from a port that was used before
(Wireshark: \"Port numbers reused\") is answered by an ACK.",
        today: "\
Let the server close less often: in nginx set `keepalive_requests` to 100,000 (by default 1,000; in the run
below 22 were answered on each connection). And let lwIP forget sooner, as in the workaround below: it
remembers for twice its `TCP_MSL`, so build it with 5000 ms instead of 60000 (on Unikraft by `LWIP_TCP_MSL`,
which pull request 74 of its lib-lwip proposes).",
        price: "\
Both raise the limit, but do not remove it: 14,116 ports, remembered for 10 seconds each, carry 1,411 new
connections per second. The load below needs 1,257, which just fits; yours may not. A packet more than 10
seconds late may be taken for one of a new connection.",
        whimbrel: "\
No setting is necessary, and there is no such limit: a newer timestamp lets a connection in, however long
the server remembers. This applies to servers in Rust that use Whimbrel as a library, and to nginx itself
behind `whimbrel forward`, which `whimbrel lab run unikraft-nginx --real` measures.",
    },
    story: "\
People saw nginx on Unikraft, whose TCP is lwIP, under four runs of wrk, a minute each, with 30 connections:
5,303 requests per second in the first, 193 in the second, 3,170 in the third and 164 in the fourth.
Connections took 20 to 30 seconds to open.

They let the server forget sooner, after 10 seconds instead of 120: then all four runs had about 20,000 to
28,000 requests per second.

What was wrong: the server closes each connection after some requests, and the side that closes first
remembers it in TIME-WAIT for two maximum segment lifetimes (MSL), here 2 x 60 seconds. lwIP never accepts a
SYN for a port that it remembers, with any sequence number or timestamp; it answers with an ACK, and ignores
the RST that a Linux client sends back. So the client retries: at once, then after 1, 2, 3, 4 and 5 seconds,
and then after 7, 11, 19 and 35 (older Linux: 1, 3, 7, 15, 31). Linux takes even ports first, of which it
has 14,116. At 22 requests on each (which 5,303 per second over a minute amount to) they are used up after
eleven seconds. Then no connection opens until two minutes after the first, which is in the third run.

The lab is simpler: it has no requests at all in the second and fourth minute, where people saw some, and as
many in the third as in the first. The report does not say why theirs differed. Linux since 5.18 also leaves
out up to seven ports after each that it takes, and goes on from another place every ten seconds. So it stalls
after 2.6 seconds, and which minute is a good one is chance: four runs of `wrk` on 6.18 (`--real`) had 1,177,
34, 280 and 536. The lab takes one port after the other. The report counts as reproduced with 4,000 to 6,000
in the first and third, and less than a tenth of that in the others.

By default Whimbrel accepts such a SYN at once if its timestamp is newer (RFC 6191), so no client waits, and
the lifetime does not matter. The table has rows with its default (an MSL of 10 seconds to hosts on the same
network, as here, and of 60 beyond a router) and with 60, and neither is slower than lwIP that forgets
sooner.",
    parameters: &[
        Parameter { name: "connections", about: "connections; wrk -t14 -c30 itself opens 28, 2 on each thread", unit: Unit::Count, default: 30.0, least: 1.0, most: 10_000.0 },
        Parameter { name: "requests", about: "requests after which the server closes a connection", unit: Unit::Count, default: 22.0, least: 1.0, most: 1e9 },
        Parameter { name: "service-rate", about: "most responses per second of the server", unit: Unit::PerSecond, default: 27_645.0, least: 1.0, most: 1e6 },
        Parameter { name: "lasts", about: "length of a run", unit: Unit::Time, default: 60.0, least: 1.0, most: 3_600.0 },
        Parameter { name: "gap", about: "pause between two runs", unit: Unit::Time, default: 1.0, least: 0.0, most: 3_600.0 },
        Parameter { name: "runs", about: "number of runs", unit: Unit::Count, default: 4.0, least: 1.0, most: 8.0 },
    ],
    rows: &[
        Row { profile: "lwip-2.1", settings: &[], role: Role::Report, bounds: SWINGING },
        Row { profile: "lwip-2.1+msl5s", settings: &[], role: Role::Works, bounds: FLAT },
        Row { profile: "whimbrel", settings: &[], role: Role::Cure, bounds: CURED },
        Row { profile: "whimbrel", settings: &[("msl", "60s")], role: Role::Cure, bounds: CURED },
    ],
    tunables: &[
        &["tw_syn", "tw_answer", "tw_rst", "syn_retry", "syn_after_challenge"],
        MSL,
        PORTS,
    ],
    ablation: &[Row { profile: "lwip-2.1", settings: &[("requests", "2"), ("service-rate", "2512"), ("lasts", "30s"), ("runs", "2")], role: Role::Report, bounds: &[within("run_2", 0.0, 250.0)] }],
    columns: &[
        column("run_1", "run 1", "requests/s, mean of run 1"),
        column("run_2", "run 2", "run 2"),
        column("run_3", "run 3", "run 3"),
        column("run_4", "run 4", "run 4"),
        column("longest_wait", "wait to open", "longest wait to open"),
    ],
    terms: &[
        ("bad_to_good", "the better of runs 2 and 4, divided by the worse of runs 1 and 3"),
        ("least", "the worst run"),
        ("most", "the best run"),
        ("spread", "spread of the runs"),
    ],
    picture: Picture::Line("requests/s"),
    strips: &[
        strip("requests/s", "requests answered per second", "\
✕ answers for eleven seconds of every two minutes, so its mean over a minute (in the table) is a fifth of its
peak. The dip between two runs is the pause of a second."),
        TimelineSeries {
            series: "TIME-WAIT, server",
            title: "client's ports that the server remembers",
            says: "\
✕ refuses connections from them: once it remembers all that the client uses, no connection opens. ✓ remembers
as many, and accepts newer connections: the records cost memory, and no client waits. △ forgets each after
ten seconds, and so stays a little below the line: with more connections per second it would reach it.",
            limit: Some(("ports_taken", "all that the client uses")),
        },
        strip("ports free", "client's ports that are free", "\
Nearly all, by all rules: the client has enough ports, but the server refuses them."),
        strip("segments sent again/s", "packets sent again per second", "\
Repeated SYNs of refused connections."),
    ],
    glance: CaseSummary {
        title: "nginx that works for eleven seconds in every two minutes",
        because: "\
because this server, whose TCP is lwIP, remembers a connection for two minutes after it closed it, and
refuses a new one from the same port of the client",
        cure: "Whimbrel remembers as many, and accepts a connection with a later timestamp",
        why: "\
This server (nginx on Unikraft, whose TCP is lwIP) remembers a connection for two minutes after it closed
it, so that no late packet of it is taken for one of the next. In that time it refuses a new one from the
same port of the client. After eleven seconds under load this applies to every port that the client uses: it
retries again and again, and waits. To forget sooner, as people did, helps while connections are few enough.
The cure is to look at the new connection: the client's system writes the time of a clock that only rises
into each packet (the timestamp). A packet with a later time than all of the old connection cannot be a
leftover of it, so Whimbrel accepts it at once.",
        figure: "run_2",
        what: "requests/s in the second of four runs, a minute each",
        rows: [0, 2],
        bars: &[],
        limit: None,
    },
    distribution: Some("opening"),
    steps: &[
        (1.0, "the client retries, and then each second until the fifth"),
        (7.0, "again; from here on it waits twice as long each time: until 11"),
        (19.0, "again"),
        (35.0, "again, for the last time in a run of a minute"),
    ],
    measure: Measure::Virtual(measure),
};

/// Runs that begin with fresh ports reach the full rate; those that follow reach at most a tenth.
const SWINGING: &[Bound] = &[
    within("run_1", 4_000.0, 6_000.0),
    within("run_3", 4_000.0, 6_000.0),
    within("bad_to_good", 0.0, 0.1),
    at_least("longest_wait", 15.0),
];
const FLAT: &[Bound] = &[within("least", 19_000.0, 28_000.0), within("most", 19_000.0, 28_000.0)];
/// The server's full rate, with any lifetime.
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
    measured.add("ports_taken", Unit::Count, ports_taken(&scene.rules[0]));
    let each = setup.values.time("lasts") + setup.values.time("gap");
    let begins =
        (1..=measured.runs.len() as u32).map(|run| (each * (run - 1), format!("run {run}")));
    measured.marks = begins.collect();
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

/// Best of the even runs divided by the worst of the odd ones.
fn bad_to_good(rates: &[f64]) -> f64 {
    let bad = rates.iter().skip(1).step_by(2).copied().fold(0.0, f64::max);
    let good = rates.iter().step_by(2).copied().fold(f64::INFINITY, f64::min);
    if good > 0.0 { bad / good } else { f64::INFINITY }
}

/// Ports that a client uses while none of them is taken: all, or the even ones.
fn ports_taken(client: &Tunables) -> f64 {
    let all = f64::from(client.port_last - client.port_first) + 1.0;
    if client.port_order == PortOrder::EvenFirst { (all / 2.0).floor() } else { all }
}

/// Longest time that a connection took to open, or tried to until the end.
fn longest_wait(run: &Finished) -> Duration {
    let opened = Duration::from_nanos(run.record.phase(Phase::Connect).max());
    opened.max(run.close.opening_for.oldest())
}

const RUNS: [&str; 8] = ["run_1", "run_2", "run_3", "run_4", "run_5", "run_6", "run_7", "run_8"];
