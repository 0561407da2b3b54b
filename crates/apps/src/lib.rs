//! Applications as state machines: octets in, octets out, and no IO of their own.
//!
//! Servers ([`http::HttpServer`], [`PeerServer`]) and loads ([`Load`], [`Bulk`]) are written over a
//! small [`Transport`], which a shard is, and which the kernel's sockets can be: the same machine
//! runs on a shard's own thread, in a simulated world in virtual time, and over the kernel as the
//! baseline to compare with. Time is an argument, so a run can be repeated to the octet.
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bulk;
pub mod condition;
mod direction;
pub mod http;
pub mod idle;
pub mod iperf3;
pub mod iperf3_server;
pub mod load;
pub mod pace;
pub mod part;
pub mod peer;
mod reception;
pub mod record;
pub mod transport;

pub use bulk::Bulk;
pub use condition::Condition;
pub use load::Load;
pub use pace::Pace;
pub use part::Part;
pub use peer::PeerServer;
pub use record::Record;
pub use transport::{ConnError, Model, Reading, Transport, TransportEvent};
