//! The next segment of a sender: judged without changing anything, then made.

use core::num::NonZeroU32;
use core::ops::Range;

use whimbrel_base::{Micros, cold_path};
use whimbrel_recovery::cc::{Phase, Sent};
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::TcpFlags;

use super::mtu_probe::{self, MtuProbeStep, plan_mtu_probe};
use super::{Flags, PacedText, SendQueue, SendTimer, Sender, queued};
use crate::Env;
use whimbrel_base::packet::Slices;

/// A range of the send sequence space that is to be sent. In 8 bytes it stays in registers between what
/// judges it and what makes a segment of it: in 12 it was stored and read back three times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendRange {
    /// The number of its first byte, or of FIN.
    pub seq: SeqNum,
    /// Its bytes of text, behind [`SendRange::FIN`], [`SendRange::PROBE`] and a bit that is always set.
    packed: NonZeroU32,
}

impl SendRange {
    const FIN: u32 = 1 << 1;
    const PROBE: u32 = 1 << 2;
    const LEN_AT: u32 = 3;

    /// `len` bytes of text from `seq` on, far fewer than 2^29, and a FIN behind them.
    #[inline]
    fn new(seq: SeqNum, len: u32, fin: bool) -> Self {
        debug_assert!(len >> (u32::BITS - Self::LEN_AT) == 0, "{len} bytes");
        let fin = if fin { Self::FIN } else { 0 };
        Self { seq, packed: NonZeroU32::MIN | fin | (len << Self::LEN_AT) }
    }

    /// Returns this range as a probe.
    fn as_probe(self) -> Self {
        Self { packed: self.packed | Self::PROBE, ..self }
    }

    /// Bytes of text in the range, 0 for a FIN alone.
    #[inline]
    pub const fn bytes(self) -> u32 {
        self.packed.get() >> Self::LEN_AT
    }

    /// True if FIN follows them.
    #[inline]
    pub const fn fin(self) -> bool {
        self.packed.get() & Self::FIN != 0
    }

    /// True if it is as much as must be sent to learn if a closed window has opened, or a larger segment arrives.
    #[inline]
    pub const fn is_probe(self) -> bool {
        self.packed.get() & Self::PROBE != 0
    }
}

/// The fields in which a segment's header differs from others that the connection could send now.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// SEG.SEQ: the number of its first byte, or of FIN.
    pub seq: SeqNum,
    /// The control bits, URG aside.
    pub flags: TcpFlags,
    /// Bytes of text of each segment that the device cuts this one into; 0: it is not to be cut.
    pub gso_size: u16,
}

impl Head {
    /// An acknowledgment's, its number aside.
    pub const ACK: Self = Self { seq: SeqNum::new(0), flags: TcpFlags::ACK, gso_size: 0 };
}

/// The next range that is due, decided without changing anything.
impl Sender {
    /// True if our SYN is to be sent, for the first time or again.
    #[inline]
    pub fn syn_is_due(&self) -> bool {
        self.flags.has(Flags::SYN)
            && (self.seq.nxt == self.seq.una || {
                cold_path();
                self.flags.has(Flags::RETRANSMIT)
            })
    }

    /// True if something may be due, by a few comparisons: [`Sender::judge_due`] finds nothing that this
    /// does not. `paced` says what of text that waits for its time.
    #[inline]
    pub fn may_be_due(&self, queue: Option<&SendQueue>, paced: PacedText) -> bool {
        if self.flags.has(Flags::DUE_OR_PACED) {
            cold_path();
            // While text waits for its time, no text is due, nor FIN.
            return paced == PacedText::Counts || self.flags.has(Flags::DUE);
        }
        self.has_unsent(queue) || self.has_lost(queue)
    }

    /// Returns the range that goes next, our SYN being acknowledged: text in segments of at most `max_text` bytes or a
    /// full one.
    #[inline(always)]
    pub fn judge_due(&self, queue: Option<&SendQueue>, max_text: u32) -> Option<SendRange> {
        if self.flags.has(Flags::BEFORE_TEXT)
            && let Some(next) = self.judge_again(queue)
        {
            return next;
        }
        // Apart from each other: with one that is there, nothing asks for it again.
        let Some(queue) = queue else { return self.judge_lone_fin() };
        if let Some(range) = self.judge_only(queue) {
            return Some(range);
        }
        let max_text = max_text.min(queue.pacer.quantum());
        if queue.flight.has_lost() && !queue.recovery.prefers_new() {
            return self.judge_repair(queue, max_text);
        }
        if !self.has_unsent(Some(queue)) {
            return None;
        }
        self.judge_text(Some(queue), max_text)
    }

    /// All that there is, if it is no more than a segment, everything before it is acknowledged, and the windows
    /// admit it: nearly all that a short connection sends. Neither Nagle's algorithm nor recovery has anything to
    /// say of it, and what says the same of everything else takes four times as long.
    #[inline(always)]
    fn judge_only(&self, queue: &SendQueue) -> Option<SendRange> {
        let (seq, len) = (self.seq.nxt, queue.text.len());
        let room = self.seq.wnd.get().min(self.window.cwnd);
        let is_only = seq == self.seq.una
            && seq == self.seq.max
            && len > 0
            && len <= u32::from(self.mss)
            && len <= room
            && queue.is_quiet()
            && !self.flags.has(Flags::CORK)
            && queue.text.urgent().is_none();
        let fin = room > len && self.fin_goes_with(len);
        is_only.then_some(SendRange::new(seq, len, fin))
    }

    /// A FIN behind text that is acknowledged, once windows admit it.
    #[inline]
    fn judge_lone_fin(&self) -> Option<SendRange> {
        let closed = self.is_persisting() && self.seq.wnd.get() == 0;
        let room = self.window.cwnd.saturating_sub(self.seq.in_flight()).min(self.seq.usable());
        let fin = self.has_unsent(None) && !closed && room > 0;
        fin.then_some(SendRange::new(self.seq.nxt, 0, fin))
    }

    /// The first of what is lost, as much of it as the congestion window admits.
    #[cold]
    fn judge_repair(&self, queue: &SendQueue, max_text: u32) -> Option<SendRange> {
        if self.is_persisting() && self.seq.wnd.get() == 0 {
            return None;
        }
        let room = self.window.cwnd.saturating_sub(self.pipe(Some(queue)));
        let mss = u32::from(self.mss);
        let most = self.most_text(self.urgent_end(Some(queue)).is_some(), max_text);
        let range = self.lost_range(queue, most.min(room))?;
        // Whole segments: less than one only if no more of it is lost.
        let odd = odd_part(range.bytes(), mss);
        let is_whole = odd == 0 || self.lost_range(queue, mss)?.bytes() == range.bytes();
        let len = if is_whole || range.fin() { range.bytes() } else { range.bytes() - odd };
        (len > 0 || range.fin()).then_some(SendRange::new(range.seq, len, range.fin()))
    }

    /// The amount of text one (super-)segment may have. While something is urgent it is a segment: each has an
    /// urgent pointer of its own, and a device that cuts would repeat the first.
    fn most_text(&self, is_urgent: bool, max_text: u32) -> u32 {
        let mss = u32::from(self.mss);
        if is_urgent { mss } else { max_text.max(mss) }
    }

    /// The first of what is lost, at most `most` bytes of it, as far as the window lets it go again. Where
    /// all up to SND.NXT is lost, what was not sent yet may fill the segment up.
    fn lost_range(&self, queue: &SendQueue, most: u32) -> Option<SendRange> {
        let lost = queue.flight.lost().first()?;
        let seq = self.number_at(queue, lost.start);
        let is_tail = lost.end >= queue.flight.end();
        let numbers = (lost.end - lost.start) as u32;
        let left = self.text_end(Some(queue)).distance_from(seq).max(0).unsigned_abs();
        let window = self.room_again().saturating_sub(seq.offset_from(self.seq.una));
        let most = if is_tail && numbers < u32::from(self.mss) {
            most.min(u32::from(self.mss))
        } else {
            most.min(numbers)
        };
        let len = left.min(window).min(most);
        let fin =
            len == left && window > len && (is_tail || numbers > len) && self.fin_goes_with(len);
        (len > 0 || fin).then_some(SendRange::new(seq, len, fin))
    }

    /// A loss probe: new text if the peer's window admits it, else the last segment again (RFC 8985 7.3).
    #[cold]
    fn judge_loss_probe(&self, queue: Option<&SendQueue>) -> Option<SendRange> {
        let Some(queue) = queue.filter(|queue| !queue.flight.is_empty()) else {
            return self.flags.has(Flags::FIN_SENT).then_some(SendRange::new(
                self.seq.una,
                0,
                true,
            ));
        };
        let mss = u32::from(self.mss);
        // "the sender SHOULD transmit a previously unsent data segment, if one exists and the receive
        // window allows"
        if self.has_unsent(Some(queue))
            && let Some(new) = self
                .judge_new(Some(queue), mss, self.seq.usable())
                .or_else(|| self.judge_held(queue))
        {
            return Some(new);
        }
        let last = queue.flight.last_segment();
        let seq = self.number_at(queue, last.start);
        let left = self.text_end(Some(queue)).distance_from(seq).max(0).unsigned_abs();
        let len = left.min((last.end - last.start) as u32).min(mss);
        let fin = self.flags.has(Flags::FIN_SENT) && len == left;
        (len > 0 || fin).then_some(SendRange::new(seq, len, fin))
    }

    /// The rest of what is unsent, which only Nagle's algorithm or a cork holds: less than a segment, and the
    /// peer's window admits all of it.
    fn judge_held(&self, queue: &SendQueue) -> Option<SendRange> {
        let held = self.text_end(Some(queue)).offset_from(self.seq.nxt);
        // Nothing is held where our FIN alone is unsent: an empty segment asks for nothing.
        let fits = (1..u32::from(self.mss)).contains(&held) && held <= self.seq.usable();
        fits.then_some(SendRange::new(self.seq.nxt, held, false))
    }

    /// Returns the range that goes again whatever the congestion window says, or as a probe. None goes while text waits
    /// for its time. `None`: other text goes.
    #[cold]
    #[inline(never)]
    fn judge_again(&self, queue: Option<&SendQueue>) -> Option<Option<SendRange>> {
        if self.flags.has(Flags::RETRANSMIT) {
            let lost = queue.and_then(|queue| self.lost_range(queue, u32::from(self.mss)));
            return Some(lost.or_else(|| Some(self.oldest_range(queue, self.room_again()))));
        }
        if self.flags.has(Flags::LOSS_PROBE) {
            return Some(self.judge_loss_probe(queue));
        }
        if !self.flags.has(Flags::PROBE) {
            if self.is_paced() {
                return Some(None);
            }
            let queue = queue?;
            let size = u32::from(queue.mtu_probe);
            let probe = SendRange::new(self.seq.nxt, size, false).as_probe();
            return match mtu_probe::judge(self, queue) {
                MtuProbeStep::Send => Some(Some(probe)),
                MtuProbeStep::Wait => Some(None),
                MtuProbeStep::Defer => None,
            };
        }
        // RFC 9293 3.8.6.2.1: what a window too small to be worth it admits is sent after
        // the override time-out, and is text like any other.
        Some(Some(match self.seq.wnd.get() {
            0 => self.oldest_range(queue, self.window_rounding_error().max(1)).as_probe(),
            admitted => self.oldest_range(queue, admitted),
        }))
    }

    /// Returns the range that goes behind a SYN-ACK of ours that was not lost, before it is acknowledged: of Fast Open
    /// (`early`) text.
    #[cold]
    pub fn judge_behind_syn(
        &self,
        queue: Option<&SendQueue>,
        max_text: u32,
        early: bool,
    ) -> Option<SendRange> {
        // After a loss the SYN-ACK alone is repeated, as in Linux, until the peer answers.
        if self.attempts.count > 0 || !self.has_unsent(queue) {
            return None;
        }
        if early && queued(queue) > 0 {
            // The FIN behind it waits until our SYN is acknowledged.
            let range = self.judge_text(queue, max_text).filter(|range| range.bytes() > 0)?;
            return Some(SendRange::new(range.seq, range.bytes(), false));
        }
        // RFC 9293 3.10.4, SYN-RECEIVED: "If no SENDs have been issued and there is no pending data to
        // send, then form a FIN segment and send it (...); otherwise, queue for processing after
        // entering ESTABLISHED state."
        let fin = self.flags.has(Flags::FIN_QUEUED) && queued(queue) == 0;
        fin.then_some(SendRange::new(self.seq.nxt, 0, fin))
    }

    /// The number of a segment without text, where the peer takes it. A window that came with a SYN
    /// lies behind our own SYN, which needs no room in it. Text beyond an open window by less than its
    /// unit was sent when the window said so, and taken; beyond a closed one lies a probe.
    pub fn bare_number(&self) -> SeqNum {
        let (sent, acceptable) = (self.seq.max, self.seq.acceptable());
        if acceptable == sent {
            return sent;
        }
        let by_rounding =
            self.seq.wnd.get() > 0 && acceptable + self.window_rounding_error() == sent;
        if by_rounding || self.flags.has(Flags::SYN) { sent } else { acceptable }
    }

    /// True if windows and Nagle's algorithm admit some of what is unsent.
    #[inline(never)]
    pub(super) fn admits_text(&self, queue: Option<&SendQueue>, max_text: u32) -> bool {
        self.judge_text(queue, max_text).is_some()
    }

    /// The next range of what is unsent that windows and Nagle's algorithm admit.
    // Always: what it judges by is at hand, and where it is judged its parts are needed at once.
    #[inline(always)]
    fn judge_text(&self, queue: Option<&SendQueue>, max_text: u32) -> Option<SendRange> {
        debug_assert!(self.has_unsent(queue));
        if self.is_persisting() && self.seq.wnd.get() == 0 {
            return None;
        }
        let room = self.window.cwnd.saturating_sub(self.pipe(queue));
        self.judge_new(queue, max_text, self.seq.usable().min(room))
    }

    /// The next range of what is unsent, of which `room` is admitted.
    #[inline(always)]
    fn judge_new(&self, queue: Option<&SendQueue>, max_text: u32, room: u32) -> Option<SendRange> {
        let seq = self.seq.nxt;
        let waiting = self.text_end(queue).offset_from(seq).min(queued(queue));
        let urgent = self.urgent_end(queue).is_some();
        let most = self.most_text(urgent, max_text);
        let small = queue.is_some_and(SendQueue::awaits_small);
        let len = self.judge_len(waiting, room, most, urgent || !small);
        let fin = len == waiting && room > len && self.fin_goes_with(len);
        (len > 0 || fin).then_some(SendRange::new(seq, len, fin))
    }

    /// The amount of `waiting` bytes to send in one (super-)segment, when `room` is admitted; `small_may_go`: the last
    /// segment may be a small one without a delay.
    fn judge_len(&self, waiting: u32, room: u32, max_text: u32, small_may_go: bool) -> u32 {
        let mss = u32::from(self.mss);
        let len = waiting.min(room).min(max_text);
        let odd = odd_part(len, mss);
        if odd == 0 {
            return len;
        }
        let all = len == waiting;
        let send_odd = if all {
            // Nagle in Minshall's form: a small segment waits only for an earlier small one
            // (RFC 9293 3.7.4 waits for any; that form stalls a large write's last segment).
            self.flags.has(Flags::FIN_QUEUED)
                || !self.flags.has(Flags::CORK) && (self.flags.has(Flags::NO_DELAY) || small_may_go)
        } else {
            // RFC 9293 3.8.6.2.1 (3): a window that admits half of the largest ever seen is worth
            // filling. Otherwise whole segments only: the rest of the window will come.
            len == room
                && room == self.seq.usable()
                && len < mss
                && len >= self.seq.max_wnd.get() / 2
        };
        if send_odd { len } else { len - odd }
    }

    /// The number of numbers from SND.UNA on may be sent again. What was not sent yet may fill the
    /// segment up only as far as the window admits.
    fn room_again(&self) -> u32 {
        let (sent, admitted) = (self.seq.max.offset_from(self.seq.una), self.seq.wnd.get());
        // RFC 9293 3.8.6, of a window that shrank: the sender "SHOULD retransmit normally the old
        // unacknowledged data between SND.UNA and SND.UNA+SND.WND (SHLD-16)". RFC 7323 2.4: the
        // first time whatever the window says now, as it was in the window when it was sent.
        if self.attempts.count <= 1 {
            sent.max(admitted)
        } else {
            admitted + self.window_rounding_error()
        }
        .max(1)
    }

    /// The number of of the numbers that were sent beyond the window may lie in it all the same: the
    /// peer's window field counts in units, and RFC 7323 2.4 disregards less than one.
    fn window_rounding_error(&self) -> u32 {
        let sent = self.seq.max.offset_from(self.seq.una);
        let unit = 1 << self.scale.get();
        sent.saturating_sub(self.seq.wnd.get()).min(unit - 1)
    }

    /// The range at SND.UNA, at most a segment and `room` numbers: to be sent again, or as a probe. It ends where the
    /// peer holds what follows.
    fn oldest_range(&self, queue: Option<&SendQueue>, room: u32) -> SendRange {
        let held = queue.and_then(|it| Some(it.flight.sacked().first()?.start - it.flight.una()));
        let room = held.map_or(room, |from| u64::from(room).min(from) as u32);
        let queued = queued(queue);
        let len = room.min(u32::from(self.mss)).min(queued);
        let fin = len == queued && room > len && self.fin_goes_with(len);
        SendRange::new(self.seq.una, len, fin)
    }

    /// True if FIN goes with the last `len` bytes of text.
    #[inline]
    fn fin_goes_with(&self, len: u32) -> bool {
        self.flags.has(Flags::FIN_QUEUED) && (len == 0 || !self.flags.has(Flags::FIN_APART))
    }
}

/// Departure of what is due.
impl Sender {
    /// Our SYN is made, with so many bytes of text. Returns whether it was sent before.
    #[inline]
    pub fn on_syn_made(&mut self, cx: &Env, bytes: u32) -> bool {
        self.flags.clear(Flags::RETRANSMIT);
        let again = !self.is_idle();
        let first = self.seq.una + 1;
        if bytes > 0 {
            self.text_sent = cx.tick;
        }
        // What was sent behind it is under way still, if it is only this that is sent again.
        self.seq.sent_to(self.seq.nxt.later(first + bytes));
        if again {
            self.rtt.stop_timing();
        } else {
            self.rtt.start_timing(cx.now);
        }
        again
    }

    /// Makes a segment of the range; its text goes to `slices`. Returns how many of its numbers were
    /// sent before.
    #[inline]
    pub fn make_text(
        &mut self,
        cx: &mut Env,
        range: SendRange,
        queue: Option<&mut SendQueue>,
        slices: &mut Slices,
    ) -> (Head, u32) {
        self.flags.clear(Flags::RETRANSMIT);
        self.flags.clear(Flags::PROBE);
        if self.is_persisting() {
            self.attempts.timer = SendTimer::Retransmission;
        }
        // A FIN goes again which left while nothing was buffered: no flight has it.
        let in_flight = |queue: &&mut SendQueue| {
            range.bytes() > 0 || !queue.flight.is_empty() || self.is_idle()
        };
        let Some(queue) = queue.filter(in_flight) else { return self.make_lone_fin(cx, range) };
        let (mut head, end) = self.take_range(range, queue, slices);
        let (len, mss) = (slices.bytes(), u32::from(self.mss));
        if len > mss {
            head.gso_size = self.mss;
        }
        // Only what was sent before counts as sent again: behind a window probe's byte the
        // rest of a super-segment is new.
        let again = self.seq.max.earlier(end).distance_from(range.seq).max(0).unsigned_abs();
        if odd_part(len, mss) != 0 {
            queue.small_end = queue.small_end.max(self.offset_of(queue, end));
        }
        self.text_sent = cx.tick;
        self.note_sent(cx, range.seq..end, len, queue);
        self.seq.sent_to(self.seq.nxt.later(end));
        (head, again)
    }

    /// Makes a segment of a FIN behind text that is acknowledged.
    #[inline]
    fn make_lone_fin(&mut self, cx: &mut Env, range: SendRange) -> (Head, u32) {
        let (head, end) = self.take_lone_fin(range);
        let again = self.seq.max.earlier(end).distance_from(range.seq).max(0).unsigned_abs();
        if again > 0 {
            cold_path();
            self.rtt.stop_timing();
            if self.flags.take(Flags::LOSS_PROBE) {
                self.rtt.on_probe();
                cx.counters.loss_probes += 1;
            }
        } else {
            self.rtt.start_timing(cx.now);
        }
        self.seq.sent_to(self.seq.nxt.later(end));
        (head, again)
    }

    /// Notes the range that leaves.
    #[inline]
    fn note_sent(
        &mut self,
        cx: &mut Env,
        numbers: Range<SeqNum>,
        bytes: u32,
        queue: &mut SendQueue,
    ) {
        if queue.is_measured() {
            return self.note_measured(cx, numbers, bytes, queue);
        }
        self.note_transmission(cx, numbers, bytes, queue);
    }

    /// Notes the range that leaves of a flow that may be sampled or paced.
    // Inlined, it would have each short connection keep its arguments.
    #[inline(never)]
    fn note_measured(
        &mut self,
        cx: &mut Env,
        numbers: Range<SeqNum>,
        bytes: u32,
        queue: &mut SendQueue,
    ) {
        let is_last = !numbers.end.before(self.text_end(Some(queue)));
        let range = self.offset_of(queue, numbers.start)..self.offset_of(queue, numbers.end);
        let (repaired, sent) = self.note_transmission(cx, numbers, bytes, queue);
        if queue.flight.is_sampled() {
            queue.note_sample(&range, repaired, &sent, is_last.then_some(self.window.cwnd));
        }
        if queue.note_use(&mut self.window, &sent) {
            self.restart_window(cx, 0, Some(queue));
        }
        let srtt = self.rtt.srtt_micros().map_or_else(Micros::default, Micros::new);
        // RFC 7661 4.4.2: "A TCP sender in the non-validated phase SHOULD control the maximum burst size".
        let is_paced =
            cx.tunables.pacing || queue.pacer.most().is_some() || self.window.is_preserved();
        let ratios = is_paced.then(|| cx.tunables.pacing_ratios());
        if queue.pace(&mut self.window, &sent, ratios, srtt) {
            self.flags.set(Flags::PACED);
        }
    }

    /// Tells flight, recovery and congestion control of the range that leaves. Returns the bytes of it that leave
    /// again, and what congestion control was told.
    #[inline(always)]
    fn note_transmission(
        &mut self,
        cx: &mut Env,
        numbers: Range<SeqNum>,
        bytes: u32,
        queue: &mut SendQueue,
    ) -> (u64, Sent) {
        let offsets = self.offset_of(queue, numbers.start)..self.offset_of(queue, numbers.end);
        let repaired = queue.flight.transmit(offsets, self.mss, cx.now);
        let is_plain =
            repaired == 0 && queue.recovery.is_none() && !self.flags.has(Flags::LOSS_PROBE);
        let in_flight = match is_plain {
            true => queue.flight.pipe(),
            false => self.note_repair(cx, bytes, repaired, queue),
        };
        let sent = Sent { now: cx.now, bytes, in_flight, mss: u32::from(self.mss) };
        queue.control(&mut self.window).on_sent(&sent);
        (repaired, sent)
    }

    /// Notes that bytes left while something is missing, or was asked for: `repaired` of them not for the
    /// first time. Returns the bytes in flight since.
    #[inline(never)]
    fn note_repair(
        &mut self,
        cx: &mut Env,
        bytes: u32,
        repaired: u64,
        queue: &mut SendQueue,
    ) -> u32 {
        queue.recovery.on_sent(bytes, repaired, cx.now);
        if repaired > 0 {
            match queue.recovery.phase() {
                Phase::FastRecovery => cx.counters.fast_retrans += 1,
                Phase::AfterTimeout => cx.counters.slow_start_retrans += 1,
                Phase::Open => {}
            }
        }
        if self.flags.has(Flags::LOSS_PROBE) {
            self.flags.clear(Flags::LOSS_PROBE);
            self.rtt.on_probe();
            cx.counters.loss_probes += 1;
            queue.recovery.on_probe_sent(queue.flight.end(), repaired > 0);
        }
        queue.recovery.pipe(&queue.flight)
    }

    /// Makes a probe of the range. It leaves SND.NXT where it is: if the window stays closed, the probe
    /// was not sent.
    #[cold]
    pub fn make_probe(
        &mut self,
        range: SendRange,
        queue: Option<&mut SendQueue>,
        slices: &mut Slices,
    ) -> Head {
        self.flags.clear(Flags::PROBE);
        let (head, end) = match queue {
            Some(queue) => self.take_range(range, queue, slices),
            None => self.take_lone_fin(range),
        };
        self.rtt.stop_timing();
        self.seq.max = self.seq.max.later(end);
        head
    }

    /// Collects the range's text. Returns the head of its segment, and where it ends, FIN included.
    // Always: nearly each segment with text is made by this, and its head stays in registers.
    #[inline(always)]
    fn take_range(
        &mut self,
        range: SendRange,
        queue: &mut SendQueue,
        slices: &mut Slices,
    ) -> (Head, SeqNum) {
        // RFC 9293 3.9.1.2: "MUST set the PSH bit in the last buffered segment (i.e., when there
        // is no more queued data to be sent) (MUST-61)".
        let is_last = range.bytes() > 0 && range.seq + range.bytes() == self.text_end(Some(queue));
        if range.bytes() > 0 {
            queue.text.slice(range.seq.offset_from(self.text_start()), range.bytes(), slices);
        }
        let mss = u32::from(self.mss);
        if slices.bytes() < range.bytes() && slices.bytes() > mss {
            // The places ran out in the middle.
            end_on_segment(slices, mss);
        }
        let len = slices.bytes();
        let is_whole = len == range.bytes();
        let mut flags = TcpFlags::ACK;
        if is_whole && is_last {
            flags |= TcpFlags::PSH;
        }
        let fin = is_whole && range.fin();
        if fin {
            self.flags.set(Flags::FIN_SENT);
            flags |= TcpFlags::FIN;
        }
        (Head { seq: range.seq, flags, gso_size: 0 }, range.seq + len + u32::from(fin))
    }

    /// Takes a FIN without text, where nothing is buffered.
    #[inline]
    fn take_lone_fin(&mut self, range: SendRange) -> (Head, SeqNum) {
        debug_assert_eq!(range.bytes(), 0, "without a queue there is no text");
        let mut flags = TcpFlags::ACK;
        if range.fin() {
            self.flags.set(Flags::FIN_SENT);
            flags |= TcpFlags::FIN;
        }
        (Head { seq: range.seq, flags, gso_size: 0 }, range.seq + u32::from(range.fin()))
    }
}

/// Makes a probe of the path MTU of the range.
#[cold]
pub fn make_mtu_probe(
    sender: &mut Sender,
    cx: &mut Env,
    range: SendRange,
    queue: &mut SendQueue,
    slices: &mut Slices,
) -> Head {
    plan_mtu_probe(sender, 0, Some(queue));
    let (mut head, end) = sender.take_range(range, queue, slices);
    let len = slices.bytes();
    sender.text_sent = cx.tick;
    if len == range.bytes() {
        let from = sender.offset_of(queue, range.seq);
        // As one segment it stands in the flight, whatever others have.
        let mss = core::mem::replace(&mut sender.mss, len as u16);
        sender.note_sent(cx, range.seq..end, len, queue);
        sender.mss = mss;
        queue.recovery.on_mtu_probe_sent(from..from + u64::from(len));
    } else {
        // The places for its text ran out: it is text as any other.
        head.gso_size = sender.mss;
        sender.note_sent(cx, range.seq..end, len, queue);
    }
    sender.seq.sent_to(sender.seq.nxt.later(end));
    head
}

/// The part of `bytes` that fills no full segment: without a division where there is none.
#[inline]
const fn odd_part(bytes: u32, mss: u32) -> u32 {
    if bytes < mss { bytes } else { bytes % mss }
}

/// Keeps full segments of `mss` bytes.
#[inline(never)]
fn end_on_segment(slices: &mut Slices, mss: u32) {
    slices.truncate(slices.bytes() - slices.bytes() % mss);
}

/// The number of segments a device makes of `bytes` of text.
pub fn segments(bytes: u32, gso_size: u16) -> u64 {
    if gso_size == 0 { 1 } else { u64::from(bytes.div_ceil(u32::from(gso_size)).max(1)) }
}
