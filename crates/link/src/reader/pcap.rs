//! The old format: a header, and packets behind each other (draft-ietf-opsawg-pcap).

use alloc::vec::Vec;

use super::octets::{Octets, Order};
use super::{CaptureFile, Fault, Packet, ReadError, link_type};

/// What the magic number says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    order: Order,
    /// Nanoseconds of a time stamp's unit.
    unit: u64,
}

impl Format {
    /// Of a magic number read as little-endian.
    pub(super) const fn of(magic: u32) -> Option<Self> {
        Some(match magic {
            MICROSECONDS => Self { order: Order::Little, unit: 1_000 },
            NANOSECONDS => Self { order: Order::Little, unit: 1 },
            _ if magic.swap_bytes() == MICROSECONDS => Self { order: Order::Big, unit: 1_000 },
            _ if magic.swap_bytes() == NANOSECONDS => Self { order: Order::Big, unit: 1 },
            _ => return None,
        })
    }
}

/// Reads a file that begins with the magic number of `format`.
pub(super) fn read(file: &[u8], format: Format) -> Result<CaptureFile<'_>, ReadError> {
    let (mut block, mut offset, mut packets) = (1, 0, Vec::new());
    let file = Octets::new(file, format.order);
    let link_type = header(file).map_err(|fault| ReadError { block, offset, fault })?;
    offset = HEADER;
    while offset < file.len() {
        block += 1;
        let packet = packet(file.from(offset), format.unit);
        let packet = packet.map_err(|fault| ReadError { block, offset, fault })?;
        offset += RECORD + packet.octets.len();
        packets.push(packet);
    }
    Ok(CaptureFile { link_type: Some(link_type), packets })
}

fn header(file: Octets<'_>) -> Result<crate::pcapng::LinkType, Fault> {
    let cut = || Fault::Cut { missing: HEADER.saturating_sub(file.len()) };
    let version = file.u16_at(4).ok_or_else(cut)?;
    if version != 2 {
        return Err(Fault::Version(version));
    }
    // The upper bits say how long the frames' check sequences are.
    link_type(file.u32_at(20).ok_or_else(cut)? & 0xffff)
}

/// The packet that `rest` begins with.
fn packet(rest: Octets<'_>, unit: u64) -> Result<Packet<'_>, Fault> {
    let cut = |len: usize| Fault::Cut { missing: len.saturating_sub(rest.len()) };
    let number = |at| rest.u32_at(at).ok_or_else(|| cut(RECORD));
    let [seconds, fraction, len, wire_len] = [number(0)?, number(4)?, number(8)?, number(12)?];
    if len > MOST {
        return Err(Fault::Packet(len));
    }
    let octets = rest.slice(RECORD, len as usize).ok_or_else(|| cut(RECORD + len as usize))?;
    let at = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
    Ok(Packet { at, direction: None, wire_len, octets })
}

/// The longest packet that tools write (MAXIMUM_SNAPLEN of libpcap), octets.
pub(super) const MOST: u32 = 262_144;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Octets of the file's header, and of a packet's.
const HEADER: usize = 24;
const RECORD: usize = 16;
