//! A load test on macOS that ends after 16,384 requests.

use std::time::Duration;

use whimbrel_apps::Pace;
use whimbrel_apps::http::{CloseBy, Limits};
use whimbrel_apps::load::{Ending, LoadPlan};
use whimbrel_apps::transport::PortShortage;
use whimbrel_sim::path::GoOn;

use super::MSL;
use crate::hosts::Scene;
use crate::load::{play, scene};
use crate::{
    Advice, Bound, Case, CaseSummary, Measure, Measured, Parameter, Picture, Role, Row, Setup,
    Unit, column, exactly, strip, within,
};

pub(super) const CASE: Case = Case {
    name: "macos-16k",
    about: "oha loads a web server for ten seconds, a connection for each request",
    advice: Advice {
        symptom: "\
A load test is fast at first, and stops at about 16,000 requests, or at the number of ports of another
system. Then `connect` fails with \"Can't assign requested address\" (EADDRNOTAVAIL). `netstat -an -p tcp |
grep -c TIME_WAIT` counts nearly as many as there are ports.",
        today: "\
Keep connections alive, at both ends: `oha` asks for it without `--disable-keepalive`, but a server that
closes after each response undoes it. If connections must be short, let the server close them first: then
the client keeps no port (not measured with both on one macOS host). Otherwise, on macOS `sudo sysctl -w
net.inet.tcp.msl=1000`, on Linux `sysctl -w net.ipv4.tcp_tw_reuse=1`.",
        price: "\
Kept connections make another test. With an MSL of a second, a packet more than 2 seconds late may be taken
for one of a new connection: do not use it on a machine that faces the internet. None on Linux.",
        whimbrel: "\
No setting is necessary: its load generator (`whimbrel load`) reuses a port a second after the connection on
it ended. An error shows the number of ports, the number in TIME-WAIT, and when the next comes free.",
    },
    story: "\
People saw oha, which loads a web server for ten seconds, stop at about 16,000 requests on macOS, where
another user had 400,000.

They found the cause: macOS has 16,384 ephemeral ports (49152 to 65535), and its maximum segment lifetime is
15 seconds. They measured the first row only.

Assumed here: each request has a connection of its own, and the client closes it first. The report does not
say so. It ran `oha -z 10s`, which keeps connections alive, so probably its server closed each of them. With
`--vary close=server` the client keeps no port, and these rules have no such limit: the rate is the
server's, as for the user with 400,000. What held the ports with both on one macOS host is not known.

What was wrong: by that assumption, the side that closes first keeps the port of each connection for 2 x 15
seconds, and for the whole host. After 16,384 connections there is no port left, and the first comes free
after the end of the test. 546 connections per second are the sustainable maximum.

By default Whimbrel has 28,232 ports for each destination. When they are used up it reuses the oldest
TIME-WAIT, once that is a second old and the peer can tell the connections apart by their timestamps. Ports
are still the limit, at 28,232 connections per second: below the 46,809 that this server can answer. More of
them, more addresses, kept connections or a server that closes first raise it. An error shows how many are
in use, how many wait, and when the next comes free.",
    parameters: &[
        Parameter { name: "connections", about: "concurrent connections of oha", unit: Unit::Count, default: 50.0, least: 1.0, most: 10_000.0 },
        Parameter { name: "service-rate", about: "most responses per second of the server", unit: Unit::PerSecond, default: 46_809.0, least: 1.0, most: 1e6 },
        Parameter { name: "lasts", about: "length of the run", unit: Unit::Time, default: 10.0, least: 1.0, most: 3_600.0 },
        Parameter { name: "close", about: "the side that closes each connection first", unit: Unit::Choice(&["client", "server"]), default: CLIENT, least: CLIENT, most: 1.0 },
    ],
    rows: &[
        Row { profile: "macos-12", settings: &[], role: Role::Report, bounds: &[exactly("answered", 16_384.0), exactly("rate_at_end", 0.0), within("next_port", 19.0, 20.1)] },
        Row { profile: "macos-12+msl1s", settings: &[], role: Role::Inferred, bounds: &[exactly("answered", 81_920.0)] },
        Row { profile: "macos-12+wide-ports", settings: &[], role: Role::Inferred, bounds: &[exactly("answered", 32_768.0)] },
        Row { profile: "whimbrel", settings: &[], role: Role::Cure, bounds: CURED },
        Row { profile: "whimbrel", settings: &[("ip_local_port_range", "49152-65535")], role: Role::Cure, bounds: CURED_OF_FEW },
    ],
    tunables: &[
        &["port_first", "port_last", "tw_reuse"],
        &["tw_reuse_delay_remote", "tw_reuse_delay_link", "tw_reuse_delay_loopback"],
        MSL,
    ],
    ablation: &[Row { profile: "macos-12", settings: &[], role: Role::Report, bounds: &[exactly("rate_at_end", 0.0)] }],
    columns: &[
        column("answered", "answered", "requests answered"),
        column("rate_at_end", "/s at end", "requests/s in the last second"),
        column("failed", "failed", "failed"),
        column("waiting", "waiting", "waited for a port"),
        column("next_port", "next port in", "time at the end until the next port is free"),
    ],
    terms: &[],
    picture: Picture::Line("requests/s"),
    strips: &[
        strip("requests/s", "requests answered per second", "\
✕ has used up its ports within the first second, and stops. ✓ reuses each port after a second: as many connections
per second as it has ports."),
        strip("TIME-WAIT, client", "ports that ended connections keep", "\
✕ keeps each for half a minute. ✓ keeps all of its own, too, but gives up the oldest when a port is needed."),
    ],
    glance: CaseSummary {
        title: "A load test that stops after 16,384 requests",
        because: "\
because each connection uses one of the machine's 16,384 ports for half a minute, longer than the test",
        cure: "\
Whimbrel reuses a port after a second, when timestamps tell old from new, and has more of them",
        why: "\
A client that closes a connection keeps its port for half a minute, so that late packets do no harm. This
system (macOS) has 16,384 ports for the whole machine. After as many connections none is left, and the test
waits for the first to come free. The cure is to reuse a port as soon as timestamps tell the old connection
from the new, which is after a second: Whimbrel does so when all are used. It also has more of them: 28,232
for each destination, each used once a second, are 282,320 connections in ten seconds. They are still its
limit: the server could answer 468,090. That the client closes first is our assumption: if the server does,
neither has this limit.",
        figure: "answered",
        what: "requests answered in ten seconds",
        rows: [0, 3],
        bars: &[],
        limit: None,
    },
    distribution: Some("response"),
    steps: &[],
    measure: Measure::Virtual(measure),
};

/// Value of `close`: the client closes first.
const CLIENT: f64 = 0.0;
/// All ports once a second, because a TIME-WAIT of that age is reused.
const CURED: &[Bound] = &[exactly("failed", 0.0), within("answered", 282_000.0, 310_600.0)];
const CURED_OF_FEW: &[Bound] = &[exactly("failed", 0.0), within("answered", 163_500.0, 180_300.0)];

fn measure(setup: &Setup, go_on: GoOn<'_>) -> Result<Measured, String> {
    let (values, both) = (&setup.values, [setup.rules.clone(), setup.rules.clone()]);
    let load = LoadPlan::oha_without_keep_alive(
        values.of_name("connections") as u32,
        values.time("lasts"),
    );
    let (close_by, ending) = match values.of_name("close") == CLIENT {
        true => (CloseBy::Client, Ending::Client),
        false => (CloseBy::Server, Ending::Server),
    };
    let load = LoadPlan { ending, ..load };
    let scene = Scene {
        limits: Limits { close_by, ..Limits::default() },
        pace: Pace { work: Pace::work_at(values.of_name("service-rate")), ..Pace::default() },
        ..scene(both, load, setup)
    };
    let mut measured = play(&scene, Duration::ZERO, go_on)?;
    let run = measured.runs.first().ok_or("there was no run")?.clone();
    let record = &run.record;
    let rates = record.intervals.rates(record.elapsed());
    let shortage = record.shortage.filter(|_| record.starved > 0);
    measured.add("answered", Unit::Count, record.answered() as f64);
    measured.add("rate_at_end", Unit::PerSecond, rates.last().copied().unwrap_or(0.0));
    measured.add("failed", Unit::Count, record.failed() as f64);
    measured.add("waiting", Unit::Count, record.starved as f64);
    if let Some(shortage) = shortage {
        let next = shortage.next.unwrap_or_default();
        measured.add("next_port", Unit::Time, next.as_secs_f64());
        measured.notes.push(note(shortage, record.failed()));
    }
    Ok(measured)
}

/// Note on exhausted ports, for attempts that got one in time and for those that failed.
fn note(shortage: PortShortage, failed: u64) -> String {
    let remedy = shortage.remedy();
    match failed {
        0 => format!(
            "limited by its ports; each is reused after TIME-WAIT or tw.reuse_delay \
             ({shortage}): {remedy}"
        ),
        _ => format!("{failed} found no free port ({shortage})"),
    }
}
