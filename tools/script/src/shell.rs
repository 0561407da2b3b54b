//! Meaning of shell lines in packet scripts: a table. Nothing is executed.
//!
//! Foreign scripts set kernel variables, flush caches, count sockets and drop connections by
//! programs of their system. Each known line becomes acts; an unknown one makes its script
//! unsupported, and is reported in full.

mod commands;
mod count;
mod sysctl;
mod words;

pub use sysctl::system_of;

use alloc::string::String;
use alloc::vec::Vec;

use super::host::{Administration, SocketFilter};

/// Action of a shell line on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShellAct {
    /// Sets a kernel variable, by its own name.
    Set {
        /// Linux' name of the setting, as in `net.ipv4.tcp_sack`.
        name: String,
        /// Value, as typed.
        value: String,
    },
    /// No effect that could be observed here.
    NoEffect,
    /// Checks the number of sockets.
    Count {
        /// The sockets to count.
        filter: SocketFilter,
        /// Required number.
        expected: HowMany,
    },
    /// An administrator's action.
    Administer(Administration),
}

/// Required number of a count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HowMany {
    /// Exactly this number.
    Exactly(usize),
    /// Any other number.
    NotExactly(usize),
    /// This number or more.
    AtLeast(usize),
    /// This number or fewer.
    AtMost(usize),
}

impl HowMany {
    /// True if `count` satisfies it.
    pub const fn is_met(self, count: usize) -> bool {
        match self {
            Self::Exactly(number) => count == number,
            Self::NotExactly(number) => count != number,
            Self::AtLeast(number) => count >= number,
            Self::AtMost(number) => count <= number,
        }
    }

    /// The requirement after `!` in front of a command.
    const fn negated(self) -> Self {
        match self {
            Self::Exactly(number) => Self::NotExactly(number),
            Self::NotExactly(number) => Self::Exactly(number),
            Self::AtLeast(number) => match number.checked_sub(1) {
                Some(most) => Self::AtMost(most),
                // No number is less than 0.
                None => Self::AtLeast(usize::MAX),
            },
            Self::AtMost(number) => Self::AtLeast(number.saturating_add(1)),
        }
    }
}

impl core::fmt::Display for HowMany {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Exactly(number) => write!(f, "{number}"),
            Self::NotExactly(number) => write!(f, "not {number}"),
            Self::AtLeast(number) => write!(f, "{number} or more"),
            Self::AtMost(number) => write!(f, "{number} or fewer"),
        }
    }
}

/// A line in none of the tables.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not known")]
pub struct UnsupportedLine(pub String);

/// Acts of all lines in `text`, in order.
pub fn read(text: &str) -> Result<Vec<ShellAct>, UnsupportedLine> {
    let mut acts = Vec::new();
    for line in words::lines(text)? {
        let unsupported = || UnsupportedLine(line.text.clone());
        acts.extend(commands::acts(&line).ok_or_else(unsupported)?);
    }
    Ok(acts)
}

#[cfg(test)]
mod tests;
