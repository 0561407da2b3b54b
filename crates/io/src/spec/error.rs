//! Errors of a wire specification, in the terms of its kind.

use std::fmt;

use super::EXAMPLE;
use crate::config::ConfigError;

/// Reason why a text is no wire specification.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The text has no colon, so it names no kind of wire.
    #[error("wire {0:?} names no kind: write KIND:TARGET, as in {EXAMPLE}")]
    NoKind(String),
    /// The colon is missing after a kind that needs nothing else.
    #[error("wire {0:?} has no colon: give {0}:")]
    NoColon(String),
    /// The kind is unknown; the known ones.
    #[error("wire kind {0:?} is unknown; this version has {1}, as in {EXAMPLE}")]
    UnknownKind(String, String),
    /// The kind belongs to a later version; the known ones.
    #[error("wire kind {0}: is planned; this version has only {1}, as in {EXAMPLE}")]
    NotBuilt(String, String),
    /// No name follows the colon, and this kind needs one.
    #[error("{0} needs {target}, as in {example}", target = .0.target, example = .0.example)]
    NoTarget(&'static Kind),
    /// Not of the form `key=value`.
    #[error("{1:?} is no key=value; {0} has the keys {keys}, as in {example}", keys = .0.key_list(), example = .0.example)]
    NoValue(&'static Kind, String),
    /// The key is unknown.
    #[error("key {1:?} is unknown; {0} has the keys {keys}, as in {example}", keys = .0.key_list(), example = .0.example)]
    UnknownKey(&'static Kind, String),
    /// The value is not valid for its key.
    #[error("{key}={value}: give {allowed}")]
    BadValue {
        /// The key, as the specification names it.
        key: &'static str,
        /// The given value.
        value: String,
        /// Valid values, with an example.
        allowed: &'static str,
    },
    /// The key may not be repeated.
    #[error("{0} is given twice: only addr, host and gw may repeat")]
    Repeated(&'static str),
    /// Text follows `kernel:`, which has no target.
    #[error("kernel:{0} says too much: kernel: stands alone, the kernel knows its addresses")]
    KernelTarget(String),
    /// The text after `mem:` describes no link.
    #[error("mem: {0}")]
    Link(#[from] whimbrel_link::ConfigError),
    /// The values are valid alone, but not together.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A kind of wire. `Display` writes it as typed: `tun:`.
#[derive(PartialEq, Eq, Debug)]
pub struct Kind {
    /// Name, without the colon.
    pub(super) name: &'static str,
    /// Target after the colon.
    pub(super) target: &'static str,
    /// Keys of the options.
    pub(super) keys: &'static [&'static str],
    /// Example of a wire of this kind.
    pub(super) example: &'static str,
}

impl Kind {
    pub(super) const fn new(
        name: &'static str,
        target: &'static str,
        keys: &'static [&'static str],
        example: &'static str,
    ) -> Self {
        Self { name, target, keys, example }
    }

    /// Returns the list of its keys, for messages.
    pub(super) fn key_list(&self) -> String {
        match self.keys {
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
            [] => String::new(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)
    }
}
