//! Reasons for which a step cannot become a call.

use alloc::string::{String, ToString};

/// Reason for which a step cannot become a call.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LowerError {
    /// No host here supports it: the script is skipped.
    #[error("{0} is not supported")]
    Unsupported(String),
    /// It is invalid: the script is wrong.
    #[error("{0}")]
    Invalid(String),
}

pub(super) fn unsupported(what: &str) -> LowerError {
    LowerError::Unsupported(what.to_string())
}

pub(super) fn invalid(what: &str) -> LowerError {
    LowerError::Invalid(what.to_string())
}
