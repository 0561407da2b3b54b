//! Reads responses as a client (RFC 9112 6 and 9).

use alloc::vec;

use bytes::{Buf, Bytes};

use super::body::BodyReader;
use super::chunked::BodyPart;
use super::head::field_room;
use super::limits::MAX_FIELDS;
use super::request::Fields;
use super::scan::{HeadBuffer, HeadTooLong};
use super::{Framing, Version};
use crate::ConnError;

/// A complete response, as a client counts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The status code of its status line, 101 to 999.
    pub status: u16,
    /// Bytes of the body, without its framing.
    pub body: u64,
    /// True if the connection can carry another request.
    pub persistent: bool,
}

/// Presence of a body in the response, by the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// As its head says.
    Body,
    /// None, in any response: the request was HEAD.
    Empty,
    /// None if it succeeds, and no further response on that connection: the request was CONNECT.
    Tunnel,
}

/// Reads responses in sequence.
#[derive(Debug)]
pub struct ReplyReader {
    expected: Expected,
    head: HeadBuffer,
    stage: ReplyStage,
    /// True after a complete head, of an interim response or of the final one.
    begun: bool,
    /// Bytes of a head that was too long.
    refused: usize,
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
    /// A reader before the first byte of a response.
    pub const fn new(expected: Expected) -> Self {
        Self {
            expected,
            head: HeadBuffer::new(),
            stage: ReplyStage::Head,
            begun: false,
            refused: 0,
        }
    }

    /// True after a complete head: malformed bytes before that may be no response at all.
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Bytes of a head until it was too long; 0 if none was.
    pub const fn refused_head(&self) -> usize {
        self.refused
    }

    /// Reads from the front of `input`, up to the end of a complete response.
    pub fn read(&mut self, input: &mut Bytes) -> Result<Option<Reply>, ConnError> {
        loop {
            match &mut self.stage {
                ReplyStage::Head => {
                    let Some(head) = self.take_head(input)? else { return Ok(None) };
                    self.stage = self.begin(&head)?;
                    self.begun = true;
                }
                ReplyStage::Framed { body, reply } => {
                    match body.next(input).map_err(|_| ConnError::BadAnswer)? {
                        BodyPart::Data(bytes) => reply.body += bytes.len() as u64,
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

    /// Handles the end of the peer's direction: returns the response that it completes.
    pub fn on_end(&mut self) -> Result<Reply, ConnError> {
        match self.stage {
            ReplyStage::UntilEnd { reply } => Ok(reply),
            ReplyStage::Head | ReplyStage::Framed { .. } => Err(ConnError::EndedEarly),
        }
    }

    /// The next head from the front of `input`, if it is complete.
    fn take_head(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, ConnError> {
        if self.head.is_empty() {
            // Empty lines after the body before it, or before the first.
            let empty = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            input.advance(empty);
        }
        let piece = (!self.head.is_empty()).then(|| input.clone());
        let head = self.head.take_reply(input, HEAD_LIMIT);
        let head = head.map_err(|HeadTooLong { came }| {
            self.refused = came;
            ConnError::HeadTooLong
        })?;
        // A response begins with its version (RFC 9112 4). Input in another protocol never ends a
        // head, so the reader does not wait. Neither does it for a byte that no field holds (RFC
        // 9110 5.5).
        let has_nul = piece.is_some_and(|piece| piece.contains(&0));
        match head.is_some() || !has_nul && self.head.may_begin_with(b"HTTP/") {
            true => Ok(head),
            false => Err(ConnError::BadAnswer),
        }
    }

    fn begin(&self, head: &[u8]) -> Result<ReplyStage, ConnError> {
        let mut config = httparse::ParserConfig::default();
        // RFC 9112 5.2: "A user agent that receives an obs-fold in a response message [...] MUST replace
        // each received obs-fold with one or more SP octets prior to interpreting the field value".
        config.allow_obsolete_multiline_headers_in_responses(true);
        config.allow_spaces_after_header_name_in_responses(true);
        let mut room = field_room();
        let mut parsed = httparse::Response::new(&mut []);
        match config.parse_response_with_uninit_headers(&mut parsed, head, &mut room) {
            Ok(httparse::Status::Complete(_)) => return self.frame(&parsed),
            Err(httparse::Error::TooManyHeaders) => {}
            _ => return Err(ConnError::BadAnswer),
        }
        // A long head may have more fields than the stack has room for.
        let lines = head.iter().filter(|byte| **byte == b'\n').count();
        let mut room = vec![httparse::EMPTY_HEADER; lines];
        let mut parsed = httparse::Response::new(&mut room);
        match config.parse_response(&mut parsed, head) {
            Ok(httparse::Status::Complete(_)) => self.frame(&parsed),
            _ => Err(ConnError::BadAnswer),
        }
    }

    /// Finds the end of the response, and whether the connection stays open after it.
    fn frame(&self, head: &httparse::Response<'_, '_>) -> Result<ReplyStage, ConnError> {
        let status = head.code.unwrap_or(0);
        // RFC 9110 15.2: 1xx responses come before the final one, except for the one after which
        // another protocol begins (15.2.2).
        if (100..200).contains(&status) && status != 101 {
            return Ok(ReplyStage::Head);
        }
        let fields = Fields::new(head.headers);
        let version = if head.version == Some(1) { Version::Http11 } else { Version::Http10 };
        let reply = Reply { status, body: 0, persistent: is_persistent(version, fields) };
        let last = Reply { persistent: false, ..reply };
        // RFC 9112 6.3: responses to HEAD, 204 and 304 end with their head; so does the one that opens a
        // tunnel, "immediately after the empty line that concludes the header fields".
        let opens = self.expected == Expected::Tunnel && (200..300).contains(&status);
        if status == 101 || opens {
            return Ok(framed(Framing::None, last));
        }
        if self.expected == Expected::Empty || matches!(status, 204 | 304) {
            return Ok(framed(Framing::None, reply));
        }
        if fields.first("transfer-encoding").is_some() {
            return Ok(coded(version, fields, reply));
        }
        match content_length(fields)? {
            Some(length) => Ok(framed(Framing::Length(length), reply)),
            None => Ok(ReplyStage::UntilEnd { reply: last }),
        }
    }
}

/// RFC 9112 9.3: 'If the "close" connection option is present [...], the connection will not
/// persist after the current response'; otherwise it does in HTTP/1.1, and in HTTP/1.0 if
/// "keep-alive" is present. `Proxy-Connection` is no field of a server's (C.2.2).
fn is_persistent(version: Version, fields: Fields<'_>) -> bool {
    !fields.lists("connection", "close")
        && (version == Version::Http11 || fields.lists("connection", "keep-alive"))
}

/// The framing by `Transfer-Encoding`, which "overrides the Content-Length" (RFC 9112 6.3).
fn coded(version: Version, fields: Fields<'_>, reply: Reply) -> ReplyStage {
    let last = fields.list("transfer-encoding").last();
    // RFC 9112 6.3: "If a Transfer-Encoding header field is present in a response and the chunked transfer
    // coding is not the final encoding, the message body length is determined by reading the connection
    // until it is closed by the server."
    if !last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) {
        return ReplyStage::UntilEnd { reply: Reply { persistent: false, ..reply } };
    }
    // RFC 9112 6.1: in HTTP/1.0 a recipient "MUST treat the message as if the framing is faulty, even if a
    // Content-Length is present, and close the connection after processing the message". With both, the
    // two sides may disagree about its end.
    let is_sound = version == Version::Http11 && fields.first("content-length").is_none();
    framed(Framing::Chunked, Reply { persistent: reply.persistent && is_sound, ..reply })
}

/// The common value of all `Content-Length` fields; `None`: the body ends with the connection.
fn content_length(fields: Fields<'_>) -> Result<Option<u64>, ConnError> {
    let mut found = None;
    for element in fields.list("content-length") {
        let digits = element.iter().all(u8::is_ascii_digit).then_some(element);
        let length = digits.and_then(|digits| core::str::from_utf8(digits).ok()?.parse().ok());
        let length: u64 = length.ok_or(ConnError::BadAnswer)?;
        if found.is_some_and(|other| other != length) {
            return Err(ConnError::BadAnswer);
        }
        found = Some(length);
    }
    match found.is_none() && fields.first("content-length").is_some() {
        true => Err(ConnError::BadAnswer),
        false => Ok(found),
    }
}

fn framed(framing: Framing, reply: Reply) -> ReplyStage {
    ReplyStage::Framed { body: BodyReader::of_response(framing), reply }
}

/// Longest head of a response, bytes: more than servers send, and no more than common clients take.
pub const HEAD_LIMIT: usize = 256 << 10;
const _: () = assert!(MAX_FIELDS >= 64, "servers send dozens of fields");

#[cfg(test)]
mod tests;
