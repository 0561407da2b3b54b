//! Paths with reported failures, and those with losses or with two flows.

use std::time::Duration;

use whimbrel_stack::RouteMetrics;
use whimbrel_tcp::conn::{BufferSize, SocketOptions};
use whimbrel_tcp::tunables::BufferPolicy;

use super::{
    ALGORITHMS, Figure, Goal, Line, PathEvents, Seeds, Unit, bbr, jain, link, no_sack, patterns,
    plan, reorder, repairs, whole,
};
use crate::path::{Captured, GoOn, PathPlan};

/// Every line of `whimbrel sim paths`, in order of the output.
pub fn paths() -> Vec<Line> {
    let mut lines = Vec::new();
    lines.extend(report());
    lines.extend(of_1998());
    lines.extend(long());
    lines.extend(exact());
    lines.extend(ALGORITHMS.into_iter().flat_map(losses));
    lines.extend(ALGORITHMS.into_iter().map(fairness));
    lines.extend(repairs::lines());
    lines.extend(patterns::lines());
    lines.extend(reorder::lines());
    lines.extend(bbr::lines());
    lines.extend(no_sack::lines());
    lines
}

/// A path of 70 ms at 100 Mb/s over FDDI, which a buffer of the wrong size fills to a fifth.
fn report() -> impl Iterator<Item = Line> {
    let small = SocketOptions { recv_size: (64 << 10).into(), ..SocketOptions::default() };
    let pipe = RouteMetrics::new().with_recvpipe(16 << 10);
    let nothing = (<_>::default(), <_>::default());
    let known =
        [("", nothing), ("/recv-64k", (small, nothing.1)), ("/route-16k", (nothing.0, pipe))];
    let queues = [("", "1bdp"), ("/endless", "1000000p")];
    known.into_iter().flat_map(move |(with, (options, metrics))| {
        queues.into_iter().map(move |(behind, queue)| Line {
            name: format!("fddi/100M/70ms{with}{behind}"),
            what: format!("100 Mb/s, MTU 4352, queue {queue}: 60 s from the SYN on"),
            goal: Goal::AtLeast(98.0),
            unit: Unit::Percent,
            measure: Box::new(move |go_on| {
                let link = link(&format!("rate=100M,delay=35ms,mtu=4352,queue={queue}"))?;
                let (options, metrics) = ([<_>::default(), options], [<_>::default(), metrics]);
                let plan = PathPlan { options, metrics, ..plan(link, None, [0, 60])? };
                whole(&plan, Unit::Percent, go_on)
            }),
        })
    })
}

/// This path by the rules of 1998, when a route's pipes set the buffers that applications
/// requested: the figures measured then. Hosts took 12 ms of each round trip except with the
/// smallest windows.
fn of_1998() -> impl Iterator<Item = Line> {
    [
        ("route-64k", 70, 64 << 10, 32, 7.5),
        ("192k", 82, 192 << 10, 32, 18.7),
        ("896k/64M", 82, 896 << 10, 64, 76.1),
        ("896k/512M", 82, 896 << 10, 512, 87.6),
        ("896k/2048M", 82, 896 << 10, 2_048, 89.0),
    ]
    .into_iter()
    .map(|(name, round_trip, window, megabytes, then)| Line {
        name: format!("fddi/100M/1998/{name}"),
        what: format!(
            "RTT {round_trip} ms, buffers=route, a route with pipes of {} KiB, {megabytes} MB",
            window >> 10
        ),
        goal: Goal::Near(then),
        unit: Unit::Megabits,
        measure: Box::new(move |go_on| {
            by_those_rules(round_trip, window, megabytes * 1_000_000, go_on)
        }),
    })
}

/// Rate at which these bytes were acknowledged under those rules.
fn by_those_rules(
    round_trip: u64,
    window: u32,
    bytes: u64,
    go_on: GoOn<'_>,
) -> Result<Figure, String> {
    let link = link(&format!("rate=100M,delay={}ms,mtu=4352,queue=1000000p", round_trip / 2))?;
    let size = BufferSize::Asked(1 << 20);
    let asked = SocketOptions { send_size: size, recv_size: size, ..SocketOptions::default() };
    let pipes = RouteMetrics::new().with_sendpipe(window).with_recvpipe(window);
    let mut plan = plan(link, Some("reno"), [0, 300])?;
    (plan.options, plan.metrics, plan.bytes) = ([asked; 2], [pipes; 2], Some(bytes));
    plan.tunables.buffers = BufferPolicy::Route;
    let report = plan.run(Captured::Nothing, go_on)?;
    let flow = report.flows.first().ok_or("there was no flow")?;
    let took = flow.completed.ok_or("not everything was acknowledged in 300 s")?;
    let value = bytes as f64 * 8.0 / took.as_secs_f64() / 1e6;
    Ok(Figure { value, events: PathEvents::of(&report) })
}

/// 190 ms at 1 Gb/s for 120 s, with a buffer of requested size.
fn long() -> impl Iterator<Item = Line> {
    let size = BufferSize::Asked(256_000);
    let set = SocketOptions { send_size: size, recv_size: size, ..SocketOptions::default() };
    [("", "0s", 930.0), ("/jitter-2ms", "2ms", 900.0)].into_iter().map(
        move |(with, jitter, goal)| Line {
            name: format!("1G/190ms/256k{with}"),
            what: format!("queue 1bdp, jitter {jitter}: 120 s from the SYN on"),
            goal: Goal::AtLeast(goal),
            unit: Unit::Megabits,
            measure: Box::new(move |go_on| {
                let link = link(&format!("rate=1G,delay=95ms,queue=1bdp,jitter={jitter}"))?;
                let plan = PathPlan { options: [set; 2], ..plan(link, None, [0, 120])? };
                whole(&plan, Unit::Megabits, go_on)
            }),
        },
    )
}

/// This path with buffers of exactly the requested size: the size, and the share of time that the
/// sender waits for it.
fn exact() -> impl Iterator<Item = Line> {
    let rate = ("", Goal::AtLeast(10.5), Unit::Megabits, "120 s from the SYN on");
    let waits =
        ("/waits", Goal::AtLeast(95.0), Unit::Percent, "the time that rwnd or sndbuf limits");
    [rate, waits].into_iter().map(|(name, goal, unit, what)| Line {
        name: format!("1G/190ms/256k/exact{name}"),
        what: format!("queue 1bdp, buffers=exact: {what}"),
        goal,
        unit,
        measure: Box::new(move |go_on| {
            let size = BufferSize::Asked(EXACT);
            let set =
                SocketOptions { send_size: size, recv_size: size, ..SocketOptions::default() };
            let mut plan = plan(link("rate=1G,delay=95ms,queue=1bdp")?, None, [0, 120])?;
            plan.options = [set; 2];
            plan.tunables.buffers = BufferPolicy::Exact;
            let figure = whole(&plan, Unit::Megabits, go_on)?;
            let value = if unit == Unit::Percent { figure.events.buffers } else { figure.value };
            Ok(Figure { value, ..figure })
        }),
    })
}

/// Random losses, with five seeds.
fn losses(algorithm: &'static str) -> impl Iterator<Item = Line> {
    LOSSES.into_iter().map(move |(name, path, reno, cubic)| Line {
        name: format!("{name}/{algorithm}"),
        what: format!("{path}: 120 s, the mean of five seeds"),
        goal: Goal::AtLeast(if algorithm == "reno" { reno } else { cubic }),
        unit: Unit::Megabits,
        measure: Box::new(move |go_on| {
            let figures = Seeds::run(5, |seed| {
                let plan = PathPlan { seed, ..plan(link(path)?, Some(algorithm), [0, 120])? };
                whole(&plan, Unit::Megabits, go_on)
            });
            Ok(figures?.mean())
        }),
    })
}

/// Two flows, the second two seconds later.
fn fairness(algorithm: &'static str) -> Line {
    Line {
        name: format!("fair/100M/40ms/{algorithm}"),
        what: "two flows, the second 2 s later, jitter 1 ms: from 20 s to 120 s, ten seeds".into(),
        goal: Goal::AtLeast(0.95),
        unit: Unit::Jain,
        measure: Box::new(move |go_on| {
            let figures = Seeds::run(10, |seed| {
                let link = link("rate=100M,delay=20ms,jitter=1ms,queue=1bdp")?;
                let starts = vec![Duration::ZERO, Duration::from_secs(2)];
                let plan = PathPlan { seed, starts, ..plan(link, Some(algorithm), [20, 120])? };
                let report = plan.run(Captured::Nothing, go_on)?;
                Ok(Figure { value: jain(&report), events: PathEvents::of(&report) })
            });
            Ok(figures?.mean())
        }),
    }
}

/// Size of both buffers, bytes.
const EXACT: u32 = 256_000;
/// Names, paths, and 90 % of what Linux reaches over `whimbrel link` with the same losses, as
/// docs/measured/long-paths.md has it: megabits per second with reno, and with cubic.
const LOSSES: [(&str, &str, f64, f64); 2] = [
    ("loss-1%/100M/40ms", "rate=100M,delay=20ms,queue=1bdp,loss=1%", 3.08, 2.81),
    ("loss-0.1%/1G/10ms", "rate=1G,delay=5ms,queue=1bdp,loss=0.1%", 33.2, 33.5),
];
