//! Datagrams as they pass between the host, its sockets and their applications.

use bytes::Bytes;
use whimbrel_wire::{Endpoint, TrafficClass};

/// A datagram that arrived, lent for the length of one call.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// Who sent it; port 0 wants no answer (RFC 768).
    pub from: Endpoint,
    /// Which address and port of this host it was sent to.
    pub to: Endpoint,
    /// The bytes that it carries, without its header.
    pub data: &'a [u8],
    /// Its type of service or traffic class.
    pub class: TrafficClass,
    /// Its time to live or hop limit.
    pub hop_limit: u8,
}

/// A datagram for its application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// Who sent it; port 0 wants no answer (RFC 768).
    pub from: Endpoint,
    /// Which address and port of this host it was sent to. RFC 1122 4.1.3.5: "its specific-destination
    /// address MUST be passed up to the application layer."
    pub to: Endpoint,
    /// What it carries, in memory that holds nothing else.
    pub data: Bytes,
    /// Its type of service or traffic class.
    pub class: TrafficClass,
    /// Its time to live or hop limit.
    pub hop_limit: u8,
}

impl Received {
    /// A datagram to be kept: of what was lent, its own copy.
    pub(crate) fn of(arrived: &Arrived<'_>) -> Self {
        let Arrived { from, to, data, class, hop_limit } = *arrived;
        Self { from, to, data: Bytes::copy_from_slice(data), class, hop_limit }
    }
}

/// A datagram on its way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutgoingDatagram {
    /// Which address and port of this host it is sent from.
    pub from: Endpoint,
    /// Whom it is for.
    pub to: Endpoint,
    /// The bytes that it carries, without its header.
    pub data: Bytes,
    /// If `data` exceed this, they are those of several datagrams of so many bytes each, the last perhaps of
    /// fewer; 0: of one.
    pub segment: u16,
    /// What its packets say, and whether there may be several.
    pub options: SendOptions,
}

impl OutgoingDatagram {
    /// The most datagrams that are handed over as one (Linux' `UDP_MAX_SEGMENTS` of old).
    pub const MOST_SEGMENTS: usize = 64;

    /// How many datagrams it is.
    pub fn segments(&self) -> usize {
        match usize::from(self.segment) {
            0 => 1,
            segment => self.data.len().div_ceil(segment).max(1),
        }
    }
}

/// What the packets of a datagram say beside its ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SendOptions {
    /// Time to live or hop limit; `None`: the stack's usual one.
    pub hop_limit: Option<u8>,
    /// Type of service or traffic class. Its two low bits are ECN's, and leave as they are (RFC 8085
    /// 3.1.7: it is the application's to react).
    pub class: TrafficClass,
    /// What becomes of a datagram that the path does not carry whole.
    pub fragmenting: Fragmenting,
}

impl SendOptions {
    /// What a socket has that asked for nothing.
    pub const USUAL: Self =
        Self { hop_limit: None, class: TrafficClass(0), fragmenting: Fragmenting::Allowed };
}

/// What becomes of a datagram that is larger than the path's MTU.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fragmenting {
    /// It leaves in fragments; one that fits leaves whole, with Don't Fragment set, so that a lesser
    /// path MTU is heard of (Linux' `IP_PMTUDISC_WANT`). Towards an IPv4 path that carries less than 552 bytes
    /// it leaves without, in packets of 552.
    #[default]
    Allowed,
    /// It is refused, with an error that says what the path carries (`IP_PMTUDISC_DO`, RFC 8085 3.2). Of
    /// several that are handed over at once each is compared by itself.
    Refused,
}

/// What a datagram that waits takes beside its data, bytes: its place in a queue that is half empty,
/// and what an allocator adds.
pub(crate) const OVERHEAD: usize = 2 * size_of::<Received>() + 32;
