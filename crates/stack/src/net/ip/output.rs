//! Headers in front of what leaves.

use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_base::{Instant, cold_path};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::{Connection, Marking, OutgoingSegment};
use whimbrel_wire::plain::{PlainHeaders, PlainOptions, Text};
use whimbrel_wire::tcp::{OptionOrder, TcpHeader};
use whimbrel_wire::{
    Address, Family, Fragment, Ipv4Header, Ipv6Header, Mss, Protocol, Sum, TrafficClass,
};

use super::{FlowKey, IpLayer};

/// A TCP segment whose text already stands in a [`TxSegment`].
#[derive(Debug)]
pub(crate) struct TcpOut<'a> {
    pub(crate) local_index: u16,
    pub(crate) remote: &'a Address,
    pub(crate) header: &'a TcpHeader,
    pub(crate) marking: Marking,
    pub(crate) order: OptionOrder,
}

/// A segment to be written, of a connection or in answer for one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentOut<'a> {
    pub(crate) remote: &'a Address,
    pub(crate) remote_port: u16,
    pub(crate) local_port: u16,
    pub(crate) local_index: u16,
    pub(crate) outgoing: &'a OutgoingSegment,
    pub(crate) marking: Marking,
    pub(crate) order: OptionOrder,
}

/// The rare parts of a segment to be written.
#[derive(Debug)]
struct RareOut {
    key: FlowKey,
    outgoing: OutgoingSegment,
    marking: Marking,
    order: OptionOrder,
}

impl RareOut {
    #[inline(always)]
    fn of(out: &SegmentOut<'_>) -> Self {
        let SegmentOut { remote, remote_port, local_port, local_index, .. } = *out;
        let key = FlowKey { remote: *remote, remote_port, local_port, local_index };
        Self { key, outgoing: *out.outgoing, marking: out.marking, order: out.order }
    }
}

impl<'a> SegmentOut<'a> {
    /// One of this flow.
    #[inline(always)]
    pub(crate) fn of_flow(
        key: &'a FlowKey,
        outgoing: &'a OutgoingSegment,
        marking: Marking,
        order: OptionOrder,
    ) -> Self {
        let FlowKey { ref remote, remote_port, local_port, local_index } = *key;
        Self { remote, remote_port, local_port, local_index, outgoing, marking, order }
    }

    /// One of this connection.
    // Not by a key of it: that would be a copy.
    #[inline(always)]
    pub(crate) fn of_connection(
        connection: &'a Connection,
        outgoing: &'a OutgoingSegment,
        marking: Marking,
        order: OptionOrder,
    ) -> Self {
        Self {
            remote: connection.remote(),
            remote_port: connection.remote_port(),
            local_port: connection.local_port(),
            local_index: connection.local_index(),
            outgoing,
            marking,
            order,
        }
    }
}

/// The fields of an IP header except its lengths.
#[derive(Debug)]
pub(super) struct IpOut<'a> {
    pub(super) local: &'a Address,
    pub(super) remote: &'a Address,
    pub(super) protocol: Protocol,
    pub(super) class: TrafficClass,
    pub(super) hop_limit: u8,
    /// If the packet is a fragment of another.
    pub(super) fragment: Option<Fragment>,
}

impl IpLayer {
    /// Writes IP and TCP headers in front of the text in `tx`.
    pub(crate) fn write_tcp(&mut self, out: &TcpOut<'_>, tx: &mut TxSegment) -> bool {
        let Some(local) = self.addresses.get(out.local_index).copied() else { return false };
        let at = self.link_header_len() + ip_header_len(local.family());
        let tcp_len = out.header.emit(out.order, &mut tx.header_room()[at..]);
        let len = tcp_len + tx.payload.bytes() as usize;
        let Marking { hop_limit, class } = out.marking;
        let (remote, protocol) = (out.remote, Protocol::TCP);
        let ip = IpOut { local: &local, remote, protocol, class, hop_limit, fragment: None };
        self.write_ip(&ip, len, tx);
        let sum = Sum::pseudo_header(local, *out.remote, Protocol::TCP.0, len as u32);
        let checksum = if self.capabilities.tx_checksum {
            tx.checksum = TxChecksum::Partial(TcpHeader::CHECKSUM_OFFSET as u8);
            sum.fold()
        } else {
            tx.checksum = TxChecksum::Done;
            let sum = sum.add_bytes(&tx.header_room()[at..][..tcp_len]);
            tx.payload.as_slice().iter().fold(sum, |sum, slice| sum.add_bytes(slice)).finish()
        };
        TcpHeader::set_checksum(&mut tx.header_room()[at..], checksum);
        tx.set_header_len(at + tcp_len);
        true
    }

    /// Writes a segment: in one go if it is what nearly every one is, in IPv4 and with timestamps or
    /// nothing.
    // Always: what it is made of is at hand where it is called, and would be stored and read again.
    #[inline(always)]
    pub(crate) fn write_segment(&mut self, out: &SegmentOut<'_>, tx: &mut TxSegment) -> bool {
        let options = out.outgoing.plain_options().filter(|_| out.remote.is_v4());
        match options {
            Some(options) => self.write_plain(out, options, tx),
            None => self.write_rare(RareOut::of(out), tx),
        }
    }

    /// Writes a SYN or SYN-ACK.
    // Always: as `write_segment`.
    #[inline(always)]
    pub(crate) fn write_opening(&mut self, out: &SegmentOut<'_>, tx: &mut TxSegment) -> bool {
        let opening = out.outgoing.plain_opening(out.order).filter(|_| out.remote.is_v4());
        match opening {
            // By itself: what is known of the options of nearly every SYN, its code does not ask.
            Some(options) if options.is_whole() => {
                self.write_plain(out, PlainOptions::Opening(options), tx)
            }
            Some(options) => {
                cold_path();
                self.write_plain(out, PlainOptions::Opening(options), tx)
            }
            None => self.write_rare(RareOut::of(out), tx),
        }
    }

    /// Writes a SYN-ACK that few hosts send.
    pub(crate) fn write_rare_opening(&mut self, out: &SegmentOut<'_>, tx: &mut TxSegment) -> bool {
        self.write_rare(RareOut::of(out), tx)
    }

    /// In IPv6, or with options that few segments have.
    // By value: by reference nearly every segment would be stored for it, field by field.
    #[inline(never)]
    fn write_rare(&mut self, out: RareOut, tx: &mut TxSegment) -> bool {
        let RareOut { key, outgoing, mut marking, order } = out;
        marking.class = marking.class.with_ecn(outgoing.ecn());
        let header = &outgoing.header(key.local_port, key.remote_port);
        let (local_index, remote) = (key.local_index, &key.remote);
        tx.gso_size = outgoing.gso_size;
        self.write_tcp(&TcpOut { local_index, remote, header, marking, order }, tx)
    }

    /// Both headers in one pass.
    #[inline(always)]
    fn write_plain(
        &mut self,
        out: &SegmentOut<'_>,
        options: PlainOptions,
        tx: &mut TxSegment,
    ) -> bool {
        let SegmentOut { outgoing, marking, .. } = *out;
        let Some(local) = self.addresses.get(out.local_index) else { return false };
        let headers = PlainHeaders {
            src: *local,
            dst: *out.remote,
            class: marking.class,
            hop_limit: marking.hop_limit,
            src_port: out.local_port,
            dst_port: out.remote_port,
            seq: outgoing.seq,
            ack: outgoing.ack,
            flags: outgoing.flags,
            window: outgoing.window,
            urgent: outgoing.urgent,
            options,
        };
        let len = tx.payload.bytes();
        // Where the device does it, its checksum field has the sum of the pseudo-header to go on from.
        let (sum, checksum) = if self.capabilities.tx_checksum {
            (None, TxChecksum::Partial(TcpHeader::CHECKSUM_OFFSET as u8))
        } else {
            (Some(Sum::new()), TxChecksum::Done)
        };
        let at = self.link_header_len();
        let Some(room) = tx.header_room()[at..].first_chunk_mut() else { return false };
        let headers_len = headers.emit(Text { len, sum }, room);
        if len > 0 && sum.is_some() {
            add_text(tx, at + Ipv4Header::LEN + TcpHeader::CHECKSUM_OFFSET);
        }
        self.counters.out_requests += 1;
        tx.transport_offset = (at + Ipv4Header::LEN) as u8;
        tx.gso_size = outgoing.gso_size;
        tx.checksum = checksum;
        tx.set_header_len(at + headers_len);
        true
    }

    /// Writes an IP header for `len` bytes of payload behind the room for a link header, which
    /// [`IpLayer::depart`] fills; returns where the payload's header goes.
    pub(super) fn write_ip(&mut self, ip: &IpOut<'_>, len: usize, tx: &mut TxSegment) -> usize {
        let first = ip.fragment.is_none_or(|fragment| fragment.offset == 0);
        self.counters.out_requests += u64::from(first);
        let at = self.link_header_len();
        let header_len = match ip.local.family() {
            Family::V4 => {
                let header = Ipv4Header {
                    src: ip.local.v4_bytes().into(),
                    dst: ip.remote.v4_bytes().into(),
                    protocol: ip.protocol,
                    ttl: ip.hop_limit,
                    tos: ip.class,
                    // RFC 6864 4.1: "Originating sources MAY set the IPv4 ID field of atomic
                    // datagrams to any value."
                    identification: ip.fragment.map_or(0, |it| it.identification as u16),
                    dont_fragment: ip.fragment.is_none(),
                    fragment: ip.fragment,
                    total_len: (Ipv4Header::LEN + len) as u16,
                    header_len: Ipv4Header::LEN as u8,
                };
                header.emit(&mut tx.header_room()[at..]);
                Ipv4Header::LEN
            }
            Family::V6 => {
                let extension = ip.fragment.map(|fragment| fragment.emit(ip.protocol));
                let extension = extension.as_ref().map_or(&[][..], |header| header);
                let header = Ipv6Header {
                    src: (*ip.local.as_bytes()).into(),
                    dst: (*ip.remote.as_bytes()).into(),
                    protocol: if extension.is_empty() { ip.protocol } else { Protocol::FRAGMENT },
                    hop_limit: ip.hop_limit,
                    traffic_class: ip.class,
                    flow_label: 0,
                    payload_len: (extension.len() + len) as u16,
                    header_len: Ipv6Header::LEN as u16,
                    protocol_pointer: NEXT_HEADER_AT,
                    fragment: None,
                };
                let room = &mut tx.header_room()[at..];
                header.emit(room);
                room[Ipv6Header::LEN..][..extension.len()].copy_from_slice(extension);
                Ipv6Header::LEN + extension.len()
            }
        };
        tx.transport_offset = (at + header_len) as u8;
        at + header_len
    }

    /// The MSS to announce to a peer of this family: what fits the link (RFC 9293 3.7.1: "The
    /// MSS value to be sent in an MSS Option should be equal to the effective MTU minus the fixed
    /// IP and TCP headers").
    pub(crate) fn mss(&self, family: Family) -> Mss {
        let headers = TcpHeader::LEN + ip_header_len(family);
        Mss::new(self.capabilities.mtu.saturating_sub(headers as u16))
    }

    /// Returns the MSS for `remote`: that of the link, or of the route if that is less.
    pub(crate) fn mss_to(&self, remote: &Address) -> Mss {
        let fitting = self.mss(remote.family());
        if self.routes.has_metrics() { self.known_mss(fitting, remote) } else { fitting }
    }

    #[inline(never)]
    fn known_mss(&self, fitting: Mss, remote: &Address) -> Mss {
        let known = self.routes.metrics_to(remote).and_then(|metrics| metrics.mtu);
        let headers = (TcpHeader::LEN + ip_header_len(remote.family())) as u16;
        known.map_or(fitting, |mtu| fitting.min(Mss::new(mtu.saturating_sub(headers).max(1))))
    }

    /// Returns the receive buffer that the route to `remote` sets, bytes; 0: none.
    #[inline]
    pub(crate) fn recv_pipe_to(&self, remote: &Address, tunables: &Tunables) -> u32 {
        if self.routes.has_metrics() { self.known_recv_pipe(remote, tunables) } else { 0 }
    }

    #[inline(never)]
    fn known_recv_pipe(&self, remote: &Address, tunables: &Tunables) -> u32 {
        let metrics = self.routes.metrics_to(remote);
        metrics.map_or(0, |metrics| tunables.recv_pipe(metrics, self.mss_to(remote).get()))
    }

    /// The MSS that a peer announced, or what the path to it carries if that is less.
    pub(crate) fn path_mss(&self, now: Instant, announced: Mss, remote: &Address) -> Mss {
        let Some(mtu) = self.segment_mtu(now, remote) else { return announced };
        let headers = TcpHeader::LEN + ip_header_len(remote.family());
        announced.min(Mss::new(mtu.saturating_sub(headers as u16)))
    }

    /// The most text that one segment handed to the device may carry: more than an MSS only if
    /// the device cuts it.
    pub(crate) fn max_text(&self) -> u32 {
        if self.capabilities.max_super <= u32::from(self.capabilities.mtu) {
            return 0;
        }
        let headers = (Ipv6Header::LEN + TcpHeader::MAX_LEN) as u32;
        self.capabilities.max_super.min(65_535).saturating_sub(headers)
    }
}

/// Adds the text to the checksum at this place, which covers all else.
// Behind the headers: what they are made of would be put aside for this.
#[inline(never)]
fn add_text(tx: &mut TxSegment, at: usize) {
    let Some(headers) = tx.header_room()[at..].first_chunk() else { return };
    let sum = Sum::new().add_u16(!u16::from_be_bytes(*headers));
    let sum = tx.payload.as_slice().iter().fold(sum, |sum, slice| sum.add_bytes(slice));
    if let Some(place) = tx.header_room()[at..].first_chunk_mut() {
        *place = sum.finish().to_be_bytes();
    }
}

fn ip_header_len(family: Family) -> usize {
    match family {
        Family::V4 => Ipv4Header::LEN,
        Family::V6 => Ipv6Header::LEN,
    }
}

/// Offset of IPv6's Next Header field, bytes.
const NEXT_HEADER_AT: u16 = 6;
/// RFC 1700's recommended default time to live: of what is not TCP.
pub(super) const HOP_LIMIT: u8 = 64;

#[cfg(test)]
pub(super) mod tests;
