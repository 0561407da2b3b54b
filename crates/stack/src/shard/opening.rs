//! How connections begin from the peer's side: SYN to accept queue.

use whimbrel_base::cold_path;
use whimbrel_base::packet::TxSegment;
use whimbrel_tcp::conn::RouteMetrics;
use whimbrel_tcp::conn::{
    ActiveOpen, Connection, Handshake, Marking, RareOptions, SocketOptions, initial_window,
};
use whimbrel_tcp::table::{
    Announced, Due, Families, FlowHash, Identity, Kind, PassiveOpen, Record, ReuseBy, SynEntry,
    SynStep,
};
use whimbrel_tcp::{Context, DropReason, Reply, RxSegment, Verdict};
use whimbrel_wire::{Endpoint, Mss};

use super::commands::ReleaseBy;
use super::cookies::WithoutEntry;
use super::fast_open::FastOpenStep;
use super::found::{FoundSegment, ReusedFlow};
use super::{EventSource, ListenError, Shard};
use crate::ListenerId;
use crate::connections::ConnectionSlot;
use crate::dial::Withdrawal;
use crate::ip::{FlowKey, SegmentOut};
use crate::replies::Pending;

/// What a connection that the peer opens has of its listener and of its route.
#[derive(Debug)]
pub(super) struct HandedDown {
    options: Option<SocketOptions>,
    metrics: Option<RouteMetrics>,
}

impl HandedDown {
    #[inline(never)]
    pub(super) fn give_to(self, connection: &mut Connection, cx: &mut Context) {
        if let Some(metrics) = &self.metrics {
            connection.take_metrics(cx, metrics);
        }
        if self.options.is_some() || self.metrics.is_some() {
            connection.inherit(cx, &self.options.unwrap_or_default());
        }
    }
}

/// The listener that was found last, and at which port of which of this host's addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    local_port: u16,
    local_index: u16,
    listener: u32,
}

impl Heard {
    #[inline]
    const fn is_at(self, key: &FlowKey) -> bool {
        self.local_port == key.local_port && self.local_index == key.local_index
    }
}

/// Listeners, and the SYNs that are for them.
impl Shard {
    /// Listens at `at`; its address may be unspecified (`0.0.0.0` or `::`) for any of the
    /// family. At most `backlog` (0 counts as 1) complete connections wait to be accepted.
    pub fn listen(&mut self, at: Endpoint, backlog: u32) -> Result<ListenerId, ListenError> {
        self.listen_for(at, Families::Own, backlog)
    }

    /// The same; at `::` for IPv4 connections too, if `families` says so.
    pub fn listen_for(
        &mut self,
        at: Endpoint,
        families: Families,
        backlog: u32,
    ) -> Result<ListenerId, ListenError> {
        if at.port == 0 {
            return Err(ListenError::PortZero);
        }
        if !at.addr.is_unspecified() && !self.net.ip.addresses.is_local(&at.addr) {
            return Err(ListenError::NotLocal(at));
        }
        self.tcp.passive.heard = None;
        self.tcp
            .passive
            .listeners
            .add(at, families, backlog)
            .map_err(|taken| ListenError::InUse(taken.at))
    }

    /// Stops listening: connections that nobody accepted are reset, half-open ones forgotten. SYNs that wait
    /// for an answer are refused.
    pub fn close_listener(&mut self, listener: ListenerId) {
        if self.tcp.passive.listeners.resolve(listener).is_some_and(|listener| listener.is_any()) {
            self.refuse_held();
        }
        self.tcp.passive.heard = None;
        let unaccepted = self.tcp.passive.listeners.remove(listener).unwrap_or_default();
        for index in unaccepted {
            if let Some(slot) = self.tcp.records.connections.0.get_mut(index) {
                slot.unaccepted = false;
                self.let_go(index, ReleaseBy::Abort);
            }
        }
    }

    /// The listener that a SYN of this flow is for.
    #[inline]
    pub(super) fn listener_for(&mut self, key: &FlowKey) -> Option<u32> {
        // Most are for the same. Where listeners or addresses come and go, this is forgotten.
        match self.tcp.passive.heard {
            Some(heard) if heard.is_at(key) => Some(heard.listener),
            _ => self.find_listener(key),
        }
    }

    #[inline(never)]
    fn find_listener(&mut self, key: &FlowKey) -> Option<u32> {
        let FlowKey { local_port, local_index, .. } = *key;
        let Some(addr) = self.net.ip.addresses.local(local_index) else {
            return self.tcp.passive.listeners.any();
        };
        let listener = self.tcp.passive.listeners.find(&Endpoint::new(*addr, local_port))?;
        self.tcp.passive.heard = Some(Heard { local_port, local_index, listener });
        Some(listener)
    }

    /// A SYN for a listener (RFC 9293 3.10.7.2).
    pub(super) fn on_syn(
        &mut self,
        listener: u32,
        found: &FoundSegment<'_>,
        opening: ReusedFlow,
    ) -> Verdict {
        let pipe = self.net.ip.recv_pipe_to(&found.arrival.key.remote, &self.cx.tunables);
        let Some(place) = self.tcp.passive.listeners.get_mut(listener) else {
            return Verdict::Drop(DropReason::NoSocket);
        };
        if place.is_any() {
            return self.on_syn_for_any(listener, found, opening);
        }
        if place.is_accept_queue_full() {
            cold_path();
            // One more half-open entry could not complete: better that the client's SYN returns
            // later than that it believes to be connected.
            place.on_overflow();
            self.cx.counters.listen_overflows += 1;
            self.cx.counters.listen_drops += 1;
            return Verdict::Drop(DropReason::ListenOverflow);
        }
        let scale_limit = place.options().scale_limit(&self.cx.tunables).max(pipe);
        let takes_fast_open = place.fast_open_limit() > 0;
        let (key, hash) = (&found.arrival.key, found.hash);
        // A cookie would say nothing of the record that has to come back if the handshake fails.
        let reuses = opening.replaces.is_some();
        if let Some(verdict) = self.cookie_instead(listener, reuses) {
            cold_path();
            return match verdict {
                WithoutEntry::Cookie => self.send_cookie(listener, found, scale_limit),
                WithoutEntry::Drop => Verdict::Drop(DropReason::SynCacheFull),
            };
        }
        let Some(iss) = self.tcp.choose_iss(&self.cx, &self.net, key, opening.iss_floor) else {
            return Verdict::Drop(DropReason::NoSocket);
        };
        let open = PassiveOpen {
            remote: key.remote,
            local_index: key.local_index,
            listener,
            iss,
            scale_limit,
            time_wait: opening.kept(),
        };
        let syn = &found.arrival.segment.header;
        let mut entry = SynEntry::from_syn(syn, open, &self.cx.tunables);
        // Only now that there is room for an entry: without a good cookie it opens as any other SYN.
        if takes_fast_open {
            cold_path();
            match self.process_fast_open(listener, found, opening) {
                FastOpenStep::Ignore => {}
                FastOpenStep::Grant(asked) => entry.grant_fast_open(&asked),
                FastOpenStep::Open(renewed) => {
                    return self.open_at_syn(&entry, found, opening, renewed);
                }
            }
        }
        self.hold_half_open(entry, hash, opening)
    }

    /// A SYN gets its half-open entry, for which there is room, and its SYN-ACK.
    #[inline(always)]
    fn hold_half_open(&mut self, entry: SynEntry, hash: FlowHash, opening: ReusedFlow) -> Verdict {
        let index =
            self.tcp.records.syns.insert(entry, &mut self.tcp.passive.listeners, self.cx.now);
        self.cx.counters.syn_received += 1;
        self.link_half_open(index, hash, opening);
        // Queued by index: it is written when it is its turn, of the entry as it is then.
        self.net.reply(&mut self.cx, Pending::SynAck(index));
        Verdict::Accepted
    }

    /// The flow table leads to a new entry from now on.
    #[inline(always)]
    pub(super) fn link_half_open(&mut self, index: u32, hash: FlowHash, opening: ReusedFlow) {
        let record = Record::new(Kind::SynEntry, index);
        match opening.replaces {
            Some((wait, by)) => {
                self.tcp.records.flows.replace(hash, Record::new(Kind::TimeWait, wait), record);
                if by == ReuseBy::Timestamp {
                    self.drop_displaced(wait);
                }
            }
            None => self.tcp.records.flows.insert(hash, record),
        }
    }

    /// A segment that hit a half-open entry.
    pub(super) fn on_half_open_segment(&mut self, index: u32, found: &FoundSegment<'_>) -> Verdict {
        let arrival = &found.arrival;
        let pipe = self.net.ip.recv_pipe_to(&arrival.key.remote, &self.cx.tunables);
        let Some(entry) = self.tcp.records.syns.get_mut(index) else {
            return Verdict::Drop(DropReason::Closed);
        };
        let Some(listener) = self.tcp.passive.listeners.get(entry.listener()) else {
            return self.on_unheard_segment(index, found);
        };
        if entry.is_held() {
            return self.on_held_segment(index, found);
        }
        let limit = match listener.is_usual() && pipe == 0 {
            true => self.cx.tunables.recv_buffer,
            false => listener.options().recv_limit(pipe, &self.cx.tunables),
        };
        let window = initial_window(limit);
        let step = entry.judge(&arrival.segment, window, &self.cx.tunables);
        // A comparison, where a match of all would jump by a table.
        if step == SynStep::Complete {
            return self.complete(index, found);
        }
        self.decline(step, index, found)
    }

    /// A segment does not complete its handshake.
    #[inline(never)]
    fn decline(&mut self, step: SynStep, index: u32, found: &FoundSegment<'_>) -> Verdict {
        match step {
            // Its caller went on by itself.
            SynStep::Complete => Verdict::Accepted,
            SynStep::Repeat => self.repeat_half_open(index, found),
            SynStep::Reset => self.reset_half_open(index),
            SynStep::Challenge(reason) => self.challenge_half_open(index, reason),
            SynStep::Refuse(reply, reason) => self.refuse_half_open(index, found, &reply, reason),
            SynStep::Drop(reason) => Verdict::Drop(reason),
        }
    }

    /// The SYN of a half-open entry came again: so does what answers it.
    #[cold]
    #[inline(never)]
    fn repeat_half_open(&mut self, index: u32, found: &FoundSegment<'_>) -> Verdict {
        if let Some(entry) = self.tcp.records.syns.get_mut(index) {
            entry.on_repeated_syn(&found.arrival.segment.header.whole());
            self.net.reply(&mut self.cx, Pending::SynAck(index));
        }
        Verdict::Accepted
    }

    /// The peer of a half-open entry gave up: the entry goes.
    #[cold]
    #[inline(never)]
    pub(super) fn reset_half_open(&mut self, index: u32) -> Verdict {
        self.cx.counters.attempt_fails += 1;
        self.cx.counters.embryonic_resets += 1;
        if let Some(entry) = self.tcp.records.syns.remove(index, &mut self.tcp.passive.listeners) {
            self.forget_half_open(index, &entry);
        }
        Verdict::Accepted
    }

    #[cold]
    #[inline(never)]
    fn challenge_half_open(&mut self, index: u32, reason: DropReason) -> Verdict {
        let entry = self.tcp.records.syns.get_mut(index).and_then(|entry| {
            entry.may_challenge(self.cx.now, &self.cx.tunables).then_some(*entry)
        });
        let Some(entry) = entry else {
            self.cx.counters.syn_received_acks_skipped += 1;
            return Verdict::Drop(reason);
        };
        self.cx.counters.challenge_acks += 1;
        Verdict::Reply(entry.challenge_reply(self.announced(&entry)), reason)
    }

    /// An acknowledgment of something else than the entry's SYN-ACK. It may be that of a cookie: the SYN came
    /// first while there was no room for an entry, and came again when there was. The client took the
    /// SYN-ACK that reached it first, and a reset would end what it holds for a connection.
    #[cold]
    #[inline(never)]
    fn refuse_half_open(
        &mut self,
        index: u32,
        found: &FoundSegment<'_>,
        reply: &Reply,
        reason: DropReason,
    ) -> Verdict {
        let Some(entry) = self.tcp.records.syns.get(index) else { return Verdict::Drop(reason) };
        let listener = entry.listener();
        if self.brings_cookie(listener, found) {
            if let Some(entry) =
                self.tcp.records.syns.remove(index, &mut self.tcp.passive.listeners)
            {
                self.forget_half_open(index, &entry);
            }
            return self.on_cookie(listener, found);
        }
        let stamps = entry.timestamps(self.announced(entry).tsval);
        Verdict::Reply(reply.stamped(stamps), reason)
    }

    /// A segment of a handshake whose listener closed since: the entry goes, and the segment meets
    /// what there is without it.
    #[cold]
    fn on_unheard_segment(&mut self, index: u32, found: &FoundSegment<'_>) -> Verdict {
        if let Some(entry) = self.tcp.records.syns.remove(index, &mut self.tcp.passive.listeners) {
            self.on_orphaned(index, &entry);
        }
        match self.tcp.records.find(found.hash, &found.arrival.key) {
            Some(wait) => self.on_waiting_segment(wait.index(), found),
            None => self.on_stray_segment(found),
        }
    }

    fn on_orphaned(&mut self, index: u32, entry: &SynEntry) {
        self.cx.counters.attempt_fails += 1;
        self.forget_half_open(index, entry);
    }

    /// The third segment: the connection is built whole, enters its listener's accept queue, and
    /// only then sees the segment.
    fn complete(&mut self, index: u32, found: &FoundSegment<'_>) -> Verdict {
        let arrival = &found.arrival;
        let Some(entry) = self.tcp.records.syns.get(index) else {
            return Verdict::Drop(DropReason::Closed);
        };
        let Some(listener) = self.tcp.passive.listeners.get_mut(entry.listener()) else {
            return Verdict::Drop(DropReason::NoSocket);
        };
        let entry = *entry;
        if listener.defers(entry.retries()) && arrival.segment.is_empty() {
            cold_path();
            self.cx.counters.defer_accept_drops += 1;
            if let Some(entry) = self.tcp.records.syns.get_mut(index) {
                entry.on_deferred(self.cx.now);
            }
            return Verdict::Drop(DropReason::AcceptDeferred);
        }
        match self.make_room_for(entry.listener()) {
            Ok(()) => {}
            Err(DropReason::ListenOverflow) if self.cx.tunables.abort_on_overflow => {
                cold_path();
                return self.refuse_overflow(index, &entry, &arrival.segment);
            }
            // The entry stays, its SYN-ACK is repeated, and the peer's answer tries again.
            Err(reason) => {
                cold_path();
                return Verdict::Drop(reason);
            }
        }
        let place = if entry.is_by_verdict() {
            self.seat_admitted(index, &entry, found.hash)
        } else {
            self.seat(&entry, self.timestamp_offset(&entry), found.hash)
        };
        let (half_open, whole) =
            (Record::new(Kind::SynEntry, index), Record::new(Kind::Connection, place));
        self.tcp.records.flows.replace(found.hash, half_open, whole);
        self.tcp.records.syns.remove_answered(index, &mut self.tcp.passive.listeners);
        // The TIME-WAIT record that the entry kept is of no more use.
        if let Some(wait) = self.tcp.records.wait_kept_by(&entry) {
            self.drop_displaced(wait);
        }
        self.on_connection_segment(place, arrival)
    }

    /// Whether a listener takes one more complete connection. If not, the reason is counted, but
    /// for the drop.
    pub(super) fn make_room_for(&mut self, listener: u32) -> Result<(), DropReason> {
        if self.tcp.records.connections.0.len() >= self.cx.tunables.max_connections as usize {
            cold_path();
            return Err(DropReason::ConnectionLimit);
        }
        let place = self.tcp.passive.listeners.get_mut(listener).ok_or(DropReason::NoSocket)?;
        if place.is_accept_queue_full() {
            cold_path();
            place.on_overflow();
            self.cx.counters.listen_overflows += 1;
            self.cx.counters.listen_drops += 1;
            return Err(DropReason::ListenOverflow);
        }
        Ok(())
    }

    /// The accept queue is full, and the client is to know.
    fn refuse_overflow(
        &mut self,
        index: u32,
        entry: &SynEntry,
        segment: &RxSegment<'_>,
    ) -> Verdict {
        self.cx.counters.attempt_fails += 1;
        self.cx.counters.embryonic_resets += 1;
        let stamps = entry.timestamps(self.announced(entry).tsval);
        self.tcp.records.syns.remove(index, &mut self.tcp.passive.listeners);
        self.forget_half_open(index, entry);
        Verdict::Reply(Reply::reset_for(segment).stamped(stamps), DropReason::ListenOverflow)
    }

    /// The connection of a complete handshake, in its listener's accept queue, for which
    /// [`Shard::make_room_for`] found room. The flow table does not lead to it yet.
    pub(super) fn seat(&mut self, entry: &SynEntry, timestamp_offset: u32, hash: FlowHash) -> u32 {
        let usual = self.is_usual(entry);
        let mss = if usual { self.usual_mss(entry) } else { self.own_mss(entry) };
        let handshake = self.handshake(entry, timestamp_offset, mss);
        let connection = Connection::from_handshake(&mut self.cx, &handshake);
        let place = self.enqueue(connection, entry.listener(), hash);
        if !usual {
            self.hand_down(entry, place);
        }
        place
    }

    /// The connection of an entry, in its place, gets what it has of its listener and of its route.
    #[inline(never)]
    pub(super) fn hand_down(&mut self, entry: &SynEntry, place: u32) {
        let handed_down = self.handed_down(entry);
        if let Some(slot) = self.tcp.records.connections.0.get_mut(place) {
            handed_down.give_to(&mut slot.connection, &mut self.cx);
        }
    }

    #[inline(always)]
    pub(super) fn enqueue(&mut self, connection: Connection, listener: u32, hash: FlowHash) -> u32 {
        let mut slot = ConnectionSlot::new(connection, hash);
        slot.unaccepted = true;
        let place = self.tcp.records.connections.0.insert(slot);
        if let Some(listener) = self.tcp.passive.listeners.get_mut(listener) {
            let first = listener.waiting() == 0;
            let _ = listener.push_accepted(place);
            if first && listener.tells() {
                self.tcp.work.events.push_back(EventSource::Listener(listener.id()));
            }
        }
        place
    }

    /// What the connection of an entry has of its listener and of its route.
    #[inline(never)]
    pub(super) fn handed_down(&self, entry: &SynEntry) -> HandedDown {
        let metrics = self.net.ip.routes.metrics_to(entry.remote_addr()).copied();
        HandedDown { options: self.inherited_options(entry), metrics }
    }

    /// What the connection of an entry inherits. Most listeners have nothing to hand down, and it
    /// need not be copied.
    fn inherited_options(&self, entry: &SynEntry) -> Option<SocketOptions> {
        let listener = self.tcp.passive.listeners.get(entry.listener()).filter(|it| !it.is_usual());
        listener.map(|listener| *listener.options())
    }

    /// What both SYNs said.
    #[inline(always)]
    pub(super) fn handshake(&self, entry: &SynEntry, timestamp_offset: u32, mss: Mss) -> Handshake {
        Handshake {
            open: ActiveOpen {
                remote: *entry.remote_addr(),
                remote_port: entry.remote().port,
                local_port: entry.local_port(),
                local_index: entry.local_index(),
                iss: entry.iss(),
                timestamp_offset,
                mss,
            },
            irs: entry.irs(),
            peer_mss: self.net.ip.path_mss(self.cx.now, entry.mss(), entry.remote_addr()),
            scales: entry.is_scaled().then(|| (entry.snd_wind_shift(), entry.rcv_wind_shift())),
            ts_recent: entry.ts_recent(),
            sack: entry.has_sack(),
            round_trip: entry.round_trip(self.cx.now),
        }
    }

    /// The SYN-ACK of an entry, if it is still there. One that waits for a verdict has the place of another that
    /// was answered.
    // Few segments are: inlined, it would take registers from those that are not.
    #[inline(never)]
    pub(super) fn write_syn_ack(&mut self, index: u32, tx: &mut TxSegment) -> bool {
        let entry = self.tcp.records.syns.get(index).filter(|entry| !entry.is_held());
        let Some(entry) = entry else { return false };
        let (announced, marking) = if self.is_usual(entry) {
            (self.usually_announced(entry), Marking::usual(&self.cx.tunables))
        } else {
            (self.announced(entry), self.half_open_marking(entry))
        };
        let mut syn_ack = entry.syn_ack(announced);
        if let RareOptions::Syn(opening) = &mut syn_ack.rare {
            opening.fast_open = self.granted(entry);
        }
        self.cx.counters.out_segs += 1;
        let (key, order) = (FlowKey::of_half_open(entry), self.cx.tunables.option_order);
        self.net.ip.write_segment(&SegmentOut::of_flow(&key, &syn_ack, marking, order), tx)
    }

    #[inline(never)]
    pub(super) fn announced(&self, entry: &SynEntry) -> Announced {
        if self.is_usual(entry) {
            return self.usually_announced(entry);
        }
        let (mss, window) = self.asked_to_announce(entry);
        self.announce(entry, mss, window)
    }

    /// The same where neither its listener nor a route has anything to say of it.
    #[inline(always)]
    fn usually_announced(&self, entry: &SynEntry) -> Announced {
        self.announce(entry, self.usual_mss(entry), self.cx.tunables.recv_buffer)
    }

    #[inline(always)]
    fn announce(&self, entry: &SynEntry, mss: Mss, window: u32) -> Announced {
        Announced {
            tsval: Identity::tsval(self.cx.tick, self.timestamp_offset(entry)),
            mss,
            window: initial_window(window),
        }
    }

    /// What the listener and the route ask to announce: MSS and window.
    fn asked_to_announce(&self, entry: &SynEntry) -> (Mss, u32) {
        let remote = entry.remote_addr();
        let pipe = self.net.ip.recv_pipe_to(remote, &self.cx.tunables);
        let limit =
            self.inherited(entry).map(|options| options.recv_limit(pipe, &self.cx.tunables));
        let advmss = self.net.ip.routes.metrics_to(remote).and_then(|metrics| metrics.advmss);
        let mss = self.own_mss(entry);
        let least = self.cx.tunables.least_mss;
        let mss = advmss.map_or(mss, |most| mss.min(Mss::new(most.max(least))));
        (mss, limit.unwrap_or(self.cx.tunables.recv_buffer))
    }

    /// Whether neither its listener nor a route has anything to say of an entry's connection.
    #[inline]
    fn is_usual(&self, entry: &SynEntry) -> bool {
        !self.net.ip.routes.has_metrics()
            && self
                .tcp
                .passive
                .listeners
                .get(entry.listener())
                .is_none_or(|listener| listener.is_usual())
    }

    /// What the connection of a half-open entry will have of its listener.
    fn inherited(&self, entry: &SynEntry) -> Option<&SocketOptions> {
        self.tcp.passive.listeners.get(entry.listener()).map(|listener| listener.options())
    }

    /// The MSS to announce.
    #[inline(never)]
    pub(super) fn own_mss(&self, entry: &SynEntry) -> Mss {
        let fitting = self.usual_mss(entry);
        let most = self.inherited(entry).and_then(|options| options.overrides.max_seg);
        let least = self.cx.tunables.least_mss;
        most.map_or(fitting, |most| fitting.min(Mss::new(most.max(least))))
    }

    /// Our MSS to an entry's peer where its listener asks for none of its own.
    #[inline]
    fn usual_mss(&self, entry: &SynEntry) -> Mss {
        self.net.ip.mss_to(entry.remote_addr())
    }

    /// What packets for a half-open entry say.
    pub(super) fn half_open_marking(&self, entry: &SynEntry) -> Marking {
        let listener = self.tcp.passive.listeners.get(entry.listener()).filter(|it| !it.is_usual());
        match listener {
            Some(listener) => {
                let is_v4 = entry.remote_addr().is_v4();
                listener.options().overrides.marking(is_v4, &self.cx.tunables)
            }
            None => Marking::usual(&self.cx.tunables),
        }
    }

    pub(super) fn timestamp_offset(&self, entry: &SynEntry) -> u32 {
        let local = self.net.ip.addresses.get(entry.local_index());
        local.map_or(0, |local| self.tcp.identity.timestamp_offset(local, entry.remote_addr()))
    }

    /// What is due in the SYN cache; returns whether there was anything.
    pub(super) fn advance_half_open(&mut self) -> bool {
        match self.tcp.records.syns.pop_due(self.cx.now, &mut self.tcp.passive.listeners) {
            Some(due) => self.on_due_half_open(due),
            None => return false,
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn on_due_half_open(&mut self, due: Due) {
        match due {
            Due::Repeat(index) if self.is_deferred(index) => {}
            Due::Repeat(index) => {
                self.cx.counters.syn_retrans += 1;
                self.cx.counters.retrans_segs += 1;
                self.net.reply(&mut self.cx, Pending::SynAck(index));
            }
            Due::Expired(index, entry) => {
                self.cx.counters.syn_timeouts += u64::from(!entry.is_held());
                self.cx.counters.attempt_fails += 1;
                self.forget_half_open_for(index, &entry, Withdrawal::TimedOut);
            }
            Due::Orphaned(index, entry) => self.on_orphaned(index, &entry),
        }
    }

    /// Whether an entry only waits for text: its SYN-ACK arrived.
    fn is_deferred(&self, index: u32) -> bool {
        let Some(entry) = self.tcp.records.syns.get(index) else { return false };
        let listener = self.tcp.passive.listeners.get(entry.listener());
        entry.is_deferred() && listener.is_some_and(|it| it.defers(entry.retries()))
    }
}
