//! A packet as written.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use whimbrel_wire::Endpoint;
use whimbrel_wire::tcp::TcpFlags;

/// A packet that the script injects or expects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Direction: in (`<`) or out (`>`).
    pub direction: Direction,
    /// In parentheses after the arrow.
    pub marks: IpMarks,
    /// `1.1.1.1:80 > 2.2.2.2:1234`, in a script with several connections.
    pub ends: Option<PacketEnds>,
    /// Contents of the packet.
    pub body: PacketBody,
}

/// Direction of a packet, seen from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// `<`: into the stack under test.
    In,
    /// `>`: out of it.
    Out,
}

/// Fields of the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IpMarks {
    /// The two ECN bits.
    pub ecn: Option<Ecn>,
    /// `tos n` or `class n`: the whole byte.
    pub tos: Option<u8>,
    /// `ttl n` or `hlim n`.
    pub ttl: Option<u8>,
}

/// The ECN field of the IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ecn {
    /// No ECN-capable transport: `[noecn]`.
    NotEct,
    /// ECN-capable transport, ECT(0): `[ect0]`.
    Ect0,
    /// ECN-capable transport, ECT(1): `[ect1]`.
    Ect1,
    /// `ect01`: ECT(0) or ECT(1).
    Ect0OrEct1,
    /// Congestion experienced, CE (RFC 3168 5): `[ce]`.
    Ce,
}

/// The two ends, in the order written. An unspecified address is the script's own: `8080 > 40000`
/// gives only ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketEnds {
    /// Sender.
    pub from: Endpoint,
    /// Receiver.
    pub to: Endpoint,
}

/// Contents of a packet: a TCP segment, or an ICMP error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketBody {
    /// A TCP segment.
    Tcp(TcpPacket),
    /// An ICMP error about a segment.
    Icmp(IcmpPacket),
}

/// A TCP segment as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpPacket {
    /// `S F R P . E W U`, and `A` for the AE bit; a digit is the ACE field (AE, CWR, ECE). `-`
    /// means no flag.
    pub flags: TcpFlags,
    /// Number of its first byte of text.
    pub seq: Seq,
    /// Number of bytes of text.
    pub len: u32,
    /// Acknowledgment, `ack n`; `None` without the control bit.
    pub ack: Option<Ack>,
    /// `win n`: as in the header, unscaled.
    pub win: Option<u16>,
    /// Its urgent pointer, `urg n`.
    pub urg: Option<u16>,
    /// Its TCP options, as written within `<…>`.
    pub options: OptionList,
}

/// A sequence number as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seq {
    /// Relative to its sender's ISN; on a SYN, the ISN itself.
    Relative(u32),
    /// Marked with `!`: the number in the header.
    Absolute(u32),
    /// Any number: `...`.
    Any,
}

/// An acknowledgment number as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ack {
    /// Relative to the other side's ISN.
    Relative(u32),
    /// Marked with `!`: the number in the header.
    Absolute(u32),
    /// Any number: `...`.
    Any,
}

/// The options of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionList {
    /// `<...>`: not compared (outbound only).
    Any,
    /// These, in order; without `<>` the list is empty.
    These(Vec<TcpOption>),
}

/// A TCP option as a script writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// The end of the options: `eol`.
    Eol,
    /// A filler of one byte: `nop`.
    Nop,
    /// The maximum segment size: `mss n`.
    Mss(u16),
    /// `wscale n`: any byte.
    WindowScale(u8),
    /// SACK permitted: `sackOK`.
    SackPermitted,
    /// `sack s:e …`: the edges as written, relative to the ISN of the side that sent the text.
    Sack(Vec<(u32, u32)>),
    /// `TS val v ecr e`.
    Timestamps {
        /// The sender's timestamp, TSval.
        val: u32,
        /// The echoed timestamp of the peer, TSecr.
        ecr: u32,
    },
    /// `TS val ... ecr 0` and so on; `None` matches any (outbound only).
    SomeTimestamps {
        /// The sender's timestamp, TSval; `None`: any.
        val: Option<u32>,
        /// The echoed timestamp, TSecr; `None`: any.
        ecr: Option<u32>,
    },
    /// `FO hex`: an empty cookie requests one.
    FastOpen(Vec<u8>),
    /// A Fast Open cookie in the experimental option, in hexadecimal: `FOEXP hex`.
    FastOpenExperimental(Vec<u8>),
    /// `md5` with or without a digest: the option is present.
    Md5,
    /// `raw hex`: these bytes, with any length byte (inbound only).
    Raw(Vec<u8>),
    /// Any other option that the parser reads, by its kind and contents (`ECN e0b n ceb n e1b n`,
    /// `kind n hex`).
    Other {
        /// The option's kind, its first byte.
        kind: u8,
        /// Bytes after the length.
        data: Vec<u8>,
    },
}

/// An ICMP message, usually an error about a segment of the script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IcmpPacket {
    /// `unreachable`, `packet_too_big`, `time_exceeded`, … or `type_3`.
    pub kind: String,
    /// `frag_needed`, `host_unreachable`, …, `code_4`, or `4`.
    pub code: Option<String>,
    /// MTU in the error, bytes: `mtu n`.
    pub mtu: Option<u32>,
    /// `id n`: the identifier of an echo request or reply.
    pub id: Option<u16>,
    /// `[s:e(len)]`, before `icmp` or last: the quoted segment; without it the stack's first.
    pub quoted: Option<Box<Quoted>>,
}

/// Segment in an ICMP error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// Its flags, if written.
    pub flags: Option<TcpFlags>,
    /// Start, numbered by its sender: the host in an inbound error.
    pub seq: Seq,
    /// Number of bytes of text in the quoted segment.
    pub len: u32,
    /// The packet ends, if written.
    pub ends: Option<PacketEnds>,
    /// `first n`: the quoted bytes after the IP header; without it the TCP header.
    pub first: Option<u16>,
}
