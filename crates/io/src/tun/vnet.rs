//! The offload header in front of each frame: `struct virtio_net_hdr` (linux/virtio_net.h), in the
//! machine's byte order, which is TUN's default.

use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum, TxSegment};
use whimbrel_stack::Medium;
use whimbrel_wire::{EtherType, EthernetHeader, UdpHeader};

/// The header, with its numbers as in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VnetHeader {
    /// State of checksums: bits [`NEEDS_CSUM`] and [`DATA_VALID`].
    pub flags: u8,
    /// One of `GSO_*`, optionally with [`GSO_ECN`].
    pub gso_type: u8,
    /// Bytes of headers: a hint only.
    pub hdr_len: u16,
    /// Bytes of text in each segment of a super-frame.
    pub gso_size: u16,
    /// Offset at which the range of the unfinished checksum begins.
    pub csum_start: u16,
    /// Offset of the checksum field from `csum_start`.
    pub csum_offset: u16,
}

impl VnetHeader {
    /// Length of the encoded header in bytes.
    pub const LEN: usize = 10;

    /// Decodes the device's bytes.
    pub const fn decode(bytes: &[u8; Self::LEN]) -> Self {
        let [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1] = *bytes;
        Self {
            flags,
            gso_type,
            hdr_len: u16::from_ne_bytes([h0, h1]),
            gso_size: u16::from_ne_bytes([g0, g1]),
            csum_start: u16::from_ne_bytes([s0, s1]),
            csum_offset: u16::from_ne_bytes([o0, o1]),
        }
    }

    /// Returns the bytes that precede the frame.
    pub const fn encode(&self) -> [u8; Self::LEN] {
        let [h0, h1] = self.hdr_len.to_ne_bytes();
        let [g0, g1] = self.gso_size.to_ne_bytes();
        let [s0, s1] = self.csum_start.to_ne_bytes();
        let [o0, o1] = self.csum_offset.to_ne_bytes();
        [self.flags, self.gso_type, h0, h1, g0, g1, s0, s1, o0, o1]
    }

    /// Returns the header of a segment whose IP header begins at `ip_at`.
    pub fn of_segment(segment: &TxSegment, ip_at: usize) -> Self {
        let mut vnet = Self::default();
        if let TxChecksum::Partial(offset) = segment.checksum {
            vnet.flags = NEEDS_CSUM;
            vnet.csum_start = u16::from(segment.transport_offset);
            vnet.csum_offset = u16::from(offset);
        }
        let header = segment.header();
        vnet.hdr_len = header.len() as u16;
        if segment.gso_size > 0 && segment.payload.bytes() > u32::from(segment.gso_size) {
            vnet.gso_size = segment.gso_size;
            if segment.checksum == TxChecksum::Partial(UDP_CHECKSUM) {
                vnet.gso_type = GSO_UDP_L4;
                return vnet;
            }
            vnet.gso_type = match version(header.get(ip_at..).unwrap_or_default()) {
                6 => GSO_TCPV6,
                _ => GSO_TCPV4,
            };
            let flags = header.get(usize::from(segment.transport_offset) + TCP_FLAGS);
            if flags.is_some_and(|flags| flags & TCP_CWR != 0) {
                vnet.gso_type |= GSO_ECN;
            }
        }
        vnet
    }

    /// Returns the metadata of `frame`, whose IP header begins at `ip_at`.
    pub fn meta(&self, frame: &[u8], ip_at: usize) -> Result<SegMeta, Malformed> {
        let checksum = if self.flags & NEEDS_CSUM != 0 {
            RxChecksum::Partial
        } else if self.flags & DATA_VALID != 0 {
            RxChecksum::Verified
        } else {
            RxChecksum::Unknown
        };
        let (segs, gso_size) = self.segments(frame, ip_at)?;
        Ok(SegMeta { segs, gso_size, checksum })
    }

    /// Returns how many segments a frame stands for, and the bytes of text in each but the last (0
    /// for one segment).
    fn segments(&self, frame: &[u8], ip_at: usize) -> Result<(u16, u16), Malformed> {
        let transport_header = match self.gso_type & !GSO_ECN {
            GSO_NONE => return Ok((1, 0)),
            GSO_TCPV4 | GSO_TCPV6 => TransportHeader::Tcp,
            GSO_UDP_L4 => TransportHeader::Udp,
            _ => return Err(Malformed),
        };
        let headers = self.header_len(transport_header, frame, ip_at).ok_or(Malformed)?;
        let text = frame.len().checked_sub(headers).ok_or(Malformed)?;
        match (text, usize::from(self.gso_size)) {
            (_, 0) => Err(Malformed),
            (text, size) if text <= size => Ok((1, 0)),
            (text, size) => {
                let segs = u16::try_from(text.div_ceil(size)).map_err(|_| Malformed)?;
                Ok((segs, self.gso_size))
            }
        }
    }

    /// Returns the bytes of all headers. `hdr_len` is ignored: it counts what the kernel has in one
    /// piece, which may be more or less.
    fn header_len(&self, kind: TransportHeader, frame: &[u8], ip_at: usize) -> Option<usize> {
        // A super-frame of the local kernel has an unfinished checksum, whose range begins at the
        // transport header.
        let transport = if self.flags & NEEDS_CSUM != 0 {
            usize::from(self.csum_start)
        } else {
            ip_at + ip_header_len(frame.get(ip_at..)?)?
        };
        let len = match kind {
            TransportHeader::Udp => 8,
            TransportHeader::Tcp => {
                let words = frame.get(transport.checked_add(TCP_DATA_OFFSET)?)? >> 4;
                if words < 5 {
                    return None;
                }
                usize::from(words) * 4
            }
        };
        transport.checked_add(len)
    }
}

/// Returns the offset of a frame's IP header.
pub fn ip_offset(medium: Medium, frame: &[u8]) -> usize {
    const TAG: [u8; 2] = EtherType::VLAN.0.to_be_bytes();
    match medium {
        Medium::Ip => 0,
        Medium::Ethernet { .. } if frame.get(12..14) == Some(&TAG) => EthernetHeader::LEN + 4,
        Medium::Ethernet { .. } => EthernetHeader::LEN,
    }
}

/// Error: the offload header contradicts the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

#[derive(Clone, Copy)]
enum TransportHeader {
    Tcp,
    Udp,
}

/// Returns the length of the IP header in bytes; IPv6 only without extension headers, which no
/// super-frame has.
fn ip_header_len(frame: &[u8]) -> Option<usize> {
    match version(frame) {
        4 => Some(usize::from(frame.first()? & 0xf) * 4).filter(|len| *len >= 20),
        6 => Some(40),
        _ => None,
    }
}

fn version(frame: &[u8]) -> u8 {
    frame.first().map_or(0, |byte| byte >> 4)
}

/// The checksum field holds the pseudo-header's sum only.
pub const NEEDS_CSUM: u8 = 1;
/// The checksum was verified.
pub const DATA_VALID: u8 = 2;
/// The frame is one segment, as on the wire.
pub const GSO_NONE: u8 = 0;
/// TCP over IPv4, to be cut or merged.
pub const GSO_TCPV4: u8 = 1;
/// TCP over IPv6, to be cut or merged.
pub const GSO_TCPV6: u8 = 4;
/// UDP datagrams of one size, to be cut or merged.
pub const GSO_UDP_L4: u8 = 5;
/// CWR is set, and belongs to the first segment only.
pub const GSO_ECN: u8 = 0x80;

/// Offset of the checksum in a UDP header.
const UDP_CHECKSUM: u8 = UdpHeader::CHECKSUM_OFFSET as u8;
const TCP_DATA_OFFSET: usize = 12;
const TCP_FLAGS: usize = 13;
const TCP_CWR: u8 = 0x80;

#[cfg(test)]
mod tests;
