//! Where a head ends, found once however the octets are split.

use alloc::vec::Vec;

use bytes::{Buf, Bytes};

use super::fault::Fault;

/// The part of a head that arrived before the rest. Holds nothing between requests.
#[derive(Debug, Default)]
pub struct HeadBuffer {
    octets: Vec<u8>,
}

impl HeadBuffer {
    /// A buffer that holds nothing, as before the first octet of a head.
    pub const fn new() -> Self {
        Self { octets: Vec::new() }
    }

    /// Whether part of a head is waiting for the rest.
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// Whether a head that begins with `name` can still come of what arrived, after empty lines.
    pub fn may_begin_with(&self, name: &[u8]) -> bool {
        let begun = self.octets.iter().skip_while(|octet| matches!(octet, b'\r' | b'\n'));
        begun.zip(name).all(|(octet, named)| octet == named)
    }

    /// Takes the next head, its empty line included, from the front of `input`; `None` if it is
    /// not complete yet. A head in one piece is not copied.
    pub fn take(&mut self, input: &mut Bytes, limit: usize) -> Result<Option<Bytes>, Fault> {
        self.take_by(input, limit, end_of_head)
    }

    /// Takes the head of a response, whose lines may end with LF alone; an error if more than
    /// `limit` octets came of it.
    pub(crate) fn take_reply(
        &mut self,
        input: &mut Bytes,
        limit: usize,
    ) -> Result<Option<Bytes>, HeadTooLong> {
        let came = self.octets.len() + input.len();
        self.take_by(input, limit, end_of_reply_head).map_err(|NoEnd| HeadTooLong { came })
    }

    fn take_by<E>(
        &mut self,
        input: &mut Bytes,
        limit: usize,
        end_of_head: impl Fn(&[u8], usize, usize) -> Result<Option<usize>, E>,
    ) -> Result<Option<Bytes>, E> {
        if self.octets.is_empty()
            && let Some(end) = end_of_head(input, 0, limit)?
        {
            return Ok(Some(input.split_to(end)));
        }
        let scanned = self.octets.len();
        let fresh = input.len().min(limit.saturating_sub(scanned));
        self.octets.extend_from_slice(input.get(..fresh).unwrap_or_default());
        match end_of_head(&self.octets, scanned, limit)? {
            Some(end) => {
                input.advance(end.saturating_sub(scanned));
                self.octets.truncate(end);
                Ok(Some(Bytes::from(core::mem::take(&mut self.octets))))
            }
            None => {
                input.advance(fresh);
                Ok(None)
            }
        }
    }
}

/// A response's head that does not end within its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeadTooLong {
    /// Octets of it that came so far.
    pub(crate) came: usize,
}

/// No head ends within the limit.
struct NoEnd;

/// As [`end_of_head`] finds it, of a response. RFC 9112 2.2: "a recipient MAY recognize a single LF as a
/// line terminator and ignore any preceding CR": old servers and scripts send it, and common clients
/// take it.
fn end_of_reply_head(octets: &[u8], scanned: usize, limit: usize) -> Result<Option<usize>, NoEnd> {
    let octets = octets.get(..limit).unwrap_or(octets);
    let mut at = scanned;
    while let Some(offset) = octets.get(at..).and_then(line_feed) {
        at += offset + 1;
        let line = octets.get(..at).unwrap_or_default();
        if line.ends_with(b"\n\r\n") || line.ends_with(b"\n\n") {
            return Ok(Some(at));
        }
    }
    if octets.len() < limit { Ok(None) } else { Err(NoEnd) }
}

/// The number of octets up to and including the empty line. `scanned` octets were looked at
/// before. What it answers depends on the stream alone, not on how it was split.
fn end_of_head(octets: &[u8], scanned: usize, limit: usize) -> Result<Option<usize>, Fault> {
    if octets.first().is_some_and(|first| !begins_request(*first)) {
        return Err(Fault::Malformed("a request begins with a method (is this TLS?)"));
    }
    let octets = octets.get(..limit).unwrap_or(octets);
    let mut at = scanned;
    while let Some(offset) = octets.get(at..).and_then(line_feed) {
        at += offset + 1;
        let line = octets.get(..at).unwrap_or_default();
        if line.ends_with(b"\r\n\r\n") {
            return Ok(Some(at));
        }
        // RFC 9112 2.2: "a recipient MAY recognize a single LF as a line terminator". It need
        // not, and intermediaries that disagree about it let requests be smuggled.
        if !line.ends_with(b"\r\n") {
            return Err(Fault::Malformed("lines end with CRLF, not with LF alone"));
        }
    }
    if octets.len() < limit {
        return Ok(None);
    }
    let line_ended = octets.get(2..).is_some_and(|rest| line_feed(rest).is_some());
    Err(if line_ended { Fault::HeadTooLarge } else { Fault::TargetTooLong })
}

/// A method's first character, or the empty line that may stand before a request (RFC 9112 2.2).
fn begins_request(octet: u8) -> bool {
    octet == b'\r' || octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet)
}

/// Where the first LF is. Eight octets at a time: one by one it was a thirtieth of a request's instructions.
fn line_feed(octets: &[u8]) -> Option<usize> {
    let (words, rest) = octets.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        // An octet of it is zero where an LF was. What a borrow marks besides lies above the first of those.
        let differs = u64::from_le_bytes(*word) ^ (EACH * u64::from(b'\n'));
        let zeros = differs.wrapping_sub(EACH) & !differs & (EACH << 7);
        if zeros != 0 {
            return Some(8 * place + zeros.trailing_zeros() as usize / 8);
        }
    }
    let offset = rest.iter().position(|octet| *octet == b'\n')?;
    Some(8 * words.len() + offset)
}

/// A one in each octet.
const EACH: u64 = 0x0101_0101_0101_0101;

#[cfg(test)]
mod tests;
