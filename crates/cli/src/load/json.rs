//! The document `whimbrel.load/1`: times in seconds, sizes in octets.

use serde_json::{Map, Value, json};
use whimbrel_apps::Record;
use whimbrel_apps::load::{self, Ending, Until};
use whimbrel_apps::record::Phase;

use super::figures::{Outcome, QUANTILES, seconds};
use super::plan::Plan;
use crate::drive::Ran;
use crate::output;

/// The document of a load.
pub(crate) fn document(plan: &Plan, ran: &Ran<Outcome>) -> String {
    let mut document = output::document("whimbrel.load/1", &plan.ground, ran);
    let mut config = config(&plan.load);
    config.insert("url".into(), plan.url.as_ref().map(ToString::to_string).into());
    config.insert("method".into(), plan.method.clone().into());
    document.insert("config".into(), config.into());
    document.extend(results(&ran.outcome));
    let runs = ran.outcome.earlier.iter().chain([&ran.outcome]);
    document.insert("runs".into(), runs.map(summary).collect());
    format!("{:#}\n", Value::Object(document))
}

/// What a load of any kind was told.
pub(crate) fn config(plan: &load::Plan) -> Map<String, Value> {
    let (requests, duration) = match plan.until {
        Until::Exchanges(count) => (Some(count), None),
        Until::Elapsed(time) => (None, Some(time.as_secs_f64())),
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
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// What a load of any kind measured.
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
    put("statuses", counts(&record.statuses));
    put("errors", counts(&record.troubles));
    put("histogram", output::encode(&record.service).into());
    put("histogram_corrected", output::encode(&record.corrected).into());
    map
}

fn summary(outcome: &Outcome) -> Value {
    let record = &outcome.record;
    let elapsed = record.elapsed();
    let spread = record.intervals.spread(elapsed);
    json!({
        "duration": elapsed.as_secs_f64(),
        "answered": record.answered(),
        "succeeded": record.succeeded(),
        "failed": record.failed(),
        "success_rate": outcome.success_rate(),
        "in_flight_at_end": outcome.left.in_flight,
        "never_begun": outcome.left.never_begun,
        "connections_opened": record.opened,
        "unclean_closes": record.unclean,
        "body_octets": record.body,
        "rate": {
            "mean": record.rate(),
            "min": spread.map(|spread| spread.min),
            "max": spread.map(|spread| spread.max),
            "cv": spread.map(|spread| spread.variation()),
        },
    })
}

fn times(histogram: &hdrhistogram::Histogram<u64>) -> Value {
    let mut map = Map::new();
    map.insert("count".into(), histogram.len().into());
    map.insert("min".into(), seconds(histogram.min()).into());
    map.insert("mean".into(), (histogram.mean() / 1e9).into());
    map.insert("max".into(), seconds(histogram.max()).into());
    for (name, quantile) in QUANTILES {
        map.insert(name.into(), seconds(histogram.value_at_quantile(quantile)).into());
    }
    map.into()
}

fn intervals(record: &Record) -> Value {
    let length = record.intervals.length().as_secs_f64();
    let interval = |(place, count): (usize, &whimbrel_apps::record::Count)| {
        json!({
            "start": place as f64 * length,
            "answered": count.exchanges,
            "body_octets": count.octets,
        })
    };
    record.intervals.counts().iter().enumerate().map(interval).collect()
}

fn counts<K: ToString>(counts: &std::collections::BTreeMap<K, u64>) -> Value {
    counts
        .iter()
        .map(|(key, count)| (key.to_string(), Value::from(*count)))
        .collect::<Map<_, _>>()
        .into()
}
