//! Errors of parsing.

use core::fmt;

/// Reason to drop a packet. Only [`ParseError::ParameterProblem`] requires a reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ParseError {
    /// The bytes end before the header, or before the length that the header states.
    Truncated,
    /// The IP version is not the expected one.
    BadVersion,
    /// A header length below the format's minimum, or beyond the packet.
    BadHeaderLength,
    /// A stated length that contradicts the header or what surrounds it.
    BadLength,
    /// The checksum does not match.
    BadChecksum,
    /// A fragment that is not the last and not a multiple of 8 bytes, or that ends past 65,535; in
    /// a quoted packet, any fragment but the first.
    BadFragment,
    /// An IPv4-mapped address in an IPv6 header (RFC 4291 2.5.5.2).
    MappedAddress,
    /// An address that this message must not have: a multicast target, a router off the link.
    BadAddress,
    /// More IPv6 extension headers than [`MAX_EXTENSIONS`](crate::ipv6::MAX_EXTENSIONS), or longer
    /// than [`MAX_EXTENSION_BYTES`](crate::ipv6::MAX_EXTENSION_BYTES).
    TooManyExtensions,
    /// An IPv6 option of a type that requires a silent drop (RFC 8200 4.2, high bits `01`).
    DiscardOption,
    /// An IPv6 packet that requires an ICMPv6 Parameter Problem as reply (RFC 4443 3.4).
    ParameterProblem {
        /// 0 erroneous field, 1 unrecognised next header, 2 unrecognised option.
        code: u8,
        /// Bytes from the start of the IPv6 header to the offending field.
        pointer: u16,
        /// True if the reply is due even for a packet to a multicast address (RFC 4443 2.4 (e.3):
        /// option types with high bits `10`).
        even_to_multicast: bool,
    },
    /// A Neighbour Discovery message whose hop limit is not 255: it crossed a router.
    BadHopLimit,
    /// A message type, code, or operation that this parser does not know.
    UnknownType,
    /// A Neighbour Discovery option of length 0, or one that contradicts its message.
    BadOption,
}

impl ParseError {
    /// Returns a short description.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Truncated => "packet is shorter than its headers say",
            Self::BadVersion => "wrong IP version",
            Self::BadHeaderLength => "header length out of range",
            Self::BadLength => "length field contradicts the packet",
            Self::BadChecksum => "wrong checksum",
            Self::BadFragment => "fragment of impossible size or place",
            Self::MappedAddress => "IPv4-mapped address in an IPv6 header",
            Self::BadAddress => "address not allowed in this message",
            Self::TooManyExtensions => "too many IPv6 extension headers",
            Self::DiscardOption => "unrecognised IPv6 option that asks for a drop",
            Self::ParameterProblem { .. } => "IPv6 parameter problem",
            Self::BadHopLimit => "neighbour discovery from beyond the link",
            Self::UnknownType => "unknown message type",
            Self::BadOption => "bad neighbour discovery option",
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl core::error::Error for ParseError {}

const _: () = assert!(size_of::<ParseError>() <= 8);
