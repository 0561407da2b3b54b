//! A request as a site sees it: method, target, fields, and how its body is framed.

use super::range::{self, RangeOutcome};

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
    /// The fields, in the order they came.
    pub fields: Fields<'h>,
    /// How its body is framed.
    pub framing: Framing,
    /// True if the peer waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// True if the peer wants to go on after this exchange.
    pub persistent: bool,
    /// How many bytes its connection takes at once: a body that is longer, and that is not in memory yet,
    /// is better a source.
    pub at_once: usize,
}

impl<'h> Request<'h> {
    /// The path: the target up to its query.
    pub fn path(&self) -> &'h str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }

    /// What part of a representation of `length` bytes is asked for.
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

    /// The values of every line of this name, whatever its case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.lines.iter().filter(move |line| line.name.eq_ignore_ascii_case(name)).map(|l| l.value)
    }

    /// The value of the first line of this name.
    pub fn first(&self, name: &str) -> Option<&'h [u8]> {
        self.all(name).next()
    }

    /// The elements of a comma-separated list over all lines of this name, without empty ones.
    pub fn list(&self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(<[u8]>::trim_ascii)
            .filter(|element| !element.is_empty())
    }

    /// True if a comma-separated list has this element, whatever its case.
    pub fn lists(&self, name: &str, element: &str) -> bool {
        self.list(name).any(|found| found.eq_ignore_ascii_case(element.as_bytes()))
    }
}

/// The methods of RFC 9110 9, and PATCH (RFC 5789).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// GET: transfer a representation of the target.
    Get,
    /// The same, without the body.
    Head,
    /// Process what is sent.
    Post,
    /// Replace the target by what is sent.
    Put,
    /// DELETE: remove the target.
    Delete,
    /// CONNECT: open a tunnel to the target.
    Connect,
    /// Say what can be done.
    Options,
    /// Send the request back.
    Trace,
    /// Change the target in part.
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

/// The versions spoken here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Version {
    /// HTTP/1.0: the connection ends with the response, unless both sides say otherwise.
    Http10,
    /// HTTP/1.1: the connection stays open, unless a side says otherwise.
    Http11,
}

/// How a request's body is framed (RFC 9112 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// No framing field: no body.
    None,
    /// `Content-Length`: a body of so many bytes follows.
    Length(u64),
    /// `Transfer-Encoding: chunked`: a body in chunks follows, the last of which is empty.
    Chunked,
}
