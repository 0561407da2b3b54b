//! Ports as numbers: ranges to draw from, sets as bits, and the order in which a search visits
//! them. The protocols know which ports are in use.

mod range;
mod set;

pub use self::range::{Lane, PortRange, Words};
pub use self::set::{Drawable, PortBits, ReservedPorts};

#[cfg(test)]
mod tests;
