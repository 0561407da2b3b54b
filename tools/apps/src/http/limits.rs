//! Limits of a connection, and the way it closes.

use core::time::Duration;

use super::date::HttpDate;

/// The most header fields of a request.
pub const MAX_FIELDS: usize = 64;

/// Limits of one connection, and the side that closes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Longest request head, bytes (default 16 KiB, as in common servers). Less refuses long
    /// cookies; more is memory that each silent peer can hold.
    pub head: usize,
    /// Longest request body, bytes (default 4 GiB). Bodies stream, so this limits disk space, not
    /// memory.
    pub body: u64,
    /// Longest unwanted request body that is read and discarded to keep the connection alive, bytes
    /// (default 64 KiB). Less opens more connections; more reads in vain.
    pub discard: u64,
    /// Number of bytes read after the last response, so that a reset does not overtake it (default
    /// 4 MiB).
    pub linger: u64,
    /// Largest piece of a response passed to the stack at once, bytes (default 128 KiB). Less costs
    /// calls; more is memory per slow reader.
    pub piece: usize,
    /// Most bytes that all HTTP/2 connections of a server hold together (default 256 MiB): beyond,
    /// those idle longest are closed. HTTP/1.1 connections hold only data that their client reads.
    pub held: u64,
    /// Time without traffic after which a connection is closed (default 60 s). Shorter cuts off
    /// slow clients; longer keeps idle ones. Bytes after the last response are discarded and do not
    /// count as traffic.
    pub idle: Duration,
    /// Time limit for a request's head, from its first byte to its last (default 30 s, as in common
    /// servers). Without it, a peer that sends a byte now and then would never be idle and keep its
    /// place for ever. Shorter refuses large heads over bad paths; longer lets slow heads hold
    /// places.
    pub head_time: Duration,
    /// The side that closes first after a response with `Connection: close` (default the server).
    /// That side keeps the TIME-WAIT record.
    pub close_by: CloseBy,
    /// Number of requests on a connection (default as its client wishes). Closing after each costs
    /// a handshake for the next, and a TIME-WAIT.
    pub keep_alive: KeepAlive,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: 16 << 10,
            body: 4 << 30,
            discard: 64 << 10,
            linger: 4 << 20,
            piece: 128 << 10,
            held: 256 << 20,
            idle: Duration::from_secs(60),
            head_time: Duration::from_secs(30),
            close_by: CloseBy::Server,
            keep_alive: KeepAlive::AsAsked,
        }
    }
}

/// Reuse of connections for further requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepAlive {
    /// As the client wishes.
    AsAsked,
    /// Never: the connection closes after each response.
    Never,
    /// As the client wishes, for this many requests (>= 1): the connection closes after the last.
    UpTo(u64),
}

impl KeepAlive {
    /// True if a connection may stay open after its response number `response`, from 1 on.
    pub(crate) const fn goes_on_after(self, response: u64) -> bool {
        match self {
            Self::AsAsked => true,
            Self::Never => false,
            Self::UpTo(most) => response < most,
        }
    }
}

/// The side that closes a connection first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseBy {
    /// This side, after its last response.
    Server,
    /// The peer, then this side.
    Client,
}

/// Settings of every connection of a server.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ServerSettings {
    /// Limits of every connection of the server.
    pub limits: Limits,
    /// The time for the `Date` field, if the driver has a clock (RFC 9110 6.6.1: "An origin
    /// server without a clock MUST NOT generate a Date header field").
    pub date: Option<HttpDate>,
    /// True if there is a log: each connection then remembers its requests.
    pub keeps_log: bool,
}
