//! Effects of an acknowledgment: of the window, of the round trip, and of what arrived or is lost.

use core::time::Duration;

use whimbrel_base::{Instant, Micros};
use whimbrel_recovery::cc::{Ack, Control, Phase, SlowStart};
use whimbrel_recovery::flight::Delivered;
use whimbrel_recovery::{Acked, Pacer, Reaction};
use whimbrel_wire::tcp::{SackBlock, SackBlocks, TcpFlags};
use whimbrel_wire::{SeqNum, WindowScale};

use super::{Flags, SendQueue, Sender};
use crate::{Env, RxSegment};

/// The part of the send sequence space that an acknowledgment took off.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Bytes of text, SYN and FIN aside.
    pub bytes: u32,
    /// In full segments, SYN and FIN included, rounded up.
    pub segs: u32,
    /// True if our FIN is part of it.
    pub fin: bool,
    /// The round trip that it ended, once that is measured.
    pub rtt: Option<Micros>,
}

/// An acknowledgment, as a connection hands it to its sender.
#[derive(Clone, Copy, Debug)]
pub struct IncomingAck<'a> {
    /// SEG.ACK: the number below which everything arrived.
    pub ack: SeqNum,
    /// The part that it took off, if it acknowledges something new.
    pub acked: Option<Acknowledged>,
    /// The part of that which the peer had not named before.
    pub delivered: Delivered,
    /// The blocks of its SACK option.
    pub blocks: &'a [SackBlock],
    /// It is a duplicate acknowledgment (RFC 5681 2).
    pub is_duplicate: bool,
    /// When the segment left that it echoes, to a millisecond.
    pub echoed: Option<Instant>,
    /// The least round trip of the last minutes.
    pub min_rtt: Option<Micros>,
    /// Selective acknowledgments were negotiated.
    pub sack: bool,
}

/// In which order what was sent arrived, as an acknowledgment tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As it was sent, as far as it tells.
    AsSent,
    /// Something that was sent once arrived after something that was sent later.
    Reversed,
}

impl Sender {
    /// Everything below `ack` is acknowledged, `numbers` (>= 1) more than before; `delivered` gets the
    /// part of it that the peer had not named.
    #[inline(always)]
    pub fn acknowledge(
        &mut self,
        ack: SeqNum,
        numbers: u32,
        queue: Option<&mut SendQueue>,
        delivered: &mut Delivered,
    ) -> Acknowledged {
        let beyond_syn = numbers - u32::from(self.flags.take(Flags::SYN));
        let bytes = match queue {
            Some(queue) => {
                queue.flight.acknowledge(queue.flight.una() + u64::from(numbers), delivered);
                queue.text.acknowledge_up_to(beyond_syn)
            }
            None => 0,
        };
        let fin = self.flags.has(Flags::FIN_SENT) && beyond_syn > bytes;
        if fin {
            // Before the window is looked at: nothing is left that a closed one could hold back.
            self.flags.clear(Flags::FIN_QUEUED);
            self.flags.clear(Flags::FIN_SENT);
        }
        self.acked_size = self.acked_size.max(delivered.segment.min(self.mss));
        self.seq.advance(ack);
        self.attempts.on_progress();
        if self.flags.has(Flags::RETRANSMIT) && self.is_idle() {
            self.flags.clear(Flags::RETRANSMIT);
        }
        Acknowledged { bytes, segs: self.in_segments(numbers), fin, rtt: None }
    }

    /// The number of full segments so many numbers (>= 1) are, rounded up: without a division where it is one.
    #[inline(always)]
    pub fn in_segments(&self, numbers: u32) -> u32 {
        let mss = u32::from(self.mss).max(1);
        if numbers <= mss { 1 } else { numbers.div_ceil(mss) }
    }

    /// Something new is acknowledged, windows were looked at, and nothing is missing: the congestion window
    /// grows.
    #[inline]
    pub fn on_plain_ack(&mut self, cx: &Env, acked: &Acknowledged, queue: &mut SendQueue) {
        let SendQueue { flight, cc, pacer, .. } = queue;
        let (in_flight, delivered) = (flight.pipe(), acked.bytes);
        Control { window: &mut self.window, state: cc }.on_ack(delivered, |limited| Ack {
            now: cx.now,
            delivered,
            arrived: delivered,
            limited,
            in_flight,
            rtt: acked.rtt,
            srtt: self.rtt.srtt_micros().map_or_else(Micros::default, Micros::new),
            rate: None,
            phase: Phase::Open,
            mss: u32::from(self.mss),
            slow_start: slow_start(cx, pacer, self.mss),
        });
    }

    /// An acknowledgment was taken, and windows were looked at: the congestion window grows, or what is
    /// missing is found and repaired. Returns the order in which what it tells of arrived.
    pub fn on_ack(
        &mut self,
        cx: &mut Env,
        arrival: &IncomingAck<'_>,
        queue: Option<&mut SendQueue>,
    ) -> Order {
        let Some(queue) = queue else { return Order::AsSent };
        let (mut delivered, mut duplicate) = (arrival.delivered, None);
        if !arrival.blocks.is_empty() {
            duplicate = self.take_blocks(arrival, queue, &mut delivered);
        }
        if delivered.is_reordered {
            self.flags.note_reordering(cx);
        }
        let text = arrival.acked.map_or(0, |acked| acked.bytes);
        let unsent = self.has_unsent(Some(queue));
        if !unsent {
            queue.note_all_sent(self.window.cwnd);
        }
        let acked = Acked {
            advances: arrival.acked.is_some(),
            text,
            delivered,
            duplicate,
            is_duplicate: arrival.is_duplicate && arrival.blocks.is_empty(),
            echoed: arrival.echoed,
            rtt: arrival.acked.and_then(|acked| acked.rtt),
            can_send_new: unsent && self.seq.usable() > 0,
            path: self.path(cx.now, arrival.sack, arrival.min_rtt),
            slow_start: slow_start(cx, &queue.pacer, self.mss),
        };
        let (flight, recovery, mut control) = queue.parts(&mut self.window);
        let (reaction, events) = recovery.on_ack(flight, &mut control, &acked);
        self.flags.note_recovery(&events);
        cx.counters.count_recovery(events);
        match reaction {
            Reaction::None => {}
            Reaction::Repair => self.flags.set(Flags::RETRANSMIT),
            Reaction::TimeoutUndone => self.flags.clear(Flags::RETRANSMIT),
            Reaction::LossUndone => self.flags.note_reordering(cx),
        }
        if delivered.is_reordered { Order::Reversed } else { Order::AsSent }
    }

    /// Writes down what the blocks name. Returns what came twice: where it ends, and how many bytes.
    #[inline(never)]
    fn take_blocks(
        &self,
        arrival: &IncomingAck<'_>,
        queue: &mut SendQueue,
        delivered: &mut Delivered,
    ) -> Option<(u64, u32)> {
        let IncomingAck { blocks, ack, .. } = *arrival;
        let first = blocks.first().filter(|_| reports_duplicate(blocks, ack));
        let skipped = usize::from(first.is_some());
        let named = blocks.iter().skip(skipped).filter(|block| {
            block.left.after(self.seq.una)
                && block.left.before(block.right)
                && block.right.at_or_before(self.seq.nxt)
        });
        // RFC 8985 6.2, step 3: "For each Segment newly acknowledged, cumulatively or selectively, in ascending
        // order of Segment.end_seq"; the option has the newest first.
        let mut ranges = [(0, 0); SackBlocks::MAX];
        for (range, block) in ranges.iter_mut().zip(named) {
            *range = (self.offset_of(queue, block.left), self.offset_of(queue, block.right));
        }
        ranges.sort_unstable();
        let end = queue.flight.end();
        for (from, to) in ranges.into_iter().filter(|(from, to)| from < to && *to <= end) {
            queue.flight.sack(from..to, delivered);
        }
        // RFC 2883 4: "A D-SACK block is only used to report a duplicate contiguous sequence of data received by
        // the receiver in the most recent packet." One that names more is no report: a peer could have all
        // that is in flight sent again by each.
        let first = first.filter(|it| it.right.offset_from(it.left) <= MOST_TEXT)?;
        // It may lie below what offsets count from.
        let ahead = i64::from(first.right.distance_from(self.seq.una));
        let end = queue.flight.una().wrapping_add_signed(ahead);
        Some((end, first.right.offset_from(first.left)))
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
    pub fn on_window_opened(&mut self, cx: &Env, queue: Option<&mut SendQueue>) {
        self.attempts.count = 0;
        self.rtt.end_back_off();
        self.restart_after_idle(cx, queue);
    }

    /// Measures the round trip that the last acknowledgment ended: of the first segment that it acknowledges, if
    /// that was sent once, or since what it echoes was sent. `echoed` returns the latter, if it counts; its argument is
    /// true if nothing was measured yet. `queue`: of a sender of which something may be missing.
    // Always: what was delivered is at hand there, and would be stored for it.
    #[inline(always)]
    pub fn measure(
        &mut self,
        cx: &Env,
        delivered: &Delivered,
        queue: Option<&SendQueue>,
        echoed: impl FnOnce(bool) -> Option<Micros>,
    ) -> Option<Micros> {
        // What was sent is measured in microseconds, the echo in milliseconds; after a
        // retransmission only the echo tells which copy arrived.
        let once = delivered.once_first.map(|at| cx.now.micros_since(at));
        let timed = once.or_else(|| self.rtt.finish_timing(cx.now));
        let clear = |trip: &Micros| !self.is_ambiguous(cx, *trip, queue);
        let rtt = match timed {
            Some(trip) if clear(&trip) => trip,
            _ => echoed(self.rtt.srtt_micros().is_none()).filter(clear)?,
        };
        self.rtt.on_sample(rtt);
        Some(rtt)
    }

    /// Without SACK the peer does not tell of text that came twice, or waited behind what is missing: an echo, or a
    /// segment, from before the time-out is as ambiguous as no echo (RFC 6298 3, Karn's algorithm).
    fn is_ambiguous(&self, cx: &Env, trip: Micros, queue: Option<&SendQueue>) -> bool {
        queue
            .is_some_and(|queue| !queue.recovery.is_none() && self.may_be_of_first(cx, trip, queue))
    }

    /// True if a round trip may be that of the first copy, while something is missing or may have been.
    #[inline(never)]
    fn may_be_of_first(&self, cx: &Env, trip: Micros, queue: &SendQueue) -> bool {
        queue.recovery.phase() == Phase::AfterTimeout
            && Duration::from(trip) >= self.rtt.first_rto(&cx.tunables)
    }
}

impl Flags {
    /// The path was seen to reorder segments, for the first time or again.
    #[cold]
    fn note_reordering(&mut self, cx: &mut Env) {
        if !self.has(Self::REORDERS) {
            self.set(Self::REORDERS);
            cx.counters.sack_reorder += 1;
        }
    }
}

/// The rules of slow start of a flow with this pacer: a limit spreads acknowledgments as pacing does, and so does what
/// follows a pause that left cwnd as it was.
#[inline]
fn slow_start(cx: &Env, pacer: &Pacer, mss: u16) -> SlowStart {
    let rules = cx.tunables.slow_start(mss.into());
    let is_paced = pacer.most().is_some() || pacer.has_begun();
    SlowStart { paced: rules.paced || is_paced, ..rules }
}

/// Bytes of text that no packet exceeds, with segments joined by the peer's offloads.
const MOST_TEXT: u32 = 65_535;

/// RFC 2883 4: the first block reports a duplicate if it lies below the acknowledgment, or within
/// the second block.
pub fn reports_duplicate(blocks: &[SackBlock], ack: SeqNum) -> bool {
    let [first, others @ ..] = blocks else { return false };
    let within = |outer: &SackBlock| {
        first.left.at_or_after(outer.left) && first.right.at_or_before(outer.right)
    };
    first.right.at_or_before(ack) || others.first().is_some_and(within)
}
