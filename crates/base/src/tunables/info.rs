//! What is known of a tunable: for reference pages, messages, and whoever sets it by name.

use alloc::string::String;
use core::cmp::Ordering;
use core::ops::RangeInclusive;

use super::Table;

/// One tunable of the table `T`.
#[derive(Debug)]
pub struct TunableInfo<T> {
    /// Its name: Linux' where it has one.
    pub name: Name,
    /// The field of the table, which is a name too.
    pub field: &'static str,
    /// What other systems call it.
    pub aliases: &'static [Name],
    /// What its values mean.
    pub unit: Unit,
    /// What the tunable rules, in a line for people.
    pub help: &'static str,
    /// Where it comes from, or empty.
    pub rfc: &'static str,
    /// What goes wrong if it is too low, or off; or empty.
    pub too_low: &'static str,
    /// What goes wrong if it is too high, or on; or empty.
    pub too_high: &'static str,
    /// Prints its value, as it would be typed.
    pub read: fn(&T) -> String,
    /// Sets it to what a text means; `None` if that means nothing.
    pub write: fn(&mut T, &str, Reading) -> Option<()>,
    /// Its range, if it has one.
    pub limits: Option<Limits<T>>,
}

impl<T: Table> TunableInfo<T> {
    /// Its value, as it would be typed.
    pub fn value(&self, tunables: &T) -> String {
        (self.read)(tunables)
    }

    /// Its least and its greatest value, as they would be typed, if it has such.
    pub fn range(&self) -> Option<(String, String)> {
        self.limits.as_ref().map(|limits| ((limits.least)(), (limits.most)()))
    }

    /// Whether the value in `tunables` lies below, within (`Equal`) or above its range.
    pub(super) fn place(&self, tunables: &T) -> Ordering {
        self.limits.as_ref().map_or(Ordering::Equal, |limits| (limits.place)(tunables))
    }
}

/// The ends of a range.
#[derive(Debug)]
pub struct Limits<T> {
    /// Whether a table's value lies below, within (`Equal`) or above the range.
    pub place: fn(&T) -> Ordering,
    /// Prints the least value, as it would be typed.
    pub least: fn() -> String,
    /// Prints the greatest value that is taken.
    pub most: fn() -> String,
}

/// Where `value` lies: below, within (`Equal`) or above.
pub fn place<V: PartialOrd>(value: &V, range: &RangeInclusive<V>) -> Ordering {
    if value < range.start() {
        Ordering::Less
    } else if value > range.end() {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// A name, and what a value without a unit means under it.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// As it is typed.
    pub text: &'static str,
    /// How a value is read.
    pub reading: Reading,
}

/// How the value that is given under a name is read. A time with its unit (`60s`) needs no reading
/// but those that double.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// As the tunable's own values; a time needs its unit.
    Same,
    /// A number without a unit counts seconds.
    Seconds,
    /// A number without a unit counts milliseconds.
    Millis,
    /// A number without a unit counts microseconds.
    Micros,
    /// The tunable is an eighth more, and a number without a unit counts milliseconds.
    MillisAndEighth,
    /// Twice the tunable, and a number without a unit counts milliseconds.
    TwiceMillis,
    /// The value is twice what the tunable says.
    Twice,
    /// These words, beside the tunable's own values, mean those values.
    Words(&'static [(&'static str, &'static str)]),
}

impl Reading {
    /// What `text` means where another system has other words.
    pub fn plain(self, text: &str) -> &str {
        let Self::Words(words) = self else { return text };
        words.iter().find(|(theirs, _)| *theirs == text).map_or(text, |(_, ours)| ours)
    }
}

/// What the values of a tunable mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes: `65536`, `64k`, `1M`, `1G` (powers of 1,024).
    Octets,
    /// A time: `60s`, `200ms`, `1.125s`.
    Time,
    /// Nanoseconds: `256ns`, `4us`, `256`.
    Nanos,
    /// A number of what is named.
    Count(&'static str),
    /// A TCP port, 0 to 65,535.
    Port,
    /// Ports and stretches of ports: `8080,9000-9010`; or `none`.
    Ports,
    /// `on` or `off`; `1`, `0`, `true`, `false`, `yes`, `no` mean the same.
    Switch,
    /// One of these words.
    Choice(&'static [Choice]),
    /// When something is repeated: by a factor, or by a list of times.
    Schedule,
}

/// One value of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// As it is typed.
    pub name: &'static str,
    /// What the choice does, in a line for people.
    pub help: &'static str,
}
