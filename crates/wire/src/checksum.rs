//! The Internet checksum (RFC 1071): whole, chained over slices, partial, and updated in place.
//!
//! The sum is over 16-bit words with end-around carry, which makes it independent of byte order
//! (RFC 1071 2 (B)) and of the order of additions. So words are added as they lie in memory, 32
//! bits at a time into 64-bit lanes, which the compiler vectorises, and swapped once at the end.

use crate::{Address, Family};

/// A running ones'-complement sum. It is a value: every method returns the sum with more added.
///
/// Slices chain: the bytes after a slice of odd length fall into the other halves of their words,
/// as if both had been one slice.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Sum {
    /// Modulo 2^64-1, a multiple of 2^16-1; words in memory order.
    sum: u64,
    /// True if an odd number of bytes has been added.
    odd: bool,
}

impl Sum {
    /// The sum of no bytes.
    #[inline]
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Returns the sum of the pseudo-header for TCP, UDP and ICMPv6 (RFC 9293 3.1, RFC 8200 8.1).
    /// `length` counts the bytes of the upper-layer header and data.
    #[inline]
    pub fn pseudo_header(src: Address, dst: Address, protocol: u8, length: u32) -> Self {
        let v4 = |address: Address| u32::from_be_bytes(address.v4_bytes());
        let addresses = match src.family() {
            Family::V4 => Self::new().add_u32(v4(src)).add_u32(v4(dst)),
            Family::V6 => Self::new().add_bytes(src.as_bytes()).add_bytes(dst.as_bytes()),
        };
        addresses.add_u32(length).add_u16(u16::from(protocol))
    }

    /// Adds `bytes` behind those added before.
    #[inline]
    pub fn add_bytes(self, bytes: &[u8]) -> Self {
        let sum = self.add(sum_in_memory_order(bytes));
        Self { odd: self.odd ^ (bytes.len() % 2 == 1), ..sum }
    }

    /// Adds a 16-bit field, as if its two bytes in network order were added.
    #[inline]
    pub const fn add_u16(self, field: u16) -> Self {
        self.add(field.to_be() as u64)
    }

    /// Adds a 32-bit field, as if its four bytes in network order were added.
    #[inline]
    pub const fn add_u32(self, field: u32) -> Self {
        self.add(field.to_be() as u64)
    }

    /// Adds words in memory order, the first of them at the next byte.
    #[inline]
    const fn add(self, words: u64) -> Self {
        // 2^64-1 is a multiple of 2^16-1, so turning all four words at once by one byte
        // multiplies the sum by 2^8, as the shifted position does.
        let words = if self.odd { words.rotate_left(8) } else { words };
        Self { sum: add_with_carry(self.sum, words), odd: self.odd }
    }

    /// Returns the sum in less than 2^33, words in memory order.
    #[inline]
    pub(crate) const fn in_33_bits(self) -> u64 {
        (self.sum & 0xffff_ffff).wrapping_add(self.sum >> 32)
    }

    /// Returns the sum in 16 bits, not complemented: over a pseudo-header, the content of the
    /// checksum field for a device that completes it ("partial" checksum).
    #[inline]
    #[must_use]
    pub const fn fold(self) -> u16 {
        let sum = (self.sum & 0xffff_ffff).wrapping_add(self.sum >> 32);
        let sum = (sum & 0xffff).wrapping_add((sum >> 16) & 0xffff).wrapping_add(sum >> 32);
        let sum = (sum & 0xffff).wrapping_add(sum >> 16);
        let sum = (sum & 0xffff).wrapping_add(sum >> 16);
        u16::from_be(sum as u16)
    }

    /// Returns the checksum: the complement of [`Sum::fold`].
    #[inline]
    #[must_use]
    pub const fn finish(self) -> u16 {
        !self.fold()
    }

    /// True if data that was added together with its checksum is intact.
    #[inline]
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.finish() == 0
    }
}

/// Returns the checksum after one 16-bit word that it covers changed from `old` to `new`.
///
/// RFC 1624 3, equation 3: HC' = ~(~HC + ~m + m').
#[inline]
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = (!checksum as u32).wrapping_add(!old as u32).wrapping_add(new as u32);
    let sum = (sum & 0xffff).wrapping_add(sum >> 16);
    let sum = (sum & 0xffff).wrapping_add(sum >> 16);
    !(sum as u16)
}

/// Adds two sums modulo 2^64-1.
#[inline]
const fn add_with_carry(a: u64, b: u64) -> u64 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(carry as u64)
}

#[inline]
fn sum_in_memory_order(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let blocks =
        if blocks.len() < LANES_FROM { sum_by_carry(blocks) } else { sum_in_lanes(blocks) };
    let (words, rest) = rest.as_chunks::<8>();
    let sum = words.iter().fold(blocks, |sum, word| add_with_carry(sum, u64::from_ne_bytes(*word)));
    add_with_carry(sum, sum_of_tail(rest))
}

/// Sums fewer than eight bytes: each half begins where the parts before it, of even length, end.
#[inline]
fn sum_of_tail(tail: &[u8]) -> u64 {
    let mut sum = 0u64;
    let mut rest = tail;
    if let Some((word, behind)) = rest.split_first_chunk::<4>() {
        sum = u64::from(u32::from_ne_bytes(*word));
        rest = behind;
    }
    if let Some((half, behind)) = rest.split_first_chunk::<2>() {
        sum = sum.wrapping_add(u64::from(u16::from_ne_bytes(*half)));
        rest = behind;
    }
    if let Some(last) = rest.first() {
        sum = sum.wrapping_add(u64::from(u16::from_ne_bytes([*last, 0])));
    }
    sum
}

/// Sums blocks with one instruction for eight bytes, each waiting for the one before.
#[inline]
fn sum_by_carry(blocks: &[[u8; 32]]) -> u64 {
    let (pairs, odd) = blocks.as_chunks::<2>();
    let sum = pairs.iter().fold(0, |sum, pair| add_chained(sum, pair.as_flattened()));
    odd.iter().fold(sum, |sum, block| add_chained(sum, block))
}

/// Adds whole words in one chain of carries. `bytes` has a fixed length, so there is no loop.
#[inline(always)]
fn add_chained(sum: u64, bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let (mut sum, mut carry) = (sum, false);
    for word in words {
        (sum, carry) = u64::carrying_add(sum, u64::from_ne_bytes(*word), carry);
    }
    add_with_carry(sum, u64::from(carry))
}

/// Sums halves of 64-bit words in separate lanes: no lane overflows below 2^32 blocks. 1,480 bytes
/// take 40 ns, compared with 70 ns by 32-bit words and 63 ns by a 128-bit sum (baseline x86-64).
fn sum_in_lanes(blocks: &[[u8; 32]]) -> u64 {
    let (mut low, mut high) = ([0u64; 4], [0u64; 4]);
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for ((low, high), word) in low.iter_mut().zip(&mut high).zip(words) {
            let word = u64::from_ne_bytes(*word);
            *low = low.wrapping_add(word & 0xffff_ffff);
            *high = high.wrapping_add(word >> 32);
        }
    }
    let mut sum = 0u64;
    for (low, high) in low.into_iter().zip(high) {
        sum = sum.wrapping_add(low).wrapping_add(high);
    }
    sum
}

/// Number of blocks from which lanes are faster than a chain of carries: headers and short text of
/// a small segment are fewer.
const LANES_FROM: usize = 16;

#[cfg(test)]
mod tests;
