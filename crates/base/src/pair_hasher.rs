//! A keyed hash of two hosts' addresses, on which values visible to the other host are based.
//! Without the key it cannot be guessed.

use core::cell::Cell;

use whimbrel_wire::Address;

use crate::secrets::Key;
use crate::sip::SipHasher24;

/// Hashes pairs of addresses under one key.
#[derive(Clone)]
pub struct PairHasher {
    prf: SipHasher24,
    /// The pair hashed last, and its hash: a host that connects once connects again, and a
    /// handshake hashes twice.
    last: Cell<Option<(Address, Address, u64)>>,
}

impl PairHasher {
    /// Creates a hasher under `key`.
    pub fn new(key: &Key) -> Self {
        Self { prf: key.prf(), last: Cell::new(None) }
    }

    /// Returns the function itself, under the same key. Inputs of other lengths than 8 and 32 bytes
    /// are independent of the hashes of pairs.
    #[inline]
    pub const fn prf(&self) -> &SipHasher24 {
        &self.prf
    }

    /// Returns the hash of two hosts of one family, in this order.
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

    /// Computes the hash without the cache.
    fn hash_anew(&self, local: &Address, remote: &Address) -> u64 {
        if local.is_v4() {
            let ([a, b, c, d], [e, f, g, h]) = (local.v4_bytes(), remote.v4_bytes());
            return self.prf.hash(&[a, b, c, d, e, f, g, h]);
        }
        let mut bytes = [0; 32];
        let (front, back) = bytes.split_at_mut(16);
        front.copy_from_slice(local.as_bytes());
        back.copy_from_slice(remote.as_bytes());
        self.prf.hash(&bytes)
    }
}

/// Shows that there is a key, but not its value.
impl core::fmt::Debug for PairHasher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("PairHasher(..)")
    }
}

#[cfg(test)]
mod tests;
