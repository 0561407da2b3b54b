//! Datagrams between IP and the sockets: read with their checksum, written whole or in fragments.

use alloc::vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta, TxChecksum, TxSegment};
use whimbrel_udp::{Arrived, Fragmenting, OutgoingDatagram};
use whimbrel_wire::plain::{PlainDatagramHeaders, Text};
use whimbrel_wire::{
    Address, Endpoint, Family, IpHeader, Ipv4Header, Ipv6Header, ParseError, Protocol, Sum,
    UdpHeader, UdpView,
};

use super::arrival::{Refused, UdpArrival};
use super::output::IpOut;
use super::{Datagram, FrameDrop, IpLayer};

impl IpLayer {
    /// Returns the bytes of several datagrams that leave in one frame: as many as the device cuts of what the path
    /// carries, or those of the first.
    pub(crate) fn udp_at_once(&self, now: Instant, out: &OutgoingDatagram) -> usize {
        let each = usize::from(out.segment);
        if !self.capabilities.udp_segmentation || each > self.whole_udp(now, &out.to.addr) {
            return each;
        }
        let headers = Ipv6Header::LEN + UdpHeader::LEN;
        let most = (self.capabilities.max_super.min(65_535) as usize).saturating_sub(headers);
        (most / each).max(1) * each
    }

    /// True if datagrams from `own` may leave: it is this host's, or one that it speaks for.
    pub(crate) fn is_source_address(&self, own: &Address) -> bool {
        self.addresses.local_index_of(own).is_some() || self.accepts_foreign(own)
    }

    /// True if the path carries a datagram, or several that leave in one frame, without fragments.
    pub(crate) fn carries_whole(&self, now: Instant, out: &OutgoingDatagram) -> bool {
        out.segments() > 1 || out.data.len() <= self.whole_udp(now, &out.to.addr)
    }

    /// Writes the headers of one that the path carries whole.
    #[inline]
    pub(crate) fn write_udp(
        &mut self,
        now: Instant,
        out: &OutgoingDatagram,
        usual_hop_limit: u8,
        tx: &mut TxSegment,
    ) {
        let hop_limit = out.options.hop_limit.unwrap_or(usual_hop_limit);
        let (local, remote, class) = (out.from.addr, &out.to.addr, out.options.class);
        let len = UdpHeader::LEN + out.data.len();
        // Whole packets have Don't Fragment set: a path that carries less says so (RFC 8085 3.2). Where it
        // carries less than is believed of one, only those have it that may not be cut.
        let may_be_cut = out.options.fragmenting == Fragmenting::Allowed
            && self.is_narrow_to_datagrams(now, remote);
        let fragment =
            may_be_cut.then(|| self.whole_fragment(&local, remote, out.segments() as u32));
        if fragment.is_none() && remote.is_v4() {
            return self.write_plain_datagram(out, hop_limit, tx);
        }
        let protocol = Protocol::UDP;
        let ip = IpOut { local: &local, remote, protocol, class, hop_limit, fragment };
        let at = self.write_ip(&ip, len, tx);
        let (header, _) = tx.header_room()[at..].split_at_mut(UdpHeader::LEN);
        UdpHeader { src_port: out.from.port, dst_port: out.to.port }.emit(out.data.len(), header);
        // RFC 1122 4.1.3.4: "it MUST default to checksumming on."
        let sum = Sum::pseudo_header(local, *remote, Protocol::UDP.0, len as u32);
        // Of several the device finishes each.
        let (checksum, left) = if self.capabilities.tx_checksum {
            (sum.fold(), TxChecksum::Partial(UdpHeader::CHECKSUM_OFFSET as u8))
        } else {
            let sum = sum.add_bytes(header).add_bytes(&out.data);
            (UdpHeader::checksum_of(sum), TxChecksum::Done)
        };
        UdpHeader::set_checksum(header, checksum);
        tx.checksum = left;
        tx.set_header_len(at + UdpHeader::LEN);
        tx.gso_size = if out.segments() > 1 { out.segment } else { 0 };
    }

    /// Both headers in one pass.
    #[inline]
    fn write_plain_datagram(&mut self, out: &OutgoingDatagram, hop_limit: u8, tx: &mut TxSegment) {
        let headers = PlainDatagramHeaders {
            src: out.from.addr,
            dst: out.to.addr,
            src_port: out.from.port,
            dst_port: out.to.port,
            class: out.options.class,
            hop_limit,
        };
        // Of several the device finishes each.
        let (sum, checksum) = if self.capabilities.tx_checksum {
            (None, TxChecksum::Partial(UdpHeader::CHECKSUM_OFFSET as u8))
        } else {
            (Some(Sum::new().add_bytes(&out.data)), TxChecksum::Done)
        };
        let at = self.link_header_len();
        let Some(room) = tx.header_room()[at..].first_chunk_mut() else { return };
        headers.emit(Text { len: out.data.len() as u32, sum }, room);
        self.counters.out_requests += 1;
        tx.transport_offset = (at + Ipv4Header::LEN) as u8;
        tx.gso_size = if out.segments() > 1 { out.segment } else { 0 };
        tx.checksum = checksum;
        tx.set_header_len(at + PlainDatagramHeaders::LEN);
    }

    /// The bytes that a datagram to `remote` carries in one packet.
    pub(crate) fn whole_udp(&self, now: Instant, remote: &Address) -> usize {
        let header = match remote.family() {
            Family::V4 => Ipv4Header::LEN,
            Family::V6 => Ipv6Header::LEN,
        };
        usize::from(self.datagram_mtu(now, remote)).saturating_sub(header + UdpHeader::LEN)
    }
}

/// The message that fragments are cut of, its header with them.
pub(crate) fn message_to_cut(out: &OutgoingDatagram, usual_hop_limit: u8) -> Datagram {
    let OutgoingDatagram { from, to, data, options, segment: _ } = out;
    let header = UdpHeader { src_port: from.port, dst_port: to.port };
    let mut message = vec![0; data.len() + UdpHeader::LEN];
    header.emit_datagram(from.addr, to.addr, data, &mut message);
    Datagram {
        local: from.addr,
        remote: to.addr,
        protocol: Protocol::UDP,
        class: options.class,
        hop_limit: options.hop_limit.unwrap_or(usual_hop_limit),
        fragmenting: options.fragmenting,
        payload: Bytes::from(message),
        next: None,
    }
}

/// Reads a datagram, or several in one frame.
pub(super) fn read_datagram<'a>(
    ip: &IpHeader,
    payload: &'a [u8],
    meta: SegMeta,
) -> Result<UdpArrival<'a>, Refused> {
    let view = match meta.checksum {
        RxChecksum::Unknown => UdpView::parse(ip.src, ip.dst, payload),
        RxChecksum::Verified | RxChecksum::Partial => {
            UdpView::parse_verified(ip.src.family(), payload)
        }
    };
    let UdpView { header, data, .. } = view.map_err(|error| match error {
        ParseError::BadChecksum => FrameDrop::UdpChecksum,
        _ => FrameDrop::UdpHeader,
    })?;
    let datagram = Arrived {
        from: Endpoint::new(ip.src, header.src_port),
        to: Endpoint::new(ip.dst, header.dst_port),
        data,
        class: ip.traffic_class,
        hop_limit: ip.hop_limit,
        dont_fragment: ip.dont_fragment,
    };
    Ok(UdpArrival { datagram, each: meta.gso_size })
}
