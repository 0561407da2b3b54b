//! How a connection ends: by FIN in both directions, by reset, or because nobody answers.

use bytes::Bytes;
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{RawWindow, SeqNum, WindowScale};

use super::{Connection, Flags, Signals, State};
use crate::Context;
use crate::verdict::{CloseReason, Reply};

/// Why nothing can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WriteClosed;

/// What the application does.
impl Connection {
    /// Takes from the front of `data` what there is room for. Less than all of it: a
    /// [`Signals::WRITABLE`] follows.
    pub fn write(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Result<usize, WriteClosed> {
        let open = matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        );
        if !open || self.flags.has(Flags::FIN_QUEUED) {
            return Err(WriteClosed);
        }
        self.judge_pinch(cx);
        let room = self.send_room() as usize;
        let take = room.min(data.len());
        if take < data.len() {
            self.flags.set(Flags::WANTS_ROOM);
        }
        if take > 0 {
            if self.snd.max == self.snd.una && self.send_queued() == 0 {
                self.restart_after_idle(cx);
            }
            let piece = data.split_to(take);
            self.cold(cx).send.push(piece);
            self.watch_for_stall(cx);
            if let Some(cold) = self.cold.as_mut().filter(|cold| cold.may_differ()) {
                cold.account(cx);
            }
        }
        Ok(take)
    }

    /// Sends FIN after what was written; reading goes on (RFC 9293 3.10.4).
    pub fn shutdown(&mut self, cx: &mut Context<'_>) {
        match self.state {
            // FIN follows once the handshake is complete.
            State::SynSent | State::SynReceived => {}
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => return,
        }
        self.flags.set(Flags::FIN_QUEUED);
        if !cx.tunables.fin_with_text {
            self.flags.set(Flags::FIN_APART);
        }
        self.watch_for_stall(cx);
    }

    /// The application says that it will read no more.
    pub const fn shut_read(&mut self) {
        self.flags.set(Flags::DEAF);
    }

    /// The application lets go. Returns the reset to send, if one is due.
    pub fn close(&mut self, cx: &mut Context<'_>) -> Option<Reply> {
        self.flags.set(Flags::ORPHAN);
        if matches!(self.state, State::Closed | State::TimeWait) {
            return None;
        }
        if self.state == State::SynSent {
            // RFC 9293 3.10.4, SYN-SENT: "Delete the TCB".
            self.end(cx, CloseReason::Aborted);
            return None;
        }
        if self.unread() > 0 {
            // RFC 9293 3.6.1: "If such a host issues a CLOSE call while received data is still
            // pending in the TCP connection (...) its TCP implementation SHOULD send a RST to
            // show that data was lost."
            cx.counters.abort_on_close += 1;
            return self.abort(cx);
        }
        self.shutdown(cx);
        if self.state == State::FinWait2 {
            self.start_fin_wait_2(cx);
        }
        None
    }

    /// The application resets the connection. Returns the reset to send, if the peer has a
    /// connection that it would end (RFC 9293 3.10.5).
    pub fn abort(&mut self, cx: &mut Context<'_>) -> Option<Reply> {
        let reset = self.judge_reset(cx);
        self.flags.set(Flags::ORPHAN);
        self.end(cx, CloseReason::Aborted);
        reset
    }

    /// Somebody else resets the connection: its application is told. Returns what
    /// [`Connection::abort`] does.
    pub fn drop_by_force(&mut self, cx: &mut Context<'_>) -> Option<Reply> {
        if matches!(self.state, State::Closed | State::TimeWait) {
            return None;
        }
        let reset = self.judge_reset(cx);
        self.end(cx, CloseReason::Aborted);
        reset
    }

    /// The reset that the peer is due if the connection ends now.
    pub(super) fn judge_reset(&self, cx: &Context<'_>) -> Option<Reply> {
        match self.state {
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => Some(Reply {
                seq: self.bare_number(),
                ack: self.receiver.nxt(),
                flags: TcpFlags::RST | TcpFlags::ACK,
                window: RawWindow::new(0),
                timestamps: self.own_timestamps(cx),
            }),
            _ => None,
        }
    }

    /// Octets of send buffer that are free.
    pub fn send_room(&self) -> u32 {
        let free = self.send_limit().saturating_sub(self.send_queued());
        match self.unsent_low_water() {
            Some(most) => free.min(most.saturating_sub(self.unsent())),
            None => free,
        }
    }

    /// Nothing is in flight, and text is about to be: what was learnt of the path is out of date if
    /// none was sent for long.
    pub(super) fn restart_after_idle(&mut self, cx: &Context<'_>) {
        let idle = cx.tick.millis_since(self.text_sent);
        // RFC 5681 4.1: "a TCP SHOULD set cwnd to no more than RW before beginning transmission if
        // the TCP has not sent data in an interval exceeding the retransmission timeout."
        if idle > 0
            && cx.tunables.slow_start_after_idle
            && u64::from(idle) * 1_000 > self.rtt.rto_micros(cx.tunables)
        {
            self.cc.restart(u32::from(self.mss));
        }
    }

    /// With nothing in flight only the persist timer finds out that a window opened.
    pub(super) fn watch_for_stall(&mut self, cx: &Context<'_>) {
        let watched = self.flags.has(Flags::PERSIST) || self.is_stalled();
        if watched && self.snd.max == self.snd.una && !self.flags.has(Flags::SYN) {
            self.rearm_retransmission(cx);
        }
    }
}

/// What the protocol does.
impl Connection {
    /// The connection is over.
    pub(super) fn end(&mut self, cx: &mut Context<'_>, reason: CloseReason) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            cx.counters.attempt_fails += 1;
        }
        self.state = State::Closed;
        self.finish(reason);
        self.settle(cx);
    }

    /// Both directions are closed, and ours was closed first: a waiting record takes over.
    pub(super) fn enter_time_wait(&mut self, cx: &mut Context<'_>) {
        cx.counters.time_wait += 1;
        self.state = State::TimeWait;
        self.finish(CloseReason::Finished);
    }

    fn finish(&mut self, reason: CloseReason) {
        self.closed = Some(reason);
        self.timers.stop_all();
        self.signals.raise(Signals::CLOSED);
        self.receiver.owe_nothing();
        for flag in [Flags::RETRANSMIT, Flags::PROBE, Flags::FIN_QUEUED] {
            self.flags.clear(flag);
        }
        if let Some(cold) = self.cold.as_mut() {
            cold.send.clear();
            cold.recv.end();
            if self.flags.has(Flags::ORPHAN) {
                cold.recv.clear();
            }
        }
    }

    /// Whether something arrived in order that no segment of ours acknowledged.
    pub fn owes_ack(&self) -> bool {
        self.receiver.is_behind()
    }

    /// What a TIME-WAIT record keeps of this connection.
    pub fn remains(&self) -> Remains {
        Remains {
            snd_nxt: self.snd.max,
            rcv_nxt: self.receiver.nxt(),
            window: self.receiver.raw_window(),
            scale: self.receiver.scale(),
            ts_recent: self.flags.has(Flags::TIMESTAMPS).then_some(self.stamps.recent),
        }
    }
}

/// What remains of a connection in TIME-WAIT, beside its addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Remains {
    /// SND.NXT: one past our FIN.
    pub snd_nxt: SeqNum,
    /// RCV.NXT: one past the peer's FIN.
    pub rcv_nxt: SeqNum,
    /// The window field of the acknowledgment.
    pub window: RawWindow,
    /// Its unit.
    pub scale: WindowScale,
    /// TS.Recent, if timestamps were negotiated.
    pub ts_recent: Option<u32>,
}
