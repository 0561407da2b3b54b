//! Why no connection could be begun, and what is known of ports that ran out.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use super::ConnError;

/// Why no connection was begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Every port towards the peer is taken: one may come free.
    Ports(PortShortage),
    /// Something that waiting does not mend.
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

/// Which ports there are to draw from, and what keeps them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortShortage {
    /// The first of them.
    pub first: u16,
    /// The last port of the range.
    pub last: u16,
    /// Connections that use one towards the peer, if they are counted for each.
    pub in_use: Option<u32>,
    /// Ports that wait in TIME-WAIT: towards the peer, or of the whole host where only that is
    /// known.
    pub waiting: Option<u32>,
    /// When the next of those comes free, if that is known.
    pub next: Option<Duration>,
    /// True if a port in TIME-WAIT is never used again early: `net.ipv4.tcp_tw_reuse=0`.
    pub is_reuse_off: bool,
}

impl PortShortage {
    /// What to do about it, best first.
    pub fn remedy(&self) -> String {
        let reuse = if self.is_reuse_off { "set net.ipv4.tcp_tw_reuse=1, " } else { "" };
        [reuse, ConnError::PortsExhausted.remedy()].concat()
    }

    /// With what another shard of the same host found, which has other ports of the same range. Figures
    /// that are the host's as a whole are the same for both.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
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

/// As in `ports 50000 to 50003: 1 in use, 3 in TIME-WAIT, the next comes free in 1.2 s`.
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
