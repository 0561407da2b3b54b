//! Tunables as they are named and typed.

use alloc::string::String;
use alloc::vec::Vec;

use whimbrel_base::tunables::{self, TunableError};

use super::{TunableInfo, Tunables};

impl Tunables {
    /// Sets the tunable, or the group, that has this name, alias or field name, to what `value`
    /// means: `60s`, `200ms`, `64k`, `on`, a policy's value. If it fails, nothing is changed.
    ///
    /// What concerns several tunables is left to [`Tunables::validate`], so that they can be set
    /// one after the other.
    pub fn set_by_name(&mut self, name: &str, value: &str) -> Result<(), TunableError> {
        tunables::set_by_name(self, name, value)
    }

    /// The tunables that [`Tunables::set_by_name`] would set under this name: one, those of a group,
    /// or none.
    pub fn named(name: &str) -> Vec<&'static TunableInfo> {
        tunables::named(name)
    }

    /// The value of the tunable, or the values of the group, with this name, as it would be typed.
    pub fn value_of(&self, name: &str) -> Option<String> {
        tunables::value_of(self, name)
    }
}
