//! Captures read: pcap with micro- and nanoseconds, and pcapng, both in either byte order.
//!
//! A file is read as a whole, and refused as a whole: a [`ReadError`] says which block is at fault,
//! where it begins, and what is wrong with it. Blocks that hold no packets are skipped.

use alloc::vec::Vec;

use crate::pcapng::{Direction, LinkType};

mod error;
mod octets;
mod pcap;
mod pcapng;

pub use error::{Fault, ReadError};
use octets::{Octets, Order};

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
    /// Its length on the wire, octets.
    pub wire_len: u32,
    /// As much of it as was captured.
    pub octets: &'a [u8],
}

/// Reads a file of either format.
pub fn read(file: &[u8]) -> Result<CaptureFile<'_>, ReadError> {
    let magic = Octets::new(file, Order::Little).u32_at(0);
    match magic {
        Some(pcapng::SECTION_HEADER) => pcapng::read(file),
        Some(magic) => match pcap::Format::of(magic) {
            Some(format) => pcap::read(file, format),
            None => Err(ReadError { block: 1, offset: 0, fault: Fault::Magic }),
        },
        None => Err(ReadError { block: 1, offset: 0, fault: Fault::Magic }),
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
