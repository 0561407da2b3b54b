//! SipHash-2-4 (Aumasson and Bernstein, 2012): a pseudo-random function of short inputs, two rounds
//! for each word and four at the end.
//!
//! Each caller knows the length of its input: four bytes, or a flow. Inlined into the caller, the
//! loops over words and the rest become straight code. This saves a third of the 143 instructions
//! of a call of the crate `siphasher`, with which the tests compare it.

/// SipHash-2-4 under one key.
#[derive(Clone, Copy)]
pub struct SipHasher24 {
    /// The state before the first word.
    start: [u64; 4],
}

impl SipHasher24 {
    /// Creates a hasher under a key of 16 bytes.
    #[inline]
    pub fn new_with_key(key: &[u8; 16]) -> Self {
        let [low, high] =
            [0, 8].map(|from| u64::from_le_bytes(core::array::from_fn(|i| key[from + i])));
        Self::new_with_keys(low, high)
    }

    /// Creates a hasher under a key in two halves.
    #[inline]
    pub const fn new_with_keys(low: u64, high: u64) -> Self {
        let [a, b, c, d] = INITIAL;
        Self { start: [low ^ a, high ^ b, low ^ c, high ^ d] }
    }

    /// The hash of `bytes`.
    // Always: a call would not know the length.
    #[inline(always)]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        let mut state = self.start;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            absorb(&mut state, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (place, byte) in last.iter_mut().zip(rest) {
            *place = *byte;
        }
        last[7] = bytes.len() as u8;
        absorb(&mut state, u64::from_le_bytes(last));
        state[2] ^= 0xff;
        for _ in 0..4 {
            round(&mut state);
        }
        let [a, b, c, d] = state;
        a ^ b ^ c ^ d
    }
}

/// Shows that there is a key, but not its value.
impl core::fmt::Debug for SipHasher24 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SipHasher24(..)")
    }
}

#[inline(always)]
fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    for _ in 0..2 {
        round(state);
    }
    state[0] ^= word;
}

#[inline(always)]
fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*b);
    *a = a.wrapping_add(*d);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}

/// The state before the key enters: "somepseudorandomlygeneratedbytes".
const INITIAL: [u64; 4] =
    [0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573];

#[cfg(test)]
mod tests;
