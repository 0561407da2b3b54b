//! Where a stack keeps its flows: the one table that finds a segment's record, and the records
//! that are not connections.

pub mod identity;
pub mod ports;
pub mod secrets;

pub use identity::Identity;
pub use ports::{PortRange, Ports, PortsExhausted};
pub use secrets::{Key, Secrets};
