//! Half-open entries: what their SYN-ACKs announce, the connections that they become, and how they go.

use whimbrel_base::cold_path;
use whimbrel_tcp::budget::Budget;
use whimbrel_tcp::conn::{
    ActiveOpen, Connection, EcnFeedback, Handshake, Marking, RouteMetrics, SocketOptions,
    initial_window,
};
use whimbrel_tcp::table::{
    AdvertisedValues, Cookies, FlowHash, Identity, Inheritance, Kind, PassiveOpen, Record, ReuseBy,
    SynEntry,
};
use whimbrel_tcp::tunables::MtuProbing;
use whimbrel_tcp::{Context, DropReason, RxSegment, Tunables, Verdict};
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Mss, WindowSize};

use super::found::ReusedFlow;
use super::work::EventSource;
use super::{Passive, TcpHost};
use crate::Event;
use crate::dial::{SynHandle, Withdrawal};
use crate::ip::FlowKey;
use crate::net::Net;
use crate::tcp_host::connections::ConnectionSlot;

/// The outcome of a segment that found no connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HandshakeStep {
    Verdict(Verdict),
    /// Its handshake is complete: the connection at this place has yet to see it.
    Established(u32),
    /// The listener of its handshake closed since, and the half-open entry went: the segment meets what
    /// there is without it.
    Unheard,
}

/// Values that a connection has by its two ends.
#[derive(Clone, Copy, Debug)]
struct FlowValues {
    timestamp_offset: u32,
    hash: FlowHash,
}

/// The options that a connection which the peer opens has of its listener, of its route, and of both SYNs.
#[derive(Debug)]
pub(crate) struct InheritedOptions {
    options: Option<SocketOptions>,
    metrics: Option<RouteMetrics>,
    ecn: EcnFeedback,
}

impl InheritedOptions {
    #[inline(never)]
    pub(crate) fn apply(self, connection: &mut Connection, cx: &mut Context) {
        if let Some(metrics) = &self.metrics {
            connection.take_metrics(cx, metrics);
        }
        if self.options.is_some() || self.metrics.is_some() {
            connection.inherit(cx, &self.options.unwrap_or_default());
        }
        connection.set_ecn(self.ecn);
        connection.begin_mtu_search(cx);
    }
}

impl TcpHost {
    /// Checks that a listener takes one more complete connection. If not, the reason is counted, but
    /// for the drop.
    pub(crate) fn make_room_for(
        &mut self,
        cx: &mut Context,
        listener: u32,
    ) -> Result<(), DropReason> {
        if self.records.connections.0.len() >= cx.tunables.max_connections as usize {
            cold_path();
            return Err(DropReason::ConnectionLimit);
        }
        let place = self.passive.listeners.get_mut(listener).ok_or(DropReason::NoSocket)?;
        if place.is_accept_queue_full() {
            cold_path();
            place.on_overflow();
            cx.counters.listen_overflows += 1;
            cx.counters.listen_drops += 1;
            return Err(DropReason::ListenOverflow);
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn push_accepted(
        &mut self,
        connection: Connection,
        listener: u32,
        hash: FlowHash,
    ) -> u32 {
        let mut slot = ConnectionSlot::new(connection, hash);
        slot.unaccepted = true;
        let place = self.records.connections.0.insert(slot);
        if let Some(listener) = self.passive.listeners.get_mut(listener) {
            let first = listener.waiting() == 0;
            let _ = listener.push_accepted(place);
            if first && listener.tells() {
                self.work.events.push_back(EventSource::Listener(listener.id()));
            }
        }
        place
    }

    /// The connection of a complete handshake, in its listener's accept queue, for which
    /// [`TcpHost::make_room_for`] found room. The flow table does not lead to it yet.
    // Always, or those that are not plain would save the caller's registers twice: 54 instructions.
    #[inline(always)]
    pub(crate) fn create_connection(
        &mut self,
        cx: &mut Context,
        net: &Net,
        entry: &SynEntry,
        timestamp_offset: u32,
        hash: FlowHash,
    ) -> u32 {
        match self.passive.inheritance(cx, net, entry) {
            Inheritance::Nothing => self.create_plain(cx, net, entry, timestamp_offset, hash),
            more => {
                let values = FlowValues { timestamp_offset, hash };
                self.create_rare(cx, net, entry, values, more)
            }
        }
    }

    #[inline(never)]
    fn create_plain(
        &mut self,
        cx: &mut Context,
        net: &Net,
        entry: &SynEntry,
        timestamp_offset: u32,
        hash: FlowHash,
    ) -> u32 {
        let mss = net.ip.mss_to(entry.remote_addr());
        let handshake = self.handshake(cx, net, entry, timestamp_offset, mss);
        let connection = Connection::from_handshake(cx, &handshake);
        self.push_accepted(connection, entry.listener(), hash)
    }

    /// Creates a connection that inherits options, or whose times are recorded.
    #[cold]
    #[inline(never)]
    fn create_rare(
        &mut self,
        cx: &mut Context,
        net: &Net,
        entry: &SynEntry,
        FlowValues { timestamp_offset, hash }: FlowValues,
        inheritance: Inheritance,
    ) -> u32 {
        let has_options = inheritance == Inheritance::Options;
        let mss = if has_options {
            self.passive.listener_mss(cx, net, entry)
        } else {
            net.ip.mss_to(entry.remote_addr())
        };
        let handshake = self.handshake(cx, net, entry, timestamp_offset, mss);
        let connection = Connection::from_handshake(cx, &handshake);
        let place = self.push_accepted(connection, entry.listener(), hash);
        if has_options {
            self.apply_inherited(cx, net, entry, place);
        }
        self.note_opened(cx, entry);
        place
    }

    /// Notes when a connection began to wait at its listener, and how long its handshake took, if that is recorded.
    pub(crate) fn note_opened(&mut self, cx: &Context, entry: &SynEntry) {
        if self.passive.listeners.latencies().is_none() {
            return;
        }
        let millis = self.records.syns.handshake_millis(entry, cx.now);
        self.passive.listeners.note_opened(entry.listener(), cx.now, millis);
    }

    /// The connection of an entry, in its place, gets what it has of its listener and of its route.
    #[inline(never)]
    pub(crate) fn apply_inherited(
        &mut self,
        cx: &mut Context,
        net: &Net,
        entry: &SynEntry,
        place: u32,
    ) {
        let inherited = self.passive.inherited(net, entry);
        if let Some(slot) = self.records.connections.0.get_mut(place) {
            inherited.apply(&mut slot.connection, cx);
        }
    }

    /// Returns the values of both SYNs.
    #[inline(always)]
    pub(crate) fn handshake(
        &self,
        cx: &Context,
        net: &Net,
        entry: &SynEntry,
        timestamp_offset: u32,
        mss: Mss,
    ) -> Handshake {
        let open = ActiveOpen {
            remote: *entry.remote_addr(),
            remote_port: entry.remote().port,
            local_port: entry.local_port(),
            local_index: entry.local_index(),
            iss: entry.iss(),
            timestamp_offset,
            mss,
        };
        let peer_mss = net.ip.path_mss(cx.now, entry.mss(), entry.remote_addr());
        entry.handshake(open, peer_mss, cx.now)
    }

    /// Returns the values of both SYNs, where listener or route may set options.
    #[inline(never)]
    pub(crate) fn rare_handshake(&self, cx: &Context, net: &Net, entry: &SynEntry) -> Handshake {
        let mss = self.passive.listener_mss(cx, net, entry);
        self.handshake(cx, net, entry, self.timestamp_offset(net, entry), mss)
    }

    /// The values that segments of an entry advertise.
    #[inline(never)]
    pub(crate) fn advertised(&self, cx: &Context, net: &Net, entry: &SynEntry) -> AdvertisedValues {
        let (mss, limit) = if self.passive.has_defaults(net, entry) {
            (net.ip.mss_to(entry.remote_addr()), cx.tunables.recv_buffer)
        } else {
            self.passive.advertised_limits(cx, net, entry)
        };
        self.advertised_of(cx, net, entry, mss, limit)
    }

    /// The values that segments of an entry advertise whose receive buffer has up to `limit` bytes.
    // Always, and apart from what listener and route say: one function for both cost 0.4 % of a handshake.
    #[inline(always)]
    pub(crate) fn advertised_of(
        &self,
        cx: &Context,
        net: &Net,
        entry: &SynEntry,
        mss: Mss,
        limit: u32,
    ) -> AdvertisedValues {
        let tsval = Identity::tsval(cx.tick, self.timestamp_offset(net, entry));
        AdvertisedValues { tsval, mss, window: initial_window(limit) }
    }

    /// Returns the marking of packets that answer for a record, if it is still there.
    pub(crate) fn marking_of(&self, cx: &Context, record: Option<Record>) -> Marking {
        let marking = record.and_then(|record| match record.kind() {
            Kind::Connection => {
                let slot = self.records.connections.0.get(record.index())?;
                Some(slot.connection.marking(&cx.tunables))
            }
            Kind::SynEntry => {
                Some(self.passive.half_open_marking(cx, self.records.syns.get(record.index())?))
            }
            Kind::TimeWait => {
                let number = self.records.waits.get(record.index())?.marking();
                Some(self.records.markings.get(number)?.ip)
            }
        });
        marking.unwrap_or_else(|| Marking::from_tunables(&cx.tunables))
    }

    pub(crate) fn timestamp_offset(&self, net: &Net, entry: &SynEntry) -> u32 {
        let local = net.ip.addresses.get(entry.local_index());
        local.map_or(0, |local| self.identity.timestamp_offset(local, entry.remote_addr()))
    }

    /// The window of a connection whose handshake a cookie completes while all of the budget is used.
    pub(crate) fn narrow_window(&self, cx: &Context, net: &Net, entry: &SynEntry) -> WindowSize {
        let usual = self.advertised(cx, net, entry).window;
        let narrow = Budget::MEMORY_LIMITED_SEGMENTS
            * u32::from(self.passive.listener_mss(cx, net, entry).get());
        usual.min(WindowSize::new(narrow))
    }

    /// All of the budget is used, and has been since before any cookie that is still good: this
    /// connection's window was announced as a narrow one. Any other keeps what it was promised
    /// (RFC 9293 3.8.6).
    pub(crate) fn narrow_if_full(&mut self, cx: &Context, net: &Net, place: u32, entry: &SynEntry) {
        let lasting = |wide| cx.now.since(wide) > Cookies::LIFETIME;
        if !cx.pool.budget.is_full() || !self.passive.wide_cookie.is_none_or(lasting) {
            return;
        }
        let window = self.narrow_window(cx, net, entry);
        if let Some(slot) = self.records.connections.0.get_mut(place) {
            slot.connection.narrow(window);
        }
    }

    /// The flow table leads to a new record from now on.
    #[inline(always)]
    pub(crate) fn link_record(
        &mut self,
        net: &mut Net,
        record: Record,
        hash: FlowHash,
        opening: ReusedFlow,
    ) {
        match opening.replaces {
            Some((wait, by)) => {
                self.records.flows.replace(hash, Record::new(Kind::TimeWait, wait), record);
                if by == ReuseBy::Timestamp {
                    self.drop_displaced(net, wait);
                }
            }
            None => self.records.flows.insert(hash, record),
        }
    }

    /// A record goes that the flow table no longer leads to.
    pub(crate) fn drop_displaced(&mut self, net: &mut Net, index: u32) {
        if let Some(wait) = self.records.waits.remove(index) {
            self.active.on_wait_gone(&mut net.ip.addresses, &wait);
        }
    }

    /// The peer of a half-open entry gave up: the entry goes.
    #[cold]
    #[inline(never)]
    pub(crate) fn reset_half_open(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
    ) -> Verdict {
        cx.counters.attempt_fails += 1;
        cx.counters.embryonic_resets += 1;
        if let Some(entry) = self.records.syns.remove(index, &mut self.passive.listeners) {
            self.forget_half_open(cx, net, index, &entry);
        }
        Verdict::Accepted
    }

    /// A half-open entry is gone without a connection.
    pub(crate) fn forget_half_open(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        entry: &SynEntry,
    ) {
        self.forget_half_open_for(cx, net, index, entry, Withdrawal::Reset);
    }

    /// Forgets a half-open entry that is gone without a connection, for the reason `why`.
    pub(crate) fn forget_half_open_for(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        entry: &SynEntry,
        why: Withdrawal,
    ) {
        let returned = self.records.unlink_half_open(index, entry);
        cx.counters.time_wait_returned += u64::from(returned);
        if entry.is_by_verdict() {
            self.on_withdrawn(cx, net, index, entry, why);
        }
    }

    /// A handshake that a verdict decides about, or decided, is over, and no connection came of it.
    #[cold]
    fn on_withdrawn(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        entry: &SynEntry,
        why: Withdrawal,
    ) {
        if entry.is_held() {
            cx.counters.verdict_withdrawn += 1;
        }
        if entry.was_asked() {
            // It was just taken out, so that its place is on its next generation.
            let now = self.records.syn_handle(index, entry);
            let syn = SynHandle { generation: now.generation.wrapping_sub(1), ..now };
            self.passive.dials.news.push_back(Event::Withdrawn(syn, why));
        }
        self.leave_destination(net, index, entry);
    }

    /// One handshake less with a destination.
    pub(crate) fn leave_destination(&mut self, net: &mut Net, index: u32, entry: &SynEntry) {
        self.passive.dials.leave(index, &FlowKey::of_half_open(entry));
        net.ip.addresses.release(entry.local_index());
    }
}

impl Passive {
    /// The options that the connection of an entry has of its listener and of its route.
    #[inline(never)]
    pub(crate) fn inherited(&self, net: &Net, entry: &SynEntry) -> InheritedOptions {
        // Most listeners have nothing to hand down, and it need not be copied.
        let listener = self.listeners.get(entry.listener()).filter(|it| !it.has_default_options());
        InheritedOptions {
            options: listener.map(|listener| *listener.options()),
            metrics: net.ip.routes.metrics_to(entry.remote_addr()).copied(),
            ecn: entry.ecn_feedback(),
        }
    }

    /// The MSS that listener and route have advertised, and the most that is buffered, which bounds the window.
    fn advertised_limits(&self, cx: &Context, net: &Net, entry: &SynEntry) -> (Mss, u32) {
        let remote = entry.remote_addr();
        let pipe = net.ip.recv_pipe_to(remote, &cx.tunables);
        let limit =
            self.listener_options(entry).map(|options| options.recv_limit(pipe, &cx.tunables));
        let advmss = net.ip.routes.metrics_to(remote).and_then(|metrics| metrics.advmss);
        let mss = self.listener_mss(cx, net, entry);
        let least = cx.tunables.least_mss;
        let mss = advmss.map_or(mss, |most| mss.min(Mss::new(most.max(least))));
        (mss, limit.unwrap_or(cx.tunables.recv_buffer))
    }

    /// True if neither the listener nor a route sets options for an entry's connection.
    #[inline]
    pub(crate) fn has_defaults(&self, net: &Net, entry: &SynEntry) -> bool {
        let listener = self.listeners.get(entry.listener());
        !net.ip.routes.has_metrics() && listener.is_none_or(|it| it.has_default_options())
    }

    /// Returns what a connection inherits of its listener or a route, or has of its own, that no plain one has.
    #[inline]
    fn inheritance(&self, cx: &Context, net: &Net, entry: &SynEntry) -> Inheritance {
        if net.ip.routes.has_metrics()
            || entry.began_with_ecn()
            || cx.tunables.mtu_probing == MtuProbing::Always
        {
            return Inheritance::Options;
        }
        let listener = self.listeners.get(entry.listener());
        listener.map_or(Inheritance::Nothing, |listener| listener.inheritance())
    }

    /// The options of an entry's listener.
    fn listener_options(&self, entry: &SynEntry) -> Option<&SocketOptions> {
        self.listeners.get(entry.listener()).map(|listener| listener.options())
    }

    /// The MSS that the path and the listener's options admit.
    #[inline(never)]
    pub(crate) fn listener_mss(&self, cx: &Context, net: &Net, entry: &SynEntry) -> Mss {
        let fitting = net.ip.mss_to(entry.remote_addr());
        let most = self.listener_options(entry).and_then(|options| options.overrides.max_seg);
        let least = cx.tunables.least_mss;
        most.map_or(fitting, |most| fitting.min(Mss::new(most.max(least))))
    }

    /// Returns the marking of packets for a half-open entry.
    pub(crate) fn half_open_marking(&self, cx: &Context, entry: &SynEntry) -> Marking {
        let listener = self.listeners.get(entry.listener()).filter(|it| !it.has_default_options());
        match listener {
            Some(listener) => {
                let is_v4 = entry.remote_addr().is_v4();
                listener.options().overrides.marking(is_v4, &cx.tunables)
            }
            None => Marking::from_tunables(&cx.tunables),
        }
    }
}

/// The half-open entry of a SYN, which may ask for ECN.
#[inline(always)]
pub(crate) fn half_open(syn: &RxSegment<'_>, open: PassiveOpen, tunables: &Tunables) -> SynEntry {
    let mut entry = SynEntry::from_syn(&syn.header, open, tunables);
    if syn.header.flags.intersects(TcpFlags::ACE) {
        cold_path();
        entry.negotiate_accurate_ecn(syn.header.flags, syn.class.ecn(), tunables);
    }
    entry
}
