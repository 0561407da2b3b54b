//! What a load is to do.

use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_wire::{Address, Endpoint};

use crate::http::reply::Expected;
use crate::{Destination, Part};

/// What a load is to do.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// The server's address and port.
    pub target: Endpoint,
    /// The addresses of its name in the order in which they are tried, until a server answers at one, which
    /// is the target then; none or one: the target alone.
    pub destinations: Vec<Destination>,
    /// What is said on each connection.
    pub exchange: Exchange,
    /// How many connections there are at a time (>= 1).
    pub connections: u32,
    /// When it ends: after a time, or after so many exchanges.
    pub until: StopCondition,
    /// Exchanges that fall due each second, evenly; `None`: one after the other on each
    /// connection, as fast as they are answered.
    pub rate: Option<f64>,
    /// With a rate: how long after the beginning the first exchange falls due, so that parts of a
    /// load do not fall due together.
    pub offset: Duration,
    /// What becomes of a connection after an exchange.
    pub ending: Ending,
    /// How long an exchange may take, and the close after it.
    pub timeout: Duration,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// Exchanges that fall due before this are made and not measured.
    pub warmup: Duration,
    /// The length of the intervals that rates are counted in.
    pub interval: Duration,
    /// Since when the record's corrected latency counts.
    pub correction: Correction,
    /// This side's addresses, taken in turn; none: the transport's own choice.
    pub local: Vec<Address>,
    /// Whether the first request of a connection may travel with its SYN.
    pub fast_open: FastOpen,
}

/// Whether connections open fast (RFC 7413).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FastOpen {
    /// The handshake comes first.
    #[default]
    Off,
    /// The request travels with the SYN, once the server has granted a cookie. It may come to the
    /// server's application twice.
    On,
}

impl LoadPlan {
    /// What one part of the load is to do. At a rate, those of one part fall due between those of
    /// the others, so that all together come as evenly as the whole would.
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

/// Whether latency is corrected for coordinated omission.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Correction {
    /// It counts from when an exchange was due.
    #[default]
    On,
    /// It counts from when an exchange was begun.
    Off,
}

/// What is said on a connection: a request, and the answer to it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The request; may be empty.
    pub request: Bytes,
    /// How the answer's end is known.
    pub answer: ResponseEnd,
}

/// How the end of an answer is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResponseEnd {
    /// It is a response of HTTP/1.1.
    Http(Expected),
    /// It has this many bytes; none: an open connection is answer enough.
    Octets(u64),
}

/// When a load ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopCondition {
    /// When this many exchanges are over.
    Exchanges(u64),
    /// After this time, the warm-up not counted. What is on its way then is given up.
    Elapsed(Duration),
}

/// What becomes of a connection after an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It is used again, unless the server says otherwise.
    KeepAlive,
    /// The server closes first, and keeps the TIME-WAIT.
    Server,
    /// This side closes first, and keeps the TIME-WAIT.
    Client,
    /// This side resets it: nobody keeps a TIME-WAIT.
    Reset,
}

#[cfg(test)]
mod tests;
