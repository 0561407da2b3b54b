//! Datagrams on their way between the host, its sockets and their applications.

use bytes::Bytes;
use whimbrel_wire::{Endpoint, TrafficClass};

/// A datagram that arrived, borrowed for one call.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// Sender; port 0 expects no reply (RFC 768).
    pub from: Endpoint,
    /// Destination: address and port of this host.
    pub to: Endpoint,
    /// The bytes that it carries, without its header.
    pub data: &'a [u8],
    /// Its type of service or traffic class.
    pub class: TrafficClass,
    /// Its time to live or hop limit.
    pub hop_limit: u8,
    /// True if its packet was not to be cut on the way: DF of its IPv4 header, if it arrived whole; always
    /// over IPv6.
    pub dont_fragment: bool,
}

/// A datagram for its application.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Received {
    /// Sender; port 0 expects no reply (RFC 768).
    pub from: Endpoint,
    /// Destination: address and port of this host. RFC 1122 4.1.3.5: "its specific-destination
    /// address MUST be passed up to the application layer."
    pub to: Endpoint,
    /// Payload, in its own memory.
    pub data: Bytes,
    /// Its type of service or traffic class.
    pub class: TrafficClass,
    /// Its time to live or hop limit.
    pub hop_limit: u8,
    /// True if its packet was not to be cut on the way: DF of its IPv4 header, if it arrived whole; always
    /// over IPv6.
    pub dont_fragment: bool,
}

impl Received {
    /// Copies a borrowed datagram.
    pub fn of(arrived: &Arrived<'_>) -> Self {
        let Arrived { from, to, data, class, hop_limit, dont_fragment } = *arrived;
        Self { from, to, data: Bytes::copy_from_slice(data), class, hop_limit, dont_fragment }
    }
}

/// A datagram to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutgoingDatagram {
    /// Source: address and port of this host.
    pub from: Endpoint,
    /// Destination.
    pub to: Endpoint,
    /// The bytes that it carries, without its header.
    pub data: Bytes,
    /// Size in bytes of each of several datagrams in `data`, the last of which may be shorter, if
    /// `data` exceeds it; 0: one datagram.
    pub segment: u16,
    /// Options of its packets.
    pub options: SendOptions,
}

impl OutgoingDatagram {
    /// Limit of datagrams passed as one (Linux's former `UDP_MAX_SEGMENTS`).
    pub const MOST_SEGMENTS: usize = 64;

    /// Returns the number of datagrams.
    pub fn segments(&self) -> usize {
        match usize::from(self.segment) {
            0 => 1,
            segment => self.data.len().div_ceil(segment).max(1),
        }
    }
}

/// Options of a datagram's packets.
///
/// ```
/// use whimbrel_udp::{Fragmenting, SendOptions};
///
/// let probe = SendOptions::new().with_hop_limit(1).with_fragmenting(Fragmenting::Refused);
/// # assert_eq!(probe.hop_limit, Some(1));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct SendOptions {
    /// Time to live or hop limit; `None`: the stack's default.
    pub hop_limit: Option<u8>,
    /// Type of service or traffic class. Its two low bits are the ECN field, which is sent
    /// unchanged (RFC 8085 3.1.7: the application must react to congestion).
    pub class: TrafficClass,
    /// Treatment of a datagram that exceeds the path's MTU.
    pub fragmenting: Fragmenting,
}

impl SendOptions {
    /// Creates the default options of a socket.
    pub const fn new() -> Self {
        Self { hop_limit: None, class: TrafficClass(0), fragmenting: Fragmenting::Allowed }
    }

    /// Sets the time to live or hop limit.
    #[must_use]
    pub const fn with_hop_limit(mut self, hop_limit: u8) -> Self {
        self.hop_limit = Some(hop_limit);
        self
    }

    /// Sets the type of service or traffic class.
    #[must_use]
    pub const fn with_class(mut self, class: TrafficClass) -> Self {
        self.class = class;
        self
    }

    /// Sets the treatment of a datagram that exceeds the path's MTU.
    #[must_use]
    pub const fn with_fragmenting(mut self, fragmenting: Fragmenting) -> Self {
        self.fragmenting = fragmenting;
        self
    }
}

/// Treatment of a datagram that exceeds the path's MTU.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fragmenting {
    /// It is sent in fragments. A datagram that fits is sent whole, with Don't Fragment set, so
    /// that a smaller path MTU is reported (Linux's `IP_PMTUDISC_WANT`). On an IPv4 path of less
    /// than 552 bytes it is sent without that flag, in packets of 552.
    #[default]
    Allowed,
    /// It is refused, with an error that has the path's MTU (`IP_PMTUDISC_DO`, RFC 8085 3.2). Of
    /// several passed as one, each is checked by itself.
    Refused,
}

/// State of the host's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Less than 90 % of `mem.budget` are in use.
    Enough,
    /// 90 % or more: received datagrams are dropped.
    None,
}

/// Bytes that an allocator adds to the memory of a datagram and to the record by which it is shared.
pub(crate) const ALLOCATOR: usize = 64;
