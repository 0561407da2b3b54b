//! The state of an algorithm in addition to the [`Window`], and the common rule for all: which
//! acknowledgments count.

use super::pipe_ack::PipeAck;
use super::{
    Ack, Algorithm, Algorithms, CongestionControl, Kept, Loss, LostText, Sent, Timeout, Window,
};

/// The state of a connection's algorithm in addition to the window, while there is something to send.
/// It is created at the first event that changes it, which a connection whose text is less than half of
/// its initial window never has.
#[derive(Default, Debug)]
pub struct CcState {
    kept: Option<Kept>,
    /// Bytes in flight of which the congestion window did not let more go.
    cwnd_limited_bytes: u32,
    pipe_ack: PipeAck,
}

const _: () = assert!(size_of::<CcState>() <= 160, "part of each send buffer");

impl CcState {
    /// Forgets everything: another connection has the place, or this one another algorithm.
    #[inline]
    pub fn reset(&mut self) {
        self.cwnd_limited_bytes = 0;
        self.pipe_ack.forget();
        if self.kept.is_some() {
            self.forget_kept();
        }
    }

    /// Drops the algorithm's state.
    #[inline(never)]
    fn forget_kept(&mut self) {
        self.kept = None;
    }

    /// True if the state cannot be made anew from the window.
    #[inline]
    pub const fn must_stay(&self) -> bool {
        matches!(self.kept, Some(Kept::Boxed(_)))
    }

    /// The rate of the algorithm that sets `window`, if it has one, bytes in a second.
    pub fn pacing_rate(&self, window: &Window) -> Option<u64> {
        match &self.kept {
            Some(Kept::Boxed(boxed)) => boxed.pacing_rate(window),
            _ => None,
        }
    }

    #[inline]
    fn kept(&mut self, algorithm: Algorithm) -> &mut Kept {
        self.kept.get_or_insert_with(|| Kept::new(algorithm))
    }
}

/// A window and the state of the algorithm that sets it, which receive events.
#[derive(Debug)]
pub struct Control<'a> {
    /// cwnd and ssthresh of the connection, which the algorithm sets.
    pub window: &'a mut Window,
    /// The algorithm's state from one event to the next.
    pub state: &'a mut CcState,
}

impl Control<'_> {
    /// Text is about to leave in segments of at most `mss` bytes: an algorithm whose state is boxed is made, if
    /// the connection has one.
    #[inline]
    pub fn prepare(&mut self, algorithms: &Algorithms, mss: u32) {
        if !self.window.algorithm.is_in_place() && !self.state.must_stay() {
            self.make(algorithms, mss);
        }
    }

    #[cold]
    fn make(&mut self, algorithms: &Algorithms, mss: u32) {
        if let Some(mut boxed) = algorithms.make(self.window.algorithm) {
            boxed.begin(self.window, mss);
            self.window.bound(mss);
            self.state.kept = Some(Kept::Boxed(boxed));
        }
    }

    /// Tells the algorithm that text left: [`CongestionControl::on_sent`].
    #[inline(always)]
    pub fn on_sent(&mut self, sent: &Sent) {
        // RFC 7661 4.3: "This threshold ensures a sender does not further increase the cwnd as long as the
        // FlightSize is less than (1/2*cwnd)": in slow start a window counts of which more than a half is
        // used; later, one that has no room for a segment.
        let more = if self.window.in_slow_start() { sent.in_flight } else { sent.mss };
        if sent.in_flight.saturating_add(more) > self.window.cwnd {
            self.state.cwnd_limited_bytes = sent.in_flight;
        }
        if self.state.must_stay() {
            self.dispatch_sent(*sent);
        }
    }

    /// Notes that text left of a flow that has sent more than an initial window without a pause, nothing being known
    /// to be lost: `una` and `nxt` are SND.UNA and SND.NXT since, modulo 2^32.
    pub fn note_use(&mut self, sent: &Sent, una: u32, nxt: u32) {
        self.state.pipe_ack.on_sent(una, nxt, sent.in_flight);
        if sent.in_flight > self.window.cwnd / 2 {
            self.window.note_used(sent.now.tick());
        }
        if self.window.is_preserved() {
            self.window.validate(self.state.pipe_ack.get(una).unwrap_or_default());
        }
    }

    /// pipeACK (RFC 7661 4.2) in the non-validated phase, while SND.UNA is `una`, modulo 2^32: the bytes that the path
    /// was seen to carry in one of the last two round trips. `None` in the validated phase: they are half of cwnd or
    /// more, or nothing was measured since a pause or a recovery.
    pub fn unvalidated_pipe_ack(&self, una: u32) -> Option<u32> {
        // RFC 7661 4.3: "Non-validated phase: pipeACK <(1/2)*cwnd."
        self.state.pipe_ack.get(una).filter(|bytes| *bytes < self.window.cwnd / 2)
    }

    /// Tells an algorithm whose state is boxed that bytes left.
    // By value: by reference it would stand in memory where there is none.
    #[inline(never)]
    fn dispatch_sent(&mut self, sent: Sent) {
        if let Some(Kept::Boxed(boxed)) = &mut self.state.kept {
            boxed.on_sent(self.window, &sent);
            self.window.bound(sent.mss);
        }
    }

    /// As [`CongestionControl::on_ack`]: `delivered` bytes are acknowledged. What else there is to tell
    /// is put together if it matters, being told [`Ack::limited`].
    #[inline(always)]
    pub fn on_ack(&mut self, delivered: u32, ack: impl FnOnce(u32) -> Ack) {
        let limited = delivered.min(self.state.cwnd_limited_bytes);
        if limited > 0 || self.window.algorithm.hears_all() {
            self.state.cwnd_limited_bytes -= limited;
            self.dispatch_ack(&ack(limited));
        }
    }

    /// Reports an acknowledgment that is no reason to let the window grow, in fast recovery or of nothing new below
    /// what is missing, to an algorithm that [hears all](Algorithm::hears_all).
    pub fn on_other_ack(&mut self, ack: impl FnOnce() -> Ack) {
        if self.window.algorithm.hears_all() {
            self.dispatch_ack(&ack());
        }
    }

    /// True if the algorithm sets cwnd in fast recovery, and not Proportional Rate Reduction:
    /// [`CongestionControl::sets_cwnd_in_recovery`].
    pub fn sets_cwnd_in_recovery(&self) -> bool {
        matches!(&self.state.kept, Some(Kept::Boxed(boxed)) if boxed.sets_cwnd_in_recovery())
    }

    fn dispatch_ack(&mut self, ack: &Ack) {
        self.state.kept(self.window.algorithm).on_ack(self.window, ack);
    }

    /// True if the algorithm asks for rates: [`CongestionControl::samples_rate`].
    pub fn samples_rate(&self) -> bool {
        matches!(&self.state.kept, Some(Kept::Boxed(boxed)) if boxed.samples_rate())
    }

    /// Tells the algorithm of a transmission that was judged lost, in segments of `mss` bytes:
    /// [`CongestionControl::on_lost`].
    pub fn on_lost(&mut self, lost: &LostText, mss: u32) {
        self.dispatch(mss, |cc, window| cc.on_lost(window, lost));
    }

    /// Tells the algorithm of a loss, once for each recovery: [`CongestionControl::on_loss_event`].
    pub fn on_loss_event(&mut self, loss: &Loss) {
        self.window.end_preservation();
        self.dispatch(loss.mss, |cc, window| cc.on_loss_event(window, loss));
    }

    /// Tells the algorithm that a recovery ended: [`CongestionControl::on_recovered`].
    pub fn on_recovered(&mut self, end: &Loss) {
        // What the last acknowledgment covers arrived while the loss was being repaired.
        self.state.cwnd_limited_bytes = 0;
        // RFC 7661 4.4.1: "After completing the loss recovery phase, the sender MUST re-initialise the pipeACK variable
        // to the "undefined" value."
        self.state.pipe_ack.forget();
        self.dispatch(end.mss, |cc, window| cc.on_recovered(window, end));
    }

    /// Tells the algorithm of a retransmission time-out: [`CongestionControl::on_rto`].
    pub fn on_rto(&mut self, timeout: &Timeout) {
        self.window.end_preservation();
        self.state.pipe_ack.forget();
        self.dispatch(timeout.mss, |cc, window| cc.on_rto(window, timeout));
    }

    /// Tells the algorithm that the network marked what it carried: [`CongestionControl::on_ecn`].
    pub fn on_ecn(&mut self, loss: &Loss) {
        self.window.end_preservation();
        self.dispatch(loss.mss, |cc, window| cc.on_ecn(window, loss));
    }

    /// Tells the algorithm that the connection was silent for an RTO, or used little for long:
    /// [`CongestionControl::on_idle`].
    pub fn on_idle(&mut self, initial: u32) {
        self.state.pipe_ack.forget();
        let least = self.window.cwnd.min(initial);
        self.dispatch(least, |cc, window| cc.on_idle(window, initial));
    }

    /// Tells the algorithm that the last loss was none: [`CongestionControl::undo`].
    pub fn undo(&mut self, before: &Window) {
        self.dispatch(before.cwnd, |cc, window| cc.undo(window, before));
    }

    /// Asks the algorithm for a rate, bytes in a second: [`CongestionControl::pacing_rate`].
    pub fn pacing_rate(&self) -> Option<u64> {
        self.state.pacing_rate(self.window)
    }

    fn dispatch(&mut self, least: u32, what: impl FnOnce(&mut dyn CongestionControl, &mut Window)) {
        self.state.kept(self.window.algorithm).dispatch(self.window, least, what);
    }
}

#[cfg(test)]
mod tests;
