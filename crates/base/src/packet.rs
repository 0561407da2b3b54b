//! Packets in and out, as they pass between a protocol and a device.
//!
//! There is at most one copy in each direction. Outward, the send queue holds the application's
//! [`Bytes`](bytes::Bytes) and a segment carries slices of them. Inward, a device lends a frame for
//! the length of one call, and only the part that is kept is copied. Long text in a chunk of the
//! shard's own pool is not copied at all.

use alloc::vec::Vec;

mod icmp_error;
mod payload;
mod slices;

pub use icmp_error::{IcmpError, LEAST_PATH_MTU_V4, SoftError};
pub use payload::{ChunkText, LARGEST_CHUNK, Payload};
pub use slices::{MAX_SLICES, Slices};

/// The most bytes of headers in front of a payload: Ethernet, IPv6 and TCP with all options
/// take 114.
pub const MAX_HEADER: usize = 128;

/// The metadata that a device gives with an arrived segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegMeta {
    /// Number of segments that the sender made of it: 1, or more if the device merged them. Delayed
    /// acknowledgments and all else that counts segments use this number, not the number of calls.
    pub segs: u16,
    /// Bytes of text in each but the last, if `segs` exceeds 1; otherwise 0.
    pub gso_size: u16,
    /// The state of the TCP checksum.
    pub checksum: RxChecksum,
}

impl SegMeta {
    /// One segment without metadata.
    pub const SINGLE: Self = Self { segs: 1, gso_size: 0, checksum: RxChecksum::Unknown };
}

/// The state of an arrived checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RxChecksum {
    /// Unknown: it must be computed.
    Unknown,
    /// The device computed it, and it was right.
    Verified,
    /// The sender is this machine and left it to hardware that the segment never met: the field
    /// holds the pseudo-header's sum. There is nothing to verify, and nothing was corrupted.
    Partial,
}

/// A segment to send: headers in place, text by reference.
#[derive(Clone, Debug)]
pub struct TxSegment {
    header: [u8; MAX_HEADER],
    header_len: u8,
    /// The offset of the transport header in [`TxSegment::header`], in bytes.
    pub transport_offset: u8,
    /// The work that remains on the transport checksum.
    pub checksum: TxChecksum,
    /// Size in bytes of the segments into which the device (or the stack, if the device cannot)
    /// splits longer text. 0: not split.
    pub gso_size: u16,
    /// The text, in slices of the application's own memory.
    pub payload: Slices,
}

/// The work that remains on an outgoing checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxChecksum {
    /// The checksum is complete.
    Done,
    /// The field holds the pseudo-header's sum; the device completes it. The field lies this many
    /// bytes behind [`TxSegment::transport_offset`].
    Partial(u8),
}

impl TxSegment {
    /// Creates a segment with no header and no text.
    #[inline]
    pub const fn new() -> Self {
        Self {
            header: [0; MAX_HEADER],
            header_len: 0,
            transport_offset: 0,
            checksum: TxChecksum::Done,
            gso_size: 0,
            payload: Slices::new(),
        }
    }

    /// Removes headers and text.
    #[inline]
    pub fn clear(&mut self) {
        self.header_len = 0;
        self.transport_offset = 0;
        self.checksum = TxChecksum::Done;
        self.gso_size = 0;
        self.payload.clear();
    }

    /// Returns the headers, which precede the text.
    #[inline]
    pub fn header(&self) -> &[u8] {
        self.header.get(..usize::from(self.header_len)).unwrap_or_default()
    }

    /// Returns the buffer for the headers, not zeroed: write them, then call
    /// [`TxSegment::set_header_len`].
    #[inline]
    pub fn header_room(&mut self) -> &mut [u8; MAX_HEADER] {
        &mut self.header
    }

    /// Sets the length of the headers in the buffer, at most [`MAX_HEADER`] bytes.
    #[inline]
    pub fn set_header_len(&mut self, len: usize) {
        debug_assert!(len <= MAX_HEADER, "{len} bytes of headers exceed {MAX_HEADER}");
        self.header_len = len.min(MAX_HEADER) as u8;
    }

    /// Returns the bytes of headers and text.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.header_len) + self.payload.bytes() as usize
    }

    /// True if there is neither header nor text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the whole packet to the front of `room`, and returns its bytes. `None`, and nothing
    /// is copied, if `room` has fewer than [`TxSegment::len`].
    ///
    /// The caller does what was left to the device: segmentation, if `gso_size` is not 0, and the
    /// checksum, if it is [`TxChecksum::Partial`]. For a device without offloads the stack leaves
    /// nothing.
    pub fn copy_to(&self, room: &mut [u8]) -> Option<usize> {
        let (packet, _) = room.split_at_mut_checked(self.len())?;
        let (header, mut text) = packet.split_at_mut_checked(self.header().len())?;
        header.copy_from_slice(self.header());
        for slice in self.payload.as_slice() {
            let (place, rest) = text.split_at_mut_checked(slice.len())?;
            place.copy_from_slice(slice);
            text = rest;
        }
        Some(self.len())
    }

    /// Returns the whole packet in one piece: for captures and tests.
    pub fn to_vec(&self) -> Vec<u8> {
        let slices = self.payload.as_slice().iter().map(|slice| &slice[..]);
        core::iter::once(self.header()).chain(slices).collect::<Vec<_>>().concat()
    }
}

impl Default for TxSegment {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
