//! The common fields of both families' headers.

use crate::checksum::update;
use crate::{Address, Ecn, Fragment, Ipv4Header, Ipv6Header, ParseError, Protocol, TrafficClass};

/// A received header of either family, as the layers above read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpHeader {
    /// Source address: the sender's.
    pub src: Address,
    /// The receiver; of the same family.
    pub dst: Address,
    /// Protocol of the payload, after extension headers. In an IPv6 fragment, the type of the
    /// fragmentable part, which may be an extension header.
    pub protocol: Protocol,
    /// IPv4's time to live.
    pub hop_limit: u8,
    /// Traffic class: DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: TrafficClass,
    /// Bytes after the headers, 0 ..= 65,535.
    pub payload_len: u16,
    /// Length of the header in bytes with its options or extension headers: the offset of the
    /// payload.
    pub header_len: u16,
    /// Offset in bytes of the field that named `protocol`: for IPv6, the pointer of the Parameter
    /// Problem (code 1) sent for an unknown protocol.
    pub protocol_pointer: u16,
    /// Position, if this packet is a fragment.
    pub fragment: Option<Fragment>,
    /// True if no router may cut it (RFC 791 3.1: DF): always over IPv6.
    pub dont_fragment: bool,
}

impl IpHeader {
    /// Parses the header of an IPv4 or IPv6 packet. Returns its payload, too, trimmed to the length
    /// in the header, because a link may pad. Packets of up to 65,535 bytes pass, whatever the MTU:
    /// devices merge segments on receive.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let first = packet.first().ok_or(ParseError::Truncated)?;
        match first >> 4 {
            4 => Ipv4Header::parse(packet).map(|(header, payload)| (header.into(), payload)),
            6 => Ipv6Header::parse(packet).map(|(header, payload)| (header.into(), payload)),
            _ => Err(ParseError::BadVersion),
        }
    }
}

/// Marks a packet of an ECN-capable transport as having met congestion, as a router does (RFC 3168
/// 5: "CE"), and updates IPv4's checksum. Returns whether it is marked now; other packets are not
/// changed.
pub fn mark_congestion(packet: &mut [u8]) -> bool {
    replace_ecn(packet, Ecn::Ce)
}

/// Removes the ECN capability of a packet, as a faulty router does, and updates IPv4's checksum.
/// Returns whether it changed.
pub fn bleach_ecn(packet: &mut [u8]) -> bool {
    replace_ecn(packet, Ecn::NotEct)
}

/// Replaces the codepoint of a packet that has one.
fn replace_ecn(packet: &mut [u8], ecn: Ecn) -> bool {
    let Ok((header, _)) = IpHeader::parse(packet) else { return false };
    if header.traffic_class.ecn() == Ecn::NotEct {
        return false;
    }
    // Version, IPv4's header length and the traffic class: IPv6 has its class four bits further
    // left.
    let Some((word, rest)) = packet.split_first_chunk_mut::<2>() else { return false };
    let old = u16::from_be_bytes(*word);
    let is_v4 = old >> 12 == 4;
    let shift = if is_v4 { 0 } else { 4 };
    let new = old & !(3 << shift) | u16::from(TrafficClass::new(0, ecn).0) << shift;
    *word = new.to_be_bytes();
    if is_v4 && let Some(checksum) = rest.get_mut(8..).and_then(<[u8]>::first_chunk_mut::<2>) {
        *checksum = update(u16::from_be_bytes(*checksum), old, new).to_be_bytes();
    }
    true
}

impl From<Ipv4Header> for IpHeader {
    #[inline]
    fn from(header: Ipv4Header) -> Self {
        Self {
            src: header.src.into(),
            dst: header.dst.into(),
            protocol: header.protocol,
            hop_limit: header.ttl,
            traffic_class: header.tos,
            payload_len: header.total_len.saturating_sub(u16::from(header.header_len)),
            header_len: u16::from(header.header_len),
            protocol_pointer: 9,
            fragment: header.fragment,
            dont_fragment: header.dont_fragment,
        }
    }
}

impl From<Ipv6Header> for IpHeader {
    #[inline]
    fn from(header: Ipv6Header) -> Self {
        Self {
            src: header.src.into(),
            dst: header.dst.into(),
            protocol: header.protocol,
            hop_limit: header.hop_limit,
            traffic_class: header.traffic_class,
            payload_len: header.payload_len,
            header_len: header.header_len,
            protocol_pointer: header.protocol_pointer,
            fragment: header.fragment,
            dont_fragment: true,
        }
    }
}

#[cfg(test)]
mod tests;
