//! Range requests for a single range of bytes (RFC 9110 14).

/// A range of bytes, both ends included; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteRange {
    /// Position of the first byte, from 0.
    pub first: u64,
    /// Position of the last byte, which is part of the range.
    pub last: u64,
}

impl ByteRange {
    /// The number of bytes.
    pub const fn length(&self) -> u64 {
        self.last - self.first + 1
    }
}

/// Meaning of a `Range` field for a representation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RangeOutcome {
    /// The whole: there was no field, or one that is ignored.
    Whole,
    /// The part between these positions, both included: 206.
    Part(ByteRange),
    /// Bytes that do not exist: 416.
    Unsatisfiable,
}

/// Reads the value `field` for a representation of `length` bytes. Returns no range for more than
/// one, as RFC 9110 14.2 allows ("A server MAY ignore the Range header field"), and for a field
/// that does not parse.
pub fn judge(field: &[u8], length: u64) -> RangeOutcome {
    match core::str::from_utf8(field).ok().and_then(parse) {
        None => RangeOutcome::Whole,
        Some(Spec::Suffix(0)) => RangeOutcome::Unsatisfiable,
        Some(Spec::Suffix(count)) if length > 0 => {
            RangeOutcome::Part(ByteRange { first: length.saturating_sub(count), last: length - 1 })
        }
        Some(Spec::From(first, last)) if first < length => {
            RangeOutcome::Part(ByteRange { first, last: last.unwrap_or(u64::MAX).min(length - 1) })
        }
        Some(_) => RangeOutcome::Unsatisfiable,
    }
}

enum Spec {
    From(u64, Option<u64>),
    Suffix(u64),
}

fn parse(field: &str) -> Option<Spec> {
    let (unit, range) = field.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    match (first, last) {
        ("", count) => number(count).map(Spec::Suffix),
        (first, "") => Some(Spec::From(number(first)?, None)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Spec::From(first, Some(last)))
        }
    }
}

/// Digits only: `str::parse` would take a sign.
fn number(digits: &str) -> Option<u64> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
