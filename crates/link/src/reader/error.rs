//! Error of a capture, with its position.

/// Error of reading a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("block {block}, at byte {offset}: {fault}")]
pub struct ReadError {
    /// Number of the faulty block, from 1; in pcap the header of the file is the first, and each
    /// packet is one.
    pub block: usize,
    /// Start of the block, bytes from the file's beginning.
    pub offset: usize,
    /// The error.
    pub fault: Fault,
}

/// Error of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file is no capture.
    #[error("neither pcap nor pcapng begins like this: is it a capture?")]
    Magic,
    /// The file ends too early.
    #[error("the file ends {missing} bytes before the block does: it was cut short")]
    Cut {
        /// Number of missing bytes.
        missing: usize,
    },
    /// An impossible length.
    #[error("it says that it has {0} bytes; blocks have a multiple of 4, and at least 12")]
    Length(u32),
    /// A block of an unknown kind.
    #[error("a block of {0} bytes; 16777216 are the most that are read")]
    Block(u32),
    /// The two lengths of a block differ.
    #[error("its length is {first} at its beginning and {last} at its end")]
    Lengths {
        /// The length at the block's beginning.
        first: u32,
        /// The length at the block's end.
        last: u32,
    },
    /// A block that is too short for what it must hold.
    #[error("its {what} exceed the {len} bytes of the block")]
    Short {
        /// The element that does not fit.
        what: &'static str,
        /// The length of the block's body, bytes.
        len: usize,
    },
    /// An unknown byte order.
    #[error("byte-order magic {0:#010x}, where 0x1a2b3c4d stands in either order")]
    ByteOrder(u32),
    /// A later version.
    #[error("version {0} of the format; 1 is known of pcapng, and 2 of pcap")]
    Version(u16),
    /// Packets of an interface without a description.
    #[error("it names interface {interface}, and {described} are described before it")]
    Interface {
        /// The interface, counted from 0.
        interface: u32,
        /// Number of interfaces.
        described: usize,
    },
    /// Frames of an unsupported kind.
    #[error(
        "frames of link type {0}; known are loopback (0, 108), Ethernet (1), raw IP (101, 228 and 229) and \
         Linux' cooked ones (113, 276)"
    )]
    LinkType(u32),
    /// Frames that no device has.
    #[error("frames of link type {0}; a device has Ethernet (1) or raw IP (101, 228 and 229)")]
    NoDevice(u32),
    /// Frames of two kinds.
    #[error("a packet of another link type than those before it: split the file by interface")]
    LinkTypes,
    /// An invalid unit of time.
    #[error("time stamps of resolution {0:#04x}, finer than 10^-38 or 2^-127 s")]
    Resolution(u8),
    /// A packet longer than any.
    #[error("a packet of {0} bytes; 262144 are the most")]
    Packet(u32),
}
