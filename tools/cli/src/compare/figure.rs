//! Something measured, and how far chance may have had a part in it.

use whimbrel_base::Foreign;

/// Something measured.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) name: Foreign<String>,
    pub(super) unit: Foreign<String>,
    pub(super) value: Reading,
}

/// A value, and between which it lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reading {
    pub(super) value: f64,
    /// `None` if its error by chance is unknown.
    pub(super) range: Option<(f64, f64)>,
}

impl Reading {
    /// Of virtual time: the same whenever it is measured.
    pub(super) const fn exact(value: f64) -> Self {
        Self { value, range: Some((value, value)) }
    }

    /// The mean of several, which is between the least and the most of them.
    pub(super) fn of_samples(samples: &[f64]) -> Self {
        let value = samples.iter().sum::<f64>() / samples.len().max(1) as f64;
        let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
        let most = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { value, range: (samples.len() >= ENOUGH).then_some((least, most)) }
    }
}

pub(super) fn figure(name: &str, unit: &str, value: Reading) -> Figure {
    Figure { name: Foreign::new(name.into()), unit: Foreign::new(unit.into()), value }
}

/// Number of samples from which the least and the most show the range of chance: those of two runs of
/// three samples are disjoint by chance once in ten.
const ENOUGH: usize = 3;
