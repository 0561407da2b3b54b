//! The internet layer of one host: its addresses and routes, packets in, headers out.

mod addresses;
mod counters;
mod icmp;
mod input;
mod output;
mod routes;

pub use addresses::{Addresses, PathClass};
pub use counters::{FrameDrop, IpCounters};
pub use icmp::EchoReply;
pub(crate) use input::{Arrival, Arrived, FlowKey};
pub(crate) use output::TcpOut;
pub use routes::Routes;

use crate::Capabilities;
use crate::link::Link;

/// What a host is to its networks.
#[derive(Debug)]
pub struct Host {
    /// What the device can do.
    pub capabilities: Capabilities,
    /// This host's addresses.
    pub addresses: Addresses,
    /// Where packets go.
    pub routes: Routes,
    /// What happened to packets that never became segments.
    pub counters: IpCounters,
    /// Its Ethernet, if the device has one.
    pub(crate) link: Option<Link>,
}
