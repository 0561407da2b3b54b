//! The IPv6 header and its extension headers (RFC 8200). The stack sends no extension header but
//! the fragment header ([`Fragment::emit`]).
//!
//! Extension headers are walked as a host does, and within bounds (RFC 8504 5.3 allows them):
//! otherwise a sender could make every packet cost a walk over 65,535 bytes.

use core::net::Ipv6Addr;

use crate::cursor::{Reader, Writer};
use crate::{Fragment, ParseError, Protocol, TrafficClass};

/// Limit of extension headers in a packet. Real hosts send at most two or three.
pub const MAX_EXTENSIONS: usize = 8;

/// Limit of the bytes of extension headers in a packet.
pub const MAX_EXTENSION_BYTES: usize = 512;

/// An IPv6 header, with the content of its extension headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6Header {
    /// Source address: the sender's.
    pub src: Ipv6Addr,
    /// Destination address: the receiver's.
    pub dst: Ipv6Addr,
    /// Protocol of the payload: the last Next Header of the chain. In a fragment, the type of the
    /// fragmentable part, which may be an extension header.
    pub protocol: Protocol,
    /// Routers it may still cross.
    pub hop_limit: u8,
    /// Traffic class: DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: TrafficClass,
    /// The flow label (RFC 6437), 0 ..= 0xf_ffff.
    pub flow_label: u32,
    /// Bytes after the extension headers, 0 ..= 65,535. (The field on the wire counts those, too.)
    pub payload_len: u16,
    /// Length of header and extension headers in bytes, from 40. Emitting ignores it and writes 40.
    pub header_len: u16,
    /// Bytes from the start of the packet to the Next Header field that named `protocol`.
    pub protocol_pointer: u16,
    /// Position, if this packet is a fragment; atomic ones (RFC 6946) are whole packets.
    pub fragment: Option<Fragment>,
}

impl Ipv6Header {
    /// Length of the header without extension headers, in bytes.
    pub const LEN: usize = 40;

    /// Creates the header of a whole packet of `payload` bytes, without extension headers: hop
    /// limit 64, traffic class and flow label 0. A payload of more than 65,535 bytes fits no
    /// packet; the length is then 65,535.
    pub fn new(src: Ipv6Addr, dst: Ipv6Addr, protocol: Protocol, payload: usize) -> Self {
        Self {
            src,
            dst,
            protocol,
            hop_limit: 64,
            traffic_class: TrafficClass::default(),
            flow_label: 0,
            payload_len: u16::try_from(payload).unwrap_or(u16::MAX),
            header_len: Self::LEN as u16,
            protocol_pointer: NEXT_HEADER_AT,
            fragment: None,
        }
    }

    /// Parses the header. Returns the payload, too, trimmed to the payload length.
    #[inline]
    pub fn parse(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut fields = Reader(packet);
        let first = fields.u32()?;
        if first >> 28 != 6 {
            return Err(ParseError::BadVersion);
        }
        let length = fields.u16()?;
        let [next_header, hop_limit] = fields.array()?;
        let src = parse_address(&mut fields)?;
        let dst = parse_address(&mut fields)?;
        let body = fields.bytes(usize::from(length))?;
        let (chain, payload) = Chain::walk(Protocol(next_header), body)?;
        if let Some(fragment) = chain.fragment {
            judge_fragment(fragment, chain.offset, payload)?;
        }
        let header = Self {
            src,
            dst,
            protocol: chain.protocol,
            hop_limit,
            traffic_class: TrafficClass((first >> 20) as u8),
            flow_label: first & 0x000f_ffff,
            payload_len: payload.len() as u16,
            header_len: chain.offset,
            protocol_pointer: chain.protocol_pointer,
            fragment: chain.fragment,
        };
        Ok((header, payload))
    }

    /// Writes 40 bytes to the front of `buf`; extension headers and fragment are not written.
    ///
    /// # Panics
    /// If `buf` is shorter than [`Ipv6Header::LEN`].
    #[inline]
    pub fn emit(&self, buf: &mut [u8]) {
        let class = u32::from(self.traffic_class.0);
        let mut fields = Writer(buf);
        fields.u32((6 << 28) | (class << 20) | (self.flow_label & 0x000f_ffff));
        fields.u16(self.payload_len);
        fields.bytes(&[self.protocol.0, self.hop_limit]);
        fields.bytes(&self.src.octets());
        fields.bytes(&self.dst.octets());
    }
}

/// Parses an address. RFC 4291 2.5.5.2 reserves mapped addresses for a node's own representation of
/// IPv4; accepted from the wire, one would pass for an IPv4 peer.
#[inline]
fn parse_address(fields: &mut Reader<'_>) -> Result<Ipv6Addr, ParseError> {
    let address = Ipv6Addr::from(fields.array::<16>()?);
    match address.to_ipv4_mapped() {
        Some(_) => Err(ParseError::MappedAddress),
        None => Ok(address),
    }
}

/// Checks the length of a fragment whose payload begins `payload_at` bytes into the packet.
fn judge_fragment(fragment: Fragment, payload_at: u16, payload: &[u8]) -> Result<(), ParseError> {
    if fragment.holds(payload.len()) {
        return Ok(());
    }
    // RFC 8200 4.5: "If the length of a fragment, as derived from the fragment packet's Payload
    // Length field, is not a multiple of 8 octets and the M flag of that fragment is 1, then that
    // fragment must be discarded and an ICMP Parameter Problem, Code 0, message should be sent to
    // the source of the fragment, pointing to the Payload Length field of the fragment packet."
    // A fragment that ends past 65,535 is answered alike, pointing to its Fragment Offset field.
    let whole_units = payload.len().is_multiple_of(8);
    let pointer = if whole_units || !fragment.more { payload_at.saturating_sub(6) } else { 4 };
    Err(ParseError::ParameterProblem { code: 0, pointer, even_to_multicast: false })
}

/// A walk along the extension headers.
pub(crate) struct Chain {
    /// The Next Header at the current position.
    pub(crate) protocol: Protocol,
    /// Offset of that field in the packet, in bytes.
    protocol_pointer: u16,
    /// Offset of the header of type `protocol` in the packet, in bytes.
    offset: u16,
    /// The fragment header that ended the walk.
    pub(crate) fragment: Option<Fragment>,
}

impl Chain {
    /// Walks `body`, which follows the fixed header, to the payload.
    #[inline]
    pub(crate) fn walk(first: Protocol, body: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let mut chain = Self {
            protocol: first,
            protocol_pointer: NEXT_HEADER_AT,
            offset: Ipv6Header::LEN as u16,
            fragment: None,
        };
        if !is_extension(first) {
            return Ok((chain, body));
        }
        let mut rest = body;
        for _ in 0..MAX_EXTENSIONS {
            rest = chain.step(rest)?;
            if chain.fragment.is_some() || !is_extension(chain.protocol) {
                return Ok((chain, rest));
            }
        }
        Err(ParseError::TooManyExtensions)
    }

    /// Skips the extension header at the front of `rest`; returns what follows.
    fn step<'a>(&mut self, rest: &'a [u8]) -> Result<&'a [u8], ParseError> {
        let [next_header, length, ..] = *rest else { return Err(ParseError::Truncated) };
        let len = match self.protocol {
            Protocol::FRAGMENT => 8,
            // RFC 4302 2.2: the length "in 32-bit words (4-byte units), minus "2"".
            Protocol::AUTHENTICATION => usize::from(length).saturating_add(2).saturating_mul(4),
            _ => usize::from(length).saturating_add(1).saturating_mul(8),
        };
        let (header, payload) = rest.split_at_checked(len).ok_or(ParseError::Truncated)?;
        let end = usize::from(self.offset).saturating_add(len);
        if end > Ipv6Header::LEN.saturating_add(MAX_EXTENSION_BYTES) {
            return Err(ParseError::TooManyExtensions);
        }
        match self.protocol {
            Protocol::HOP_BY_HOP if usize::from(self.offset) != Ipv6Header::LEN => {
                // RFC 8200 4: "The same action should be taken if a node encounters a Next Header
                // value of zero in any header other than an IPv6 header."
                return Err(parameter_problem(1, self.protocol_pointer));
            }
            Protocol::HOP_BY_HOP | Protocol::DESTINATION_OPTIONS => self.judge_options(header)?,
            Protocol::ROUTING => self.judge_routing(header)?,
            Protocol::FRAGMENT => self.fragment = parse_fragment(header)?,
            _ => {}
        }
        self.protocol = Protocol(next_header);
        self.protocol_pointer = self.offset;
        self.offset = end as u16;
        Ok(payload)
    }

    /// Checks options: only padding is recognised, and the high bits of other types tell what to do
    /// (RFC 8200 4.2).
    fn judge_options(&self, header: &[u8]) -> Result<(), ParseError> {
        let mut options = Reader(header);
        options.bytes(2)?;
        while let [kind, ..] = *options.0 {
            let at = header.len().saturating_sub(options.0.len());
            let pointer = self.offset.saturating_add(at as u16);
            options.bytes(1)?;
            if kind == PAD1 {
                continue;
            }
            let len = options.u8()?;
            options.bytes(usize::from(len))?;
            match kind >> 6 {
                0b00 => {}
                0b01 => return Err(ParseError::DiscardOption),
                action => {
                    let even_to_multicast = action == 0b10;
                    return Err(ParseError::ParameterProblem {
                        code: 2,
                        pointer,
                        even_to_multicast,
                    });
                }
            }
        }
        Ok(())
    }

    /// Checks a routing header. No routing type is recognised.
    ///
    /// RFC 8200 4.4: "If Segments Left is zero, the node must ignore the Routing header [...]. If
    /// Segments Left is non-zero, the node must discard the packet and send an ICMP Parameter
    /// Problem, Code 0, message to the packet's Source Address, pointing to the unrecognized
    /// Routing Type." RFC 5095 3 demands the same for type 0.
    fn judge_routing(&self, header: &[u8]) -> Result<(), ParseError> {
        match *header {
            [_, _, _, 0, ..] => Ok(()),
            _ => Err(parameter_problem(0, self.offset.saturating_add(2))),
        }
    }
}

/// Parses a fragment header. A fragment that is the whole packet is processed on its own, never
/// queued (RFC 6946 4).
fn parse_fragment(header: &[u8]) -> Result<Option<Fragment>, ParseError> {
    let mut fields = Reader(header);
    let (_, offset_more, identification) = (fields.u16()?, fields.u16()?, fields.u32()?);
    let fragment =
        Fragment { identification, offset: offset_more & 0xfff8, more: offset_more & 1 != 0 };
    Ok((fragment.more || fragment.offset != 0).then_some(fragment))
}

const fn is_extension(protocol: Protocol) -> bool {
    matches!(
        protocol,
        Protocol::HOP_BY_HOP
            | Protocol::ROUTING
            | Protocol::FRAGMENT
            | Protocol::AUTHENTICATION
            | Protocol::DESTINATION_OPTIONS
    )
}

const fn parameter_problem(code: u8, pointer: u16) -> ParseError {
    ParseError::ParameterProblem { code, pointer, even_to_multicast: false }
}

const PAD1: u8 = 0;

/// Offset of the Next Header field in the fixed header, in bytes.
const NEXT_HEADER_AT: u16 = 6;

#[cfg(test)]
mod tests;
