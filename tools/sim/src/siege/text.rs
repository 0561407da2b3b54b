//! Text of streams: each byte follows from its sequence number, in either direction, so that a
//! misplaced one is seen anywhere.

use bytes::Bytes;
use whimbrel_wire::SeqNum;

/// The side that sends the byte of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Speaker {
    Peer,
    Host,
}

/// The byte with this number.
pub(super) fn byte(speaker: Speaker, at: SeqNum) -> u8 {
    let salt = if speaker == Speaker::Peer { 0x9e37_79b1 } else { 0x85eb_ca6b };
    (at.raw().wrapping_add(1).wrapping_mul(salt) >> 23) as u8
}

/// `len` bytes from this number on.
pub(super) fn text(speaker: Speaker, from: SeqNum, len: usize) -> Bytes {
    (0..len as u32).map(|at| byte(speaker, from + at)).collect()
}

/// Compares `text` with the text from this number on; the error is the index of the first
/// difference.
pub(super) fn judge(speaker: Speaker, from: SeqNum, text: &[u8]) -> Result<(), usize> {
    let differs = |(at, it): (usize, &u8)| *it != byte(speaker, from + at as u32);
    text.iter().enumerate().position(differs).map_or(Ok(()), Err)
}
