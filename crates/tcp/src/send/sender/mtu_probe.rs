//! Probes of the path MTU (RFC 4821): new text in one segment that is larger than others.

use whimbrel_base::packet::Slices;
use whimbrel_recovery::MtuProbeOutcome;
use whimbrel_recovery::cc::Phase;

use super::output::SendRange;
use super::{Flags, Head, SendQueue, Sender, queued};
use crate::Env;

/// Whether a probe of the path MTU may leave now.
pub(super) enum MtuProbeStep {
    /// This range goes.
    Send(SendRange),
    /// It goes once acknowledgments have made room for it, and nothing goes before.
    Wait,
    /// It does not go for now, and other text does.
    Defer,
}

impl Sender {
    /// A probe with so many bytes of text is to be sent as soon as it may; 0: none.
    pub fn plan_mtu_probe(&mut self, bytes: u16, queue: &mut SendQueue) {
        queue.mtu_probe = bytes;
        self.flags.set_if(Flags::MTU_PROBE, bytes > 0);
    }

    /// True if the outcome of a probe is not known yet.
    pub fn has_mtu_probe_out(queue: Option<&SendQueue>) -> bool {
        queue.is_some_and(|queue| queue.recovery.has_mtu_probe_out())
    }

    /// Takes the outcome of a probe, once it is known.
    pub fn take_mtu_probe_outcome(queue: Option<&mut SendQueue>) -> Option<MtuProbeOutcome> {
        let queue = queue?;
        queue.recovery.take_mtu_probe_outcome(&queue.flight)
    }

    /// The most text of a segment that is known to have arrived in one: from now on segments have so many bytes.
    pub fn raise_mss(&mut self, mss: u16) {
        self.mss = self.mss.max(mss);
    }

    /// Bytes of text of the segment at SND.UNA as it would leave now, if any is in flight.
    pub fn first_size(&self, queue: &SendQueue) -> u16 {
        let first = queue.flight.first_segment();
        (first.end - first.start).min(u64::from(self.mss)) as u16
    }

    /// Whether the probe that is planned may leave now: RFC 4821 7.4, "Before sending a probe, the flow MUST meet at
    /// least the following conditions".
    pub(super) fn judge_mtu_probe(&self, queue: &SendQueue) -> MtuProbeStep {
        let (size, mss) = (u32::from(queue.mtu_probe), u32::from(self.mss));
        // "the sender SHOULD have enough data queued and sufficient receiver window to send the probe plus at least
        // Tcprexmtthresh [RFC2760] additional segments."
        let needed = size + SEGMENTS_BEHIND * mss;
        let waiting = self.text_end(Some(queue)).offset_from(self.seq.nxt).min(queued(Some(queue)));
        // "It has no outstanding probes or losses."
        let is_undisturbed = self.seq.nxt == self.seq.max
            && queue.recovery.phase() == Phase::Open
            && !queue.recovery.has_mtu_probe_out()
            && !queue.flight.has_lost()
            && queue.flight.sacked().is_empty();
        let is_possible = size > mss
            && is_undisturbed
            && !self.is_persisting()
            && waiting >= needed
            && self.window.cwnd >= needed
            && self.seq.wnd.get() >= needed
            && queue.text.urgent().is_none();
        if !is_possible {
            return MtuProbeStep::Defer;
        }
        // "The available window is greater than the probe size."
        let room = self.window.cwnd.saturating_sub(self.pipe(Some(queue))).min(self.seq.usable());
        if room < size {
            return MtuProbeStep::Wait;
        }
        MtuProbeStep::Send(SendRange::new(self.seq.nxt, size, false).as_probe())
    }

    /// True if a range that is a probe is one of the path MTU, not of the peer's window.
    pub fn is_mtu_probe(&self, range: SendRange) -> bool {
        range.bytes() > u32::from(self.mss)
    }

    /// Makes a probe of the path MTU of the range.
    #[cold]
    pub fn make_mtu_probe(
        &mut self,
        cx: &mut Env,
        range: SendRange,
        queue: &mut SendQueue,
        slices: &mut Slices,
    ) -> Head {
        self.plan_mtu_probe(0, queue);
        let (mut head, end) = self.take_range(range, queue, slices);
        let len = slices.bytes();
        self.text_sent = cx.tick;
        if len == range.bytes() {
            let from = self.offset_of(queue, range.seq);
            // As one segment it stands in the flight, whatever others have.
            let mss = core::mem::replace(&mut self.mss, len as u16);
            self.note_sent(cx, range.seq..end, len, queue);
            self.mss = mss;
            queue.recovery.on_mtu_probe_sent(from..from + u64::from(len));
        } else {
            // The places for its text ran out: it is text as any other.
            head.gso_size = self.mss;
            self.note_sent(cx, range.seq..end, len, queue);
        }
        self.seq.sent_to(self.seq.nxt.later(end));
        head
    }
}

/// RFC 4821 7.4's Tcprexmtthresh: so many segments follow a probe, whose acknowledgments tell of its loss.
const SEGMENTS_BEHIND: u32 = 3;
