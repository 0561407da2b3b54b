//! Segments in and out, as they pass between the protocol and a device.
//!
//! Copies are the budget of a fast path: at most one in each direction. Outward, the send queue
//! holds the application's [`Bytes`] and a segment carries slices of them; inward, a device lends
//! a frame for the length of one call, and only what is kept is copied. Long text in a chunk of the shard's
//! own pool is kept where it is.

use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{TcpFlags, TcpView};

/// The most slices that one outgoing segment is made of: with the device's header and ours, 20
/// buffers of a gathering write, and 4 kB of application writes each for a full super-segment.
pub const MAX_SLICES: usize = 18;

/// The most octets of headers in front of a payload: Ethernet, IPv6 and TCP with all options
/// take 114.
pub const MAX_HEADER: usize = 128;

/// The largest chunk of memory for received text, octets: a super-segment.
pub const LARGEST_CHUNK: usize = 64 << 10;

/// An arrived segment: its header as values, its payload where the device left it.
#[derive(Debug)]
pub struct RxSegment<'a> {
    /// The header, parsed; its options are read when asked for.
    pub header: TcpView<'a>,
    /// The text that follows the header.
    pub payload: Payload<'a>,
    /// What is known of how it came.
    pub meta: SegMeta,
}

impl RxSegment<'_> {
    /// SEG.LEN (RFC 9293 3.4): the octets of text, and one each for SYN and FIN.
    #[inline]
    pub fn len(&self) -> u32 {
        let flags = self.header.flags;
        self.payload.len()
            + u32::from(flags.contains(TcpFlags::SYN))
            + u32::from(flags.contains(TcpFlags::FIN))
    }

    /// The number of the first octet of text: a SYN comes before it.
    #[inline]
    pub fn text_seq(&self) -> SeqNum {
        self.header.seq + u32::from(self.header.flags.contains(TcpFlags::SYN))
    }

    /// Whether SEG.LEN is zero: a pure acknowledgment, a reset, or nothing at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The text of an arrived segment.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// In the device's memory, lent for the length of the call.
    Borrowed(&'a [u8]),
    /// The same of several segments that follow each other: the text of each.
    Gathered(&'a [&'a [u8]]),
    /// In memory that may be kept.
    InChunk(ChunkText<'a>),
}

/// Text that fills most of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct ChunkText<'a> {
    chunk: &'a Bytes,
    /// Where in the chunk the text begins, and its octets.
    start: u32,
    len: u32,
}

impl<'a> ChunkText<'a> {
    /// The least of which the chunk is worth keeping, octets: what is in the queue may take twice its memory.
    const LEAST: usize = LARGEST_CHUNK / 4 * 3;

    /// `text` as a part of `chunk`, if it is one and long enough, and the chunk no larger than
    /// [`LARGEST_CHUNK`]: what it keeps alive counts as one of those.
    pub fn find(chunk: &'a Bytes, text: &[u8]) -> Option<Self> {
        let start = text.as_ptr().addr().checked_sub(chunk.as_ptr().addr())?;
        let is_within = start + text.len() <= chunk.len() && chunk.len() <= LARGEST_CHUNK;
        (is_within && text.len() >= Self::LEAST).then_some(Self {
            chunk,
            start: start as u32,
            len: text.len() as u32,
        })
    }

    /// The text, where it lies in the chunk.
    pub fn octets(&self) -> &'a [u8] {
        self.chunk.get(self.range()).unwrap_or_default()
    }

    /// A handle of the text, which keeps all of its chunk.
    pub fn keep(&self) -> Bytes {
        self.chunk.slice(self.range())
    }

    const fn range(&self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

impl Payload<'_> {
    /// Octets: at most 65,535.
    #[inline]
    pub fn len(&self) -> u32 {
        match self {
            Self::Borrowed(octets) => octets.len() as u32,
            _ => self.long_len(),
        }
    }

    /// Of what only comes in bulk: out of the way of all others.
    #[cold]
    #[inline(never)]
    fn long_len(&self) -> u32 {
        match self {
            Self::Borrowed(octets) => octets.len() as u32,
            Self::Gathered(slices) => slices.iter().map(|slice| slice.len() as u32).sum(),
            Self::InChunk(text) => text.len,
        }
    }

    /// Whether there is no text.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What the device knows of an arrived segment beside its octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegMeta {
    /// How many segments the sender made of it: 1, or more if the device merged them. Delayed
    /// acknowledgment and everything else that counts segments counts these, never calls.
    pub segs: u16,
    /// The text of each but the last, in octets, if `segs` exceeds 1; otherwise 0.
    pub gso_size: u16,
    /// Whether the TCP checksum is known to be right.
    pub checksum: RxChecksum,
}

impl SegMeta {
    /// One segment of which nothing is known.
    pub const SINGLE: Self = Self { segs: 1, gso_size: 0, checksum: RxChecksum::Unknown };
}

/// What is known of an arrived checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RxChecksum {
    /// Nothing: it must be computed.
    Unknown,
    /// The device computed it and it was right.
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
    /// Where the transport header begins in [`TxSegment::header`], in octets.
    pub transport_offset: u8,
    /// What remains to be done about the transport checksum.
    pub checksum: TxChecksum,
    /// If the text exceeds this, the device (or the stack, if it cannot) cuts it into segments of
    /// this many octets. 0: never cut.
    pub gso_size: u16,
    /// The text, in slices of the application's own memory.
    pub payload: Slices,
}

/// What remains to be done about an outgoing checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxChecksum {
    /// The checksum is complete.
    Done,
    /// The field holds the pseudo-header's sum; the device completes it. The field lies this many
    /// octets behind [`TxSegment::transport_offset`].
    Partial(u8),
}

impl TxSegment {
    /// A segment with no header and no text, to be filled.
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

    /// Empties it, and lets go of the text it referred to.
    pub fn clear(&mut self) {
        self.header_len = 0;
        self.transport_offset = 0;
        self.checksum = TxChecksum::Done;
        self.gso_size = 0;
        self.payload.clear();
    }

    /// The headers, as they go in front of the text.
    pub fn header(&self) -> &[u8] {
        self.header.get(..usize::from(self.header_len)).unwrap_or_default()
    }

    /// Room for the headers, zeroed by nobody: write them, then call [`TxSegment::set_header_len`].
    pub fn header_room(&mut self) -> &mut [u8; MAX_HEADER] {
        &mut self.header
    }

    /// The first `len` octets of the room are the headers (at most [`MAX_HEADER`]).
    pub fn set_header_len(&mut self, len: usize) {
        debug_assert!(len <= MAX_HEADER, "{len} octets of headers exceed {MAX_HEADER}");
        self.header_len = len.min(MAX_HEADER) as u8;
    }

    /// Octets of headers and text.
    pub fn len(&self) -> usize {
        usize::from(self.header_len) + self.payload.octets() as usize
    }

    /// Whether there is neither header nor text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the whole packet to the front of `room`, and returns how many octets it has. `None`, and
    /// nothing is copied, if `room` has fewer than [`TxSegment::len`].
    ///
    /// What was left to the device is left to the caller: cutting, if `gso_size` is not 0, and the
    /// checksum, if it is [`TxChecksum::Partial`]. A stack that was told of a device without either leaves
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

    /// The whole packet in one piece: for captures and tests.
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

/// Up to [`MAX_SLICES`] references to shared memory, in the order of the stream.
#[derive(Clone, Debug)]
pub struct Slices {
    items: [Bytes; MAX_SLICES],
    len: u8,
    octets: u32,
}

impl Slices {
    /// A text of no slices.
    pub const fn new() -> Self {
        Self { items: [const { Bytes::new() }; MAX_SLICES], len: 0, octets: 0 }
    }

    /// Appends a slice. Returns it if all [`MAX_SLICES`] places are taken.
    pub fn push(&mut self, slice: Bytes) -> Result<(), Bytes> {
        match self.items.get_mut(usize::from(self.len)) {
            Some(place) => {
                self.octets += slice.len() as u32;
                // What a vacant place held is nothing: to drop it would take a call.
                core::mem::forget(core::mem::replace(place, slice));
                self.len += 1;
                Ok(())
            }
            None => Err(slice),
        }
    }

    /// Whether every place is taken.
    pub fn is_full(&self) -> bool {
        usize::from(self.len) == MAX_SLICES
    }

    /// The slices, in the order of the text.
    pub fn as_slice(&self) -> &[Bytes] {
        self.items.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// The sum of the slices' lengths.
    pub const fn octets(&self) -> u32 {
        self.octets
    }

    /// Keeps the first `octets` octets.
    pub fn truncate(&mut self, octets: u32) {
        while self.octets > octets {
            let excess = self.octets - octets;
            let Some(last) = self.items.get_mut(usize::from(self.len) - 1) else { return };
            let len = last.len() as u32;
            if len > excess {
                last.truncate((len - excess) as usize);
                self.octets = octets;
            } else {
                *last = Bytes::new();
                self.len -= 1;
                self.octets -= len;
            }
        }
    }

    /// Lets go of all of them.
    pub fn clear(&mut self) {
        for item in self.items.iter_mut().take(usize::from(self.len)) {
            *item = Bytes::new();
        }
        self.len = 0;
        self.octets = 0;
    }
}

impl Default for Slices {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
