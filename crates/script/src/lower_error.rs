//! Why a step of a script cannot become a call.

use alloc::string::{String, ToString};

/// Why a call cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// It has something that no host of ours has: the script is skipped.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// It makes no sense: the script is wrong.
    #[error("{0}")]
    Invalid(String),
}

pub(super) fn unsupported(what: &str) -> LowerError {
    LowerError::Unsupported(what.to_string())
}

pub(super) fn invalid(what: &str) -> LowerError {
    LowerError::Invalid(what.to_string())
}
