//! What is sent: the same bytes over and over, in a period that no buffer, segment or chunk divides.

use bytes::Bytes;

use super::Check;
use crate::Failure;

/// The text that all flows carry.
pub(super) struct Source(Bytes);

impl Source {
    pub(super) fn new() -> Self {
        let mut state = 1u32;
        let octets = (0..PERIOD).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        Self(octets.collect())
    }

    /// Up to [`PIECE`] bytes from this place of a stream on.
    pub(super) fn piece(&self, at: u64) -> Bytes {
        let from = (at % PERIOD as u64) as usize;
        self.0.slice(from..(from + PIECE).min(PERIOD))
    }

    /// Whether these are the bytes that stand at this place of a stream, if that is to be known.
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

/// Bytes that an application writes at a time.
pub(super) const PIECE: usize = 64 << 10;
/// A prime, near 256 KiB.
const PERIOD: usize = 262_139;
