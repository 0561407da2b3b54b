//! A balancer and its application servers on illumos: some requests take 1.125 s longer.

use whimbrel_apps::ConnError;
use whimbrel_apps::load::LoadPlan;

use super::load::{late, play, scene};
use super::{
    Bound, Case, Glance, Measure, Measured, Parameter, Picture, Role, Row, Setup, Unit, exactly,
    within,
};
use crate::path::GoOn;

pub(super) const CASE: Case = Case {
    name: "illumos-1125ms",
    about: "a balancer opens a connection for each request; how many open 1.125 s late",
    story: "\
People saw that, however fast their servers answered, about 9 % of requests took 1.1 seconds longer, and
about 1 % took 3.4: from a few hundred connections per second on, on SmartOS (illumos), and even between
programs of one machine.

They found that segments were sent again, read of TIME-WAIT and of sequence numbers, and set eight values by
ndd, which they call a terrible idea on servers exposed to the internet.

What was wrong: illumos makes the initial sequence numbers of all its connections from one counter, to which
each connection adds 125,000 on average and each second 244,000. Above 284 connections per second that is
more than 2^31 in the 60 seconds of TIME-WAIT, so that a new connection on an old port may look like an old
one. Its SYN is answered by an ACK; the client's RST then ends the TIME-WAIT, and the SYN that follows 1.125
seconds later (the first time-out of illumos) opens the connection.

By default Whimbrel accepts the SYN by its timestamp (RFC 6191), makes sequence numbers for each pair of ends
(RFC 6528), and a client of its own that is refused tries again at once.",
    parameters: &[
        Parameter { name: "rate", about: "connections per second", unit: Unit::PerSecond, default: 500.0, least: 1.0, most: 200_000.0 },
        Parameter { name: "warmup", about: "for how long it runs before it is measured", unit: Unit::Time, default: 60.0, least: 0.0, most: 3_600.0 },
        Parameter { name: "lasts", about: "for how long it is measured", unit: Unit::Time, default: 120.0, least: 1.0, most: 3_600.0 },
    ],
    rows: &[
        Row { profile: "illumos-2011", settings: &[("rate", "250")], role: Role::Report, bounds: &[exactly("late", 0.0)] },
        Row { profile: "illumos-2011", settings: &[("rate", "300")], role: Role::Report, bounds: &late_by(1.0, 3.0, 1.125) },
        Row { profile: "illumos-2011", settings: &[("rate", "500")], role: Role::Report, bounds: &late_by(15.0, 23.0, 1.125) },
        Row { profile: "illumos-2011", settings: &[("rate", "1000")], role: Role::Report, bounds: &late_by(25.0, 33.0, 1.125) },
        Row { profile: "illumos-2011", settings: &[("rate", "500"), ("initial_rto", "3375ms")], role: Role::Report, bounds: &late_by(15.0, 23.0, 3.375) },
        Row { profile: "illumos-2014-tuned", settings: &[("rate", "1000"), ("tcp_recv_hiwat", "1M"), ("buffers.recv.max", "1M")], role: Role::Report, bounds: &[exactly("late", 0.0), within("refused", 0.1, 0.2)] },
        Row { profile: "illumos-2014-tuned", settings: &[("rate", "1000")], role: Role::Report, bounds: &[exactly("late", 0.0), within("refused", 0.01, 0.03)] },
        Row { profile: "whimbrel", settings: &[("rate", "250")], role: Role::Cure, bounds: NONE },
        Row { profile: "whimbrel", settings: &[("rate", "300")], role: Role::Cure, bounds: NONE },
        Row { profile: "whimbrel", settings: &[("rate", "500")], role: Role::Cure, bounds: NONE },
        Row { profile: "whimbrel", settings: &[("rate", "1000")], role: Role::Cure, bounds: NONE },
        Row { profile: "whimbrel", settings: &[("rate", "100k"), ("warmup", "0s"), ("lasts", "10s")], role: Role::Cure, bounds: NONE },
    ],
    ablation: &[Row { profile: "illumos-2011", settings: &[("rate", "500"), ("lasts", "20s")], role: Role::Report, bounds: &[within("late", 1.0, 100.0)] }],
    columns: &[
        ("answered", "answered"),
        ("late", "late"),
        ("late_least", "by at least"),
        ("late_most", "at most"),
        ("refused", "refused"),
    ],
    picture: Picture::Bar("late"),
    glance: Glance {
        title: "Requests that take 1.1 seconds longer, for no reason",
        why: "\
A server remembers each closed connection for a minute, and takes a new one from the same port for an old
packet if its number is not greater. This system draws the numbers of all its connections from one counter, so
busy that it wraps around within that minute: then the new number looks old, the server refuses, and the client
asks again 1.125 seconds later. Whimbrel goes by timestamps, which do not wrap, and counts for each pair of
hosts apart.",
        figure: "late",
        what: "of connections open late, at 1,000 per second",
        rows: [3, 10],
    },
    distribution: Some("opening"),
    steps: &[
        (1.125, "first repeat of the SYN"),
        (3.375, "first repeat, with a time-out of 3 s"),
    ],
    measure: Measure::Virtual(measure),
};

const NONE: &[Bound] = &[exactly("late", 0.0), exactly("refused", 0.0), exactly("unanswered", 0.0)];

/// So many percent, each by that time.
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
