//! The end of a connection: by FIN in both directions, by reset, or because the peer does not answer.

use whimbrel_base::cold_path;

use crate::Context;
use crate::conn::{Connection, Flags, Signals, State};
use crate::verdict::{CloseReason, Reply};

/// Calls of the application.
impl Connection {
    /// The application says that it will read no more.
    pub const fn shut_read(&mut self) {
        self.transfer.tcb.flags.set(Flags::DEAF);
    }

    /// The application closes the connection. Returns the reset to send, if one is due.
    pub fn close(&mut self, cx: &mut Context) -> Option<Reply> {
        self.transfer.tcb.flags.set(Flags::ORPHAN);
        if matches!(self.transfer.tcb.state, State::Closed | State::TimeWait) {
            return None;
        }
        if self.transfer.tcb.state == State::SynSent {
            cold_path();
            // RFC 9293 3.10.4, SYN-SENT: "Delete the TCB".
            self.end(cx, CloseReason::Aborted);
            return None;
        }
        if self.transfer.tcb.unread() > 0 {
            cold_path();
            // RFC 9293 3.6.1: "If such a host issues a CLOSE call while received data is still
            // pending in the TCP connection (...) its TCP implementation SHOULD send a RST to
            // show that data was lost."
            cx.counters.abort_on_close += 1;
            return self.abort(cx);
        }
        self.transfer.shutdown(cx);
        if self.transfer.tcb.state == State::FinWait2 {
            self.transfer.start_fin_wait_2(cx);
        }
        None
    }

    /// The application resets the connection. Returns the reset to send, if the peer has a
    /// connection that it would end (RFC 9293 3.10.5).
    pub fn abort(&mut self, cx: &mut Context) -> Option<Reply> {
        let reset = self.transfer.judge_reset(cx);
        self.transfer.tcb.flags.set(Flags::ORPHAN);
        self.end(cx, CloseReason::Aborted);
        reset
    }

    /// The host resets the connection: its application learns of it. Returns what
    /// [`Connection::abort`] does.
    pub fn drop_by_force(&mut self, cx: &mut Context) -> Option<Reply> {
        if matches!(self.transfer.tcb.state, State::Closed | State::TimeWait) {
            return None;
        }
        let reset = self.transfer.judge_reset(cx);
        self.end(cx, CloseReason::Aborted);
        reset
    }
}

/// Ends that the protocol brings about.
impl Connection {
    /// The connection is over.
    pub(super) fn end(&mut self, cx: &mut Context, reason: CloseReason) {
        if matches!(self.transfer.tcb.state, State::SynSent | State::SynReceived) {
            cx.counters.attempt_fails += 1;
        }
        self.transfer.tcb.state = State::Closed;
        self.finish(cx, reason);
        self.transfer.tcb.account_buffers(cx);
    }

    /// Both directions are closed, and ours was closed first: a waiting record takes over.
    pub(super) fn enter_time_wait(&mut self, cx: &mut Context) {
        cx.counters.time_wait += 1;
        self.transfer.tcb.state = State::TimeWait;
        self.finish(cx, CloseReason::Finished);
    }

    fn finish(&mut self, cx: &Context, reason: CloseReason) {
        self.transfer.tcb.closed = Some(reason);
        self.transfer.timers.stop_all();
        self.transfer.tcb.signals.raise(Signals::CLOSED);
        self.transfer.tcb.receiver.owe_nothing();
        self.transfer.tcb.sender.finish();
        if let Some(buffers) = self.transfer.tcb.buffers.as_mut() {
            buffers.send.clear();
            buffers.recv.end();
            if self.transfer.tcb.flags.has(Flags::ORPHAN) {
                buffers.recv.clear();
            }
            self.transfer.tcb.note_limit(cx);
        }
    }

    /// True if something arrived in order that no segment of ours acknowledged.
    pub fn owes_ack(&self) -> bool {
        self.transfer.tcb.receiver.is_behind()
    }
}
