//! What is wrong with what was typed after `--wire`, in the terms of its kind.

use std::fmt;

use super::EXAMPLE;
use crate::config::ConfigError;

/// Why what was typed means no wire.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// What was given has no colon, so that it names no kind of wire.
    #[error("wire {0:?} names no kind: write KIND:TARGET, as in {EXAMPLE}")]
    NoKind(String),
    /// A kind that can stand alone, without its colon.
    #[error("wire {0:?} has no colon: give {0}:")]
    NoColon(String),
    /// A kind that is none, and those that there are.
    #[error("wire kind {0:?} is unknown; this version has {1}, as in {EXAMPLE}")]
    UnknownKind(String, String),
    /// A kind of a later version, and those that there are.
    #[error("wire kind {0}: is planned; this version has only {1}, as in {EXAMPLE}")]
    NotBuilt(String, String),
    /// Nothing follows the colon where this kind wants a name.
    #[error("{0} needs {target}, as in {example}", target = .0.target, example = .0.example)]
    NoTarget(&'static Kind),
    /// Not of the form `key=value`.
    #[error("{1:?} is no key=value; {0} has the keys {keys}, as in {example}", keys = .0.key_list(), example = .0.example)]
    NoValue(&'static Kind, String),
    /// A key that is none.
    #[error("key {1:?} is unknown; {0} has the keys {keys}, as in {example}", keys = .0.key_list(), example = .0.example)]
    UnknownKey(&'static Kind, String),
    /// A value out of its key's range.
    #[error("{key}={value}: give {allowed}")]
    BadValue {
        /// The key of the pair that was given.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// What is allowed, with an example.
        allowed: &'static str,
    },
    /// A key that must not repeat.
    #[error("{0} is given twice: only addr, host and gw may repeat")]
    Repeated(&'static str),
    /// Something follows `kernel:`, which takes nothing.
    #[error("kernel:{0} says too much: kernel: stands alone, the kernel knows its addresses")]
    KernelTarget(String),
    /// What stands behind `mem:` describes no link.
    #[error("mem: {0}")]
    Link(#[from] whimbrel_link::ConfigError),
    /// Values that are good alone and not together.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A kind of wire. Shown as it is typed: `tun:`.
#[derive(PartialEq, Eq, Debug)]
pub struct Kind {
    /// As it is typed, without its colon.
    pub(super) name: &'static str,
    /// What stands behind the colon.
    pub(super) target: &'static str,
    /// What may stand behind that, each with a value.
    pub(super) keys: &'static [&'static str],
    /// A whole wire of the kind.
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

    /// Its keys, for people.
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
