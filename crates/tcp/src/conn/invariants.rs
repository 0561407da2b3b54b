//! Invariants of a connection between any two calls: for simulations and tests. Costs what it
//! costs; nothing on a segment's way asks.

use whimbrel_base::Instant;

use crate::conn::{Connection, State};
use crate::send::SendQueue;

/// Bytes in flight that are not looked at one transmission after the other, whenever one leaves.
const MUCH: u64 = 1 << 20;

impl Connection {
    /// Checks all that must hold; the error says what does not. `max_text` is that of
    /// [`Connection::wants_transmit`].
    pub fn check_invariants(&self, max_text: u32) -> Result<(), &'static str> {
        self.check_send_space()?;
        self.check_recv_space()?;
        if matches!(self.transfer.tcb.state, State::Closed | State::TimeWait) {
            return self.check_ended();
        }
        self.check_liveness(max_text)
    }

    /// True if [`Buffers`](super::Buffers) are lent to it.
    pub const fn holds_buffers(&self) -> bool {
        self.transfer.tcb.buffers.is_some()
    }

    fn check_send_space(&self) -> Result<(), &'static str> {
        let snd = self.transfer.tcb.sender.seq();
        if snd.una.after(snd.nxt) || snd.nxt.after(snd.max) {
            return Err("SND.UNA =< SND.NXT =< SND.MAX does not hold");
        }
        let over = matches!(self.transfer.tcb.state, State::Closed | State::TimeWait);
        let fin = u32::from(self.transfer.tcb.sender.fin_queued());
        if !over
            && snd.max.after(self.transfer.tcb.sender.text_end(self.transfer.tcb.queue()) + fin)
        {
            return Err("SND.MAX lies beyond what there is to send");
        }
        match self.transfer.tcb.queue() {
            Some(queue) if !over => self.check_flight(queue),
            _ => Ok(()),
        }
    }

    fn check_flight(&self, queue: &SendQueue) -> Result<(), &'static str> {
        let in_flight = queue.flight.end() - queue.flight.una();
        if in_flight < MUCH {
            queue.flight.check()?;
        }
        let numbers = u64::from(self.transfer.tcb.sender.seq().in_flight());
        // A FIN that left before there were buffers is not in them.
        let lone_fin = in_flight == 0 && numbers == 1 && self.transfer.tcb.sender.fin_sent();
        if !self.transfer.tcb.sender.has_syn() && in_flight != numbers && !lone_fin {
            return Err("what is in flight is not what lies between SND.UNA and SND.NXT");
        }
        Ok(())
    }

    fn check_recv_space(&self) -> Result<(), &'static str> {
        if self.transfer.tcb.state == State::SynSent {
            return Ok(());
        }
        let (receiver, rcv) = (&self.transfer.tcb.receiver, self.transfer.tcb.receiver.seq());
        if rcv.nxt.after(rcv.edge) {
            return Err("RCV.NXT lies beyond the announced edge");
        }
        if rcv.last_ack.after(rcv.nxt) {
            return Err("what was acknowledged lies beyond RCV.NXT");
        }
        let buffer = u64::from(
            receiver.size().max(receiver.most_window(&self.transfer.tcb.window_bounds())),
        );
        // The peer's FIN takes a number and no room, and a window may be rounded up.
        let most = buffer + u64::from(receiver.unit());
        let promised = receiver.is_overpromised();
        if !promised && u64::from(rcv.wnd()) + u64::from(self.transfer.tcb.unread()) > most {
            return Err("window and unread text exceed the receive buffer");
        }
        Ok(())
    }

    fn check_ended(&self) -> Result<(), &'static str> {
        if self.transfer.tcb.closed.is_none() {
            return Err("over without a reason");
        }
        if self.transfer.timers.next() != Instant::NEVER {
            return Err("over, and a timer runs");
        }
        Ok(())
    }

    /// Whatever waits for the peer is asked about again by a timer.
    fn check_liveness(&self, max_text: u32) -> Result<(), &'static str> {
        if self.transfer.tcb.closed.is_some() {
            return Err("a reason to be over without being over");
        }
        if self.transfer.rto_is_armed() || self.transfer.tcb.wants_transmit(max_text) {
            return Ok(());
        }
        let remembers = |queue: &SendQueue| !queue.flight.is_whole() || queue.recovery.remembers();
        if self.transfer.timers.next() == Instant::NEVER
            && self.transfer.tcb.queue().is_some_and(remembers)
        {
            return Err("nothing is in flight, and recovery has memory that no timer releases");
        }
        if !self.transfer.tcb.sender.is_idle() {
            return Err("something is unacknowledged and no timer will send it again");
        }
        if self.transfer.tcb.sender.has_unsent(self.transfer.tcb.queue()) && !self.is_paced() {
            return Err("something is unsent and nothing will send it");
        }
        Ok(())
    }
}
