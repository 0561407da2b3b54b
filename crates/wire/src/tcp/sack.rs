//! The blocks of a SACK option.

use core::fmt;

use crate::SeqNum;

/// A run of bytes that arrived: `left =< byte < right` (RFC 2018 3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlock {
    /// Number of the first byte.
    pub left: SeqNum,
    /// Number after the last byte. It may be before `left`: nothing has checked it.
    pub right: SeqNum,
}

/// Up to four blocks, in the order of the option: the most recent first.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::MAX],
    /// Number of blocks, at most [`SackBlocks::MAX`].
    len: u8,
}

impl SackBlocks {
    /// Blocks that fit in 40 bytes of options; with timestamps only 3 fit.
    pub const MAX: usize = 4;

    /// An option without any block.
    pub const NONE: Self =
        Self { blocks: [SackBlock { left: SeqNum::new(0), right: SeqNum::new(0) }; 4], len: 0 };

    /// Returns the blocks, in the order of the option.
    #[inline]
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.len)).unwrap_or(&self.blocks)
    }

    /// True if there is no block, and so no option.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a block; `false` if there are four.
    #[inline]
    pub fn push(&mut self, block: SackBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.len)) {
            Some(slot) => {
                *slot = block;
                self.len = self.len.wrapping_add(1);
                true
            }
            None => false,
        }
    }

    /// Keeps the first `most` blocks.
    #[inline]
    pub fn truncate(&mut self, most: usize) {
        self.len = usize::from(self.len).min(most) as u8;
    }

    /// Parses an option after its length: one to four blocks of eight bytes.
    pub(super) fn from_body(body: &[u8]) -> Option<Self> {
        let (bytes, []) = body.as_chunks::<8>() else { return None };
        let mut blocks = Self::NONE;
        for [a, b, c, d, e, f, g, h] in bytes {
            let left = SeqNum::new(u32::from_be_bytes([*a, *b, *c, *d]));
            let right = SeqNum::new(u32::from_be_bytes([*e, *f, *g, *h]));
            if !blocks.push(SackBlock { left, right }) {
                return None;
            }
        }
        (!blocks.is_empty()).then_some(blocks)
    }
}

/// Compares only the blocks within the length.
impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|block| block.left..block.right)).finish()
    }
}

#[cfg(test)]
mod tests;
