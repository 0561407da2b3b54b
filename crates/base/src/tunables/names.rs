//! Names of tunables and groups, and similar names to a typed one.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::Table;
use super::error::InvalidTunable;
use super::info::{Name, Reading, TunableInfo};

/// A name that sets several tunables at once, because another system has one setting where Whimbrel
/// has several.
#[derive(Debug)]
pub struct TunableGroup {
    /// The names by which it can be set.
    pub names: &'static [Name],
    /// The fields of its tunables.
    pub fields: &'static [&'static str],
    /// Distribution of a value.
    pub sharing: Sharing,
    /// Description in one line.
    pub help: &'static str,
}

/// Distribution of a group's value over its tunables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// One value for each, with blanks, a comma or a hyphen between them.
    Each,
    /// One value for all.
    Same,
    /// One value for all, or one of these words, which has a value for each.
    Words(&'static [(&'static str, &'static [&'static str])]),
    /// Three ascending numbers with blanks between them: least, default, most. The first is the
    /// size that Linux guarantees a socket when memory is short; the tunables take the others in
    /// their order.
    Ascending,
    /// A number, decimal or hexadecimal after `0x`, of which each tunable has one bit.
    Bits(&'static [u32]),
}

/// Target of a name.
pub(super) enum NameTarget<T: 'static> {
    One(&'static TunableInfo<T>, Reading),
    Group(&'static TunableGroup, Reading),
}

impl<T: Table> NameTarget<T> {
    /// Returns the target of `name`. `net.ipv4.` may be left out.
    pub(super) fn find(text: &str) -> Option<Self> {
        let is = |name: &Name| {
            name.text == text || name.text.strip_prefix("net.ipv4.").is_some_and(|it| it == text)
        };
        let one = T::tunables().iter().find_map(|info| {
            let mut names = core::iter::once(&info.name).chain(info.aliases);
            let reading = names.find(|name| is(name)).map(|name| name.reading);
            let reading = reading.or_else(|| (info.field == text).then_some(info.name.reading))?;
            Some(Self::One(info, reading))
        });
        one.or_else(|| {
            T::groups().iter().find_map(|group| {
                let name = group.names.iter().find(|name| is(name))?;
                Some(Self::Group(group, name.reading))
            })
        })
    }

    /// Sets the target, named `name`, to `value`.
    pub(super) fn set(
        &self,
        tunables: &mut T,
        name: &str,
        value: &str,
    ) -> Result<(), InvalidTunable> {
        match self {
            Self::One(info, reading) => set_one(tunables, info, Given { name, value }, *reading),
            Self::Group(group, reading) => {
                if group.sharing == Sharing::Ascending && !is_ascending(value) {
                    let last = group.members::<T>().last();
                    let wrong = |info| InvalidTunable::new(info, name, value, Ordering::Equal);
                    return last.map_or(Ok(()), |info| Err(wrong(info)));
                }
                if let Sharing::Bits(bits) = group.sharing {
                    return group.set_bits(tunables, bits, Given { name, value });
                }
                let mut parts = group.share(value);
                for info in group.members() {
                    // A missing value is an error, as is one too many.
                    let value = parts.next().unwrap_or_default();
                    set_one(tunables, info, Given { name, value }, *reading)?;
                }
                match (group.sharing, parts.next(), group.members::<T>().last()) {
                    (Sharing::Each, Some(_), Some(info)) => {
                        Err(InvalidTunable::new(info, name, value, Ordering::Equal))
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Returns its value or values, as typed.
    pub(super) fn value(&self, tunables: &T) -> String {
        match self {
            Self::One(info, _) => info.value(tunables),
            Self::Group(group, _) => {
                let mut values: Vec<_> =
                    group.members::<T>().map(|info| info.value(tunables)).collect();
                if let Sharing::Bits(bits) = group.sharing {
                    let on = values.iter().zip(bits).filter(|(value, _)| *value == "on");
                    return on.map(|(_, bit)| bit).sum::<u32>().to_string();
                }
                if matches!(group.sharing, Sharing::Same | Sharing::Words(_)) {
                    values.dedup();
                }
                values.join(" ")
            }
        }
    }
}

impl TunableGroup {
    /// Iterates over its tunables in the table `T`.
    pub fn members<T: Table>(&self) -> impl Iterator<Item = &'static TunableInfo<T>> {
        self.fields.iter().filter_map(|field| find_one(field))
    }

    fn share<'a>(&self, value: &'a str) -> impl Iterator<Item = &'a str> {
        let separates = |c: char| c.is_whitespace() || c == ',' || c == '-';
        let (mut each, mut same, mut words) = (None, None, None);
        match self.sharing {
            Sharing::Each => each = Some((value, 0)),
            Sharing::Ascending => each = Some((value, 1)),
            Sharing::Same | Sharing::Bits(_) => same = Some(core::iter::repeat(value)),
            Sharing::Words(table) => match table.iter().find(|(word, _)| *word == value) {
                Some((_, values)) => words = Some(values.iter().copied()),
                None => same = Some(core::iter::repeat(value)),
            },
        }
        let parts = |(value, skip): (&'a str, usize)| {
            value.split(separates).filter(|part| !part.is_empty()).skip(skip)
        };
        let words = words.into_iter().flatten();
        each.map(parts).into_iter().flatten().chain(words).chain(same.into_iter().flatten())
    }
}

impl TunableGroup {
    /// Switches each on or off by its bit in the number.
    fn set_bits<T: Table>(
        &self,
        tunables: &mut T,
        bits: &[u32],
        Given { name, value }: Given<'_>,
    ) -> Result<(), InvalidTunable> {
        let hex = value.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
        let number = hex.unwrap_or_else(|| value.parse());
        let known: u32 = bits.iter().sum();
        for (info, bit) in self.members().zip(bits) {
            let Some(number) = number.as_ref().ok().filter(|number| **number & !known == 0) else {
                return Err(InvalidTunable::new(info, name, value, Ordering::Equal));
            };
            let value = if number & bit != 0 { "on" } else { "off" };
            set_one(tunables, info, Given { name, value }, Reading::Same)?;
        }
        Ok(())
    }
}

/// True if these are three ascending numbers.
fn is_ascending(value: &str) -> bool {
    let parts: Option<Vec<u64>> = value.split_whitespace().map(|part| part.parse().ok()).collect();
    parts.is_some_and(|parts| parts.len() == 3 && parts.is_sorted())
}

/// Returns the tunable with this name, field or alias.
pub(super) fn find_one<T: Table>(name: &str) -> Option<&'static TunableInfo<T>> {
    match NameTarget::find(name)? {
        NameTarget::One(info, _) => Some(info),
        NameTarget::Group(..) => None,
    }
}

/// Returns up to three of `names` similar to `typed`, the nearest first: those that contain it,
/// then those with the fewest changed letters. Each name is paired with the name to display.
pub fn names_like<'n>(
    typed: &str,
    names: impl IntoIterator<Item = (&'n str, &'n str)>,
) -> Vec<&'n str> {
    let typed = typed.to_ascii_lowercase();
    let limit = typed.len() / 3 + 1;
    let distance = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let last = lower.rsplit('.').next().unwrap_or_default();
        if typed.len() > 2 && lower.contains(&typed) {
            return Some(1);
        }
        let least = changes(&typed, &lower).min(changes(&typed, last) + 1);
        (least <= limit).then_some(least)
    };
    let near = names.into_iter().filter_map(|(name, shown)| Some((distance(name)?, shown)));
    let mut near: Vec<_> = near.collect();
    near.sort_by_key(|(distance, _)| *distance);
    let mut shown = Vec::new();
    for (_, name) in near {
        if shown.len() < 3 && !shown.contains(&name) {
            shown.push(name);
        }
    }
    shown
}

/// Returns the names of tunables similar to `typed`.
pub(super) fn near<T: Table>(typed: &str) -> Vec<&'static str> {
    names_like(typed, every_name::<T>())
}

/// Iterates over all names, each with the name to display: for a field the tunable's own name.
fn every_name<T: Table>() -> impl Iterator<Item = (&'static str, &'static str)> {
    let ones = T::tunables().iter().flat_map(|info| {
        let own = [info.name.text, info.field].map(|name| (name, info.name.text));
        own.into_iter().chain(info.aliases.iter().map(|name| (name.text, name.text)))
    });
    let groups = T::groups().iter().flat_map(|group| group.names);
    ones.chain(groups.map(|name| (name.text, name.text)))
}

/// Returns the least number of bytes to insert, remove or replace (Levenshtein).
fn changes(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(to.bytes()) {
            let above = *cell;
            left = (diagonal + usize::from(a != b)).min(above + 1).min(left + 1);
            diagonal = above;
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

struct Given<'a> {
    name: &'a str,
    value: &'a str,
}

fn set_one<T: Table>(
    tunables: &mut T,
    info: &TunableInfo<T>,
    given: Given<'_>,
    reading: Reading,
) -> Result<(), InvalidTunable> {
    let invalid = |place| InvalidTunable::new(info, given.name, given.value, place);
    (info.write)(tunables, given.value, reading).ok_or_else(|| invalid(Ordering::Equal))?;
    match info.place(tunables) {
        Ordering::Equal => Ok(()),
        place => Err(invalid(place)),
    }
}
