//! What must hold of a connection between any two calls: for simulations and tests. Costs what it
//! costs; nothing on a segment's way asks.

use whimbrel_base::Instant;

use super::{Connection, State};

impl Connection {
    /// Whether everything that must hold does; if not, what does not. `max_text` is that of
    /// [`Connection::wants_transmit`].
    pub fn check_invariants(&self, max_text: u32) -> Result<(), &'static str> {
        self.check_send_space()?;
        self.check_recv_space()?;
        if matches!(self.state, State::Closed | State::TimeWait) {
            return self.check_ended();
        }
        self.check_liveness(max_text)
    }

    /// Whether [`Buffers`](super::Buffers) are lent to it.
    pub const fn holds_buffers(&self) -> bool {
        self.buffers.is_some()
    }

    fn check_send_space(&self) -> Result<(), &'static str> {
        let snd = self.sender.seq();
        if snd.una.after(snd.nxt) || snd.nxt.after(snd.max) {
            return Err("SND.UNA =< SND.NXT =< SND.MAX does not hold");
        }
        let over = matches!(self.state, State::Closed | State::TimeWait);
        let fin = u32::from(self.sender.fin_queued());
        if !over && snd.max.after(self.sender.text_end(self.queue()) + fin) {
            return Err("SND.MAX lies beyond what there is to send");
        }
        Ok(())
    }

    fn check_recv_space(&self) -> Result<(), &'static str> {
        if self.state == State::SynSent {
            return Ok(());
        }
        let (receiver, rcv) = (&self.receiver, self.receiver.seq());
        if rcv.nxt.after(rcv.edge) {
            return Err("RCV.NXT lies beyond the announced edge");
        }
        if rcv.last_ack.after(rcv.nxt) {
            return Err("what was acknowledged lies beyond RCV.NXT");
        }
        let buffer = u64::from(receiver.size().max(receiver.most_window(&self.window_bounds())));
        // The peer's FIN takes a number and no room, and a window may be rounded up.
        let most = buffer + u64::from(receiver.unit());
        let promised = receiver.is_overpromised();
        if !promised && u64::from(rcv.wnd()) + u64::from(self.unread()) > most {
            return Err("window and unread text exceed the receive buffer");
        }
        Ok(())
    }

    fn check_ended(&self) -> Result<(), &'static str> {
        if self.closed.is_none() {
            return Err("over without a reason");
        }
        if self.timers.next() != Instant::NEVER {
            return Err("over, and a timer runs");
        }
        Ok(())
    }

    /// Whatever waits for the peer is asked about again by a timer.
    fn check_liveness(&self, max_text: u32) -> Result<(), &'static str> {
        if self.closed.is_some() {
            return Err("a reason to be over without being over");
        }
        if self.rto_is_armed() || self.wants_transmit(max_text) {
            return Ok(());
        }
        if !self.sender.is_idle() {
            return Err("something is unacknowledged and no timer will send it again");
        }
        if self.sender.has_unsent(self.queue()) {
            return Err("something is unsent and nothing will send it");
        }
        Ok(())
    }
}
