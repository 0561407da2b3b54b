//! A response: status, fields, body, and its head in bytes.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use bytes::Bytes;

use super::date::HttpDate;
use super::{BodySource, ByteRange, Request};

/// What is sent back. Framing and connection fields are the connection's, not the site's.
pub struct Response {
    /// The code and reason of its status line.
    pub status: Status,
    /// The media type of the body.
    pub content_type: Option<&'static str>,
    /// Fields beside `Content-Type`, `Content-Length`, `Date` and `Connection`, which the server writes.
    pub fields: Vec<Field>,
    /// What follows the head, with its length.
    pub body: Body,
}

/// A header field. Neither part holds CR, LF or NUL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// The field's name, as it is written.
    pub name: &'static str,
    /// The field's value, as it is written: without CR or LF.
    pub value: Cow<'static, str>,
}

/// A response's body: in memory, or from a source that is read piece by piece.
pub enum Body {
    /// In memory, handed to the stack by reference.
    Bytes(Bytes),
    /// Read as fast as the peer takes it.
    Source {
        /// How many bytes it will have.
        length: u64,
        /// Where they come from.
        source: Box<dyn BodySource>,
    },
}

impl Body {
    /// The number of bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Source { length, .. } => *length,
        }
    }
}

impl Response {
    /// A response without further fields.
    pub const fn new(status: Status, content_type: &'static str, body: Body) -> Self {
        Self { status, content_type: Some(content_type), fields: Vec::new(), body }
    }

    /// One that has no body, and whose head says nothing of one.
    pub const fn bare(status: Status) -> Self {
        let body = Body::Bytes(Bytes::new());
        Self { status, content_type: None, fields: Vec::new(), body }
    }

    /// A response for people: one line of plain text, after the status if that is an error.
    pub fn text(status: Status, text: impl Into<Cow<'static, str>>) -> Self {
        let text: Cow<'static, str> = text.into();
        let body = if status.code >= 400 {
            Bytes::from(format!("{} {}: {text}", status.code, status.reason))
        } else {
            match text {
                Cow::Borrowed(text) => Bytes::from_static(text.as_bytes()),
                Cow::Owned(text) => Bytes::from(text),
            }
        };
        Self::new(status, "text/plain; charset=utf-8", Body::Bytes(body))
    }

    /// 404, saying for what.
    pub fn not_found(request: &Request<'_>) -> Self {
        let path = request.path();
        // The target is ASCII. A client that takes no answer would have all of it kept.
        let (shown, more) = path.get(..SHOWN).map_or((path, ""), |shown| (shown, "..."));
        Self::text(Status::NOT_FOUND, format!("nothing is at {shown}{more}\n"))
    }

    /// 405, with the methods that are allowed, separated by `, `.
    pub fn method_not_allowed(allowed: &'static str) -> Self {
        Self::text(Status::METHOD_NOT_ALLOWED, format!("this target takes {allowed}\n"))
            .with_field("Allow", allowed)
    }

    /// 206: `body` is the part `range` of a representation of `length` bytes.
    pub fn partial(range: ByteRange, length: u64, content_type: &'static str, body: Body) -> Self {
        let value = format!("bytes {}-{}/{length}", range.first, range.last);
        Self::new(Status::PARTIAL_CONTENT, content_type, body).with_field("Content-Range", value)
    }

    /// 412: it is another version than the one that the request is about.
    pub fn precondition_failed() -> Self {
        let text = "it is not the version that the request is about: ask for it anew\n";
        Self::text(Status::PRECONDITION_FAILED, text)
    }

    /// 416: the representation has only `length` bytes.
    pub fn range_not_satisfiable(length: u64) -> Self {
        let text = format!("the representation has {length} bytes: ask for a range of those\n");
        Self::text(Status::RANGE_NOT_SATISFIABLE, text)
            .with_field("Content-Range", format!("bytes */{length}"))
    }

    /// The same with one more field.
    #[must_use]
    pub fn with_field(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        let value = value.into();
        debug_assert!(!value.contains(['\r', '\n', '\0']), "a field value ends its own line");
        self.fields.push(Field { name, value });
        self
    }

    /// Appends the head's bytes to `out`.
    pub(crate) fn write_head(
        &self,
        connection_option: ConnectionOption,
        date: Option<&HttpDate>,
        out: &mut Vec<u8>,
    ) {
        let Status { code, reason } = self.status;
        out.extend_from_slice(b"HTTP/1.1 ");
        decimal(out, code.into());
        line(out, &[" ", reason]);
        if let Some(content_type) = self.content_type {
            line(out, &["Content-Type: ", content_type]);
        }
        // RFC 9110 8.6: "a server MUST NOT send Content-Length in such a response unless its field
        // value equals the decimal number of octets that would have been sent in the content of a 200
        // (OK) response to the same request"
        if self.status != Status::NOT_MODIFIED {
            out.extend_from_slice(b"Content-Length: ");
            decimal(out, self.body.length());
            line(out, &[]);
        }
        if let Some(date) = date {
            line(out, &["Date: ", date.as_str()]);
        }
        for Field { name, value } in &self.fields {
            line(out, &[name, ": ", value]);
        }
        match connection_option {
            ConnectionOption::Implied => {}
            ConnectionOption::Said => line(out, &["Connection: keep-alive"]),
            ConnectionOption::Ends => line(out, &["Connection: close"]),
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// The beginning of a path that a 404 repeats, bytes.
const SHOWN: usize = 128;

/// What a response says of the connection's future.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionOption {
    /// It goes on, as HTTP/1.1 assumes.
    Implied,
    /// It goes on, and a peer of HTTP/1.0 must be told.
    Said,
    /// The connection ends behind it: `Connection: close`.
    Ends,
}

fn line(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends `number`. The standard library's formatter takes 400 instructions more for the two of a head,
/// of 1,600 for all of it.
fn decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A status code and its name in RFC 9110 15.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The code, 100 ..= 599.
    pub code: u16,
    /// The words behind the code in the status line, which nobody may depend on.
    pub reason: &'static str,
}

impl Status {
    /// True if it says that the request failed.
    pub const fn is_error(self) -> bool {
        self.code >= 400
    }
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:literal $reason:literal,)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Self = Self { code: $code, reason: $reason };)*
        }
    };
}

statuses! {
    /// 200: the body is what was asked for.
    OK = 200 "OK",
    /// It worked, and made something new.
    CREATED = 201 "Created",
    /// Part of the representation, as asked.
    PARTIAL_CONTENT = 206 "Partial Content",
    /// It is elsewhere, for good.
    MOVED_PERMANENTLY = 301 "Moved Permanently",
    /// The client has it already.
    NOT_MODIFIED = 304 "Not Modified",
    /// 400: what came is no request of HTTP/1.1.
    BAD_REQUEST = 400 "Bad Request",
    /// Not for this peer.
    FORBIDDEN = 403 "Forbidden",
    /// 404: the target does not exist, or is not served.
    NOT_FOUND = 404 "Not Found",
    /// Something is there that does not take this method.
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed",
    /// The request took too long.
    REQUEST_TIMEOUT = 408 "Request Timeout",
    /// It does not fit what is there.
    CONFLICT = 409 "Conflict",
    /// A length is missing.
    LENGTH_REQUIRED = 411 "Length Required",
    /// It is not what the request takes it for.
    PRECONDITION_FAILED = 412 "Precondition Failed",
    /// The body is too long.
    CONTENT_TOO_LARGE = 413 "Content Too Large",
    /// The target is too long.
    URI_TOO_LONG = 414 "URI Too Long",
    /// The range lies outside.
    RANGE_NOT_SATISFIABLE = 416 "Range Not Satisfiable",
    /// The expectation cannot be met.
    EXPECTATION_FAILED = 417 "Expectation Failed",
    /// The head is too long.
    FIELDS_TOO_LARGE = 431 "Request Header Fields Too Large",
    /// 500: the server failed to do what it should.
    INTERNAL_SERVER_ERROR = 500 "Internal Server Error",
    /// The server does not know how.
    NOT_IMPLEMENTED = 501 "Not Implemented",
    /// 503: the server has no room for this at the moment, and says when to come again.
    SERVICE_UNAVAILABLE = 503 "Service Unavailable",
    /// Not a version spoken here.
    VERSION_NOT_SUPPORTED = 505 "HTTP Version Not Supported",
    /// No room is left.
    INSUFFICIENT_STORAGE = 507 "Insufficient Storage",
}

#[cfg(test)]
mod tests;
