//! Which cases of the lab turn on which tunables: with the old value they fail, with another they do not.

use whimbrel_lab::CASES;
use whimbrel_tcp::tunables::TunableInfo;

/// The names of the cases that turn on a tunable.
pub(super) fn of(info: &TunableInfo) -> Vec<&'static str> {
    CASES.iter().filter(|case| case.turns_on(info.field)).map(|case| case.name).collect()
}

#[cfg(test)]
mod tests;
