//! From values to places in a drawing, and the ticks of axes.

/// An axis: from which value to which, at which place to which.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Scale {
    kind: Kind,
    pub(crate) values: [f64; 2],
    pub(crate) places: [f64; 2],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Linear,
    Log,
}

impl Scale {
    /// Equal differences are equally far.
    pub(crate) const fn linear(values: [f64; 2], places: [f64; 2]) -> Self {
        Self { kind: Kind::Linear, values, places }
    }

    /// Equal ratios are equally far; values are above 0.
    pub(crate) const fn log(values: [f64; 2], places: [f64; 2]) -> Self {
        Self { kind: Kind::Log, values, places }
    }

    /// Position of a value; values outside of the ends are placed at the end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let [low, high] = self.values.map(|end| self.bent(end));
        let [from, to] = self.places;
        let share = if high > low { (self.bent(value) - low) / (high - low) } else { 0.0 };
        from + share.clamp(0.0, 1.0) * (to - from)
    }

    fn bent(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => value,
            Kind::Log => value.max(f64::MIN_POSITIVE).log10(),
        }
    }

    /// Attributes by which readers find the values of the drawing.
    pub(crate) fn attributes(&self) -> String {
        let kind = match self.kind {
            Kind::Linear => "linear",
            Kind::Log => "log",
        };
        let ([low, high], [from, to]) = (self.values, self.places);
        format!(" data-scale=\"{kind} {low} {high} {from:.2} {to:.2}\"")
    }

    /// The powers of ten within.
    pub(crate) fn decades(&self) -> Vec<f64> {
        let [low, high] = self.values.map(|end| end.max(f64::MIN_POSITIVE).log10());
        (low.ceil() as i32..=high.floor() as i32).map(|power| 10_f64.powi(power)).collect()
    }
}

/// A round number that is no less, and at most 2.5 times as much.
pub(crate) fn round_up(value: f64) -> f64 {
    if value.is_nan() || value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let fits = |step: &&f64| **step * power >= value * 0.999_999;
    steps.iter().find(fits).map_or(10.0 * power, |step| step * power)
}

#[cfg(test)]
mod tests;
