//! Removal of options as by faulty middleboxes, to test how connections react.

use super::kinds::{
    ACCURATE_ECN_0, ACCURATE_ECN_1, END_OF_LIST, NOP, SACK, SACK_PERMITTED, TIMESTAMPS,
    WINDOW_SCALE,
};
use super::{TcpHeader, TcpView};
use crate::checksum::update;

/// Overwrites each Accurate ECN option of a TCP segment with no-operations, as a middlebox that removes
/// unknown options does, and mends the checksum: one that was wrong stays so. Returns whether there was
/// such an option.
pub fn strip_accurate_ecn(segment: &mut [u8]) -> bool {
    strip(segment, |kind| matches!(kind, ACCURATE_ECN_0 | ACCURATE_ECN_1))
}

/// A set of options that a middlebox removes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct StrippedOptions {
    /// Window scale (RFC 7323 2).
    pub window_scale: bool,
    /// SACK-permitted, and the SACK blocks themselves (RFC 2018 2 and 3).
    pub sack: bool,
    /// Timestamps (RFC 7323 3).
    pub timestamps: bool,
}

impl StrippedOptions {
    /// True if no option is removed.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Overwrites these options of a TCP segment as [`strip_accurate_ecn`] does. Returns whether there
    /// was one.
    pub fn strip(self, segment: &mut [u8]) -> bool {
        strip(segment, |kind| match kind {
            WINDOW_SCALE => self.window_scale,
            SACK_PERMITTED | SACK => self.sack,
            TIMESTAMPS => self.timestamps,
            _ => false,
        })
    }
}

/// Overwrites the options of these kinds with no-operations.
fn strip(segment: &mut [u8], is_stripped_kind: impl Fn(u8) -> bool) -> bool {
    let Ok((_, header_len)) = TcpView::parse(segment) else { return false };
    let (mut at, mut is_stripped) = (TcpHeader::LEN, false);
    loop {
        let (kind, len) = match segment.get(at..header_len) {
            Some([NOP, ..]) => (NOP, 1),
            Some([kind, len @ 2..=u8::MAX, ..]) if *kind != END_OF_LIST => {
                (*kind, usize::from(*len))
            }
            _ => return is_stripped,
        };
        let end = at.wrapping_add(len);
        if is_stripped_kind(kind) && end <= header_len {
            (at..end).for_each(|place| overwrite(segment, place, NOP));
            is_stripped = true;
        }
        at = end;
    }
}

/// Replaces one byte of a TCP header, and updates the checksum.
fn overwrite(segment: &mut [u8], place: usize, byte: u8) {
    let Some(word) = segment.get_mut(place & !1..).and_then(<[u8]>::first_chunk_mut::<2>) else {
        return;
    };
    let old = u16::from_be_bytes(*word);
    if let Some(replaced) = word.get_mut(place & 1) {
        *replaced = byte;
    }
    let new = u16::from_be_bytes(*word);
    let checksum = segment.get_mut(TcpHeader::CHECKSUM_OFFSET..);
    if let Some(checksum) = checksum.and_then(<[u8]>::first_chunk_mut::<2>) {
        *checksum = update(u16::from_be_bytes(*checksum), old, new).to_be_bytes();
    }
}

#[cfg(test)]
mod tests;
