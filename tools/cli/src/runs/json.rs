//! The document `whimbrel.load/1`: times in seconds, sizes in bytes.

use std::time::Duration;

use serde_json::{Map, Value, json};
use whimbrel_apps::load::{self, Correction, Ending, FastOpen, StopCondition};
use whimbrel_apps::record::{Ages, Intervals, Phase, SynCounts, per_second};
use whimbrel_apps::transport::PortShortage;
use whimbrel_apps::{ConnError, Record};
use whimbrel_lab::Distribution;
use whimbrel_wire::Endpoint;

use super::figures::{Outcome, QUANTILES, held, of_some, seconds};
use super::plan::LoadRunPlan;
use crate::drive::FinishedRun;
use crate::{output, report, series};

/// The document of a load.
pub(crate) fn document(plan: &LoadRunPlan, ran: &FinishedRun<Outcome>) -> Value {
    let mut document = output::document("whimbrel.load/1", &plan.setup, ran);
    let mut config = config(&plan.load);
    config.insert("url".into(), plan.url.as_ref().map(ToString::to_string).into());
    config.insert("method".into(), plan.method.clone().into());
    config.insert("threads".into(), plan.threads.into());
    config.insert("request_octets".into(), plan.load.exchange.request.len().into());
    config.insert("repeat".into(), plan.repeat.least.into());
    config.insert("gap".into(), plan.repeat.gap.as_secs_f64().into());
    // Only of the server in this process.
    config.insert("body".into(), plan.url.is_none().then_some(plan.body).into());
    config.insert("pace".into(), output::pace(plan.pace));
    config.insert(
        "requests_per_connection".into(),
        output::requests_per_connection(plan.limits).into(),
    );
    document.insert("config".into(), config.into());
    document.extend(results(&ran.outcome));
    let runs = ran.outcome.earlier.iter().chain([&ran.outcome]);
    document.insert("runs".into(), runs.map(summary).collect());
    document.into()
}

/// Configuration of a load of any kind.
pub(crate) fn config(plan: &load::LoadPlan) -> Map<String, Value> {
    let (requests, duration) = match plan.until {
        StopCondition::Exchanges(count) => (Some(count), None),
        StopCondition::Elapsed(time) => (None, Some(time.as_secs_f64())),
    };
    let ending = match plan.ending {
        Ending::KeepAlive => "keep-alive",
        Ending::Server => "server",
        Ending::Client => "client",
        Ending::Reset => "rst",
    };
    let value = json!({
        "connections": plan.connections,
        "requests": requests,
        "duration": duration,
        "rate": plan.rate,
        "close": ending,
        "timeout": plan.timeout.as_secs_f64(),
        "connect_timeout": plan.connect_timeout.as_secs_f64(),
        "warmup": plan.warmup.as_secs_f64(),
        "interval": plan.interval.as_secs_f64(),
        "latency_correction": plan.rate.is_some() && plan.correction == Correction::On,
        "fast_open": plan.fast_open == FastOpen::On,
        "local_addresses": plan.local.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Results of a load of any kind.
pub(crate) fn results(outcome: &Outcome) -> Map<String, Value> {
    let record = &outcome.record;
    let phases = Phase::ALL.map(|phase| (phase.name().to_owned(), times(record.phase(phase))));
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| map.insert(key.into(), value);
    put("summary", summary(outcome));
    put("latency", times(&record.service));
    put("latency_corrected", times(&record.corrected));
    put("phases", phases.into_iter().collect::<Map<_, _>>().into());
    put("intervals", intervals(record));
    put("series", series_of(outcome));
    put("distributions", distributions(outcome));
    put("statuses", counts(&record.statuses));
    put("errors", counts(&record.conn_errors));
    put("histogram", output::encode(&record.service).into());
    put("histogram_corrected", output::encode(&record.corrected).into());
    map
}

pub(crate) fn summary(outcome: &Outcome) -> Value {
    let record = &outcome.record;
    let elapsed = record.elapsed();
    let spread = record.intervals.spread(elapsed);
    json!({
        "duration": elapsed.as_secs_f64(),
        // In addition to `seconds`.
        "paused": record.paused.as_secs_f64(),
        // At a time, as far as that was changed.
        "connections": {
            "least": record.connections.least,
            "most": record.connections.most,
            "last": record.connections.last,
        },
        "answered": record.answered(),
        "succeeded": record.succeeded(),
        "failed": record.failed(),
        "success_rate": outcome.success_rate(),
        "in_flight_at_end": outcome.left.in_flight,
        "never_begun": outcome.left.never_begun,
        "connections_opened": record.opened,
        // Of measured exchanges: the SYN that opened them; null over kernel:, which does not report it.
        "opened_by_syn": record.syns.map(opened_by_syn),
        "refused": record.conn_errors.get(&ConnError::Refused).copied().unwrap_or(0),
        "opening_at_end": {
            "count": outcome.left.opening,
            "oldest": outcome.left.opening_for.oldest().as_secs_f64(),
            "by_age": by_age(outcome.left.opening_for),
        },
        "unclean_closes": record.unclean,
        "unclosed": record.unclosed,
        // On a new connection, since the one that was kept could not be used.
        "repeated": record.repeated,
        // Addresses of the target's name that could not be reached.
        "unreached": record.unreached.iter().map(unreached).collect::<Vec<_>>(),
        "port_waits": {
            "exchanges": record.starved,
            "seconds": record.held.ports.as_secs_f64(),
            "last": record.shortage.map(shortage),
        },
        // Percent of the time of all connections.
        "held": held(record).into_iter().map(|(share, cause)| json!({ "percent": 100.0 * share, "cause": cause })).collect::<Vec<_>>(),
        // Requests that the generator itself began more than a millisecond late.
        "generator": { "late": record.held.late, "latest": record.held.latest.as_secs_f64() },
        "body_octets": record.body,
        "rate": {
            "mean": record.rate(),
            "min": spread.map(|spread| spread.min),
            "max": spread.map(|spread| spread.max),
            "cv": spread.map(|spread| spread.variation()),
        },
    })
}

/// Number of connections that opened at the first SYN, at the second and so on; beyond the last none.
fn opened_by_syn(syns: SynCounts) -> Value {
    let most = syns.iter().filter(|(_, count)| *count > 0).map(|(syn, _)| syn).max().unwrap_or(1);
    syns.iter().filter(|(syn, _)| *syn <= most).map(|(_, count)| count).collect()
}

/// The ages of attempts, in seconds from which on they count so.
fn by_age(ages: Ages) -> Value {
    let some = ages.iter().filter(|(_, count)| *count > 0);
    some.map(|(from, count)| json!({ "from": from, "count": count })).collect()
}

/// An address that could not be reached, and the error.
fn unreached(failed: &(Endpoint, ConnError)) -> Value {
    let (at, why) = failed;
    json!({ "address": at.to_string(), "error": why.name() })
}

/// Holders of the ports when a search for one last failed.
fn shortage(shortage: PortShortage) -> Value {
    json!({
        "first": shortage.first,
        "last": shortage.last,
        "in_use": shortage.in_use,
        "time_wait": shortage.waiting,
        "next_free_in": shortage.next.map(|next| next.as_secs_f64()),
    })
}

fn times(histogram: &hdrhistogram::Histogram<u64>) -> Value {
    let mut map = Map::new();
    map.insert("count".into(), histogram.len().into());
    let mut put =
        |name: &str, time: f64| map.insert(name.into(), of_some(histogram, |_| time).into());
    put("min", seconds(histogram.min()));
    put("mean", histogram.mean() / 1e9);
    put("max", seconds(histogram.max()));
    for (name, quantile) in QUANTILES {
        put(name, seconds(histogram.value_at_quantile(quantile)));
    }
    map.into()
}

/// The rates of all runs, one after the other.
fn series_of(outcome: &Outcome) -> Value {
    let runs = || outcome.earlier.iter().chain([outcome]).map(|run| &run.record);
    let of = |rate: fn(&Intervals, usize, Duration) -> f64| {
        let each = runs().flat_map(move |record| {
            let places = 0..record.intervals.counts().len();
            places.map(move |place| rate(&record.intervals, place, record.elapsed()))
        });
        each.collect::<Vec<_>>()
    };
    let step = outcome.record.intervals.length();
    let answered = of(|all, place, elapsed| {
        interval(all, place, elapsed)["rate"].as_f64().unwrap_or_default()
    });
    let failed = of(|all, place, _| all.counts().get(place).map_or(0.0, |it| it.failed as f64));
    json!([
        series::series("responses/s", "per_second", step, &answered),
        series::series("failed", "count", step, &failed),
    ])
}

/// Distributions of the times of responses and of connects, in all runs.
fn distributions(outcome: &Outcome) -> Value {
    let runs = || outcome.earlier.iter().chain([outcome]);
    let unanswered = runs().map(|run| run.left.unanswered_for);
    let response = runs().map(|run| &run.record.corrected);
    let response = Distribution::of("response", response, unanswered);
    let opening = runs().map(|run| run.record.phase(Phase::Connect));
    let waiting = runs().map(|run| run.left.opening_for);
    let opening = Distribution::of("opening", opening, waiting);
    json!([series::distribution(&response), series::distribution(&opening)])
}

fn intervals(record: &Record) -> Value {
    let places = 0..record.intervals.counts().len();
    places.map(|place| interval(&record.intervals, place, record.elapsed())).collect()
}

/// Counts of one interval of a run that has lasted `elapsed`.
pub(crate) fn interval(intervals: &Intervals, place: usize, elapsed: Duration) -> Value {
    let length = intervals.length();
    let start = length.mul_f64(place as f64);
    let lasted = elapsed.saturating_sub(start).min(length);
    let count = intervals.counts().get(place).copied().unwrap_or_default();
    json!({
        "start": start.as_secs_f64(),
        "seconds": lasted.as_secs_f64(),
        "answered": count.exchanges,
        "failed": count.failed,
        "rate": per_second(count.exchanges, lasted),
        "body_octets": count.bytes,
    })
}

/// The intervals of all runs as a table with commas.
pub(crate) fn csv(outcome: &Outcome) -> String {
    let runs = outcome.earlier.iter().chain([outcome]).enumerate();
    let rows = runs.flat_map(|(run, outcome)| {
        let record = &outcome.record;
        let places = 0..record.intervals.counts().len();
        let interval = move |place| interval(&record.intervals, place, record.elapsed());
        places.map(move |place| in_run(run, interval(place)))
    });
    report::csv(&COLUMNS, rows)
}

/// The interval, with the number of its run.
pub(crate) fn in_run(run: usize, mut interval: Value) -> Value {
    interval["run"] = (run + 1).into();
    interval
}

fn counts<K: ToString>(counts: &std::collections::BTreeMap<K, u64>) -> Value {
    counts
        .iter()
        .map(|(key, count)| (key.to_string(), Value::from(*count)))
        .collect::<Map<_, _>>()
        .into()
}

const COLUMNS: [&str; 7] = ["run", "start", "seconds", "answered", "failed", "rate", "body_octets"];
