//! A response: status, fields, body, and the bytes of its head.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use bytes::Bytes;

use super::date::HttpDate;
use super::{BodySource, ByteRange, Request};

/// A site's response. Framing and connection fields are the connection's, not the site's.
pub struct Response {
    /// The code and reason of its status line.
    pub status: Status,
    /// The media type of the body.
    pub content_type: Option<&'static str>,
    /// Additional fields. The server writes `Content-Type`, `Content-Length`, `Date` and
    /// `Connection`.
    pub fields: Vec<Field>,
    /// Body, with its length.
    pub body: Body,
}

/// A header field. Neither part holds CR, LF or NUL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Name of the field, as written.
    pub name: &'static str,
    /// Value of the field, as written, without CR or LF.
    pub value: Cow<'static, str>,
}

/// A response's body: in memory, or from a source that is read piece by piece.
pub enum Body {
    /// In memory, passed to the stack by reference.
    Bytes(Bytes),
    /// From a source, as fast as the peer reads.
    Source {
        /// Length in bytes.
        length: u64,
        /// Source of the bytes.
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

    /// A response without a body, whose head does not mention one.
    pub const fn bare(status: Status) -> Self {
        let body = Body::Bytes(Bytes::new());
        Self { status, content_type: None, fields: Vec::new(), body }
    }

    /// A response for people: one line of plain text, with the status in front of an error.
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

    /// 404, with the path.
    pub fn not_found(request: &Request<'_>) -> Self {
        let path = request.path();
        // The target is ASCII. If a client does not read, the whole response stays in memory.
        let (shown, more) = path.get(..SHOWN).map_or((path, ""), |shown| (shown, "..."));
        Self::text(Status::NOT_FOUND, format!("nothing is at {shown}{more}\n"))
    }

    /// 405, with the allowed methods, separated by `, `.
    pub fn method_not_allowed(allowed: &'static str) -> Self {
        Self::text(Status::METHOD_NOT_ALLOWED, format!("this target takes {allowed}\n"))
            .with_field("Allow", allowed)
    }

    /// 206: `body` is the part `range` of a representation of `length` bytes.
    pub fn partial(range: ByteRange, length: u64, content_type: &'static str, body: Body) -> Self {
        let value = format!("bytes {}-{}/{length}", range.first, range.last);
        Self::new(Status::PARTIAL_CONTENT, content_type, body).with_field("Content-Range", value)
    }

    /// 412: the representation is another version than the one in the request.
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

    /// Adds a field.
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

/// Bytes of a path that a 404 repeats.
const SHOWN: usize = 128;

/// The `Connection` option of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionOption {
    /// It stays open, as HTTP/1.1 assumes.
    Implied,
    /// It stays open, which an HTTP/1.0 peer must read in the response.
    Said,
    /// The connection closes after it: `Connection: close`.
    Ends,
}

fn line(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends `number`. The standard library's formatter takes 400 more instructions for the two
/// numbers of a head, of 1,600 in all.
fn decimal(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// A status code and its name in RFC 9110 15.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// The code, 100 ..= 599.
    pub code: u16,
    /// Reason phrase after the code in the status line; clients must not depend on it.
    pub reason: &'static str,
}

impl Status {
    /// True if the request failed.
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
    /// 200: the body is the requested representation.
    OK = 200 "OK",
    /// 201: the request made something new.
    CREATED = 201 "Created",
    /// 206: the requested part of the representation.
    PARTIAL_CONTENT = 206 "Partial Content",
    /// 301: the target has moved for good.
    MOVED_PERMANENTLY = 301 "Moved Permanently",
    /// 304: the client has the representation already.
    NOT_MODIFIED = 304 "Not Modified",
    /// 400: the input is no request of HTTP/1.1.
    BAD_REQUEST = 400 "Bad Request",
    /// 403: this peer may not have the target.
    FORBIDDEN = 403 "Forbidden",
    /// 404: the target does not exist, or is not served.
    NOT_FOUND = 404 "Not Found",
    /// 405: the target exists but does not take this method.
    METHOD_NOT_ALLOWED = 405 "Method Not Allowed",
    /// 408: the request took too long.
    REQUEST_TIMEOUT = 408 "Request Timeout",
    /// 409: the request conflicts with the present state.
    CONFLICT = 409 "Conflict",
    /// 411: a length is missing.
    LENGTH_REQUIRED = 411 "Length Required",
    /// 412: a condition of the request does not hold.
    PRECONDITION_FAILED = 412 "Precondition Failed",
    /// 413: the body is too long.
    CONTENT_TOO_LARGE = 413 "Content Too Large",
    /// 414: the target is too long.
    URI_TOO_LONG = 414 "URI Too Long",
    /// 416: the range lies outside.
    RANGE_NOT_SATISFIABLE = 416 "Range Not Satisfiable",
    /// 417: the expectation cannot be met.
    EXPECTATION_FAILED = 417 "Expectation Failed",
    /// 431: the head is too long.
    FIELDS_TOO_LARGE = 431 "Request Header Fields Too Large",
    /// 500: the server failed.
    INTERNAL_SERVER_ERROR = 500 "Internal Server Error",
    /// 501: the server does not support the method.
    NOT_IMPLEMENTED = 501 "Not Implemented",
    /// 503: the server has no room now; the response names a time to retry.
    SERVICE_UNAVAILABLE = 503 "Service Unavailable",
    /// 505: the version is not supported.
    VERSION_NOT_SUPPORTED = 505 "HTTP Version Not Supported",
    /// 507: no storage is left.
    INSUFFICIENT_STORAGE = 507 "Insufficient Storage",
}

#[cfg(test)]
mod tests;
