//! A keyed hash of two hosts' addresses: what one host shows another begins there, and nobody else can
//! guess it.

use core::cell::Cell;

use whimbrel_wire::Address;

use crate::secrets::Key;
use crate::sip::SipHasher24;

/// Hashes pairs of addresses under one key.
#[derive(Clone)]
pub struct PairHasher {
    prf: SipHasher24,
    /// The hosts that were hashed last, and their hash: who connects once connects again, and a
    /// handshake asks twice.
    last: Cell<Option<(Address, Address, u64)>>,
}

impl PairHasher {
    /// A hasher under `key`.
    pub fn new(key: &Key) -> Self {
        Self { prf: key.prf(), last: Cell::new(None) }
    }

    /// The function itself, under the same key. An input of another length than 8 and 32 bytes has
    /// nothing to do with the hash of a pair.
    #[inline]
    pub const fn prf(&self) -> &SipHasher24 {
        &self.prf
    }

    /// The hash of two hosts of one family, in this order.
    #[inline]
    pub fn hash(&self, local: &Address, remote: &Address) -> u64 {
        if let Some((last_local, last_remote, hash)) = self.last.get()
            && last_remote == *remote
            && last_local == *local
        {
            return hash;
        }
        self.hash_others(local, remote)
    }

    #[inline(never)]
    fn hash_others(&self, local: &Address, remote: &Address) -> u64 {
        let hash = self.hash_anew(local, remote);
        self.last.set(Some((*local, *remote, hash)));
        hash
    }

    /// The hash, whatever was asked for before.
    fn hash_anew(&self, local: &Address, remote: &Address) -> u64 {
        if local.is_v4() {
            let ([a, b, c, d], [e, f, g, h]) = (local.v4_octets(), remote.v4_octets());
            return self.prf.hash(&[a, b, c, d, e, f, g, h]);
        }
        let mut bytes = [0; 32];
        let (front, back) = bytes.split_at_mut(16);
        front.copy_from_slice(local.octets());
        back.copy_from_slice(remote.octets());
        self.prf.hash(&bytes)
    }
}

/// Says that there is a key, and nothing of what it is.
impl core::fmt::Debug for PairHasher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PairHasher(..)")
    }
}

#[cfg(test)]
mod tests;
