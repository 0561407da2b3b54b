//! The packet that an ICMP error quotes.

use crate::cursor::Reader;
use crate::ipv6::Chain;
use crate::{Address, ParseError, Protocol, SeqNum};

/// Content of the packet that an ICMP error quotes.
///
/// RFC 792 promises the IP header and 8 bytes, so no more is required. Lengths and checksums of the
/// quoted packet are ignored, because routers truncate and rewrite it. Before acting on it, the
/// caller compares the sequence number with the data in flight (RFC 5927 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotedSegment {
    /// Source of the quoted packet: this host, unless the error is a stray.
    pub src: Address,
    /// Destination of the quoted packet.
    pub dst: Address,
    /// Protocol of the quoted packet.
    pub protocol: Protocol,
    /// Source port of TCP or UDP: the first two bytes of the payload, whatever its protocol.
    pub src_port: u16,
    /// Destination port: the next two bytes.
    pub dst_port: u16,
    /// Sequence number, if the protocol is TCP and the quotation is long enough.
    pub seq: Option<SeqNum>,
    /// The four bytes after the checksum, if the protocol is ICMP or ICMPv6 and the quotation is
    /// long enough.
    echo: Option<u32>,
}

impl QuotedSegment {
    /// Parses an IPv4 or IPv6 packet that may be truncated anywhere after the ports.
    pub fn parse(quoted: &[u8]) -> Result<Self, ParseError> {
        let first = quoted.first().ok_or(ParseError::Truncated)?;
        match first >> 4 {
            4 => Self::parse_v4(quoted),
            6 => Self::parse_v6(quoted),
            _ => Err(ParseError::BadVersion),
        }
    }

    fn parse_v4(quoted: &[u8]) -> Result<Self, ParseError> {
        let mut header = Reader(quoted);
        let [version_ihl, _, _, _, _, _] = header.array()?;
        let options = usize::from(version_ihl & 0x0f).wrapping_mul(4).checked_sub(20);
        if header.u16()? & 0x1fff != 0 {
            return Err(ParseError::BadFragment);
        }
        let [_, protocol, _, _] = header.array()?;
        let src = Address::from_v4_bytes(header.array()?);
        let dst = Address::from_v4_bytes(header.array()?);
        header.bytes(options.ok_or(ParseError::BadHeaderLength)?)?;
        Self::parse_payload(src, dst, Protocol(protocol), header)
    }

    fn parse_v6(quoted: &[u8]) -> Result<Self, ParseError> {
        let mut header = Reader(quoted);
        let [_, _, _, _, _, _, next_header, _] = header.array()?;
        let (src, dst) = (header.array()?, header.array()?);
        let (src, dst) = (Address::from_bytes(src), Address::from_bytes(dst));
        if src.is_v4() || dst.is_v4() {
            return Err(ParseError::MappedAddress);
        }
        let (chain, payload) = Chain::walk(Protocol(next_header), header.0)?;
        if chain.fragment.is_some_and(|fragment| fragment.offset != 0) {
            return Err(ParseError::BadFragment);
        }
        Self::parse_payload(src, dst, chain.protocol, Reader(payload))
    }

    fn parse_payload(
        src: Address,
        dst: Address,
        protocol: Protocol,
        mut payload: Reader<'_>,
    ) -> Result<Self, ParseError> {
        let (src_port, dst_port) = (payload.u16()?, payload.u16()?);
        let word = payload.u32().ok();
        let seq = word.filter(|_| protocol == Protocol::TCP).map(SeqNum::new);
        let is_icmp = matches!(protocol, Protocol::ICMP | Protocol::ICMPV6);
        let echo = word.filter(|_| is_icmp);
        Ok(Self { src, dst, protocol, src_port, dst_port, seq, echo })
    }

    /// Returns identifier and sequence number, as one, of an echo request.
    pub fn echo_request(&self) -> Option<u32> {
        self.echo.filter(|_| self.is_icmp_of(8, 128))
    }

    /// True if it is an echo reply.
    pub fn is_echo_reply(&self) -> bool {
        self.echo.is_some() && self.is_icmp_of(0, 129)
    }

    /// True if its message is of this type, of ICMP or of ICMPv6.
    const fn is_icmp_of(&self, v4: u8, v6: u8) -> bool {
        let [kind, _] = self.src_port.to_be_bytes();
        kind == if self.protocol.0 == Protocol::ICMP.0 { v4 } else { v6 }
    }
}

#[cfg(test)]
mod tests;
