//! From a frame to a segment: whatever does not become one is dropped here, with a reason.

use whimbrel_base::packet::{Payload, RxChecksum, SegMeta};
use whimbrel_base::{Instant, cold_path};
use whimbrel_tcp::RxSegment;
use whimbrel_udp::Arrived;
use whimbrel_wire::plain::{Checksum, PlainDatagram, PlainSegment};
use whimbrel_wire::tcp::{TcpHeader, TcpView};
use whimbrel_wire::{Address, Ecn, Endpoint, IpHeader, Protocol, Sum, TrafficClass};

use super::addresses::is_link_local;
use super::arrival::{Arrival, Input, RefusalReply, Refused, UdpArrival};
use super::udp::read_datagram;
use super::{Abandoned, FlowKey, FrameDrop, IpLayer, Origin};
use crate::RxFrame;

impl IpLayer {
    /// Reads what nearly every packet is: a segment in plain IPv4, from somewhere and for this host.
    /// `None` if it is, or may be, anything else: [`IpLayer::read`] finds out, and says what is wrong.
    #[inline(always)]
    pub(crate) fn read_plain<'a>(
        &self,
        packet: &'a [u8],
        known: RxChecksum,
    ) -> Option<(FlowKey, PlainSegment<'a>)> {
        let segment = PlainSegment::read(packet, left_to_verify(known))?;
        let (remote, (remote_port, local_port)) = (segment.src(), segment.ports());
        if remote_port == 0 || local_port == 0 || self.may_be_martian(&remote) {
            cold_path();
            return None;
        }
        let local_index = self.addresses.index_of_v4(segment.dst().v4_bytes())?;
        Some((FlowKey { remote, remote_port, local_port, local_index }, segment))
    }

    /// Reads what nearly every datagram is: plain, from somewhere and for this host. `None` as of
    /// [`IpLayer::read_plain`].
    #[inline(always)]
    pub(crate) fn read_plain_datagram<'a>(
        &self,
        packet: &'a [u8],
        meta: &SegMeta,
    ) -> Option<UdpArrival<'a>> {
        let datagram = PlainDatagram::read(packet, left_to_verify(meta.checksum))?;
        let ((src, dst), (src_port, dst_port)) = (datagram.addresses(), datagram.ports());
        if self.may_be_martian(&src) || self.addresses.index_of_v4(dst.v4_bytes()).is_none() {
            cold_path();
            return None;
        }
        let (class, hop_limit) = datagram.class_and_hop_limit();
        let (data, dont_fragment) = (datagram.data, datagram.has_dont_fragment());
        let (from, to) = (Endpoint::new(src, src_port), Endpoint::new(dst, dst_port));
        let datagram = Arrived { from, to, data, class, hop_limit, dont_fragment };
        Some(UdpArrival { datagram, each: meta.gso_size })
    }

    /// True if the sender's address, of IPv4, may be one that no host sends from: of what
    /// [`IpLayer::is_martian`] finds, nothing is missed.
    #[inline]
    fn may_be_martian(&self, src: &Address) -> bool {
        let [network, ..] = src.v4_bytes();
        matches!(network, 0 | 127 | 224..)
            || self.routes.may_be_broadcast(src)
            || self.addresses.index_of_v4(src.v4_bytes()).is_some()
    }

    /// Reads a frame. Everything that a peer can get wrong is found out here.
    pub(crate) fn read<'a>(
        &mut self,
        now: Instant,
        frame: &RxFrame<'a>,
    ) -> Result<Input<'a>, Refused> {
        let (ip, payload, own) = self.read_ip(frame.bytes)?;
        if ip.fragment.is_some() {
            return self.reassemble(now, &ip, frame.bytes);
        }
        self.deliver(&ip, own, payload, frame.meta)
    }

    /// Reads a packet that was made whole from fragments.
    pub(crate) fn read_whole<'a>(&mut self, packet: &'a [u8]) -> Result<Input<'a>, Refused> {
        let (ip, payload, own) = self.read_ip(packet)?;
        if ip.fragment.is_some() {
            return Err(FrameDrop::Fragment.into());
        }
        self.deliver(&ip, own, payload, SegMeta::SINGLE)
    }

    /// The header of a packet for this host, its payload, and the index of the address that it is for, if
    /// that is this host's own.
    fn read_ip<'a>(&self, packet: &'a [u8]) -> Result<(IpHeader, &'a [u8], Option<u16>), Refused> {
        let (ip, payload) = IpHeader::parse(packet)?;
        // RFC 1122 3.2.1.3: "A host MUST silently discard an incoming datagram that is not
        // destined for the host."
        let own = match self.origin {
            Origin::Wire => self.addresses.index_of(&ip.dst),
            Origin::Host => self.addresses.local_index_of(&ip.dst),
        };
        if own.is_none() && !self.takes(&ip) {
            return Err(self.other_host(&ip).into());
        }
        if self.is_martian(&ip.src) {
            return Err(FrameDrop::Martian.into());
        }
        Ok((ip, payload, own))
    }

    /// True if this host takes a packet for another host's address. Segments, datagrams, and what is said of
    /// its own: who takes any address does not speak for it otherwise.
    fn takes(&self, ip: &IpHeader) -> bool {
        let protocol = matches!(
            ip.protocol,
            Protocol::TCP | Protocol::UDP | Protocol::ICMP | Protocol::ICMPV6
        );
        // A packet of a host to itself needs no other host.
        protocol && self.accepts_foreign(&ip.dst) && ip.dst != ip.src
    }

    /// True if this host speaks for an address, which is not its own.
    pub(crate) fn accepts_foreign(&self, addr: &Address) -> bool {
        self.addresses.accepts_any_address()
            && !addr.is_unspecified()
            && !addr.is_multicast_or_broadcast()
            && !addr.to_ip().is_loopback()
            && !self.routes.is_broadcast(addr)
    }

    /// Why a packet is not for this host: it is for another, or for a group that this host cannot join.
    fn other_host(&self, ip: &IpHeader) -> FrameDrop {
        let group = ip.dst.is_multicast_or_broadcast() || self.routes.is_broadcast(&ip.dst);
        let is_udp = ip.protocol == Protocol::UDP;
        if is_udp && group { FrameDrop::UdpGroup } else { FrameDrop::OtherHost }
    }

    /// RFC 1122 3.2.1.3: "A host MUST silently discard an incoming datagram containing an IP source
    /// address that is invalid by the rules of this section."
    pub(super) fn is_martian(&self, src: &Address) -> bool {
        if self.origin == Origin::Host {
            return !self.addresses.is_local(src);
        }
        src.is_unspecified()
            || src.is_multicast_or_broadcast()
            || src.to_ip().is_loopback()
            || self.routes.is_broadcast(src)
            || self.addresses.index_of(src).is_some()
    }

    /// True if this is another host's address that this host may speak from, as it takes any.
    pub(crate) fn is_foreign_host(&self, addr: &Address) -> bool {
        self.addresses.accepts_any_address()
            && !addr.is_unspecified()
            && !addr.is_multicast_or_broadcast()
            && !addr.to_ip().is_loopback()
            && !is_link_local(addr)
            && !self.routes.is_broadcast(addr)
            && self.addresses.index_of(addr).is_none()
    }

    /// Hands a whole packet to its protocol.
    fn deliver<'a>(
        &mut self,
        ip: &IpHeader,
        own: Option<u16>,
        payload: &'a [u8],
        meta: SegMeta,
    ) -> Result<Input<'a>, Refused> {
        match ip.protocol {
            Protocol::TCP => {
                let local_index = match own {
                    Some(own) => own,
                    None => self.addresses.intern(ip.dst).ok_or(FrameDrop::AddressLimit)?,
                };
                let mut arrival = read_segment(&ip.src, &ip.dst, local_index, payload, meta)?;
                arrival.segment.class = ip.traffic_class;
                self.counters.in_ce += u64::from(ip.traffic_class.ecn() == Ecn::Ce);
                Ok(Input::Segment(arrival))
            }
            Protocol::ICMP | Protocol::ICMPV6 => self.read_icmp(ip, own, payload),
            Protocol::UDP => Ok(Input::Udp(read_datagram(ip, payload, meta)?)),
            _ => Err(Refused::unknown_protocol(ip)),
        }
    }

    /// A fragment joins others of its datagram.
    fn reassemble<'a>(
        &mut self,
        now: Instant,
        ip: &IpHeader,
        packet: &[u8],
    ) -> Result<Input<'a>, Refused> {
        self.counters.reassembly_fragments += 1;
        if lacks_headers(ip) {
            // RFC 7112 5: such a packet is discarded, and its sender told by a Parameter Problem of
            // code 3 that points to its beginning.
            let answer = Some(RefusalReply::ParameterProblem { code: 3, pointer: 0 });
            return Err(Refused { reason: FrameDrop::FragmentHeaders, answer });
        }
        let taken = self.reassembly.take(now, ip, packet);
        let Abandoned { refused, crowded, evicted } = self.reassembly.take_given_up();
        self.counters.reassembly_failures += refused + crowded + evicted;
        self.counters.reassembly_crowded += crowded;
        self.counters.reassembly_evicted += evicted;
        match taken? {
            Some(whole) => {
                self.counters.reassembled += 1;
                Ok(Input::Whole(whole))
            }
            None => Ok(Input::Held),
        }
    }
}

/// RFC 7112 5: "When a host fragments an IPv6 datagram, it MUST include the entire IPv6 Header
/// Chain in the First Fragment." Only what the fragment header itself names is looked at.
fn lacks_headers(ip: &IpHeader) -> bool {
    let first = ip.fragment.is_some_and(|fragment| fragment.offset == 0);
    let least = match ip.protocol {
        Protocol::TCP => TcpHeader::LEN as u16,
        Protocol::UDP | Protocol::ICMPV6 => 8,
        _ => 0,
    };
    first && !ip.src.is_v4() && ip.payload_len < least
}

/// Returns what is left to be verified of a checksum of which the device knows this.
const fn left_to_verify(known: RxChecksum) -> Checksum {
    match known {
        RxChecksum::Unknown => Checksum::Verify,
        RxChecksum::Verified | RxChecksum::Partial => Checksum::Trust,
    }
}

fn read_segment<'a>(
    src: &Address,
    dst: &Address,
    local_index: u16,
    bytes: &'a [u8],
    meta: SegMeta,
) -> Result<Arrival<'a>, FrameDrop> {
    let (header, header_len) = TcpView::parse(bytes).map_err(|_| FrameDrop::TcpHeader)?;
    // RFC 9293 3.1: "The sender MUST generate it (MUST-2) and the receiver MUST check it (MUST-3)."
    if meta.checksum == RxChecksum::Unknown {
        let len = bytes.len() as u32;
        let sum = Sum::pseudo_header(*src, *dst, Protocol::TCP.0, len);
        if !sum.add_bytes(bytes).is_valid() {
            return Err(FrameDrop::TcpChecksum);
        }
    }
    if header.src_port == 0 || header.dst_port == 0 {
        return Err(FrameDrop::TcpPort);
    }
    let key = FlowKey {
        remote: *src,
        remote_port: header.src_port,
        local_port: header.dst_port,
        local_index,
    };
    let text = bytes.get(header_len..).unwrap_or_default();
    Ok(Arrival {
        key,
        segment: RxSegment {
            header,
            payload: Payload::borrowed(text),
            meta,
            class: TrafficClass::default(),
        },
    })
}

#[cfg(test)]
mod tests;
