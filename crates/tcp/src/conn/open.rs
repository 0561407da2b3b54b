//! The beginning of a connection: by our SYN, or complete from a half-open entry.

use whimbrel_base::cold_path;
use whimbrel_wire::tcp::TcpFlags;

use crate::conn::ends::Ends;
use crate::conn::stamps::Stamps;
use crate::conn::stats::Counts;
use crate::conn::tcb::{Tcb, initial_window};
use crate::conn::transfer::Transfer;
use crate::conn::{
    ActiveOpen, BufferSize, Connection, FirstTrip, Flags, Handshake, Signals, State, Timers,
};
use crate::recv::{Receiver, recv_scale};
use crate::send::{AckPlace, Sender};
use crate::tunables::EcnNegotiation;
use crate::verdict::{CloseReason, Continue, Done, DropReason, Step, Verdict};
use crate::{Context, RxSegment};

impl Connection {
    /// Opens actively: the SYN is the first thing it wants to transmit.
    pub fn connect(cx: &mut Context, open: ActiveOpen) -> Self {
        let mut connection = Self::build(cx, &open, State::SynSent);
        let tcb = &mut connection.transfer.tcb;
        tcb.sender.queue_syn();
        let scale_limit = BufferSize::Auto.scale_limit(&cx.tunables);
        tcb.receiver.set_scale(recv_scale(&cx.tunables, scale_limit));
        if cx.tunables.timestamps {
            tcb.flags.set(Flags::TIMESTAMPS);
        }
        if cx.tunables.ecn.asks() {
            cold_path();
            let is_accurate = cx.tunables.ecn == EcnNegotiation::AskAccurate;
            tcb.flags.set(if is_accurate { Flags::ACCURATE_ECN } else { Flags::ECN });
        }
        tcb.begin_memory_limited(cx);
        cx.counters.active_opens += 1;
        connection
    }

    /// A complete connection in ESTABLISHED. The segment that completed the handshake is then
    /// handed to [`Connection::on_segment`] like any other.
    // Always: what both SYNs said is at hand where it is called, and would be stored and read again.
    #[inline(always)]
    pub fn from_handshake(cx: &mut Context, handshake: &Handshake) -> Self {
        let mut connection = Self::build(cx, &handshake.open, State::Established);
        let irs = handshake.irs;
        let tcb = &mut connection.transfer.tcb;
        tcb.sender.begin_acknowledged(irs);
        tcb.receiver.begin(irs, initial_window(cx.tunables.recv_buffer));
        connection.transfer.agree(cx, handshake);
        let tcb = &mut connection.transfer.tcb;
        match handshake.round_trip {
            FirstTrip::Took(rtt) => {
                tcb.sender.on_first_round_trip(rtt);
                tcb.counts.on_round_trip(rtt, cx.tick);
            }
            FirstTrip::Unknown => {}
            FirstTrip::Repeated => {
                cold_path();
                tcb.sender.begin_after_lost_syn();
            }
        }
        tcb.begin_memory_limited(cx);
        cx.counters.passive_opens += 1;
        connection
    }

    // Always: it is made where its caller has it.
    #[inline(always)]
    pub(super) fn build(cx: &mut Context, open: &ActiveOpen, state: State) -> Self {
        Self {
            transfer: Transfer {
                tcb: Tcb {
                    ends: Ends {
                        remote: open.remote,
                        remote_port: open.remote_port,
                        local_port: open.local_port,
                        local_index: open.local_index,
                    },
                    flags: Flags::default(),
                    buffers: None,
                    sender: Sender::new(cx, open.iss, open.mss.get()),
                    receiver: Receiver::new(cx.tunables.recv_buffer, open.mss.get()),
                    signals: Signals::default(),
                    state,
                    closed: None,
                    keep_alive_probes: 0,
                    counts: Counts::new(cx.tick),
                },
                timers: Timers::default(),
                stamps: Stamps { offset: open.timestamp_offset, ..Stamps::default() },
            },
        }
    }

    /// SYN-SENT (RFC 9293 3.10.7.3).
    pub(super) fn arrive_in_syn_sent(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let header = &seg.header;
        let place = self.transfer.tcb.sender.seq().judge_ack(header.ack);
        let numbers = match place {
            AckPlace::New(numbers) if header.flags.contains(TcpFlags::ACK) => numbers,
            _ => return self.arrive_unanswered(cx, seg),
        };
        if header.flags.contains(TcpFlags::RST) {
            cold_path();
            // RFC 9293 3.10.7.3: "If the ACK was acceptable, then signal to the user 'error:
            // connection reset'"
            self.end(cx, CloseReason::Refused);
            return Done(Verdict::Closed(CloseReason::Refused));
        }
        if !header.flags.contains(TcpFlags::SYN) {
            cold_path();
            // RFC 9293 3.10.7.3: "if neither of the SYN or RST bits is set, then drop the
            // segment and return."
            return Done(Verdict::Drop(DropReason::Flags));
        }
        self.transfer.take_syn(cx, seg);
        self.on_syn_ack(cx, seg, numbers)
    }

    /// In SYN-SENT, what does not acknowledge our SYN (RFC 9293 3.10.7.3).
    #[cold]
    fn arrive_unanswered(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let header = &seg.header;
        let is_reset = header.flags.contains(TcpFlags::RST);
        if header.flags.contains(TcpFlags::ACK) {
            // RFC 9293 3.10.7.3: "If SEG.ACK =< ISS or SEG.ACK > SND.NXT, send a reset (unless the
            // RST bit is set, if so drop the segment and return)"
            if is_reset {
                return Done(Verdict::Drop(DropReason::UnacceptableAck));
            }
            self.transfer.on_challenged(cx);
            return Self::refuse(seg, DropReason::UnacceptableAck);
        }
        if is_reset {
            // RFC 9293 3.10.7.3: "Otherwise (no ACK), drop the segment and return."
            return Done(Verdict::Drop(DropReason::NoAck));
        }
        if !header.flags.contains(TcpFlags::SYN) {
            return Done(Verdict::Drop(DropReason::Flags));
        }
        if self.transfer.is_of_former_connection(header.options.timestamps) {
            // RFC 7323 5.3 R1, with what the former connection of these ends left behind (B.2): its
            // SYN, come late, would make this one answer no peer. One with an ACK of our ISS cannot
            // be of then.
            return Done(Verdict::Drop(DropReason::Paws));
        }
        self.transfer.take_syn(cx, seg);
        // RFC 9293 3.10.7.3: "Otherwise, enter SYN-RECEIVED, form a SYN,ACK segment
        // <SEQ=ISS><ACK=RCV.NXT><CTL=SYN,ACK> and send it."
        self.transfer.tcb.state = State::SynReceived;
        let queue = self.transfer.tcb.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        self.transfer.tcb.sender.go_back(queue);
        // Text of ours in the SYN goes again: RFC 7413 4.2.2 leaves SYNs that cross to RFC 9293.
        self.transfer.tcb.flags.clear(Flags::SYN_DATA);
        if seg.len() > 1 {
            self.transfer.tcb.queue_with_syn(cx, seg);
        }
        Continue(())
    }

    /// Our SYN is acknowledged: RFC 9293 3.10.7.3, "If SND.UNA > ISS (our SYN has been ACKed),
    /// change the connection state to ESTABLISHED, form an ACK segment". "Data or controls that were
    /// queued for transmission MAY be included": it may wait a little for those that are not yet.
    ///
    /// It acknowledges `numbers` numbers that were not acknowledged before.
    fn on_syn_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>, numbers: u32) -> Step {
        self.transfer.establish();
        let delay = cx.tunables.handshake_ack_delay;
        if delay.is_zero() || self.transfer.tcb.cold().acks_at_once() {
            self.transfer.tcb.receiver.owe_ack();
        } else {
            self.transfer.timers.delay_ack(cx.now, delay);
        }
        self.transfer.tcb.note_ack(cx, seg);
        self.transfer.note_timestamp(seg);
        self.take_new_ack(cx, seg, numbers)?;
        self.transfer.tcb.on_syn_text_judged();
        if seg.payload.is_empty() && !seg.header.flags.intersects(TcpFlags::URG | TcpFlags::FIN) {
            return Continue(());
        }
        cold_path();
        // RFC 9293 3.10.7.3: "If there are other controls or text in the segment, then continue
        // processing at the sixth step (...) where the URG bit is checked".
        self.check_urg(cx, seg);
        self.take_text(cx, seg)?;
        self.take_fin(cx, seg)
    }
}
