//! State of one connection of a load.

use bytes::Bytes;
use whimbrel_base::Instant;

use super::plan::{Exchange, ResponseEnd};
use crate::ConnError;
use crate::http::Method;
use crate::http::reply::ReplyReader;

/// State of one connection.
#[derive(Debug)]
pub(crate) struct LoadConnection<I> {
    pub(crate) id: Option<I>,
    pub(crate) state: ExchangeState,
    /// Bytes of the request still to be sent.
    pub(crate) pending: Bytes,
    /// True if the request began with the SYN.
    pub(crate) early: bool,
    /// True if the connection is kept from an earlier exchange.
    pub(crate) kept: bool,
    /// True if the transport did not take the rest of the request.
    pub(crate) cut: bool,
    pub(crate) reader: AnswerReader,
    pub(crate) times: Times,
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExchangeState {
    /// No exchange; it may be open or not.
    Idle,
    /// The SYN is sent.
    Opening,
    /// A request or its response is under way.
    Exchange,
    /// The connection is closing.
    Closing,
}

/// Times of an exchange.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Times {
    /// Time when it fell due, without pauses before its start.
    pub(crate) due: Instant,
    /// True if it fell due after the warm-up, so that it counts.
    pub(crate) measured: bool,
    /// Start of the exchange: with the SYN, if there was one.
    pub(crate) began: Instant,
    /// Start of its connection: later, if it waited for a port.
    pub(crate) opened: Instant,
    /// Start of the request.
    pub(crate) asked: Instant,
    /// Start of the response.
    pub(crate) first: Option<Instant>,
    /// End of the response.
    pub(crate) answered: Instant,
}

/// Finds the end of a response: by its length, or by HTTP.
#[derive(Debug)]
pub(crate) enum AnswerReader {
    Http(ReplyReader),
    Bytes { of: u64, left: u64 },
}

/// Measurements of a complete response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CompleteAnswer {
    pub(crate) status: u16,
    pub(crate) body: u64,
    pub(crate) persistent: bool,
}

impl<I> LoadConnection<I> {
    pub(crate) fn new(exchange: &Exchange) -> Self {
        Self {
            id: None,
            state: ExchangeState::Idle,
            pending: Bytes::new(),
            early: false,
            kept: false,
            cut: false,
            reader: AnswerReader::new(exchange.answer),
            times: Times::default(),
        }
    }
}

impl AnswerReader {
    pub(crate) const fn new(answer: ResponseEnd) -> Self {
        match answer {
            ResponseEnd::Http(expected) => Self::Http(ReplyReader::new(expected)),
            ResponseEnd::Bytes(of) => Self::Bytes { of, left: of },
        }
    }

    /// True if an open connection is enough.
    pub(crate) const fn wants_nothing(&self) -> bool {
        matches!(self, Self::Bytes { of: 0, .. })
    }

    /// The response, if these bytes complete it.
    pub(crate) fn read(&mut self, input: &mut Bytes) -> Result<Option<CompleteAnswer>, ConnError> {
        match self {
            Self::Http(reader) => {
                let reply = reader.read(input)?;
                Ok(reply.map(|reply| CompleteAnswer {
                    status: reply.status,
                    body: reply.body,
                    persistent: reply.persistent,
                }))
            }
            Self::Bytes { of, left } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                drop(input.split_to(taken));
                *left -= taken as u64;
                if *left > 0 {
                    return Ok(None);
                }
                *left = *of;
                Ok(Some(CompleteAnswer { status: 0, body: *of, persistent: true }))
            }
        }
    }

    /// True if the connection stays in use after these bytes, which belong to no request. RFC 9112
    /// 9.2: "the client SHOULD close the connection, since message delimitation is now ambiguous,
    /// unless the data consists only of one or more CRLF (which can be discarded per Section 2.2)".
    pub(crate) fn forgives(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Http(_) => bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n')),
            Self::Bytes { .. } => bytes.is_empty(),
        }
    }

    /// True if nothing came that is a response to the request.
    pub(crate) const fn is_silent(&self) -> bool {
        match self {
            Self::Http(reader) => !reader.has_begun(),
            Self::Bytes { of, left } => *of == *left,
        }
    }

    /// Bytes of a head until it was too long; 0 if none was.
    pub(crate) const fn refused_head(&self) -> usize {
        match self {
            Self::Http(reader) => reader.refused_head(),
            Self::Bytes { .. } => 0,
        }
    }

    pub(crate) fn on_end(&mut self) -> Result<CompleteAnswer, ConnError> {
        match self {
            Self::Http(reader) => {
                let reply = reader.on_end()?;
                Ok(CompleteAnswer { status: reply.status, body: reply.body, persistent: false })
            }
            Self::Bytes { .. } => Err(ConnError::EndedEarly),
        }
    }
}

/// True if the request's method is idempotent (RFC 9110 9.2.2).
pub(crate) fn is_idempotent(exchange: &Exchange) -> bool {
    let ResponseEnd::Http(_) = exchange.answer else { return false };
    let name = exchange.request.split(|byte| *byte == b' ').next().unwrap_or_default();
    let method = core::str::from_utf8(name).ok().and_then(Method::parse);
    use Method::{Delete, Get, Head, Options, Put, Trace};
    matches!(method, Some(Get | Head | Put | Delete | Options | Trace))
}
