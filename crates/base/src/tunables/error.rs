//! Errors of tunables. Each message has the name, the value, the accepted values, and the remedy.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use super::Table;
use super::info::{TunableInfo, Unit};

/// Reason why a tunable could not be set.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunableError {
    /// No tunable has the name.
    #[error("no tunable is named {name:?}{}", Near(.near))]
    Unknown {
        /// The typed name.
        name: String,
        /// Similar names, the nearest first.
        near: Vec<&'static str>,
    },
    /// The value is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidTunable),
}

/// A value that a tunable may not have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{name}={value}: give {accepted}, as in {example}{consequence}")]
#[non_exhaustive]
pub struct InvalidTunable {
    /// The tunable, by the name that was used.
    pub name: String,
    /// The given value.
    pub value: String,
    /// The accepted values, with their unit.
    pub accepted: String,
    /// A setting that works.
    pub example: String,
    /// Consequence of the value, if known.
    pub consequence: Consequence,
}

impl InvalidTunable {
    /// Creates the error for `value`, given for `info` under `name`, which cannot be parsed or lies
    /// at `place` of its range.
    pub(super) fn new<T: Table>(
        info: &TunableInfo<T>,
        name: &str,
        value: &str,
        place: Ordering,
    ) -> Self {
        Self {
            name: if name == info.name.text {
                name.into()
            } else {
                alloc::format!("{name} ({})", info.name.text)
            },
            value: value.into(),
            accepted: accepted(info),
            example: alloc::format!("{}={}", info.name.text, info.value(&T::default())),
            consequence: Consequence(match place {
                Ordering::Less => info.too_low,
                Ordering::Equal => "",
                Ordering::Greater => info.too_high,
            }),
        }
    }
}

/// Consequence of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Consequence(pub &'static str);

impl fmt::Display for Consequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            text => write!(f, "; beyond that: {}", text.trim_end_matches('.')),
        }
    }
}

/// Describes what `info` accepts: "1 to 30 retransmissions".
fn accepted<T: Table>(info: &TunableInfo<T>) -> String {
    let range = match info.range() {
        Some((least, most)) => alloc::format!("{least} to {most}"),
        None => String::new(),
    };
    match info.unit {
        Unit::Bytes => alloc::format!("{range} bytes (k, M, G: powers of 1,024)"),
        Unit::Time => alloc::format!("a time from {range} (ns, us, ms, s, min, h)"),
        Unit::Nanos => range,
        Unit::Count(of) => alloc::format!("{range} {of}"),
        Unit::Port => alloc::format!("a port, {range}"),
        Unit::Ports => "up to 16 ports or stretches of them, as in 8080,9000-9010, or none".into(),
        Unit::Switch => "on or off".into(),
        Unit::Choice(choices) => {
            let names: Vec<_> = choices.iter().map(|choice| choice.name).collect();
            alloc::format!("one of {}", names.join(", "))
        }
        Unit::Schedule => {
            "a factor from x1 to x10, or up to 12 times from 1ms to 1h as in 1s,1s,2s".into()
        }
    }
}

struct Near<'a>(&'a [&'static str]);

impl fmt::Display for Near<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("; docs/reference/tunables.md describes them all"),
            names => write!(f, ": perhaps {}", names.join(", or ")),
        }
    }
}
