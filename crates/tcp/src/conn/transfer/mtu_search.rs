//! The search for what the path carries (RFC 4821), as time-outs and acknowledgments tell of it.

use core::time::Duration;

use whimbrel_recovery::MtuProbeOutcome;
use whimbrel_recovery::cc::Phase;
use whimbrel_recovery::flight::Delivered;

use crate::conn::mtu_search::{MtuSearch, PathFinding, ProbeVerdict, SearchView};
use crate::conn::stamps::TIMESTAMP_BYTES;
use crate::conn::tcb::Tcb;
use crate::conn::transfer::Transfer;
use crate::conn::{Buffers, Flags};
use crate::send::{SendQueue, plan_mtu_probe};
use crate::tunables::MtuProbing;
use crate::{Context, Tunables};

impl Transfer {
    /// The retransmission timer ran out: if full segments were not answered twice in a row, smaller ones are sent. A
    /// loss probe counts as the first if all of many segments went unanswered. The last acknowledgment, once
    /// more, is an answer: the segment arrived, and the peer had no room for it.
    #[cold]
    pub(in crate::conn) fn suspect_path_mtu(&mut self, cx: &mut Context) {
        let attempts = self.tcb.sender.attempts();
        if cx.tunables.mtu_probing == MtuProbing::Off
            || attempts < SUSPECT_AFTER && !self.is_full_stop()
            || self.tcb.sender.is_answered()
            || self.tcb.sender.has_syn()
            || self.tcb.sender.seq().wnd.get() == 0
        {
            return;
        }
        let Some(first) = self.tcb.queue().map(|queue| queue.flight.first_segment()) else {
            return;
        };
        let (mss, base) = (self.tcb.sender.mss(), base_mss(&self.tcb, &cx.tunables));
        // RFC 4821 7.7: "set both eff_pmtu and search_low to the initial value for search_low. Upon additional
        // successive timeouts, search_low and eff_pmtu SHOULD be halved, with a lower bound of 68 bytes for IPv4 and
        // 1280 bytes for IPv6."
        let smaller = match attempts {
            ..=SUSPECT_AFTER => base,
            _ => (mss / 2).max(least_probed(&self.tcb, &cx.tunables)),
        };
        // A segment that is small already may be lost for any reason but its size.
        if smaller >= mss || first.end - first.start <= u64::from(smaller) {
            return;
        }
        let record = self.tcb.cold_mut();
        record.mtu_search.get_or_insert(MtuSearch::new(mss, cx.now)).on_suspicion(mss, cx.now);
        self.tcb.sender.set_mss(smaller);
        cx.counters.path_mtu_suspected += 1;
        if let Some(buffers) = self.tcb.buffers.as_deref_mut() {
            // Time-outs say more than a probe that is out.
            let _ = buffers.send.recovery.take_mtu_probe_outcome(&buffers.send.flight);
            plan_mtu_probe(&mut self.tcb.sender, 0, Some(&mut buffers.send));
        }
    }

    /// True if a loss probe and all of the many segments before it went unanswered, on a path that answered full ones
    /// before: losses that are not of a path that failed, or drops such segments, hardly reach so far.
    fn is_full_stop(&self) -> bool {
        let sender = &self.tcb.sender;
        sender.rtt().is_probed()
            && sender.acked_size() >= sender.mss()
            && sender.seq().in_flight() >= MANY_SEGMENTS * u32::from(sender.mss())
            && self.tcb.queue().is_some_and(|queue| {
                queue.recovery.phase() == Phase::Open && queue.flight.sacked().is_empty()
            })
    }

    /// This arrived. Text that was sent once, before smaller segments were, tells that the path carries the larger
    /// ones: it was slow, or stood still.
    #[cold]
    pub(in crate::conn) fn judge_suspicion(&mut self, cx: &mut Context, delivered: &Delivered) {
        let (Some(mut search), Some((sent, end))) = (self.tcb.cold().mtu_search(), delivered.once)
        else {
            return;
        };
        let bytes = delivered.once_from.map_or(0, |from| end - from);
        let size = bytes.min(delivered.segment.into()) as u16;
        if size > self.tcb.sender.mss() && search.refutes(sent, size) {
            cx.counters.path_mtu_refuted += 1;
            self.tcb.sender.set_mss(size);
            self.tcb.cold_mut().mtu_search = Some(search);
        }
    }

    /// Segments begin small, and the search for larger ones at once (Linux' `tcp_mtu_probing` of 2).
    #[cold]
    pub(in crate::conn) fn begin_mtu_search(&mut self, cx: &mut Context) {
        let (mss, base) = (self.tcb.sender.mss(), base_mss(&self.tcb, &cx.tunables));
        if base < mss {
            self.tcb.cold_mut().mtu_search = Some(MtuSearch::new(mss, cx.now));
            self.tcb.sender.set_mss(base);
            self.follow_mtu_search(cx);
        }
    }

    /// Something was acknowledged, judged lost or written: a probe may have its outcome, or the next may leave.
    #[inline(never)]
    pub(in crate::conn) fn follow_mtu_search(&mut self, cx: &mut Context) {
        let Some(mut search) = self.tcb.cold().mtu_search() else { return };
        if search.is_out()
            && let Some(outcome) = take_outcome(self.tcb.buffers.as_deref_mut())
        {
            let view = self.search_view(cx);
            match search.on_outcome(outcome, &view) {
                ProbeVerdict::Fits(size) => {
                    cx.counters.mtu_probe_successes += 1;
                    self.tcb.sender.set_mss(size.max(self.tcb.sender.mss()));
                }
                ProbeVerdict::TooLarge => cx.counters.mtu_probe_failures += 1,
                ProbeVerdict::Unknown => {}
            }
            self.wake_for_news(cx, &search);
        }
        let size = search.poll_size(&self.search_view(cx));
        let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        plan_mtu_probe(&mut self.tcb.sender, size.unwrap_or(0), queue);
        self.tcb.cold_mut().mtu_search = Some(search);
    }

    /// News are passed on as a deadline runs out, and where none is probed for, that is now.
    fn wake_for_news(&mut self, cx: &Context, search: &MtuSearch) {
        if search.has_news() && !self.tcb.flags.has(Flags::KEEP_ALIVE) {
            self.timers.life = cx.now;
        }
    }

    /// A probe of the path MTU left with so many bytes of text.
    #[cold]
    pub(in crate::conn) fn on_mtu_probe_made(&mut self, bytes: u32) {
        let size = bytes.min(u32::from(u16::MAX)) as u16;
        if let Some(mut search) = self.tcb.cold().mtu_search() {
            search.on_sent(size);
            self.tcb.cold_mut().mtu_search = Some(search);
        }
    }

    /// A router reports that the path carries segments of `mss` bytes, no more.
    pub(in crate::conn) fn note_reported_mss(&mut self, cx: &Context, mss: u16) {
        if let Some(mut search) = self.tcb.cold().mtu_search() {
            search.on_report(mss, &self.search_view(cx));
            self.tcb.cold_mut().mtu_search = Some(search);
        }
    }

    /// The link carries segments of `mss` bytes, no more.
    pub(in crate::conn) fn limit_mtu_search(&mut self, mss: u16) {
        if let Some(mut search) = self.tcb.cold().mtu_search() {
            search.limit(mss);
            self.tcb.cold_mut().mtu_search = Some(search);
        }
    }

    /// Takes what probes found of the path since this was called last.
    #[cold]
    pub(in crate::conn) fn take_path_finding(&mut self) -> Option<PathFinding> {
        let mut search = self.tcb.cold().mtu_search()?;
        let news = search.take_news();
        let is_over = search.is_over(self.tcb.sender.mss());
        self.tcb.cold_mut().mtu_search = (!is_over).then_some(search);
        news
    }

    fn search_view(&self, cx: &Context) -> SearchView {
        let mss = self.tcb.sender.mss();
        let headers = headers(&self.tcb);
        // RFC 4821 7.6.2: "The simplest estimate of the interval to the next congestion event is the same number of
        // round trips as the current congestion window in packets."
        let trips = self.tcb.sender.cwnd() / u32::from(mss.max(1));
        let trip = self.tcb.sender.rtt().srtt().unwrap_or_default();
        let loss_interval = trip.saturating_mul(trips).min(LONGEST_LOSS_INTERVAL);
        let interval = cx.tunables.mtu_probe_interval;
        SearchView { now: cx.now, mss, headers, loss_interval, interval }
    }
}

/// The outcome of the probe that is out, once it is known.
fn take_outcome(buffers: Option<&mut Buffers>) -> Option<MtuProbeOutcome> {
    // Without text nothing is in flight, and recovery forgets a probe with all that was.
    let Some(SendQueue { recovery, flight, .. }) = buffers.map(|buffers| &mut buffers.send) else {
        return Some(MtuProbeOutcome::Inconclusive);
    };
    let outcome = recovery.take_mtu_probe_outcome(flight);
    outcome.or_else(|| (!recovery.has_mtu_probe_out()).then_some(MtuProbeOutcome::Inconclusive))
}

/// The size of segments on a suspect path, which nearly all paths carry.
fn base_mss(tcb: &Tcb, tunables: &Tunables) -> u16 {
    tunables.mtu_base_mss.max(least_probed(tcb, tunables))
}

/// The least size of segments on a suspect path.
fn least_probed(tcb: &Tcb, tunables: &Tunables) -> u16 {
    if tcb.ends.remote.is_v4() {
        return tunables.mtu_probe_floor.max(tunables.least_mss);
    }
    // RFC 8200 5: "IPv6 requires that every link in the Internet have an MTU of 1280 octets or greater."
    LEAST_MTU_V6 - headers(tcb)
}

/// Bytes of the headers of a packet.
fn headers(tcb: &Tcb) -> u16 {
    let options = if tcb.flags.has(Flags::TIMESTAMPS) { TIMESTAMP_BYTES } else { 0 };
    options + if tcb.ends.remote.is_v4() { HEADERS_V4 } else { HEADERS_V6 }
}

/// RFC 4821 7.7 has R1, which is 3 time-outs or more. After two, a path that became narrow is stuck for half as long,
/// and a path that failed costs a probe.
const SUSPECT_AFTER: u8 = 2;
/// So many segments in flight tell a path that stopped from one that loses some.
const MANY_SEGMENTS: u32 = 10;
/// The longest time between two losses by congestion: CUBIC reaches its former window of 200,000 segments in less.
const LONGEST_LOSS_INTERVAL: Duration = Duration::from_secs(60);
const LEAST_MTU_V6: u16 = 1_280;
const HEADERS_V4: u16 = 40;
const HEADERS_V6: u16 = 60;
