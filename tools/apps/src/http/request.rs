//! A request as a site sees it: method, target, fields, and the framing of its body.

use super::range::{self, RangeOutcome};
use crate::source::Source;

/// The head of a request. Valid by construction: see [`head::parse`](super::head::parse).
#[derive(Clone, Copy, Debug)]
pub struct Request<'h> {
    /// The method of its request line.
    pub method: Method,
    /// The target without scheme and authority, its query included: begins with `/`, or is `*`
    /// (`OPTIONS`) or an authority (`CONNECT`).
    pub target: &'h str,
    /// The version the peer speaks.
    pub version: Version,
    /// Fields in their order.
    pub fields: Fields<'h>,
    /// Framing of its body.
    pub framing: Framing,
    /// True if the peer waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// True if the peer wants the connection to stay open after this exchange.
    pub persistent: bool,
    /// Most bytes that its connection takes at once. A body that is longer and not in memory should
    /// be a source.
    pub at_once: usize,
    /// Source of the request, where the site has a cost ([`Site::cost`](super::Site::cost)): what its
    /// client holds of a shared bound counts for it.
    pub source: Source,
}

impl<'h> Request<'h> {
    /// The path: the target up to its query.
    pub fn path(&self) -> &'h str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// The requested part of a representation of `length` bytes.
    pub fn range(&self, length: u64) -> RangeOutcome {
        // RFC 9110 14.2: "A server MUST ignore a Range header field received with a request
        // method that is unrecognized or for which range handling is not defined."
        // RFC 9110 13.1.5: without validators If-Range never matches, and the range is ignored.
        if self.method != Method::Get || self.fields.first("if-range").is_some() {
            return RangeOutcome::Whole;
        }
        self.fields.first("range").map_or(RangeOutcome::Whole, |field| range::judge(field, length))
    }
}

/// The header fields of a request.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'h> {
    lines: &'h [httparse::Header<'h>],
}

impl<'h> Fields<'h> {
    pub(crate) const fn new(lines: &'h [httparse::Header<'h>]) -> Self {
        Self { lines }
    }

    /// Values of all lines of this name, in upper or lower case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.lines.iter().filter(move |line| line.name.eq_ignore_ascii_case(name)).map(|l| l.value)
    }

    /// The value of the first line of this name.
    pub fn first(&self, name: &str) -> Option<&'h [u8]> {
        self.all(name).next()
    }

    /// Elements of a comma-separated list over all lines of this name, without empty ones.
    pub fn list(&self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|element| !element.is_empty())
    }

    /// True if a comma-separated list has this element, in upper or lower case.
    pub fn lists(&self, name: &str, element: &str) -> bool {
        self.list(name).any(|found| found.eq_ignore_ascii_case(element.as_bytes()))
    }
}

/// The methods of RFC 9110 9, and PATCH (RFC 5789).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// GET: transfer a representation of the target.
    Get,
    /// As GET, without the body.
    Head,
    /// POST: process the content.
    Post,
    /// PUT: replace the target by the content.
    Put,
    /// DELETE: remove the target.
    Delete,
    /// CONNECT: open a tunnel to the target.
    Connect,
    /// OPTIONS: list the methods of the target.
    Options,
    /// TRACE: send the request back.
    Trace,
    /// PATCH: change a part of the target.
    Patch,
}

impl Method {
    /// The method of this name; names are case-sensitive.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "CONNECT" => Self::Connect,
            "OPTIONS" => Self::Options,
            "TRACE" => Self::Trace,
            "PATCH" => Self::Patch,
            _ => return None,
        })
    }
}

/// Supported versions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// HTTP/1.0: the connection ends with the response, unless both sides say otherwise.
    Http10,
    /// HTTP/1.1: the connection stays open, unless a side says otherwise.
    Http11,
}

/// Framing of a request's body (RFC 9112 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// No framing field, so no body.
    None,
    /// `Content-Length`: a body of this many bytes follows.
    Length(u64),
    /// `Transfer-Encoding: chunked`: chunks follow, the last of them empty.
    Chunked,
}
