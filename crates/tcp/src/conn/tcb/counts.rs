//! Counts of one connection that follow from several of its parts.

use whimbrel_base::Instant;
use whimbrel_recovery::cc::Phase;

use crate::conn::duplicate::tells_of_duplicate;
use crate::conn::limit::LimitSpan;
use crate::conn::tcb::Tcb;
use crate::conn::{Limit, Tally};
use crate::{Context, RxSegment};

impl Tcb {
    /// All counts, with the time up to `now`.
    pub(in crate::conn) fn tally(&self, now: Instant) -> Tally {
        let limit = self.buffers.as_deref().map_or_else(LimitSpan::default, |it| it.limit);
        self.counts.tally(limit, self.sender.text_sent, now)
    }

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
        if self.counts.has_record() && phase != Some(Phase::AfterTimeout) {
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
            Limit::Network => self.counts.on_network_limited(millis),
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
