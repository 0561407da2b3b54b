//! What is wrong with a capture, and where.

/// Why a capture cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("block {block}, at byte {offset}: {fault}")]
pub struct ReadError {
    /// Which block of the file is at fault, counted from 1; in pcap the header of the file is the
    /// first, and each packet one.
    pub block: usize,
    /// Where it begins, bytes from the file's beginning.
    pub offset: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file is something else.
    #[error("neither pcap nor pcapng begins like this: is it a capture?")]
    Magic,
    /// The file ends too early.
    #[error("the file ends {missing} bytes before the block does: it was cut short")]
    Cut {
        /// How much is missing, bytes.
        missing: usize,
    },
    /// A length that no block has.
    #[error("it says that it has {0} bytes; blocks have a multiple of 4, and at least 12")]
    Length(u32),
    /// A block that nobody writes.
    #[error("a block of {0} bytes; 16777216 are the most that are read")]
    Block(u32),
    /// A block says two different lengths of itself.
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
        /// What does not fit.
        what: &'static str,
        /// The length of the block's body, bytes.
        len: usize,
    },
    /// A section in no byte order.
    #[error("byte-order magic {0:#010x}, where 0x1a2b3c4d stands in either order")]
    ByteOrder(u32),
    /// A version that came later.
    #[error("version {0} of the format; 1 is known of pcapng, and 2 of pcap")]
    Version(u16),
    /// Packets of an interface that is not described.
    #[error("it names interface {interface}, and {described} are described before it")]
    Interface {
        /// The interface, counted from 0.
        interface: u32,
        /// How many there are.
        described: usize,
    },
    /// Frames of another kind.
    #[error("frames of link type {0}; known are Ethernet (1) and raw IP (101, 228 and 229)")]
    LinkType(u32),
    /// Frames of two kinds.
    #[error("a packet of another link type than those before it: split the file by interface")]
    LinkTypes,
    /// A unit of time that is none.
    #[error("time stamps of resolution {0:#04x}, finer than 10^-38 or 2^-127 s")]
    Resolution(u8),
    /// A packet that is longer than any.
    #[error("a packet of {0} bytes; 262144 are the most")]
    Packet(u32),
}
