//! Macros for tunables: a table in source becomes a struct, and the functions to set each field by
//! name, to check it, and to describe it.
//!
//! [`tunables!`](crate::tunables!) makes the struct of a table; each protocol declares its own
//! tunables.

use alloc::vec::Vec;
use core::cmp::Ordering;

mod declare;
mod error;
mod info;
mod names;
mod policy;
mod reserved_ports;
mod value;

use self::names::{NameTarget, find_one};

pub use self::error::{Consequence, InvalidTunable, TunableError};
pub use self::info::{Choice, Limits, Name, Reading, TunableInfo, Unit, place};
pub use self::names::{Sharing, TunableGroup, names_like};
pub use self::policy::OPTION_ORDER;
pub use self::value::{Value, parse_time, print_time};
#[doc(hidden)]
pub use alloc::string::String;

/// A struct whose fields are tunables, as [`tunables!`](crate::tunables!) declares it.
pub trait Table: Clone + Default + 'static {
    /// Every tunable, in the order of the struct's fields.
    fn tunables() -> &'static [TunableInfo<Self>];

    /// Every group of them that has a name of its own.
    fn groups() -> &'static [TunableGroup];
}

/// Checks that every value lies in its range.
pub fn check_ranges<T: Table>(table: &T) -> Result<(), InvalidTunable> {
    for info in T::tunables() {
        let place = info.place(table);
        if place != Ordering::Equal {
            return Err(InvalidTunable::new(info, info.name.text, &info.value(table), place));
        }
    }
    Ok(())
}

/// Returns the error for two tunables that contradict each other: `value` of the one named `name`
/// is not `accepted`.
pub fn contradiction<T: Table>(name: &str, value: String, accepted: String) -> InvalidTunable {
    let example = match find_one::<T>(name) {
        Some(info) => alloc::format!("{name}={}", info.value(&T::default())),
        None => String::new(),
    };
    InvalidTunable { name: name.into(), value, accepted, example, consequence: Consequence("") }
}

/// Sets the tunable or group of this name, alias or field name to `value` as typed: `60s`, `200ms`,
/// `64k`, `on`, a policy's value. On failure nothing is changed.
pub fn set_by_name<T: Table>(table: &mut T, name: &str, value: &str) -> Result<(), TunableError> {
    let named = NameTarget::find(name)
        .ok_or_else(|| TunableError::Unknown { name: name.into(), near: names::near::<T>(name) })?;
    let mut changed = table.clone();
    named.set(&mut changed, name, value.trim())?;
    *table = changed;
    Ok(())
}

/// Returns the tunables that [`set_by_name`] would set under this name: one, those of a group, or
/// none.
pub fn named<T: Table>(name: &str) -> Vec<&'static TunableInfo<T>> {
    match NameTarget::find(name) {
        Some(NameTarget::One(info, _)) => alloc::vec![info],
        Some(NameTarget::Group(group, _)) => group.members().collect(),
        None => Vec::new(),
    }
}

/// Returns the value of the tunable, or the values of the group, with this name, as typed.
pub fn value_of<T: Table>(table: &T, name: &str) -> Option<String> {
    Some(NameTarget::<T>::find(name)?.value(table))
}
