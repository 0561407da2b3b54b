//! Probes of the path MTU (RFC 4821): new text in one segment that is larger than others.

use whimbrel_recovery::cc::Phase;

use super::{Flags, SendQueue, Sender, queued};

/// The decision on a probe of the path MTU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MtuProbeStep {
    /// The probe goes now.
    Send,
    /// It goes once acknowledgments have made room for it, and nothing goes before.
    Wait,
    /// It does not go for now, and other text does.
    Defer,
}

impl Sender {
    /// True if a probe is to be sent as soon as it may.
    #[inline]
    pub const fn has_mtu_probe_planned(&self) -> bool {
        self.flags.has(Flags::MTU_PROBE)
    }
}

/// A probe with so many bytes of text is to be sent as soon as it may; 0: none. Without text the size has no place: it is
/// to be said again with the next.
pub fn plan_mtu_probe(sender: &mut Sender, bytes: u16, queue: Option<&mut SendQueue>) {
    sender.flags.set_if(Flags::MTU_PROBE, bytes > 0);
    if let Some(queue) = queue {
        queue.mtu_probe = bytes;
    }
}

/// Judges whether the probe that is planned may leave now: RFC 4821 7.4, "Before sending a probe, the flow MUST meet at
/// least the following conditions".
pub(super) fn judge(sender: &Sender, queue: &SendQueue) -> MtuProbeStep {
    let (size, mss) = (u32::from(queue.mtu_probe), u32::from(sender.mss));
    // "the sender SHOULD have enough data queued and sufficient receiver window to send the probe plus at least
    // Tcprexmtthresh [RFC2760] additional segments."
    let needed = size + SEGMENTS_BEHIND * mss;
    let waiting = sender.text_end(Some(queue)).offset_from(sender.seq.nxt);
    let waiting = waiting.min(queued(Some(queue)));
    // "It has no outstanding probes or losses."
    let is_undisturbed = sender.seq.nxt == sender.seq.max
        && queue.recovery.phase() == Phase::Open
        && !queue.recovery.has_mtu_probe_out()
        && !queue.flight.has_lost()
        && queue.flight.sacked().is_empty();
    let is_possible = size > mss
        && is_undisturbed
        && !sender.is_persisting()
        && waiting >= needed
        && sender.window.cwnd >= needed
        && sender.seq.wnd.get() >= needed
        && queue.text.urgent().is_none();
    // "The available window is greater than the probe size."
    let room = sender.window.cwnd.saturating_sub(sender.pipe(Some(queue)));
    match is_possible {
        true if room.min(sender.seq.usable()) >= size => MtuProbeStep::Send,
        true => MtuProbeStep::Wait,
        false => MtuProbeStep::Defer,
    }
}

/// RFC 4821 7.4's Tcprexmtthresh: so many segments follow a probe, whose acknowledgments tell of its loss.
const SEGMENTS_BEHIND: u32 = 3;
