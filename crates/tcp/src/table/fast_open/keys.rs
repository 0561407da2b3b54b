//! The cookies that this host grants (RFC 7413 4.1.2).
//!
//! A cookie is SipHash-2-4 of both addresses, the client's first, under a key that serves nothing
//! else: a peer that returns it has received packets at the address that it speaks from. It says nothing
//! of ports, so one is good for every listener with that key. Its bytes are those that Linux (since
//! 5.3) makes of the same key: hosts of either kind can stand behind one address.
//!
//! Cookies last as long as their key. After [`FastOpenKeys::rotate`] those of the key before are
//! good until the next time, and answered by a new one.

use core::fmt;

use whimbrel_base::{Key, SipHasher24};
use whimbrel_wire::Address;
use whimbrel_wire::tcp::FastOpen;

/// The keys of the cookies.
#[derive(Clone)]
pub struct FastOpenKeys {
    primary: SipHasher24,
    backup: Option<SipHasher24>,
}

/// The verdict on a cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CookieVerdict {
    /// It was granted to this address.
    Valid,
    /// It was, under the other key: its owner is to have a new one.
    Outdated,
    /// It was not, or too long ago.
    Invalid,
}

impl FastOpenKeys {
    /// Cookies under this key.
    pub fn new(key: &Key) -> Self {
        Self { primary: key.prf(), backup: None }
    }

    /// Returns these keys, which take cookies under `backup`, too.
    pub fn with_backup(self, backup: &Key) -> Self {
        Self { backup: Some(backup.prf()), ..self }
    }

    /// Grants cookies under `key` from now on. Those of the key so far are still taken, those of the
    /// one before it no more.
    pub fn rotate(&mut self, key: &Key) {
        self.backup = Some(core::mem::replace(&mut self.primary, key.prf()));
    }

    /// The cookie of a peer that sends to `local` from `remote`.
    pub fn grant(&self, local: &Address, remote: &Address) -> FastOpen {
        let cookie = code(&self.primary, local, remote);
        FastOpen::from_cookie(&cookie).unwrap_or(FastOpen::REQUEST)
    }

    /// Judges a cookie that came from `remote` to `local`.
    pub fn judge(&self, local: &Address, remote: &Address, cookie: &FastOpen) -> CookieVerdict {
        let is_of = |prf: &SipHasher24| cookie.cookie() == code(prf, local, remote);
        if is_of(&self.primary) {
            CookieVerdict::Valid
        } else if self.backup.as_ref().is_some_and(is_of) {
            CookieVerdict::Outdated
        } else {
            CookieVerdict::Invalid
        }
    }
}

/// Says that there are keys, and nothing of what they are.
impl fmt::Debug for FastOpenKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastOpenKeys").finish_non_exhaustive()
    }
}

/// The length of what is hashed tells the families apart.
fn code(prf: &SipHasher24, local: &Address, remote: &Address) -> [u8; 8] {
    let hash = if local.is_v4() {
        prf.hash([remote.v4_bytes(), local.v4_bytes()].as_flattened())
    } else {
        prf.hash([*remote.as_bytes(), *local.as_bytes()].as_flattened())
    };
    hash.to_le_bytes()
}

#[cfg(test)]
mod tests;
