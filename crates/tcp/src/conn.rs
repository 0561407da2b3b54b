//! A connection: the record of a flow that carries data.

/// The half of a connection that exists while something is buffered.
#[derive(Debug, Default)]
pub struct Cold {}

impl Cold {
    /// Lets go of everything it holds, and keeps its room.
    pub(crate) fn reset(&mut self) {}
}
