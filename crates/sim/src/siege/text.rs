//! What streams say: each byte follows from its number, in either direction, so that one at the
//! wrong place is seen wherever it shows.

use bytes::Bytes;
use whimbrel_wire::SeqNum;

/// Whose bytes a number stands for.
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

/// Whether this is what stands from this number on; if not, where it differs.
pub(super) fn judge(speaker: Speaker, from: SeqNum, text: &[u8]) -> Result<(), usize> {
    let differs = |(at, it): (usize, &u8)| *it != byte(speaker, from + at as u32);
    text.iter().enumerate().position(differs).map_or(Ok(()), Err)
}
