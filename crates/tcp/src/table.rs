//! Where a stack keeps its flows: the one table that finds a segment's record, and the records
//! that are not connections.

pub mod secrets;

pub use secrets::{Key, Secrets};
