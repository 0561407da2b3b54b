//! Composes a request from its parts.

use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;

/// The parts of a request.
#[derive(Clone, Debug)]
pub struct Composition<'a> {
    /// The method of the request line, as in `GET`.
    pub method: &'a str,
    /// The target, its query included.
    pub target: &'a str,
    /// The value of `Host`, unless `fields` have one.
    pub host: &'a str,
    /// Further fields, names and values.
    pub fields: &'a [(String, String)],
    /// The body; if there is one, a `Content-Length` goes with it.
    pub body: &'a [u8],
    /// True if the connection stays open; otherwise the request says `close`.
    pub persistent: bool,
}

/// Error of a request's parts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// The method is no token.
    #[error("method {0:?}: give letters, as in GET or POST")]
    Method(String),
    /// The target contains a character that is not valid in a request line.
    #[error("target {0:?}: give a path that begins with /, without spaces or control characters")]
    Target(String),
    /// A field's name is no token.
    #[error("field name {0:?}: give letters, digits and hyphens, as in Accept: text/html")]
    Name(String),
    /// A field's value holds control characters.
    #[error("the value of field {0:?} holds control characters: a field is one line")]
    Value(String),
    /// A field of the message's framing, which the composer writes.
    #[error("field {0:?} follows from the body and the options: leave it out")]
    Framing(String),
}

impl Composition<'_> {
    /// The request as bytes, or the invalid part.
    pub fn compose(&self) -> Result<Bytes, ComposeError> {
        self.check()?;
        let mut out = Vec::with_capacity(256 + self.body.len());
        line(&mut out, &[self.method, " ", self.target, " HTTP/1.1"]);
        if !self.has("host") {
            line(&mut out, &["Host: ", self.host]);
        }
        for (name, value) in self.fields {
            line(&mut out, &[name, ": ", value]);
        }
        // RFC 9110 8.6: a method that anticipates content says how long it is, even if empty.
        if !self.body.is_empty() || matches!(self.method, "POST" | "PUT" | "PATCH") {
            line(&mut out, &["Content-Length: ", &alloc::format!("{}", self.body.len())]);
        }
        if !self.persistent {
            line(&mut out, &["Connection: close"]);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body);
        Ok(Bytes::from(out))
    }

    fn check(&self) -> Result<(), ComposeError> {
        if !is_token(self.method) {
            return Err(ComposeError::Method(self.method.into()));
        }
        let plain = self.target.bytes().all(|byte| byte.is_ascii_graphic());
        if !plain || !(self.target.starts_with('/') || self.target == "*") {
            return Err(ComposeError::Target(self.target.into()));
        }
        for (name, value) in self.fields {
            if !is_token(name) {
                return Err(ComposeError::Name(name.clone()));
            }
            if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
                return Err(ComposeError::Value(name.clone()));
            }
            let framing = ["content-length", "transfer-encoding", "connection"];
            if framing.iter().any(|framing| name.eq_ignore_ascii_case(framing)) {
                return Err(ComposeError::Framing(name.clone()));
            }
        }
        Ok(())
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field.eq_ignore_ascii_case(name))
    }
}

fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

fn line(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
