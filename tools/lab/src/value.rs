//! Parameters of a case in addition to the rules of the stack, as numbers with units.

use std::time::Duration;

/// A parameter of a case.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name on the command line.
    pub name: &'static str,
    /// Description, in a line.
    pub about: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Default, in its unit.
    pub default: f64,
    /// Lower bound.
    pub least: f64,
    /// Upper bound.
    pub most: f64,
}

/// Unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A count.
    Count,
    /// A rate per second.
    PerSecond,
    /// Bytes; `k` is 1,024.
    Bytes,
    /// Seconds.
    Time,
    /// Percent.
    Percent,
    /// Millions of bits per second.
    Megabits,
    /// One of these words; the number is its place among them.
    Choice(&'static [&'static str]),
}

/// Values of a case's parameters.
#[derive(Clone, Debug)]
pub struct Values(Vec<(Parameter, f64)>);

impl Parameter {
    /// The number typed, if it is in range.
    pub(super) fn parse(&self, text: &str) -> Result<f64, String> {
        let number = self.unit.parse(text);
        number.filter(|number| (self.least..=self.most).contains(number)).ok_or_else(|| {
            let range = match self.unit {
                Unit::Choice(words) => words.join(" or "),
                unit => format!("{} to {}", unit.type_of(self.least), unit.type_of(self.most)),
            };
            let default = self.unit.type_of(self.default);
            format!("{}={text}: give {range}, as in {}={default}", self.name, self.name)
        })
    }
}

impl Unit {
    /// The number typed, in this unit.
    fn parse(self, text: &str) -> Option<f64> {
        let suffixes: &[(&str, f64)] = match self {
            Self::Choice(words) => {
                return words.iter().position(|word| *word == text).map(|place| place as f64);
            }
            Self::Bytes => &[("k", 1024.0), ("M", 1_048_576.0), ("G", 1_073_741_824.0)],
            Self::Time => &[("ms", 1e-3), ("us", 1e-6), ("s", 1.0), ("m", 60.0)],
            Self::Count | Self::PerSecond | Self::Percent | Self::Megabits => {
                &[("k", 1e3), ("M", 1e6)]
            }
        };
        let cut = |(suffix, factor): &(&str, f64)| Some((text.strip_suffix(suffix)?, *factor));
        let (digits, factor) = suffixes.iter().find_map(cut).unwrap_or((text, 1.0));
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let number: f64 = digits.parse().ok().filter(|_| is_plain)?;
        Some(number * factor)
    }

    /// A number in the form in which it is typed.
    pub fn type_of(self, value: f64) -> String {
        match self {
            Self::Time if value > 0.0 && value < 1.0 => format!("{}ms", value * 1e3),
            Self::Time => format!("{value}s"),
            Self::Bytes if value >= 1024.0 && value % 1024.0 == 0.0 => {
                format!("{}k", value / 1024.0)
            }
            Self::Choice(words) => words.get(value as usize).copied().unwrap_or_default().into(),
            _ => format!("{value}"),
        }
    }
}

impl Values {
    /// The default values.
    pub(super) fn of(parameters: &[Parameter]) -> Self {
        Self(parameters.iter().map(|parameter| (*parameter, parameter.default)).collect())
    }

    /// Sets a parameter.
    pub(super) fn set(&mut self, parameter: &str, value: f64) {
        let own = self.0.iter_mut().find(|(own, _)| own.name == parameter);
        if let Some((_, own)) = own {
            *own = value;
        }
    }

    /// Value of the parameter of this name; 0 if there is none.
    pub fn of_name(&self, name: &str) -> f64 {
        let found = self.0.iter().find(|(parameter, _)| parameter.name == name);
        found.map_or(0.0, |(_, value)| *value)
    }

    /// Value of a time.
    pub fn time(&self, name: &str) -> Duration {
        Duration::from_secs_f64(self.of_name(name))
    }

    /// Parameters with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&Parameter, f64)> {
        self.0.iter().map(|(parameter, value)| (parameter, *value))
    }
}

#[cfg(test)]
mod tests;
