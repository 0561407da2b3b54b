//! The keyed hash of a flow.

use whimbrel_wire::{Address, Family};

use crate::table::secrets::Key;
use crate::table::sip::SipHasher13;

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
        let [a, b] = remote_port.to_ne_bytes();
        let [c, d] = local_port.to_ne_bytes();
        let [e, f] = local_index.to_ne_bytes();
        // Octets that all IPv4 addresses share are left out: two rounds of seven less. No two flows
        // have the same octets, as the length is hashed as well.
        let hash = match remote.family() {
            Family::V4 => {
                let [g, h, i, j] = remote.v4_octets();
                self.keyed.hash(&[g, h, i, j, a, b, c, d, e, f])
            }
            Family::V6 => {
                let mut octets = [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                octets[6..].copy_from_slice(remote.octets());
                self.keyed.hash(&octets)
            }
        };
        FlowHash((hash >> 32) as u32)
    }
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
