//! The protocol of iperf3, as version 3.12 speaks it: a control connection and the streams.
//!
//! ```text
//! client                                 server
//!   cookie ────────────────────────────>   (37 bytes; a stream begins with the same)
//!          <──────────── PARAM_EXCHANGE
//!   parameters ────────────────────────>   (JSON, its length in four bytes before it)
//!          <──────────── CREATE_STREAMS
//!   streams, one after the other ══════>
//!          <── TEST_START, TEST_RUNNING
//!   ═════════════ streams ══════════════
//!   TEST_END ──────────────────────────>   (the client's clock ends the test, also of the server's data)
//!          <────────── EXCHANGE_RESULTS
//!   results ───────────────────────────>
//!          <─────────────────── results
//!          <─────────── DISPLAY_RESULTS
//!   IPERF_DONE ────────────────────────>
//! ```
//!
//! [`Bulk`](crate::Bulk) is its client if its plan says so; [`Server`](crate::iperf3_server::Server) answers. Only tests of TCP
//! are supported. The protocol has no specification: this follows the program and its packets.

use core::fmt;

use crate::transport::ConnError;

pub use parameters::{Parameters, Protocol};
pub use results::{Processors, Results, StreamResult};

mod control;
mod parameters;
mod results;

pub(crate) use control::Control;

/// Bytes of a cookie: 36 letters and digits, and a NUL.
pub const COOKIE: usize = 37;

/// Default port of servers.
pub const PORT: u16 = 5201;

/// Identifies a test: each of its connections begins with it.
pub type Cookie = [u8; COOKIE];

/// Control message of one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i8)]
pub enum State {
    /// The server has all streams.
    TestStart = 1,
    /// The streams are open: bytes may flow.
    TestRunning = 2,
    /// The client's time is over.
    TestEnd = 4,
    /// The server takes the client's parameters.
    ParamExchange = 9,
    /// The client may open its streams.
    CreateStreams = 10,
    /// The server is being ended by its user.
    ServerTerminate = 11,
    /// The client ends the test before its time.
    ClientTerminate = 12,
    /// The server takes the client's results, then sends its own.
    ExchangeResults = 13,
    /// The server has sent its results.
    DisplayResults = 14,
    /// The client has received all.
    IperfDone = 16,
    /// The server runs another test.
    AccessDenied = -1,
    /// The server cannot run this test: two 32-bit numbers follow, iperf3's and the system's.
    ServerError = -2,
}

impl State {
    const ALL: [Self; 12] = [
        Self::TestStart,
        Self::TestRunning,
        Self::TestEnd,
        Self::ParamExchange,
        Self::CreateStreams,
        Self::ServerTerminate,
        Self::ClientTerminate,
        Self::ExchangeResults,
        Self::DisplayResults,
        Self::IperfDone,
        Self::AccessDenied,
        Self::ServerError,
    ];

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        (self as i8).cast_unsigned()
    }

    /// The state of a byte.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.byte() == byte)
    }
}

/// Reason for which a server refuses a test, as iperf3 numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Refusal {
    /// The time is longer than a day.
    Duration = 5,
    /// Too many streams.
    Streams = 6,
    /// Blocks too long.
    BlockSize = 7,
    /// Omitted time too long.
    Omit = 12,
    /// A parameter that is not supported here.
    Unimplemented = 13,
    /// The message is no cookie.
    Cookie = 106,
    /// A message that is unknown or out of place.
    Message = 110,
    /// Parameters that cannot be read.
    Parameters = 114,
    /// Results that cannot be read.
    Results = 117,
    /// A protocol other than TCP.
    Protocol = 131,
    /// Buffers larger than a client may request.
    Buffers = 141,
    /// An unknown congestion control.
    Congestion = 134,
}

impl Refusal {
    /// Its message of nine bytes.
    pub fn message(self) -> [u8; 9] {
        let [a, b, c, d] = (self as u32).to_be_bytes();
        [State::ServerError.byte(), a, b, c, d, 0, 0, 0, 0]
    }
}

/// The message that is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// An open control connection.
    Connection,
    /// The server's answer to the cookie.
    Answer,
    /// The document with the client's parameters.
    Parameters,
    /// The message that all streams are open.
    Streams,
    /// The end of the test.
    End,
    /// The other side's results.
    Results,
    /// The client's last message.
    Farewell,
}

impl Awaited {
    const fn name(self) -> &'static str {
        match self {
            Self::Connection => "a control connection",
            Self::Answer => "an answer to the cookie",
            Self::Parameters => "parameters",
            Self::Streams => "streams",
            Self::End => "the end of the test",
            Self::Results => "results",
            Self::Farewell => "the last message",
        }
    }
}

/// Reason for which a test failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The server runs another test.
    Denied,
    /// The server refused it, with these numbers of iperf3's and of the system's.
    Refused {
        /// The failure, as iperf3 numbers it (its `i_errno`).
        code: u32,
        /// The system's error number; 0 if no call of the system failed.
        errno: u32,
    },
    /// This server refused it.
    Declined(Refusal),
    /// The other side's user ended it.
    Terminated,
    /// A message that is unknown or out of place.
    Unexpected(u8),
    /// A document longer than the limit.
    TooLong {
        /// Its length.
        length: u32,
        /// The limit.
        limit: u32,
    },
    /// An invalid or incomplete document.
    Malformed,
    /// A message did not come in time.
    Silent(Awaited),
    /// The control connection ended before this message.
    Closed(Awaited),
    /// Nothing was moved for too long.
    Idle,
    /// A stream failed.
    Stream(ConnError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => f.write_str("the server is busy with another test: try again later"),
            Self::Refused { code: UNKNOWN, .. } => {
                write!(f, "it is no iperf3 server, and says so: {IS_IT_ONE}")
            }
            Self::Refused { code, errno } => {
                write!(f, "the server refuses the test: {}", reason(*code))?;
                if *errno == 0 { Ok(()) } else { write!(f, " (its system's error {errno})") }
            }
            Self::Declined(refusal) => {
                write!(f, "the test was refused: {}", reason(*refusal as u32))
            }
            Self::Terminated => f.write_str("the other side was ended by its user"),
            Self::Unexpected(byte) => {
                write!(f, "control message {byte} has no place here: {IS_IT_ONE}")
            }
            Self::TooLong { length, limit } => {
                write!(f, "a document of {length} bytes, and at most {limit} are read: {IS_IT_ONE}")
            }
            Self::Malformed => write!(f, "a document that cannot be read: {IS_IT_ONE}"),
            Self::Silent(awaited) => {
                write!(f, "timeout: waited for {}: {IS_IT_ONE}", awaited.name())
            }
            Self::Closed(awaited) => write!(
                f,
                "the control connection ended while {} was waited for: {IS_IT_ONE}",
                awaited.name()
            ),
            Self::Idle => f.write_str("nothing was moved any more: is the path up?"),
            Self::Stream(conn_error) => write!(f, "a stream failed: {conn_error}"),
        }
    }
}

/// Text of an iperf3 error number, as far as a server sends it.
fn reason(code: u32) -> String {
    let text = match code {
        5 => "the test is too long",
        6 => "too many streams",
        7 => "the blocks are too long",
        8 => "the buffers are too large",
        12 => "too much is omitted",
        13 => "it asks for something that is not implemented",
        102 | 202 => "it cannot listen",
        106 => "what came first is no cookie",
        110 => "an unknown message",
        114 => "the parameters cannot be read",
        117 => "the results cannot be read",
        123 => "the segment size cannot be set",
        124 => "the type of service cannot be set",
        130 | 141 => "the buffer size cannot be set",
        131 => "only TCP is spoken here",
        134 => "the congestion control is not known there",
        142 => "the user is not authorized",
        _ => return format!("error {code} of iperf3's"),
    };
    text.into()
}

/// Number of the stream at that place in the order of opening: 1, 3, 4, 5 and so on.
pub(crate) const fn stream_id(place: usize) -> u64 {
    if place == 0 { 1 } else { place as u64 + 2 }
}

/// True if the bytes are a cookie in iperf3's alphabet: letters and digits of base 32.
pub(crate) fn is_cookie(bytes: &[u8]) -> bool {
    let Some((0, letters)) = bytes.split_last() else { return false };
    bytes.len() == COOKIE
        && letters.iter().all(|letter| matches!(letter, b'a'..=b'z' | b'2'..=b'7'))
}

/// Reply of another server to a cookie.
const UNKNOWN: u32 = Refusal::Message as u32;
const IS_IT_ONE: &str = "is the other side iperf3? (`iperf3 -s` and `whimbrel bulk --server` are; \
                         for `whimbrel serve --sink` and `--chargen` give --peer plain)";

#[cfg(test)]
mod tests;
