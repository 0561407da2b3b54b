//! Counts of one connection that follow from several of its parts.

use whimbrel_base::{Instant, Tick};
use whimbrel_recovery::cc::Phase;

use crate::conn::duplicate::tells_of_duplicate;
use crate::conn::stats::{LimitSpan, Wraps};
use crate::conn::tcb::Tcb;
use crate::conn::{Limit, Tally};
use crate::{Context, RxSegment};

/// Counts, of which each may wrap.
impl Tcb {
    /// Counts a segment that arrived.
    #[inline]
    pub(in crate::conn) fn count_arrival(&mut self, seg: &RxSegment<'_>, now: Tick) {
        let segs = u32::from(seg.meta.segs);
        if add(&mut self.counts.segs_in, segs) {
            count_one(&mut self.wraps().segs_in);
        }
        if !seg.payload.is_empty() {
            self.counts.last_data_recv = now;
            let each = if segs > 1 { u32::from(seg.meta.gso_size) } else { seg.payload.len() };
            self.counts.rcv_mss = self.counts.rcv_mss.max(each.min(u32::from(u16::MAX)) as u16);
            if add(&mut self.counts.data_segs_in, segs) {
                count_one(&mut self.wraps().data_segs_in);
            }
        }
    }

    /// Counts `segs` segments that left with `bytes` bytes of text.
    #[inline]
    pub(in crate::conn) fn count_departure(&mut self, bytes: u32, segs: u32) {
        if add(&mut self.counts.segs_out, segs) {
            count_one(&mut self.wraps().segs_out);
        }
        if bytes > 0 && add(&mut self.counts.data_segs_out, segs) {
            count_one(&mut self.wraps().data_segs_out);
        }
    }

    /// Counts text that was acknowledged.
    #[inline]
    pub(in crate::conn) fn count_acked(&mut self, bytes: u32, segs: u32) {
        if add_bytes(&mut self.counts.bytes_acked, bytes) {
            self.wraps().bytes_acked += 1;
        }
        if add(&mut self.counts.delivered, segs) {
            count_one(&mut self.wraps().delivered);
        }
    }

    /// Counts text that arrived in order.
    #[inline]
    pub(in crate::conn) fn count_received(&mut self, bytes: u32) {
        if add_bytes(&mut self.counts.bytes_received, bytes) {
            self.wraps().bytes_received += 1;
        }
    }

    /// Counts a time under [`Limit::Network`].
    #[inline]
    fn count_network_limited(&mut self, millis: u32) {
        let sum = u32::from(self.counts.network_limited).wrapping_add(millis);
        self.counts.network_limited = sum as u16;
        if sum > u16::MAX.into() {
            let wraps = self.wraps();
            wraps.network_limited = wraps.network_limited.wrapping_add((sum >> 16) as u16);
        }
    }

    #[cold]
    fn wraps(&mut self) -> &mut Wraps {
        &mut self.stats_mut().wraps
    }

    /// Bytes of text that the peer acknowledged.
    pub(in crate::conn) fn bytes_acked(&self) -> u64 {
        let wraps = self.stats.as_deref().map_or(0, |stats| stats.wraps.bytes_acked);
        u64::from(wraps) << 32 | u64::from(self.counts.bytes_acked)
    }

    /// Bytes of text that arrived in order.
    pub(in crate::conn) fn bytes_received(&self) -> u64 {
        let wraps = self.stats.as_deref().map_or(0, |stats| stats.wraps.bytes_received);
        u64::from(wraps) << 32 | u64::from(self.counts.bytes_received)
    }

    /// All counts, with the time up to `now`.
    pub(in crate::conn) fn tally(&self, now: Instant) -> Tally {
        let wraps = self.stats.as_deref().map_or_else(Wraps::default, |stats| stats.wraps);
        self.counts.tally(wraps, self.limit(), self.sender.text_sent(), now)
    }

    /// The reason why the sender does not send more, as of its last segment in or out.
    fn limit(&self) -> LimitSpan {
        self.buffers.as_deref().map_or_else(LimitSpan::default, |buffers| buffers.limit)
    }
}

/// Adds `more`, at most 65,535, to a count. Returns true if it wrapped.
#[inline]
fn add(count: &mut u16, more: u32) -> bool {
    let (sum, wrapped) = count.overflowing_add(more as u16);
    *count = sum;
    wrapped
}

/// Counts a wrap.
fn count_one(wraps: &mut u16) {
    *wraps = wraps.wrapping_add(1);
}

#[inline]
fn add_bytes(count: &mut u32, more: u32) -> bool {
    let (sum, wrapped) = count.overflowing_add(more);
    *count = sum;
    wrapped
}

impl Tcb {
    /// Counts an acknowledgment, and what it tells of text that came twice.
    pub(in crate::conn) fn note_ack(&mut self, cx: &Context, seg: &RxSegment<'_>) {
        self.counts.last_ack_recv = cx.tick;
        if tells_of_duplicate(seg) {
            self.cold_mut().count_duplicate();
        }
    }

    /// Something was acknowledged: a time-out may be over.
    #[inline(never)]
    pub(in crate::conn) fn note_recovered(&mut self, cx: &Context) {
        let phase = self.buffers.as_deref().map(|buffers| buffers.send.recovery.phase());
        if self.has_record() && phase != Some(Phase::AfterTimeout) {
            self.cold_mut().info_counts.on_recovered(cx.tick);
        }
    }

    /// Notes what keeps the sender from sending more, and for how long.
    #[inline]
    pub(in crate::conn) fn note_limit(&mut self, cx: &Context) {
        let limit = self.judge_limit();
        let Some(buffers) = self.buffers.as_deref_mut() else { return };
        if limit == buffers.limit.limit {
            return;
        }
        let before = core::mem::replace(&mut buffers.limit, LimitSpan { limit, since: cx.tick });
        let millis = before.millis(cx.tick);
        match before.limit {
            Limit::Application => {}
            Limit::Network => self.count_network_limited(millis),
            Limit::Window | Limit::Buffer => {
                self.cold_mut().info_counts.on_limited(before.limit, millis);
            }
        }
    }

    /// Notes what keeps the connection from sending, when nothing may be sent that was asked for.
    // Out of line: nearly each call has something to send.
    #[inline(never)]
    pub(in crate::conn) fn note_held_back(&mut self, cx: &Context) {
        self.note_limit(cx);
    }

    #[inline]
    fn judge_limit(&self) -> Limit {
        let queued = self.send_queued();
        if queued == 0 {
            return Limit::Application;
        }
        let unsent = self.sender.unsent(self.queue());
        if unsent == 0 {
            let refused = self.sender.wants_room();
            return if refused { Limit::Buffer } else { Limit::Network };
        }
        self.judge_windows(unsent)
    }

    /// Which window it is that admits no more.
    #[inline(never)]
    fn judge_windows(&self, unsent: u32) -> Limit {
        let (usable, mss) = (self.sender.seq().usable(), u32::from(self.sender.mss()));
        let admitted = self.sender.cwnd().saturating_sub(self.sender.pipe(self.queue()));
        let window = usable < unsent.min(mss) && usable < admitted;
        if window { Limit::Window } else { Limit::Network }
    }
}
