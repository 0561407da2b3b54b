//! Errors of sockets. Each message has the limit, the value and the remedy.

use whimbrel_wire::Endpoint;

/// Reason why a socket cannot have a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket has the port.
    #[error(
        "address in use: another UDP socket is at {0}; choose another port, close it, or share it"
    )]
    InUse(Endpoint),
    /// Every ephemeral port is taken.
    #[error(
        "ports exhausted: of {first} to {last} a UDP socket has each; close some, or widen \
         net.ipv4.ip_local_port_range"
    )]
    PortsExhausted {
        /// The first ephemeral port.
        first: u16,
        /// The last ephemeral port.
        last: u16,
    },
    /// Another socket for any destination exists.
    #[error("address in use: another UDP socket receives for any destination; close it first")]
    AnyInUse,
    /// The socket for any destination cannot be connected.
    #[error("a UDP socket for any destination cannot be connected: bind another socket")]
    AnyPeers,
    /// The handle is stale.
    #[error("no such UDP socket")]
    Unknown,
}

/// Reason why a datagram was not queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The socket's send buffer (`SO_SNDBUF`) is full. An event follows when there is room.
    #[error("{most} bytes wait to be sent, as many as may: wait until some left")]
    Full {
        /// Size of the socket's send buffer in bytes.
        most: usize,
    },
    /// 90 % of `mem.budget` are in use.
    #[error("no memory: 90 % of mem.budget are held; raise it or close something")]
    Memory,
}

/// ICMP error about a datagram of a socket (RFC 1122 4.1.3.3). It does not end the socket: the next
/// call returns it once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// The destination has no socket at the port.
    #[error("connection refused: no socket receives at that port")]
    PortUnreachable,
    /// The destination does not support UDP.
    #[error("that host does not speak UDP")]
    ProtocolUnreachable,
    /// No route to the host.
    #[error("no route to host")]
    HostUnreachable,
    /// No route to its network.
    #[error("network unreachable")]
    NetworkUnreachable,
    /// A router or host on the path forbids it.
    #[error("administratively prohibited on the path")]
    Prohibited,
    /// A datagram exceeded the path's MTU.
    #[error("message too long: the path carries packets of {mtu} bytes")]
    TooBig {
        /// The path's MTU in bytes.
        mtu: u16,
    },
    /// Its hop limit expired on the way.
    #[error("the hop limit ran out on the way")]
    TimeExceeded,
    /// Some of its fragments did not arrive in time.
    #[error("fragments were lost on the way")]
    FragmentsLost,
    /// A router or host does not understand its header.
    #[error("a field of the header was refused on the path")]
    ParameterProblem,
}

impl SocketError {
    /// True if calls of a connected socket fail with it, as on Linux. Other errors, which may be
    /// temporary, are returned only by `SO_ERROR` here (RFC 1122 4.1.3.3), and not at all on Linux.
    pub const fn is_hard(&self) -> bool {
        match self {
            Self::PortUnreachable
            | Self::ProtocolUnreachable
            | Self::Prohibited
            | Self::TooBig { .. }
            | Self::ParameterProblem => true,
            Self::HostUnreachable
            | Self::NetworkUnreachable
            | Self::TimeExceeded
            | Self::FragmentsLost => false,
        }
    }
}

/// Reason why a received datagram was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undelivered {
    /// No socket accepts datagrams from this sender to this port.
    NoSocket,
    /// The receive buffer of its socket is full.
    RecvBuffer,
    /// 90 % of `mem.budget` are in use.
    Memory,
}
