//! A packet as written.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use whimbrel_wire::Endpoint;
use whimbrel_wire::tcp::TcpFlags;

/// A packet that the script injects or expects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Whether it comes in (`<`) or goes out (`>`).
    pub direction: Direction,
    /// In parentheses behind the arrow.
    pub marks: IpMarks,
    /// `1.1.1.1:80 > 2.2.2.2:1234`, where a script has several connections.
    pub ends: Option<PacketEnds>,
    /// What is in it.
    pub body: PacketBody,
}

/// Which way a packet goes, seen from the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// `<`: into the stack under test.
    In,
    /// `>`: out of it.
    Out,
}

/// What is said of the IP header.
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
    /// `ect01`: either of the two.
    Ect0OrEct1,
    /// A router met congestion, CE (RFC 3168 5): `[ce]`.
    Ce,
}

/// The two ends, in the order in which they were written. An unspecified address is the script's
/// own: `8080 > 40000` names ports alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketEnds {
    /// The end that sends it.
    pub from: Endpoint,
    /// The end that receives it.
    pub to: Endpoint,
}

/// What a packet carries: a segment of TCP, or an ICMP error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketBody {
    /// A segment of TCP.
    Tcp(TcpPacket),
    /// An ICMP error about one.
    Icmp(IcmpPacket),
}

/// A segment of TCP as a script writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpPacket {
    /// `S F R P . E W U`, and `A` for the AE bit; a digit is the ACE field (AE, CWR, ECE). `-` is
    /// none of them.
    pub flags: TcpFlags,
    /// The number of its first byte of text.
    pub seq: Seq,
    /// How many bytes of text it carries.
    pub len: u32,
    /// Its acknowledgment, `ack n`; none without the control bit.
    pub ack: Option<Ack>,
    /// `win n`: as in the header, not scaled.
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
    /// Whatever the segment has: `...`.
    Any,
}

/// An acknowledgment number as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ack {
    /// Relative to the other side's ISN.
    Relative(u32),
    /// Marked with `!`: the number in the header.
    Absolute(u32),
    /// Whatever the segment has: `...`.
    Any,
}

/// The options of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionList {
    /// `<...>`: not looked at (outbound only).
    Any,
    /// These, in order; nothing written is an empty list.
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
    /// That SACK is understood: `sackOK`.
    SackPermitted,
    /// `sack s:e …`: the edges as written, relative to the ISN of whoever's text they name.
    Sack(Vec<(u32, u32)>),
    /// `TS val v ecr e`.
    Timestamps {
        /// The sender's timestamp, TSval.
        val: u32,
        /// The peer's timestamp that it echoes, TSecr.
        ecr: u32,
    },
    /// `TS val ... ecr 0`, and the like: none is any (outbound only).
    SomeTimestamps {
        /// The sender's timestamp, TSval; `None`: any.
        val: Option<u32>,
        /// The echoed timestamp, TSecr; `None`: any.
        ecr: Option<u32>,
    },
    /// `FO hex`: an empty cookie asks for one.
    FastOpen(Vec<u8>),
    /// A Fast Open cookie in the experimental option, in hexadecimal: `FOEXP hex`.
    FastOpenExperimental(Vec<u8>),
    /// `md5` with or without a digest: the option is there.
    Md5,
    /// `raw hex`: these bytes, whatever length they claim to have (inbound only).
    Raw(Vec<u8>),
    /// Any other that the parser reads, by its kind and contents (`ECN e0b n ceb n e1b n`,
    /// `kind n hex`).
    Other {
        /// The option's kind, its first byte.
        kind: u8,
        /// What follows the length.
        data: Vec<u8>,
    },
}

/// An ICMP message, most often an error about a segment of the script's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IcmpPacket {
    /// `unreachable`, `packet_too_big`, `time_exceeded`, … or `type_3`.
    pub kind: String,
    /// `frag_needed`, `host_unreachable`, …, `code_4`, or `4`.
    pub code: Option<String>,
    /// The MTU that the error tells, bytes: `mtu n`.
    pub mtu: Option<u32>,
    /// `id n`: the identifier of an echo request or reply.
    pub id: Option<u16>,
    /// `[s:e(len)]`, in front of `icmp` or last: the segment that is quoted; without it the first
    /// that the stack sent.
    pub quoted: Option<Box<Quoted>>,
}

/// The segment in an ICMP error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quoted {
    /// Its flags, if written.
    pub flags: Option<TcpFlags>,
    /// Where it begins, by the rules of who sent it: in an inbound error the host.
    pub seq: Seq,
    /// How many bytes of text the quoted segment carried.
    pub len: u32,
    /// The packet ends, if written.
    pub ends: Option<PacketEnds>,
    /// `first n`: the bytes behind the IP header that are quoted; without it the TCP header.
    pub first: Option<u16>,
}
