//! Figures of several seeds as one.

use super::{Figure, PathEvents};

/// Figures of a measurement with each of several seeds.
#[derive(Clone, Debug)]
pub(super) struct Seeds(Vec<Figure>);

impl Seeds {
    /// Measures with the seeds from 1 to `most` (>= 1). The first error ends it.
    pub(super) fn run(
        most: u64,
        measure: impl Fn(u64) -> Result<Figure, String>,
    ) -> Result<Self, String> {
        (1..=most).map(measure).collect::<Result<_, _>>().map(Self)
    }

    /// Mean of the values, and all events.
    pub(super) fn mean(&self) -> Figure {
        let sum: f64 = self.values().sum();
        self.figure(sum / self.0.len() as f64)
    }

    /// Least value, and all events.
    pub(super) fn least(&self) -> Figure {
        self.figure(self.values().fold(f64::INFINITY, f64::min))
    }

    /// Greatest value, and all events.
    pub(super) fn most(&self) -> Figure {
        self.figure(self.values().fold(f64::NEG_INFINITY, f64::max))
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.0.iter().map(|figure| figure.value)
    }

    fn figure(&self, value: f64) -> Figure {
        let events = self.0.iter().map(|figure| figure.events).reduce(PathEvents::and);
        Figure { value, events: events.unwrap_or_default() }
    }
}
