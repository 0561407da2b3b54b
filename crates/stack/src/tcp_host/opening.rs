//! Passive openings: from the SYN to the accept queue.

use whimbrel_base::cold_path;
use whimbrel_base::packet::TxSegment;
use whimbrel_tcp::conn::{Marking, RareOptions, initial_window};
use whimbrel_tcp::table::{Due, Families, FlowHash, Kind, PassiveOpen, Record, SynEntry, SynStep};
use whimbrel_tcp::{Context, DropReason, Reply, RxSegment, Verdict};
use whimbrel_wire::Endpoint;

use super::cookies::SynFallback;
use super::fast_open::FastOpenStep;
use super::found::{FoundSegment, ReusedFlow};
use super::half_open::{HandshakeStep, half_open};
use super::{Passive, TcpHost};
use crate::dial::Withdrawal;
use crate::error::ListenError;
use crate::ip::{FlowKey, SegmentOut};
use crate::net::Net;
use crate::net::replies::PendingReply;
use crate::{Handle, ListenerId};

/// The listener that was found last, and at which port of which of this host's addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerCache {
    local_port: u16,
    local_index: u16,
    listener: u32,
}

impl ListenerCache {
    #[inline]
    const fn is_at(self, key: &FlowKey) -> bool {
        self.local_port == key.local_port && self.local_index == key.local_index
    }
}

impl TcpHost {
    pub(crate) fn accept(&mut self, cx: &Context, listener: ListenerId) -> Option<Handle> {
        let listeners = &mut self.passive.listeners;
        let index = match listeners.pop_untimed(listener) {
            Some(index) => index?,
            None => listeners.pop_timed(listener, cx.now)?,
        };
        self.work.accept_handle(&mut self.records.connections, index)
    }

    /// A SYN for a listener (RFC 9293 3.10.7.2).
    #[inline(always)]
    pub(crate) fn on_syn(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        listener: u32,
        found: &FoundSegment<'_>,
        opening: ReusedFlow,
    ) -> Verdict {
        let pipe = net.ip.recv_pipe_to(&found.arrival.key.remote, &cx.tunables);
        let Some(place) = self.passive.listeners.get_mut(listener) else {
            return Verdict::Drop(DropReason::NoSocket);
        };
        if place.is_any() {
            return self.on_syn_for_any(cx, net, listener, found, opening);
        }
        if place.is_accept_queue_full() {
            cold_path();
            // One more half-open entry could not complete: better that the client's SYN returns
            // later than that it believes to be connected.
            place.on_overflow();
            cx.counters.listen_overflows += 1;
            cx.counters.listen_drops += 1;
            return Verdict::Drop(DropReason::ListenOverflow);
        }
        let scale_limit = place.options().scale_limit(&cx.tunables).max(pipe);
        let takes_fast_open = place.fast_open_limit() > 0;
        let (key, hash) = (&found.arrival.key, found.hash);
        // A cookie would say nothing of the record that has to come back if the handshake fails.
        let reuses = opening.replaces.is_some();
        if let Some(verdict) = self.cookie_instead(cx, net, listener, reuses) {
            cold_path();
            return match verdict {
                SynFallback::Cookie => self.send_cookie(cx, net, listener, found, scale_limit),
                SynFallback::Drop => Verdict::Drop(DropReason::SynCacheFull),
            };
        }
        let Some(iss) = self.choose_iss(cx, net, key, opening.iss_floor) else {
            return Verdict::Drop(DropReason::NoSocket);
        };
        // Not `FoundSegment::passive_open`, which took an instruction more of each SYN.
        let open = PassiveOpen {
            remote: key.remote,
            local_index: key.local_index,
            listener,
            iss,
            scale_limit,
            time_wait: opening.kept(),
        };
        let mut entry = half_open(&found.arrival.segment, open, &cx.tunables);
        // Only now that there is room for an entry: without a good cookie it opens as any other SYN.
        if takes_fast_open {
            cold_path();
            match self.process_fast_open(cx, net, listener, found, opening) {
                FastOpenStep::Ignore => {}
                FastOpenStep::Grant(asked) => entry.grant_fast_open(&asked),
                FastOpenStep::Open(renewed) => {
                    let place = self.open_at_syn(cx, net, &entry, found, renewed);
                    self.link_record(net, Record::new(Kind::Connection, place), hash, opening);
                    return Verdict::Accepted;
                }
            }
        }
        self.hold_half_open(cx, net, entry, hash, opening)
    }

    /// A SYN gets its half-open entry, for which there is room, and its SYN-ACK.
    #[inline(always)]
    fn hold_half_open(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        entry: SynEntry,
        hash: FlowHash,
        opening: ReusedFlow,
    ) -> Verdict {
        let index = self.records.syns.insert(entry, &mut self.passive.listeners, cx.now);
        cx.counters.syn_received += 1;
        self.link_record(net, Record::new(Kind::SynEntry, index), hash, opening);
        // Queued by index: it is written when it is its turn, of the entry at that time.
        net.reply(cx, PendingReply::SynAck(index));
        Verdict::Accepted
    }

    /// A segment that hit a half-open entry.
    #[inline(always)]
    pub(crate) fn on_half_open_segment(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        found: &FoundSegment<'_>,
    ) -> HandshakeStep {
        let arrival = &found.arrival;
        let pipe = net.ip.recv_pipe_to(&arrival.key.remote, &cx.tunables);
        let Some(entry) = self.records.syns.get_mut(index) else {
            return HandshakeStep::Verdict(Verdict::Drop(DropReason::Closed));
        };
        let Some(listener) = self.passive.listeners.get(entry.listener()) else {
            self.remove_orphaned(cx, net, index);
            return HandshakeStep::Unheard;
        };
        if entry.is_held() {
            return HandshakeStep::Verdict(self.on_held_segment(cx, net, index, found));
        }
        let limit = match listener.has_default_options() && pipe == 0 {
            true => cx.tunables.recv_buffer,
            false => listener.options().recv_limit(pipe, &cx.tunables),
        };
        let window = initial_window(limit);
        let step = entry.judge(&arrival.segment, window, &cx.tunables);
        // A comparison, where a match of all would jump by a table.
        if step == SynStep::Complete {
            return self.complete(cx, net, index, found);
        }
        self.decline(cx, net, step, index, found)
    }

    /// A segment does not complete its handshake.
    #[inline(never)]
    fn decline(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        step: SynStep,
        index: u32,
        found: &FoundSegment<'_>,
    ) -> HandshakeStep {
        HandshakeStep::Verdict(match step {
            // Its caller went on by itself.
            SynStep::Complete => Verdict::Accepted,
            SynStep::Repeat => self.repeat_half_open(cx, net, index, found),
            SynStep::Reset => self.reset_half_open(cx, net, index),
            SynStep::Challenge(reason) => self.challenge_half_open(cx, net, index, reason),
            SynStep::Refuse(reply, reason) => {
                if let Some(step) = self.on_late_cookie(cx, net, index, found) {
                    return step;
                }
                self.refuse_half_open(cx, net, index, &reply, reason)
            }
            SynStep::Drop(reason) => Verdict::Drop(reason),
        })
    }

    /// The SYN of a half-open entry came again: so does what answers it.
    #[cold]
    #[inline(never)]
    fn repeat_half_open(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        found: &FoundSegment<'_>,
    ) -> Verdict {
        let segment = &found.arrival.segment;
        let Some(entry) = self.records.syns.get_mut(index) else { return Verdict::Accepted };
        if entry.contradicts_ecn(segment.header.flags, &cx.tunables) {
            return self.reset_handshake(cx, net, index, segment, DropReason::SynChallenged);
        }
        entry.on_repeated_syn(&segment.header.whole(), segment.class.ecn());
        net.reply(cx, PendingReply::SynAck(index));
        Verdict::Accepted
    }

    #[cold]
    #[inline(never)]
    fn challenge_half_open(
        &mut self,
        cx: &mut Context,
        net: &Net,
        index: u32,
        reason: DropReason,
    ) -> Verdict {
        let entry = self
            .records
            .syns
            .get_mut(index)
            .and_then(|entry| entry.may_challenge(cx.now, &cx.tunables).then_some(*entry));
        let Some(entry) = entry else {
            cx.counters.syn_received_acks_skipped += 1;
            return Verdict::Drop(reason);
        };
        cx.counters.challenge_acks += 1;
        Verdict::Reply(entry.challenge_reply(self.advertised(cx, net, &entry)), reason)
    }

    /// An acknowledgment of something else than the entry's SYN-ACK. It may be that of a cookie: the SYN came
    /// first while there was no room for an entry, and came again when there was. The client took the
    /// SYN-ACK that reached it first, and a reset would end what it holds for a connection.
    #[cold]
    #[inline(never)]
    fn on_late_cookie(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        found: &FoundSegment<'_>,
    ) -> Option<HandshakeStep> {
        let listener = self.records.syns.get(index)?.listener();
        if !self.passive.brings_cookie(cx, net, listener, found) {
            return None;
        }
        if let Some(entry) = self.records.syns.remove(index, &mut self.passive.listeners) {
            self.forget_half_open(cx, net, index, &entry);
        }
        Some(self.on_cookie(cx, net, listener, found))
    }

    #[cold]
    #[inline(never)]
    fn refuse_half_open(
        &mut self,
        cx: &mut Context,
        net: &Net,
        index: u32,
        reply: &Reply,
        reason: DropReason,
    ) -> Verdict {
        let Some(entry) = self.records.syns.get(index) else { return Verdict::Drop(reason) };
        let stamps = entry.timestamps(self.advertised(cx, net, entry).tsval);
        Verdict::Reply(reply.stamped(stamps), reason)
    }

    /// The listener of a handshake closed since: its entry goes.
    #[cold]
    fn remove_orphaned(&mut self, cx: &mut Context, net: &mut Net, index: u32) {
        if let Some(entry) = self.records.syns.remove(index, &mut self.passive.listeners) {
            self.on_orphaned(cx, net, index, &entry);
        }
    }

    fn on_orphaned(&mut self, cx: &mut Context, net: &mut Net, index: u32, entry: &SynEntry) {
        cx.counters.attempt_fails += 1;
        self.forget_half_open(cx, net, index, entry);
    }

    /// The third segment: the connection is built whole and enters its listener's accept queue; only
    /// then does it see the segment.
    fn complete(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        found: &FoundSegment<'_>,
    ) -> HandshakeStep {
        let arrival = &found.arrival;
        let Some(entry) = self.records.syns.get(index) else {
            return HandshakeStep::Verdict(Verdict::Drop(DropReason::Closed));
        };
        let Some(listener) = self.passive.listeners.get_mut(entry.listener()) else {
            return HandshakeStep::Verdict(Verdict::Drop(DropReason::NoSocket));
        };
        let entry = *entry;
        if listener.defers(entry.retries()) && arrival.segment.is_empty() {
            cold_path();
            cx.counters.defer_accept_drops += 1;
            if let Some(entry) = self.records.syns.get_mut(index) {
                entry.on_deferred(cx.now);
            }
            return HandshakeStep::Verdict(Verdict::Drop(DropReason::AcceptDeferred));
        }
        match self.make_room_for(cx, entry.listener()) {
            Ok(()) => {}
            Err(DropReason::ListenOverflow) if cx.tunables.abort_on_overflow => {
                cold_path();
                let (segment, reason) = (&arrival.segment, DropReason::ListenOverflow);
                let refusal = self.reset_handshake(cx, net, index, segment, reason);
                return HandshakeStep::Verdict(refusal);
            }
            // The entry stays, its SYN-ACK is repeated, and the peer's answer tries again.
            Err(reason) => {
                cold_path();
                return HandshakeStep::Verdict(Verdict::Drop(reason));
            }
        }
        let place = if entry.is_by_verdict() {
            self.create_admitted(cx, net, index, &entry, found.hash)
        } else {
            self.create_connection(cx, net, &entry, self.timestamp_offset(net, &entry), found.hash)
        };
        let (half_open, whole) =
            (Record::new(Kind::SynEntry, index), Record::new(Kind::Connection, place));
        self.records.flows.replace(found.hash, half_open, whole);
        self.records.syns.remove_answered(index, &mut self.passive.listeners);
        // The TIME-WAIT record that the entry kept is of no more use.
        if let Some(wait) = self.records.wait_kept_by(&entry) {
            self.drop_displaced(net, wait);
        }
        HandshakeStep::Established(place)
    }

    /// The handshake ends for this `reason`, and the client is to know.
    fn reset_handshake(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        segment: &RxSegment<'_>,
        reason: DropReason,
    ) -> Verdict {
        let Some(entry) = self.records.syns.get(index).copied() else {
            return Verdict::Drop(reason);
        };
        cx.counters.attempt_fails += 1;
        cx.counters.embryonic_resets += 1;
        let stamps = entry.timestamps(self.advertised(cx, net, &entry).tsval);
        self.records.syns.remove(index, &mut self.passive.listeners);
        self.forget_half_open(cx, net, index, &entry);
        Verdict::Reply(Reply::reset_for(segment).stamped(stamps), reason)
    }

    /// The SYN-ACK of an entry, if it is still there. One that waits for a verdict has the place of another that
    /// was answered.
    // Few segments are: inlined, it would take registers from those that are not.
    #[inline(never)]
    pub(crate) fn write_syn_ack(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        tx: &mut TxSegment,
    ) -> bool {
        let entry = self.records.syns.get(index).filter(|entry| !entry.is_held());
        let Some(entry) = entry else { return false };
        let (advertised, marking) = if self.passive.has_defaults(net, entry) {
            let mss = net.ip.mss_to(entry.remote_addr());
            let advertised = self.advertised_of(cx, net, entry, mss, cx.tunables.recv_buffer);
            (advertised, Marking::from_tunables(&cx.tunables))
        } else {
            (self.advertised(cx, net, entry), self.passive.half_open_marking(cx, entry))
        };
        cx.counters.out_segs += 1;
        let (key, order) = (FlowKey::of_half_open(entry), cx.tunables.option_order);
        if entry.began_with_ecn() {
            cold_path();
            // By itself: the others' fields would be in memory, too.
            let syn_ack = self.passive.granted_syn_ack(net, entry, advertised);
            return net
                .ip
                .write_rare_opening(&SegmentOut::of_flow(&key, &syn_ack, marking, order), tx);
        }
        let mut syn_ack = entry.syn_ack(advertised);
        if let RareOptions::Syn(opening) = &mut syn_ack.rare {
            opening.fast_open = self.passive.granted(net, entry);
        }
        net.ip.write_opening(&SegmentOut::of_flow(&key, &syn_ack, marking, order), tx)
    }

    /// Does what is due in the SYN cache; returns whether there was anything.
    pub(crate) fn advance_half_open(&mut self, cx: &mut Context, net: &mut Net) -> bool {
        match self.records.syns.pop_due(cx.now, &mut self.passive.listeners) {
            Some(due) => self.on_due_half_open(cx, net, due),
            None => return false,
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn on_due_half_open(&mut self, cx: &mut Context, net: &mut Net, due: Due) {
        match due {
            Due::Repeat(index) if self.is_deferred(index) => {}
            Due::Repeat(index) => {
                cx.counters.syn_retrans += 1;
                cx.counters.retrans_segs += 1;
                net.reply(cx, PendingReply::SynAck(index));
            }
            Due::Expired(index, entry) => {
                cx.counters.syn_timeouts += u64::from(!entry.is_held());
                cx.counters.attempt_fails += 1;
                self.forget_half_open_for(cx, net, index, &entry, Withdrawal::TimedOut);
            }
            Due::Orphaned(index, entry) => self.on_orphaned(cx, net, index, &entry),
        }
    }

    /// True if an entry only waits for text: its SYN-ACK arrived.
    fn is_deferred(&self, index: u32) -> bool {
        let Some(entry) = self.records.syns.get(index) else { return false };
        let listener = self.passive.listeners.get(entry.listener());
        entry.is_deferred() && listener.is_some_and(|it| it.defers(entry.retries()))
    }
}

impl Passive {
    pub(crate) fn listen(
        &mut self,
        net: &Net,
        at: Endpoint,
        families: Families,
        backlog: u32,
    ) -> Result<ListenerId, ListenError> {
        if at.port == 0 {
            return Err(ListenError::PortZero);
        }
        if !at.addr.is_unspecified() && !net.ip.addresses.is_local(&at.addr) {
            return Err(ListenError::NotLocal(at));
        }
        self.listener_cache = None;
        let added = self.listeners.add(at, families, backlog);
        added.map_err(|taken| ListenError::InUse(taken.at))
    }

    /// The listener that a SYN of this flow is for.
    #[inline]
    pub(crate) fn listener_for(&mut self, net: &Net, key: &FlowKey) -> Option<u32> {
        // Most are for the same. Where listeners or addresses come and go, this is forgotten.
        match self.listener_cache {
            Some(heard) if heard.is_at(key) => Some(heard.listener),
            _ => self.find_listener(net, key),
        }
    }

    #[inline(never)]
    fn find_listener(&mut self, net: &Net, key: &FlowKey) -> Option<u32> {
        let FlowKey { local_port, local_index, .. } = *key;
        let Some(addr) = net.ip.addresses.local(local_index) else {
            return self.listeners.any();
        };
        let listener = self.listeners.find(&Endpoint::new(*addr, local_port))?;
        self.listener_cache = Some(ListenerCache { local_port, local_index, listener });
        Some(listener)
    }
}
