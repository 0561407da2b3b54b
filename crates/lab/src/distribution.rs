//! How long things took, in a bounded number of classes.

use hdrhistogram::Histogram;
use whimbrel_apps::record::Ages;

/// How many took how long.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    /// What took so long, as in `opening`.
    pub name: &'static str,
    /// How long at most, seconds, ascending, and how many took that long and longer than the class before.
    pub classes: Vec<(f64, u64)>,
    /// For how many seconds at least, and how many had waited that long at the end and were not over.
    pub waiting: Vec<(u64, u64)>,
    /// For how many seconds the one had waited that was not over at the end and had waited longest.
    pub longest_wait: Option<f64>,
}

impl Distribution {
    /// Of everything in these histograms of nanoseconds. A class is a fortieth of a decade wide, so that there
    /// are some hundred at most, and ends with the longest time in it.
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

/// Classes between a time and ten times that.
const PER_DECADE: f64 = 40.0;
