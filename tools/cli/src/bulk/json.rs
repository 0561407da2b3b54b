//! The document `whimbrel.bulk/1`: times in seconds, sizes in bytes, rates in bits a second, and `again` in
//! percent of segments.

use std::time::Duration;

use serde_json::{Map, Value, json};
use whimbrel_apps::bulk::{Direction, Peer, Sample, Shares, StopCondition, Totals};
use whimbrel_apps::record::per_second;
use whimbrel_apps::transport::Limit;
use whimbrel_tcp::conn::Nagle;

use super::table::span_seconds;
use super::{BulkPlan, FinishedRun, Outcome, PathFigures, StreamOutcome};
use crate::{output, report, series};

/// The document of a transfer.
pub(super) fn document(plan: &BulkPlan, ran: &FinishedRun<Outcome>, path: &PathFigures) -> Value {
    let outcome = &ran.outcome;
    let mut document = output::document("whimbrel.bulk/1", &plan.setup, ran);
    document.insert("config".into(), config(plan));
    let Totals { sent, received } = outcome.counted();
    document.insert(
        "summary".into(),
        json!({
            "duration": outcome.elapsed.as_secs_f64(),
            "sent": sent,
            "received": received,
            "sent_rate": per_second(sent * 8, outcome.elapsed),
            "received_rate": per_second(received * 8, outcome.elapsed),
            "retransmits": outcome.retransmits,
            "again": path.again(),
            "wait": path.mean().zip(path.p99()).map(|(mean, p99)| {
                json!({ "mean": mean.as_secs_f64(), "p99": p99.as_secs_f64() })
            }),
            "error": outcome.fault.map(|fault| fault.to_string()).or_else(|| {
                outcome.conn_error.map(|conn_error| conn_error.name().to_owned())
            }),
            "server_output": outcome.theirs.as_ref().and_then(|it| Some(it.server_output.as_ref()?.verbatim())),
        }),
    );
    document.insert("series".into(), series_of(outcome, plan.bulk.interval));
    document.insert("streams".into(), outcome.streams.iter().map(stream).collect());
    document.into()
}

/// Over time: what all streams together moved, and windows of the first.
fn series_of(outcome: &Outcome, step: Duration) -> Value {
    let samples = || outcome.streams.iter().map(|stream| &stream.samples);
    let most = samples().map(Vec::len).max().unwrap_or_default();
    let moved = |place: usize| {
        let rate = |sample: &Sample| {
            let bytes = sample.moved.sent + sample.moved.received;
            bytes as f64 * 8.0 / span_seconds(sample.from, sample.until).max(1e-9)
        };
        samples().filter_map(|all| all.get(place)).map(rate).sum()
    };
    let rates: Vec<f64> = (0..most).map(moved).collect();
    let stats = outcome.streams.first().into_iter().flat_map(|it| &it.samples);
    let stats: Vec<_> = stats.filter_map(|sample| sample.sender_stats).collect();
    let cwnd: Vec<_> = stats.iter().map(|it| it.cwnd as f64).collect();
    let rwnd: Vec<_> = stats.iter().map(|it| it.rwnd as f64).collect();
    let mut all = vec![series::series("rate", "bit/s", step, &rates)];
    if !stats.is_empty() {
        all.push(series::series("window", "octets", step, &rwnd));
        all.push(series::series("cwnd", "octets", step, &cwnd));
    }
    all.into()
}

/// One interval of all streams.
pub(super) fn interval<'s>(samples: impl Iterator<Item = &'s Sample>) -> Value {
    let streams: Vec<_> = samples.map(sample).collect();
    json!({ "streams": streams })
}

/// The intervals of all streams as a table with commas.
pub(super) fn csv(outcome: &Outcome) -> String {
    let streams = outcome.streams.iter().enumerate();
    let rows = streams.flat_map(|(number, stream)| {
        stream.samples.iter().map(move |of_stream| {
            let mut row = sample(of_stream);
            row["stream"] = (number + 1).into();
            row
        })
    });
    report::csv(&COLUMNS, rows)
}

fn config(plan: &BulkPlan) -> Value {
    let (duration, bytes) = match plan.bulk.until {
        StopCondition::Elapsed(time) => (Some(time.as_secs_f64()), None),
        StopCondition::Bytes(each) => (None, Some(each.saturating_mul(plan.bulk.streams.into()))),
        StopCondition::Told => (None, None),
    };
    json!({
        "direction": match plan.bulk.direction {
            Direction::Send => "send",
            Direction::Receive => "recv",
            Direction::Both => "bidir",
        },
        "peer": if matches!(plan.bulk.peer, Peer::Plain) { "plain" } else { "iperf3" },
        "streams": plan.bulk.streams,
        "duration": duration,
        "octets": bytes,
        "rate": plan.bulk.rate,
        "max_pacing_rate": plan.bulk.options.max_pacing_rate,
        "block": plan.bulk.block,
        "omit": plan.bulk.omit.as_secs_f64(),
        "interval": plan.bulk.interval.as_secs_f64(),
        "mss": plan.bulk.options.mss,
        "congestion": plan.bulk.options.congestion,
        "no_delay": plan.bulk.options.nagle == Nagle::Off,
    })
}

fn stream(stream: &StreamOutcome) -> Value {
    json!({
        "local": stream.local.map(|local| local.to_string()),
        "sent": stream.counted.sent,
        "received": stream.counted.received,
        "confirmed": stream.confirmed,
        "confirmed_after": stream.confirmed_after.map(|after| after.as_secs_f64()),
        "peer": stream.theirs.map(|theirs| json!({
            "octets": theirs.bytes,
            "seconds": theirs.seconds,
            "retransmits": theirs.retransmits,
        })),
        "limited": shares(&stream.shares),
        "intervals": stream.samples.iter().map(sample).collect::<Vec<_>>(),
    })
}

fn sample(sample: &Sample) -> Value {
    let seconds = span_seconds(sample.from, sample.until);
    json!({
        "start": sample.from.as_secs_f64(),
        "end": sample.until.as_secs_f64(),
        "seconds": seconds,
        "sent": sample.moved.sent,
        "received": sample.moved.received,
        "omitted": sample.omitted,
        "retransmits": sample.sender_stats.and_then(|sender_stats| sender_stats.retransmits),
        "cwnd": sample.sender_stats.map(|sender_stats| sender_stats.cwnd),
        "rwnd": sample.sender_stats.map(|sender_stats| sender_stats.rwnd),
        "rtt": sample.sender_stats.and_then(|sender_stats| sender_stats.rtt).map(|rtt| rtt.as_secs_f64()),
        "limited": shares(&sample.shares),
    })
}

/// Seconds for which each limit held the sender.
fn shares(shares: &Shares) -> Value {
    let share = |limit: Limit| (limit.name().into(), shares.time(limit).as_secs_f64().into());
    Limit::ALL.into_iter().map(share).collect::<Map<_, _>>().into()
}

const COLUMNS: [&str; 15] = [
    "stream",
    "start",
    "end",
    "seconds",
    "sent",
    "received",
    "omitted",
    "retransmits",
    "cwnd",
    "rwnd",
    "rtt",
    "limited/app",
    "limited/rwnd",
    "limited/cwnd",
    "limited/sndbuf",
];
