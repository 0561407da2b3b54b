//! The internet layer of one host: its addresses and routes, packets in, headers out.

mod addresses;
mod counters;
mod fragmentation;
mod icmp;
mod input;
mod output;
mod path_mtu;
mod reassembly;
mod routes;

pub use addresses::{Addresses, PathClass};
pub use counters::{FrameDrop, IpCounters};
pub use fragmentation::Datagram;
pub(crate) use fragmentation::Identifications;
pub(crate) use icmp::{ErrorBudget, ErrorOut, IcmpReport, RefusalReply};
pub(crate) use input::{Arrival, FlowKey, Input, Refused};
pub(crate) use output::{PlainOut, TcpOut};
pub(crate) use path_mtu::PathMtus;
pub(crate) use reassembly::{Abandoned, Bounds, Reassembly};
pub use routes::Routes;

use crate::Capabilities;
use crate::link::Link;

/// What a host is to its networks.
#[derive(Debug)]
pub struct Host {
    /// What the device can do.
    pub capabilities: Capabilities,
    /// The addresses of this host, numbered.
    pub addresses: Addresses,
    /// To which gateway packets go, by longest prefix.
    pub routes: Routes,
    /// What happened to packets that never became segments.
    pub counters: IpCounters,
    /// Fragments that wait for others.
    pub(crate) reassembly: Reassembly,
    /// Counters of packets that leave in fragments.
    pub(crate) identifications: Identifications,
    /// What paths were found to carry.
    pub(crate) path_mtus: PathMtus,
    /// How many ICMP errors may still be sent.
    pub(crate) error_budget: ErrorBudget,
    /// Its Ethernet, if the device has one.
    pub(crate) link: Option<Link>,
}
