//! What can go wrong: each error names the limit, the value and the remedy.

use whimbrel_wire::Endpoint;

/// Why a socket cannot have a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket has it.
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
    /// There is a socket for any destination.
    #[error("address in use: another UDP socket receives for any destination; close it first")]
    AnyInUse,
    /// The socket for any destination speaks with everybody.
    #[error("a UDP socket for any destination is connected to nobody: bind another for that")]
    AnyPeers,
    /// The handle names nothing.
    #[error("no such UDP socket")]
    Unknown,
}

/// Why a datagram was not taken to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// As much waits to leave as may (`SO_SNDBUF`): it will be told when there is room.
    #[error("{most} bytes wait to be sent, as many as may: wait until some left")]
    Full {
        /// The size of the socket's send buffer, bytes.
        most: usize,
    },
    /// 90 % of `mem.budget` are held.
    #[error("no memory: 90 % of mem.budget are held; raise it or close something")]
    Memory,
    /// The handle names nothing.
    #[error("no such UDP socket")]
    Unknown,
}

/// What somebody on the path said of a datagram that a socket had sent (RFC 1122 4.1.3.3). None of it
/// ends the socket: it is told once, by the next call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Nobody has the port there.
    #[error("connection refused: nobody receives at that port")]
    PortUnreachable,
    /// The host there does not speak UDP.
    #[error("that host does not speak UDP")]
    ProtocolUnreachable,
    /// There is no way to the host.
    #[error("no route to host")]
    HostUnreachable,
    /// There is no way to its network.
    #[error("network unreachable")]
    NetworkUnreachable,
    /// Somebody on the path forbids it.
    #[error("administratively prohibited on the path")]
    Prohibited,
    /// A datagram was larger than the path carries.
    #[error("message too long: the path carries packets of {mtu} bytes")]
    TooBig {
        /// The largest packet that the path carries, bytes.
        mtu: u16,
    },
    /// Its hop limit ran out on the way.
    #[error("the hop limit ran out on the way")]
    TimeExceeded,
    /// Some of its fragments did not arrive in time.
    #[error("fragments were lost on the way")]
    FragmentsLost,
    /// Somebody does not understand its header.
    #[error("a field of the header was refused on the path")]
    ParameterProblem,
}

impl SocketError {
    /// True if calls of a connected socket fail with it, as on Linux. Of the others, which may pass by
    /// themselves, only `SO_ERROR` tells here (RFC 1122 4.1.3.3), and nothing there.
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

/// Why a datagram that arrived was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Undelivered {
    /// No socket takes what comes from there for this port.
    NoSocket,
    /// Its socket has as many bytes to be received as it may.
    RecvBuffer,
    /// 90 % of `mem.budget` are held.
    Memory,
}
