//! Errors of opening a connection, and the state of exhausted ports.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use super::ConnError;

/// Error of opening a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Every port to the peer is in use: one may come free.
    Ports(PortShortage),
    /// An error that waiting does not cure.
    Other(ConnError),
}

impl From<ConnError> for OpenError {
    fn from(conn_error: ConnError) -> Self {
        Self::Other(conn_error)
    }
}

impl From<OpenError> for ConnError {
    fn from(unopened: OpenError) -> Self {
        match unopened {
            OpenError::Ports(_) => Self::PortsExhausted,
            OpenError::Other(conn_error) => conn_error,
        }
    }
}

/// The range of ports, and the reasons that none is free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortShortage {
    /// First port of the range.
    pub first: u16,
    /// The last port of the range.
    pub last: u16,
    /// Connections to the peer that use one, if they are counted for each peer.
    pub in_use: Option<u32>,
    /// Ports in TIME-WAIT: to the peer, or of the whole host if only that is known.
    pub waiting: Option<u32>,
    /// Time until the next of those comes free, if known.
    pub next: Option<Duration>,
    /// True if a port in TIME-WAIT is never used again early: `net.ipv4.tcp_tw_reuse=0`.
    pub is_reuse_off: bool,
}

impl PortShortage {
    /// Returns the remedies, the best first.
    pub fn remedy(&self) -> String {
        let reuse = if self.is_reuse_off { "set net.ipv4.tcp_tw_reuse=1, " } else { "" };
        [reuse, ConnError::PortsExhausted.remedy()].concat()
    }

    /// Adds the figures of another shard of the host, which has other ports of the range. Figures
    /// of the whole host stay.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        let (Some(one), Some(another)) = (self.in_use, other.in_use) else { return self };
        let sum =
            |one: Option<u32>, other: Option<u32>| one.zip(other).map(|(one, other)| one + other);
        Self {
            in_use: Some(one + another),
            waiting: sum(self.waiting, other.waiting),
            next: [self.next, other.next].into_iter().flatten().min(),
            ..self
        }
    }
}

/// For example `ports 50000 to 50003: 1 in use, 3 in TIME-WAIT, the next comes free in 1.2 s`.
impl fmt::Display for PortShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ports {} to {}", self.first, self.last)?;
        let mut mark = ':';
        for (count, what) in [(self.in_use, "in use"), (self.waiting, "in TIME-WAIT")] {
            let Some(count) = count else { continue };
            write!(f, "{mark} {count} {what}")?;
            mark = ',';
        }
        match self.next {
            Some(next) if next < Duration::from_secs(1) => {
                write!(f, "{mark} the next comes free in {} ms", next.as_millis())
            }
            Some(next) => write!(f, "{mark} the next comes free in {:.1} s", next.as_secs_f64()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
