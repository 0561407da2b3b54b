//! What an acknowledgment tells: of the window, of the round trip, and of what arrived or is lost.

use core::time::Duration;

use whimbrel_base::Micros;
use whimbrel_wire::tcp::{SackBlock, TcpFlags};
use whimbrel_wire::{SeqNum, WindowScale};

use super::{Flags, SendQueue, Sender};
use crate::cc::Ack;
use crate::recovery::{CaState, RecoveryAction};
use crate::{Context, RxSegment};

/// What an acknowledgment of something new took off the send sequence space.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Octets of text, SYN and FIN aside.
    pub octets: u32,
    /// In full segments, SYN and FIN included, rounded up.
    pub segs: u32,
    /// Whether our FIN is part of it.
    pub fin: bool,
}

impl Sender {
    /// Everything below `ack` is acknowledged, `numbers` (>= 1) more than before.
    pub fn acknowledge(
        &mut self,
        ack: SeqNum,
        numbers: u32,
        queue: Option<&mut SendQueue>,
    ) -> Acknowledged {
        let beyond_syn = numbers - u32::from(self.flags.take(Flags::SYN));
        let octets = queue.map_or(0, |queue| queue.text.acknowledge_up_to(beyond_syn));
        let fin = self.flags.has(Flags::FIN_SENT) && beyond_syn > octets;
        if fin {
            // Before the window is looked at: nothing is left that a closed one could hold back.
            self.flags.clear(Flags::FIN_QUEUED);
            self.flags.clear(Flags::FIN_SENT);
        }
        self.acked_size = self.acked_size.max(octets.min(u32::from(self.mss)) as u16);
        self.seq.advance(ack);
        // It must not fall behind by half the circle, or it would seem to lie ahead.
        self.small_end = self.small_end.later(ack);
        self.attempts = 0;
        if self.flags.has(Flags::RETRANSMIT) && self.is_idle() {
            self.flags.clear(Flags::RETRANSMIT);
        }
        Acknowledged { octets, segs: self.in_segments(numbers), fin }
    }

    /// How many full segments so many numbers (>= 1) are, rounded up: without a division where it is one.
    fn in_segments(&self, numbers: u32) -> u32 {
        let mss = u32::from(self.mss).max(1);
        if numbers <= mss { 1 } else { numbers.div_ceil(mss) }
    }

    /// SND.UNA moved over `delivered` octets of text, and windows were looked at: the congestion window
    /// grows, or recovery goes on.
    #[inline]
    pub fn on_new_ack(
        &mut self,
        cx: &Context<'_>,
        delivered: u32,
        rtt: Option<Micros>,
        queue: Option<&mut SendQueue>,
    ) {
        let (flight, phase) = (self.flight(), self.recovery.phase());
        let app_limited = !self.has_unsent(queue.as_deref());
        let Some(queue) = queue else { return };
        queue.cc.on_ack_with(&mut self.window, || Ack {
            now: cx.now,
            delivered,
            in_flight: flight.octets,
            rtt,
            rate: None,
            app_limited,
            phase,
            mss: flight.mss,
        });
        let action =
            self.recovery.on_new_ack(&mut queue.control(&mut self.window), self.seq.una, flight);
        if action == RecoveryAction::Retransmit {
            self.flags.set(Flags::RETRANSMIT);
        }
    }

    /// A duplicate acknowledgment (RFC 5681 2) came.
    pub fn on_duplicate(&mut self, cx: &mut Context<'_>, queue: Option<&mut SendQueue>) {
        let Some(queue) = queue else { return };
        let flight = self.flight();
        let action =
            self.recovery.on_duplicate(&mut queue.control(&mut self.window), self.seq.una, flight);
        self.take_action(cx, action);
    }

    /// An acknowledgment of `ack` names these blocks as held. Returns what is done about it.
    pub fn on_sack(
        &mut self,
        cx: &mut Context<'_>,
        blocks: &[SackBlock],
        ack: SeqNum,
        queue: Option<&mut SendQueue>,
    ) -> RecoveryAction {
        let Some(queue) = queue else { return RecoveryAction::Wait };
        let sacked = self.sacked_octets(blocks, ack);
        if sacked == 0 {
            return RecoveryAction::Wait;
        }
        let flight = self.flight();
        let action = self.recovery.on_sacked(
            &mut queue.control(&mut self.window),
            self.seq.una,
            sacked,
            flight,
        );
        self.take_action(cx, action);
        action
    }

    fn take_action(&mut self, cx: &mut Context<'_>, action: RecoveryAction) {
        if action == RecoveryAction::Retransmit {
            cx.counters.fast_retrans += 1;
            self.rtt.stop_timing();
            self.flags.set(Flags::RETRANSMIT);
        }
    }

    /// How many octets beyond SND.UNA the blocks name. A first block that reports a duplicate (RFC 2883
    /// 4) lies below, or within the second.
    fn sacked_octets(&self, blocks: &[SackBlock], ack: SeqNum) -> u32 {
        let held = |block: &&SackBlock| {
            block.left.after(self.seq.una)
                && block.left.before(block.right)
                && block.right.at_or_before(self.seq.max)
        };
        let skipped = usize::from(reports_duplicate(blocks, ack));
        let octets = blocks.iter().skip(skipped).filter(held);
        octets.map(|block| block.right.offset_from(block.left)).sum()
    }

    /// Takes SEG.WND. Returns whether it changed.
    #[inline(always)]
    pub fn take_window(&mut self, seg: &RxSegment<'_>) -> bool {
        // RFC 7323 2.2: "The window field in a segment where the SYN bit is set (...) MUST NOT
        // be scaled."
        let syn = seg.header.flags.contains(TcpFlags::SYN);
        let scale = if syn { WindowScale::ZERO } else { self.scale };
        self.seq.update_window(seg.header.seq, seg.header.ack, seg.header.window.scaled(scale))
    }

    /// The closed window opened: the peer was there all the time, and what backed off were probes.
    pub fn on_window_opened(&mut self, cx: &Context<'_>, queue: Option<&mut SendQueue>) {
        self.attempts = 0;
        self.rtt.end_back_off();
        self.restart_after_idle(cx, queue);
    }

    /// Measures the round trip that the acknowledgment of everything below `ack` ends: of the segment
    /// that was timed, or since what it echoes was sent.
    pub fn measure(
        &mut self,
        cx: &Context<'_>,
        ack: SeqNum,
        echoed: impl FnOnce() -> Option<Micros>,
    ) -> Option<Micros> {
        // The timed segment is measured in microseconds, the echo in milliseconds; after a
        // retransmission only the echo tells which copy arrived.
        let timed = self.rtt.finish_timing(ack, cx.now);
        let rtt = timed.or_else(|| echoed().filter(|trip| !self.is_ambiguous(cx, *trip)))?;
        self.rtt.on_sample(rtt, cx.tunables);
        Some(rtt)
    }

    /// Without SACK nobody tells of text that came twice: an echo from before the time-out that sent
    /// it again is as ambiguous as no echo (RFC 6298 3, Karn's algorithm).
    fn is_ambiguous(&self, cx: &Context<'_>, trip: Micros) -> bool {
        self.recovery.ca_state() == CaState::Loss
            && Duration::from(trip) >= self.rtt.first_rto(cx.tunables)
    }
}

/// RFC 2883 4: the first block reports a duplicate if it lies below the acknowledgment, or within
/// the second block.
pub fn reports_duplicate(blocks: &[SackBlock], ack: SeqNum) -> bool {
    let [first, others @ ..] = blocks else { return false };
    let within = |outer: &SackBlock| {
        first.left.at_or_after(outer.left) && first.right.at_or_before(outer.right)
    };
    first.right.at_or_before(ack) || others.first().is_some_and(within)
}
