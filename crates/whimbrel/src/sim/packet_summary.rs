//! The part of a packet that a fingerprint covers.

use std::fmt;

use whimbrel_base::{Instant, SipHasher24};
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{Endpoint, IpHeader, Protocol};

/// Summary of a packet that a host sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PacketSummary {
    at: Instant,
    src: Endpoint,
    dst: Endpoint,
    protocol: u8,
    flags: TcpFlags,
    /// SEG.SEQ and SEG.ACK; zero unless it is a segment.
    seq: u32,
    ack: u32,
    /// Bytes behind the last header that is read here.
    len: u32,
}

impl PacketSummary {
    pub(super) fn new(at: Instant, packet: &[u8]) -> Option<Self> {
        let (ip, payload) = IpHeader::parse(packet).ok()?;
        let mut summary = Self {
            at,
            src: Endpoint::new(ip.src, 0),
            dst: Endpoint::new(ip.dst, 0),
            protocol: ip.protocol.0,
            flags: TcpFlags::default(),
            seq: 0,
            ack: 0,
            len: payload.len() as u32,
        };
        if ip.fragment.is_some() {
            return Some(summary);
        }
        if matches!(ip.protocol, Protocol::TCP | Protocol::UDP) {
            let port = |at| Some(u16::from_be_bytes(*payload.get(at..)?.first_chunk()?));
            summary.src.port = port(0).unwrap_or(0);
            summary.dst.port = port(2).unwrap_or(0);
        }
        if ip.protocol == Protocol::TCP
            && let Ok((tcp, header_len)) = TcpHeader::parse(payload)
        {
            summary.flags = tcp.flags;
            summary.seq = tcp.seq.raw();
            summary.ack = tcp.ack.raw();
            summary.len -= header_len as u32;
        }
        Some(summary)
    }

    /// Adds this summary to a fingerprint.
    pub(super) fn add_to(&self, hasher: &SipHasher24, fingerprint: u64) -> u64 {
        let mut bytes = Vec::with_capacity(96);
        bytes.extend(fingerprint.to_le_bytes());
        bytes.extend(self.at.as_nanos().to_le_bytes());
        for end in [&self.src, &self.dst] {
            bytes.extend(end.addr.as_bytes());
            bytes.extend(end.port.to_le_bytes());
        }
        bytes.push(self.protocol);
        bytes.extend(self.flags.bits().to_le_bytes());
        for number in [self.seq, self.ack, self.len] {
            bytes.extend(number.to_le_bytes());
        }
        hasher.hash(&bytes)
    }
}

/// As in `1.204000000 s 10.0.0.2:49152 > 10.0.0.1:80 PA seq 7 ack 9 len 100`.
impl fmt::Display for PacketSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, src, dst, protocol, flags, seq, ack, len } = self;
        let nanos = at.as_nanos();
        write!(f, "{}.{:09} s ", nanos / 1_000_000_000, nanos % 1_000_000_000)?;
        write!(f, "{src} > {dst} ")?;
        match Protocol(*protocol) {
            Protocol::TCP => write!(f, "{flags} seq {seq} ack {ack} len {len}"),
            _ => write!(f, "protocol {protocol} len {len}"),
        }
    }
}
