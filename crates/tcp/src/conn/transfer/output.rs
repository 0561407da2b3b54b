//! Making of the segment that is due.

use whimbrel_base::cold_path;
use whimbrel_base::packet::Slices;
use whimbrel_wire::tcp::{SackBlocks, TcpFlags};
use whimbrel_wire::{SeqNum, WindowScale, WindowSize};

use crate::Context;
use crate::conn::transfer::Transfer;
use crate::conn::{Flags, OutgoingSegment, RareOptions, State, SynOptions};
use crate::send::{Head, SendRange, make_mtu_probe, segments};

impl Transfer {
    #[inline]
    pub(in crate::conn) fn prepare_algorithm(&mut self, cx: &Context) {
        if !self.tcb.sender.algorithm().is_in_place() {
            let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
            self.tcb.sender.prepare_algorithm(&cx.algorithms, queue);
        }
    }

    /// True if nothing is set apart, queued or held, so that of a SYN nothing is to be noted but that it
    /// left.
    pub(in crate::conn) fn is_bare(&self) -> bool {
        self.tcb.buffers.is_none() && self.tcb.counts.stats.is_none()
    }

    /// Notes that a SYN was made of a connection with something queued, held or set apart.
    #[inline(never)]
    pub(in crate::conn) fn on_syn_made(&mut self, cx: &mut Context, slices: &Slices) {
        self.on_made(cx, slices, 0);
    }

    /// A segment is made: it is counted, and what it carried may be all there was.
    #[inline(always)]
    pub(in crate::conn) fn on_made(&mut self, cx: &mut Context, slices: &Slices, gso_size: u16) {
        let segs = segments(slices.bytes(), gso_size);
        cx.counters.out_segs += segs;
        self.tcb.counts.on_sent(slices.bytes(), segs as u32);
        if self.tcb.sender.is_send_share_limited() || self.tcb.cold().unsent_low_water().is_some() {
            self.tcb.tell_room(cx);
        }
        self.tcb.note_limit(cx);
        self.tcb.account_buffers(cx);
    }

    #[inline(never)]
    pub(in crate::conn) fn make_syn(
        &mut self,
        cx: &mut Context,
        slices: &mut Slices,
    ) -> OutgoingSegment {
        let fast_syn = self.tcb.buffers.as_ref().and_then(|buffers| buffers.fast_syn);
        let fast_open = fast_syn.and_then(|syn| self.tcb.take_fast_syn(syn, slices));
        let answers = self.tcb.state == State::SynReceived;
        let mut flags = if answers { TcpFlags::SYN | TcpFlags::ACK } else { TcpFlags::SYN };
        if self.tcb.flags.has(Flags::ECN) {
            flags |= self.tcb.ecn_of_syn(cx, flags);
        }
        if answers {
            self.announce_window(cx);
        }
        let head = Head { seq: self.tcb.sender.seq().una, flags, gso_size: 0 };
        let mut outgoing = self.make_fields(cx, head, 0, RareOptions::None, true);
        outgoing.rare = RareOptions::Syn(SynOptions { fast_open, ..self.offered(cx) });
        // RFC 7323 2.2: "The window field in a segment where the SYN bit is set (...) MUST NOT
        // be scaled."
        outgoing.window = if answers {
            WindowSize::new(self.tcb.receiver.seq().wnd()).to_raw(WindowScale::ZERO)
        } else {
            outgoing.ack = SeqNum::new(0);
            self.tcb.unscaled_window().to_raw(WindowScale::ZERO)
        };
        if self.tcb.sender.on_syn_made(cx, slices.bytes()) {
            cold_path();
            cx.counters.syn_retrans += 1;
            cx.counters.retrans_segs += 1;
            self.tcb.cold_mut().count_sent_again(0, 1);
        }
        self.arm_for_syn(cx);
        outgoing
    }

    pub(in crate::conn) fn make_stream(
        &mut self,
        cx: &mut Context,
        range: SendRange,
        slices: &mut Slices,
    ) -> Head {
        let head = if range.is_probe() {
            cold_path();
            self.make_probe(cx, range, slices)
        } else {
            let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
            let (head, again) = self.tcb.sender.make_text(cx, range, queue, slices);
            if again > 0 {
                let segs = segments(again, head.gso_size);
                cx.counters.retrans_segs += segs;
                self.tcb.cold_mut().count_sent_again(again.min(slices.bytes()), segs);
                if head.seq == self.tcb.sender.seq().una {
                    self.restart_retransmission(cx);
                }
                self.tcb.flags.set(Flags::AGAIN);
            }
            head
        };
        self.arm_retransmission(cx);
        head
    }

    /// A probe of the peer's window, or of the path MTU.
    #[inline(never)]
    fn make_probe(&mut self, cx: &mut Context, range: SendRange, slices: &mut Slices) -> Head {
        self.tcb.flags.set(Flags::AGAIN);
        let queue = self.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        match queue {
            Some(queue) if range.bytes() > u32::from(self.tcb.sender.mss()) => {
                let head = make_mtu_probe(&mut self.tcb.sender, cx, range, queue, slices);
                if head.gso_size == 0 {
                    self.on_mtu_probe_made(slices.bytes());
                }
                head
            }
            queue => {
                cx.counters.window_probes += 1;
                self.tcb.sender.make_probe(range, queue, slices)
            }
        }
    }

    /// A header that acknowledges everything received, and names what is held. Only duplicates may
    /// remain owed, and an acknowledgment that had no room for that.
    // Always: as a value of its own it would be copied.
    #[inline(always)]
    pub(in crate::conn) fn make_header(
        &mut self,
        cx: &Context,
        head: Head,
        rare: RareOptions,
        names_all: bool,
    ) -> OutgoingSegment {
        debug_assert!(self.tcb.state != State::SynSent, "its SYN is all that it sends");
        let bounds = self.tcb.window_bounds();
        self.tcb.receiver.announce(&bounds, &cx.tunables);
        let urgent = self.urgent_pointer(head.seq);
        self.make_fields(cx, head, urgent, rare, names_all)
    }

    /// Our SYN-ACK announces the window as any segment does.
    #[cold]
    fn announce_window(&mut self, cx: &Context) {
        let bounds = self.tcb.window_bounds();
        self.tcb.receiver.announce(&bounds, &cx.tunables);
    }

    /// Makes a header with the window that was announced last, and this urgent pointer; 0: none.
    #[inline(always)]
    fn make_fields(
        &mut self,
        cx: &Context,
        head: Head,
        urgent: u16,
        rare: RareOptions,
        names_all: bool,
    ) -> OutgoingSegment {
        let Head { seq, flags, gso_size } = head;
        self.timers.stop_ack();
        self.tcb.receiver.on_ack_made(names_all);
        OutgoingSegment {
            seq,
            ack: self.tcb.receiver.nxt(),
            flags: if urgent > 0 { flags | TcpFlags::URG } else { flags },
            window: self.tcb.receiver.raw_window(),
            urgent,
            gso_size,
            timestamps: self.own_timestamps(cx),
            rare,
        }
    }

    /// RFC 2018 3: as many blocks as fit with the timestamps and with `text`: the text was
    /// cut for a segment without them (RFC 9293 3.7.1), and a packet beyond the MTU is lost each
    /// time it is sent. RFC 2883 4: what came twice stands before all others. `None` if there is
    /// nothing to name, and without text nothing that could be.
    #[inline]
    pub(in crate::conn) fn name_held(&mut self, text: u32) -> Option<SackBlocks> {
        let buffers = self.tcb.buffers.as_ref().filter(|_| self.tcb.flags.has(Flags::SACK))?;
        if !buffers.recv.has_held() && buffers.duplicate.is_none() {
            return None;
        }
        self.name_ranges(text)
    }

    #[inline(never)]
    fn name_ranges(&mut self, text: u32) -> Option<SackBlocks> {
        let buffers = self.tcb.buffers.as_mut()?;
        let most = if self.tcb.flags.has(Flags::TIMESTAMPS) { 3 } else { 4 };
        let room = u32::from(self.tcb.sender.mss()).saturating_sub(text);
        let fitting = most.min(room.saturating_sub(SACK_BYTES) / SACK_BLOCK_BYTES);
        let mut blocks = SackBlocks::NONE;
        if fitting > 0 {
            if let Some(duplicate) = buffers.duplicate.take() {
                blocks.push(duplicate);
            }
            buffers.recv.sack_blocks(self.tcb.receiver.nxt(), fitting as usize, &mut blocks);
        }
        // Without text there is never more room: nothing is left to be told of it.
        (text > 0 || !blocks.is_empty()).then_some(blocks)
    }
}

/// The selective acknowledgment option and its padding, and each of its blocks.
const SACK_BYTES: u32 = 4;

const SACK_BLOCK_BYTES: u32 = 8;
