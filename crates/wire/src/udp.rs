//! The UDP header (RFC 768), with the checksum of both families (RFC 8200 8.1).

use crate::cursor::{Reader, Writer};
use crate::{Address, Family, ParseError, Protocol, Sum};

/// The ports of a datagram. Its length and checksum follow from its data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct UdpHeader {
    /// Source port; 0 if the sender expects no reply (RFC 768: "Source Port is an optional field").
    pub src_port: u16,
    /// Destination port: the receiver's.
    pub dst_port: u16,
}

/// A received datagram: its ports and data, and the bytes that remain to be verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpView<'a> {
    /// Ports.
    pub header: UdpHeader,
    /// Data, of the length in the length field.
    pub data: &'a [u8],
    /// Header and data, which the checksum covers.
    covered: &'a [u8],
}

impl UdpHeader {
    /// Length of the header in bytes.
    pub const LEN: usize = 8;

    /// Offset of the checksum in the header, in bytes.
    pub const CHECKSUM_OFFSET: usize = 6;

    /// Returns the most bytes that one datagram carries: the 16 bits of an IP length include IPv4's
    /// header, but not IPv6's.
    pub const fn most_data(family: Family) -> usize {
        match family {
            Family::V4 => 65_535 - 20 - Self::LEN,
            Family::V6 => 65_535 - Self::LEN,
        }
    }

    /// Writes the header of a datagram that carries `data_len` bytes to the front of `buf`, without
    /// its checksum ([`UdpHeader::set_checksum`]). Only the low bits of a length beyond 65,527 are
    /// written.
    ///
    /// # Panics
    ///
    /// If `buf` is shorter than [`UdpHeader::LEN`].
    #[inline]
    pub fn emit(self, data_len: usize, buf: &mut [u8]) {
        let mut fields = Writer(buf);
        fields.u16(self.src_port);
        fields.u16(self.dst_port);
        fields.u16(data_len.wrapping_add(Self::LEN) as u16);
        fields.u16(0);
    }

    /// Puts a checksum into the header at the front of `datagram`.
    ///
    /// # Panics
    /// If `datagram` is shorter than [`UdpHeader::LEN`].
    #[inline]
    pub fn set_checksum(datagram: &mut [u8], checksum: u16) {
        Writer(datagram.split_at_mut(Self::CHECKSUM_OFFSET).1).u16(checksum);
    }

    /// Returns the checksum field for data and pseudo-header with this sum.
    #[inline]
    pub const fn checksum_of(sum: Sum) -> u16 {
        match sum.finish() {
            // RFC 768: "If the computed checksum is zero, it is transmitted as all ones (the
            // equivalent in one's complement arithmetic)."
            // RFC 8200 8.1: "if that computation yields a result of zero, it must be changed to hex
            // FFFF for placement in the UDP header."
            0 => 0xffff,
            computed => computed,
        }
    }

    /// Writes a whole datagram from `src` to `dst` to the front of `buf`, its checksum included; returns
    /// its bytes.
    ///
    /// # Panics
    /// If `buf` is shorter than the header and `data`.
    pub fn emit_datagram(self, src: Address, dst: Address, data: &[u8], buf: &mut [u8]) -> usize {
        let len = data.len().saturating_add(Self::LEN);
        self.emit(data.len(), buf);
        Writer(buf.split_at_mut(Self::LEN).1).bytes(data);
        let (datagram, _) = buf.split_at_mut(len);
        let sum = Sum::pseudo_header(src, dst, Protocol::UDP.0, len as u32).add_bytes(datagram);
        Self::set_checksum(datagram, Self::checksum_of(sum));
        len
    }
}

impl<'a> UdpView<'a> {
    /// Parses an IP payload from `src` to `dst` and verifies its checksum.
    #[inline]
    pub fn parse(src: Address, dst: Address, payload: &'a [u8]) -> Result<Self, ParseError> {
        let view = Self::parse_verified(src.family(), payload)?;
        if view.checksum_field() == 0 {
            // RFC 768: "An all zero transmitted checksum value means that the transmitter generated
            // no checksum". `parse_verified` accepts it only for IPv4.
            return Ok(view);
        }
        let len = view.covered.len() as u32;
        let sum = Sum::pseudo_header(src, dst, Protocol::UDP.0, len).add_bytes(view.covered);
        // RFC 1122 4.1.3.4: "If a UDP datagram is received with a checksum that is non-zero and invalid,
        // UDP MUST silently discard the datagram."
        if sum.is_valid() { Ok(view) } else { Err(ParseError::BadChecksum) }
    }

    /// Parses an IP payload of this family whose checksum a device has verified, or that has none.
    #[inline]
    pub fn parse_verified(family: Family, payload: &'a [u8]) -> Result<Self, ParseError> {
        let mut fields = Reader(payload);
        let header = UdpHeader { src_port: fields.u16()?, dst_port: fields.u16()? };
        let (length, checksum) = (usize::from(fields.u16()?), fields.u16()?);
        // RFC 768: "(This means the minimum value of the length is eight.)" A length of 0 is that of a
        // jumbogram (RFC 2675), which no link here carries.
        if length < UdpHeader::LEN {
            return Err(ParseError::BadLength);
        }
        // The bytes behind the datagram in its packet are padding: neither data nor summed.
        let covered = payload.get(..length).ok_or(ParseError::Truncated)?;
        // RFC 8200 8.1: "IPv6 receivers must discard UDP packets containing a zero checksum and should
        // log the error."
        if checksum == 0 && family == Family::V6 {
            return Err(ParseError::BadChecksum);
        }
        let data = covered.get(UdpHeader::LEN..).unwrap_or_default();
        Ok(Self { header, data, covered })
    }

    fn checksum_field(&self) -> u16 {
        let field = self.covered.get(UdpHeader::CHECKSUM_OFFSET..).and_then(<[u8]>::first_chunk);
        field.map_or(0, |field| u16::from_be_bytes(*field))
    }
}

#[cfg(test)]
mod tests;
