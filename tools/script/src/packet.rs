//! Packets between script and wire: written ones become bytes, and the host's are judged.
//!
//! ```text
//!  script                     live
//!  < . 1:1001(1000) ack 1 --flow (ISNs, timestamps)--> build --> bytes
//!  > . 1:1(0) ack 1001    <--flow--  judge  <-- Segment::parse -- bytes
//! ```
//!
//! Numbers in a script count from the ISNs, and the host's ISN is its own choice: [`flow`] knows
//! both. A peer's packet is sent as written, right or wrong.

pub mod build;
pub mod flow;
pub mod icmp;
pub mod judge;
pub mod notation;
pub mod options;
pub mod rule;
pub mod segment;

pub use flow::{FlowState, Flows};
pub use judge::{Fit, Mismatch};
pub use rule::{Mode, Rule, Rules};
pub use segment::Segment;
