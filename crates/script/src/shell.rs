//! What shell lines in packet scripts mean to a host: a table. Nothing is executed.
//!
//! Foreign scripts set kernel variables, flush caches, count sockets and drop connections by
//! programs of their system. Each line that is known becomes acts; one that is not makes its
//! script unsupported, and is told in full.

mod commands;
mod count;
mod sysctl;
mod words;

pub use sysctl::system_of;

use alloc::string::String;
use alloc::vec::Vec;

use super::host::{Administration, SocketFilter};

/// What a line asks of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShellAct {
    /// Set a variable of the kernel, by the name that it has there.
    Set {
        /// Linux' name of the setting, as in `net.ipv4.tcp_sack`.
        name: String,
        /// As it was typed.
        value: String,
    },
    /// Nothing that could be observed here.
    NoEffect,
    /// The number of sockets must be right.
    Count {
        /// The sockets that are counted.
        filter: SocketFilter,
        /// How many there must be.
        expected: HowMany,
    },
    /// Something that the host's administrator does.
    Administer(Administration),
}

/// What a count must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HowMany {
    /// There are so many, no more and no fewer.
    Exactly(usize),
    /// There is any other number of them.
    NotExactly(usize),
    /// So many or more.
    AtLeast(usize),
    /// So many or fewer.
    AtMost(usize),
}

impl HowMany {
    /// True if `count` is right.
    pub const fn is_met(self, count: usize) -> bool {
        match self {
            Self::Exactly(number) => count == number,
            Self::NotExactly(number) => count != number,
            Self::AtLeast(number) => count >= number,
            Self::AtMost(number) => count <= number,
        }
    }

    /// What `!` in front of a command makes of it.
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

/// A line that no table knows.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not known")]
pub struct UnsupportedLine(pub String);

/// The acts of all lines in `text`, in order.
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
