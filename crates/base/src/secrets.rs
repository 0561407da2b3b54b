//! The keys of one stack. They are independent: a value revealed by one use shows nothing of
//! another.
//!
//! Nothing here gathers entropy: the caller passes it, or a seed if runs must repeat.

use core::fmt;

use crate::sip::SipHasher24;

/// All keys. They come from the system's entropy, or from a seed if runs must repeat. Machines of a
/// group that complete each other's handshakes share some.
#[derive(Clone, Copy)]
pub struct Secrets {
    /// Initial sequence numbers (RFC 6528).
    pub isn: Key,
    /// Ephemeral ports (RFC 6056).
    pub ports: Key,
    /// Timestamp offsets (RFC 7323 7.1).
    pub timestamps: Key,
    /// SYN cookies (RFC 4987 3.6).
    pub cookies: Key,
    /// Fast Open cookies (RFC 7413).
    pub fast_open: Key,
    /// The flow table, so that an attacker cannot choose colliding flows.
    pub flows: Key,
}

impl Secrets {
    /// Bytes of entropy that all keys together take.
    pub const LEN: usize = 96;

    /// Creates keys from entropy: six of 16 bytes, in the order of the fields. The bytes must come
    /// from a cryptographic generator: an attacker who can guess them can forge what the keys
    /// protect.
    pub const fn from_entropy(entropy: [u8; Self::LEN]) -> Self {
        let (keys, _) = entropy.as_chunks::<{ Key::LEN }>();
        let &[isn, ports, timestamps, cookies, fast_open, flows] = keys else {
            panic!("96 bytes are six keys of 16")
        };
        Self {
            isn: Key(isn),
            ports: Key(ports),
            timestamps: Key(timestamps),
            cookies: Key(cookies),
            fast_open: Key(fast_open),
            flows: Key(flows),
        }
    }

    /// Creates keys that repeat with `seed`, only for simulation and tests: a seed of 64 bits,
    /// often a small number, keeps no secret. The expansion is SipHash-2-4 in counter mode, keyed
    /// by the seed.
    pub fn from_seed(seed: u64) -> Self {
        let expand = SipHasher24::new_with_keys(seed, EXPANSION_LABEL);
        let mut entropy = [0; Self::LEN];
        for (counter, block) in (0_u64..).zip(entropy.as_chunks_mut::<8>().0) {
            *block = expand.hash(&counter.to_le_bytes()).to_le_bytes();
        }
        Self::from_entropy(entropy)
    }
}

/// Shows that there are keys, but not their values.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// A key of SipHash: 128 bits.
#[derive(Clone, Copy)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// Bytes of a key.
    pub const LEN: usize = 16;

    /// Returns SipHash-2-4 under this key: a pseudo-random function for short inputs.
    #[inline]
    pub fn prf(&self) -> SipHasher24 {
        SipHasher24::new_with_key(&self.0)
    }
}

/// Shows that there is a key, but not its value.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The second half of the key under which a seed is expanded: "whimbrel", so that the expansion
/// shares its output with no other use of the same seed.
const EXPANSION_LABEL: u64 = u64::from_le_bytes(*b"whimbrel");

#[cfg(test)]
mod tests;
