//! What to send next: judged without changing anything, then made.

use whimbrel_base::Tick;
use whimbrel_wire::SeqNum;
use whimbrel_wire::plain::PlainOptions;
use whimbrel_wire::tcp::{
    FastOpen, OptionOrder, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};
use whimbrel_wire::{Mss, RawWindow, WindowScale, WindowSize};

use super::{Connection, Flags, State};
use crate::table::Identity;
use crate::{Context, Slices};

/// A segment to send; its text is in the [`Slices`] that were handed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// SEG.SEQ.
    pub seq: SeqNum,
    /// SEG.ACK.
    pub ack: SeqNum,
    /// The control bits.
    pub flags: TcpFlags,
    /// SEG.WND, unscaled.
    pub window: RawWindow,
    /// SEG.UP.
    pub urgent: u16,
    /// The text of each segment that the device cuts this one into; 0: it is not to be cut.
    pub gso_size: u16,
    /// The option that nearly all segments have.
    pub timestamps: Option<Timestamps>,
    /// The others.
    pub rare: RareOptions,
}

/// Options that few segments have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RareOptions {
    /// None of them.
    None,
    /// Those of a SYN.
    Opening(Opening),
    /// What arrived out of order, or twice.
    Sack(SackBlocks),
}

/// What a SYN or SYN-ACK says beside timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// The MSS that is announced.
    pub mss: Mss,
    /// How our windows are scaled, if that is offered or agreed upon.
    pub window_scale: Option<WindowScale>,
    /// SACK options are welcome.
    pub sack_permitted: bool,
    /// A cookie, or the request for one.
    pub fast_open: Option<FastOpen>,
}

impl Opening {
    /// The same as options of a header.
    fn options(&self, timestamps: Option<Timestamps>) -> TcpOptions {
        let Self { mss, window_scale, sack_permitted, fast_open } = *self;
        let mss = Some(mss);
        let rest = TcpOptions::default();
        TcpOptions { mss, window_scale, sack_permitted, fast_open, timestamps, ..rest }
    }
}

impl Outgoing {
    /// Its options, if they are of those that nearly all segments have.
    #[inline]
    pub fn plain_options(&self, order: OptionOrder) -> Option<PlainOptions> {
        match (&self.rare, self.timestamps) {
            (RareOptions::None, None) => Some(PlainOptions::None),
            (RareOptions::None, Some(stamps)) => Some(PlainOptions::Timestamps(stamps)),
            (RareOptions::Opening(opening), Some(stamps)) if order == OptionOrder::Linux => {
                let whole = opening.sack_permitted && opening.fast_open.is_none();
                let scale = opening.window_scale.filter(|_| whole)?;
                Some(PlainOptions::Opening(opening.mss, stamps, scale))
            }
            _ => None,
        }
    }

    /// The header between these ports, checksum to be filled in.
    pub fn header(&self, src_port: u16, dst_port: u16) -> TcpHeader {
        let timestamps = self.timestamps;
        let options = match self.rare {
            RareOptions::None => TcpOptions { timestamps, ..TcpOptions::default() },
            RareOptions::Opening(opening) => opening.options(timestamps),
            RareOptions::Sack(sack) => TcpOptions { timestamps, sack, ..TcpOptions::default() },
        };
        let Self { seq, ack, flags, window, urgent, .. } = *self;
        TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent, options }
    }
}

/// What the connection would send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    /// SYN, or SYN-ACK in a simultaneous open.
    Syn,
    /// Text, with FIN behind it if that is all there is.
    Text(Piece),
    /// As much as must be sent to learn whether a closed window has opened.
    Probe(Piece),
    /// An old number, so that the peer must answer.
    KeepAlive,
    /// An acknowledgment.
    Ack,
}

/// A piece of the send sequence space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Piece {
    seq: SeqNum,
    len: u32,
    fin: bool,
}

/// What distinguishes a segment's header from that of others that the connection could send now.
#[derive(Clone, Copy, Debug)]
struct Head {
    seq: SeqNum,
    flags: TcpFlags,
    gso_size: u16,
}

impl Head {
    /// An acknowledgment's, its number aside.
    const ACK: Self = Self { seq: SeqNum::new(0), flags: TcpFlags::ACK, gso_size: 0 };
}

/// What is judged and made.
impl Connection {
    /// Whether there is something to send now.
    pub fn wants_transmit(&self, max_text: u32) -> bool {
        self.judge_transmit(max_text).is_some()
    }

    /// Whether there may be something to send: whatever [`Connection::wants_transmit`] finds is
    /// found here by a few comparisons, for asking after each call. What windows or Nagle's
    /// algorithm hold back is found as well; [`Connection::poll_transmit`] judges that, once.
    #[inline]
    pub fn may_transmit(&self) -> bool {
        !matches!(self.state, State::Closed | State::TimeWait)
            && (self.receiver.owes_ack()
                || self.flags.has_any(Flags::DUE)
                || self.has_unsent()
                || self.owes_window_update())
    }

    /// Makes the next segment, if there is one to send. `slices` is empty and receives its text, at
    /// most `max_text` octets of it or a full segment: more than that if the device (or the stack behind
    /// it) cuts super-segments.
    pub fn poll_transmit(
        &mut self,
        cx: &mut Context<'_>,
        max_text: u32,
        slices: &mut Slices,
    ) -> Option<Outgoing> {
        let Some(plan) = self.judge_transmit(max_text) else {
            self.note_limit(cx);
            return None;
        };
        let head = match plan {
            Plan::Syn => {
                let outgoing = self.make_syn(cx, slices);
                self.on_made(cx, slices, 0);
                return Some(outgoing);
            }
            Plan::Text(piece) => self.make_text(cx, piece, slices),
            Plan::Probe(piece) => self.make_probe(cx, piece, slices),
            Plan::KeepAlive => {
                self.flags.clear(Flags::KEEP_ALIVE_NOW);
                // RFC 9293 3.8.4: "SEG.SEQ = SND.NXT-1", with nothing in it.
                Head { seq: self.snd.max - 1, ..Head::ACK }
            }
            Plan::Ack => Head { seq: self.bare_number(), ..Head::ACK },
        };
        let sack = self.name_held(slices.octets());
        self.on_made(cx, slices, head.gso_size);
        // Last, so that it is written where the caller has it.
        Some(self.make_header(cx, head, sack))
    }

    /// A segment is made: it is counted, and what it carried may be all there was.
    #[inline(always)]
    fn on_made(&mut self, cx: &mut Context<'_>, slices: &Slices, gso_size: u16) {
        let segs = segments(slices.octets(), gso_size);
        cx.counters.out_segs += segs;
        self.ledger.tally.on_sent(slices.octets(), segs, cx.tick);
        if self.unsent_low_water().is_some() {
            self.tell_room();
        }
        self.note_limit(cx);
        self.settle(cx);
    }

    /// The number of a segment without text, where the peer takes it. A window that came with a SYN
    /// lies behind our own SYN, which needs no room in it. Text beyond an open window by less than its
    /// unit was sent when the window said so, and taken; beyond a closed one lies a probe.
    pub(super) fn bare_number(&self) -> SeqNum {
        let (sent, acceptable) = (self.snd.max, self.snd.acceptable());
        if acceptable == sent {
            return sent;
        }
        let by_rounding = self.snd.wnd.get() > 0 && acceptable + self.blurred() == sent;
        if by_rounding || self.flags.has(Flags::SYN) { sent } else { acceptable }
    }

    fn judge_transmit(&self, max_text: u32) -> Option<Plan> {
        if matches!(self.state, State::Closed | State::TimeWait) {
            return None;
        }
        if self.flags.has(Flags::SYN)
            && (self.snd.nxt == self.snd.una || self.flags.has(Flags::RETRANSMIT))
        {
            return Some(Plan::Syn);
        }
        if self.state == State::SynSent {
            return None;
        }
        if !self.flags.has(Flags::SYN) {
            if self.flags.has(Flags::RETRANSMIT) {
                return Some(Plan::Text(self.oldest_piece(self.room_again())));
            }
            if self.flags.has(Flags::PROBE) {
                // RFC 9293 3.8.6.2.1: what a window too small to be worth it admits is sent after
                // the override time-out, and is text like any other.
                return Some(match self.snd.wnd.get() {
                    0 => Plan::Probe(self.oldest_piece(self.blurred().max(1))),
                    admitted => Plan::Text(self.oldest_piece(admitted)),
                });
            }
            if self.has_unsent()
                && let Some(piece) = self.judge_text(max_text)
            {
                return Some(Plan::Text(piece));
            }
        } else if self.attempts == 0
            && self.has_unsent()
            && let Some(piece) = self.judge_unestablished(max_text)
        {
            return Some(Plan::Text(piece));
        }
        if self.flags.has(Flags::KEEP_ALIVE_NOW) {
            return Some(Plan::KeepAlive);
        }
        (self.receiver.owes_ack() || self.owes_window_update()).then_some(Plan::Ack)
    }

    /// What goes behind a SYN-ACK that is not acknowledged, as long as it was not lost. Afterwards it
    /// alone is repeated, as in Linux, until somebody answers.
    #[cold]
    fn judge_unestablished(&self, max_text: u32) -> Option<Piece> {
        if self.is_early() {
            // The FIN waits until our SYN is acknowledged.
            let piece = self.judge_text(max_text).filter(|piece| piece.len > 0)?;
            return Some(Piece { fin: false, ..piece });
        }
        // RFC 9293 3.10.4, SYN-RECEIVED: "If no SENDs have been issued and there is no pending data to
        // send, then form a FIN segment and send it (...); otherwise, queue for processing after
        // entering ESTABLISHED state."
        let fin = self.flags.has(Flags::FIN_QUEUED) && self.send_queued() == 0;
        fin.then_some(Piece { seq: self.snd.nxt, len: 0, fin })
    }

    /// The next piece of what is unsent that windows and Nagle's algorithm admit.
    fn judge_text(&self, max_text: u32) -> Option<Piece> {
        debug_assert!(self.has_unsent());
        if self.flags.has(Flags::PERSIST) && self.snd.wnd.get() == 0 {
            return None;
        }
        let mss = u32::from(self.mss);
        let in_flight = self.snd.in_flight();
        let cwnd = self.cc.cwnd.saturating_add(self.recovery.limited_transmit(mss));
        let room = self.snd.usable().min(cwnd.saturating_sub(in_flight));
        let seq = self.snd.nxt;
        let waiting = self.text_end().offset_from(seq).min(self.send_queued());
        // Each segment has an urgent pointer of its own: a device that cuts would repeat the first.
        let most = if self.snd_up().is_some() { mss } else { max_text.max(mss) };
        let len = self.judge_len(waiting, room, most);
        let fin = len == waiting && room > len && self.fin_goes_with(len);
        (len > 0 || fin).then_some(Piece { seq, len, fin })
    }

    /// How much of `waiting` octets to send in one (super-)segment, when `room` is admitted.
    fn judge_len(&self, waiting: u32, room: u32, max_text: u32) -> u32 {
        let mss = u32::from(self.mss);
        let len = waiting.min(room).min(max_text);
        let odd = odd_part(len, mss);
        let urgent = self.snd_up().is_some();
        if odd == 0 {
            return len;
        }
        let all = len == waiting;
        let send_odd = if all {
            // Nagle in Minshall's form: a small segment waits only for an earlier small one
            // (RFC 9293 3.7.4 waits for any; that form stalls a large write's last segment).
            self.flags.has(Flags::FIN_QUEUED)
                || !self.flags.has(Flags::CORK)
                    && (self.flags.has(Flags::NO_DELAY)
                        || urgent
                        || self.small_end.at_or_before(self.snd.una))
        } else {
            // RFC 9293 3.8.6.2.1 (3): a window that admits half of the largest ever seen is worth
            // filling. Otherwise whole segments only: the rest of the window will come.
            len == room
                && room == self.snd.usable()
                && len < mss
                && len >= self.snd.max_wnd.get() / 2
        };
        if send_odd { len } else { len - odd }
    }

    /// How many numbers from SND.UNA on may be sent again. What was not sent yet may fill the
    /// segment up only as far as the window admits.
    fn room_again(&self) -> u32 {
        let (sent, admitted) = (self.snd.max.offset_from(self.snd.una), self.snd.wnd.get());
        // RFC 9293 3.8.6, of a window that shrank: the sender "SHOULD retransmit normally the old
        // unacknowledged data between SND.UNA and SND.UNA+SND.WND (SHLD-16)". RFC 7323 2.4: the
        // first time whatever the window says now, as it was in the window when it was sent.
        if self.attempts <= 1 { sent.max(admitted) } else { admitted + self.blurred() }.max(1)
    }

    /// How many of the numbers that were sent beyond the window may lie in it all the same: the
    /// peer's window field counts in units, and RFC 7323 2.4 disregards less than one.
    fn blurred(&self) -> u32 {
        let sent = self.snd.max.offset_from(self.snd.una);
        let unit = 1 << self.send_scale.get();
        sent.saturating_sub(self.snd.wnd.get()).min(unit - 1)
    }

    /// The piece at SND.UNA, at most a segment and `room` numbers: to be sent again, or as a probe.
    fn oldest_piece(&self, room: u32) -> Piece {
        let queued = self.send_queued();
        let len = room.min(u32::from(self.mss)).min(queued);
        let fin = len == queued && room > len && self.fin_goes_with(len);
        Piece { seq: self.snd.una, len, fin }
    }

    /// Whether FIN goes with the last `len` octets of text.
    #[inline]
    fn fin_goes_with(&self, len: u32) -> bool {
        self.flags.has(Flags::FIN_QUEUED) && (len == 0 || !self.flags.has(Flags::FIN_APART))
    }
}

/// Making segments.
impl Connection {
    fn make_syn(&mut self, cx: &mut Context<'_>, slices: &mut Slices) -> Outgoing {
        self.flags.clear(Flags::RETRANSMIT);
        let again = self.snd.max != self.snd.una;
        let fast_syn = self.cold.as_ref().and_then(|cold| cold.fast_syn);
        let fast_open = fast_syn.and_then(|syn| self.take_fast_syn(cx, syn, slices));
        let answers = self.state == State::SynReceived;
        let flags = if answers { TcpFlags::SYN | TcpFlags::ACK } else { TcpFlags::SYN };
        let mut outgoing =
            self.make_header(cx, Head { seq: self.snd.una, flags, gso_size: 0 }, None);
        outgoing.rare = RareOptions::Opening(Opening { fast_open, ..self.offered(cx) });
        // RFC 7323 2.2: "The window field in a segment where the SYN bit is set (...) MUST NOT
        // be scaled."
        outgoing.window = if answers {
            WindowSize::new(self.receiver.seq().wnd()).to_raw(WindowScale::ZERO)
        } else {
            outgoing.ack = SeqNum::new(0);
            self.unscaled_window().to_raw(WindowScale::ZERO)
        };
        let first = self.snd.una + 1;
        // What was sent behind it is under way still, if it is only this that is sent again.
        self.snd.sent_to(self.snd.nxt.later(first + slices.octets()));
        if again {
            cx.counters.syn_retrans += 1;
            cx.counters.retrans_segs += 1;
            self.ledger.tally.on_sent_again(0, 1);
            self.rtt.stop_timing();
        } else {
            self.rtt.start_timing(first, cx.now);
        }
        self.arm_retransmission(cx);
        outgoing
    }

    /// What our SYN or SYN-ACK offers beside timestamps and Fast Open.
    #[inline]
    fn offered(&self, cx: &Context<'_>) -> Opening {
        let (scaling, sack_permitted) = if self.state == State::SynReceived {
            (self.scaling(), self.flags.has(Flags::SACK))
        } else {
            (cx.tunables.window_scaling, cx.tunables.sack)
        };
        Opening {
            mss: Mss::new(self.receiver.advertised_mss()),
            window_scale: scaling.then_some(self.receiver.scale()),
            sack_permitted,
            fast_open: None,
        }
    }

    fn make_text(&mut self, cx: &mut Context<'_>, piece: Piece, slices: &mut Slices) -> Head {
        for flag in [Flags::RETRANSMIT, Flags::PROBE, Flags::PERSIST] {
            self.flags.clear(flag);
        }
        let end = self.take_piece(&piece, slices);
        let (len, mss) = (slices.octets(), u32::from(self.mss));
        let gso_size = if len > mss { self.mss } else { 0 };
        let head = Head { gso_size, ..self.make_piece(&piece, len) };
        if piece.seq.before(self.snd.max) {
            // Only what was sent before counts as sent again: behind a window probe's octet the
            // rest of a super-segment is new.
            let again = self.snd.max.earlier(end).offset_from(piece.seq);
            let segs = segments(again, gso_size);
            cx.counters.retrans_segs += segs;
            self.ledger.tally.on_sent_again(again.min(len), segs);
            self.rtt.stop_timing();
        } else {
            self.rtt.start_timing(end, cx.now);
        }
        if odd_part(len, mss) != 0 {
            self.small_end = end;
        }
        self.text_sent = cx.tick;
        self.snd.sent_to(self.snd.nxt.later(end));
        self.arm_retransmission(cx);
        head
    }

    /// A probe leaves SND.NXT where it is: if the window stays closed, it was not sent.
    fn make_probe(&mut self, cx: &mut Context<'_>, piece: Piece, slices: &mut Slices) -> Head {
        self.flags.clear(Flags::PROBE);
        let end = self.take_piece(&piece, slices);
        let head = self.make_piece(&piece, slices.octets());
        self.rtt.stop_timing();
        self.snd.max = self.snd.max.later(end);
        cx.counters.window_probes += 1;
        self.arm_retransmission(cx);
        head
    }

    /// Collects the piece's text; returns where it ends, FIN included.
    fn take_piece(&mut self, piece: &Piece, slices: &mut Slices) -> SeqNum {
        let offset = piece.seq.offset_from(self.snd.una + u32::from(self.flags.has(Flags::SYN)));
        if let Some(cold) = self.cold.as_mut().filter(|_| piece.len > 0) {
            cold.send.slice(offset, piece.len, slices);
        }
        let mss = u32::from(self.mss);
        if slices.octets() < piece.len && slices.octets() > mss {
            // The places ran out in the middle: end on a full segment.
            slices.truncate(slices.octets() - slices.octets() % mss);
        }
        let fin = piece.fin && slices.octets() == piece.len;
        if fin {
            self.flags.set(Flags::FIN_SENT);
        }
        piece.seq + slices.octets() + u32::from(fin)
    }

    /// `len` octets of the piece were collected.
    fn make_piece(&self, piece: &Piece, len: u32) -> Head {
        let mut flags = TcpFlags::ACK;
        if len > 0 && piece.seq + len == self.text_end() {
            // RFC 9293 3.9.1.2: "MUST set the PSH bit in the last buffered segment (i.e., when there
            // is no more queued data to be sent) (MUST-61)".
            flags |= TcpFlags::PSH;
        }
        if piece.fin && len == piece.len {
            flags |= TcpFlags::FIN;
        }
        Head { seq: piece.seq, flags, gso_size: 0 }
    }

    /// A header that acknowledges everything received, and names what is held. Only duplicates may
    /// remain owed, and an acknowledgment that had no room for that.
    // Always: as a value of its own it would be copied.
    #[inline(always)]
    fn make_header(&mut self, cx: &Context<'_>, head: Head, sack: Option<SackBlocks>) -> Outgoing {
        let Head { seq, flags, gso_size } = head;
        self.timers.stop_ack();
        if self.state != State::SynSent {
            let bounds = self.window_bounds();
            self.receiver.announce(&bounds, cx.tunables);
        }
        self.receiver.on_ack_made(sack.is_none_or(|blocks| !blocks.is_empty()));
        let urgent = self.urgent_pointer(seq);
        Outgoing {
            seq,
            ack: self.receiver.nxt(),
            flags: if urgent > 0 { flags | TcpFlags::URG } else { flags },
            window: self.receiver.raw_window(),
            urgent,
            gso_size,
            timestamps: self.own_timestamps(cx),
            rare: sack.map_or(RareOptions::None, RareOptions::Sack),
        }
    }

    /// RFC 2018 3: as many blocks as fit beside the timestamps, and beside `text`: the text was
    /// cut for a segment without them (RFC 9293 3.7.1), and a packet beyond the MTU is lost each
    /// time it is sent. RFC 2883 4: what came twice stands before all others. `None` if there is
    /// nothing to name, and without text nothing that could be.
    #[inline]
    fn name_held(&mut self, text: u32) -> Option<SackBlocks> {
        let cold = self.cold.as_ref().filter(|_| self.flags.has(Flags::SACK))?;
        if !cold.recv.has_held() && cold.duplicate.is_none() {
            return None;
        }
        self.name_ranges(text)
    }

    fn name_ranges(&mut self, text: u32) -> Option<SackBlocks> {
        let cold = self.cold.as_mut()?;
        let most = if self.flags.has(Flags::TIMESTAMPS) { 3 } else { 4 };
        let room = u32::from(self.mss).saturating_sub(text);
        let fitting = most.min(room.saturating_sub(SACK_OCTETS) / SACK_BLOCK_OCTETS);
        let mut blocks = SackBlocks::NONE;
        if fitting > 0 {
            if let Some(duplicate) = cold.duplicate.take() {
                blocks.push(duplicate);
            }
            cold.recv.sack_blocks(self.receiver.nxt(), fitting as usize, &mut blocks);
        }
        // Without text there is never more room: nothing is left to be told of it.
        (text > 0 || !blocks.is_empty()).then_some(blocks)
    }
}

/// Where the stream ends.
impl Connection {
    /// One past the last octet of text that the application gave us.
    pub(super) fn text_end(&self) -> SeqNum {
        self.snd.una + u32::from(self.flags.has(Flags::SYN)) + self.send_queued()
    }

    /// Whether text or FIN lies beyond SND.NXT.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        let fin = u32::from(self.flags.has(Flags::FIN_QUEUED));
        self.snd.nxt.before(self.text_end() + fin)
    }

    /// Octets of text that were never sent.
    pub(super) fn unsent(&self) -> u32 {
        let beyond = self.text_end().distance_from(self.snd.max).max(0).unsigned_abs();
        // Before our SYN is sent, its number is unsent too.
        beyond.min(self.send_queued())
    }

    /// Whether only the peer's window keeps what is unsent from being sent.
    #[inline]
    pub(super) fn is_stalled(&self) -> bool {
        if !self.flags.has(Flags::PERSIST) {
            // What is in flight will be acknowledged; a full segment that is admitted with nothing in
            // flight, or what there is of it, waits for nothing but a cork.
            let admitted = self.snd.usable() >= u32::from(self.mss) && !self.flags.has(Flags::CORK);
            if self.snd.max != self.snd.una || admitted {
                return false;
            }
        }
        self.has_unsent() && self.judge_text(u32::from(self.mss)).is_none()
    }

    /// TSval now, and TS.Recent to echo, if timestamps were negotiated (while opening: offered).
    pub(super) fn own_timestamps(&self, cx: &Context<'_>) -> Option<Timestamps> {
        self.flags.has(Flags::TIMESTAMPS).then(|| Timestamps {
            val: self.tsval(cx.tick),
            // RFC 7323 3.2: "If the ACK bit is not set in the outgoing TCP header, the sender of that
            // segment SHOULD set the TSecr field to zero", as TS.Recent still is.
            ecr: self.stamps.recent,
        })
    }

    /// TSval now; shown if timestamps were negotiated.
    pub fn tsval(&self, now: Tick) -> u32 {
        Identity::tsval(now, self.stamps.offset)
    }

    /// Window scaling was negotiated (only asked while opening).
    pub(super) fn scaling(&self) -> bool {
        self.receiver.scale() != WindowScale::ZERO || self.send_scale != WindowScale::ZERO
    }
}

/// What remains of `octets` beside full segments: without a division where there is none.
#[inline]
const fn odd_part(octets: u32, mss: u32) -> u32 {
    if octets < mss { octets } else { octets % mss }
}

/// How many segments a device makes of `octets` of text.
fn segments(octets: u32, gso_size: u16) -> u64 {
    if gso_size == 0 { 1 } else { u64::from(octets.div_ceil(u32::from(gso_size)).max(1)) }
}

/// The selective acknowledgment option and its padding, and each of its blocks.
const SACK_OCTETS: u32 = 4;
const SACK_BLOCK_OCTETS: u32 = 8;
