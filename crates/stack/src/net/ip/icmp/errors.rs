//! ICMP errors that leave: when one is due, and what it says (RFC 1122 3.2.2, RFC 4443 2.4).
//!
//! An IPv4 Parameter Problem is never due: options are skipped unread, and a header that cannot
//! be read has no source to be trusted.

use alloc::vec;
use core::net::IpAddr;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::TxSegment;
use whimbrel_udp::Received;
use whimbrel_wire::{
    Address, Family, IpHeader, Ipv4Header, Ipv6Header, Protocol, QuotedSegment, SeqNum, Sum,
    TrafficClass, UdpHeader,
};

use super::IcmpOut;
use crate::ip::{FlowKey, IpLayer, RefusalReply, Unreachable};

impl RefusalReply {
    /// Type, code, and the word behind the checksum.
    fn layout(self, family: Family) -> (u8, u8, u32) {
        match (self, family) {
            (Self::ProtocolUnreachable { .. }, Family::V4) => (3, 2, 0),
            // RFC 8200 4: "with an ICMP Code value of 1 ("unrecognized Next Header type
            // encountered") and the ICMP Pointer field containing the offset of the unrecognized
            // value within the original packet"
            (Self::ProtocolUnreachable { pointer }, Family::V6) => (4, 1, u32::from(pointer)),
            (Self::Unreachable(what), family) => {
                (what.icmp_type(family), what.code(family), what.word())
            }
            (Self::PortUnreachable, Family::V4) => (3, 3, 0),
            (Self::PortUnreachable, Family::V6) => (1, 4, 0),
            (Self::ParameterProblem { code, pointer }, Family::V4) => {
                (12, code, u32::from(pointer) << 24)
            }
            (Self::ParameterProblem { code, pointer }, Family::V6) => (4, code, u32::from(pointer)),
            (Self::ReassemblyTimeOut, Family::V4) => (11, 1, 0),
            (Self::ReassemblyTimeOut, Family::V6) => (3, 1, 0),
        }
    }
}

/// An error to be sent.
#[derive(Debug)]
pub(crate) struct ErrorOut {
    local_index: u16,
    remote: Address,
    answer: RefusalReply,
    quoted: Bytes,
}

impl ErrorOut {
    /// Bytes of the packet that it quotes.
    pub(crate) fn bytes(&self) -> usize {
        self.quoted.len()
    }

    /// The index of the address that it is from.
    pub(crate) fn local_index(&self) -> u16 {
        self.local_index
    }
}

/// Source and destination of a refused packet.
struct PacketEnds {
    src: Address,
    dst: Address,
}

impl IpLayer {
    /// The error that answers `packet`, if one may be sent.
    pub(crate) fn answer(
        &mut self,
        now: Instant,
        packet: &[u8],
        answer: RefusalReply,
    ) -> Option<ErrorOut> {
        let ends = PacketEnds::of(packet)?;
        let local_index = self.speaker(&ends.dst, answer)?;
        if !self.may_be_answered(&ends, packet) {
            return None;
        }
        let quoted = self.admit(now).then(|| self.quote(packet, ends.src.family()))?;
        Some(ErrorOut { local_index, remote: ends.src, answer, quoted })
    }

    /// True if an error may leave now; another is counted.
    fn admit(&mut self, now: Instant) -> bool {
        let is_admitted = self.error_budget.admit(now);
        self.counters.icmp_errors_limited += u64::from(!is_admitted);
        is_admitted
    }

    /// The beginning of a packet that an error is about.
    fn quote(&self, packet: &[u8], family: Family) -> Bytes {
        // RFC 1812 4.3.2.3: "as much of the original datagram as possible without the length of
        // the ICMP datagram exceeding 576 bytes". RFC 4443 2.4 (c): "as much of the IPv6
        // offending (invoking) packet (...) without making the error message packet exceed the
        // minimum IPv6 MTU".
        let most = self.most_quoted(family);
        Bytes::copy_from_slice(packet.get(..most).unwrap_or(packet))
    }

    /// The error that says of a packet for another host, as a router's on the way would, that it cannot be
    /// delivered there.
    pub(crate) fn refuse_unclaimed(
        &mut self,
        now: Instant,
        packet: &[u8],
        what: Unreachable,
        reporter: Option<Address>,
    ) -> Option<ErrorOut> {
        let (ip, _) = IpHeader::parse(packet).ok()?;
        let ends = PacketEnds { src: ip.src, dst: ip.dst };
        let is_first = ip.fragment.is_none_or(|fragment| fragment.offset == 0);
        let for_one = !ip.dst.is_multicast_or_broadcast() && !self.routes.is_broadcast(&ip.dst);
        if !is_first || !for_one || !self.may_be_answered(&ends, packet) {
            return None;
        }
        let local_index = self.reporter(reporter, &ip.src)?;
        let answer = RefusalReply::Unreachable(what);
        let quoted = self.admit(now).then(|| self.quote(packet, ip.src.family()))?;
        Some(ErrorOut { local_index, remote: ip.src, answer, quoted })
    }

    /// The error that says of a SYN, of which no more is known than its flow and its number, that where it
    /// was for cannot be reached; from an address of this host's, as a router's on the way, if it has one
    /// of the family.
    pub(crate) fn unreachable(
        &mut self,
        now: Instant,
        flow: &FlowKey,
        syn: SeqNum,
        what: Unreachable,
    ) -> Option<ErrorOut> {
        if !self.admit(now) {
            return None;
        }
        let dst = *self.addresses.get(flow.local_index)?;
        let quoted = quote_syn(flow, dst, syn);
        let local_index = self.addresses.source_for(&flow.remote).unwrap_or(flow.local_index);
        let answer = RefusalReply::Unreachable(what);
        Some(ErrorOut { local_index, remote: flow.remote, answer, quoted })
    }

    /// The error that says of a datagram that was received that it cannot be delivered: from where it was
    /// for, as its receiver says of a port, or from this host's own address, as a router's on the way.
    pub(crate) fn refuse_datagram(
        &mut self,
        now: Instant,
        received: &Received,
        what: Unreachable,
        reporter: Option<Address>,
    ) -> Option<ErrorOut> {
        let Received { from, to, .. } = received;
        let answer = RefusalReply::Unreachable(what);
        let own = match (reporter, what) {
            (None, Unreachable::Port) => None,
            _ => self.reporter(reporter, &from.addr),
        };
        let local_index = own.or_else(|| self.speaker(&to.addr, RefusalReply::PortUnreachable))?;
        if !self.admit(now) {
            return None;
        }
        let quoted = quote_datagram(received, self.most_quoted(from.addr.family()));
        Some(ErrorOut { local_index, remote: from.addr, answer, quoted })
    }

    /// The index of the address that an error is sent from: that of a router, if this host speaks for one
    /// of the family, or its own.
    fn reporter(&mut self, reporter: Option<Address>, to: &Address) -> Option<u16> {
        let other = reporter.filter(|it| it.family() == to.family() && self.accepts_foreign(it));
        let other = other.and_then(|router| self.addresses.intern(router));
        other.or_else(|| self.addresses.source_for(to))
    }

    /// The index of the address from which a packet for `dst` is answered: of another's it is only said
    /// that no socket has its port.
    fn speaker(&mut self, dst: &Address, answer: RefusalReply) -> Option<u16> {
        match self.addresses.local_index_of(dst) {
            Some(own) => Some(own),
            None if answer == RefusalReply::PortUnreachable => self.addresses.intern(*dst),
            None => None,
        }
    }

    fn most_quoted(&self, family: Family) -> usize {
        match family {
            Family::V4 => {
                let fits = usize::from(self.capabilities.mtu).saturating_sub(Ipv4Header::LEN + 8);
                MOST_QUOTED_V4.min(fits)
            }
            Family::V6 => MOST_QUOTED_V6,
        }
    }

    /// RFC 1122 3.2.2, RFC 4443 2.4 (e): no error in answer to an error, to a packet for many, to
    /// a fragment other than the first, or to a source that is not one host.
    fn may_be_answered(&self, ends: &PacketEnds, packet: &[u8]) -> bool {
        let one_host = !self.is_martian(&ends.src);
        // A packet that cannot be read to the end (a bad option in front of it) is taken for no error:
        // errors of hosts that mean well have no extension headers.
        one_host && !QuotedSegment::parse(packet).is_ok_and(|it| is_error(&it))
    }

    /// Writes an ICMP error.
    pub(crate) fn write_error(&mut self, error: ErrorOut, tx: &mut TxSegment) -> bool {
        let ErrorOut { local_index, remote, answer, quoted: data } = error;
        let (icmp_type, code, word) = answer.layout(remote.family());
        let class = TrafficClass::default();
        self.counters.icmp_errors_sent += 1;
        self.write_icmp(IcmpOut { local_index, remote, class, icmp_type, code, word, data }, tx)
    }
}

/// RFC 792: "The internet header plus the first 64 bits of the original datagram's data. This data is used
/// by the host to match the message to the appropriate process." More than that was not kept.
fn quote_syn(flow: &FlowKey, dst: Address, syn: SeqNum) -> Bytes {
    let mut packet = vec![0; Ipv6Header::LEN + QUOTED_SEGMENT];
    let (src, protocol) = (flow.remote.to_ip(), Protocol::TCP);
    let header_len = match (src, dst.to_ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            Ipv4Header::new(src, dst, protocol, LEAST_SYN).emit(&mut packet);
            Ipv4Header::LEN
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            Ipv6Header::new(src, dst, protocol, LEAST_SYN).emit(&mut packet);
            Ipv6Header::LEN
        }
        _ => return Bytes::new(),
    };
    packet.truncate(header_len);
    packet.extend(flow.remote_port.to_be_bytes());
    packet.extend(flow.local_port.to_be_bytes());
    packet.extend(syn.raw().to_be_bytes());
    packet.into()
}

/// The beginning of a datagram's packet, as far as is known of it: neither options nor its identification.
fn quote_datagram(received: &Received, most: usize) -> Bytes {
    let Received { from, to, ref data, class, hop_limit, dont_fragment, .. } = *received;
    let len = UdpHeader::LEN + data.len();
    let mut packet = vec![0; Ipv6Header::LEN + UdpHeader::LEN];
    let header_len = match (from.addr.to_ip(), to.addr.to_ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let header = Ipv4Header::new(src, dst, Protocol::UDP, len);
            Ipv4Header { ttl: hop_limit, tos: class, dont_fragment, ..header }.emit(&mut packet);
            Ipv4Header::LEN
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let header = Ipv6Header::new(src, dst, Protocol::UDP, len);
            Ipv6Header { hop_limit, traffic_class: class, ..header }.emit(&mut packet);
            Ipv6Header::LEN
        }
        _ => return Bytes::new(),
    };
    packet.truncate(header_len + UdpHeader::LEN);
    let (_, header) = packet.split_at_mut(header_len);
    UdpHeader { src_port: from.port, dst_port: to.port }.emit(data.len(), header);
    let sum = Sum::pseudo_header(from.addr, to.addr, Protocol::UDP.0, len as u32);
    let sum = sum.add_bytes(header).add_bytes(data);
    UdpHeader::set_checksum(header, UdpHeader::checksum_of(sum));
    let room = most.saturating_sub(packet.len());
    packet.extend_from_slice(data.get(..room).unwrap_or(data));
    packet.into()
}

impl PacketEnds {
    /// The addresses of a packet whose headers may be wrong in any other way.
    fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => {
                let src = Address::from_v4_bytes(*packet.get(12..)?.first_chunk()?);
                let dst = Address::from_v4_bytes(*packet.get(16..)?.first_chunk()?);
                Some(Self { src, dst })
            }
            6 => {
                let src = Address::from_bytes(*packet.get(8..)?.first_chunk()?);
                let dst = Address::from_bytes(*packet.get(24..)?.first_chunk()?);
                (!src.is_v4() && !dst.is_v4()).then_some(Self { src, dst })
            }
            _ => None,
        }
    }
}

/// True if the packet is itself an ICMP error. Its type stands where a segment's ports do.
fn is_error(packet: &QuotedSegment) -> bool {
    let [icmp_type, _] = packet.src_port.to_be_bytes();
    match packet.protocol {
        // RFC 1122 3.2.2: destination unreachable, source quench, redirect, time exceeded,
        // parameter problem.
        Protocol::ICMP => matches!(icmp_type, 3 | 4 | 5 | 11 | 12),
        // RFC 4443 2.1: errors have the high bit off. 2.4 (e.2): a redirect counts as one here.
        Protocol::ICMPV6 => icmp_type < 128 || icmp_type == 137,
        _ => false,
    }
}

/// Bytes quoted of a segment: its ports and its sequence number.
const QUOTED_SEGMENT: usize = 8;
/// A SYN has this length at least, bytes: what is quoted says so, as the SYN's own is not known.
const LEAST_SYN: usize = 20;
/// Bytes that fit behind the headers of an IPv4 packet of 576 bytes.
const MOST_QUOTED_V4: usize = 576 - Ipv4Header::LEN - 8;
/// Bytes that fit behind the headers of an IPv6 packet of 1,280 bytes.
const MOST_QUOTED_V6: usize = 1280 - Ipv6Header::LEN - 8;
