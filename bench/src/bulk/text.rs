//! Sent text: the same bytes in a period that divides no buffer, segment or chunk.

use bytes::Bytes;

use super::{Check, Copies};
use crate::Failure;

/// The text that all flows carry.
pub(super) struct Source {
    bytes: Bytes,
    /// Bytes of a piece, at most.
    most: usize,
}

impl Source {
    pub(super) fn new(copies: Copies) -> Self {
        let mut state = 1u32;
        let bytes = (0..PERIOD).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        let most = if copies == Copies::Both { COPIED } else { PIECE };
        Self { bytes: bytes.collect(), most }
    }

    /// Text of one write of an application, from this place of a stream on.
    pub(super) fn piece(&self, at: u64) -> Bytes {
        let from = (at % PERIOD as u64) as usize;
        self.bytes.slice(from..(from + self.most).min(PERIOD))
    }

    /// Checks that these are the bytes at this place of a stream, if `check` is on.
    pub(super) fn check(&self, mut at: u64, mut text: &[u8], check: Check) -> Result<(), Failure> {
        while check == Check::Every && !text.is_empty() {
            let wanted = self.piece(at);
            let (now, rest) = text.split_at(wanted.len().min(text.len()));
            if *now != wanted[..now.len()] {
                return Err(format!("other bytes than were sent arrived at {at}").into());
            }
            at += now.len() as u64;
            text = rest;
        }
        Ok(())
    }
}

/// Bytes that an application writes at a time, by reference, and reads.
pub(super) const PIECE: usize = 64 << 10;
/// Size of a write that is copied: a record of TLS.
pub(super) const COPIED: usize = 16 << 10;
/// A prime, near 256 KiB.
const PERIOD: usize = 262_139;
