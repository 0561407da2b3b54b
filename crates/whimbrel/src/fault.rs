//! Errors as `std::io::Error`, with the kind that tokio programs expect. The message names the limit
//! that was hit, and the setting to change.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use whimbrel_stack::shard::{
    AddressError, ConfigError, ConnectError as ConnectStartError, InjectError, ListenError,
    RouteError,
};
use whimbrel_stack::{PingError, PingFailure, UdpError, Withdrawal};
use whimbrel_tcp::conn::Attempt;
use whimbrel_tcp::{CloseReason, Tunables};
use whimbrel_udp::{BindError as UdpBindError, QueueError, SocketError};
use whimbrel_wire::{Address, Endpoint};

use crate::error::{BindError, ConnectError};

/// Returns the error of an ended connection, if it did not end in order.
pub(crate) fn closed(
    reason: CloseReason,
    peer: Option<Endpoint>,
    tunables: &Tunables,
) -> Option<io::Error> {
    let peer = name(peer);
    let (kind, text) = match reason {
        CloseReason::Finished => return None,
        CloseReason::Reset | CloseReason::Refused => {
            (ErrorKind::ConnectionReset, format!("connection reset by {peer}"))
        }
        // A reader learns of the end otherwise; a writer needs to know that its data was refused.
        CloseReason::BrokenPipe => (
            ErrorKind::BrokenPipe,
            format!("{peer} had closed the connection, and reset it when more was sent"),
        ),
        CloseReason::TimedOut => (
            ErrorKind::TimedOut,
            format!(
                "connection timed out: {peer} left what was sent unanswered; \
                 net.ipv4.tcp_retries2 = {} retransmissions are tried, and \
                 net.ipv4.tcp_keepalive_probes = {} probes",
                tunables.retries, tunables.keepalive_probes
            ),
        ),
        CloseReason::Unreachable => (ErrorKind::HostUnreachable, format!("{peer} is unreachable")),
        _ => aborted(&peer),
    };
    Some(io::Error::new(kind, text))
}

/// Returns the error of a failed attempt to connect.
pub(crate) fn not_opened(
    reason: CloseReason,
    peer: Option<Endpoint>,
    attempt: &Attempt,
) -> io::Error {
    ConnectError::of_attempt(reason, peer, attempt).into()
}

fn name(peer: Option<Endpoint>) -> String {
    peer.map_or_else(|| "the peer".to_owned(), |peer| peer.to_string())
}

fn aborted(peer: &str) -> (ErrorKind, String) {
    (ErrorKind::ConnectionAborted, format!("connection to {peer} aborted by this side"))
}

/// Returns the error of a connection that could not be begun.
pub(crate) fn connect(error: ConnectStartError) -> io::Error {
    ConnectError::NotStarted(error).into()
}

/// Combines the errors of several shards that were tried in turn.
pub(crate) fn connect_again(former: Option<io::Error>, latter: io::Error) -> io::Error {
    let former = former.and_then(|former| former.downcast::<ConnectError>().ok());
    match (former, latter.downcast::<ConnectError>()) {
        (Some(ConnectError::NotStarted(former)), Ok(ConnectError::NotStarted(latter))) => {
            connect(former.and_then(latter))
        }
        (_, Ok(latter)) => latter.into(),
        (_, Err(latter)) => latter,
    }
}

/// Returns the error of a packet that could not be injected.
pub(crate) fn inject(error: InjectError) -> io::Error {
    let kind = match error {
        InjectError::Full => ErrorKind::WouldBlock,
        _ => ErrorKind::InvalidInput,
    };
    io::Error::new(kind, error.to_string())
}

/// Returns the error of a listener that could not be opened.
pub(crate) fn listen(error: ListenError) -> io::Error {
    match error {
        ListenError::InUse(at) => in_use(at),
        ListenError::NotLocal(at) => not_local(at.addr),
        ListenError::PortZero => io::Error::new(ErrorKind::InvalidInput, error),
        _ => io::Error::other(error),
    }
}

/// Returns the error of an address and port that another socket has.
pub(crate) fn in_use(at: Endpoint) -> io::Error {
    BindError::InUse(at.into()).into()
}

/// Returns the error of a second listener for any destination.
pub(crate) fn any_in_use() -> io::Error {
    BindError::AnyInUse.into()
}

/// Returns the error of a withdrawn incoming connection.
pub(crate) fn withdrawn(why: Withdrawal, peer: Endpoint) -> io::Error {
    match why {
        Withdrawal::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, format!("{peer} has given up, or did not answer"))
        }
        Withdrawal::Displaced => {
            let text = format!(
                "the connection of {peer} gave way to a newer one before it was complete: 4,096 may wait at a \
                 shard, 64 for one address and port; decide sooner"
            );
            io::Error::new(ErrorKind::ConnectionAborted, text)
        }
        _ => io::Error::new(
            ErrorKind::ConnectionAborted,
            format!("{peer} ended its connection before that was complete"),
        ),
    }
}

/// Returns the error of an address that is not the stack's.
pub(crate) fn not_local(addr: Address) -> io::Error {
    BindError::NotLocal(addr.to_ip()).into()
}

/// Returns the error of exhausted ports.
pub(crate) fn no_port(first: u16, last: u16) -> io::Error {
    BindError::PortsExhausted { first, last }.into()
}

/// Returns the error of a UDP socket that could not be bound.
pub(crate) fn udp_bind(error: UdpError) -> io::Error {
    match error {
        UdpError::Bind(UdpBindError::InUse(at)) => in_use(at),
        UdpError::Bind(UdpBindError::PortsExhausted { first, last }) => no_port(first, last),
        UdpError::Bind(UdpBindError::AnyInUse) => any_in_use(),
        UdpError::NotLocal(addr) => not_local(addr),
        error => udp(error),
    }
}

/// Returns the error of a write after shutdown, close or reset.
pub(crate) fn broken_pipe() -> io::Error {
    let text = "the connection no longer sends: it was shut down, closed or reset";
    io::Error::new(ErrorKind::BrokenPipe, text)
}

/// Returns the error of an address of the other family.
pub(crate) fn family(addr: SocketAddr) -> io::Error {
    let text =
        format!("{addr} is of the other family: use TcpSocket::new_v4 or new_v6 to match it");
    io::Error::new(ErrorKind::InvalidInput, text)
}

/// Returns the error of a second `bind`.
pub(crate) fn bound_already(at: SocketAddr) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("the socket is bound to {at} already"))
}

/// Returns the error of an invalid hop limit.
pub(crate) fn hop_limit(asked: u32) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("ttl {asked}: give 1 to 255"))
}

/// Returns the error of a limit that lets nothing leave.
pub(crate) fn pacing_rate() -> io::Error {
    let text = "max_pacing_rate 0: give 1 byte per second or more, or u64::MAX for no limit";
    io::Error::new(ErrorKind::InvalidInput, text)
}

/// Returns the error of an invalid traffic class.
pub(crate) fn traffic_class(asked: u32) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("traffic class {asked}: give 0 to 255"))
}

/// Returns the error of an IPv6 option on an IPv4 socket.
pub(crate) fn not_v6() -> io::Error {
    let text = "a socket for IPv4 has no traffic class: use set_tos_v4, or TcpSocket::new_v6";
    io::Error::new(ErrorKind::Unsupported, text)
}

/// Returns the error of a name without an address.
pub(crate) fn no_address() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "the name has no address: give one, as in 10.0.0.2:80")
}

/// Returns the error of a UDP call.
pub(crate) fn udp(error: UdpError) -> io::Error {
    let kind = match &error {
        UdpError::Bind(
            UdpBindError::InUse(_) | UdpBindError::PortsExhausted { .. } | UdpBindError::AnyInUse,
        ) => ErrorKind::AddrInUse,
        UdpError::NotLocal(_) | UdpError::NoSource(_) => ErrorKind::AddrNotAvailable,
        UdpError::NoRoute(_) => ErrorKind::NetworkUnreachable,
        UdpError::Multicast(_) | UdpError::Broadcast(_) => ErrorKind::Unsupported,
        UdpError::NotAPeer(_)
        | UdpError::Family(_)
        | UdpError::TooLong { .. }
        | UdpError::Segments { .. }
        | UdpError::NoSourcePort
        | UdpError::NotItsPort { .. } => ErrorKind::InvalidInput,
        UdpError::Queue(QueueError::Full { .. }) => ErrorKind::WouldBlock,
        UdpError::Queue(QueueError::Memory) => ErrorKind::OutOfMemory,
        _ => ErrorKind::NotConnected,
    };
    io::Error::new(kind, error.to_string())
}

/// Returns the error that the path reported for a datagram to `peer`.
pub(crate) fn udp_told(error: SocketError, peer: Option<SocketAddr>) -> io::Error {
    let kind = match error {
        SocketError::PortUnreachable | SocketError::ProtocolUnreachable => {
            ErrorKind::ConnectionRefused
        }
        SocketError::NetworkUnreachable => ErrorKind::NetworkUnreachable,
        SocketError::TooBig { .. } => ErrorKind::InvalidInput,
        _ => ErrorKind::HostUnreachable,
    };
    let peer = name(peer.map(Endpoint::from));
    io::Error::new(kind, format!("{peer}: {error}"))
}

/// Returns the error of a call that needs a connected UDP socket.
pub(crate) fn udp_not_connected() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "the socket is not connected")
}

/// Returns the error of a send without a destination.
pub(crate) fn udp_no_destination() -> io::Error {
    let text = "no destination: connect the socket, or use send_to";
    io::Error::new(ErrorKind::NotConnected, text)
}

/// Returns the error of a call that needs multicast or broadcast.
pub(crate) fn no_groups(what: &str) -> io::Error {
    let text = format!("{what}: this stack sends to single hosts only, and joins no group");
    io::Error::new(ErrorKind::Unsupported, text)
}

/// Returns the error of adding or removing an address.
pub(crate) fn address(error: AddressError) -> io::Error {
    let kind = match &error {
        AddressError::Exists(_) | AddressError::InUse { .. } => ErrorKind::AddrInUse,
        AddressError::Unknown(_) => ErrorKind::AddrNotAvailable,
        AddressError::Config(ConfigError::AddressCount { .. }) | AddressError::Checking { .. } => {
            ErrorKind::QuotaExceeded
        }
        _ => ErrorKind::InvalidInput,
    };
    io::Error::new(kind, error)
}

/// Returns the error of adding or removing a route.
pub(crate) fn route(error: RouteError) -> io::Error {
    let kind = match &error {
        RouteError::Exists { .. } => ErrorKind::AlreadyExists,
        RouteError::Unknown { .. } => ErrorKind::NotFound,
        RouteError::TooMany { .. } => ErrorKind::QuotaExceeded,
        _ => ErrorKind::InvalidInput,
    };
    io::Error::new(kind, error)
}

/// Returns the error of an invalid MTU.
pub(crate) fn mtu(error: ConfigError) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, error)
}

/// Returns the error of an MTU above that of the wire.
pub(crate) fn mtu_beyond(mtu: u16, most: u16) -> io::Error {
    let text = format!(
        "an MTU of {mtu} bytes: the wire was opened for {most}; give that or less, or open it for more"
    );
    io::Error::new(ErrorKind::InvalidInput, text)
}

/// Returns the error of an echo request that was not sent.
pub(crate) fn ping(error: PingError) -> io::Error {
    let kind = match &error {
        PingError::NoRoute(_) => ErrorKind::NetworkUnreachable,
        PingError::NoSource(_) | PingError::NotLocal(_) => ErrorKind::AddrNotAvailable,
        PingError::TooMany { .. } => ErrorKind::QuotaExceeded,
        PingError::Full => ErrorKind::WouldBlock,
        _ => ErrorKind::InvalidInput,
    };
    io::Error::new(kind, error)
}

/// Returns the error of an echo request without a reply.
pub(crate) fn unanswered(failure: PingFailure) -> io::Error {
    let kind = match &failure {
        PingFailure::TimedOut(_) => ErrorKind::TimedOut,
        PingFailure::Reported { error, .. } => match error {
            SocketError::NetworkUnreachable => ErrorKind::NetworkUnreachable,
            SocketError::TooBig { .. } => ErrorKind::InvalidInput,
            _ => ErrorKind::HostUnreachable,
        },
        _ => ErrorKind::AddrNotAvailable,
    };
    io::Error::new(kind, failure)
}

/// Returns the error of a stream that the shard does not know.
pub(crate) fn unknown() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "no such connection")
}

/// Returns the error of a stack that has ended.
pub(crate) fn ended(why: &str) -> io::Error {
    io::Error::new(ErrorKind::NotConnected, format!("the stack has ended: {why}"))
}

/// Returns the error of an operation that would have to wait.
pub(crate) fn would_block() -> io::Error {
    ErrorKind::WouldBlock.into()
}

#[cfg(test)]
mod tests;
