//! Writes captures in the pcapng format (draft-ietf-opsawg-pcapng): a section header, a description
//! of each interface, and one packet per block, with nanoseconds and comments.
//!
//! Every function appends to a buffer; the caller writes it to a file. Options and packets are
//! padded to 32 bits; numbers are little-endian, as the file's magic says.

use alloc::vec::Vec;

use whimbrel_base::Instant;

/// Writes one section: call [`Section::begin`], then describe interfaces, then add packets.
#[derive(Debug)]
pub struct Section {
    interfaces: u32,
}

/// Number of an interface in its section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterfaceId(u32);

/// Link layer of an interface's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum LinkType {
    /// An Ethernet header (`LINKTYPE_ETHERNET`).
    Ethernet = 1,
    /// An IPv4 or IPv6 header (`LINKTYPE_RAW`).
    Raw = 101,
    /// The family in the byte order of the capturing host, then an IP header (`LINKTYPE_NULL`).
    Null = 0,
    /// The family in network byte order, then an IP header (`LINKTYPE_LOOP`).
    Loop = 108,
    /// Linux' cooked header of several interfaces (`LINKTYPE_LINUX_SLL`).
    Cooked = 113,
    /// Its second version (`LINKTYPE_LINUX_SLL2`).
    Cooked2 = 276,
}

/// Direction of a packet, seen from its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Direction {
    /// The packet came in.
    In = 1,
    /// The packet went out.
    Out = 2,
}

/// Metadata of a packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketNote<'a> {
    /// Interface of the packet.
    pub interface: InterfaceId,
    /// Time of the packet.
    pub at: Instant,
    /// Direction of the packet.
    pub direction: Direction,
    /// Length on the wire, bytes: more than captured if it was cut short.
    pub wire_len: u32,
    /// Comment, or empty: `lost: queue full`. At most 65,535 bytes count.
    pub comment: &'a str,
}

impl LinkType {
    /// The IP packet in a frame, if there is one; up to two VLAN tags are skipped (802.1Q, 802.1ad).
    pub fn ip_packet(self, frame: &[u8]) -> Option<&[u8]> {
        let ether_type = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        let behind = |kind: u16, at: usize| {
            let mut place = (kind, at);
            for _ in 0..2 {
                if matches!(place.0, VLAN | QINQ | OLD_QINQ) {
                    place = (ether_type(place.1.checked_add(2)?)?, place.1 + 4);
                }
            }
            matches!(place.0, IPV4 | IPV6).then(|| frame.get(place.1..)).flatten()
        };
        match self {
            Self::Raw => Some(frame),
            // The family's number differs between systems; the version in the header tells it.
            Self::Null | Self::Loop => frame.get(4..),
            Self::Ethernet => behind(ether_type(12)?, 14),
            Self::Cooked => behind(ether_type(14)?, 16),
            Self::Cooked2 => behind(ether_type(0)?, 20),
        }
    }
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const QINQ: u16 = 0x88a8;
/// Tag of stacked VLANs before 802.1ad.
const OLD_QINQ: u16 = 0x9100;

impl Section {
    /// Appends a section header.
    pub fn begin(out: &mut Vec<u8>) -> Self {
        block(out, SECTION_HEADER, |body| {
            body.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
            body.extend_from_slice(&[1, 0, 0, 0]); // version 1.0
            body.extend_from_slice(&u64::MAX.to_le_bytes()); // length: not stated
            option(body, SHB_USERAPPL, b"Whimbrel");
            end_options(body);
        });
        Self { interfaces: 0 }
    }

    /// Appends the description of an interface.
    pub fn describe(&mut self, out: &mut Vec<u8>, name: &str, link_type: LinkType) -> InterfaceId {
        block(out, INTERFACE_DESCRIPTION, |body| {
            body.extend_from_slice(&(link_type as u16).to_le_bytes());
            body.extend_from_slice(&[0; 2]);
            body.extend_from_slice(&0u32.to_le_bytes()); // no limit on captured bytes
            option(body, IF_NAME, name.as_bytes());
            option(body, IF_TSRESOL, &[NANOSECONDS]);
            end_options(body);
        });
        let id = InterfaceId(self.interfaces);
        self.interfaces += 1;
        id
    }

    /// Appends a packet with the captured `bytes`.
    pub fn packet(&self, out: &mut Vec<u8>, note: &PacketNote<'_>, bytes: &[u8]) {
        debug_assert!(note.interface.0 < self.interfaces, "an interface of another section");
        block(out, ENHANCED_PACKET, |body| {
            let nanos = note.at.as_nanos();
            body.extend_from_slice(&note.interface.0.to_le_bytes());
            body.extend_from_slice(&((nanos >> 32) as u32).to_le_bytes());
            body.extend_from_slice(&(nanos as u32).to_le_bytes());
            body.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            body.extend_from_slice(&note.wire_len.to_le_bytes());
            body.extend_from_slice(bytes);
            pad(body);
            option(body, EPB_FLAGS, &(note.direction as u32).to_le_bytes());
            if !note.comment.is_empty() {
                option(body, OPT_COMMENT, note.comment.as_bytes());
            }
            end_options(body);
        });
    }
}

/// A block: type, length, body, length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    // In a buffer of its own: `out` may have any length, and padding counts from here.
    let mut content = Vec::new();
    body(&mut content);
    let len = (content.len() as u32 + BLOCK_FRAME).to_le_bytes();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&len);
    out.append(&mut content);
    out.extend_from_slice(&len);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&(value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}

fn end_options(body: &mut Vec<u8>) {
    body.extend_from_slice(&[0; 4]);
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Bytes of a block around its body.
const BLOCK_FRAME: u32 = 12;
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const OPT_COMMENT: u16 = 1;
const EPB_FLAGS: u16 = 2;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// Time stamps count 10^-9 s.
const NANOSECONDS: u8 = 9;

#[cfg(test)]
mod tests;
