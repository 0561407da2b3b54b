//! Plan of a load.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_wire::{Address, Endpoint};

use crate::http::reply::Expected;
use crate::{Destination, Part};

/// Plan of a load.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// The server's address and port.
    pub target: Endpoint,
    /// Addresses of its name in the order to try. The first where a server answers becomes the
    /// target. With none or one, only the target is tried.
    pub destinations: Vec<Destination>,
    /// Exchange on each connection.
    pub exchange: Exchange,
    /// Number of concurrent connections (>= 1).
    pub connections: u32,
    /// End of the load: after a time, or after a number of exchanges.
    pub until: StopCondition,
    /// Exchanges that fall due per second, evenly; `None`: each connection sends its next request
    /// as soon as it has the response.
    pub rate: Option<f64>,
    /// With a rate: time from the start to the first exchange, so that parts of a load do not fall
    /// due together.
    pub offset: Duration,
    /// Use of a connection after an exchange.
    pub ending: Ending,
    /// Time limit for an exchange, and for the close after it.
    pub timeout: Duration,
    /// Time limit for opening a connection.
    pub connect_timeout: Duration,
    /// Time at the start in which exchanges are made but not measured.
    pub warmup: Duration,
    /// Length of the intervals for rates.
    pub interval: Duration,
    /// Start of the record's corrected latency.
    pub correction: Correction,
    /// Local addresses, used in turn; none: the transport chooses.
    pub local: Vec<Address>,
    /// Use of TCP Fast Open for the first request of a connection.
    pub fast_open: FastOpen,
}

/// Use of TCP Fast Open (RFC 7413).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FastOpen {
    /// The handshake comes first.
    #[default]
    Off,
    /// The request goes with the SYN once the server has granted a cookie. The server's application
    /// may get it twice.
    On,
}

impl LoadPlan {
    /// Share of one part of the load. At a rate, the exchanges of one part fall due between those
    /// of the others, so that all together come as evenly as the whole would.
    pub fn part(&self, part: Part) -> Self {
        let least = |share: u64| u32::try_from(share).unwrap_or(u32::MAX).max(1);
        let offset = |rate: f64| Duration::from_secs_f64(f64::from(part.number) / rate);
        Self {
            connections: least(part.share(self.connections.into())),
            until: match self.until {
                StopCondition::Exchanges(count) => StopCondition::Exchanges(part.share(count)),
                elapsed @ StopCondition::Elapsed(_) => elapsed,
            },
            rate: self.rate.map(|rate| rate / f64::from(part.of)),
            offset: self.offset + self.rate.map_or(Duration::ZERO, offset),
            ..self.clone()
        }
    }
}

/// Correction of latency for coordinated omission.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Correction {
    /// Latency counts from the time when an exchange was due.
    #[default]
    On,
    /// Latency counts from the time when an exchange began.
    Off,
}

/// A request and its response.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request; may be empty.
    pub request: Bytes,
    /// Rule for the end of the response.
    pub answer: ResponseEnd,
}

/// Rule for the end of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseEnd {
    /// It is a response of HTTP/1.1.
    Http(Expected),
    /// It has this many bytes; 0: an open connection is enough.
    Bytes(u64),
}

/// End of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopCondition {
    /// After this number of exchanges.
    Exchanges(u64),
    /// After this time, without the warm-up. Exchanges under way then are given up.
    Elapsed(Duration),
}

/// Use of a connection after an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It is used again, unless the server says otherwise.
    KeepAlive,
    /// The server closes first, and keeps the TIME-WAIT.
    Server,
    /// This side closes first, and keeps the TIME-WAIT.
    Client,
    /// This side resets it: neither side keeps a TIME-WAIT.
    Reset,
}

#[cfg(test)]
mod tests;
