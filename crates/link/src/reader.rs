//! Reads captures: pcap with micro- and nanoseconds, and pcapng, both in either byte order.
//!
//! [`Reader`] takes a file block by block, also an incomplete one; [`read`] takes a whole file. A
//! [`ReadError`] names the faulty block, its position and its error. Blocks without packets are
//! skipped.

use alloc::vec::Vec;

use crate::pcapng::{Direction, LinkType};

mod bytes;
mod error;
mod pcap;
mod pcapng;

use bytes::{ByteReader, Order};
pub use error::{Fault, ReadError};

/// Contents of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureFile<'a> {
    /// Link layer of its packets, if it has any.
    pub link_type: Option<LinkType>,
    /// Packets in the order of the file.
    pub packets: Vec<Packet<'a>>,
}

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Time, nanoseconds since 1970.
    pub at: u64,
    /// Direction, if the file has it.
    pub direction: Option<Direction>,
    /// Link layer of its frame.
    pub link_type: LinkType,
    /// Length on the wire, bytes.
    pub wire_len: u32,
    /// The captured part.
    pub bytes: &'a [u8],
}

/// Reads a file of either format.
pub fn read(file: &[u8]) -> Result<CaptureFile<'_>, ReadError> {
    let mut reader = Reader::new();
    let mut packets = Vec::new();
    let mut rest = file;
    // An empty file is no capture.
    while !rest.is_empty() || file.is_empty() {
        let Block { len, packet } = reader.block(rest)?;
        packets.extend(packet);
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(CaptureFile { link_type: reader.link_type(), packets })
}

/// Reads a capture of either format, block by block.
#[derive(Debug, Default)]
pub struct Reader {
    accepted: Accepted,
    format: Option<Format>,
    /// Number of blocks read.
    blocks: usize,
    /// Number of bytes read.
    offset: usize,
}

/// Link layers that a reader accepts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Accepted {
    /// Ethernet or raw IP, of one kind in a file: what a device has.
    #[default]
    Device,
    /// All of [`LinkType`], also mixed.
    All,
}

impl Accepted {
    /// Checks the link type of a packet behind others of `before`.
    fn check(self, link_type: LinkType, before: Option<LinkType>) -> Result<(), Fault> {
        match (self, link_type) {
            (Self::All, _) => Ok(()),
            (Self::Device, LinkType::Ethernet | LinkType::Raw) => match before {
                Some(before) if before != link_type => Err(Fault::LinkTypes),
                _ => Ok(()),
            },
            (Self::Device, other) => Err(Fault::NoDevice(other as u32)),
        }
    }
}

/// A block of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    /// Its length in bytes; more than 0.
    pub len: usize,
    /// Its packet, if it has one.
    pub packet: Option<Packet<'a>>,
}

/// Format of a file, and the state of its reader.
#[derive(Debug)]
enum Format {
    Pcap(pcap::Reader),
    Pcapng(pcapng::Reader),
}

impl Reader {
    /// A reader at the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader that accepts every [`LinkType`], also several in one file. It skips packets of pcapng that have
    /// another ([`Self::unknown`]).
    pub fn of_any_link() -> Self {
        Self { accepted: Accepted::All, ..Self::default() }
    }

    /// Packets that the interfaces' statistics so far report as dropped before the capture.
    pub fn dropped(&self) -> u64 {
        match &self.format {
            Some(Format::Pcapng(pcapng)) => pcapng.dropped(),
            _ => 0,
        }
    }

    /// Packets that a reader of any link has skipped, and the number of the first one's link type
    /// (LINKTYPE_ of tcpdump.org), if there are any.
    pub fn unknown(&self) -> Option<(u64, u32)> {
        match &self.format {
            Some(Format::Pcapng(pcapng)) => pcapng.unknown(),
            _ => None,
        }
    }

    /// True after the first block.
    pub const fn has_begun(&self) -> bool {
        self.blocks > 0
    }

    /// Link layer of the packets so far.
    pub fn link_type(&self) -> Option<LinkType> {
        match self.format.as_ref()? {
            Format::Pcap(pcap) => pcap.link_type(),
            Format::Pcapng(pcapng) => pcapng.link_type(),
        }
    }

    /// Reads the next block at the start of `rest`. If `rest` is not the whole rest of the file,
    /// [`Fault::Cut`] gives the least number of further bytes: call again with those.
    pub fn block<'a>(&mut self, rest: &'a [u8]) -> Result<Block<'a>, ReadError> {
        let accepted = self.accepted;
        let read = self.format_of(rest).and_then(|format| match format {
            Format::Pcap(pcap) => pcap.block(rest, accepted),
            Format::Pcapng(pcapng) => pcapng.block(rest, accepted),
        });
        let (block, offset) = (self.blocks + 1, self.offset);
        let read = read.map_err(|fault| ReadError { block, offset, fault })?;
        self.blocks = block;
        self.offset += read.len;
        Ok(read)
    }

    /// Format of the file, from its first bytes.
    fn format_of(&mut self, first: &[u8]) -> Result<&mut Format, Fault> {
        if self.format.is_none() {
            let magic = ByteReader::new(first, Order::Little).u32_at(0).ok_or(Fault::Magic)?;
            self.format = Some(match magic {
                pcapng::SECTION_HEADER => Format::Pcapng(pcapng::Reader::default()),
                magic => Format::Pcap(pcap::Reader::of(magic).ok_or(Fault::Magic)?),
            });
        }
        self.format.as_mut().ok_or(Fault::Magic)
    }
}

/// The link type of this number (LINKTYPE_ of tcpdump.org).
fn link_type(number: u32) -> Result<LinkType, Fault> {
    match number {
        0 => Ok(LinkType::Null),
        1 => Ok(LinkType::Ethernet),
        108 => Ok(LinkType::Loop),
        113 => Ok(LinkType::Cooked),
        276 => Ok(LinkType::Cooked2),
        // 12 and 14: DLT_RAW of the BSDs, in old files. 228 and 229: only IPv4 and only IPv6.
        12 | 14 | 101 | 228 | 229 => Ok(LinkType::Raw),
        _ => Err(Fault::LinkType(number)),
    }
}

#[cfg(test)]
mod tests;
