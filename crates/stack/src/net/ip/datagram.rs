//! A message that leaves in one packet, or in several.

use bytes::Bytes;
use whimbrel_udp::Fragmenting;
use whimbrel_wire::{Address, Fragment, IpHeader, Protocol, TrafficClass};

use super::output::HOP_LIMIT;

/// A message with its transport header, and how much of it left already.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// From whom: this host, or whom it speaks for.
    pub(super) local: Address,
    pub(super) remote: Address,
    pub(super) protocol: Protocol,
    pub(super) class: TrafficClass,
    pub(super) hop_limit: u8,
    /// The permission to cut it, here or on the way.
    pub(super) fragmenting: Fragmenting,
    /// The rest, which did not leave yet.
    pub(super) payload: Bytes,
    /// The fragment to come, once the first of them left.
    pub(super) next: Option<Fragment>,
}

/// An ICMP or ICMPv6 message, by the family of whom it is for.
#[derive(Debug)]
pub(crate) struct IcmpDatagram {
    pub(crate) local: Address,
    pub(crate) remote: Address,
    pub(crate) hop_limit: u8,
    /// The permission to cut it, here or on the way.
    pub(crate) fragmenting: Fragmenting,
    /// The message with its header, its checksum in place.
    pub(crate) message: Bytes,
}

impl Datagram {
    /// The answer to a packet with this header, of the same protocol.
    pub(crate) fn answer(ip: &IpHeader, payload: Bytes) -> Self {
        Self {
            local: ip.dst,
            remote: ip.src,
            protocol: ip.protocol,
            // RFC 1349 5.1: the reply's type of service is that of the request.
            class: ip.traffic_class,
            hop_limit: HOP_LIMIT,
            fragmenting: Fragmenting::Allowed,
            payload,
            next: None,
        }
    }

    /// A whole message that is to leave.
    pub(crate) fn of_icmp(icmp: IcmpDatagram) -> Self {
        let IcmpDatagram { local, remote, hop_limit, fragmenting, message } = icmp;
        let protocol = if remote.is_v4() { Protocol::ICMP } else { Protocol::ICMPV6 };
        let (class, payload) = (TrafficClass::default(), message);
        Self { local, remote, protocol, class, hop_limit, fragmenting, payload, next: None }
    }

    /// True if all of it left.
    pub(crate) fn is_done(&self) -> bool {
        self.payload.is_empty()
    }

    /// The address that it is from.
    pub(crate) fn local(&self) -> &Address {
        &self.local
    }

    /// Bytes that did not leave yet.
    pub(crate) fn bytes(&self) -> usize {
        self.payload.len()
    }
}
