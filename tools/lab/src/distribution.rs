//! Distribution of durations in a bounded number of classes.

use hdrhistogram::Histogram;
use whimbrel_apps::record::Ages;

/// Numbers of events by duration.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    /// Name of the event, as in `opening`.
    pub name: &'static str,
    /// Upper bound in seconds, ascending, and the number between it and the bound before.
    pub classes: Vec<(f64, u64)>,
    /// Lower bound in seconds, and the number that had waited as long at the end and were not over.
    pub waiting: Vec<(u64, u64)>,
    /// Longest wait of those not over at the end, seconds.
    pub longest_wait: Option<f64>,
}

impl Distribution {
    /// Distribution of all values in these histograms of nanoseconds. A class is a fortieth of a
    /// decade wide, so that there are a few hundred at most, and ends with its longest value.
    pub fn of<'h>(
        name: &'static str,
        histograms: impl IntoIterator<Item = &'h Histogram<u64>>,
        waiting: impl IntoIterator<Item = Ages>,
    ) -> Self {
        let mut classes = std::collections::BTreeMap::<i64, (f64, u64)>::new();
        for step in histograms.into_iter().flat_map(Histogram::iter_recorded) {
            let seconds = step.value_iterated_to() as f64 / 1e9;
            let place = (seconds.max(1e-9).log10() * PER_DECADE).floor() as i64;
            let class = classes.entry(place).or_default();
            *class = (class.0.max(seconds), class.1 + step.count_at_value());
        }
        let mut ages = std::collections::BTreeMap::<u64, u64>::new();
        let mut longest = 0.0_f64;
        for of_run in waiting {
            longest = longest.max(of_run.oldest().as_secs_f64());
            for (from, count) in of_run.iter() {
                *ages.entry(from).or_default() += count;
            }
        }
        ages.retain(|_, count| *count > 0);
        Self {
            name,
            classes: classes.into_values().collect(),
            longest_wait: (!ages.is_empty()).then_some(longest),
            waiting: ages.into_iter().collect(),
        }
    }
}

/// Classes in a decade.
const PER_DECADE: f64 = 40.0;
