//! The old format: a header, and packets (draft-ietf-opsawg-pcap).

use super::bytes::{ByteReader, Order};
use super::{Accepted, Block, Fault, Packet, link_type};
use crate::pcapng::LinkType;

/// Reader of the blocks after the magic number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    order: Order,
    /// Nanoseconds of a time stamp's unit.
    unit: u64,
    /// Link layer of the packets, once the header was read.
    link_type: Option<LinkType>,
}

impl Reader {
    /// Reader for a magic number read as little-endian.
    pub(super) const fn of(magic: u32) -> Option<Self> {
        let (order, unit) = match magic {
            MICROSECONDS => (Order::Little, 1_000),
            NANOSECONDS => (Order::Little, 1),
            _ if magic.swap_bytes() == MICROSECONDS => (Order::Big, 1_000),
            _ if magic.swap_bytes() == NANOSECONDS => (Order::Big, 1),
            _ => return None,
        };
        Some(Self { order, unit, link_type: None })
    }

    pub(super) const fn link_type(&self) -> Option<LinkType> {
        self.link_type
    }

    /// Reads the header, or the packet at the start of `rest`.
    pub(super) fn block<'a>(
        &mut self,
        rest: &'a [u8],
        accepted: Accepted,
    ) -> Result<Block<'a>, Fault> {
        let rest = ByteReader::new(rest, self.order);
        let Some(link_type) = self.link_type else {
            let link_type = header(rest)?;
            accepted.check(link_type, None)?;
            self.link_type = Some(link_type);
            return Ok(Block { len: HEADER, packet: None });
        };
        let packet = packet(rest, self.unit, link_type)?;
        Ok(Block { len: RECORD + packet.bytes.len(), packet: Some(packet) })
    }
}

fn header(file: ByteReader<'_>) -> Result<LinkType, Fault> {
    let cut = || Fault::Cut { missing: HEADER.saturating_sub(file.len()) };
    let version = file.u16_at(4).ok_or_else(cut)?;
    if version != 2 {
        return Err(Fault::Version(version));
    }
    // The upper bits give the length of the frames' check sequences.
    link_type(file.u32_at(20).ok_or_else(cut)? & 0xffff)
}

/// The packet at the start of `rest`.
fn packet(rest: ByteReader<'_>, unit: u64, link_type: LinkType) -> Result<Packet<'_>, Fault> {
    let cut = |len: usize| Fault::Cut { missing: len.saturating_sub(rest.len()) };
    let number = |at| rest.u32_at(at).ok_or_else(|| cut(RECORD));
    let [seconds, fraction, len, wire_len] = [number(0)?, number(4)?, number(8)?, number(12)?];
    if len > MOST {
        return Err(Fault::Packet(len));
    }
    let bytes = rest.slice(RECORD, len as usize).ok_or_else(|| cut(RECORD + len as usize))?;
    let at = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
    Ok(Packet { at, direction: None, link_type, wire_len, bytes })
}

/// Longest packet that tools write (MAXIMUM_SNAPLEN of libpcap), bytes.
pub(super) const MOST: u32 = 262_144;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Bytes of the file's header, and of a packet's.
const HEADER: usize = 24;
const RECORD: usize = 16;
