//! The sending half of a connection, its sequence space, its queue, its clock.

mod attempts;
mod buffer;
mod queue;
mod rtt;
mod sender;
mod sequence;

pub use attempts::SendTimer;
pub use buffer::SendBuffer;
pub use queue::SendQueue;
pub use rtt::RttEstimator;
pub use sender::{
    Acknowledged, Cork, Head, IncomingAck, Nagle, Order, PacedText, SendBounds, SendRange, Sender,
    make_mtu_probe, plan_mtu_probe, reports_duplicate, segments,
};
pub use sequence::{AckPlace, SendSequence};
