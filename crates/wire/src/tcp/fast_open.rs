//! The Fast Open option (RFC 7413 4.1).

use core::fmt;

/// A cookie of 4 ..= 16 bytes, or the empty request for one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FastOpen {
    /// The cookie in the first `len` bytes, zeros behind it.
    bytes: [u8; Self::MAX_COOKIE],
    len: u8,
    experimental: bool,
}

impl FastOpen {
    /// Length of the longest cookie, in bytes.
    pub const MAX_COOKIE: usize = 16;

    /// The request for a cookie.
    pub const REQUEST: Self = Self { bytes: [0; 16], len: 0, experimental: false };

    /// Creates a cookie, if it has an even number of 4 ..= 16 bytes (RFC 7413 4.1.1).
    pub fn from_cookie(cookie: &[u8]) -> Option<Self> {
        Self::from_body(cookie, false).filter(|option| !option.is_request())
    }

    /// Returns the cookie; empty in a request.
    pub fn cookie(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// True if this asks for a cookie.
    pub const fn is_request(&self) -> bool {
        self.len == 0
    }

    /// True if the option has the experimental form, kind 254 and 0xF989. A reply has the form of
    /// its request.
    pub const fn is_experimental(&self) -> bool {
        self.experimental
    }

    /// Returns the cookie in the experimental form.
    #[must_use]
    pub const fn into_experimental(self) -> Self {
        Self { experimental: true, ..self }
    }

    /// Parses an option. Options of other lengths are ignored (RFC 7413 4.1.1).
    pub(super) fn from_body(cookie: &[u8], experimental: bool) -> Option<Self> {
        let even = cookie.len().is_multiple_of(2);
        if !even || !matches!(cookie.len(), 0 | 4..=Self::MAX_COOKIE) {
            return None;
        }
        let mut bytes = [0; Self::MAX_COOKIE];
        bytes.get_mut(..cookie.len())?.copy_from_slice(cookie);
        Some(Self { bytes, len: cookie.len() as u8, experimental })
    }
}

impl fmt::Debug for FastOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.experimental { "experimental cookie " } else { "cookie " })?;
        self.cookie().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests;
