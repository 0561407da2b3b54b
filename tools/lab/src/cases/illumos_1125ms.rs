//! A balancer and its application servers on illumos: some requests take 1.125 s longer.

use whimbrel_apps::ConnError;
use whimbrel_apps::load::LoadPlan;
use whimbrel_sim::path::GoOn;

use super::{MSL, PORTS};
use crate::load::{late, play, scene};
use crate::{
    Advice, Bound, Case, CaseSummary, Measure, Measured, Parameter, Picture, Role, Row, Setup,
    Unit, column, exactly, strip, within,
};

pub(super) const CASE: Case = Case {
    name: "illumos-1125ms",
    about: "a balancer opens a connection for each request; some open 1.125 s late",
    advice: Advice {
        symptom: "\
A share of the connections opens 1.125 seconds late (or 3.4), more of them at higher rates, and none
between: a step in a histogram. On illumos `tcpRetransSegs` in `netstat -sP tcp` grows with each. A capture
shows a SYN that is answered by an ACK, a reset, and the same SYN again 1.125 seconds later.",
        today: "\
Keep the connections between balancer and servers alive. If that is not possible, on illumos: `ipadm
set-prop -p _strong_iss=2 tcp`, or a shorter TIME-WAIT by `ipadm set-prop -p _time_wait_interval=5000 tcp`.",
        price: "\
None for kept connections; for strong numbers, a hash for each connection. With the shorter TIME-WAIT, a
packet more than 5 seconds late may be taken for one of a new connection.",
        whimbrel: "\
No setting is necessary. It accepts a connection by its timestamp, counts sequence numbers separately for
each pair of endpoints, and as a refused client retries at once: each of the three is enough.",
    },
    story: "\
People saw that about 9 % of requests took 1.1 seconds longer, and about 1 % took 3.4, with servers of any
speed. It began at a few hundred connections per second, on SmartOS (illumos), and even between programs on
one machine.

They found retransmissions, read about TIME-WAIT and sequence numbers, and set eight values by ndd, which
they call a terrible idea on servers exposed to the internet.

What was wrong: illumos makes the initial sequence numbers of all its connections from one counter, to which
each connection adds 125,000 on average and each second 244,000. Above 284 connections per second that is
more than 2^31 in the 60 seconds of TIME-WAIT, so that a new connection on an old port may look like an old
one. Its SYN is answered by an ACK. The client's RST then ends the TIME-WAIT, and the SYN that follows 1.125
seconds later (the first time-out of illumos) opens the connection.

By default Whimbrel accepts the SYN by its timestamp (RFC 6191), makes sequence numbers for each pair of
endpoints (RFC 6528), and as a refused client retries at once.",
    parameters: &[
        Parameter { name: "rate", about: "connections per second", unit: Unit::PerSecond, default: 500.0, least: 1.0, most: 200_000.0 },
        Parameter { name: "warmup", about: "time before the measurement", unit: Unit::Time, default: 60.0, least: 0.0, most: 3_600.0 },
        Parameter { name: "lasts", about: "time of the measurement", unit: Unit::Time, default: 120.0, least: 1.0, most: 3_600.0 },
    ],
    rows: &[
        Row { profile: "illumos-2011", settings: &[("rate", "250")], role: Role::Inferred, bounds: &[exactly("late", 0.0)] },
        Row { profile: "illumos-2011", settings: &[("rate", "300")], role: Role::Report, bounds: &late_by(1.0, 3.0, 1.125) },
        Row { profile: "illumos-2011", settings: &[("rate", "500")], role: Role::Report, bounds: &late_by(15.0, 23.0, 1.125) },
        Row { profile: "illumos-2011", settings: &[("rate", "1000")], role: Role::Report, bounds: &late_by(25.0, 33.0, 1.125) },
        Row { profile: "illumos-2011", settings: &[("rate", "500"), ("initial_rto", "3375ms")], role: Role::Report, bounds: &late_by(15.0, 23.0, 3.375) },
        Row { profile: "illumos-2014-tuned", settings: &[("rate", "1000"), ("tcp_recv_hiwat", "1M"), ("buffers.recv.max", "1M")], role: Role::Inferred, bounds: &[exactly("late", 0.0), within("refused", 0.1, 0.2)] },
        Row { profile: "illumos-2014-tuned", settings: &[("rate", "1000")], role: Role::Better, bounds: &[exactly("late", 0.0), within("refused", 0.01, 0.03)] },
        Row { profile: "whimbrel", settings: &[("rate", "250")], role: Role::Cure, bounds: NONE },
        Row { profile: "whimbrel", settings: &[("rate", "300")], role: Role::Cure, bounds: NONE },
        Row { profile: "whimbrel", settings: &[("rate", "500")], role: Role::Cure, bounds: NONE },
        Row { profile: "whimbrel", settings: &[("rate", "1000")], role: Role::Cure, bounds: NONE },
        Row { profile: "whimbrel", settings: &[("rate", "100k"), ("warmup", "0s"), ("lasts", "10s")], role: Role::Cure, bounds: NONE },
    ],
    tunables: &[
        &["isn", "isn_step", "tw_syn", "tw_answer", "recv_buffer", "initial_rto"],
        &["syn_retry", "syn_after_challenge"],
        MSL,
        PORTS,
    ],
    ablation: &[Row { profile: "illumos-2011", settings: &[("rate", "500"), ("lasts", "20s")], role: Role::Report, bounds: &[within("late", 1.0, 100.0)] }],
    columns: &[
        column("answered", "answered", "requests answered"),
        column("late", "late", "opened late"),
        column("late_least", "by at least", "late by at least"),
        column("late_most", "at most", "late by at most"),
        column("refused", "refused", "refused for good"),
    ],
    terms: &[("unanswered", "never answered")],
    picture: Picture::Bar("late"),
    strips: &[
        strip("requests/s", "requests answered per second", "\
All of them are answered; the failure is the long wait of some."),
        strip("TIME-WAIT, server", "connections that the server remembers", "\
A new connection on one of their ports is judged by its number (✕), and looks too old every third time. ✓ takes
its ports in turn, and reuses one only when it is forgotten; in the last row of the table, at 100,000 per
second, it reuses one sooner, and is accepted by its timestamp."),
        strip("ports free", "client's ports that are free", "\
Nearly all, by all rules: there are enough ports, but too few numbers that look new."),
        strip("segments sent again/s", "packets sent again per second", "\
Each is the SYN of a connection that was refused, 1.125 seconds later."),
    ],
    glance: CaseSummary {
        title: "Connections that open 1.1 seconds late, three of ten",
        because: "\
because the first sequence number of a new connection often looks older than that of the last one on the
same port, and the server takes it for a late packet",
        cure: "\
Whimbrel counts separately for each pair of hosts, and judges by timestamps, which do not wrap",
        why: "\
A server remembers a connection for a minute after it closed it. In that time it takes a new one from the
same port for a late packet of the old one, unless its first sequence number is greater. This system
(illumos) draws the numbers of all its connections from one counter, which wraps around within that minute
under load. Then the new number looks old, the server refuses, and the client retries 1.125 seconds later.
The cure is to judge by the timestamp, which does not wrap, or to count separately for each pair of hosts;
Whimbrel does both.",
        figure: "late",
        what: "of the connections open late, at 1,000 connections per second",
        rows: [3, 10],
        bars: &[],
        limit: None,
    },
    distribution: Some("opening"),
    steps: &[
        (1.125, "the client retries"),
        (3.375, "the client retries with three times the time-out, as other systems do"),
    ],
    measure: Measure::Virtual(measure),
};

const NONE: &[Bound] = &[exactly("late", 0.0), exactly("refused", 0.0), exactly("unanswered", 0.0)];

/// Percent of the requests that are late by this time.
const fn late_by(least: f64, most: f64, by: f64) -> [Bound; 3] {
    [
        within("late", least, most),
        within("late_least", by, by + 0.01),
        within("late_most", by, by + 0.01),
    ]
}

fn measure(setup: &Setup, go_on: GoOn<'_>) -> Result<Measured, String> {
    let (values, both) = (&setup.values, [setup.rules.clone(), setup.rules.clone()]);
    let (warmup, lasts) = (values.time("warmup"), values.time("lasts"));
    let load = LoadPlan::balancer(values.of_name("rate"), warmup, lasts);
    let mut measured = play(&scene(both, load, setup), warmup, go_on)?;
    let run = measured.runs.first().ok_or("there was no run")?;
    let record = &run.record;
    let refused = record.conn_errors.get(&ConnError::Refused).copied().unwrap_or(0);
    let all = record.answered() + record.failed();
    let share = |count: u64| 100.0 * count as f64 / all.max(1) as f64;
    let late = late(record);
    let (answered, failed) = (record.answered(), record.failed() - refused);
    let unanswered = failed + run.close.never_begun;
    measured.add("answered", Unit::Count, answered as f64);
    measured.add("late", Unit::Percent, share(late.count));
    measured.add("late_least", Unit::Time, late.least);
    measured.add("late_most", Unit::Time, late.most);
    measured.add("refused", Unit::Percent, share(refused));
    measured.add("unanswered", Unit::Count, unanswered as f64);
    Ok(measured)
}
