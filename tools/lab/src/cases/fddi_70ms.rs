//! A transfer over FDDI across a continent, whose window the route reduces.

use std::time::Duration;

use whimbrel_link::{LinkConfig, QueueLimit};
use whimbrel_sim::path::{Captured, FlowReport, GoOn, PathCourse, PathPlan, PathSample};
use whimbrel_stack::RouteMetrics;
use whimbrel_tcp::conn::{BufferSize, Limit, SocketOptions};

use crate::{
    Advice, Bound, Case, CaseSummary, Measure, Measured, Parameter, Picture, Role, Row, Series,
    Setup, Unit, at_least, column, strip, within,
};

pub(super) const CASE: Case = Case {
    name: "fddi-70ms",
    about: "ttcp sends over 100 Mb/s (FDDI, MTU 4352) with a round trip of 70 ms",
    advice: Advice {
        symptom: "\
A transfer over a long path always has the same rate, larger buffers change nothing, and rate times round
trip is a round number: 7.5 Mb/s in 70 ms are 64 KB. `ss -tin` shows `rwnd_limited` near 100 %; there are no
losses and no retransmissions.",
        today: "\
Do not set `SO_RCVBUF` and `SO_SNDBUF` in the program, because they switch autotuning off. Remove `window`
from `ip route`, and `-sendpipe` and `-recvpipe` from FreeBSD's routes. On Linux raise the last numbers of
`net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem` to rate times round trip.",
        price: "Memory for each connection with a slow reader.",
        whimbrel: "\
No setting is necessary: buffers grow as far as the path needs, and are never smaller than requested. To
test your path, run `whimbrel bulk send -w mem:rate=100M,delay=35ms`; it shows what the sender waits for.",
    },
    story: "\
People saw about 1 MB per second from FreeBSD 2.2.5 over FDDI (100 Mb/s) at 70 ms, with any buffer size set
by setsockopt. Other systems had 40 to 80 Mb/s.

They found that a function of the kernel replaced the application's sizes by the route's, and changed it so
that a route only raises them. This gave 20 Mb/s with 192 KB, and with 896 KB 77, 88 and 89 Mb/s in
transfers of 6.7, 47 and 184 seconds.

What was wrong: a sender may have no more data under way than the receiver has room for, and then waits for
a round trip. 64 KB in 70 ms are 7.5 Mb/s on a line of any speed. The line holds 875 KB.

By default Whimbrel treats a requested size as a minimum, and buffers grow as far as the path needs: the
line is full without any setting.",
    parameters: &[
        Parameter { name: "bytes", about: "bytes of the transfer (k, M: powers of 1,000)", unit: Unit::Count, default: 64e6, least: 1e6, most: 1e10 },
        Parameter { name: "window", about: "bytes of both buffers that the application requests; 0: none", unit: Unit::Bytes, default: 0.0, least: 0.0, most: 1e9 },
        Parameter { name: "route", about: "bytes of both buffers that the route sets; 0: none", unit: Unit::Bytes, default: 0.0, least: 0.0, most: 1e9 },
        Parameter { name: "delay", about: "one-way delay, in each direction", unit: Unit::Time, default: 0.035, least: 0.0, most: 1.0 },
        Parameter { name: "host-delay", about: "time that the receiver takes for each packet", unit: Unit::Time, default: 0.012, least: 0.0, most: 1.0 },
    ],
    rows: &[
        Row { profile: "freebsd-2.2.5", settings: &[("window", "896k"), ("route", "64k"), ("host-delay", "0s")], role: Role::Report, bounds: &near(7.5) },
        Row { profile: "freebsd-2.2.5", settings: &[("window", "896k"), ("route", "16k"), ("host-delay", "0s")], role: Role::Inferred, bounds: &near(1.87) },
        Row { profile: "freebsd-2.2.5+fix", settings: &[("window", "192k")], role: Role::Better, bounds: &[within("rate", 18.0, 22.5)] },
        Row { profile: "freebsd-2.2.5+fix", settings: &[("window", "896k")], role: Role::Better, bounds: &near(77.0) },
        Row { profile: "freebsd-2.2.5+fix", settings: &[("window", "896k"), ("bytes", "512M")], role: Role::Better, bounds: &near(88.0) },
        Row { profile: "freebsd-2.2.5+fix", settings: &[("window", "896k"), ("bytes", "2048M")], role: Role::Better, bounds: &near(89.0) },
        Row { profile: "whimbrel", settings: &[], role: Role::Cure, bounds: STARTED },
        Row { profile: "whimbrel", settings: &[("bytes", "512M")], role: Role::Cure, bounds: FULL },
        Row { profile: "whimbrel", settings: &[("bytes", "2048M")], role: Role::Cure, bounds: FULL },
        Row { profile: "whimbrel", settings: &[("bytes", "2048M"), ("host-delay", "0s")], role: Role::Cure, bounds: FULL },
    ],
    tunables: &[
        &["buffers", "send_buffer", "send_buffer_max", "send_auto"],
        &["recv_buffer", "recv_buffer_max", "recv_auto", "window_scaling"],
        &["initial_window", "slow_start_limit", "hystart"],
    ],
    ablation: &[Row { profile: "freebsd-2.2.5", settings: &[("window", "896k"), ("route", "64k"), ("host-delay", "0s"), ("bytes", "16M")], role: Role::Report, bounds: &[within("rate", 0.0, 15.0)] }],
    columns: &[
        column("rate", "Mb/s", "Mb/s"),
        column("share", "of the line", "of what the line carries"),
        column("seconds", "seconds", "took"),
        column("buffers", "waits for window", "of the time waiting for room at the receiver"),
    ],
    terms: &[],
    picture: Picture::Bar("share"),
    strips: &[
        strip("Mb/s", "Mb/s in each second", "The line carries 100."),
        strip("segments sent again/s", "packets sent again per second", "\
None where the window is too small: nothing is lost, so loss counters stay at zero, and a capture looks
healthy. ✓ fills the line until its queue overflows now and then, which shows it how much the line carries."),
    ],
    glance: CaseSummary {
        title: "A fast line across a continent, nine tenths of it idle",
        because: "\
because the receiver's window is 64 KB: no more may be under way at a time, and the acknowledgment takes 70
ms",
        cure: "\
Whimbrel lets the window grow until the line is full",
        why: "\
A sender may have no more data under way than the receiver has room for (the window). Then it waits for an
acknowledgment: a round trip, 70 ms here. The application requested enough room, but the system (FreeBSD
2.2.5) silently reduced it, because its routing table had a smaller value. The cure is never to reduce it:
Whimbrel makes no buffer smaller than requested, and without a request lets it grow until the line is full.",
        figure: "rate",
        what: "Mb/s, on a line of 100",
        rows: [0, 8],
        bars: &[],
        limit: Some((100.0, "the line")),
    },
    distribution: None,
    steps: &[],
    measure: Measure::Virtual(measure),
};

/// 64 MB take 5.2 s of a full line, and the beginning another 0.6: seven round trips of 82 ms, in which the window
/// doubles from 14,600 bytes to what the line holds, and the one in which the last of it is acknowledged.
const STARTED: &[Bound] = &[at_least("share", 88.0)];
/// Nearly the whole line.
const FULL: &[Bound] = &[at_least("share", 98.0)];

/// A tenth more or less than reported.
const fn near(rate: f64) -> [Bound; 1] {
    [within("rate", 0.9 * rate, 1.1 * rate)]
}

fn measure(setup: &Setup, go_on: GoOn<'_>) -> Result<Measured, String> {
    let plan = plan(setup);
    let report = plan.run(Captured::Nothing, go_on)?;
    let flow = report.flows.first().ok_or("there was no flow")?;
    let took = flow.completed.unwrap_or(report.lasted);
    let bytes = match (flow.completed, plan.bytes) {
        (Some(_), Some(bytes)) => bytes,
        _ => flow.acked.last().copied().unwrap_or(0),
    };
    let rate = bytes as f64 * 8.0 / took.as_secs_f64().max(1e-9);
    let mss = flow.snapshot.as_ref().map_or(0, |snapshot| snapshot.mss);
    let room = LINE as f64 * f64::from(mss) / f64::from(MTU);
    let mut measured = Measured {
        series: series(flow, &report.course),
        counters: vec![report.sender],
        ..Measured::default()
    };
    measured.add("rate", Unit::Megabits, rate / 1e6);
    measured.add("share", Unit::Percent, 100.0 * rate / room.max(1.0));
    measured.add("seconds", Unit::Time, took.as_secs_f64());
    measured.add("buffers", Unit::Percent, 100.0 * waited(flow) / took.as_secs_f64().max(1e-9));
    Ok(measured)
}

fn plan(setup: &Setup) -> PathPlan {
    let values = &setup.values;
    let mut link = LinkConfig::default().with_rate(LINE).with_delay(values.time("delay"));
    link.host_delay = values.time("host-delay");
    let link = link.with_mtu(MTU).with_queue(QueueLimit::Bdp(1_000));
    let some = |name| Some(values.of_name(name) as u32).filter(|bytes| *bytes > 0);
    let size = some("window").map_or(BufferSize::Auto, BufferSize::Asked);
    let asked = SocketOptions { send_size: size, recv_size: size, ..SocketOptions::default() };
    let pipe = some("route");
    let metrics = pipe.map_or(RouteMetrics::new(), |bytes| {
        RouteMetrics::new().with_sendpipe(bytes).with_recvpipe(bytes)
    });
    PathPlan {
        tunables: setup.rules.clone(),
        metrics: [metrics; 2],
        options: [asked; 2],
        bytes: Some(values.of_name("bytes") as u64),
        seed: setup.seed,
        ..PathPlan::new(link, (1..=LONGEST).map(Duration::from_secs).collect())
    }
}

/// Time that the sender waited for the receiver's window or for room in its own buffer, seconds.
fn waited(flow: &FlowReport) -> f64 {
    let limited =
        |limit| flow.snapshot.as_ref().map_or(Duration::ZERO, |snapshot| snapshot.limited(limit));
    (limited(Limit::Window) + limited(Limit::Buffer)).as_secs_f64()
}

/// Mb/s of each second, and the variables behind it.
fn series(flow: &FlowReport, course: &PathCourse) -> Vec<Series> {
    let before = [0].into_iter().chain(flow.acked.iter().copied());
    let each = before.zip(&flow.acked).map(|(before, after)| (after - before) as f64 * 8.0 / 1e6);
    let step = Duration::from_secs(1);
    let rate = Series { name: "Mb/s", unit: Unit::Megabits, step, values: each.collect() };
    let of = |name, bytes: fn(&PathSample) -> u64| {
        let values = course.samples().iter().map(|it| bytes(it) as f64).collect();
        Series { name, unit: Unit::Bytes, step: course.step(), values }
    };
    let samples = course.samples();
    let again = samples.windows(2).filter_map(|pair| pair.first_chunk::<2>());
    let again = again.map(|[before, after]| (after.repeated - before.repeated) as f64);
    let again = again.map(|count| count / course.step().as_secs_f64());
    let repeated = Series {
        name: "segments sent again/s",
        unit: Unit::PerSecond,
        step: course.step(),
        values: again.collect(),
    };
    vec![
        rate,
        repeated,
        of("window", |it| it.window),
        of("cwnd", |it| it.cwnd),
        of("in flight", |it| it.in_flight),
        of("queue", |it| it.queue),
    ]
}

/// FDDI: bits per second, and bytes of its largest packet.
const LINE: u64 = 100_000_000;
const MTU: u16 = 4_352;
/// Seconds after which a transfer is given up.
const LONGEST: u64 = 900;
