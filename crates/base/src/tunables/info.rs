//! Description of a tunable: for reference pages, messages, and setting it by name.

use alloc::string::String;
use core::cmp::Ordering;
use core::ops::RangeInclusive;

use super::Table;

/// One tunable of the table `T`.
#[derive(Debug)]
pub struct TunableInfo<T> {
    /// Name: Linux's if it has one.
    pub name: Name,
    /// Field of the table, which is a name too.
    pub field: &'static str,
    /// Names in other systems.
    pub aliases: &'static [Name],
    /// Meaning of its values.
    pub unit: Unit,
    /// Description in one line.
    pub help: &'static str,
    /// Source, such as an RFC; or empty.
    pub rfc: &'static str,
    /// Consequence of a value that is too low, or off; or empty.
    pub too_low: &'static str,
    /// Consequence of a value that is too high, or on; or empty.
    pub too_high: &'static str,
    /// Formats its value, as typed.
    pub read: fn(&T) -> String,
    /// Parses a text and sets the value; `None` if the text is invalid.
    pub write: fn(&mut T, &str, Reading) -> Option<()>,
    /// Its range, if it has one.
    pub limits: Option<Limits<T>>,
}

impl<T: Table> TunableInfo<T> {
    /// Returns its value, as typed.
    pub fn value(&self, tunables: &T) -> String {
        (self.read)(tunables)
    }

    /// Returns its least and greatest value, as typed, if it has a range.
    pub fn range(&self) -> Option<(String, String)> {
        self.limits.as_ref().map(|limits| ((limits.least)(), (limits.most)()))
    }

    /// Returns the place of its value in `tunables`: below, within (`Equal`) or above its range.
    pub(super) fn place(&self, tunables: &T) -> Ordering {
        self.limits.as_ref().map_or(Ordering::Equal, |limits| (limits.place)(tunables))
    }
}

/// Limits of a range.
#[derive(Debug)]
pub struct Limits<T> {
    /// Returns the place of a table's value: below, within (`Equal`) or above the range.
    pub place: fn(&T) -> Ordering,
    /// Formats the least value, as typed.
    pub least: fn() -> String,
    /// Formats the greatest value.
    pub most: fn() -> String,
}

/// Returns the place of `value`: below, within (`Equal`) or above the range.
pub fn place<V: PartialOrd>(value: &V, range: &RangeInclusive<V>) -> Ordering {
    if value < range.start() {
        Ordering::Less
    } else if value > range.end() {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// A name, and the reading of a value under it.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// The name, as typed.
    pub text: &'static str,
    /// Reading of a value.
    pub reading: Reading,
}

/// Reading of the value that is given under a name. A time with its unit (`60s`) is the same in all
/// readings but those that double.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// The tunable's own values; a time needs its unit.
    Same,
    /// A number without a unit is in seconds.
    Seconds,
    /// A number without a unit is in milliseconds.
    Millis,
    /// A number without a unit is in microseconds.
    Micros,
    /// The tunable is an eighth more, and a number without a unit is in milliseconds.
    MillisAndEighth,
    /// The value is twice the tunable, and a number without a unit is in milliseconds.
    TwiceMillis,
    /// The value is twice the tunable.
    Twice,
    /// These words mean the paired values, in addition to the tunable's own.
    Words(&'static [(&'static str, &'static str)]),
}

impl Reading {
    /// Translates another system's word to the tunable's own value.
    pub fn plain(self, text: &str) -> &str {
        let Self::Words(words) = self else { return text };
        words.iter().find(|(theirs, _)| *theirs == text).map_or(text, |(_, ours)| ours)
    }
}

/// Meaning of a tunable's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes: `65536`, `64k`, `1M`, `1G` (powers of 1,024).
    Bytes,
    /// A time: `60s`, `200ms`, `1.125s`.
    Time,
    /// Nanoseconds: `256ns`, `4us`, `256`.
    Nanos,
    /// A number of the named things.
    Count(&'static str),
    /// A TCP port, 0 to 65,535.
    Port,
    /// Ports and ranges of ports: `8080,9000-9010`; or `none`.
    Ports,
    /// `on` or `off`; `1`, `0`, `true`, `false`, `yes`, `no` mean the same.
    Switch,
    /// One of these words.
    Choice(&'static [Choice]),
    /// Times of repetitions: a factor, or a list of times.
    Schedule,
}

/// One value of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Name, as typed.
    pub name: &'static str,
    /// Description in one line.
    pub help: &'static str,
}
