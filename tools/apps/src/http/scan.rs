//! Finds the end of a head, with each byte scanned once, however the bytes are split.

use alloc::vec::Vec;

use bytes::{Buf, Bytes};

use super::fault::Fault;

/// The part of a head that arrived before the rest; empty between requests.
#[derive(Debug, Default)]
pub struct HeadBuffer {
    bytes: Vec<u8>,
}

impl HeadBuffer {
    /// An empty buffer.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// True if part of a head is waiting for the rest.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// True if the bytes so far, after empty lines, may be the beginning of `name`.
    pub fn may_begin_with(&self, name: &[u8]) -> bool {
        let begun = self.bytes.iter().skip_while(|byte| matches!(byte, b'\r' | b'\n'));
        begun.zip(name).all(|(byte, named)| byte == named)
    }

    /// Takes the next head, its empty line included, from the front of `input`; `None` if it is
    /// not complete yet. A head in one piece is not copied.
    pub fn take(&mut self, input: &mut Bytes, limit: usize) -> Result<Option<Bytes>, Fault> {
        self.take_by(input, limit, end_of_head)
    }

    /// Takes the head of a response, whose lines may end with LF only. Returns an error after more
    /// than `limit` bytes.
    pub(crate) fn take_reply(
        &mut self,
        input: &mut Bytes,
        limit: usize,
    ) -> Result<Option<Bytes>, HeadTooLong> {
        let came = self.bytes.len() + input.len();
        self.take_by(input, limit, end_of_reply_head).map_err(|NoEnd| HeadTooLong { came })
    }

    fn take_by<E>(
        &mut self,
        input: &mut Bytes,
        limit: usize,
        end_of_head: impl Fn(&[u8], usize, usize) -> Result<Option<usize>, E>,
    ) -> Result<Option<Bytes>, E> {
        if self.bytes.is_empty()
            && let Some(end) = end_of_head(input, 0, limit)?
        {
            return Ok(Some(input.split_to(end)));
        }
        let scanned = self.bytes.len();
        let fresh = input.len().min(limit.saturating_sub(scanned));
        self.bytes.extend_from_slice(input.get(..fresh).unwrap_or_default());
        match end_of_head(&self.bytes, scanned, limit)? {
            Some(end) => {
                input.advance(end.saturating_sub(scanned));
                self.bytes.truncate(end);
                Ok(Some(Bytes::from(core::mem::take(&mut self.bytes))))
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
    /// Bytes of it so far.
    pub(crate) came: usize,
}

/// No head ends within the limit.
struct NoEnd;

/// As [`end_of_head`] finds it, of a response. RFC 9112 2.2: "a recipient MAY recognize a single LF
/// as a line terminator and ignore any preceding CR": old servers and scripts send it, and common
/// clients accept it.
fn end_of_reply_head(bytes: &[u8], scanned: usize, limit: usize) -> Result<Option<usize>, NoEnd> {
    let bytes = bytes.get(..limit).unwrap_or(bytes);
    let mut at = scanned;
    while let Some(offset) = bytes.get(at..).and_then(line_feed) {
        at += offset + 1;
        let line = bytes.get(..at).unwrap_or_default();
        if line.ends_with(b"\n\r\n") || line.ends_with(b"\n\n") {
            return Ok(Some(at));
        }
    }
    if bytes.len() < limit { Ok(None) } else { Err(NoEnd) }
}

/// Number of bytes up to and including the empty line. `scanned` bytes were examined before. The
/// result depends only on the stream, not on its splitting.
fn end_of_head(bytes: &[u8], scanned: usize, limit: usize) -> Result<Option<usize>, Fault> {
    if bytes.first().is_some_and(|first| !begins_request(*first)) {
        return Err(Fault::Malformed("a request begins with a method (is this TLS?)"));
    }
    let bytes = bytes.get(..limit).unwrap_or(bytes);
    let mut at = scanned;
    while let Some(offset) = bytes.get(at..).and_then(line_feed) {
        at += offset + 1;
        let line = bytes.get(..at).unwrap_or_default();
        if line.ends_with(b"\r\n\r\n") {
            return Ok(Some(at));
        }
        // RFC 9112 2.2: "a recipient MAY recognize a single LF as a line terminator". It need
        // not, and intermediaries that disagree about it let requests be smuggled.
        if !line.ends_with(b"\r\n") {
            return Err(Fault::Malformed("lines end with CRLF, not with LF alone"));
        }
    }
    if bytes.len() < limit {
        return Ok(None);
    }
    let line_ended = bytes.get(2..).is_some_and(|rest| line_feed(rest).is_some());
    Err(if line_ended { Fault::HeadTooLarge } else { Fault::TargetTooLong })
}

/// A method's first character, or the empty line that may stand before a request (RFC 9112 2.2).
fn begins_request(byte: u8) -> bool {
    byte == b'\r' || byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Position of the first LF. It scans eight bytes at a time: one at a time took a thirtieth of a
/// request's instructions.
fn line_feed(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        // A byte of it is zero where an LF was. Other bytes that a borrow marks lie above the first
        // of those.
        let differs = u64::from_le_bytes(*word) ^ (EACH * u64::from(b'\n'));
        let zeros = differs.wrapping_sub(EACH) & !differs & (EACH << 7);
        if zeros != 0 {
            return Some(8 * place + zeros.trailing_zeros() as usize / 8);
        }
    }
    let offset = rest.iter().position(|byte| *byte == b'\n')?;
    Some(8 * words.len() + offset)
}

/// A one in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

#[cfg(test)]
mod tests;
