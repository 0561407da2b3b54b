//! What one connection may cost, and how it ends.

use core::time::Duration;

use super::date::HttpDate;

/// The most header fields of a request.
pub const MAX_FIELDS: usize = 64;

/// The bounds of one connection, and who ends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The longest request head, bytes (default 16 KiB, as much as common servers take). Less
    /// refuses long cookies; more is memory that every silent peer can pin.
    pub head: usize,
    /// The longest request body, bytes (default 4 GiB). Bodies stream, so this bounds what an
    /// upload puts on a disk, not memory.
    pub body: u64,
    /// The longest request body that is read and thrown away to keep a connection alive after an
    /// answer that did not want it, bytes (default 64 KiB). Less opens connections anew; more
    /// reads in vain.
    pub discard: u64,
    /// How much is read after the last response, so that a reset does not overtake it, bytes
    /// (default 4 MiB).
    pub linger: u64,
    /// The largest piece of a response handed to the stack at once, bytes (default 128 KiB).
    /// Less costs calls; more is memory per slow reader.
    pub piece: usize,
    /// The most bytes that all HTTP/2 connections of a server hold together (default 256 MiB): beyond, the
    /// longest silent are closed. Those of HTTP/1.1 hold nothing that a client does not take.
    pub held: u64,
    /// How long a connection may be silent before it is closed (default 60 s). Shorter cuts off
    /// slow clients; longer lets idle ones keep their places. What comes after the last response
    /// is thrown away, and no sign of life.
    pub idle: Duration,
    /// How long a request's head may take from its first byte to its last (default 30 s, as much
    /// as common servers give). A peer that sends a byte now and then is never silent: without
    /// this bound it keeps its place for ever. Shorter refuses large heads over bad paths; longer
    /// is time that each such byte buys.
    pub head_time: Duration,
    /// Who closes first after a response that says `Connection: close` (default the server). It
    /// is the one that keeps the TIME-WAIT record.
    pub close_by: CloseBy,
    /// Whether a connection serves more than one request (default as its client wishes). Ending each
    /// costs a handshake for the next, and a TIME-WAIT.
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

/// Whether connections are kept alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepAlive {
    /// As the client wishes.
    AsAsked,
    /// Never: each response ends its connection.
    Never,
    /// As the client wishes, for so many requests (>= 1): the response to the last of them ends the
    /// connection.
    UpTo(u64),
}

impl KeepAlive {
    /// True if a connection may go on after the response that will be this one on it, from 1 on.
    pub(crate) const fn goes_on_after(self, response: u64) -> bool {
        match self {
            Self::AsAsked => true,
            Self::Never => false,
            Self::UpTo(most) => response < most,
        }
    }
}

/// Who closes a connection first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseBy {
    /// This side, as soon as the response was handed over.
    Server,
    /// The peer; this side follows.
    Client,
}

/// What every connection of a server goes by.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ServerSettings {
    /// The bounds that every connection of the server has.
    pub limits: Limits,
    /// The time for the `Date` field, if the driver has a clock (RFC 9110 6.6.1: "An origin
    /// server without a clock MUST NOT generate a Date header field").
    pub date: Option<HttpDate>,
    /// True if somebody keeps a log: each connection then remembers what it was asked for.
    pub keeps_log: bool,
}
