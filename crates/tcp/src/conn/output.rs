//! What to send next: judged without changing anything, then made.

use whimbrel_base::{Instant, Tick, cold_path};
use whimbrel_wire::SeqNum;
use whimbrel_wire::plain::PlainOptions;
use whimbrel_wire::tcp::{
    FastOpen, OptionOrder, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};
use whimbrel_wire::{Mss, RawWindow, WindowScale, WindowSize};

use super::{Connection, Flags, State};
use crate::Context;
use crate::send::{Head, SendRange, segments};
use crate::table::Identity;
use whimbrel_base::packet::Slices;

/// A segment to send; its text is in the [`Slices`] that were handed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingSegment {
    /// SEG.SEQ: the number of its first octet, SYN or FIN; else of what would come next.
    pub seq: SeqNum,
    /// SEG.ACK: RCV.NXT, all that arrived in order; 0 on a SYN without ACK.
    pub ack: SeqNum,
    /// The control bits: SYN, ACK, FIN, PSH, URG.
    pub flags: TcpFlags,
    /// SEG.WND, as the field has it: in units of our scale, in octets on a SYN.
    pub window: RawWindow,
    /// SEG.UP: octets from SEG.SEQ to the end of urgent data; 0 without URG.
    pub urgent: u16,
    /// The text of each segment that the device cuts this one into; 0: it is not to be cut.
    pub gso_size: u16,
    /// The option that nearly all segments have.
    pub timestamps: Option<Timestamps>,
    /// Options that few segments have.
    pub rare: RareOptions,
}

/// Options that few segments have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RareOptions {
    /// The segment has no option but timestamps, if those.
    None,
    /// Those of a SYN.
    Syn(SynOptions),
    /// What arrived out of order, or twice.
    Sack(SackBlocks),
}

/// What a SYN or SYN-ACK says beside timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SynOptions {
    /// The MSS that is announced.
    pub mss: Mss,
    /// How our windows are scaled, if that is offered or agreed upon.
    pub window_scale: Option<WindowScale>,
    /// SACK options are welcome.
    pub sack_permitted: bool,
    /// A cookie, or the request for one.
    pub fast_open: Option<FastOpen>,
}

impl SynOptions {
    /// The same as options of a header.
    fn options(&self, timestamps: Option<Timestamps>) -> TcpOptions {
        let Self { mss, window_scale, sack_permitted, fast_open } = *self;
        let mss = Some(mss);
        let rest = TcpOptions::default();
        TcpOptions { mss, window_scale, sack_permitted, fast_open, timestamps, ..rest }
    }
}

impl OutgoingSegment {
    /// Its options, if they are of those that nearly all segments have.
    #[inline]
    pub fn plain_options(&self, order: OptionOrder) -> Option<PlainOptions> {
        match (&self.rare, self.timestamps) {
            (RareOptions::None, None) => Some(PlainOptions::None),
            (RareOptions::None, Some(stamps)) => Some(PlainOptions::Timestamps(stamps)),
            (RareOptions::Syn(opening), Some(stamps)) if order == OptionOrder::Linux => {
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
            RareOptions::Syn(opening) => opening.options(timestamps),
            RareOptions::Sack(sack) => TcpOptions { timestamps, sack, ..TcpOptions::default() },
        };
        let Self { seq, ack, flags, window, urgent, .. } = *self;
        TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent, options }
    }
}

/// What the connection would send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NextSegment {
    /// Text, FIN, or a probe of a closed window.
    Stream(SendRange),
    /// An old number, so that the peer must answer.
    KeepAlive,
    /// An acknowledgment, and the window with it, without text.
    Ack,
}

/// What is judged and made.
impl Connection {
    /// Whether there is something to send now.
    pub fn wants_transmit(&self, max_text: u32) -> bool {
        self.syn_is_next() || self.judge_transmit(max_text).is_some()
    }

    /// Whether what is to be sent next is a SYN, or SYN-ACK in a simultaneous open.
    #[inline]
    pub fn syn_is_next(&self) -> bool {
        self.sender.syn_is_due() && !matches!(self.state, State::Closed | State::TimeWait)
    }

    /// Whether there may be something to send: whatever [`Connection::wants_transmit`] finds is
    /// found here by a few comparisons, for asking after each call. What windows or Nagle's
    /// algorithm hold back is found as well; [`Connection::poll_transmit`] judges that, once.
    #[inline]
    pub fn may_transmit(&self) -> bool {
        !matches!(self.state, State::Closed | State::TimeWait)
            && (self.receiver.owes_ack() || self.may_send())
    }

    /// Whether there may be something to send beside acknowledgments that are owed.
    // Out of line: after each call it is asked, and mostly the answer is no.
    #[inline(never)]
    fn may_send(&self) -> bool {
        self.sender.may_be_due(self.queue()) || self.owes_window_update()
    }

    /// The same of a connection that has just sent a segment, which announced the window: there is no
    /// news of that.
    #[inline]
    pub fn may_transmit_more(&self) -> bool {
        self.receiver.owes_ack() || self.sender.may_be_due(self.queue())
    }

    /// When text may leave again, if it waits for its time: the flow is paced.
    #[inline]
    pub fn paced_until(&self) -> Option<Instant> {
        self.sender.paced_until(self.queue())
    }

    /// Ends the wait of text for its time, if that has come.
    pub fn end_pacing_wait(&mut self, now: Instant) {
        let queue = self.buffers.as_deref().map(|buffers| &buffers.send);
        self.sender.end_pacing_wait(queue, now);
    }

    /// Makes the next segment, if there is one to send. `slices` is empty and receives its text, at
    /// most `max_text` octets of it or a full segment: more than that if the device (or the stack behind
    /// it) cuts super-segments.
    pub fn poll_transmit(
        &mut self,
        cx: &mut Context,
        max_text: u32,
        slices: &mut Slices,
    ) -> Option<OutgoingSegment> {
        if self.syn_is_next() {
            return Some(self.poll_syn(cx, slices));
        }
        self.poll_behind_syn(cx, max_text, slices)
    }

    /// Makes the SYN of a connection whose [SYN is next](Connection::syn_is_next), as
    /// [`Connection::poll_transmit`] does.
    #[inline]
    pub fn poll_syn(&mut self, cx: &mut Context, slices: &mut Slices) -> OutgoingSegment {
        self.prepare_algorithm(cx);
        let outgoing = self.make_syn(cx, slices);
        if self.is_bare() {
            cx.counters.out_segs += 1;
            self.stats.tally.on_sent(0, 1, cx.tick);
        } else {
            self.on_syn_made(cx, slices);
        }
        outgoing
    }

    /// Makes what is to be sent of a connection whose SYN is not next, as [`Connection::poll_transmit`] does.
    pub fn poll_behind_syn(
        &mut self,
        cx: &mut Context,
        max_text: u32,
        slices: &mut Slices,
    ) -> Option<OutgoingSegment> {
        self.prepare_algorithm(cx);
        let Some(next) = self.judge_transmit(max_text) else {
            self.note_held_back(cx);
            return None;
        };
        let head = match next {
            NextSegment::Stream(range) => self.make_stream(cx, range, slices),
            NextSegment::KeepAlive => {
                self.sender.set_keep_alive(false);
                // RFC 9293 3.8.4: "SEG.SEQ = SND.NXT-1", with nothing in it.
                Head { seq: self.sender.seq().max - 1, ..Head::ACK }
            }
            NextSegment::Ack => Head { seq: self.sender.bare_number(), ..Head::ACK },
        };
        let sack = self.name_held(slices.octets());
        self.on_made(cx, slices, head.gso_size);
        // Last, so that it is written where the caller has it.
        Some(self.make_header(cx, head, sack))
    }

    #[inline]
    fn prepare_algorithm(&mut self, cx: &Context) {
        if !self.sender.algorithm().is_ours() {
            let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
            self.sender.prepare_algorithm(&cx.algorithms, queue);
        }
    }

    /// Whether nothing is set apart, queued or held, so that of a SYN nothing is to be noted but that it
    /// left.
    fn is_bare(&self) -> bool {
        self.buffers.is_none() && self.stats.apart.is_none() && self.stats.tally.is_unlimited()
    }

    /// Notes that a SYN was made beside which something is queued, held or set apart.
    #[inline(never)]
    fn on_syn_made(&mut self, cx: &mut Context, slices: &Slices) {
        self.on_made(cx, slices, 0);
    }

    /// A segment is made: it is counted, and what it carried may be all there was.
    #[inline(always)]
    fn on_made(&mut self, cx: &mut Context, slices: &Slices, gso_size: u16) {
        let segs = segments(slices.octets(), gso_size);
        cx.counters.out_segs += segs;
        self.stats.tally.on_sent(slices.octets(), segs, cx.tick);
        if self.sender.is_send_share_limited() || self.unsent_low_water().is_some() {
            self.tell_room(cx);
        }
        self.note_limit(cx);
        self.account_buffers(cx);
    }

    /// What is to be sent, if that is no SYN.
    fn judge_transmit(&self, max_text: u32) -> Option<NextSegment> {
        if matches!(self.state, State::Closed | State::TimeWait) {
            cold_path();
            return None;
        }
        if self.sender.has_syn() {
            cold_path();
            if self.state == State::SynSent {
                return None;
            }
            let early = self.is_early();
            if let Some(range) = self.sender.judge_behind_syn(self.queue(), max_text, early) {
                return Some(NextSegment::Stream(range));
            }
        } else if let Some(range) = self.sender.judge_due(self.queue(), max_text) {
            return Some(NextSegment::Stream(range));
        }
        if self.sender.keep_alive_is_due() {
            cold_path();
            return Some(NextSegment::KeepAlive);
        }
        (self.receiver.owes_ack() || self.owes_window_update()).then_some(NextSegment::Ack)
    }
}

/// How what is due becomes a segment.
impl Connection {
    #[inline(never)]
    fn make_syn(&mut self, cx: &mut Context, slices: &mut Slices) -> OutgoingSegment {
        let fast_syn = self.buffers.as_ref().and_then(|buffers| buffers.fast_syn);
        let fast_open = fast_syn.and_then(|syn| self.take_fast_syn(syn, slices));
        let answers = self.state == State::SynReceived;
        let flags = if answers { TcpFlags::SYN | TcpFlags::ACK } else { TcpFlags::SYN };
        if answers {
            self.announce_window(cx);
        }
        let head = Head { seq: self.sender.seq().una, flags, gso_size: 0 };
        let mut outgoing = self.make_fields(cx, head, 0, None);
        outgoing.rare = RareOptions::Syn(SynOptions { fast_open, ..self.offered(cx) });
        // RFC 7323 2.2: "The window field in a segment where the SYN bit is set (...) MUST NOT
        // be scaled."
        outgoing.window = if answers {
            WindowSize::new(self.receiver.seq().wnd()).to_raw(WindowScale::ZERO)
        } else {
            outgoing.ack = SeqNum::new(0);
            self.unscaled_window().to_raw(WindowScale::ZERO)
        };
        if self.sender.on_syn_made(cx, slices.octets()) {
            cold_path();
            cx.counters.syn_retrans += 1;
            cx.counters.retrans_segs += 1;
            self.count_sent_again(0, 1);
        }
        self.arm_for_syn(cx);
        outgoing
    }

    /// What our SYN or SYN-ACK offers beside timestamps and Fast Open.
    #[inline]
    fn offered(&self, cx: &Context) -> SynOptions {
        let (scaling, sack_permitted) = if self.state == State::SynReceived {
            (self.scaling(), self.flags.has(Flags::SACK))
        } else {
            (cx.tunables.window_scaling, cx.tunables.sack)
        };
        SynOptions {
            mss: Mss::new(self.receiver.advertised_mss()),
            window_scale: scaling.then_some(self.receiver.scale()),
            sack_permitted,
            fast_open: None,
        }
    }

    fn make_stream(&mut self, cx: &mut Context, range: SendRange, slices: &mut Slices) -> Head {
        let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        let head = if range.is_probe() {
            cold_path();
            cx.counters.window_probes += 1;
            self.sender.make_probe(range, queue, slices)
        } else {
            let (head, again) = self.sender.make_text(cx, range, queue, slices);
            if again > 0 {
                let segs = segments(again, head.gso_size);
                cx.counters.retrans_segs += segs;
                self.count_sent_again(again.min(slices.octets()), segs);
                if head.seq == self.sender.seq().una {
                    self.restart_retransmission(cx);
                }
            }
            head
        };
        self.arm_retransmission(cx);
        head
    }

    /// A header that acknowledges everything received, and names what is held. Only duplicates may
    /// remain owed, and an acknowledgment that had no room for that.
    // Always: as a value of its own it would be copied.
    #[inline(always)]
    fn make_header(
        &mut self,
        cx: &Context,
        head: Head,
        sack: Option<SackBlocks>,
    ) -> OutgoingSegment {
        debug_assert!(self.state != State::SynSent, "its SYN is all that it sends");
        let bounds = self.window_bounds();
        self.receiver.announce(&bounds, &cx.tunables);
        let urgent = self.urgent_pointer(head.seq);
        self.make_fields(cx, head, urgent, sack)
    }

    /// Our SYN-ACK announces the window as any segment does.
    #[cold]
    fn announce_window(&mut self, cx: &Context) {
        let bounds = self.window_bounds();
        self.receiver.announce(&bounds, &cx.tunables);
    }

    /// Makes a header with the window that was announced last, and this urgent pointer; 0: none.
    #[inline(always)]
    fn make_fields(
        &mut self,
        cx: &Context,
        head: Head,
        urgent: u16,
        sack: Option<SackBlocks>,
    ) -> OutgoingSegment {
        let Head { seq, flags, gso_size } = head;
        self.timers.stop_ack();
        self.receiver.on_ack_made(sack.is_none_or(|blocks| !blocks.is_empty()));
        OutgoingSegment {
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
        let buffers = self.buffers.as_ref().filter(|_| self.flags.has(Flags::SACK))?;
        if !buffers.recv.has_held() && buffers.duplicate.is_none() {
            return None;
        }
        self.name_ranges(text)
    }

    #[inline(never)]
    fn name_ranges(&mut self, text: u32) -> Option<SackBlocks> {
        let buffers = self.buffers.as_mut()?;
        let most = if self.flags.has(Flags::TIMESTAMPS) { 3 } else { 4 };
        let room = u32::from(self.sender.mss()).saturating_sub(text);
        let fitting = most.min(room.saturating_sub(SACK_OCTETS) / SACK_BLOCK_OCTETS);
        let mut blocks = SackBlocks::NONE;
        if fitting > 0 {
            if let Some(duplicate) = buffers.duplicate.take() {
                blocks.push(duplicate);
            }
            buffers.recv.sack_blocks(self.receiver.nxt(), fitting as usize, &mut blocks);
        }
        // Without text there is never more room: nothing is left to be told of it.
        (text > 0 || !blocks.is_empty()).then_some(blocks)
    }
}

/// What a header says of the connection.
impl Connection {
    /// TSval now, and TS.Recent to echo, if timestamps were negotiated (while opening: offered).
    pub(super) fn own_timestamps(&self, cx: &Context) -> Option<Timestamps> {
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
        self.receiver.scale() != WindowScale::ZERO || self.sender.scale() != WindowScale::ZERO
    }
}

/// The selective acknowledgment option and its padding, and each of its blocks.
const SACK_OCTETS: u32 = 4;
const SACK_BLOCK_OCTETS: u32 = 8;
