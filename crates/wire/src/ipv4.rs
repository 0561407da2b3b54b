//! The IPv4 header (RFC 791). Options are skipped on receive and never sent.

use core::net::Ipv4Addr;

use crate::cursor::{Reader, Writer};
use crate::{Fragment, ParseError, Protocol, Sum, TrafficClass};

/// The fields of an IPv4 header (RFC 791).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Source address: the sender's.
    pub src: Ipv4Addr,
    /// Destination address: the receiver's.
    pub dst: Ipv4Addr,
    /// Protocol of the payload.
    pub protocol: Protocol,
    /// Time to live: routers it may still cross.
    pub ttl: u8,
    /// Type of service: DSCP and ECN.
    pub tos: TrafficClass,
    /// Identifies the packet among fragments; without meaning in an atomic one (RFC 6864 4.1).
    pub identification: u16,
    /// True if routers must not fragment the packet.
    pub dont_fragment: bool,
    /// Position, if this packet is a fragment; its identification repeats the header's.
    pub fragment: Option<Fragment>,
    /// Bytes of header and payload: `header_len` ..= 65,535.
    pub total_len: u16,
    /// Length of header and options in bytes, 20 ..= 60. Emitting ignores it and writes 20.
    pub header_len: u8,
}

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

impl Ipv4Header {
    /// Length of a header without options, in bytes.
    pub const LEN: usize = 20;

    /// Creates the header of a whole packet of `payload` bytes: TTL 64, no options, not to be
    /// fragmented. A payload of more than 65,515 bytes fits no packet; the length is then 65,535.
    pub fn new(src: Ipv4Addr, dst: Ipv4Addr, protocol: Protocol, payload: usize) -> Self {
        Self {
            src,
            dst,
            protocol,
            ttl: 64,
            tos: TrafficClass::default(),
            identification: 0,
            dont_fragment: true,
            fragment: None,
            total_len: u16::try_from(Self::LEN.saturating_add(payload)).unwrap_or(u16::MAX),
            header_len: Self::LEN as u8,
        }
    }

    /// Parses the header and verifies its checksum. Returns the payload, too, trimmed to the total
    /// length.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut fields =
            Reader(packet.first_chunk::<{ Self::LEN }>().ok_or(ParseError::Truncated)?);
        let version_ihl = fields.u8()?;
        if version_ihl >> 4 != 4 {
            return Err(ParseError::BadVersion);
        }
        let header_len = (version_ihl & 0x0f).wrapping_mul(4);
        if usize::from(header_len) < Self::LEN {
            return Err(ParseError::BadHeaderLength);
        }
        let tos = TrafficClass(fields.u8()?);
        let total_len = fields.u16()?;
        if total_len < u16::from(header_len) {
            return Err(ParseError::BadLength);
        }
        let packet = packet.get(..usize::from(total_len)).ok_or(ParseError::Truncated)?;
        let (bytes, payload) =
            packet.split_at_checked(usize::from(header_len)).ok_or(ParseError::Truncated)?;
        // RFC 1122 3.2.1.2: "A host MUST verify the IP header checksum on every received datagram
        // and silently discard every datagram that has a bad checksum."
        if !sum_header(bytes).is_valid() {
            return Err(ParseError::BadChecksum);
        }
        let identification = fields.u16()?;
        let flags_offset = fields.u16()?;
        let fragment = parse_fragment(identification, flags_offset);
        if fragment.is_some_and(|fragment| !fragment.holds(payload.len())) {
            return Err(ParseError::BadFragment);
        }
        let [ttl, protocol, _, _] = fields.array()?;
        let header = Self {
            src: Ipv4Addr::from(fields.array::<4>()?),
            dst: Ipv4Addr::from(fields.array::<4>()?),
            protocol: Protocol(protocol),
            ttl,
            tos,
            identification,
            dont_fragment: flags_offset & DONT_FRAGMENT != 0,
            fragment,
            total_len,
            header_len,
        };
        Ok((header, payload))
    }

    /// Writes 20 bytes to the front of `buf`, with their checksum.
    ///
    /// # Panics
    /// If `buf` is shorter than [`Ipv4Header::LEN`].
    #[inline]
    pub fn emit(&self, buf: &mut [u8]) {
        let dont_fragment = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        let fragment = self.fragment.map_or(0, |fragment| {
            (fragment.offset >> 3) | if fragment.more { MORE_FRAGMENTS } else { 0 }
        });
        let mut bytes = [0; Self::LEN];
        let mut fields = Writer(&mut bytes);
        fields.bytes(&[0x45, self.tos.0]);
        fields.u16(self.total_len);
        fields.u16(self.identification);
        fields.u16(dont_fragment | fragment);
        fields.bytes(&[self.ttl, self.protocol.0, 0, 0]);
        fields.bytes(&self.src.octets());
        fields.bytes(&self.dst.octets());
        let checksum = Sum::new().add_bytes(&bytes).finish();
        Writer(bytes.split_at_mut(10).1).u16(checksum);
        Writer(buf).bytes(&bytes);
    }

    /// Clears Don't Fragment in a header that [`Ipv4Header::emit`] wrote, and sets its
    /// identification.
    pub fn allow_fragments(bytes: &mut [u8; Self::LEN], identification: u16) {
        let mut fields = Writer(bytes.split_at_mut(4).1);
        fields.u16(identification);
        fields.u16(0);
        Writer(bytes.split_at_mut(10).1).u16(0);
        let checksum = Sum::new().add_bytes(bytes).finish();
        Writer(bytes.split_at_mut(10).1).u16(checksum);
    }
}

/// Returns the sum of a header. Nearly every one has no options, and with the known length the sum
/// takes five additions.
#[inline]
fn sum_header(bytes: &[u8]) -> Sum {
    match bytes.first_chunk::<{ Ipv4Header::LEN }>() {
        Some(fixed) if bytes.len() == fixed.len() => Sum::new().add_bytes(fixed),
        _ => Sum::new().add_bytes(bytes),
    }
}

/// Returns the fragment that the fields describe, or `None` for a whole packet.
#[inline]
fn parse_fragment(identification: u16, flags_offset: u16) -> Option<Fragment> {
    let fragment = Fragment {
        identification: u32::from(identification),
        offset: (flags_offset & OFFSET_MASK) << 3,
        more: flags_offset & MORE_FRAGMENTS != 0,
    };
    (fragment.more || fragment.offset != 0).then_some(fragment)
}

#[cfg(test)]
mod tests;
