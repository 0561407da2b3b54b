//! The place of one connection of a load.

use bytes::Bytes;
use whimbrel_base::Instant;

use super::plan::{Exchange, ResponseEnd};
use crate::ConnError;
use crate::http::Method;
use crate::http::reply::ReplyReader;

/// The place of one connection.
#[derive(Debug)]
pub(crate) struct LoadConnection<I> {
    pub(crate) id: Option<I>,
    pub(crate) state: ExchangeState,
    /// What is still to be sent of the request.
    pub(crate) pending: Bytes,
    /// True if the request began with the SYN.
    pub(crate) early: bool,
    /// True if the connection was kept since an exchange before this one.
    pub(crate) kept: bool,
    /// True if the transport took the request's end no more.
    pub(crate) cut: bool,
    pub(crate) reader: AnswerReader,
    pub(crate) times: Times,
}

/// What a connection is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExchangeState {
    /// Nothing: it may be open or not.
    Idle,
    /// Our SYN is out.
    Opening,
    /// A request is on its way, or its answer.
    Exchange,
    /// The end of the connection is awaited.
    Closing,
}

/// The moments of an exchange.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Times {
    /// When it fell due, or would have, had the load not stood still before it began.
    pub(crate) due: Instant,
    /// True if it counts: it fell due after the warm-up.
    pub(crate) measured: bool,
    /// When it was begun: with the SYN, if there was one.
    pub(crate) began: Instant,
    /// When its connection began to open: later, if it waited for a port.
    pub(crate) opened: Instant,
    /// When the request began.
    pub(crate) asked: Instant,
    /// When the answer began.
    pub(crate) first: Option<Instant>,
    /// When the answer was complete.
    pub(crate) answered: Instant,
}

/// Finds the end of an answer: by its length, or by HTTP.
#[derive(Debug)]
pub(crate) enum AnswerReader {
    Http(ReplyReader),
    Octets { of: u64, left: u64 },
}

/// What is counted of an answer that came whole.
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
            ResponseEnd::Octets(of) => Self::Octets { of, left: of },
        }
    }

    /// True if an open connection is answer enough.
    pub(crate) const fn wants_nothing(&self) -> bool {
        matches!(self, Self::Octets { of: 0, .. })
    }

    /// The answer, if these bytes complete it.
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
            Self::Octets { of, left } => {
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

    /// True if these bytes, which no request asked for, leave the connection in use. RFC 9112 9.2: "the
    /// client SHOULD close the connection, since message delimitation is now ambiguous, unless the data
    /// consists only of one or more CRLF (which can be discarded per Section 2.2)".
    pub(crate) fn forgives(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Http(_) => bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n')),
            Self::Octets { .. } => bytes.is_empty(),
        }
    }

    /// True if nothing came that is an answer to the request.
    pub(crate) const fn is_silent(&self) -> bool {
        match self {
            Self::Http(reader) => !reader.has_begun(),
            Self::Octets { of, left } => *of == *left,
        }
    }

    /// Bytes that came of a head until it was too long; 0 if none was.
    pub(crate) const fn refused_head(&self) -> usize {
        match self {
            Self::Http(reader) => reader.refused_head(),
            Self::Octets { .. } => 0,
        }
    }

    pub(crate) fn on_end(&mut self) -> Result<CompleteAnswer, ConnError> {
        match self {
            Self::Http(reader) => {
                let reply = reader.on_end()?;
                Ok(CompleteAnswer { status: reply.status, body: reply.body, persistent: false })
            }
            Self::Octets { .. } => Err(ConnError::EndedEarly),
        }
    }
}

/// True if to carry the request out twice has the effect of once (RFC 9110 9.2.2), as far as its method
/// says.
pub(crate) fn is_idempotent(exchange: &Exchange) -> bool {
    let ResponseEnd::Http(_) = exchange.answer else { return false };
    let name = exchange.request.split(|byte| *byte == b' ').next().unwrap_or_default();
    let method = core::str::from_utf8(name).ok().and_then(Method::parse);
    use Method::{Delete, Get, Head, Options, Put, Trace};
    matches!(method, Some(Get | Head | Put | Delete | Options | Trace))
}
