//! Reads and writes fields at the front of a slice, big-endian (RFC 1700: network order).

use crate::ParseError;

/// Takes fields from the front of a slice; each method fails with [`ParseError::Truncated`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (field, rest) = self.0.split_first_chunk().ok_or(ParseError::Truncated)?;
        self.0 = rest;
        Ok(*field)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, ParseError> {
        self.array().map(u8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Returns the next `len` bytes.
    #[inline]
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8], ParseError> {
        let (field, rest) = self.0.split_at_checked(len).ok_or(ParseError::Truncated)?;
        self.0 = rest;
        Ok(field)
    }
}

/// Writes fields to the front of a slice; panics where the slice ends.
pub(crate) struct Writer<'a>(pub(crate) &'a mut [u8]);

impl Writer<'_> {
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        let field = self.0.split_off_mut(..bytes.len()).expect("buffer shorter than what is sent");
        field.copy_from_slice(bytes);
    }

    #[inline]
    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    #[inline]
    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }
}
