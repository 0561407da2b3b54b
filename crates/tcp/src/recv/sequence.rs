//! The receive sequence space (RFC 9293 3.3.1).

use whimbrel_wire::{RawWindow, SeqNum, WindowScale, WindowSize};

/// The receive sequence variables.
///
/// ```text
///            1          2          3
///       ----------|----------|----------
///              RCV.NXT    RCV.NXT
///                        +RCV.WND
///
///   1  received in order and acknowledged, or about to be
///   2  may be received now
///   3  may not be received yet
/// ```
///
/// What is kept is the right edge and not RCV.WND: text that arrives moves RCV.NXT towards the
/// edge, reading moves the edge, and nothing ever moves it back (RFC 9293 3.8.6: "A TCP receiver
/// SHOULD NOT shrink the window").
#[derive(Clone, Copy, Debug)]
pub struct RecvSequence {
    /// RCV.NXT: the next number expected.
    pub nxt: SeqNum,
    /// RCV.NXT + RCV.WND: one past the highest number that was ever announced as welcome.
    pub edge: SeqNum,
    /// Last.ACK.sent (RFC 7323 4.3): the last acknowledgment number sent.
    pub last_ack: SeqNum,
}

impl RecvSequence {
    /// The space in front of the peer's number `nxt`, with a window of `wnd`.
    pub fn new(nxt: SeqNum, wnd: WindowSize) -> Self {
        Self { nxt, edge: nxt + wnd.get(), last_ack: nxt }
    }

    /// RCV.WND: how many numbers from RCV.NXT on are welcome.
    #[inline]
    pub fn wnd(&self) -> u32 {
        self.edge.offset_from(self.nxt)
    }

    /// The right edge that `free` bytes of buffer allow, or the present one if moving it by so
    /// little would only provoke small segments.
    #[inline]
    pub fn judge_edge(&self, free: u32, buffer: u32, mss: u32) -> SeqNum {
        let offered = self.nxt + free;
        let step = offered.distance_from(self.edge);
        // RFC 9293 3.8.6.2.2: "keep RCV.NXT+RCV.WND fixed until the reduction satisfies:
        // RCV.BUFF - RCV.USER - RCV.WND >= min ( Fr * RCV.BUFF, Eff.snd.MSS )", Fr = 1/2
        if step > 0 && step.unsigned_abs() >= mss.min(buffer / 2).max(1) {
            offered
        } else {
            self.edge
        }
    }

    /// The window field that announces the edge. Rounding down to the field's unit loses less
    /// than one unit; text up to the true edge stays welcome (RFC 7323 2.4).
    #[inline]
    pub fn raw_window(&self, scale: WindowScale) -> RawWindow {
        WindowSize::new(self.wnd()).to_raw(scale)
    }
}

#[cfg(test)]
mod tests;
