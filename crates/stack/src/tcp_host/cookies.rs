//! SYN cookies: handshakes that have no record until their third segment.

use whimbrel_base::packet::TxSegment;
use whimbrel_tcp::Context;
use whimbrel_tcp::table::{CookieTerms, Cookies, Identity, Kind, Membership, Record, SynEntry};
use whimbrel_tcp::tunables::{MissingTimestamps, SynCookies};
use whimbrel_tcp::{DropReason, Reply, Verdict};
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Endpoint, Flow, SeqNum, WindowScale};

use super::found::{FoundSegment, ReusedFlow};
use super::half_open::{HandshakeStep, half_open};
use super::{Passive, TcpHost};
use crate::dial::Withdrawal;
use crate::ip::{FlowKey, SegmentOut};
use crate::net::Net;
use crate::net::replies::PendingReply;

/// The fate of a SYN that gets no half-open entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SynFallback {
    /// A cookie answers it.
    Cookie,
    /// It gets no answer; this has been counted.
    Drop,
}

impl TcpHost {
    /// Decides that a SYN goes without a half-open entry. If it does not, there is room for one: at the bound
    /// of the cache another was evicted for it.
    pub(crate) fn cookie_instead(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        listener: u32,
        reuses: bool,
    ) -> Option<SynFallback> {
        let policy = cx.tunables.syn_cookies;
        let always = policy == SynCookies::Always || cx.pool.budget.is_full();
        // One that takes the place of a TIME-WAIT needs an entry, which remembers what it replaced.
        if always && policy != SynCookies::Off && !reuses {
            return Some(SynFallback::Cookie);
        }
        if self.records.syns.judge_room(listener, &self.passive.listeners).is_ok() {
            return None;
        }
        self.when_cache_is_full(cx, net, listener, reuses)
    }

    #[inline(never)]
    fn when_cache_is_full(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        listener: u32,
        reuses: bool,
    ) -> Option<SynFallback> {
        if cx.tunables.syn_cookies != SynCookies::Off && !reuses {
            cx.counters.syn_cache_cookies += 1;
            return Some(SynFallback::Cookie);
        }
        // Above a bound that was lowered, one more goes than comes.
        let mut evicted = 0;
        while evicted < 2 && self.evict_half_open(cx, net, listener) {
            evicted += 1;
        }
        if evicted > 0 {
            return None;
        }
        self.passive.listeners.on_syn_dropped(listener);
        cx.counters.syn_cache_overflows += 1;
        cx.counters.listen_drops += 1;
        Some(SynFallback::Drop)
    }

    /// A half-open entry that was answered makes room for one more of this listener, where there is
    /// none. Returns whether one did.
    pub(crate) fn evict_half_open(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        listener: u32,
    ) -> bool {
        let Some((index, entry)) = self.records.syns.evict(listener, &mut self.passive.listeners)
        else {
            return false;
        };
        cx.counters.syn_evictions += 1;
        cx.counters.attempt_fails += 1;
        self.forget_half_open_for(cx, net, index, &entry, Withdrawal::Displaced);
        true
    }

    /// Answers a SYN by a cookie.
    #[inline(never)]
    pub(crate) fn send_cookie(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        listener: u32,
        found: &FoundSegment<'_>,
        scale_limit: u32,
    ) -> Verdict {
        let arrival = &found.arrival;
        let Some(flow) = self.passive.flow_of(net, &arrival.key) else {
            return Verdict::Drop(DropReason::NoSocket);
        };
        let open = found.passive_open(listener, SeqNum::new(0), scale_limit, ReusedFlow::FRESH);
        let entry = half_open(&arrival.segment, open, &cx.tunables)
            .into_cookie(|terms, mss| self.passive.cookies.issue(&flow, terms, mss, cx.now));
        if let Some(place) = self.passive.listeners.get_mut(listener) {
            place.on_cookie_sent(cx.now);
        }
        cx.counters.cookies_sent += 1;
        net.reply(cx, PendingReply::SynCookie(entry));
        Verdict::Accepted
    }

    /// The SYN-ACK that is a cookie.
    #[inline(never)]
    pub(crate) fn write_cookie(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        entry: &SynEntry,
        tx: &mut TxSegment,
    ) -> bool {
        let mut advertised = self.advertised(cx, net, entry);
        if let Some(carried) = entry.carried() {
            advertised.tsval = carried.stamp(advertised.tsval);
        }
        if cx.pool.budget.is_full() {
            advertised.window = self.narrow_window(cx, net, entry);
        } else {
            self.passive.wide_cookie = Some(cx.now);
        }
        let syn_ack = entry.syn_ack(advertised);
        cx.counters.out_segs += 1;
        let marking = self.passive.half_open_marking(cx, entry);
        let (key, order) = (FlowKey::of_half_open(entry), cx.tunables.option_order);
        net.ip.write_opening(&SegmentOut::of_flow(&key, &syn_ack, marking, order), tx)
    }

    /// A segment that may be the third of a handshake: if it brings a cookie back, the connection is
    /// built whole.
    pub(crate) fn on_cookie(
        &mut self,
        cx: &mut Context,
        net: &Net,
        listener: u32,
        found: &FoundSegment<'_>,
    ) -> HandshakeStep {
        let arrival = &found.arrival;
        let Some(entry) = self.passive.redeem(cx, net, listener, found) else {
            cx.counters.cookies_failed += 1;
            let reset = Reply::reset_for(&arrival.segment);
            return HandshakeStep::Verdict(Verdict::Reply(reset, DropReason::SynCookie));
        };
        let lacks_timestamps =
            entry.has_timestamps() && arrival.segment.header.options.timestamps.is_none();
        if lacks_timestamps && cx.tunables.missing_timestamps != MissingTimestamps::Take {
            // RFC 7323 3.2: "a TCP SHOULD silently drop the segment"
            return HandshakeStep::Verdict(Verdict::Drop(DropReason::TimestampMissing));
        }
        match self.make_room_for(cx, listener) {
            Ok(()) => {}
            Err(DropReason::ListenOverflow) if cx.tunables.abort_on_overflow => {
                let reset = Reply::reset_for(&arrival.segment);
                return HandshakeStep::Verdict(Verdict::Reply(reset, DropReason::ListenOverflow));
            }
            // Whatever the client sends next brings the cookie again.
            Err(reason) => return HandshakeStep::Verdict(Verdict::Drop(reason)),
        }
        cx.counters.cookies_received += 1;
        let stamps = arrival.segment.header.options.timestamps;
        let offset = match stamps {
            Some(stamps) => self.offset_after(cx, net, &entry, stamps.ecr),
            None => self.timestamp_offset(net, &entry),
        };
        let place = self.create_connection(cx, net, &entry, offset, found.hash);
        self.narrow_if_full(cx, net, place, &entry);
        self.records.flows.insert(found.hash, Record::new(Kind::Connection, place));
        HandshakeStep::Established(place)
    }

    /// The timestamp offset under which TSval goes on from what the peer echoes. Another host of
    /// the group has another clock: PAWS would refuse what ours shows, if it is behind.
    ///
    /// TIME-WAIT does not remember the offset. Should the acknowledgment of the peer's FIN be lost,
    /// the next may seem too old to it.
    fn offset_after(&self, cx: &Context, net: &Net, entry: &SynEntry, tsecr: u32) -> u32 {
        let own = self.timestamp_offset(net, entry);
        let age = Identity::tsval(cx.tick, own).wrapping_sub(tsecr);
        let is_ours = u128::from(age) <= Cookies::LIFETIME.as_millis() + CARRIED_LAG;
        match self.passive.cookies.membership() {
            Membership::Group if !is_ours => tsecr.wrapping_sub(cx.tick.raw()),
            _ => own,
        }
    }
}

impl Passive {
    /// True if a segment without a record may bring a cookie back.
    pub(crate) fn may_bring_cookie(&self, cx: &Context, listener: u32, flags: TcpFlags) -> bool {
        let third =
            flags.contains(TcpFlags::ACK) && !flags.intersects(TcpFlags::SYN | TcpFlags::RST);
        if !third {
            return false;
        }
        let Some(listener) = self.listeners.get(listener) else { return false };
        let grouped = self.cookies.membership() == Membership::Group
            && cx.tunables.syn_cookies != SynCookies::Off;
        !listener.is_any() && (grouped || listener.has_cookies_out(cx.now))
    }

    /// True if a segment brings a cookie of ours back.
    pub(crate) fn brings_cookie(
        &self,
        cx: &Context,
        net: &Net,
        listener: u32,
        found: &FoundSegment<'_>,
    ) -> bool {
        self.may_bring_cookie(cx, listener, found.arrival.segment.header.flags)
            && self.redeem(cx, net, listener, found).is_some()
    }

    fn redeem(
        &self,
        cx: &Context,
        net: &Net,
        listener: u32,
        found: &FoundSegment<'_>,
    ) -> Option<SynEntry> {
        let arrival = &found.arrival;
        let header = &arrival.segment.header;
        let iss = header.ack - 1;
        let pipe = net.ip.recv_pipe_to(&arrival.key.remote, &cx.tunables);
        let limit = self.listeners.get(listener)?.options().scale_limit(&cx.tunables).max(pipe);
        // Our scale does not come back: it is what the SYN-ACK announced if the listener's options and
        // the route are as they were, and the cookie says whether they are.
        let (irs, own_scale) = (header.seq - 1, WindowScale::for_window(limit));
        let flow = self.flow_of(net, &arrival.key)?;
        let mss_by = |terms: &CookieTerms| self.cookies.redeem(&flow, terms, iss, cx.now);
        let (terms, mss) = match header.options.timestamps {
            Some(stamps) => {
                let terms = CookieTerms::echoed(irs, stamps.ecr, own_scale);
                (terms, mss_by(&terms)?)
            }
            None => CookieTerms::without_timestamps(irs, own_scale)
                .into_iter()
                .find_map(|terms| Some((terms, mss_by(&terms)?)))?,
        };
        let open = found.passive_open(listener, iss, limit, ReusedFlow::FRESH);
        Some(SynEntry::from_cookie(&header.whole(), open, mss, &terms, &cx.tunables))
    }

    fn flow_of(&self, net: &Net, key: &FlowKey) -> Option<Flow> {
        let local = Endpoint::new(*net.ip.addresses.get(key.local_index)?, key.local_port);
        Some(Flow { local, remote: Endpoint::new(key.remote, key.remote_port) })
    }
}

/// Milliseconds by which the TSval of a cookie lags behind the clock, at most.
const CARRIED_LAG: u128 = 128;
