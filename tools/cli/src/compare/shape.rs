//! Distributions of times: quantiles, their errors by chance, and the largest distance of two
//! distributions.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use super::figure::{Figure, Reading, figure};

/// The largest distance of two distributions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct MaxDivergence {
    /// By which share of all.
    pub(super) share: f64,
    /// At which time, seconds.
    pub(super) at: f64,
    /// The share that took no longer, of each.
    pub(super) below: [f64; 2],
    /// Distance exceeded by chance once in twenty, for samples of this size.
    pub(super) by_chance: f64,
}

/// The histogram of a document, nanoseconds.
pub(super) fn decode(text: &str) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(text).ok()?;
    let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
    Some(histogram).filter(|it: &Histogram<u64>| !it.is_empty())
}

/// Quantiles, each from two standard deviations below its rank to two above.
pub(super) fn quantiles(times: &Histogram<u64>) -> Vec<Figure> {
    let count = times.len() as f64;
    let seconds = |quantile: f64| times.value_at_quantile(quantile.clamp(0.0, 1.0)) as f64 / 1e9;
    let of = |(name, quantile): (&str, f64)| {
        let off = 2.0 * (quantile * (1.0 - quantile) / count).sqrt();
        // Quantiles above the last sample are unknown.
        let is_within = quantile + off < 1.0;
        let range = is_within.then(|| (seconds(quantile - off), seconds(quantile + off)));
        figure(name, "s", Reading { value: seconds(quantile), range })
    };
    let mut all: Vec<_> = QUANTILES.into_iter().map(of).collect();
    all.push(figure("max", "s", Reading { value: times.max() as f64 / 1e9, range: None }));
    all
}

/// Returns the largest distance of both, as Kolmogorov and Smirnov measure it.
pub(super) fn apart(a: &Histogram<u64>, b: &Histogram<u64>) -> MaxDivergence {
    let counts = [a.len() as f64, b.len() as f64];
    let both = counts[0] * counts[1];
    let by_chance = ONCE_IN_TWENTY * ((counts[0] + counts[1]) / both.max(1.0)).sqrt();
    let mut apart = MaxDivergence { share: 0.0, at: 0.0, below: [0.0; 2], by_chance };
    let mut values: Vec<u64> =
        a.iter_recorded().chain(b.iter_recorded()).map(|it| it.value_iterated_to()).collect();
    values.sort_unstable();
    values.dedup();
    let mut steps = [a.iter_recorded().peekable(), b.iter_recorded().peekable()];
    let mut sums = [0_u64; 2];
    for value in values {
        for (steps, sum) in steps.iter_mut().zip(&mut sums) {
            while let Some(step) = steps.next_if(|step| step.value_iterated_to() <= value) {
                *sum += step.count_at_value();
            }
        }
        let below = [sums[0] as f64 / counts[0], sums[1] as f64 / counts[1]];
        let share = (below[0] - below[1]).abs();
        // Of several the last: those that come later do so from there on.
        if share + ROUNDING >= apart.share {
            apart = MaxDivergence { share, at: value as f64 / 1e9, below, by_chance };
        }
    }
    apart
}

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];
/// Shares that differ by no more are the same.
const ROUNDING: f64 = 1e-9;
/// Of the distance of two samples, times the root of (n + m) / n m (Smirnov, 1948).
const ONCE_IN_TWENTY: f64 = 1.358;
