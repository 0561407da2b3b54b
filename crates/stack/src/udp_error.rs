//! Errors of callers that send datagrams: each names the limit, the value and the remedy.

use whimbrel_base::packet::{IcmpError, SoftError};
use whimbrel_udp::{BindError, QueueError, SocketError};
use whimbrel_wire::{Address, Endpoint};

/// Why a UDP socket could not be bound or connected, or a datagram not be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UdpError {
    /// Not an address of this host.
    #[error(
        "{0} is not an address of this host: bind to one of its own, or to the unspecified one"
    )]
    NotLocal(Address),
    /// The port is another's, or there is none left.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A multicast group, as destination or as own address.
    #[error("{0} is a multicast group: this stack sends to single hosts only, and joins no group")]
    Multicast(Address),
    /// All hosts of a network.
    #[error("{0} is a broadcast address: this stack sends to single hosts only")]
    Broadcast(Address),
    /// The unspecified address, or port 0.
    #[error("{0} cannot be sent to: give a unicast address and a port from 1 to 65535")]
    NotAPeer(Endpoint),
    /// There is no route to this endpoint.
    #[error("no route to {0}: add one, or an address in its network")]
    NoRoute(Endpoint),
    /// This host has no address of the peer's family.
    #[error("no address of the family of {0}: give this host one")]
    NoSource(Endpoint),
    /// The socket's own address is of the other family.
    #[error(
        "{0} is of another family than the socket: bind one to :: or to an address of that family"
    )]
    Family(Endpoint),
    /// The socket is not connected, and no destination was given.
    #[error("no destination: connect the socket, or say whom the datagram is for")]
    NotConnected,
    /// A socket for any destination has no port of its own.
    #[error(
        "no source port: a socket for any destination sends from where a datagram that it answers was for"
    )]
    NoSourcePort,
    /// Not the port of the socket.
    #[error("{wish} is not the port of this socket, which sends from {own}")]
    NotItsPort {
        /// The port that was asked for.
        wish: u16,
        /// The port of the socket.
        own: u16,
    },
    /// More than a datagram, or the path where it must not be cut, carries.
    #[error("message too long: {len} bytes, and a datagram there carries {most} at most")]
    TooLong {
        /// Bytes to be sent.
        len: usize,
        /// The most that can be, bytes.
        most: usize,
    },
    /// Too many datagrams at once, or none of any size.
    #[error(
        "{len} bytes in segments of {segment}: from 1 to {most} datagrams can be handed over at once"
    )]
    Segments {
        /// Bytes to be sent.
        len: usize,
        /// The bytes of each datagram.
        segment: u16,
        /// The most datagrams at once.
        most: usize,
    },
    /// There is no room to queue it, or no such socket.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// An ICMP error as a socket reports it.
pub(crate) fn socket_error(error: IcmpError) -> SocketError {
    match error {
        IcmpError::Refused => SocketError::PortUnreachable,
        IcmpError::NoTcp => SocketError::ProtocolUnreachable,
        IcmpError::Prohibited => SocketError::Prohibited,
        IcmpError::TooBig { mtu } => SocketError::TooBig { mtu },
        IcmpError::Soft(soft) => match soft {
            SoftError::NetworkUnreachable => SocketError::NetworkUnreachable,
            SoftError::HostUnreachable => SocketError::HostUnreachable,
            SoftError::TimeExceeded => SocketError::TimeExceeded,
            SoftError::FragmentsLost => SocketError::FragmentsLost,
            SoftError::ParameterProblem | SoftError::SourceRouteFailed => {
                SocketError::ParameterProblem
            }
            SoftError::Prohibited => SocketError::Prohibited,
            SoftError::Refused => SocketError::PortUnreachable,
            SoftError::NoTcp => SocketError::ProtocolUnreachable,
        },
    }
}
