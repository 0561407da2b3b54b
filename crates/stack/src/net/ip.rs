//! The internet layer of one host: its addresses and routes, packets in, headers out.

mod addresses;
mod arrival;
mod counters;
mod datagram;
mod flow_key;
mod fragmentation;
mod icmp;
mod input;
mod output;
mod path_mtu;
mod reassembly;
mod routes;
mod udp;
mod unreachable;

pub use addresses::{Addresses, PathClass};
pub(crate) use addresses::{check_prefix, is_link_local};
pub(crate) use arrival::{
    Arrival, DatagramReport, EchoReport, ErrorReport, IcmpReport, Input, RefusalReply, Refused,
    UdpArrival,
};
pub use counters::{FrameDrop, IpCounters};
pub use datagram::Datagram;
pub(crate) use datagram::IcmpDatagram;
pub(crate) use flow_key::FlowKey;
pub(crate) use fragmentation::Identifications;
pub(crate) use icmp::{ErrorBudget, ErrorOut};
pub(crate) use output::SegmentOut;
pub(crate) use path_mtu::{PathMtus, PathsSeen};
pub(crate) use reassembly::{Abandoned, Bounds, Reassembly};
pub use routes::Routes;
pub(crate) use routes::{is_within, network_of};
pub(crate) use udp::message_to_cut;
pub use unreachable::Unreachable;

use whimbrel_wire::EthernetHeader;

use crate::{Capabilities, Medium};

/// The internet layer of a host.
#[derive(Debug)]
pub struct IpLayer {
    /// Capabilities of the device.
    pub capabilities: Capabilities,
    /// The addresses of this host, numbered.
    pub addresses: Addresses,
    /// To which gateway packets go, by longest prefix.
    pub routes: Routes,
    /// Counters of packets that never became segments.
    pub counters: IpCounters,
    /// Fragments that wait for others.
    pub(crate) reassembly: Reassembly,
    /// Counters of packets that leave in fragments.
    pub(crate) identifications: Identifications,
    /// MTUs of paths.
    pub(crate) path_mtus: PathMtus,
    /// MTUs of paths by probes of segments (RFC 4821): guesses, which neither datagrams nor fragments follow.
    pub(crate) probed_mtus: PathMtus,
    /// MTUs of paths by reports about datagrams, which segments need not believe.
    pub(crate) datagram_mtus: PathMtus,
    /// MTUs of paths by reports about echo replies, which anybody can forge: nothing else believes them.
    pub(crate) reply_mtus: PathMtus,
    /// Number of ICMP errors that may still be sent.
    pub(crate) error_budget: ErrorBudget,
    /// Origin of the packets that are read now.
    pub(crate) origin: Origin,
}

/// Origin of a packet, which decides what addresses it may have (RFC 1122 3.2.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// From a wire: from another host, and for an address that this host has there.
    Wire,
    /// From this host itself: from and for any address of its own, those of loopback among them.
    Host,
}

impl IpLayer {
    /// Bytes in front of each IP header that leaves, for the link.
    pub(crate) fn link_header_len(&self) -> usize {
        match self.capabilities.medium {
            Medium::Ip => 0,
            Medium::Ethernet { .. } => EthernetHeader::LEN,
        }
    }
}
