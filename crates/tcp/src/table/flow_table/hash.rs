//! The keyed hash of a flow.
//!
//! Two multiplications of 64 bits by 64, of which both halves of the product count; all that goes in is
//! hidden behind a secret first. Every segment is hashed, and SipHash-1-3 took 96 instructions
//! for it, this takes 16. It is no pseudo-random function, and where one is needed (ISNs, ports,
//! timestamps, cookies) none of this serves: an observer of hashes could work out the key. Here no hash
//! is observed. It never leaves the host, and what it decides, which cache line is read, is a matter of
//! nanoseconds against microseconds of network. Who chooses flows blindly finds as many that meet as
//! chance has it: a difference between two flows is multiplied by one secret, and what is left of it, both
//! halves folded into one, by another.

use whimbrel_base::Key;
use whimbrel_wire::{Address, Family};

/// 32 bits of keyed hash: a flow's tag in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct FlowHash(pub u32);

/// Hashes flows under one shard's key.
#[derive(Clone)]
pub struct FlowHasher {
    /// Keys that hide the halves of an IPv6 address.
    address: [u64; 2],
    /// Keys that hide the peer's host, and the rest of the flow.
    flow: [u64; 2],
    /// Keys that hide their product, and what that is multiplied by.
    last: [u64; 2],
}

impl FlowHasher {
    /// Hashes under `key`: 128 secret bits that serve nothing else.
    pub fn new(key: &Key) -> Self {
        let prf = key.prf();
        let pair = |at: u64| [at, at + 1].map(|at| prf.hash(&at.to_le_bytes()));
        Self { address: pair(0), flow: pair(2), last: pair(4) }
    }

    /// The hash of a flow, given from this side: the peer's address and port, this side's port,
    /// and which of this host's addresses it uses.
    #[inline]
    pub fn hash(
        &self,
        remote: &Address,
        remote_port: u16,
        local_port: u16,
        local_index: u16,
    ) -> FlowHash {
        let host = match remote.family() {
            Family::V4 => u64::from(u32::from_le_bytes(remote.v4_bytes())),
            Family::V6 => {
                let address = u128::from_le_bytes(*remote.as_bytes());
                multiply([address as u64, (address >> 64) as u64], self.address)
            }
        };
        let [port, local, index] = [remote_port, local_port, local_index].map(u64::from);
        let product = multiply([host, (port << 32) | (local << 16) | index], self.flow);
        FlowHash((multiply([product, 0], self.last) >> 32) as u32)
    }
}

/// The product of two words, each behind a secret of its own, folded into one.
#[inline(always)]
fn multiply(words: [u64; 2], secrets: [u64; 2]) -> u64 {
    let ([a, b], [c, d]) = (words, secrets);
    let product = u128::from(a ^ c).wrapping_mul(u128::from(b ^ d));
    product as u64 ^ (product >> 64) as u64
}

impl core::fmt::Debug for FlowHasher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FlowHasher")
    }
}

impl core::fmt::Debug for FlowHash {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}
