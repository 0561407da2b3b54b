//! What goes wrong, as `std::io::Error`: the kind that a program expects of tokio, and a message
//! that names the limit that was hit, and what to turn.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use whimbrel_stack::shard::{ConnectError, ListenError};
use whimbrel_tcp::{CloseReason, Tunables};
use whimbrel_wire::Endpoint;

/// Why a connection is over, if that is an error.
pub(crate) fn closed(
    reason: CloseReason,
    peer: Option<Endpoint>,
    opened: bool,
    tunables: &Tunables,
) -> Option<io::Error> {
    let peer = peer.map_or_else(|| "the peer".to_owned(), |peer| peer.to_string());
    let (kind, text) = match reason {
        CloseReason::Finished => return None,
        CloseReason::Refused => (
            ErrorKind::ConnectionRefused,
            format!("connection refused: nobody listens at {peer}, or it turned us away"),
        ),
        CloseReason::Reset => (ErrorKind::ConnectionReset, format!("connection reset by {peer}")),
        CloseReason::TimedOut if opened => (
            ErrorKind::TimedOut,
            format!(
                "connection timed out: {peer} left what was sent unanswered; \
                 net.ipv4.tcp_retries2 = {} retransmissions are tried, and \
                 net.ipv4.tcp_keepalive_probes = {} probes",
                tunables.retries, tunables.keepalive_probes
            ),
        ),
        CloseReason::TimedOut => (
            ErrorKind::TimedOut,
            format!(
                "connect timed out: {peer} answered none of {} SYNs (net.ipv4.tcp_syn_retries = \
                 {}): it is down, filtered, or its backlog is full",
                u32::from(tunables.syn_retries) + 1,
                tunables.syn_retries
            ),
        ),
        CloseReason::Aborted => {
            (ErrorKind::ConnectionAborted, format!("connection to {peer} aborted by this side"))
        }
        CloseReason::Unreachable => (
            ErrorKind::HostUnreachable,
            format!("{peer} is unreachable: no neighbour or router took the packet on"),
        ),
    };
    Some(io::Error::new(kind, text))
}

/// Why a connection could not be begun.
pub(crate) fn connect(error: ConnectError) -> io::Error {
    let kind = match &error {
        ConnectError::NoRoute(_) => ErrorKind::NetworkUnreachable,
        ConnectError::NoSource(_)
        | ConnectError::NotLocal(_)
        | ConnectError::PortsExhausted { .. } => ErrorKind::AddrNotAvailable,
        ConnectError::NotAPeer(_) => ErrorKind::InvalidInput,
        ConnectError::InUse { .. } => ErrorKind::AddrInUse,
        ConnectError::TooMany { .. } => ErrorKind::QuotaExceeded,
        ConnectError::Loopback(_) => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Why nothing listens.
pub(crate) fn listen(error: ListenError) -> io::Error {
    let kind = match &error {
        ListenError::InUse(_) => ErrorKind::AddrInUse,
        ListenError::NotLocal(_) => ErrorKind::AddrNotAvailable,
        ListenError::PortZero => ErrorKind::InvalidInput,
        _ => ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Another socket has the end.
pub(crate) fn in_use(at: Endpoint) -> io::Error {
    listen(ListenError::InUse(at))
}

/// Not an address of the stack.
pub(crate) fn not_local(at: Endpoint) -> io::Error {
    listen(ListenError::NotLocal(at))
}

/// Every port that may be drawn is bound.
pub(crate) fn no_port(first: u16, last: u16) -> io::Error {
    let text = format!(
        "ports exhausted: all of {first} to {last} are bound here; widen \
         net.ipv4.ip_local_port_range or let sockets go"
    );
    io::Error::new(ErrorKind::AddrInUse, text)
}

/// Writing where the own direction is shut, or the connection over.
pub(crate) fn broken_pipe() -> io::Error {
    let text = "the connection no longer sends: it was shut down, closed or reset";
    io::Error::new(ErrorKind::BrokenPipe, text)
}

/// A socket of the other family.
pub(crate) fn family(addr: SocketAddr) -> io::Error {
    let text =
        format!("{addr} is of the other family: use TcpSocket::new_v4 or new_v6 to match it");
    io::Error::new(ErrorKind::InvalidInput, text)
}

/// `bind` for the second time.
pub(crate) fn bound_already(at: SocketAddr) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("the socket is bound to {at} already"))
}

/// A hop limit that no packet has.
pub(crate) fn hop_limit(asked: u32) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("ttl {asked}: give 1 to 255"))
}

/// No address came of a name.
pub(crate) fn no_address() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "the name has no address: give one, as in 10.0.0.2:80")
}

/// The shard knows nothing of the stream.
pub(crate) fn unknown() -> io::Error {
    io::Error::new(ErrorKind::NotConnected, "no such connection")
}

/// The stack is no more.
pub(crate) fn ended(why: &str) -> io::Error {
    io::Error::new(ErrorKind::NotConnected, format!("the stack has ended: {why}"))
}

/// Nothing can be done at once.
pub(crate) fn would_block() -> io::Error {
    ErrorKind::WouldBlock.into()
}
