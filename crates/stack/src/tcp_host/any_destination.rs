//! SYNs for any destination: each waits, unanswered, until an application decides what its peer shall see.
//!
//! ```text
//! SYN ─> SynEntry, held ─> Event::Asked ─> Shard::asked ─> Shard::answer_syn
//!            │ RST, 127 s, a newer one                       Accept ─> SYN-ACK … ─> Event::Opened
//!            └─> Event::Withdrawn                            others ─> gone, and the peer told what was said
//! ```
//!
//! A handshake here has a [`SynEntry`] from its first segment to its end: no cookie stands in for it, which
//! would be an answer, and no Fast Open. How many there are is bounded in all and for each address and port. At
//! a bound the oldest gives way, decided or not, so that a scan, or a port without answers, keeps no
//! other waiting: its peer's next SYN is asked about anew. No share by source: sources are forged, and a proxy
//! has one client.

use alloc::collections::{BTreeMap, VecDeque};

use whimbrel_tcp::Context;
use whimbrel_tcp::conn::Connection;
use whimbrel_tcp::table::{FlowHash, Kind, Record, SynEntry, SynStep};
use whimbrel_tcp::{DropReason, Verdict};
use whimbrel_wire::{Endpoint, Flow};

use super::found::BURST;
use super::found::{FoundSegment, ReusedFlow};
use super::half_open::half_open;
use super::{Passive, TcpHost};
use crate::dial::{Answer, SynHandle, SynRequest, Withdrawal};
use crate::error::ListenError;
use crate::ip::FlowKey;
use crate::net::Net;
use crate::net::replies::PendingReply;
use crate::tcp_host::connections::ConnectionSlot;
use crate::{Event, Handle, ListenerId};

impl TcpHost {
    pub(crate) fn asked(&mut self, net: &Net, listener: ListenerId) -> Option<SynRequest> {
        self.passive.listeners.resolve(listener).filter(|listener| listener.is_any())?;
        let (index, entry) = self.records.syns.ask().map(|(index, entry)| (index, *entry))?;
        let (syn, key) = (self.records.syn_handle(index, &entry), FlowKey::of_half_open(&entry));
        let local = *net.ip.addresses.get(key.local_index)?;
        let flow = Flow {
            local: Endpoint::new(local, key.local_port),
            remote: Endpoint::new(key.remote, key.remote_port),
        };
        Some(SynRequest { syn, flow })
    }

    pub(crate) fn opened(&mut self, syn: SynHandle) -> Option<Handle> {
        let index = self.passive.dials.opened.remove(&syn)?;
        self.work.accept_handle(&mut self.records.connections, index)
    }

    pub(crate) fn answer_syn(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        syn: SynHandle,
        answer: Answer,
    ) -> bool {
        let entry = self.records.syns.get(syn.index).copied();
        let Some(entry) =
            entry.filter(|it| it.is_held() && self.records.syn_handle(syn.index, it) == syn)
        else {
            return false;
        };
        let key = FlowKey::of_half_open(&entry);
        match answer {
            Answer::Accept => {
                self.records.syns.admit(syn.index, cx.now);
                net.reply(cx, PendingReply::SynAck(syn.index));
                return true;
            }
            Answer::Reset => {
                let marking = self.passive.half_open_marking(cx, &entry);
                net.reply_from(
                    cx,
                    key.local_index,
                    PendingReply::Reply(key, entry.refusal(), marking),
                );
            }
            Answer::Unreachable(what) => {
                let error = net.ip.unreachable(cx.now, &key, entry.irs(), what);
                if let Some(error) = error {
                    net.reply_from(cx, error.local_index(), PendingReply::Error(error));
                }
            }
            Answer::Ignore => {}
        }
        cx.counters.attempt_fails += 1;
        self.records.syns.remove(syn.index, &mut self.passive.listeners);
        let returned = self.records.unlink_half_open(syn.index, &entry);
        cx.counters.time_wait_returned += u64::from(returned);
        self.leave_destination(net, syn.index, &entry);
        true
    }
}

impl Passive {
    pub(crate) fn listen_any(&mut self) -> Result<ListenerId, ListenError> {
        self.listener_cache = None;
        self.listeners.add_any().map_err(|taken| ListenError::InUse(taken.at))
    }
}

impl TcpHost {
    /// A SYN for any destination, which waits for an answer; where there is no room, instead of an older one.
    #[cold]
    pub(crate) fn on_syn_for_any(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        listener: u32,
        found: &FoundSegment<'_>,
        opening: ReusedFlow,
    ) -> Verdict {
        let key = found.arrival.key;
        let Some(iss) = self.choose_iss(cx, net, &key, opening.iss_floor) else {
            return Verdict::Drop(DropReason::NoSocket);
        };
        if !self.make_room_for_dial(cx, net, listener, &key) {
            self.passive.listeners.on_syn_dropped(listener);
            cx.counters.listen_drops += 1;
            cx.counters.syn_cache_overflows += 1;
            return Verdict::Drop(DropReason::SynCacheFull);
        }
        let pipe = net.ip.recv_pipe_to(&key.remote, &cx.tunables);
        let options = self.passive.listeners.get(listener).map(|place| place.options());
        let scale_limit = options.map_or(0, |it| it.scale_limit(&cx.tunables)).max(pipe);
        let open = found.passive_open(listener, iss, scale_limit, opening);
        let entry = half_open(&found.arrival.segment, open, &cx.tunables);
        let index = self.records.syns.hold(entry, &mut self.passive.listeners, cx.now);
        cx.counters.syn_received += 1;
        // The address keeps its number as long as this entry names it.
        net.ip.addresses.hold(key.local_index);
        self.passive.dials.enter(index, &key);
        self.link_record(net, Record::new(Kind::SynEntry, index), found.hash, opening);
        if let Some(place) = self.passive.listeners.get_mut(listener)
            && place.tells()
        {
            let id = place.id();
            self.passive.dials.news.push_back(Event::Asked(id));
        }
        Verdict::Accepted
    }

    /// True if one more SYN may wait for an answer, now that older ones gave way to it if they had to.
    fn make_room_for_dial(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        listener: u32,
        key: &FlowKey,
    ) -> bool {
        let most = cx.tunables.max_dials_per_destination;
        if let Some(oldest) = self.passive.dials.oldest_of_crowd(key, most) {
            cx.counters.verdict_crowded += 1;
            self.displace_dial(cx, net, oldest);
        }
        // Above a bound that was lowered, one more goes than comes.
        for _ in 0..2 {
            let has_entry = self.records.syns.judge_room(listener, &self.passive.listeners).is_ok();
            let is_short =
                cx.pool.budget.is_full() && self.passive.dials.len() >= MOST_WITHOUT_MEMORY;
            if has_entry && !is_short {
                return true;
            }
            if let Some(oldest) = self.passive.dials.oldest() {
                cx.counters.verdict_overflows += 1;
                self.displace_dial(cx, net, oldest);
            } else if !self.evict_half_open(cx, net, listener) {
                // Handshakes of others fill the cache, and all those drawn are complete but for text.
                break;
            }
        }
        self.records.syns.judge_room(listener, &self.passive.listeners).is_ok()
    }

    /// The oldest handshake gives way to a newer one.
    fn displace_dial(&mut self, cx: &mut Context, net: &mut Net, index: u32) {
        let Some(entry) = self.records.syns.remove(index, &mut self.passive.listeners) else {
            debug_assert!(false, "a handshake that is listed has its entry");
            return;
        };
        cx.counters.attempt_fails += 1;
        self.forget_half_open_for(cx, net, index, &entry, Withdrawal::Displaced);
    }

    /// A segment that hit a SYN which waits for an answer.
    #[cold]
    pub(crate) fn on_held_segment(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        found: &FoundSegment<'_>,
    ) -> Verdict {
        let Some(entry) = self.records.syns.get_mut(index) else {
            return Verdict::Drop(DropReason::Closed);
        };
        let segment = &found.arrival.segment;
        match entry.judge_held(segment) {
            SynStep::Repeat => {
                entry.on_repeated_syn(&segment.header.whole(), segment.class.ecn());
                Verdict::Accepted
            }
            SynStep::Refuse(reply, reason) => Verdict::Reply(reply, reason),
            // A challenge would be an answer, and none was given.
            SynStep::Drop(reason) | SynStep::Challenge(reason) => Verdict::Drop(reason),
            SynStep::Reset | SynStep::Complete => self.reset_half_open(cx, net, index),
        }
    }

    /// The connection of a handshake that was admitted and is complete.
    #[cold]
    pub(crate) fn create_admitted(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        index: u32,
        entry: &SynEntry,
        hash: FlowHash,
    ) -> u32 {
        let handshake = self.rare_handshake(cx, net, entry);
        let connection = Connection::from_handshake(cx, &handshake);
        net.ip.addresses.hold(entry.local_index());
        let mut slot = ConnectionSlot::new(connection, hash);
        slot.unaccepted = true;
        let place = self.records.connections.0.insert(slot);
        self.apply_inherited(cx, net, entry, place);
        if let Some(listener) = self.passive.listeners.get_mut(entry.listener()) {
            listener.on_opened();
        }
        let syn = self.records.syn_handle(index, entry);
        self.passive.dials.opened.insert(syn, place);
        self.passive.dials.news.push_back(Event::Opened(syn));
        self.leave_destination(net, index, entry);
        place
    }

    /// Their listener closed: SYNs that wait for an answer are refused.
    pub(crate) fn refuse_held(&mut self, cx: &mut Context, net: &mut Net) {
        while let Some(index) = self.records.syns.first_held() {
            let Some(entry) = self.records.syns.remove(index, &mut self.passive.listeners) else {
                return;
            };
            cx.counters.attempt_fails += 1;
            let (key, marking) =
                (FlowKey::of_half_open(&entry), self.passive.half_open_marking(cx, &entry));
            net.reply_unbounded(key, entry.refusal(), marking);
            self.forget_half_open(cx, net, index, &entry);
        }
    }
}

impl Passive {
    /// Returns the next event of handshakes for any destination.
    #[inline]
    pub(crate) fn next_dial(&mut self) -> Option<Event> {
        if self.dials.news.is_empty() { None } else { self.next_dial_news() }
    }

    #[inline(never)]
    fn next_dial_news(&mut self) -> Option<Event> {
        let news = self.dials.news.pop_front()?;
        if let Event::Asked(id) = news
            && let Some(listener) = self.listeners.resolve_mut(id)
        {
            listener.note_told();
        }
        Some(news)
    }
}

impl TcpHost {
    /// Between two bursts: numbers of other hosts' addresses that nothing has any more are free again. Where
    /// few are left for the next burst, the records that have waited longest in TIME-WAIT give way, as many
    /// as there may be frames in it and as many again.
    #[cold]
    pub(crate) fn reclaim_addresses(&mut self, net: &mut Net) {
        net.ip.addresses.sweep();
        for _ in 0..SPARE_ADDRESSES {
            if net.ip.addresses.spare() >= SPARE_ADDRESSES {
                break;
            }
            let Some((index, wait)) = self.records.waits.recycle_oldest() else { break };
            net.ip.counters.addresses_recycled += 1;
            self.forget_wait(net, index, &wait);
            net.ip.addresses.sweep();
        }
    }
}

/// Handshakes for any destination.
#[derive(Default, Debug)]
pub(crate) struct PendingDials {
    /// Their places among half-open entries, the oldest first.
    by_age: BTreeMap<u64, u32>,
    /// Their places by destination: the number of its address, its port, and when the handshake began.
    by_destination: BTreeMap<(u16, u16, u64), u32>,
    /// When the handshake at each place began.
    serials: BTreeMap<u32, u64>,
    /// The number of handshakes to each destination.
    counts: BTreeMap<(u16, u16), u16>,
    next_serial: u64,
    /// Events that an application has yet to receive: each listener and each handshake once.
    pub(crate) news: VecDeque<Event>,
    /// Connections that it has yet to take.
    opened: BTreeMap<SynHandle, u32>,
}

impl PendingDials {
    /// The oldest, if there is any.
    fn oldest(&self) -> Option<u32> {
        self.by_age.first_key_value().map(|(_, index)| *index)
    }

    /// The oldest to the destination of `key`, if there are at least `most`.
    fn oldest_of_crowd(&self, key: &FlowKey, most: u16) -> Option<u32> {
        let (addr, port) = Self::destination(key);
        self.counts.get(&(addr, port)).filter(|count| **count >= most)?;
        let mut crowd = self.by_destination.range((addr, port, 0)..=(addr, port, u64::MAX));
        crowd.next().map(|(_, index)| *index)
    }

    fn enter(&mut self, index: u32, key: &FlowKey) {
        let serial = self.next_serial;
        self.next_serial += 1;
        let (addr, port) = Self::destination(key);
        self.by_age.insert(serial, index);
        self.by_destination.insert((addr, port, serial), index);
        self.serials.insert(index, serial);
        *self.counts.entry((addr, port)).or_default() += 1;
    }

    pub(crate) fn leave(&mut self, index: u32, key: &FlowKey) {
        let Some(serial) = self.serials.remove(&index) else {
            debug_assert!(false, "the handshake at {index} left {key:?} and never came");
            return;
        };
        let (addr, port) = Self::destination(key);
        self.by_age.remove(&serial);
        self.by_destination.remove(&(addr, port, serial));
        if let Some(count) = self.counts.get_mut(&(addr, port)) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&(addr, port));
            }
        }
    }

    /// Returns the number of the destination's address, and its port.
    const fn destination(key: &FlowKey) -> (u16, u16) {
        (key.local_index, key.local_port)
    }

    /// A connection that its application did not take.
    pub(crate) fn pop_opened(&mut self) -> Option<u32> {
        self.opened.pop_first().map(|(_, index)| index)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_age.len()
    }
}

/// The most handshakes while the memory budget is used up.
const MOST_WITHOUT_MEMORY: usize = 64;
/// The numbers free before a burst, if there is anything in TIME-WAIT to be given up: twice
/// the frames of one, some of which may bring others.
const SPARE_ADDRESSES: usize = 2 * BURST;
