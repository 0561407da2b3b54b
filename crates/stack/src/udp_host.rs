//! Datagrams: sockets for applications, and their way through the host (RFC 768, RFC 1122 4.1).
//!
//! All sockets of a host with several shards are at the one of queue 0, where everything comes in that
//! is no segment of TCP, fragments included (`io::steering`).

use alloc::boxed::Box;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{IcmpError, TxSegment};
use whimbrel_base::ports::PortRange;
use whimbrel_tcp::budget::Pressure;
use whimbrel_tcp::{Context, Tunables};
use whimbrel_udp::{
    Arrived, Bind, DatagramError, Fragmenting, Local, OutgoingDatagram, Received, Room,
    SendOptions, Sender, SocketError, Sockets, Undelivered,
};
use whimbrel_wire::{Address, Endpoint, Family, UdpHeader};

use crate::ip::{
    Datagram, DatagramReport, FrameDrop, RefusalReply, Routes, UdpArrival, message_to_cut,
};
use crate::net::Net;
use crate::protocol::{PacketProtocol, Protocol};
use crate::udp_error::{UdpError, socket_error};
use crate::{RxFrame, TxBatch, UdpHandle};

/// Destination and options of a datagram, where they differ from its socket's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct SendTo {
    /// Its destination; `None`: that of the connected socket.
    pub to: Option<Endpoint>,
    /// From which address of this host; `None`: the socket's own, or by the route. RFC 1122 4.1.3.5: "A
    /// request/response application that uses UDP should use a source address for the response that is
    /// the same as the specific destination address of the request."
    pub source: Option<Address>,
    /// From which port; `None`: the socket's own. That of a socket for [any
    /// destination](crate::Shard::udp_bind_any) has to be given, that of another can be no other.
    pub source_port: Option<u16>,
    /// If there are more bytes than this, they are sent as several datagrams of so many each, the last
    /// perhaps of fewer: up to [64](OutgoingDatagram::MOST_SEGMENTS), each of which the path carries whole (Linux'
    /// `UDP_SEGMENT`). They are cut by the device, if it can, so that all of them cost little more than one.
    pub segment: Option<u16>,
    /// Options of its packets; `None`: as was set on the socket.
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

    /// A datagram to the peer that the socket is connected to.
    pub const CONNECTED: Self =
        Self { to: None, source: None, source_port: None, segment: None, options: None };

    /// Sets the source address.
    #[must_use]
    pub const fn with_source(mut self, source: Address) -> Self {
        self.source = Some(source);
        self
    }

    /// Sets the source port.
    #[must_use]
    pub const fn with_source_port(mut self, port: u16) -> Self {
        self.source_port = Some(port);
        self
    }

    /// Sets the size of each of several datagrams, in bytes.
    #[must_use]
    pub const fn with_segment(mut self, bytes: u16) -> Self {
        self.segment = Some(bytes);
        self
    }

    /// Sets the options of its packets.
    #[must_use]
    pub const fn with_options(mut self, options: SendOptions) -> Self {
        self.options = Some(options);
        self
    }

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
pub(crate) struct UdpHost {
    pub(crate) sockets: Sockets,
    /// The rest of a datagram that leaves in several frames.
    leaving: Option<Box<UdpTransmit>>,
    /// Bytes that datagrams held when records were counted last.
    bytes_counted: usize,
    /// Bytes that a host holds while there is [room](UdpHost::room) for another datagram.
    most_held: u64,
    /// That of the datagram before.
    last_route: Option<LastRoute>,
}

impl UdpHost {
    pub(crate) fn new(sockets: Sockets, tunables: &Tunables) -> Self {
        let most_held = most_held(tunables);
        Self { sockets, leaving: None, bytes_counted: 0, most_held, last_route: None }
    }
}

/// Sockets.
impl UdpHost {
    pub(crate) fn bind(&mut self, net: &Net, bind: &Bind) -> Result<UdpHandle, UdpError> {
        if let Local::Address(own) = &bind.local {
            judge_single(&net.ip.routes, own)?;
            // RFC 1122 4.1.3.6: "When a host sends a UDP datagram, the source address MUST be (one of)
            // the IP address(es) of the host."
            net.ip.addresses.local_index_of(own).ok_or(UdpError::NotLocal(*own))?;
        }
        Ok(self.sockets.bind(bind)?)
    }

    /// Connects a socket to `remote`. Nothing is sent.
    pub(crate) fn connect(
        &mut self,
        net: &mut Net,
        handle: UdpHandle,
        remote: Endpoint,
    ) -> Result<(), UdpError> {
        let sending = self.sockets.sending(handle).ok_or(UNKNOWN)?;
        let source = judge_source(net, sending.sender(), remote, None)?;
        Ok(self.sockets.connect(handle, source, remote)?)
    }

    /// Queues a datagram, whole or not at all.
    pub(crate) fn send(
        &mut self,
        cx: &Context,
        net: &mut Net,
        handle: UdpHandle,
        data: Bytes,
        send: &SendTo,
    ) -> Result<(), UdpError> {
        let room = self.room(cx);
        let sending = self.sockets.sending(handle).ok_or(UNKNOWN)?;
        let sender = sending.sender();
        let to = *send.to.as_ref().or(sender.remote).ok_or(UdpError::NotConnected)?;
        let source = match &self.last_route {
            Some(last) if last.is(sender.local, &to) && send.source.is_none() => last.source,
            _ => choose_source(net, &mut self.last_route, sender, to, send.source)?,
        };
        let port = choose_port(sender.port, send.source_port)?;
        let options = *send.options.as_ref().unwrap_or(sender.options);
        let (family, fragmenting) = (to.addr.family(), options.fragmenting);
        let whole = || net.ip.whole_udp(cx.now, &to.addr);
        let segment = send.judge_size(data.len(), family, fragmenting, whole)?;
        let from = Endpoint::new(source, port);
        Ok(sending.queue(OutgoingDatagram { from, to, data, segment, options }, room)?)
    }

    /// Returns the number of datagrams that wait to leave.
    pub(crate) fn unsent(&self) -> usize {
        self.sockets.unsent() + usize::from(self.leaving.is_some())
    }

    /// Counts what datagrams hold, as [`UdpHost::room`] needs it once a millisecond.
    pub(crate) fn count_held(&mut self) {
        self.bytes_counted = self.sockets.held();
    }
}

/// The destination of a datagram of a socket, and the address that it was sent from.
#[derive(Clone, Copy, Debug)]
struct LastRoute {
    own: Local,
    to: Address,
    source: Address,
}

impl LastRoute {
    /// True if a datagram of a socket at `own` takes it.
    #[inline]
    fn is(&self, own: &Local, to: &Endpoint) -> bool {
        self.to == to.addr && self.own == *own && to.port != 0
    }
}

/// The address from which a socket sends to `to`, which it has for the next datagram.
#[inline(never)]
fn choose_source(
    net: &mut Net,
    last: &mut Option<LastRoute>,
    sender: Sender<'_>,
    to: Endpoint,
    wish: Option<Address>,
) -> Result<Address, UdpError> {
    let source = judge_source(net, sender, to, wish)?;
    if wish.is_none() {
        *last = Some(LastRoute { own: *sender.local, to: to.addr, source });
    }
    Ok(source)
}

fn judge_source(
    net: &mut Net,
    sender: Sender<'_>,
    to: Endpoint,
    wish: Option<Address>,
) -> Result<Address, UdpError> {
    check_destination(net, to)?;
    let own = *sender.local;
    if matches!(own, Local::Address(own) if own.family() != to.addr.family())
        || matches!(own, Local::Every(family) if family != to.addr.family())
    {
        return Err(UdpError::Family(to));
    }
    let addresses = &net.ip.addresses;
    match (wish, own) {
        (Some(wish), own) if !own.covers(&wish) || wish.family() != to.addr.family() => {
            Err(UdpError::NotLocal(wish))
        }
        (Some(wish), _) => {
            let speaks = addresses.source_index_of(&wish, &to.addr).is_some()
                || (sender.is_any() && net.ip.accepts_foreign(&wish));
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

/// The port from which a socket with the port `own` sends.
const fn choose_port(own: u16, wish: Option<u16>) -> Result<u16, UdpError> {
    match (wish, own) {
        (None | Some(0), 0) => Err(UdpError::NoSourcePort),
        (Some(wish), 0) => Ok(wish),
        (Some(wish), own) if wish != own => Err(UdpError::NotItsPort { wish, own }),
        (_, own) => Ok(own),
    }
}

fn check_destination(net: &mut Net, to: Endpoint) -> Result<(), UdpError> {
    let is_local = net.ip.addresses.is_local(&to.addr);
    judge_destination(&net.ip.routes, is_local, to)?;
    if is_local {
        net.enable_destination_check();
    }
    Ok(())
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
    let is_limited = *addr == Address::from_v4_bytes([255; 4]);
    if is_limited || routes.is_broadcast(addr) {
        return Err(UdpError::Broadcast(*addr));
    }
    if addr.is_multicast_or_broadcast() { Err(UdpError::Multicast(*addr)) } else { Ok(()) }
}

/// Datagrams among a host's transports.
impl Protocol for UdpHost {
    /// True if datagrams wait to leave.
    #[inline]
    fn has_output(&self) -> bool {
        self.sockets.has_out() || self.leaving.is_some()
    }

    /// Returns `None`: nothing of a datagram is due by itself.
    fn next_deadline(&self, _cx: &Context) -> Option<Instant> {
        None
    }

    fn memory(&self) -> usize {
        self.sockets.memory()
    }

    fn on_retune(&mut self, tunables: &Tunables, range: PortRange) {
        self.sockets.set_rules(range, tunables.reserved_ports);
        self.most_held = most_held(tunables);
    }

    fn on_routes_changed(&mut self) {
        self.last_route = None;
    }

    fn on_address_removed(&mut self, _local: u16, addr: &Address) {
        if let Some(leaving) = &mut self.leaving {
            leaving.forget(addr);
            self.leaving.take_if(|leaving| leaving.is_empty());
        }
    }
}

impl PacketProtocol for UdpHost {
    type Packet<'a> = UdpArrival<'a>;
    type Report = DatagramReport;

    /// A datagram for this host in `packet`, or several that came uncut.
    fn on_packet(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        packet: &RxFrame<'_>,
        arrived: &UdpArrival<'_>,
    ) {
        let delivered = match arrived.each {
            0 => self.deliver(cx, net, &arrived.datagram),
            each => self.deliver_each(cx, net, &arrived.datagram, each.into()),
        };
        let reason = match delivered {
            Ok(()) => {
                net.ip.counters.in_delivers += 1;
                return;
            }
            Err(Undelivered::NoSocket) if net.claim(packet, FrameDrop::UdpPort) => return,
            Err(Undelivered::NoSocket) => FrameDrop::UdpPort,
            Err(Undelivered::RecvBuffer) => FrameDrop::UdpBuffer,
            Err(Undelivered::Memory) => FrameDrop::UdpMemory,
        };
        net.ip.counters.drop_frame(reason);
        if reason == FrameDrop::UdpPort {
            // RFC 1122 4.1.3.1: "If a datagram arrives addressed to a UDP port for which there is no
            // pending LISTEN call, UDP SHOULD send an ICMP Port Unreachable message."
            net.refuse(cx, packet.bytes, RefusalReply::PortUnreachable);
        }
    }

    /// An ICMP error about a datagram of ours. Returns whether it can be one: a socket has its port.
    fn on_error(&mut self, cx: &mut Context, net: &mut Net, report: &DatagramReport) -> bool {
        let DatagramReport { from, to, reporter, error } = report;
        let told = DatagramError::new(*to, *reporter, socket_error(*error));
        let known = self.sockets.on_error(from, &told);
        if let IcmpError::TooBig { mtu } = error
            && known
        {
            net.ip.datagram_mtus.note(cx.now, to.addr, *mtu);
        }
        known
    }

    /// Datagrams in the order in which they were handed over, up to [`A_TURN`]: segments come next.
    #[inline(never)]
    fn transmit(&mut self, cx: &mut Context, net: &mut Net, batch: &mut TxBatch) {
        for _ in 0..A_TURN {
            if batch.is_full() || !self.has_output() {
                return;
            }
            batch.fill(|tx| self.write(cx, net, tx) && net.transmit(tx, cx.now));
        }
    }
}

/// Datagrams that arrived, on their way to a socket.
impl UdpHost {
    /// Delivers several datagrams of `each` bytes that came uncut. Together they count once: as delivered, if any was.
    #[inline(never)]
    fn deliver_each(
        &mut self,
        cx: &Context,
        net: &Net,
        all: &Arrived<'_>,
        each: usize,
    ) -> Result<(), Undelivered> {
        // An empty one has no chunk, and is one all the same.
        let (first, behind) = all.data.split_at(each.min(all.data.len()));
        let mut delivered = Err(Undelivered::NoSocket);
        for data in core::iter::once(first).chain(behind.chunks(each)) {
            let this = self.deliver(cx, net, &Arrived { data, ..*all });
            delivered = delivered.or(this);
        }
        delivered
    }

    fn deliver(
        &mut self,
        cx: &Context,
        net: &Net,
        arrived: &Arrived<'_>,
    ) -> Result<(), Undelivered> {
        let room = self.room(cx);
        let addresses = &net.ip.addresses;
        if addresses.accepts_any_address() && addresses.local_index_of(&arrived.to.addr).is_none() {
            return self.sockets.deliver_other(arrived, room);
        }
        self.sockets.deliver(arrived, room)
    }

    /// A datagram that did not come so far as to a socket.
    pub(crate) fn on_refused(&mut self, reason: FrameDrop) {
        let counters = &mut self.sockets.counters;
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

    /// Returns the room for another datagram. They go first where memory is short: text was promised
    /// room by a window, a datagram was promised nothing.
    fn room(&self, cx: &Context) -> Room {
        let budget = &cx.pool.budget;
        // Records are looked at once a millisecond, in which many datagrams can come.
        let held = budget.held() + self.sockets.held() as u64;
        let is_tight = held >= self.most_held + self.bytes_counted as u64;
        if is_tight || budget.pressure() >= Pressure::Tight { Room::None } else { Room::Enough }
    }
}

/// Datagrams that wait to leave, in their turn before segments.
impl UdpHost {
    /// The next datagram, or the next fragment of one, or several that the device cuts.
    #[inline]
    fn write(&mut self, cx: &Context, net: &mut Net, tx: &mut TxSegment) -> bool {
        if self.leaving.is_some() {
            return self.write_rest(cx, net, tx);
        }
        let Some(out) = self.sockets.first_out() else { return false };
        let is_whole = out.segment == 0 && net.ip.carries_whole(cx.now, out);
        if !is_whole || !net.ip.is_source_address(&out.from.addr) {
            return self.write_parts(cx, net, tx);
        }
        net.ip.write_udp(cx.now, out, cx.tunables.hop_limit, tx);
        let Some(out) = self.sockets.next_out() else { return false };
        self.sockets.counters.out_datagrams += 1;
        tx.payload.push(out.data).is_ok()
    }

    fn count_out(&mut self, may_leave: bool, datagrams: u64) {
        let counters = &mut self.sockets.counters;
        let counter =
            if may_leave { &mut counters.out_datagrams } else { &mut counters.out_discards };
        *counter += datagrams;
    }

    /// Begins with a datagram that leaves in several frames, is several, or must not leave.
    #[inline(never)]
    fn write_parts(&mut self, cx: &Context, net: &mut Net, tx: &mut TxSegment) -> bool {
        let Some(out) = self.sockets.next_out() else { return false };
        if out.segment > 0 {
            return self.write_segments(cx, net, out, tx);
        }
        self.write_fragments(cx, net, &out, tx)
    }

    /// More of a datagram.
    #[inline(never)]
    fn write_rest(&mut self, cx: &Context, net: &mut Net, tx: &mut TxSegment) -> bool {
        let Some(leaving) = &mut self.leaving else { return false };
        if let Some(rest) = &mut leaving.fragments {
            let written = net.ip.write_datagram(rest, cx.now, tx);
            leaving.fragments.take_if(|rest| rest.is_done());
            self.leaving.take_if(|leaving| leaving.is_empty());
            return written;
        }
        let segments = leaving.segments.take();
        self.leaving = None;
        segments.is_some_and(|out| self.write_segments(cx, net, out, tx))
    }

    /// As many of several as leave in one frame.
    fn write_segments(
        &mut self,
        cx: &Context,
        net: &mut Net,
        mut out: OutgoingDatagram,
        tx: &mut TxSegment,
    ) -> bool {
        let now = cx.now;
        let len = net.ip.udp_at_once(now, &out).min(out.data.len());
        let data = out.data.split_to(len);
        if !out.data.is_empty() {
            self.leaving.get_or_insert_default().segments = Some(out.clone());
        }
        out.data = data;
        if !net.ip.carries_whole(now, &out) {
            return self.write_fragments(cx, net, &out, tx);
        }
        let may_leave = net.ip.is_source_address(&out.from.addr);
        self.count_out(may_leave, out.segments() as u64);
        if may_leave {
            net.ip.write_udp(now, &out, cx.tunables.hop_limit, tx);
        }
        may_leave && tx.payload.push(out.data).is_ok()
    }

    /// The first fragment of a datagram that the path does not carry whole, if it may be cut.
    fn write_fragments(
        &mut self,
        cx: &Context,
        net: &mut Net,
        out: &OutgoingDatagram,
        tx: &mut TxSegment,
    ) -> bool {
        let refused = out.options.fragmenting == Fragmenting::Refused;
        if refused {
            // The path, or the link, became narrower since it was taken.
            let error = SocketError::TooBig { mtu: net.ip.datagram_mtu(cx.now, &out.to.addr) };
            self.sockets.on_error(&out.from, &DatagramError::new(out.to, out.from.addr, error));
        }
        let may_leave = !refused && net.ip.is_source_address(&out.from.addr);
        self.count_out(may_leave, out.segments() as u64);
        if !may_leave {
            return false;
        }
        let message = message_to_cut(out, cx.tunables.hop_limit);
        self.leaving.get_or_insert_default().fragments = Some(message);
        self.write_rest(cx, net, tx)
    }
}

/// Datagrams that leave in several frames.
#[derive(Default, Debug)]
struct UdpTransmit {
    /// The rest of a datagram.
    fragments: Option<Datagram>,
    /// The rest of several.
    segments: Option<OutgoingDatagram>,
}

impl UdpTransmit {
    /// True if nothing is on its way out.
    const fn is_empty(&self) -> bool {
        self.fragments.is_none() && self.segments.is_none()
    }

    /// Drops what was to leave from an address that is no more.
    fn forget(&mut self, addr: &Address) {
        self.fragments.take_if(|rest| rest.local() == addr);
        self.segments.take_if(|rest| rest.from.addr == *addr);
    }
}

/// Bytes that a host holds while there is room for another datagram: 90 % of `mem.budget`.
const fn most_held(tunables: &Tunables) -> u64 {
    tunables.mem_budget / 10 * 9
}

/// There is no such socket.
const UNKNOWN: UdpError = UdpError::Bind(whimbrel_udp::BindError::Unknown);
/// Datagrams that leave before the connections have a turn: half of a usual batch.
const A_TURN: usize = 32;
