//! Sources of response bodies that are not in memory.

use bytes::Bytes;

/// A response's body, read piece by piece as fast as the peer takes it.
pub trait BodySource: Send {
    /// The next bytes: at least one, at most `at_most`. Empty means the end; before the announced
    /// length that is an error, and the connection is reset.
    fn read(&mut self, at_most: usize) -> Result<Bytes, SourceError>;

    /// True if the next read is long work ([`TurnBudget`](crate::effort::TurnBudget)), which has a
    /// turn of its own.
    fn is_long(&self) -> bool {
        false
    }
}

/// Error of a source. The peer sees a reset, because a part of the body has been promised already;
/// the source itself should report the reason to its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the source of a response's body can no longer be read")]
pub struct SourceError;
