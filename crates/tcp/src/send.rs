//! The sending half of a connection, its sequence space, its buffer, its clock.

mod buffer;
mod rtt;
mod sender;
mod sequence;

pub use buffer::SendBuffer;
pub use rtt::RttEstimator;
pub use sender::{
    Cork, Head, Nagle, Piece, SendBounds, SendTimer, Sender, reports_duplicate, segments,
};
pub use sequence::{AckPlace, SendSequence};
