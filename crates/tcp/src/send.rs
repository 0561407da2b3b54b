//! The sending half of a connection: its sequence space, its buffer, its clock.

mod buffer;
mod rtt;
mod sequence;

pub use buffer::SendBuffer;
pub use rtt::RttEstimator;
pub use sequence::{AckPlace, SendSequence};
