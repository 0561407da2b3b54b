//! How a connection ends: by FIN in both directions, by reset, or because nobody answers.

use whimbrel_base::cold_path;
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{RawWindow, SeqNum, WindowScale};

use super::{Connection, Flags, Signals, State};
use crate::Context;
use crate::verdict::{CloseReason, Reply};

/// What the application does.
impl Connection {
    /// Sends FIN after what was written; reading goes on (RFC 9293 3.10.4).
    pub fn shutdown(&mut self, cx: &mut Context) {
        match self.state {
            // FIN follows once the handshake is complete.
            State::SynSent | State::SynReceived => {}
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => return,
        }
        self.sender.queue_fin(&cx.tunables);
        self.watch_for_stall(cx);
    }

    /// The application says that it will read no more.
    pub const fn shut_read(&mut self) {
        self.flags.set(Flags::DEAF);
    }

    /// The application lets go. Returns the reset to send, if one is due.
    pub fn close(&mut self, cx: &mut Context) -> Option<Reply> {
        self.flags.set(Flags::ORPHAN);
        if matches!(self.state, State::Closed | State::TimeWait) {
            return None;
        }
        if self.state == State::SynSent {
            cold_path();
            // RFC 9293 3.10.4, SYN-SENT: "Delete the TCB".
            self.end(cx, CloseReason::Aborted);
            return None;
        }
        if self.unread() > 0 {
            cold_path();
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
    pub fn abort(&mut self, cx: &mut Context) -> Option<Reply> {
        let reset = self.judge_reset(cx);
        self.flags.set(Flags::ORPHAN);
        self.end(cx, CloseReason::Aborted);
        reset
    }

    /// Somebody else resets the connection: its application is told. Returns what
    /// [`Connection::abort`] does.
    pub fn drop_by_force(&mut self, cx: &mut Context) -> Option<Reply> {
        if matches!(self.state, State::Closed | State::TimeWait) {
            return None;
        }
        let reset = self.judge_reset(cx);
        self.end(cx, CloseReason::Aborted);
        reset
    }

    /// The reset that the peer is due if the connection ends now.
    pub(super) fn judge_reset(&self, cx: &Context) -> Option<Reply> {
        match self.state {
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait => Some(Reply {
                seq: self.sender.bare_number(),
                ack: self.receiver.nxt(),
                flags: TcpFlags::RST | TcpFlags::ACK,
                window: RawWindow::new(0),
                timestamps: self.own_timestamps(cx),
            }),
            _ => None,
        }
    }
}

/// What the protocol does.
impl Connection {
    /// The connection is over.
    pub(super) fn end(&mut self, cx: &mut Context, reason: CloseReason) {
        if matches!(self.state, State::SynSent | State::SynReceived) {
            cx.counters.attempt_fails += 1;
        }
        self.state = State::Closed;
        self.finish(reason);
        self.account_buffers(cx);
    }

    /// Both directions are closed, and ours was closed first: a waiting record takes over.
    pub(super) fn enter_time_wait(&mut self, cx: &mut Context) {
        cx.counters.time_wait += 1;
        self.state = State::TimeWait;
        self.finish(CloseReason::Finished);
    }

    fn finish(&mut self, reason: CloseReason) {
        self.closed = Some(reason);
        self.timers.stop_all();
        self.signals.raise(Signals::CLOSED);
        self.receiver.owe_nothing();
        self.sender.finish();
        if let Some(buffers) = self.buffers.as_mut() {
            buffers.send.clear();
            buffers.recv.end();
            if self.flags.has(Flags::ORPHAN) {
                buffers.recv.clear();
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
            snd_nxt: self.sender.seq().max,
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
    /// How that field is scaled: as our windows were.
    pub scale: WindowScale,
    /// TS.Recent, if timestamps were negotiated.
    pub ts_recent: Option<u32>,
}
