//! ICMP for IPv4 (RFC 792, RFC 1191).

use core::net::Ipv4Addr;

use crate::cursor::{Reader, Writer};
use crate::{ParseError, Sum};

/// An ICMP message. `quoted` is the part of the causing packet that an error repeats, for
/// [`QuotedSegment::parse`](crate::QuotedSegment::parse).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpMessage<'a> {
    /// Type 0: answers a request with its identifier, sequence and data.
    EchoReply {
        /// Session of the sender.
        identifier: u16,
        /// Sequence number: one more with each request.
        sequence: u16,
        /// Bytes that the reply repeats.
        data: &'a [u8],
    },
    /// Type 3, any code but 4.
    DestinationUnreachable {
        /// 0 net, 1 host, 2 protocol, 3 port, 5 source route failed, 6 ..= 15 RFC 1122 and 1812.
        code: u8,
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// Type 3, code 4: the packet was too big and must not be fragmented (RFC 1191 4).
    FragmentationNeeded {
        /// The next link's MTU in bytes; 0 from a router that does not know RFC 1191.
        next_hop_mtu: u16,
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// Type 4: deprecated, and ignored according to RFC 6633.
    SourceQuench {
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// Type 5: a better first hop.
    Redirect {
        /// 0 network, 1 host, 2 and 3 network and host for a type of service.
        code: u8,
        /// The router to use.
        gateway: Ipv4Addr,
        /// The packet that took the worse route.
        quoted: &'a [u8],
    },
    /// Type 8: requests a reply.
    EchoRequest {
        /// Session of the sender.
        identifier: u16,
        /// Sequence number: one more with each request.
        sequence: u16,
        /// Bytes that the reply repeats.
        data: &'a [u8],
    },
    /// Type 11: the hop limit, or the time for reassembly, expired.
    TimeExceeded {
        /// 0 time to live, 1 fragment reassembly.
        code: u8,
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// Type 12: a field of the packet's header is wrong.
    ParameterProblem {
        /// 0 the pointer indicates the error, 1 a missing option, 2 a bad length.
        code: u8,
        /// Bytes from the start of the quoted packet to the error, for code 0.
        pointer: u8,
        /// The packet at fault.
        quoted: &'a [u8],
    },
    /// A type that has no variant of its own; emitted without a body.
    Other {
        /// The type, which is none of those above.
        icmp_type: u8,
        /// The code, whose meaning the type decides.
        code: u8,
    },
}

impl<'a> IcmpMessage<'a> {
    /// Length in bytes of the smallest message, and of every message's part before data or
    /// quotation.
    pub const HEADER_LEN: usize = 8;

    /// Parses an IPv4 payload and verifies its checksum.
    pub fn parse(message: &'a [u8]) -> Result<Self, ParseError> {
        if !Sum::new().add_bytes(message).is_valid() {
            return Err(ParseError::BadChecksum);
        }
        Self::parse_verified(message)
    }

    /// Parses an IPv4 payload whose checksum a device has verified.
    pub fn parse_verified(message: &'a [u8]) -> Result<Self, ParseError> {
        let mut fields = Reader(message);
        let [icmp_type, code, _, _] = fields.array()?;
        let (high, low) = (fields.u16()?, fields.u16()?);
        let rest = fields.0;
        Ok(match (icmp_type, code) {
            (0, _) => Self::EchoReply { identifier: high, sequence: low, data: rest },
            (3, 4) => Self::FragmentationNeeded { next_hop_mtu: low, quoted: rest },
            (3, _) => Self::DestinationUnreachable { code, quoted: rest },
            (4, _) => Self::SourceQuench { quoted: rest },
            (5, _) => Self::Redirect { code, gateway: gateway(high, low), quoted: rest },
            (8, _) => Self::EchoRequest { identifier: high, sequence: low, data: rest },
            (11, _) => Self::TimeExceeded { code, quoted: rest },
            (12, _) => Self::ParameterProblem { code, pointer: (high >> 8) as u8, quoted: rest },
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
    /// If `buf` is shorter than [`IcmpMessage::wire_len`].
    pub fn emit(&self, buf: &mut [u8]) -> usize {
        let ([icmp_type, code], field, body) = self.layout();
        let checksum = Sum::new().add_bytes(&[icmp_type, code]).add_u32(field).add_bytes(body);
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
            Self::EchoReply { identifier, sequence, data } => {
                ([0, 0], word(identifier, sequence), data)
            }
            Self::DestinationUnreachable { code, quoted } => ([3, code], 0, quoted),
            Self::FragmentationNeeded { next_hop_mtu, quoted } => {
                ([3, 4], next_hop_mtu as u32, quoted)
            }
            Self::SourceQuench { quoted } => ([4, 0], 0, quoted),
            Self::Redirect { code, gateway, quoted } => ([5, code], gateway.to_bits(), quoted),
            Self::EchoRequest { identifier, sequence, data } => {
                ([8, 0], word(identifier, sequence), data)
            }
            Self::TimeExceeded { code, quoted } => ([11, code], 0, quoted),
            Self::ParameterProblem { code, pointer, quoted } => {
                ([12, code], (pointer as u32) << 24, quoted)
            }
            Self::Other { icmp_type, code } => ([icmp_type, code], 0, &[]),
        }
    }
}

/// Returns two 16-bit fields as the one of 32 bits that they fill.
pub(crate) const fn word(high: u16, low: u16) -> u32 {
    ((high as u32) << 16) | low as u32
}

const fn gateway(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(word(high, low))
}

#[cfg(test)]
mod tests;
