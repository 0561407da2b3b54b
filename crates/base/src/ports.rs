//! Ports as numbers: ranges to draw from, sets as bits, and the stretches in which a search runs
//! through them. Who has a port in use is known to the protocol it belongs to.

mod range;
mod set;

pub use self::range::{Lane, PortRange, Words};
pub use self::set::{Drawable, PortBits, ReservedPorts};

#[cfg(test)]
mod tests;
