//! The next segment to send: judged without changing anything, then made.
use crate::Context;
use crate::conn::marks::initial_option;
use crate::conn::tcb::NextSegment;
use crate::conn::{Connection, Flags, SynOptions};
use crate::send::Head;
use whimbrel_base::packet::Slices;

use whimbrel_wire::plain::{PlainOpening, PlainOptions};
use whimbrel_wire::tcp::{
    AccurateEcn, OptionOrder, SackBlocks, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};
use whimbrel_wire::{Ecn, RawWindow, SeqNum};

/// A segment to send; its text is in the [`Slices`] that were handed in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingSegment {
    /// SEG.SEQ: the number of its first byte, SYN or FIN; else of what would come next.
    pub seq: SeqNum,
    /// SEG.ACK: RCV.NXT, all that arrived in order; 0 on a SYN without ACK.
    pub ack: SeqNum,
    /// The control bits: SYN, ACK, FIN, PSH, URG.
    pub flags: TcpFlags,
    /// SEG.WND, as the field has it: in units of our scale, in bytes on a SYN.
    pub window: RawWindow,
    /// SEG.UP: bytes from SEG.SEQ to the end of urgent data; 0 without URG.
    pub urgent: u16,
    /// The text of each segment that the device cuts this one into; 0: it is not to be cut.
    pub gso_size: u16,
    /// The option that nearly all segments have.
    pub timestamps: Option<Timestamps>,
    /// Options that few segments have.
    pub rare: RareOptions,
}

/// Options, and an ECN field, that few segments have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RareOptions {
    /// The segment has no option but timestamps, if those.
    None,
    /// Those of a SYN.
    Syn(SynOptions),
    /// Those of a SYN-ACK, and the counters of accurate feedback as they begin, if there is room for them: a trial of
    /// the path (RFC 9768 3.2.3.2.1).
    SynWithCounters(SynOptions),
    /// Ranges that arrived out of order, or twice.
    Sack(SackBlocks),
    /// ECT(0) in the IP header: routers may mark the text instead of dropping it (RFC 3168 6.1.2). With the ranges
    /// that arrived out of order or twice, if there are any.
    Ect0(SackBlocks),
    /// Those of a segment whose ACE field counts marks.
    Feedback(Feedback),
}

/// The rare parts of a segment whose ACE field counts marks (RFC 9768 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Ranges that arrived out of order, or twice.
    pub ranges: SackBlocks,
    /// Counters of bytes that arrived, by their ECN fields.
    pub counters: Option<AccurateEcn>,
}

impl RareOptions {
    /// Returns the options of a SYN-ACK with the counters of accurate feedback.
    pub(crate) const fn with_counters(self) -> Self {
        match self {
            Self::Syn(options) => Self::SynWithCounters(options),
            other => other,
        }
    }

    /// Returns the options of text that may be marked. Text that left no room for the ranges that it should name may
    /// not.
    fn into_ect0(self) -> Self {
        match self {
            Self::None => Self::Ect0(SackBlocks::NONE),
            Self::Sack(ranges) if !ranges.is_empty() => Self::Ect0(ranges),
            other => other,
        }
    }
}

impl OutgoingSegment {
    /// Its options, if they are of those that nearly all segments but SYNs have.
    #[inline]
    pub const fn plain_options(&self) -> Option<PlainOptions> {
        match (&self.rare, self.timestamps) {
            (RareOptions::None, None) => Some(PlainOptions::None),
            (RareOptions::None, Some(stamps)) => Some(PlainOptions::Timestamps(stamps)),
            _ => None,
        }
    }

    /// Its options, if they are of those that nearly all SYNs have.
    #[inline]
    pub fn plain_opening(&self, order: OptionOrder) -> Option<PlainOpening> {
        let RareOptions::Syn(options) = &self.rare else { return None };
        options.plain(self.timestamps).filter(|_| order == OptionOrder::Linux)
    }

    /// The ECN field of its IP header.
    pub const fn ecn(&self) -> Ecn {
        match self.rare {
            RareOptions::Ect0(_) => Ecn::Ect0,
            RareOptions::Feedback(feedback) => feedback.ecn,
            _ => Ecn::NotEct,
        }
    }

    /// True if its CWR is a bit of the ACE field, which each segment cut from it must have, and not the first alone.
    // RFC 9768 3.3.4: "all segments created from the same super-segment should retain the same ACE field".
    pub const fn has_ace_with_cwr(&self) -> bool {
        matches!(self.rare, RareOptions::Feedback(_)) && self.flags.contains(TcpFlags::CWR)
    }

    /// The header between these ports, checksum to be filled in.
    pub fn header(&self, src_port: u16, dst_port: u16) -> TcpHeader {
        let timestamps = self.timestamps;
        let options = match self.rare {
            RareOptions::None => TcpOptions { timestamps, ..TcpOptions::default() },
            RareOptions::Syn(opening) => opening.options(timestamps),
            RareOptions::SynWithCounters(opening) => {
                let accurate_ecn = Some(initial_option());
                TcpOptions { accurate_ecn, ..opening.options(timestamps) }
            }
            RareOptions::Sack(sack) | RareOptions::Ect0(sack) => {
                TcpOptions { timestamps, sack, ..TcpOptions::default() }
            }
            RareOptions::Feedback(Feedback { ranges: sack, counters: accurate_ecn, .. }) => {
                TcpOptions { timestamps, sack, accurate_ecn, ..TcpOptions::default() }
            }
        };
        let Self { seq, ack, flags, window, urgent, .. } = *self;
        TcpHeader { src_port, dst_port, seq, ack, flags, window, urgent, options }
    }
}

/// Making of the segment that is due.
impl Connection {
    /// Makes the next segment, if there is one to send. `slices` is empty and receives its text, at
    /// most `max_text` bytes of it or a full segment: more than that if the device (or the stack behind
    /// it) cuts super-segments.
    pub fn poll_transmit(
        &mut self,
        cx: &mut Context,
        max_text: u32,
        slices: &mut Slices,
    ) -> Option<OutgoingSegment> {
        if self.transfer.tcb.syn_is_next() {
            return Some(self.poll_syn(cx, slices));
        }
        self.poll_behind_syn(cx, max_text, slices)
    }

    /// Makes the SYN of a connection whose [SYN is next](Connection::syn_is_next), as
    /// [`Connection::poll_transmit`] does.
    #[inline]
    pub fn poll_syn(&mut self, cx: &mut Context, slices: &mut Slices) -> OutgoingSegment {
        self.transfer.prepare_algorithm(cx);
        let outgoing = self.transfer.make_syn(cx, slices);
        if self.transfer.is_bare() {
            cx.counters.out_segs += 1;
            self.transfer.tcb.counts.on_sent(0, 1);
        } else {
            self.transfer.on_syn_made(cx, slices);
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
        self.transfer.prepare_algorithm(cx);
        let Some(next) = self.transfer.tcb.judge_transmit(max_text) else {
            self.transfer.tcb.note_held_back(cx);
            return None;
        };
        let mut head = match next {
            NextSegment::Stream(range) => self.transfer.make_stream(cx, range, slices),
            NextSegment::KeepAlive => {
                self.transfer.tcb.sender.set_keep_alive(false);
                // RFC 9293 3.8.4: "SEG.SEQ = SND.NXT-1", with nothing in it.
                Head { seq: self.transfer.tcb.sender.seq().max - 1, ..Head::ACK }
            }
            NextSegment::Ack => Head { seq: self.transfer.tcb.sender.bare_number(), ..Head::ACK },
        };
        let held = self.transfer.name_held(slices.bytes());
        let names_all = held.is_none_or(|ranges| !ranges.is_empty());
        let mut rare = held.map_or(RareOptions::None, RareOptions::Sack);
        if self.transfer.tcb.flags.has(Flags::ECN_OR_AGAIN) {
            let ecn = self.transfer.tcb.take_ecn_bits(slices.bytes());
            head.flags |= ecn.flags;
            if ecn.is_accurate {
                let text = if head.gso_size > 0 { head.gso_size.into() } else { slices.bytes() };
                rare = self.feedback(text, rare, ecn);
            } else if ecn.is_ect {
                rare = rare.into_ect0();
            }
        }
        self.transfer.on_made(cx, slices, head.gso_size);
        // Last, so that it is written where the caller has it.
        Some(self.transfer.make_header(cx, head, rare, names_all))
    }
}
