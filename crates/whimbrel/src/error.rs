//! Errors of `connect` and `bind` that a program can match, inside their `io::Error`.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use whimbrel_base::packet::SoftError;
use whimbrel_stack::shard::ConnectError as ConnectStartError;
use whimbrel_tcp::CloseReason;
use whimbrel_tcp::conn::Attempt;
use whimbrel_wire::Endpoint;

/// Reason why a connection could not be opened. The `io::Error` of `connect` holds one, except if a
/// name did not resolve or the stack has ended.
///
/// ```
/// use whimbrel::{ConnectError, Stack, TcpStream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (_left, right) = Stack::pair()?;
/// let error = TcpStream::connect(&right, "10.0.0.1:7").await.unwrap_err();
/// let reason = error.get_ref().and_then(|error| error.downcast_ref::<ConnectError>());
/// let Some(ConnectError::Refused(attempt)) = reason else { panic!("{error}") };
/// assert_eq!(attempt.syns, 1);
/// assert_eq!(reason.map(ConnectError::raw_os_error), Some(111)); // ECONNREFUSED
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// No SYN was sent: there is no route, no address, no free port, or the peer is not a host.
    NotStarted(ConnectStartError),
    /// The peer answered with a reset.
    Refused(FailedAttempt),
    /// No answer came in time, or only one for an old connection of the same ports.
    TimedOut(FailedAttempt),
    /// No neighbour answered, or a router reported the peer as unreachable.
    Unreachable(FailedAttempt),
    /// This side ended the attempt.
    Aborted(FailedAttempt),
}

/// An attempt to connect that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The peer's address and port; `None` if the shard no longer knew them.
    pub peer: Option<SocketAddr>,
    /// SYNs sent, including retransmissions.
    pub syns: u32,
    /// Duration, to a millisecond.
    pub lasted: Duration,
    /// SYNs that the peer answered for an old connection of the same ports.
    pub challenges: u8,
    /// Last ICMP error that a router reported.
    pub soft_error: Option<SoftError>,
}

/// Reason why an address could not be bound. The `io::Error` of `bind` and `listen` holds one.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another socket has this address and port.
    #[error("address in use: another socket is bound to {0}; close it, or give another port")]
    InUse(SocketAddr),
    /// This is not an address of the stack.
    #[error("{0} is not an address of this host: give one of its own, or an unspecified one")]
    NotLocal(IpAddr),
    /// All ephemeral ports are bound.
    #[error(
        "ports exhausted: all of {first} to {last} are bound here; widen \
         net.ipv4.ip_local_port_range or let sockets go"
    )]
    PortsExhausted {
        /// First ephemeral port.
        first: u16,
        /// Last ephemeral port.
        last: u16,
    },
    /// Another listener or UDP socket for any destination is open.
    #[error(
        "another socket for any destination is open: a stack has one listener and one UDP socket of \
         that kind; drop it, and all that it yielded"
    )]
    AnyInUse,
}

impl ConnectError {
    /// Kind of the `io::Error` that holds it.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::NotStarted(error) => start_kind(error),
            Self::Refused(_) => ErrorKind::ConnectionRefused,
            Self::TimedOut(_) => ErrorKind::TimedOut,
            Self::Unreachable(attempt) => match attempt.soft_error {
                Some(SoftError::NetworkUnreachable) => ErrorKind::NetworkUnreachable,
                _ => ErrorKind::HostUnreachable,
            },
            Self::Aborted(_) => ErrorKind::ConnectionAborted,
        }
    }

    /// Number of this error on Linux, on every system. `io::Error::raw_os_error` is `None`, because an
    /// `io::Error` holds a number or a value.
    pub const fn raw_os_error(&self) -> i32 {
        match (self, self.kind()) {
            (_, ErrorKind::AddrNotAvailable) => EADDRNOTAVAIL,
            (_, ErrorKind::NetworkUnreachable) => ENETUNREACH,
            (Self::NotStarted(ConnectStartError::NotAPeer(_)), _) => EINVAL,
            (Self::NotStarted(_), _) => ENOBUFS,
            (Self::Refused(_), _) => ECONNREFUSED,
            (Self::TimedOut(_), _) => ETIMEDOUT,
            (Self::Unreachable(_), _) => EHOSTUNREACH,
            (Self::Aborted(_), _) => ECONNABORTED,
        }
    }

    /// Reason why an attempt ended before the connection was open.
    pub(crate) fn of_attempt(
        reason: CloseReason,
        peer: Option<Endpoint>,
        attempt: &Attempt,
    ) -> Self {
        let Attempt { syns, lasted, challenges, soft_error } = *attempt;
        let peer = peer.map(SocketAddr::from);
        let attempt = FailedAttempt { peer, syns, lasted, challenges, soft_error };
        match (reason, soft_error) {
            (CloseReason::TimedOut, _) if challenges > 0 => Self::TimedOut(attempt),
            (CloseReason::TimedOut, Some(SoftError::Refused | SoftError::NoTcp)) => {
                Self::Refused(attempt)
            }
            (CloseReason::TimedOut, None | Some(SoftError::ParameterProblem)) => {
                Self::TimedOut(attempt)
            }
            (CloseReason::TimedOut, Some(_)) => Self::Unreachable(attempt),
            (CloseReason::Unreachable, _) => {
                Self::Unreachable(FailedAttempt { soft_error: None, ..attempt })
            }
            (
                CloseReason::Refused
                | CloseReason::Reset
                | CloseReason::BrokenPipe
                | CloseReason::Finished,
                _,
            ) => Self::Refused(FailedAttempt { soft_error: None, ..attempt }),
            _ => Self::Aborted(attempt),
        }
    }
}

impl BindError {
    /// Kind of the `io::Error` that holds it.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::InUse(_) | Self::PortsExhausted { .. } | Self::AnyInUse => ErrorKind::AddrInUse,
            Self::NotLocal(_) => ErrorKind::AddrNotAvailable,
        }
    }

    /// Number of this error on Linux, on every system. `io::Error::raw_os_error` is `None`, because an
    /// `io::Error` holds a number or a value.
    pub const fn raw_os_error(&self) -> i32 {
        match self {
            Self::InUse(_) | Self::PortsExhausted { .. } | Self::AnyInUse => EADDRINUSE,
            Self::NotLocal(_) => EADDRNOTAVAIL,
        }
    }
}

const fn start_kind(error: &ConnectStartError) -> ErrorKind {
    match error {
        ConnectStartError::NoRoute(_) => ErrorKind::NetworkUnreachable,
        ConnectStartError::NoSource(_)
        | ConnectStartError::NotLocal(_)
        | ConnectStartError::PortsExhausted { .. }
        | ConnectStartError::InUse { .. } => ErrorKind::AddrNotAvailable,
        ConnectStartError::NotAPeer(_) => ErrorKind::InvalidInput,
        ConnectStartError::TooMany { .. } => ErrorKind::QuotaExceeded,
        _ => ErrorKind::Other,
    }
}

impl std::error::Error for ConnectError {}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted(error) => error.fmt(f),
            Self::Refused(attempt) | Self::Unreachable(attempt) if attempt.soft_error.is_some() => {
                let (peer, tried) = (attempt.peer(), attempt.tried());
                write!(f, "{peer} is unreachable, as a router said; {tried} were lost")
            }
            Self::Refused(attempt) => write!(
                f,
                "connection refused after {}: no listener at {}, or it turned us away",
                attempt.tried(),
                attempt.peer()
            ),
            Self::TimedOut(attempt) => attempt.fmt_time_out(f),
            Self::Unreachable(attempt) => write!(
                f,
                "{} is unreachable: no neighbour or router took the packet on; {} were tried",
                attempt.peer(),
                attempt.tried()
            ),
            Self::Aborted(attempt) => {
                write!(f, "connection to {} aborted by this side", attempt.peer())
            }
        }
    }
}

impl FailedAttempt {
    fn peer(&self) -> String {
        self.peer.map_or_else(|| "the peer".to_owned(), |peer| peer.to_string())
    }

    /// Number of SYNs, and the time that they took.
    fn tried(&self) -> String {
        format!("{} in {:.3} s", self.counted_syns(), self.lasted.as_secs_f64())
    }

    fn counted_syns(&self) -> String {
        format!("{} {}", self.syns, if self.syns == 1 { "SYN" } else { "SYNs" })
    }

    fn fmt_time_out(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, tried) = (self.peer(), self.tried());
        match self.challenges {
            0 => write!(
                f,
                "connect timed out: {peer} answered none of {tried} (net.ipv4.tcp_syn_retries, \
                 connect_timeout): it is down, filtered, or its backlog is full"
            ),
            challenges => write!(
                f,
                "connect timed out: {peer} answered {challenges} of {tried} for an old connection of \
                 the same ports, which it keeps in TIME-WAIT or takes to be there: connect from \
                 another port, or when it has forgotten (up to 4 minutes)"
            ),
        }
    }
}

/// Shows the message, for `unwrap` and for a `main` that returns it.
impl fmt::Debug for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Shows the message, for `unwrap` and for a `main` that returns it.
impl fmt::Debug for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        Self::new(error.kind(), error)
    }
}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// Numbers of Linux (`errno.h` and `errno-base.h` of asm-generic).
const EINVAL: i32 = 22;
const EADDRINUSE: i32 = 98;
const EADDRNOTAVAIL: i32 = 99;
const ENETUNREACH: i32 = 101;
const ECONNABORTED: i32 = 103;
const ENOBUFS: i32 = 105;
const ETIMEDOUT: i32 = 110;
const ECONNREFUSED: i32 = 111;
const EHOSTUNREACH: i32 = 113;

#[cfg(test)]
mod tests;
