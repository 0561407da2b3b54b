//! Confidence interval of the mean of several runs by Student's t, as with netperf's `-I`.

/// Required confidence of a mean.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Confidence {
    /// Probability that the true mean lies in the interval.
    pub level: Level,
    /// Width of the interval, as a share of the mean.
    pub width: f64,
}

/// Probability that a confidence interval holds the true mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// 95 of 100 such intervals hold it.
    P95,
    /// 99 of 100 such intervals hold it.
    P99,
}

impl Level {
    /// Number of such intervals in 100 that hold the true value: 95 or 99.
    pub const fn percent(self) -> u8 {
        match self {
            Self::P95 => 95,
            Self::P99 => 99,
        }
    }

    /// Half the width of the interval about the mean of `values`, as a share of that mean. Returns
    /// `None` for fewer than two values, for more than [`MOST_RUNS`], and for a mean of 0.
    pub fn half_width(self, values: &[f64]) -> Option<f64> {
        let freedom = values.len().checked_sub(2)?;
        let t = match self {
            Self::P95 => T_95.get(freedom),
            Self::P99 => T_99.get(freedom),
        };
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        (mean != 0.0).then_some(t? * error / mean)
    }
}

impl Confidence {
    /// True if the mean of `values` has this confidence.
    pub fn holds(&self, values: &[f64]) -> bool {
        self.level.half_width(values).is_some_and(|half| 2.0 * half <= self.width)
    }
}

/// Most runs whose mean can be judged: netperf's limit.
pub const MOST_RUNS: u32 = 30;

/// Student's t, two-sided, for 1 to 29 degrees of freedom.
const T_95: [f64; MOST_RUNS as usize - 1] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045,
];
const T_99: [f64; MOST_RUNS as usize - 1] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
    2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
    2.771, 2.763, 2.756,
];

#[cfg(test)]
mod tests;
