//! The keyed hash of a flow.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;
use whimbrel_wire::Address;

use crate::table::secrets::Key;

/// 32 bits of keyed hash: a flow's tag in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct FlowHash(pub u32);

/// Hashes flows under one shard's key.
#[derive(Clone)]
pub struct FlowHasher {
    keyed: SipHasher13,
}

impl FlowHasher {
    /// Hashes under `key`: 128 bits that nobody outside knows and that serve nothing else.
    pub fn new(key: &Key) -> Self {
        Self { keyed: SipHasher13::new_with_key(&key.0) }
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
        let ports = u64::from(remote_port) | u64::from(local_port) << 16;
        let [low, high] = halves(remote);
        let mut hasher = self.keyed;
        hasher.write_u64(low);
        hasher.write_u64(high);
        hasher.write_u64(ports | u64::from(local_index) << 32);
        FlowHash((hasher.finish() >> 32) as u32)
    }
}

fn halves(address: &Address) -> [u64; 2] {
    let octets = u128::from_le_bytes(*address.octets());
    [octets as u64, (octets >> 64) as u64]
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
