//! A response as a client reads it: octets in, and at its end what it was (RFC 9112 6 and 9).

use bytes::Bytes;

use super::Framing;
use super::body::BodyReader;
use super::chunked::BodyPart;
use super::head::field_room;
use super::limits::MAX_FIELDS;
use super::request::Fields;
use super::scan::HeadBuffer;
use crate::ConnError;

/// A response that came whole, as a client counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The status code of its status line, 100 to 999.
    pub status: u16,
    /// Octets of the body, without its framing.
    pub body: u64,
    /// Whether the connection can carry another request.
    pub persistent: bool,
}

/// Whether a response to the request has a body at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// As its head says.
    Body,
    /// None, whatever its head says: the request was HEAD.
    NoBody,
}

/// Reads one response after the other.
#[derive(Debug)]
pub struct ReplyReader {
    expected: Expected,
    head: HeadBuffer,
    stage: ReplyStage,
}

#[derive(Clone, Copy, Debug)]
enum ReplyStage {
    Head,
    /// Framed by length or by chunks.
    Framed {
        body: BodyReader,
        reply: Reply,
    },
    /// Ends with the connection.
    UntilEnd {
        reply: Reply,
    },
}

impl ReplyReader {
    /// A reader before the first octet of a response to a request of that kind.
    pub const fn new(expected: Expected) -> Self {
        Self { expected, head: HeadBuffer::new(), stage: ReplyStage::Head }
    }

    /// Reads from the front of `input`: a response if it is complete, what is behind it untouched.
    pub fn read(&mut self, input: &mut Bytes) -> Result<Option<Reply>, ConnError> {
        loop {
            match &mut self.stage {
                ReplyStage::Head => {
                    let head =
                        self.head.take(input, HEAD_LIMIT).map_err(|_| ConnError::BadAnswer)?;
                    let Some(head) = head else {
                        // A response begins with its version (RFC 9112 4): who greets in another
                        // protocol never ends a head: not to be waited for.
                        return match self.head.may_begin_with(b"HTTP/") {
                            true => Ok(None),
                            false => Err(ConnError::BadAnswer),
                        };
                    };
                    self.stage = self.begin(&head)?;
                }
                ReplyStage::Framed { body, reply } => {
                    match body.next(input).map_err(|_| ConnError::BadAnswer)? {
                        BodyPart::Data(octets) => reply.body += octets.len() as u64,
                        BodyPart::More => return Ok(None),
                        BodyPart::End => {
                            let reply = *reply;
                            self.stage = ReplyStage::Head;
                            return Ok(Some(reply));
                        }
                    }
                }
                ReplyStage::UntilEnd { reply } => {
                    reply.body += input.len() as u64;
                    input.clear();
                    return Ok(None);
                }
            }
        }
    }

    /// The peer closed its direction: the response that this completes, if it does.
    pub fn on_end(&mut self) -> Result<Reply, ConnError> {
        match self.stage {
            ReplyStage::UntilEnd { reply } => Ok(reply),
            ReplyStage::Head | ReplyStage::Framed { .. } => Err(ConnError::EndedEarly),
        }
    }

    fn begin(&self, head: &[u8]) -> Result<ReplyStage, ConnError> {
        let mut room = field_room();
        let mut parsed = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut parsed, head, &mut room) {
            Ok(httparse::Status::Complete(_)) => {}
            _ => return Err(ConnError::BadAnswer),
        }
        let status = parsed.code.unwrap_or(0);
        // RFC 9110 15.2: 1xx responses come before the final one.
        if (100..200).contains(&status) {
            return Ok(ReplyStage::Head);
        }
        let fields = Fields::new(parsed.headers);
        let persistent = match parsed.version {
            Some(1) => !fields.lists("connection", "close"),
            _ => fields.lists("connection", "keep-alive"),
        };
        let reply = Reply { status, body: 0, persistent };
        // RFC 9112 6.3: responses to HEAD, 204 and 304 end with their head.
        if self.expected == Expected::NoBody || matches!(status, 204 | 304) {
            return framed(Framing::None, reply);
        }
        match framing(fields)? {
            Some(framing) => framed(framing, reply),
            None => Ok(ReplyStage::UntilEnd { reply: Reply { persistent: false, ..reply } }),
        }
    }
}

/// `None`: the body ends with the connection.
fn framing(fields: Fields<'_>) -> Result<Option<Framing>, ConnError> {
    if fields.first("transfer-encoding").is_some() {
        let chunked = fields.lists("transfer-encoding", "chunked");
        return Ok(chunked.then_some(Framing::Chunked));
    }
    let mut lengths = fields.list("content-length");
    let Some(first) = lengths.next() else { return Ok(None) };
    if lengths.any(|other| other != first) {
        return Err(ConnError::BadAnswer);
    }
    let digits = first.iter().all(u8::is_ascii_digit).then_some(first);
    let length = digits.and_then(|digits| core::str::from_utf8(digits).ok()?.parse().ok());
    length.map(|length| Some(Framing::Length(length))).ok_or(ConnError::BadAnswer)
}

fn framed(framing: Framing, reply: Reply) -> Result<ReplyStage, ConnError> {
    let body = BodyReader::new(framing, u64::MAX).map_err(|_| ConnError::BadAnswer)?;
    Ok(ReplyStage::Framed { body, reply })
}

/// The longest head of a response, octets: as much as common clients take.
const HEAD_LIMIT: usize = 64 << 10;
const _: () = assert!(MAX_FIELDS >= 64, "servers send dozens of fields");

#[cfg(test)]
mod tests;
