//! Captures read: pcap with micro- and nanoseconds, and pcapng, both in either byte order.
//!
//! [`Reader`] takes a file block by block, as much of it as is there; [`read`] takes it as a whole. A
//! [`ReadError`] says which block is at fault, where it begins, and what is wrong with it. Blocks that
//! hold no packets are skipped.

use alloc::vec::Vec;

use crate::pcapng::{Direction, LinkType};

mod bytes;
mod error;
mod pcap;
mod pcapng;

use bytes::{Octets, Order};
pub use error::{Fault, ReadError};

/// What a capture holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureFile<'a> {
    /// What its packets begin with, if it has any.
    pub link_type: Option<LinkType>,
    /// In the order of the file.
    pub packets: Vec<Packet<'a>>,
}

/// A packet of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// When it was seen, nanoseconds since 1970.
    pub at: u64,
    /// Which way it went, if the file says so.
    pub direction: Option<Direction>,
    /// Its length on the wire, bytes.
    pub wire_len: u32,
    /// As much of it as was captured.
    pub bytes: &'a [u8],
}

/// Reads a file of either format.
pub fn read(file: &[u8]) -> Result<CaptureFile<'_>, ReadError> {
    let mut reader = Reader::new();
    let mut packets = Vec::new();
    let mut rest = file;
    // What is empty is no capture.
    while !rest.is_empty() || file.is_empty() {
        let Block { len, packet } = reader.block(rest)?;
        packets.extend(packet);
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(CaptureFile { link_type: reader.link_type(), packets })
}

/// Reads a capture of either format, one block after the other.
#[derive(Debug, Default)]
pub struct Reader {
    format: Option<Format>,
    /// Blocks that were read.
    blocks: usize,
    /// Bytes that they have.
    offset: usize,
}

/// A block of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    /// Its bytes; more than none.
    pub len: usize,
    /// The packet in it, if it holds one.
    pub packet: Option<Packet<'a>>,
}

/// What a file is, and what its blocks said so far.
#[derive(Debug)]
enum Format {
    Pcap(pcap::Reader),
    Pcapng(pcapng::Reader),
}

impl Reader {
    /// At the beginning of a file.
    pub fn new() -> Self {
        Self::default()
    }

    /// True if a block was read.
    pub const fn has_begun(&self) -> bool {
        self.blocks > 0
    }

    /// What the packets so far begin with.
    pub fn link_type(&self) -> Option<LinkType> {
        match self.format.as_ref()? {
            Format::Pcap(pcap) => pcap.link_type(),
            Format::Pcapng(pcapng) => pcapng.link_type(),
        }
    }

    /// Reads the next block, with which `rest` begins. Where `rest` is not all that is left of the file,
    /// [`Fault::Cut`] says how many bytes more it takes at least: ask again with those.
    pub fn block<'a>(&mut self, rest: &'a [u8]) -> Result<Block<'a>, ReadError> {
        let read = self.format_of(rest).and_then(|format| match format {
            Format::Pcap(pcap) => pcap.block(rest),
            Format::Pcapng(pcapng) => pcapng.block(rest),
        });
        let (block, offset) = (self.blocks + 1, self.offset);
        let read = read.map_err(|fault| ReadError { block, offset, fault })?;
        self.blocks = block;
        self.offset += read.len;
        Ok(read)
    }

    /// The format of the file, which its first bytes say.
    fn format_of(&mut self, first: &[u8]) -> Result<&mut Format, Fault> {
        if self.format.is_none() {
            let magic = Octets::new(first, Order::Little).u32_at(0).ok_or(Fault::Magic)?;
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
        1 => Ok(LinkType::Ethernet),
        // 12 and 14: DLT_RAW of the BSDs, which old files have. 228 and 229: IPv4 and IPv6 alone.
        12 | 14 | 101 | 228 | 229 => Ok(LinkType::Raw),
        _ => Err(Fault::LinkType(number)),
    }
}

#[cfg(test)]
mod tests;
