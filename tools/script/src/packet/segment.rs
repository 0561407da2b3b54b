//! A segment on the wire, with every field, in both directions.

use alloc::vec;
use alloc::vec::Vec;

use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{
    Endpoint, Flow, IpHeader, Ipv4Header, Ipv6Header, Protocol, SeqNum, Sum, TrafficClass,
};

use super::super::ast::TcpOption;
use super::options;

/// A segment with live numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sender.
    pub src: Endpoint,
    /// Receiver.
    pub dst: Endpoint,
    /// The byte with DSCP and ECN.
    pub traffic_class: TrafficClass,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Control bits: SYN, ACK, FIN and so on.
    pub flags: TcpFlags,
    /// SEG.SEQ: number of its SYN, or else of its first byte of text.
    pub seq: SeqNum,
    /// SEG.ACK as in the header, with or without the ACK bit.
    pub ack: SeqNum,
    /// Window field, SEG.WND, unscaled.
    pub win: u16,
    /// Urgent pointer, SEG.UP.
    pub urg: u16,
    /// The options, in order.
    pub options: Vec<TcpOption>,
    /// Text.
    pub text: Vec<u8>,
}

/// Reason for which a packet is no segment to judge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotASegment {
    /// It is of another protocol.
    Protocol(Protocol),
    /// Its IP or TCP header is invalid, or its IP checksum is wrong.
    Broken,
    /// Its TCP checksum is wrong.
    Checksum,
}

impl Segment {
    /// Reads a packet from its IP header on, and verifies all checksums.
    pub fn parse(packet: &[u8]) -> Result<Self, NotASegment> {
        let (ip, payload) = IpHeader::parse(packet).map_err(|_| NotASegment::Broken)?;
        if ip.protocol != Protocol::TCP {
            return Err(NotASegment::Protocol(ip.protocol));
        }
        let (tcp, header_len) = TcpHeader::parse(payload).map_err(|_| NotASegment::Broken)?;
        let pseudo_header =
            Sum::pseudo_header(ip.src, ip.dst, Protocol::TCP.0, payload.len() as u32);
        if !pseudo_header.add_bytes(payload).is_valid() {
            return Err(NotASegment::Checksum);
        }
        let (header, text) = payload.split_at(header_len.min(payload.len()));
        Ok(Self {
            src: Endpoint::new(ip.src, tcp.src_port),
            dst: Endpoint::new(ip.dst, tcp.dst_port),
            traffic_class: ip.traffic_class,
            hop_limit: ip.hop_limit,
            flags: tcp.flags,
            seq: tcp.seq,
            ack: tcp.ack,
            win: tcp.window.get(),
            urg: tcp.urgent,
            options: options::decode(header.get(TcpHeader::LEN..).unwrap_or_default()),
            text: text.to_vec(),
        })
    }

    /// The packet, from its IP header on, with correct checksums. Options beyond
    /// [`options::MAX_LEN`] bytes are cut off, because the data offset has no larger value.
    pub fn emit(&self) -> Vec<u8> {
        let mut tcp = self.emit_tcp();
        let len = tcp.len() as u32;
        let checksum =
            Sum::pseudo_header(self.src.addr, self.dst.addr, Protocol::TCP.0, len).add_bytes(&tcp);
        TcpHeader::set_checksum(&mut tcp, checksum.finish());
        let ip = IpFields {
            flow: Flow { local: self.src, remote: self.dst },
            protocol: Protocol::TCP,
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
        };
        ip.wrap(&tcp)
    }

    /// Header, options and text, with a checksum of 0.
    fn emit_tcp(&self) -> Vec<u8> {
        let mut list = options::encode(&self.options);
        list.truncate(options::MAX_LEN);
        let offset = ((TcpHeader::LEN + list.len()) / 4) as u16;
        let mut bytes = Vec::with_capacity(TcpHeader::MAX_LEN + self.text.len());
        bytes.extend(self.src.port.to_be_bytes());
        bytes.extend(self.dst.port.to_be_bytes());
        bytes.extend(self.seq.raw().to_be_bytes());
        bytes.extend(self.ack.raw().to_be_bytes());
        bytes.extend((offset << 12 | self.flags.bits()).to_be_bytes());
        bytes.extend(self.win.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.urg.to_be_bytes());
        bytes.extend(list);
        bytes.extend(&self.text);
        bytes
    }

    /// Number of bytes of text.
    pub fn len(&self) -> u32 {
        self.text.len() as u32
    }

    /// True if it has no text.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// True if it only acknowledges.
    pub fn is_pure_ack(&self) -> bool {
        self.is_empty() && self.flags.without(ECN_FLAGS) == TcpFlags::ACK
    }

    /// Connection of the segment, seen from its sender.
    pub const fn flow(&self) -> Flow {
        Flow { local: self.src, remote: self.dst }
    }

    /// Splits a segment without SYN as if it had been sent in two: the first `len` bytes, and the
    /// rest with the FIN.
    pub fn split(mut self, len: u32) -> (Self, Self) {
        let rest = Self {
            seq: self.seq + len,
            flags: self.flags.without(TcpFlags::CWR),
            text: self.text.split_off((len as usize).min(self.text.len())),
            ..self.clone()
        };
        self.flags = self.flags.without(TcpFlags::FIN | TcpFlags::PSH);
        (self, rest)
    }
}

/// Fields of the IP headers that a script's peer sends.
pub(super) struct IpFields {
    /// Sender (`local`) and receiver; ports are not used.
    pub(super) flow: Flow,
    pub(super) protocol: Protocol,
    pub(super) traffic_class: TrafficClass,
    pub(super) hop_limit: u8,
}

impl IpFields {
    /// The packet around `payload`.
    pub(super) fn wrap(&self, payload: &[u8]) -> Vec<u8> {
        self.wrap_part(payload, payload.len())
    }

    /// The packet for a payload of `whole` bytes with only `payload` present, as a router quotes
    /// it.
    pub(super) fn wrap_part(&self, payload: &[u8], whole: usize) -> Vec<u8> {
        let (src, dst) = (self.flow.local.addr, self.flow.remote.addr);
        let mut packet;
        match (src.to_ip(), dst.to_ip()) {
            (core::net::IpAddr::V6(src), core::net::IpAddr::V6(dst)) => {
                packet = vec![0; Ipv6Header::LEN];
                self.v6(src, dst, whole).emit(&mut packet);
            }
            _ => {
                packet = vec![0; Ipv4Header::LEN];
                self.v4(src.v4_bytes(), dst.v4_bytes(), whole).emit(&mut packet);
            }
        }
        packet.extend(payload);
        packet
    }

    fn v4(&self, src: [u8; 4], dst: [u8; 4], payload_len: usize) -> Ipv4Header {
        Ipv4Header {
            ttl: self.hop_limit,
            tos: self.traffic_class,
            ..Ipv4Header::new(src.into(), dst.into(), self.protocol, payload_len)
        }
    }

    fn v6(
        &self,
        src: core::net::Ipv6Addr,
        dst: core::net::Ipv6Addr,
        payload_len: usize,
    ) -> Ipv6Header {
        Ipv6Header {
            hop_limit: self.hop_limit,
            traffic_class: self.traffic_class,
            ..Ipv6Header::new(src, dst, self.protocol, payload_len)
        }
    }
}

/// ECN bits, which a pure acknowledgment may have.
const ECN_FLAGS: TcpFlags =
    TcpFlags::from_bits(TcpFlags::ECE.bits() | TcpFlags::CWR.bits() | TcpFlags::AE.bits());

#[cfg(test)]
mod tests;
