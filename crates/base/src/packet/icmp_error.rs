//! The content of ICMP errors, for all families and transports.

/// Content of an ICMP error about a packet of this host, for both families.
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
    /// The packet exceeds the MTU of a link on the path.
    TooBig {
        /// MTU of the link in bytes, as reported by the router and accepted by the caller. For IPv4
        /// it may be less than [`LEAST_PATH_MTU_V4`].
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
    /// A router of a source route does not exist (`EOPNOTSUPP`).
    SourceRouteFailed,
    /// The hop limit ran out (`EHOSTUNREACH`).
    TimeExceeded,
    /// Fragments did not all arrive in time (`EHOSTUNREACH`).
    FragmentsLost,
    /// A host or router did not understand the header (`EPROTO`).
    ParameterProblem,
    /// The network has no such destination or forbids it: a hard error that did not end an
    /// established connection (`EHOSTUNREACH`).
    Prohibited,
    /// The peer's host claims to have no such port: a hard error likewise (`ECONNREFUSED`).
    Refused,
    /// The peer's host claims not to support TCP: a hard error likewise (`ENOPROTOOPT`).
    NoTcp,
}

/// Least path MTU that is accepted for IPv4, in bytes (Linux's `net.ipv4.route.min_pmtu`). On a
/// smaller path, packets of this size are sent without Don't Fragment (RFC 1191 3: "The host may
/// either reduce the size of the datagrams it is sending along the path, or cease setting the Don't
/// Fragment bit"). RFC 791 promises only 68, and segments of 28 bytes would serve attackers.
pub const LEAST_PATH_MTU_V4: u16 = 552;
