//! Conditions on what a run measured: `p99>50ms || errors>0.1%`.
//!
//! ```text
//! condition  = term { "||" term }
//! term       = comparison { "&&" comparison }
//! comparison = NAME ( ">" | ">=" | "<" | "<=" | "==" | "!=" ) NUMBER [ UNIT ]
//! ```
//!
//! A time needs a unit (`ns`, `us`, `ms` or `s`); `%` is a share of the whole; `k`, `M` and `G` multiply by
//! powers of a thousand. A figure takes only the units of its [`Measure`].

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A condition over the figures of a result, as `--fail-if` has it: `p99>50ms || failed>1%`.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// One of the terms must hold; a term holds if all of its comparisons do.
    terms: Vec<Vec<Comparison>>,
}

#[derive(Clone, PartialEq, Debug)]
struct Comparison {
    name: String,
    operator: Operator,
    value: f64,
    /// Unit as given; empty if there was none.
    unit: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
    Unequal,
}

/// Kind of value that a figure is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// A duration, given with ns, us, ms or s.
    Time,
    /// A count or a rate, given without a unit or with k, M, G or %.
    Number,
    /// A number, or a share of what there is of its kind.
    Share,
}

impl Measure {
    /// Units that it takes.
    const fn units(self) -> &'static [&'static str] {
        match self {
            Self::Time => &["ns", "us", "ms", "s"],
            Self::Number => &["k", "M", "G"],
            Self::Share => &["%", "k", "M", "G"],
        }
    }
}

/// A measured figure, with its name in conditions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// Its value, in seconds if it is a time.
    pub value: f64,
    /// The whole that it is a share of: the divisor when it is compared with a percentage.
    pub whole: f64,
}

/// Error of a text that is no condition.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// A comparison without an operator, as given.
    #[error("{0:?} compares nothing: give NAME > VALUE, as in p99>50ms or errors>0.1%")]
    NoOperator(String),
    /// The value is no number with a unit.
    #[error("{0:?} is no value: give a number and ns, us, ms, s, %, k, M or G, as in p99>50ms")]
    BadValue(String),
    /// The name is no figure.
    #[error("{name:?} is not measured; there are {known}")]
    UnknownName {
        /// The unknown name.
        name: String,
        /// The known names.
        known: String,
    },
    /// A time without a unit: `p99>100` would mean 100 seconds and never hold.
    #[error("{name:?} is a time, and {value} has no unit: give one of {units}, as in {name}>100ms")]
    NoUnit {
        /// The compared figure.
        name: String,
        /// The number given.
        value: f64,
        /// The units that the figure takes, for people.
        units: String,
    },
    /// A unit of another measure.
    #[error("{name:?} is not measured in {unit}: give a number {units}")]
    WrongUnit {
        /// The compared figure.
        name: String,
        /// The unit given, which the figure does not have.
        unit: &'static str,
        /// The units that the figure takes, for people.
        units: String,
    },
}

impl Condition {
    /// Checks that every name is one of `known` and that its comparison fits its measure.
    pub fn check(&self, known: &[(&str, Measure)]) -> Result<(), ConditionError> {
        self.terms.iter().flatten().try_for_each(|comparison| comparison.check(known))
    }

    /// The names of the figures that are compared.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().flatten().map(|comparison| comparison.name.as_str())
    }

    /// Returns the comparisons of the first term that holds for the measurements in `figure`, if
    /// one does. A comparison with a figure that was not measured never holds.
    pub fn met(&self, figure: impl Fn(&str) -> Option<Figure>) -> Option<Vec<Met<'_>>> {
        let met = |comparison| Comparison::met(comparison, figure(&comparison.name)?);
        self.terms.iter().find_map(|term| term.iter().map(met).collect())
    }
}

/// A comparison that holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Met<'c> {
    /// The name of the figure that is compared.
    pub name: &'c str,
    /// Measured value, in `unit`.
    pub measured: f64,
    /// Limit it was compared with, in `unit`.
    pub limit: f64,
    /// The unit of the comparison; empty if it has none.
    pub unit: &'static str,
}

impl fmt::Display for Met<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, measured, limit, unit } = self;
        let unit = [if matches!(*unit, "" | "%") { "" } else { " " }, unit].concat();
        // Rounded, unless that would hide that the value is just beyond the limit.
        let short = rounded(*measured);
        let measured = if short == *limit { (measured * 1e6).round() / 1e6 } else { short };
        write!(f, "{name} is {measured}{unit}, limit {limit}{unit}")
    }
}

/// Rounds to four digits, and to whole numbers from 1,000 on.
fn rounded(value: f64) -> f64 {
    let scale = match value.abs() {
        size if size < 1.0 => 10_000.0,
        size if size < 10.0 => 1_000.0,
        size if size < 100.0 => 100.0,
        size if size < 1_000.0 => 10.0,
        _ => 1.0,
    };
    (value * scale).round() / scale
}

impl Comparison {
    fn check(&self, known: &[(&str, Measure)]) -> Result<(), ConditionError> {
        let Self { name, unit, value, .. } = self;
        match known.iter().find(|(known, _)| known == name) {
            None => {
                let known: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                let (name, known) = (name.clone(), known.join(", "));
                Err(ConditionError::UnknownName { name, known })
            }
            Some((_, Measure::Time)) if unit.is_empty() => {
                let (name, units) = (name.clone(), Measure::Time.units().join(", "));
                Err(ConditionError::NoUnit { name, value: *value, units })
            }
            Some((_, measure)) if !unit.is_empty() && !measure.units().contains(unit) => {
                let with = match measure {
                    Measure::Time => "with one of ",
                    Measure::Number | Measure::Share => "without a unit, or with one of ",
                };
                let (name, units) = (name.clone(), [with, &measure.units().join(", ")].concat());
                Err(ConditionError::WrongUnit { name, unit, units })
            }
            Some(_) => Ok(()),
        }
    }

    fn met(&self, figure: Figure) -> Option<Met<'_>> {
        let whole = if self.unit == "%" && figure.whole > 0.0 { figure.whole } else { 1.0 };
        let measured = figure.value / whole;
        let scale = scale(self.unit);
        let met = Met {
            name: &self.name,
            measured: measured / scale,
            // The number as typed: division gives another.
            limit: (self.value / scale * 1e9).round() / 1e9,
            unit: self.unit,
        };
        self.holds(measured).then_some(met)
    }

    fn holds(&self, measured: f64) -> bool {
        match self.operator {
            Operator::Above => measured > self.value,
            Operator::AtLeast => measured >= self.value,
            Operator::Below => measured < self.value,
            Operator::AtMost => measured <= self.value,
            Operator::Equal => measured == self.value,
            Operator::Unequal => measured != self.value,
        }
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let term = |term: &str| term.split("&&").map(comparison).collect();
        Ok(Self { terms: text.split("||").map(term).collect::<Result<_, _>>()? })
    }
}

fn comparison(text: &str) -> Result<Comparison, ConditionError> {
    // The longer operators first: ">=" also begins with ">".
    const OPERATORS: [(&str, Operator); 6] = [
        (">=", Operator::AtLeast),
        ("<=", Operator::AtMost),
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        (">", Operator::Above),
        ("<", Operator::Below),
    ];
    let split = |(sign, operator): &(&'static str, Operator)| {
        let (name, value) = text.split_once(sign)?;
        Some((name.trim(), *operator, value.trim()))
    };
    let found = OPERATORS.iter().find_map(split).filter(|(name, ..)| !name.is_empty());
    let (name, operator, value) =
        found.ok_or_else(|| ConditionError::NoOperator(text.trim().into()))?;
    let (value, unit) = quantity(value).ok_or_else(|| ConditionError::BadValue(value.into()))?;
    Ok(Comparison { name: name.into(), operator, value, unit })
}

/// The value, and its unit.
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let found =
        UNITS.iter().find_map(|&(unit, scale)| Some((text.strip_suffix(unit)?, scale, unit)));
    let (number, scale, unit) = found.unwrap_or((text, 1.0, ""));
    let digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value: f64 = number.parse().ok().filter(|_| digits)?;
    Some((value * scale, unit))
}

/// Factor of a unit.
fn scale(unit: &str) -> f64 {
    UNITS.iter().find(|(known, _)| *known == unit).map_or(1.0, |(_, scale)| *scale)
}

const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("%", 0.01),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
];

#[cfg(test)]
mod tests;
