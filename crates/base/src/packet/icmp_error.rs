//! The content of ICMP errors, for all families and transports.

/// The content of an ICMP error about one of our packets, for both families.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpError {
    /// Hard: the peer's host has no such port.
    Refused,
    /// Hard: the peer's host does not speak the protocol.
    NoTcp,
    /// Hard: the network has no such destination, or a router forbids it.
    Prohibited,
    /// Soft: it did not arrive, and may do so later.
    Soft(SoftError),
    /// It exceeds what a link on the path carries: an IP packet of this many bytes.
    TooBig {
        /// The link's MTU as the router said it, judged plausible by the caller. Of IPv4 it may be less than
        /// [`LEAST_PATH_MTU_V4`].
        mtu: u16,
    },
}

/// The reason that a router gave why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SoftError {
    /// No route to the peer's network (`ENETUNREACH`).
    NetworkUnreachable,
    /// The peer's host does not answer its router (`EHOSTUNREACH`).
    HostUnreachable,
    /// A router of a route that the sender chose is not there (`EOPNOTSUPP`).
    SourceRouteFailed,
    /// The hop limit ran out (`EHOSTUNREACH`).
    TimeExceeded,
    /// Fragments did not all come in time (`EHOSTUNREACH`).
    FragmentsLost,
    /// A host or router did not understand our header (`EPROTO`).
    ParameterProblem,
    /// The network has no such destination or forbids it: a hard error, which an established connection
    /// outlives (`EHOSTUNREACH`).
    Prohibited,
    /// The peer's host has no such port, it says: a hard error likewise (`ECONNREFUSED`).
    Refused,
    /// The peer's host does not speak TCP, it says: a hard error likewise (`ENOPROTOOPT`).
    NoTcp,
}

/// The least path MTU that is believed for IPv4, bytes (Linux' `net.ipv4.route.min_pmtu`). Towards a path
/// that carries less, packets of this size leave without Don't Fragment (RFC 1191 3: "The host may either
/// reduce the size of the datagrams it is sending along the path, or cease setting the Don't Fragment bit").
/// RFC 791 promises only 68, and segments of 28 bytes would serve forgers.
pub const LEAST_PATH_MTU_V4: u16 = 552;
