//! How a connection begins: by our SYN, or complete from a half-open entry.

use whimbrel_base::{Micros, cold_path};
use whimbrel_wire::tcp::{OptionsView, TcpFlags, Timestamps};
use whimbrel_wire::{Address, Mss, SeqNum, WindowScale, WindowSize};

use super::{BufferSize, Connection, Flags, Signals, SocketOptions, Stamps, State, Tally, Timers};
use crate::recv::{Receiver, recv_scale};
use crate::send::{AckPlace, Sender};
use crate::tunables::ReceiveWindow;
use crate::verdict::{CloseReason, Continue, Done, DropReason, Step, Verdict};
use crate::{Context, RxSegment, Tunables};
use whimbrel_base::packet::Payload;

/// What both ways of opening know.
#[derive(Clone, Copy, Debug)]
pub struct ActiveOpen {
    /// The address to connect to, or of whoever connected.
    pub remote: Address,
    /// The port to connect to, or of whoever connected.
    pub remote_port: u16,
    /// The port that this side sends from.
    pub local_port: u16,
    /// This side's address, as an index into the shard's table of them.
    pub local_index: u16,
    /// Our initial sequence number.
    pub iss: SeqNum,
    /// What is added to the clock to make TSval.
    pub timestamp_offset: u32,
    /// The MSS that we announce: what fits the link's MTU.
    pub mss: Mss,
}

/// A handshake that its third segment completed.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// Who, and our half of the numbers.
    pub open: ActiveOpen,
    /// The peer's initial sequence number.
    pub irs: SeqNum,
    /// The MSS that the peer announced, or the default.
    pub peer_mss: Mss,
    /// The scales of the peer's windows and of ours, if scaling was negotiated.
    pub scales: Option<(WindowScale, WindowScale)>,
    /// TS.Recent, if timestamps were negotiated.
    pub ts_recent: Option<u32>,
    /// Selective acknowledgments were negotiated (RFC 2018 2).
    pub sack: bool,
    /// From our SYN-ACK to the segment that acknowledged it.
    pub round_trip: FirstTrip,
}

/// The round trip of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstTrip {
    /// It took this long, as our clock measured it.
    Took(Micros),
    /// Either SYN was repeated, so that it cannot be told.
    Repeated,
    /// Nothing was remembered of it: neither how long it took nor whether anything was lost.
    Unknown,
}

impl Connection {
    /// Opens actively: the SYN is the first thing it wants to transmit.
    pub fn connect(cx: &mut Context, open: ActiveOpen) -> Self {
        let mut connection = Self::build(cx, &open, State::SynSent);
        connection.sender.queue_syn();
        let scale_limit = BufferSize::Auto.scale_limit(&cx.tunables);
        connection.receiver.set_scale(recv_scale(&cx.tunables, scale_limit));
        if cx.tunables.timestamps {
            connection.flags.set(Flags::TIMESTAMPS);
        }
        connection.begin_memory_limited(cx);
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
        connection.sender.begin_acknowledged(irs);
        connection.receiver.begin(irs, initial_window(cx.tunables.recv_buffer));
        connection.agree(cx, handshake);
        match handshake.round_trip {
            FirstTrip::Took(rtt) => {
                connection.sender.on_first_round_trip(rtt, &cx.tunables);
                connection.stats.tally.on_round_trip(rtt, cx.tick);
            }
            FirstTrip::Unknown => {}
            FirstTrip::Repeated => {
                cold_path();
                connection.sender.begin_after_lost_syn();
            }
        }
        connection.begin_memory_limited(cx);
        cx.counters.passive_opens += 1;
        connection
    }

    /// What both SYNs agreed upon.
    #[inline(always)]
    pub(super) fn agree(&mut self, cx: &Context, handshake: &Handshake) {
        if let Some((send_scale, recv_scale)) = handshake.scales {
            self.sender.set_scale(send_scale);
            self.receiver.set_scale(recv_scale);
        }
        if let Some(recent) = handshake.ts_recent {
            self.flags.set(Flags::TIMESTAMPS);
            self.stamps.recent = recent;
            self.stamps.recent_at = cx.tick;
        }
        if handshake.sack {
            self.flags.set(Flags::SACK);
        }
        self.agree_mss(handshake.peer_mss, &cx.tunables);
    }

    /// Takes what was set on its listener, the window that the SYN-ACK announced included.
    pub fn inherit(&mut self, cx: &mut Context, options: &SocketOptions) {
        let limit = options.recv_limit(self.recv_pipe(&cx.tunables), &cx.tunables);
        self.receiver.set_first_window(initial_window(limit));
        self.set_options(cx, options);
    }

    /// Takes the place of a connection of ours in TIME-WAIT, whose TS.Recent was `recent`: what is
    /// older than that is not for this one (RFC 7323 B.2).
    pub fn succeed(&mut self, cx: &Context, recent: u32) {
        self.flags.set(Flags::SUCCEEDS);
        self.stamps.recent = recent;
        self.stamps.recent_at = cx.tick;
    }

    /// Whether a segment bears a timestamp older than the former connection's last.
    fn is_of_predecessor(&self, timestamps: Option<Timestamps>) -> bool {
        let recent = self.flags.has(Flags::SUCCEEDS).then_some(self.stamps.recent);
        let older =
            |(recent, stamps): (u32, Timestamps)| stamps.val.wrapping_sub(recent).cast_signed() < 0;
        recent.zip(timestamps).is_some_and(older)
    }

    // Always: it is made where its caller has it.
    #[inline(always)]
    pub(super) fn build(cx: &mut Context, open: &ActiveOpen, state: State) -> Self {
        let mut stats = cx.pool.take_stats();
        stats.tally = Tally::new(cx.tick);
        Self {
            remote: open.remote,
            remote_port: open.remote_port,
            local_port: open.local_port,
            local_index: open.local_index,
            state,
            signals: Signals::default(),
            flags: Flags::default(),
            sender: Sender::new(cx, open.iss, open.mss.get()),
            receiver: Receiver::new(cx.tunables.recv_buffer, open.mss.get()),
            stamps: Stamps { offset: open.timestamp_offset, ..Stamps::default() },
            keep_alive_probes: 0,
            closed: None,
            soft_error: None,
            challenges: cx.tick,
            timers: Timers::default(),
            stats,
            buffers: None,
        }
    }

    /// SYN-SENT (RFC 9293 3.10.7.3).
    pub(super) fn arrive_in_syn_sent(&mut self, cx: &mut Context, seg: &RxSegment<'_>) -> Step {
        let header = &seg.header;
        let place = self.sender.seq().judge_ack(header.ack);
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
        self.take_syn(cx, seg);
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
            self.on_challenged(cx);
            return Self::refuse(seg, DropReason::UnacceptableAck);
        }
        if is_reset {
            // RFC 9293 3.10.7.3: "Otherwise (no ACK), drop the segment and return."
            return Done(Verdict::Drop(DropReason::NoAck));
        }
        if !header.flags.contains(TcpFlags::SYN) {
            return Done(Verdict::Drop(DropReason::Flags));
        }
        if self.is_of_predecessor(header.options.timestamps) {
            // RFC 7323 5.3 R1, with what the former connection of these ends left behind (B.2): its
            // SYN, come late, would make this one answer nobody. One with an ACK of our ISS cannot
            // be of then.
            return Done(Verdict::Drop(DropReason::Paws));
        }
        self.take_syn(cx, seg);
        // RFC 9293 3.10.7.3: "Otherwise, enter SYN-RECEIVED, form a SYN,ACK segment
        // <SEQ=ISS><ACK=RCV.NXT><CTL=SYN,ACK> and send it."
        self.state = State::SynReceived;
        let queue = self.buffers.as_deref_mut().map(|buffers| &mut buffers.send);
        self.sender.go_back(queue);
        // Text of ours in the SYN goes again: RFC 7413 4.2.2 leaves SYNs that cross to RFC 9293.
        self.flags.clear(Flags::SYN_DATA);
        if seg.len() > 1 {
            self.queue_with_syn(cx, seg);
        }
        Continue(())
    }

    /// A SYN that crossed ours brings more. RFC 9293 3.10.7.3: "If there are other controls or text in
    /// the segment, queue them for processing after the ESTABLISHED state has been reached, return." As
    /// much as the window admits that our SYN announced; the rest comes again.
    #[cold]
    fn queue_with_syn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let len = seg.payload.len();
        let text = self.receiver.clip(seg, len);
        let limit = self.max_ranges(&cx.tunables);
        let recv = &mut self.buffers(cx).recv;
        let text = recv.up_to_fin(0, text);
        if text.take > 0 {
            let _held = recv.hold(0, seg.payload, text, limit);
        }
        if seg.header.flags.contains(TcpFlags::FIN) && text.take == len {
            recv.note_fin(len);
        }
    }

    /// ESTABLISHED is reached: the text that was queued is in order. A FIN behind it is taken with the
    /// segment that is being looked at.
    pub(super) fn take_queued(&mut self, cx: &mut Context) {
        let Some(buffers) = self.buffers.as_mut().filter(|buffers| buffers.recv.has_held()) else {
            return;
        };
        let advance = buffers.recv.append(&mut cx.pool.chunks, Payload::Borrowed(&[]), 0, 0);
        self.receiver.advance(advance);
        self.stats.tally.bytes_received += u64::from(advance);
        self.signals.raise(Signals::READABLE);
        self.receiver.owe_ack();
    }

    /// Our SYN is acknowledged: RFC 9293 3.10.7.3, "If SND.UNA > ISS (our SYN has been ACKed),
    /// change the connection state to ESTABLISHED, form an ACK segment". "Data or controls that were
    /// queued for transmission MAY be included": it may wait a little for those that are not yet.
    ///
    /// It acknowledges `numbers` numbers that were not acknowledged before.
    fn on_syn_ack(&mut self, cx: &mut Context, seg: &RxSegment<'_>, numbers: u32) -> Step {
        self.establish();
        let delay = cx.tunables.handshake_ack_delay;
        if delay.is_zero() || self.acks_at_once() {
            self.receiver.owe_ack();
        } else {
            self.timers.delay_ack(cx.now, delay);
        }
        self.note_ack(cx, seg);
        self.note_timestamp(cx, seg);
        self.take_new_ack(cx, seg, numbers)?;
        self.on_syn_text_judged();
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

    /// Takes the peer's SYN: its number, and the options that both sides want.
    fn take_syn(&mut self, cx: &mut Context, seg: &RxSegment<'_>) {
        let header = &seg.header;
        let irs = header.seq;
        self.receiver.begin(irs, self.unscaled_window());
        self.sender.on_syn(irs, header.window);
        self.negotiate(cx, &header.options);
    }

    /// The window on our SYN, where it cannot be scaled.
    pub(super) fn unscaled_window(&self) -> WindowSize {
        let limit = if self.is_memory_limited() { self.memory_limited_window() } else { u32::MAX };
        initial_window(self.recv_limit().min(limit))
    }

    fn negotiate(&mut self, cx: &Context, options: &OptionsView<'_>) {
        let opening = options.opening();
        match opening.window_scale.filter(|_| cx.tunables.window_scaling) {
            Some(scale) => self.sender.set_scale(scale),
            None => self.receiver.set_scale(WindowScale::ZERO),
        }
        match options.timestamps.filter(|_| self.flags.has(Flags::TIMESTAMPS)) {
            Some(stamps) => {
                self.stamps.recent = stamps.val;
                self.stamps.recent_at = cx.tick;
            }
            None => self.flags.clear(Flags::TIMESTAMPS),
        }
        if opening.sack_permitted && cx.tunables.sack {
            self.flags.set(Flags::SACK);
        }
        let default = cx.tunables.default_mss(&self.remote);
        self.agree_mss(opening.mss.unwrap_or(default), &cx.tunables);
        self.apply_window_metrics();
    }

    /// Eff.snd.MSS (RFC 9293 3.7.1): the peer's or the path's, less the options of each segment.
    #[inline]
    fn agree_mss(&mut self, peer: Mss, tunables: &Tunables) {
        let options = if self.flags.has(Flags::TIMESTAMPS) { TIMESTAMP_OCTETS } else { 0 };
        self.sender.agree_mss(peer, options, tunables);
        self.receiver.round_size(self.in_full_segments(self.receiver.size(), tunables));
    }

    /// A receive buffer of `octets`, rounded up to whole segments if that is the rule, and it holds
    /// more than one. No buffer becomes larger by that than any may be.
    #[inline]
    pub(super) fn in_full_segments(&self, octets: u32, tunables: &Tunables) -> u32 {
        let options = if self.flags.has(Flags::TIMESTAMPS) { TIMESTAMP_OCTETS } else { 0 };
        let full = u32::from(self.sender.mss()) + u32::from(options);
        if tunables.recv_window != ReceiveWindow::FullSegments || octets <= full {
            return octets;
        }
        round_up(octets, full, tunables.recv_buffer_max)
    }

    /// Both SYNs are acknowledged.
    pub(super) fn establish(&mut self) {
        self.state = if self.sender.fin_queued() { State::FinWait1 } else { State::Established };
        if !self.is_early() {
            self.signals.raise(Signals::CONNECTED);
        }
        self.flags.clear(Flags::FAST_OPEN);
        self.timers.stop_sender();
        self.sender.on_established();
    }
}

/// So many octets in segments of `full`, but no more than `most` if it need not be.
// Out of line: of a usual receive buffer nothing is rounded.
#[inline(never)]
fn round_up(octets: u32, full: u32, most: u32) -> u32 {
    let rounded = octets.div_ceil(full).saturating_mul(full);
    rounded.min(most).max(octets)
}

/// The window announced on a SYN, where it cannot be scaled, of a receive buffer of `octets`.
pub fn initial_window(octets: u32) -> WindowSize {
    WindowSize::new(octets.min(65_535))
}

/// The timestamps option and its padding.
pub(super) const TIMESTAMP_OCTETS: u16 = 12;
