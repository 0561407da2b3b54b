//! The text of an outgoing packet, by reference.

use bytes::Bytes;

/// Limit of slices in one outgoing segment: with the device's header and the packet's, 20 buffers
/// of a gathering write; a full super-segment can consist of application writes of 4 kB.
pub const MAX_SLICES: usize = 18;

/// Up to [`MAX_SLICES`] references to shared memory, in the order of the stream.
#[derive(Clone, Debug)]
pub struct Slices {
    items: [Bytes; MAX_SLICES],
    len: u8,
    bytes: u32,
}

impl Slices {
    /// Creates an empty list.
    #[inline]
    pub const fn new() -> Self {
        Self { items: [const { Bytes::new() }; MAX_SLICES], len: 0, bytes: 0 }
    }

    /// Appends a slice. Returns it if all [`MAX_SLICES`] places are taken.
    #[inline]
    pub fn push(&mut self, slice: Bytes) -> Result<(), Bytes> {
        match self.items.get_mut(usize::from(self.len)) {
            Some(place) => {
                self.bytes += slice.len() as u32;
                // A vacant place holds nothing: dropping it would take a call.
                core::mem::forget(core::mem::replace(place, slice));
                self.len += 1;
                Ok(())
            }
            None => Err(slice),
        }
    }

    /// True if every place is taken.
    #[inline]
    pub fn is_full(&self) -> bool {
        usize::from(self.len) == MAX_SLICES
    }

    /// Returns the slices, in the order of the text.
    #[inline]
    pub fn as_slice(&self) -> &[Bytes] {
        self.items.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Returns the sum of the slices' lengths in bytes.
    #[inline]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Keeps the first `bytes` bytes.
    pub fn truncate(&mut self, bytes: u32) {
        while self.bytes > bytes {
            let excess = self.bytes - bytes;
            let Some(last) = self.items.get_mut(usize::from(self.len) - 1) else { return };
            let len = last.len() as u32;
            if len > excess {
                last.truncate((len - excess) as usize);
                self.bytes = bytes;
            } else {
                *last = Bytes::new();
                self.len -= 1;
                self.bytes -= len;
            }
        }
    }

    /// Removes all slices.
    #[inline]
    pub fn clear(&mut self) {
        // Most segments have no text.
        if self.len == 0 {
            return;
        }
        for item in self.items.iter_mut().take(usize::from(self.len)) {
            *item = Bytes::new();
        }
        self.len = 0;
        self.bytes = 0;
    }
}

impl Default for Slices {
    fn default() -> Self {
        Self::new()
    }
}
