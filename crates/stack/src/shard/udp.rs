//! Datagrams: sockets for applications, and their way through the host (RFC 768, RFC 1122 4.1).
//!
//! All sockets of a host with several shards are at the one of queue 0, where everything comes in that
//! is no segment of TCP, fragments included (`io::steering`).

use bytes::Bytes;
use whimbrel_base::packet::{IcmpError, SoftError};
use whimbrel_tcp::budget::Pressure;
use whimbrel_udp::{
    Arrived, Bind, Fragmenting, Local, OutgoingDatagram, Received, Room, SendOptions, SocketError,
    Sockets, Undelivered,
};
use whimbrel_wire::{Address, Endpoint, Family, UdpHeader};

use super::Shard;
use crate::ip::{
    Datagram, DatagramReport, FrameDrop, RefusalReply, Routes, UdpArrival, Unreachable,
    message_to_cut,
};
use crate::replies::Pending;
use crate::udp_error::{UdpError, socket_error};
use crate::{RxFrame, TxBatch, UdpHandle};

/// Whom a datagram is for and what its packets say, where that is not what its socket has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SendTo {
    /// Whom it is for; `None`: whom the socket is connected to.
    pub to: Option<Endpoint>,
    /// From which address of this host; `None`: the socket's own, or by the route. RFC 1122 4.1.3.5: "A
    /// request/response application that uses UDP should use a source address for the response that is
    /// the same as the specific destination address of the request."
    pub source: Option<Address>,
    /// From which port; `None`: the socket's own. That of a socket for [any
    /// destination](Shard::udp_bind_any) has to be given, that of another can be no other.
    pub source_port: Option<u16>,
    /// If there are more bytes than this, they are sent as several datagrams of so many each, the last
    /// perhaps of fewer: up to [64](OutgoingDatagram::MOST_SEGMENTS), each of which the path carries whole (Linux'
    /// `UDP_SEGMENT`). They are cut by the device, if it can, so that all of them cost little more than one.
    pub segment: Option<u16>,
    /// What its packets say; `None`: as was set on the socket.
    pub options: Option<SendOptions>,
}

impl SendTo {
    /// Nothing but the destination.
    pub const fn peer(to: Endpoint) -> Self {
        Self { to: Some(to), ..Self::CONNECTED }
    }

    /// To who sent `received`, from where it was sent to.
    pub const fn answer(received: &Received) -> Self {
        let Endpoint { addr, port } = received.to;
        let to = Some(received.from);
        Self { to, source: Some(addr), source_port: Some(port), ..Self::CONNECTED }
    }

    /// Whom the socket is connected to.
    pub const CONNECTED: Self =
        Self { to: None, source: None, source_port: None, segment: None, options: None };

    /// Bytes of each of the datagrams that `len` bytes towards a host of this family are; 0: they are one.
    /// `whole` says how many the path carries in one packet, and is asked only where they may not be cut.
    ///
    /// # Errors
    ///
    /// [`UdpError::TooLong`]: all of them are more than a datagram has, or one of them is more than the path
    /// carries and may not be cut. [`UdpError::Segments`]: too many, or none of any size.
    pub fn judge_size(
        &self,
        len: usize,
        family: Family,
        fragmenting: Fragmenting,
        whole: impl FnOnce() -> usize,
    ) -> Result<u16, UdpError> {
        let most = UdpHeader::most_data(family);
        if len > most {
            return Err(UdpError::TooLong { len, most });
        }
        let segment = self.judge_segment(len)?;
        // Several are never cut: what cuts datagrams apart makes no fragments.
        if segment == 0 && fragmenting == Fragmenting::Allowed {
            return Ok(0);
        }
        let one = if segment > 0 { usize::from(segment) } else { len };
        let most = whole();
        if one > most { Err(UdpError::TooLong { len: one, most }) } else { Ok(segment) }
    }

    fn judge_segment(&self, len: usize) -> Result<u16, UdpError> {
        let Some(segment) = self.segment else { return Ok(0) };
        let (each, most) = (usize::from(segment), OutgoingDatagram::MOST_SEGMENTS);
        if each == 0 || len.div_ceil(each) > most {
            return Err(UdpError::Segments { len, segment, most });
        }
        Ok(if len <= each { 0 } else { segment })
    }
}

/// The UDP of a host: its sockets, and what they have under way.
#[derive(Debug)]
pub(super) struct UdpHost {
    pub(super) sockets: Sockets,
    /// What of a datagram did not leave yet, where it leaves in fragments.
    pub(super) leaving: UdpLeaving,
    /// What datagrams held when records were counted last, bytes.
    pub(super) weighed: usize,
    /// Where a socket that receives there sent its last datagram, and from which address.
    pub(super) judged_way: Option<((Local, Address), Address)>,
}

impl UdpHost {
    pub(super) fn new(sockets: Sockets) -> Self {
        Self { sockets, leaving: UdpLeaving::default(), weighed: 0, judged_way: None }
    }
}

/// Datagram sockets, as their owner sees them.
impl Shard {
    /// A socket that receives datagrams at one of this host's addresses, or at all of them.
    pub fn udp_bind(&mut self, bind: &Bind) -> Result<UdpHandle, UdpError> {
        if let Local::Address(own) = &bind.local {
            self.check_single(own)?;
            // RFC 1122 4.1.3.6: "When a host sends a UDP datagram, the source address MUST be (one of)
            // the IP address(es) of the host."
            self.net.ip.addresses.local_index_of(own).ok_or(UdpError::NotLocal(*own))?;
        }
        Ok(self.udp.sockets.bind(bind)?)
    }

    /// The socket for any destination: it receives what finds no other, at every port of this host's
    /// addresses, and where the host [takes any](Shard::take_any_address) at every port of those.
    /// [`Received::to`] says where each datagram was sent to; [`SendTo::answer`] answers from there.
    /// There is one at a time.
    pub fn udp_bind_any(&mut self) -> Result<UdpHandle, UdpError> {
        Ok(self.udp.sockets.bind_any()?)
    }

    /// Says to who sent `received` that where it was sent to cannot be reached, by an ICMP error as its
    /// receiver ([`Unreachable::Port`]) or a router on the way would send one; within what a host may send
    /// of these.
    pub fn udp_refuse(&mut self, received: &Received, what: Unreachable) {
        if let Some(error) = self.net.ip.refuse_datagram(self.cx.now, received, what) {
            self.net.reply_from(&mut self.cx, error.local_index(), Pending::Error(error));
        }
    }

    /// From now on the socket sends to `remote` where nothing else is said, receives from there alone,
    /// and is told of ICMP errors about what it sends there ([`Shard::udp_take_error`]). Nothing is sent.
    pub fn udp_connect(&mut self, handle: UdpHandle, remote: Endpoint) -> Result<(), UdpError> {
        let source = self.choose_source(handle, remote, None)?;
        Ok(self.udp.sockets.connect(handle, source, remote)?)
    }

    /// The socket is connected to nobody any more.
    pub fn udp_disconnect(&mut self, handle: UdpHandle) -> Result<(), UdpError> {
        Ok(self.udp.sockets.disconnect(handle)?)
    }

    /// Lets go of the socket: its port is free at once, what was to be sent leaves. Returns whether there
    /// was one.
    pub fn udp_close(&mut self, handle: UdpHandle) -> bool {
        self.udp.sockets.close(handle)
    }

    /// Takes a datagram to be sent, whole or not at all. If there is no room for it now, an
    /// [`Event::Udp`](crate::Event::Udp) follows once there is.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the destination or the size is known at once. What the path says of it later
    /// is told by [`Shard::udp_take_error`], if the socket is connected.
    pub fn udp_send(
        &mut self,
        handle: UdpHandle,
        data: Bytes,
        send: &SendTo,
    ) -> Result<(), UdpError> {
        let SendTo { to, source, source_port, options, segment: _ } = *send;
        let to = to.or_else(|| self.udp.sockets.remote(handle)).ok_or(UdpError::NotConnected)?;
        let source = self.choose_source(handle, to, source)?;
        let port = self.choose_port(handle, source_port)?;
        let options = options.or_else(|| self.udp.sockets.options(handle)).unwrap_or_default();
        let (family, fragmenting) = (to.addr.family(), options.fragmenting);
        let whole = || self.udp_whole(&to.addr);
        let segment = send.judge_size(data.len(), family, fragmenting, whole)?;
        let from = Endpoint::new(source, port);
        let room = self.udp_room();
        Ok(self.udp.sockets.queue(
            handle,
            OutgoingDatagram { from, to, data, segment, options },
            room,
        )?)
    }

    /// The datagram that has waited for longest; `None`: nothing yet, an
    /// [`Event::Udp`](crate::Event::Udp) will come.
    pub fn udp_recv(&mut self, handle: UdpHandle) -> Option<Received> {
        self.udp.sockets.recv(handle)
    }

    /// The same, and it stays.
    pub fn udp_peek(&self, handle: UdpHandle) -> Option<&Received> {
        self.udp.sockets.peek(handle)
    }

    /// What was last heard of what a connected socket had sent (RFC 1122 4.1.3.3); it is forgotten by
    /// that, and ends nothing: what `SO_ERROR` tells.
    pub fn udp_take_error(&mut self, handle: UdpHandle) -> Option<SocketError> {
        self.udp.sockets.take_error(handle)
    }

    /// What the socket's packets say from now on, where a datagram says nothing else: hop limit, traffic
    /// class, and whether they may be cut (RFC 1122 4.1.4).
    pub fn udp_set_options(&mut self, handle: UdpHandle, options: SendOptions) {
        self.udp.sockets.set_options(handle, options);
    }

    /// How many bytes may wait to be received (`SO_RCVBUF`), from 2 KiB to `buffers.recv.max`; what each
    /// datagram takes beside its data counts.
    pub fn udp_set_recv_size(&mut self, handle: UdpHandle, bytes: usize) {
        self.udp
            .sockets
            .set_recv_size(handle, bytes.min(self.cx.tunables.recv_buffer_max as usize));
    }

    /// How many bytes may wait to be sent (`SO_SNDBUF`), from 2 KiB to `buffers.send.max`.
    pub fn udp_set_send_size(&mut self, handle: UdpHandle, bytes: usize) {
        self.udp
            .sockets
            .set_send_size(handle, bytes.min(self.cx.tunables.send_buffer_max as usize));
    }

    /// The sockets: their ends, options and sizes, and what happened to datagrams.
    pub fn udp(&self) -> &Sockets {
        &self.udp.sockets
    }

    /// The most octets that a datagram to `remote` carries in one packet (RFC 1122 3.4, GET_MAXSIZES).
    pub fn udp_whole(&self, remote: &Address) -> usize {
        self.net.ip.whole_udp(self.cx.now, remote)
    }
}

/// From where a datagram leaves, and whom it may be for.
impl Shard {
    /// The address from which a socket sends to `to`, as a rule what it was for the datagram before.
    fn choose_source(
        &mut self,
        handle: UdpHandle,
        to: Endpoint,
        wish: Option<Address>,
    ) -> Result<Address, UdpError> {
        let unknown = UdpError::Bind(whimbrel_udp::BindError::Unknown);
        let own = self.udp.sockets.receives_at(handle).ok_or(unknown)?;
        let way = (own, to.addr);
        if let Some((known, source)) = self.udp.judged_way
            && known == way
            && wish.is_none()
            && to.port != 0
        {
            return Ok(source);
        }
        let source = self.judge_source(handle, own, to, wish)?;
        if wish.is_none() {
            self.udp.judged_way = Some((way, source));
        }
        Ok(source)
    }

    fn judge_source(
        &mut self,
        handle: UdpHandle,
        own: Local,
        to: Endpoint,
        wish: Option<Address>,
    ) -> Result<Address, UdpError> {
        self.check_destination(to)?;
        if matches!(own, Local::Address(own) if own.family() != to.addr.family())
            || matches!(own, Local::Every(family) if family != to.addr.family())
        {
            return Err(UdpError::Family(to));
        }
        let addresses = &self.net.ip.addresses;
        match (wish, own) {
            (Some(wish), own) if !own.covers(&wish) || wish.family() != to.addr.family() => {
                Err(UdpError::NotLocal(wish))
            }
            (Some(wish), _) => {
                let speaks = addresses.source_index_of(&wish, &to.addr).is_some()
                    || (self.udp.sockets.is_any(handle) && self.net.ip.takes_other(&wish));
                speaks.then_some(wish).ok_or(UdpError::NotLocal(wish))
            }
            (None, Local::Address(own)) => {
                let index = addresses.source_index_of(&own, &to.addr);
                index.map(|_| own).ok_or(UdpError::NotLocal(own))
            }
            // RFC 1122 4.1.3.5: "(in which case the networking software will choose an appropriate
            // source address)".
            (None, Local::Every(_) | Local::Both) => addresses
                .source_for(&to.addr)
                .and_then(|index| addresses.get(index).copied())
                .ok_or(UdpError::NoSource(to)),
        }
    }

    /// The port from which a socket sends.
    fn choose_port(&self, handle: UdpHandle, wish: Option<u16>) -> Result<u16, UdpError> {
        let local = self.udp.sockets.local(handle).ok_or(whimbrel_udp::QueueError::Unknown)?;
        match (wish, local.port) {
            (None | Some(0), 0) => Err(UdpError::NoSourcePort),
            (Some(wish), 0) => Ok(wish),
            (Some(wish), own) if wish != own => Err(UdpError::NotItsPort { wish, own }),
            (_, own) => Ok(own),
        }
    }

    fn check_destination(&mut self, to: Endpoint) -> Result<(), UdpError> {
        let is_local = self.net.ip.addresses.is_local(&to.addr);
        judge_destination(&self.net.ip.routes, is_local, to)?;
        if is_local {
            self.net.look_at_destinations();
        }
        Ok(())
    }

    fn check_single(&self, addr: &Address) -> Result<(), UdpError> {
        judge_single(&self.net.ip.routes, addr)
    }
}

/// Checks that datagrams can be sent to `to` by these routes; `is_local`: it is this host itself.
///
/// # Errors
///
/// [`UdpError::Multicast`] and [`UdpError::Broadcast`]: a group of hosts. [`UdpError::NotAPeer`]: port 0, or
/// the unspecified address. [`UdpError::NoRoute`].
pub fn judge_destination(routes: &Routes, is_local: bool, to: Endpoint) -> Result<(), UdpError> {
    judge_single(routes, &to.addr)?;
    if to.port == 0 || to.addr.is_unspecified() {
        return Err(UdpError::NotAPeer(to));
    }
    if is_local {
        return Ok(());
    }
    let route = routes.find(&to.addr).filter(|_| !to.addr.to_ip().is_loopback());
    route.map(|_| ()).ok_or(UdpError::NoRoute(to))
}

/// Checks that an address is of one host: there is no membership in groups here, and no other socket
/// sends to all hosts of a network.
fn judge_single(routes: &Routes, addr: &Address) -> Result<(), UdpError> {
    let is_limited = *addr == Address::from_v4_octets([255; 4]);
    if is_limited || routes.is_broadcast(addr) {
        return Err(UdpError::Broadcast(*addr));
    }
    if addr.is_multicast_or_broadcast() { Err(UdpError::Multicast(*addr)) } else { Ok(()) }
}

/// Datagrams that arrived, on their way to a socket.
impl Shard {
    /// A datagram for this host in `packet`, or several that came uncut.
    pub(super) fn on_udp(&mut self, packet: &RxFrame<'_>, arrived: &UdpArrival<'_>) {
        let UdpArrival { datagram, each } = arrived;
        let each = match *each {
            0 => datagram.data.len().max(1),
            each => usize::from(each),
        };
        // An empty one has no chunk, and is one all the same. A frame counts once: as delivered, if any of
        // it was.
        let mut delivered = Err(Undelivered::NoSocket);
        let (first, behind) = datagram.data.split_at(each.min(datagram.data.len()));
        for data in core::iter::once(first).chain(behind.chunks(each)) {
            let this = self.deliver_udp(&Arrived { data, ..*datagram });
            delivered = delivered.or(this);
        }
        let reason = match delivered {
            Ok(()) => {
                self.net.ip.counters.in_delivers += 1;
                return;
            }
            Err(Undelivered::NoSocket) if self.net.claim(packet, FrameDrop::UdpPort) => return,
            Err(Undelivered::NoSocket) => FrameDrop::UdpPort,
            Err(Undelivered::RecvBuffer) => FrameDrop::UdpBuffer,
            Err(Undelivered::Memory) => FrameDrop::UdpMemory,
        };
        self.net.ip.counters.drop_frame(reason);
        if reason == FrameDrop::UdpPort {
            // RFC 1122 4.1.3.1: "If a datagram arrives addressed to a UDP port for which there is no
            // pending LISTEN call, UDP SHOULD send an ICMP Port Unreachable message."
            self.net.refuse(&mut self.cx, packet.octets, RefusalReply::PortUnreachable);
        }
    }

    fn deliver_udp(&mut self, arrived: &Arrived<'_>) -> Result<(), Undelivered> {
        let room = self.udp_room();
        let addresses = &self.net.ip.addresses;
        if addresses.takes_any() && addresses.local_index_of(&arrived.to.addr).is_none() {
            return self.udp.sockets.deliver_other(arrived, room);
        }
        self.udp.sockets.deliver(arrived, room)
    }

    /// A datagram that did not come so far as to a socket.
    pub(super) fn on_udp_refused(&mut self, reason: FrameDrop) {
        let counters = &mut self.udp.sockets.counters;
        match reason {
            FrameDrop::UdpChecksum => {
                counters.in_errors += 1;
                counters.in_csum_errors += 1;
            }
            FrameDrop::UdpHeader => counters.in_errors += 1,
            FrameDrop::UdpGroup => counters.ignored_multi += 1,
            _ => {}
        }
    }

    /// An ICMP error about a datagram of ours. Returns whether it can be one: a socket has its port.
    pub(super) fn on_udp_report(&mut self, report: &DatagramReport) -> bool {
        let DatagramReport { from, to, error } = report;
        let known = self.udp.sockets.on_error(from, to, socket_error(*error));
        if let IcmpError::TooBig { mtu } = error
            && known
        {
            self.net.ip.datagram_mtus.note(self.cx.now, to.addr, *mtu);
        }
        known
    }

    /// Whether there is memory for another datagram. They go first where it is short: text was promised
    /// room by a window, a datagram was promised nothing.
    fn udp_room(&self) -> Room {
        let budget = &self.cx.pool.budget;
        // Records are looked at once a millisecond, in which many datagrams can come.
        let since = self.udp.sockets.held().saturating_sub(self.udp.weighed) as u64;
        let held = budget.held().saturating_add(since);
        let is_tight = held >= self.cx.tunables.mem_budget / 10 * 9;
        if is_tight || budget.pressure() >= Pressure::Tight { Room::None } else { Room::Enough }
    }
}

/// Datagrams that wait to leave, in their turn before segments.
impl Shard {
    /// Whether datagrams wait to leave.
    #[inline]
    pub(super) fn has_udp_out(&self) -> bool {
        self.udp.sockets.has_out() || !self.udp.leaving.is_empty()
    }

    /// Datagrams in the order in which they were handed over, up to [`A_TURN`]: segments come next.
    #[inline(never)]
    pub(super) fn tx_udp(&mut self, batch: &mut TxBatch) {
        for _ in 0..A_TURN {
            if batch.is_full() || !self.has_udp_out() {
                return;
            }
            batch.fill(|tx| self.write_udp(tx) && self.net.depart(tx, self.cx.now));
        }
    }

    /// The next datagram, or the next fragment of one, or several that the device cuts.
    fn write_udp(&mut self, tx: &mut whimbrel_base::packet::TxSegment) -> bool {
        let now = self.cx.now;
        if let Some(mut rest) = self.udp.leaving.fragments.take() {
            let written = self.net.ip.write_datagram(&mut rest, now, tx);
            self.udp.leaving.fragments = (!rest.is_done()).then_some(rest);
            return written;
        }
        let next = self.udp.leaving.segments.take().or_else(|| self.udp.sockets.next_out());
        let Some(mut out) = next else { return false };
        if out.segment > 0 {
            let len = self.net.ip.udp_at_once(now, &out).min(out.data.len());
            let data = out.data.split_to(len);
            if !out.data.is_empty() {
                self.udp.leaving.segments = Some(out.clone());
            }
            out.data = data;
        }
        let segments = out.segments() as u64;
        let is_whole = self.net.ip.carries_whole(now, &out);
        let refused = !is_whole && out.options.fragmenting == Fragmenting::Refused;
        if refused {
            // The path, or the link, became narrower since it was taken.
            let mtu = self.net.ip.datagram_mtu(now, &out.to.addr);
            self.udp.sockets.on_error(&out.from, &out.to, SocketError::TooBig { mtu });
        }
        if refused || !self.net.ip.speaks_from(&out.from.addr) {
            self.udp.sockets.counters.out_discards += segments;
            return false;
        }
        self.udp.sockets.counters.out_datagrams += segments;
        let usual_hop_limit = self.cx.tunables.hop_limit;
        if is_whole {
            return self.net.ip.write_udp(now, out, usual_hop_limit, tx);
        }
        self.udp.leaving.fragments = Some(message_to_cut(&out, usual_hop_limit));
        self.write_udp(tx)
    }
}

/// What is on its way out in several packets.
#[derive(Default, Debug)]
pub(super) struct UdpLeaving {
    /// The rest of a datagram.
    fragments: Option<Datagram>,
    /// The rest of several.
    segments: Option<OutgoingDatagram>,
}

impl UdpLeaving {
    /// Whether nothing is on its way out.
    pub(super) const fn is_empty(&self) -> bool {
        self.fragments.is_none() && self.segments.is_none()
    }

    /// What was to leave from an address that is no more does not.
    pub(super) fn forget(&mut self, addr: &Address) {
        self.fragments.take_if(|rest| rest.local() == addr);
        self.segments.take_if(|rest| rest.from.addr == *addr);
    }
}

/// Datagrams that leave before the connections have a turn: half of a usual batch.
const A_TURN: usize = 32;
