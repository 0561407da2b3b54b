//! Validators of a representation's version (RFC 9110 8.8), and the conditions of requests (RFC
//! 9110 13).

use alloc::format;
use alloc::string::String;

use super::date::{self, HttpDate};
use super::{Method, RangeOutcome, Request, Response, Status, range};

/// The validators of a representation's current version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Validators {
    /// Tag of this version, distinct from all others.
    pub tag: EntityTag,
    /// Time of the last change, seconds since 1970.
    pub modified: u64,
    /// The time of the response, seconds since 1970.
    pub now: u64,
}

/// An entity tag (RFC 9110 8.8.3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntityTag {
    opaque: String,
    weak: bool,
}

/// Result of a request's conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judgment {
    /// The method is performed.
    Holds,
    /// 304: the client has the representation already.
    NotModified,
    /// 412: the client has another version.
    Failed,
}

impl EntityTag {
    /// A tag that changes with every change of the bytes.
    pub fn strong(opaque: String) -> Self {
        debug_assert!(opaque.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'));
        Self { opaque, weak: false }
    }

    /// A tag that may stay when bytes change.
    pub fn weak(opaque: String) -> Self {
        Self { weak: true, ..Self::strong(opaque) }
    }

    /// Value of the field.
    pub fn field(&self) -> String {
        format!("{}\"{}\"", if self.weak { "W/" } else { "" }, self.opaque)
    }

    /// True if `listed`, a member of a list, equals this tag by the weak comparison.
    fn is_weakly(&self, listed: &[u8]) -> bool {
        let opaque = listed.strip_prefix(b"W/").unwrap_or(listed);
        let opaque = opaque.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
        opaque == Some(self.opaque.as_bytes())
    }

    /// Compares by the strong comparison: neither tag may be weak.
    fn is_strongly(&self, listed: &[u8]) -> bool {
        !self.weak && !listed.starts_with(b"W/") && self.is_weakly(listed)
    }
}

impl Validators {
    /// RFC 9110 8.8.2.1: "An origin server with a clock (as defined in Section 5.6.7) MUST NOT generate
    /// a Last-Modified date that is later than the server's time of message origination (Date, Section
    /// 6.6.1)."
    fn last_modified(&self) -> u64 {
        self.modified.min(self.now)
    }

    /// Adds the validators' fields to `response`.
    #[must_use]
    pub fn mark(&self, response: Response) -> Response {
        let modified = HttpDate::from_unix_seconds(self.last_modified());
        let response = response.with_field("Last-Modified", String::from(modified.as_str()));
        response.with_field("ETag", self.tag.field())
    }

    /// 304, with the fields that RFC 9110 15.4.5 requires for caches.
    pub fn not_modified(&self) -> Response {
        Response::bare(Status::NOT_MODIFIED).with_field("ETag", self.tag.field())
    }
}

/// Evaluates the conditions of a request in the order of RFC 9110 13.2.2. `now` is `None` if there
/// is no representation. Call it if the response without them would be 200 or the like: RFC 9110
/// 13.2.1: "A server MUST ignore all received preconditions if its response to the same request
/// without those conditions, prior to processing the request content, would have been a status code
/// other than a 2xx (Successful) or 412 (Precondition Failed)."
pub fn judge(request: &Request<'_>, now: Option<&Validators>) -> Judgment {
    let fields = request.fields;
    let reads = matches!(request.method, Method::Get | Method::Head);
    let date = |name, of: &Validators| single_date(request, name, of.now);
    if fields.first("if-match").is_some() {
        // RFC 9110 13.1.1: "An origin server MUST use the strong comparison function when comparing
        // entity tags for If-Match"
        let matches =
            lists(request, "if-match", |listed| now.is_some_and(|it| it.tag.is_strongly(listed)));
        if !(matches || now.is_some() && is_star(request, "if-match")) {
            return Judgment::Failed;
        }
    } else if let Some(of) = now
        && let Some(since) = date("if-unmodified-since", of)
        && of.last_modified() > since
    {
        return Judgment::Failed;
    }
    if fields.first("if-none-match").is_some() {
        // RFC 9110 13.1.2: "A recipient MUST use the weak comparison function when comparing entity
        // tags for If-None-Match"
        let matches = lists(request, "if-none-match", |listed| {
            now.is_some_and(|it| it.tag.is_weakly(listed))
        });
        if matches || now.is_some() && is_star(request, "if-none-match") {
            return if reads { Judgment::NotModified } else { Judgment::Failed };
        }
    // RFC 9110 13.1.3: "A recipient MUST ignore the If-Modified-Since header field if the received
    // field value is not a valid HTTP-date, the field value has more than one member, or if the
    // request method is neither GET nor HEAD."
    } else if reads
        && let Some(of) = now
        && let Some(since) = date("if-modified-since", of)
        && of.last_modified() <= since
    {
        return Judgment::NotModified;
    }
    Judgment::Holds
}

/// True if a request has conditions, so that its answer may depend on the present version.
pub fn is_conditional(request: &Request<'_>) -> bool {
    let names = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
    names.iter().any(|name| request.fields.first(name).is_some())
}

/// The requested part of a representation of `length` bytes; the whole if `If-Range` names another
/// version.
pub fn range(request: &Request<'_>, length: u64, now: &Validators) -> RangeOutcome {
    let mut conditions = request.fields.all("if-range");
    let holds = match (conditions.next(), conditions.next()) {
        (None, _) => true,
        // RFC 9110 13.1.5: "If the HTTP-date validator provided is not a strong validator in the
        // sense defined by Section 8.8.2.2, the condition is false." A file may have changed twice
        // in that second, so a date is never strong here.
        (Some(condition), None) => now.tag.is_strongly(condition),
        (Some(_), Some(_)) => false,
    };
    // RFC 9110 14.2: "A server MUST ignore a Range header field received with a request method that is
    // unrecognized or for which range handling is not defined."
    let field = request.fields.first("range").filter(|_| request.method == Method::Get && holds);
    field.map_or(RangeOutcome::Whole, |field| range::judge(field, length))
}

/// True if a list has a tag for which `wanted` is true. A comma may stand within a tag.
fn lists(request: &Request<'_>, name: &str, wanted: impl Fn(&[u8]) -> bool) -> bool {
    request.fields.all(name).any(|value| {
        let mut rest = value;
        while let Some((tag, after)) = next_tag(rest) {
            if wanted(tag) {
                return true;
            }
            rest = after;
        }
        false
    })
}

/// The first entity tag of a list, and the rest.
fn next_tag(list: &[u8]) -> Option<(&[u8], &[u8])> {
    let begin = list.iter().position(|byte| !matches!(byte, b',' | b' ' | b'\t'))?;
    let list = list.get(begin..)?;
    let open = if list.starts_with(b"W/") { 2 } else { 0 };
    if list.get(open) != Some(&b'"') {
        return None;
    }
    let inside = list.get(open + 1..)?;
    let close = inside.iter().position(|byte| *byte == b'"')? + open + 2;
    Some((list.get(..close)?, list.get(close..)?))
}

fn is_star(request: &Request<'_>, name: &str) -> bool {
    request.fields.all(name).all(|value| value.trim_ascii() == b"*")
}

/// Date of a field that is present once and valid.
fn single_date(request: &Request<'_>, name: &str, now: u64) -> Option<u64> {
    let mut all = request.fields.all(name);
    let value = all.next().filter(|_| all.next().is_none())?;
    date::parse(core::str::from_utf8(value).ok()?, now)
}

#[cfg(test)]
mod tests;
