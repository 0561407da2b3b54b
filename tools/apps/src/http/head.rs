//! Parses the bytes of a head to a [`Request`].

use core::mem::MaybeUninit;

use super::body::BodyReader;
use super::fault::Fault;
use super::limits::MAX_FIELDS;
use super::request::Fields;
use super::{Framing, Limits, Method, Request, Site, SiteResponse, Version};
use crate::source::Source;

/// Room for the fields of one head.
pub type FieldRoom<'h> = [MaybeUninit<httparse::Header<'h>>; MAX_FIELDS];

/// Empty room for the fields of one head.
pub const fn field_room<'h>() -> FieldRoom<'h> {
    [const { MaybeUninit::uninit() }; MAX_FIELDS]
}

/// The response of `site` to a request of another protocol, with its head written as in HTTP/1.1.
/// It is from `source`, and its connection takes `at_once` bytes of a body at once.
pub fn respond(
    site: &mut impl Site,
    head: &[u8],
    limits: &Limits,
    at_once: usize,
    source: Source,
) -> SiteResponse {
    let mut room = field_room();
    let request =
        if head.len() > limits.head { Err(Fault::HeadTooLarge) } else { parse(head, &mut room) };
    let judged = request.and_then(|request| {
        BodyReader::new(request.framing, limits.body)?;
        Ok(site.respond(&Request { at_once, source, ..request }))
    });
    judged.unwrap_or_else(|fault| fault.response(limits).into())
}

/// Parses a complete head, its empty line included.
pub fn parse<'h>(head: &'h [u8], room: &'h mut FieldRoom<'h>) -> Result<Request<'h>, Fault> {
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(head, room) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Fault::Malformed("an empty request line")),
        Err(error) => return Err(syntax_fault(error, head)),
    }
    let version = if parsed.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let (name, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
    let fields = Fields::new(parsed.headers);
    let method = Method::parse(name).ok_or(Fault::UnknownMethod)?;
    judge_host(version, fields)?;
    Ok(Request {
        method,
        target: origin_form(method, target)?,
        version,
        fields,
        framing: framing(version, method, fields)?,
        expects_continue: expects_continue(version, fields)?,
        persistent: persistent(version, fields),
        at_once: usize::MAX,
        source: Source::default(),
    })
}

fn syntax_fault(error: httparse::Error, head: &[u8]) -> Fault {
    match error {
        httparse::Error::TooManyHeaders => Fault::TooManyFields,
        httparse::Error::Version if names_a_version(head) => Fault::Version,
        httparse::Error::Version => Fault::Malformed("the request line ends with HTTP/1.1"),
        httparse::Error::HeaderName => {
            Fault::Malformed("a field name holds what is no token, or its line is folded")
        }
        httparse::Error::HeaderValue => Fault::Malformed("a field value holds control characters"),
        httparse::Error::NewLine => Fault::Malformed("lines end with CRLF"),
        _ => Fault::Malformed("the request line is: method, target, HTTP/1.1"),
    }
}

/// True if the request line ends with a version of HTTP that is not supported.
fn names_a_version(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    matches!(
        line.last_chunk::<8>(),
        Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
            if major.is_ascii_digit() && minor.is_ascii_digit()
    )
}

/// RFC 9112 3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1
/// request message that lacks a Host header field and to any request message that contains more
/// than one Host header field line or a Host header field with an invalid field value."
fn judge_host(version: Version, fields: Fields<'_>) -> Result<(), Fault> {
    let mut hosts = fields.all("host");
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Err(Fault::Malformed("more than one Host field")),
        (Some(host), None) if !host.iter().all(|byte| allowed_in_host(*byte)) => {
            Err(Fault::Malformed("the Host field is no host and port"))
        }
        (None, None) if version == Version::Http11 => Err(Fault::Malformed("no Host field")),
        _ => Ok(()),
    }
}

fn allowed_in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(&byte)
}

/// RFC 9112 3.2: returns the target in the form that its method allows; of the absolute form, which
/// a server must accept, the part from the path on.
fn origin_form(method: Method, target: &str) -> Result<&str, Fault> {
    if target.starts_with('/') || method == Method::Connect {
        return Ok(target);
    }
    if target == "*" && method == Method::Options {
        return Ok(target);
    }
    let rest = target
        .split_once("://")
        .filter(|(scheme, _)| {
            scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
        })
        .map(|(_, rest)| rest)
        .ok_or(Fault::Malformed("the target begins with /, http:// or https://"))?;
    let authority = rest.find(['/', '?']).unwrap_or(rest.len());
    match rest.get(authority..) {
        Some(path) if path.starts_with('/') => Ok(path),
        Some("") | None => Ok("/"),
        Some(_) => Err(Fault::Malformed("the target has a query and no path")),
    }
}

/// RFC 9112 6.3; any ambiguity is an error: two parties that disagree about the end of a request
/// allow smuggling.
fn framing(version: Version, method: Method, fields: Fields<'_>) -> Result<Framing, Fault> {
    let coded = fields.first("transfer-encoding").is_some();
    match (coded, content_length(fields)?) {
        // RFC 9112 6.1: "A server MAY reject a request that contains both Content-Length and
        // Transfer-Encoding"
        (true, Some(_)) => {
            Err(Fault::Malformed("both Content-Length and Transfer-Encoding: send one of them"))
        }
        // RFC 9112 6.1: "A server or client that receives an HTTP/1.0 message containing a
        // Transfer-Encoding header field MUST treat the message as if the framing is faulty"
        (true, None) if version == Version::Http10 => {
            Err(Fault::Malformed("Transfer-Encoding in HTTP/1.0: send Content-Length"))
        }
        (true, None) => chunked_alone(fields),
        (false, Some(length)) => Ok(Framing::Length(length)),
        // A PUT without a length would replace its target by nothing.
        (false, None) if method == Method::Put => Err(Fault::LengthRequired),
        (false, None) => Ok(Framing::None),
    }
}

/// The common value of all `Content-Length` fields, if there is one.
fn content_length(fields: Fields<'_>) -> Result<Option<u64>, Fault> {
    let mut found = None;
    for value in fields.all("content-length").flat_map(|value| value.split(|o| *o == b',')) {
        let length = decimal(value.trim_ascii())?;
        if found.is_some_and(|other| other != length) {
            return Err(Fault::Malformed("Content-Length twice with different values"));
        }
        found = Some(length);
    }
    Ok(found)
}

fn decimal(digits: &[u8]) -> Result<u64, Fault> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Malformed("Content-Length is a decimal number"));
    }
    digits
        .iter()
        .try_fold(0_u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(Fault::BodyTooLarge)
}

fn chunked_alone(fields: Fields<'_>) -> Result<Framing, Fault> {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let mut codings = fields.list("transfer-encoding").peekable();
    let mut others = 0_usize;
    while let Some(coding) = codings.next() {
        let last = codings.peek().is_none();
        // RFC 9112 6.3: "If a Transfer-Encoding header field is present in a request and the
        // chunked transfer coding is not the final encoding, the message body length cannot be
        // determined reliably; the server MUST respond with the 400 (Bad Request) status code"
        if is_chunked(coding) != last {
            return Err(Fault::Malformed("chunked is the last transfer coding, and only once"));
        }
        others += usize::from(!last);
    }
    match (others, fields.lists("transfer-encoding", "chunked")) {
        (0, true) => Ok(Framing::Chunked),
        (_, true) => Err(Fault::UnknownCoding),
        (_, false) => Err(Fault::Malformed("an empty Transfer-Encoding")),
    }
}

fn expects_continue(version: Version, fields: Fields<'_>) -> Result<bool, Fault> {
    // RFC 9110 10.1.1: "A server that receives a 100-continue expectation in an HTTP/1.0 request
    // MUST ignore that expectation."
    if version == Version::Http10 {
        return Ok(false);
    }
    match fields.list("expect").find(|e| !e.eq_ignore_ascii_case(b"100-continue")) {
        Some(_) => Err(Fault::Expectation),
        None => Ok(fields.first("expect").is_some()),
    }
}

/// True if the client wants the connection to stay open after the response (RFC 9112 9.3).
fn persistent(version: Version, fields: Fields<'_>) -> bool {
    match version {
        _ if fields.lists("connection", "close") => false,
        Version::Http11 => true,
        Version::Http10 => fields.lists("connection", "keep-alive"),
    }
}

#[cfg(test)]
mod tests;
