//! Series and distributions as documents have them: in a bounded number of steps, however long a run is.

use std::time::Duration;

use serde_json::{Value, json};
use whimbrel_lab::Distribution;

/// Values at equal distances of time; above some hundred, means of several.
pub(crate) fn series(name: &str, unit: &str, step: Duration, values: &[f64]) -> Value {
    let each = values.len().div_ceil(MOST).max(1);
    let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len().max(1) as f64;
    json!({
        "name": name,
        "unit": unit,
        "step": step.as_secs_f64() * each as f64,
        "values": values.chunks(each).map(mean).collect::<Vec<_>>(),
    })
}

/// A distribution of times: those of a class took at most this many seconds, and longer than the class
/// before.
pub(crate) fn distribution(distribution: &Distribution) -> Value {
    let class = |(seconds, count): &(f64, u64)| json!([seconds, count]);
    let waiting = |(from, count): &(u64, u64)| json!({ "from": from, "count": count });
    json!({
        "name": distribution.name,
        "count": distribution.classes.iter().map(|(_, count)| count).sum::<u64>(),
        "classes": distribution.classes.iter().map(class).collect::<Vec<_>>(),
        "still_waiting": distribution.waiting.iter().map(|(_, count)| count).sum::<u64>(),
        "longest_wait": distribution.longest_wait,
        "waiting": distribution.waiting.iter().map(waiting).collect::<Vec<_>>(),
    })
}

/// The most values of a series.
const MOST: usize = 400;

#[cfg(test)]
mod tests;
