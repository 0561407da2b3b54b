//! The send sequence space (RFC 9293 3.3.1).

use whimbrel_wire::{SeqNum, WindowSize};

/// The send sequence variables.
///
/// ```text
///            1          2          3           4
///       ----------|----------|----------|----------
///              SND.UNA    SND.NXT    SND.UNA
///                                   +SND.WND
///
///   1  acknowledged
///   2  sent, not acknowledged
///   3  may be sent now
///   4  may not be sent yet
///
///   SND.UNA =< SND.NXT =< SND.MAX
/// ```
///
/// SND.MAX is the highest number ever sent. It differs from SND.NXT after a retransmission
/// time-out, when SND.NXT goes back to SND.UNA, and while a window probe is out.
#[derive(Clone, Copy, Debug)]
pub struct SendSequence {
    /// SND.UNA: the oldest number not acknowledged.
    pub una: SeqNum,
    /// SND.NXT: the next number to send.
    pub nxt: SeqNum,
    /// SND.MAX: one past the highest number ever sent.
    pub max: SeqNum,
    /// SND.WND: the peer's window, counted from SND.UNA.
    pub wnd: WindowSize,
    /// The largest window that the peer ever announced (RFC 5961 5.2, RFC 9293 3.8.6.2.1).
    pub max_wnd: WindowSize,
    /// SND.WL1: SEG.SEQ of the last window update.
    pub wl1: SeqNum,
    /// SND.WL2: SEG.ACK of the last window update.
    pub wl2: SeqNum,
}

/// The place of an acknowledgment in the send sequence space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckPlace {
    /// Below SND.UNA by more than the largest window: no honest peer sends it (RFC 5961 5.2).
    TooOld,
    /// Below SND.UNA: an old duplicate.
    Old,
    /// Exactly SND.UNA: nothing new; a duplicate, or a window update.
    Current,
    /// Above SND.UNA, and sent: it acknowledges this many numbers.
    New(u32),
    /// Above SND.MAX: never sent.
    Unsent,
}

impl SendSequence {
    /// A sequence space whose first number is `iss`; `wl1` is the peer's.
    pub fn new(iss: SeqNum, wl1: SeqNum) -> Self {
        Self {
            una: iss,
            nxt: iss,
            max: iss,
            wnd: WindowSize::default(),
            max_wnd: WindowSize::default(),
            wl1,
            wl2: iss,
        }
    }

    /// The peer's SYN has the number `irs`, and announces `wnd`.
    pub const fn begin_window(&mut self, irs: SeqNum, wnd: WindowSize) {
        (self.wl1, self.wl2) = (irs, self.una);
        (self.wnd, self.max_wnd) = (wnd, wnd);
    }

    /// True if all that was sent is acknowledged.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.una == self.max
    }

    /// Numbers sent since SND.UNA and not sent again from there: SND.NXT - SND.UNA.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.nxt.offset_from(self.una)
    }

    /// The number of numbers from SND.NXT on the peer's window admits; 0 if it shrank below SND.NXT.
    #[inline]
    pub fn usable(&self) -> u32 {
        self.wnd.get().saturating_sub(self.in_flight())
    }

    /// The number of a segment without text: SND.MAX, but none beyond the window. A probe of a
    /// closed window leaves SND.MAX one beyond it, and there the peer would refuse the segment
    /// with the acknowledgment that it carries (RFC 9293 3.10.7.4, the first check).
    #[inline]
    pub fn acceptable(&self) -> SeqNum {
        self.max.earlier(self.una + self.wnd.get())
    }

    /// Decides where SEG.ACK lies, which changes nothing.
    #[inline]
    pub fn judge_ack(&self, ack: SeqNum) -> AckPlace {
        let ahead = ack.distance_from(self.una);
        if ahead > 0 {
            let numbers = ack.offset_from(self.una);
            if numbers <= self.max.offset_from(self.una) {
                AckPlace::New(numbers)
            } else {
                AckPlace::Unsent
            }
        } else if ahead == 0 {
            AckPlace::Current
        } else if ahead.unsigned_abs() > self.max_wnd.get() {
            AckPlace::TooOld
        } else {
            AckPlace::Old
        }
    }

    /// Everything below `ack` is acknowledged; `ack` was judged [`AckPlace::New`].
    #[inline]
    pub fn advance(&mut self, ack: SeqNum) {
        // The window is counted from SND.UNA: what was acknowledged leaves it, until an update
        // says otherwise.
        let acked = ack.offset_from(self.una);
        self.wnd = WindowSize::new(self.wnd.get().saturating_sub(acked));
        self.una = ack;
        self.nxt = self.nxt.later(ack);
    }

    /// The numbers up to `end` are sent.
    #[inline]
    pub fn sent_to(&mut self, end: SeqNum) {
        self.nxt = end;
        self.max = self.max.later(end);
    }

    /// Takes SEG.WND, unless the segment is older than the last one that was taken. Returns
    /// whether the window changed.
    #[inline]
    pub fn update_window(&mut self, seq: SeqNum, ack: SeqNum, wnd: WindowSize) -> bool {
        // RFC 9293 3.10.7.4: "If (SND.WL1 < SEG.SEQ or (SND.WL1 = SEG.SEQ and SND.WL2 =<
        // SEG.ACK)), set SND.WND <- SEG.WND, set SND.WL1 <- SEG.SEQ, and set SND.WL2 <- SEG.ACK."
        let newer = self.wl1.before(seq) || (self.wl1 == seq && self.wl2.at_or_before(ack));
        if !newer {
            return false;
        }
        self.wl1 = seq;
        self.wl2 = ack;
        let changed = self.wnd != wnd;
        self.wnd = wnd;
        self.max_wnd = self.max_wnd.max(wnd);
        changed
    }
}

#[cfg(test)]
mod tests;
