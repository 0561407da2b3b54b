//! ICMPv6 (RFC 4443). Its Neighbour Discovery messages are parsed by [`ndp`](crate::ndp).

use core::net::Ipv6Addr;

use crate::cursor::{Reader, Writer};
use crate::icmp::word;
use crate::{ParseError, Protocol, Sum};

/// An ICMPv6 message. `quoted` is the part of the causing packet that an error repeats, for
/// [`QuotedSegment::parse`](crate::QuotedSegment::parse).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Icmpv6Message<'a> {
    /// Type 1: the packet could not be delivered.
    DestinationUnreachable {
        /// 0 no route, 1 prohibited, 2 beyond scope, 3 address, 4 port, 5 source policy, 6 reject.
        code: u8,
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// Type 2: the packet exceeds the next link's MTU (RFC 8201).
    PacketTooBig {
        /// That MTU in bytes, as stated: the caller checks values below 1280.
        mtu: u32,
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// Type 3: the hop limit, or the time for reassembly, expired.
    TimeExceeded {
        /// 0 hop limit, 1 fragment reassembly.
        code: u8,
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// Type 4: a field or an extension header cannot be processed.
    ParameterProblem {
        /// 0 erroneous field, 1 unrecognised next header, 2 unrecognised option.
        code: u8,
        /// Bytes from the start of the quoted packet to the error.
        pointer: u32,
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// Type 128: requests a reply.
    EchoRequest {
        /// Session of the sender.
        identifier: u16,
        /// Sequence number: one more with each request.
        sequence: u16,
        /// Bytes that the reply repeats.
        data: &'a [u8],
    },
    /// Type 129: answers a request with its identifier, sequence and data.
    EchoReply {
        /// Session of the sender.
        identifier: u16,
        /// Sequence number: one more with each request.
        sequence: u16,
        /// Bytes that the reply repeats.
        data: &'a [u8],
    },
    /// Types 133 ..= 137: Neighbour Discovery, for
    /// [`NdpMessage::parse`](crate::NdpMessage::parse).
    NeighborDiscovery {
        /// The whole message, type and checksum included: at least 8 bytes.
        message: &'a [u8],
    },
    /// A type that has no variant of its own; emitted without a body.
    Other {
        /// Type. RFC 4443 2.4: below 128 an error, otherwise informational.
        icmp_type: u8,
        /// The code, whose meaning the type decides.
        code: u8,
    },
}

impl<'a> Icmpv6Message<'a> {
    /// Length in bytes of every message's part before data or quotation.
    pub const HEADER_LEN: usize = 8;

    /// Parses the payload of a packet from `src` to `dst` and verifies its checksum.
    pub fn parse(src: Ipv6Addr, dst: Ipv6Addr, message: &'a [u8]) -> Result<Self, ParseError> {
        if !pseudo_header(src, dst, message.len()).add_bytes(message).is_valid() {
            return Err(ParseError::BadChecksum);
        }
        Self::parse_verified(message)
    }

    /// Parses the payload of a packet whose checksum a device has verified.
    pub fn parse_verified(message: &'a [u8]) -> Result<Self, ParseError> {
        let mut fields = Reader(message);
        let [icmp_type, code, _, _] = fields.array()?;
        let (high, low) = (fields.u16()?, fields.u16()?);
        let rest = fields.0;
        Ok(match icmp_type {
            1 => Self::DestinationUnreachable { code, quoted: rest },
            2 => Self::PacketTooBig { mtu: word(high, low), quoted: rest },
            3 => Self::TimeExceeded { code, quoted: rest },
            4 => Self::ParameterProblem { code, pointer: word(high, low), quoted: rest },
            128 => Self::EchoRequest { identifier: high, sequence: low, data: rest },
            129 => Self::EchoReply { identifier: high, sequence: low, data: rest },
            133..=137 => Self::NeighborDiscovery { message },
            _ => Self::Other { icmp_type, code },
        })
    }

    /// Returns the length of the message in bytes.
    pub const fn wire_len(&self) -> usize {
        Self::HEADER_LEN.saturating_add(self.layout().2.len())
    }

    /// Writes the message with its checksum to the front of `buf`; returns its bytes.
    ///
    /// # Panics
    /// If `buf` is shorter than [`Icmpv6Message::wire_len`].
    pub fn emit(&self, src: Ipv6Addr, dst: Ipv6Addr, buf: &mut [u8]) -> usize {
        let ([icmp_type, code], field, body) = self.layout();
        let checksum = pseudo_header(src, dst, self.wire_len())
            .add_bytes(&[icmp_type, code])
            .add_u32(field)
            .add_bytes(body);
        let mut fields = Writer(buf);
        fields.bytes(&[icmp_type, code]);
        fields.u16(checksum.finish());
        fields.u32(field);
        fields.bytes(body);
        self.wire_len()
    }

    /// Returns type and code, the four bytes after the checksum, and what follows.
    const fn layout(&self) -> ([u8; 2], u32, &'a [u8]) {
        match *self {
            Self::DestinationUnreachable { code, quoted } => ([1, code], 0, quoted),
            Self::PacketTooBig { mtu, quoted } => ([2, 0], mtu, quoted),
            Self::TimeExceeded { code, quoted } => ([3, code], 0, quoted),
            Self::ParameterProblem { code, pointer, quoted } => ([4, code], pointer, quoted),
            Self::EchoRequest { identifier, sequence, data } => {
                ([128, 0], word(identifier, sequence), data)
            }
            Self::EchoReply { identifier, sequence, data } => {
                ([129, 0], word(identifier, sequence), data)
            }
            Self::NeighborDiscovery { message } => match message.split_first_chunk() {
                Some((&[icmp_type, code, _, _, a, b, c, d], body)) => {
                    ([icmp_type, code], u32::from_be_bytes([a, b, c, d]), body)
                }
                None => ([0, 0], 0, &[]),
            },
            Self::Other { icmp_type, code } => ([icmp_type, code], 0, &[]),
        }
    }
}

/// Returns the sum of the pseudo-header, which the checksum covers: Next Header is 58 (RFC 4443
/// 2.3).
pub(crate) fn pseudo_header(src: Ipv6Addr, dst: Ipv6Addr, len: usize) -> Sum {
    Sum::pseudo_header(src.into(), dst.into(), Protocol::ICMPV6.0, len as u32)
}

#[cfg(test)]
mod tests;
