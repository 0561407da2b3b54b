//! The document that oha 1.16 prints with `--output-format json`: what reads one reads the other. A
//! test compares it with one of oha's own, key by key.

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use whimbrel_apps::Record;
use whimbrel_apps::record::Phase;

use super::figures::{Outcome, QUANTILES, seconds};

/// The result as the JSON document that oha prints.
pub(crate) fn document(outcome: &Outcome) -> String {
    let record = &outcome.record;
    let elapsed = record.elapsed().as_secs_f64();
    let answered = record.answered();
    let latency = &record.corrected;
    let first = record.phase(Phase::FirstByte);
    let document = json!({
        "summary": {
            "successRate": outcome.success_rate(),
            "total": elapsed,
            "slowest": seconds(latency.max()),
            "fastest": seconds(latency.min()),
            "average": latency.mean() / 1e9,
            "requestsPerSec": record.rate(),
            "totalData": record.body,
            "sizePerRequest": record.body.checked_div(answered),
            "sizePerSec": if elapsed > 0.0 { record.body as f64 / elapsed } else { 0.0 },
        },
        "metrics": {
            "success_rate": outcome.success_rate(),
            "requests_per_sec": record.rate(),
            "latency_ms": {
                "min": millis(latency.min()),
                "mean": millis(latency.mean() as u64),
                "p50": millis(latency.value_at_quantile(0.5)),
                "p95": millis(latency.value_at_quantile(0.95)),
                "p99": millis(latency.value_at_quantile(0.99)),
                "max": millis(latency.max()),
            },
        },
        "responseTimeHistogram": histogram(latency),
        "latencyPercentiles": percentiles(|quantile| seconds(latency.value_at_quantile(quantile))),
        "firstByteHistogram": histogram(first),
        "firstBytePercentiles": percentiles(|quantile| seconds(first.value_at_quantile(quantile))),
        "rps": rates(record),
        "details": {
            "DNSDialup": triple(record.phase(Phase::Connect)),
            // Names are resolved once, before the run.
            "DNSLookup": { "average": 0.0, "fastest": 0.0, "slowest": 0.0 },
            "firstByte": triple(first),
        },
        "statusCodeDistribution": distribution(&record.statuses),
        "errorDistribution": distribution(&record.conn_errors),
    });
    format!("{document:#}\n")
}

/// Milliseconds, to the microsecond.
fn millis(nanos: u64) -> f64 {
    (nanos as f64 / 1e3).round() / 1e3
}

fn triple(times: &Histogram<u64>) -> Value {
    json!({
        "average": times.mean() / 1e9,
        "fastest": seconds(times.min()),
        "slowest": seconds(times.max()),
    })
}

fn percentiles(at: impl Fn(f64) -> f64) -> Value {
    QUANTILES.iter().map(|(name, q)| ((*name).into(), at(*q).into())).collect::<Map<_, _>>().into()
}

/// Eleven bars, as oha has them, each under its upper end.
fn histogram(latency: &Histogram<u64>) -> Value {
    let bars = bars(latency, BARS);
    bars.iter()
        .map(|(end, count)| (seconds(*end).to_string(), (*count).into()))
        .collect::<Map<_, _>>()
        .into()
}

/// Bars of one width between the least and the greatest time.
fn bars(latency: &Histogram<u64>, count: u64) -> Vec<(u64, u64)> {
    let (min, max) = (latency.min(), latency.max());
    let end = |bar: u64| min + (max - min) * bar / (count - 1).max(1);
    let ends: Vec<u64> = (0..count).map(end).collect();
    counts_below(latency, &ends)
}

/// Counts of the times up to each of the growing `ends`, and above the one before it.
pub(crate) fn counts_below(latency: &Histogram<u64>, ends: &[u64]) -> Vec<(u64, u64)> {
    let mut bars: Vec<_> = ends.iter().map(|end| (*end, 0)).collect();
    let mut place = 0;
    // Each of the histogram's own cells counts once, where it ends.
    for cell in latency.iter_recorded() {
        let value = cell.value_iterated_to().clamp(latency.min(), latency.max());
        while bars.get(place).is_some_and(|(end, _)| *end < value) {
            place += 1;
        }
        if let Some((_, count)) = bars.get_mut(place) {
            *count += cell.count_since_last_iteration();
        }
    }
    bars
}

fn rates(record: &Record) -> Value {
    let mut rates = record.intervals.rates(record.elapsed());
    if rates.is_empty() {
        rates.push(record.rate());
    }
    rates.sort_by(f64::total_cmp);
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let at = |quantile: f64| {
        let place = (quantile * rates.len() as f64).ceil() as usize;
        rates[place.clamp(1, rates.len()) - 1]
    };
    json!({
        "mean": mean,
        "stddev": (squares / rates.len() as f64).sqrt(),
        "max": rates.last(),
        "min": rates.first(),
        "percentiles": percentiles(at),
    })
}

fn distribution<K: ToString>(counts: &std::collections::BTreeMap<K, u64>) -> Value {
    let entry = |(key, count): (&K, &u64)| (key.to_string(), Value::from(*count));
    counts.iter().map(entry).collect::<Map<_, _>>().into()
}

/// Number of bars in oha's output.
const BARS: u64 = 11;
