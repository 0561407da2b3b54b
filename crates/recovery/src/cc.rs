//! Congestion control: limits of the data in flight, and of the rate of sending.
//!
//! An algorithm receives events and sets the [`Window`], which the sender reads. `recovery` detects
//! losses, and the sender selects the segments. To add an algorithm, write a file next to `reno.rs`
//! with an `impl` of [`CongestionControl`], and add its `mod` and its row of the table here. Names,
//! numbers, the words of the tunable and the state of a connection follow from the row. Users add
//! their own algorithms by [`Algorithms::add`].
//!
//! The window is part of every connection's record. The rest of an algorithm's state ([`CcState`])
//! exists only while the connection has something to send.

#[macro_use]
mod own;

mod algorithms;
mod bbr;
mod cubic;
mod event;
mod hystart;
mod pipe_ack;
mod reno;
mod state;
mod window;

use alloc::boxed::Box;
use core::fmt::Debug;

pub use algorithms::{AddError, Algorithm, Algorithms, MakeAlgorithm, UnknownAlgorithm};
pub use bbr::Bbr;
pub use cubic::Cubic;
pub(crate) use event::SHORTEST_PACED_TRIP;
pub use event::{Ack, Loss, LostText, Phase, Rate, Sent, SlowStart, Timeout, TimeoutKind};
pub use reno::Reno;
pub use state::{CcState, Control};
pub use window::{Share, Window};

own_algorithms! {
    /// Reno (RFC 5681): a segment more each round trip, half at a loss.
    RENO: Reno = "reno",
    /// CUBIC (RFC 9438): by the clock, back to where the path was full and then beyond; Linux,
    /// Windows, macOS.
    CUBIC: Cubic = "cubic",
    boxed:
    /// BBRv3 (draft-ietf-ccwg-bbr): by the rate at which the path delivers, and the least round trip.
    BBR: Bbr = "bbr",
}

/// A congestion control: receives the events of a connection and sets its [`Window`]. All counts of bytes
/// are of text, without SYN and FIN.
pub trait CongestionControl: Debug + Send {
    /// Bytes per second at which text leaves, asked each time some of it does; `None`: as the tunable `pacing`
    /// says.
    fn pacing_rate(&self, _window: &Window) -> Option<u64> {
        None
    }

    /// Text is about to leave, in full segments of `mss` bytes, for the first time since the connection
    /// has this algorithm. On a fresh connection the window is the initial one (RFC 6928).
    fn begin(&mut self, _window: &mut Window, _mss: u32) {}

    /// Text or FIN leaves, for the first time or again.
    fn on_sent(&mut self, _window: &mut Window, _sent: &Sent) {}

    /// An acknowledgment arrives, in whatever phase, of something new or of something behind what is missing,
    /// or a duplicate of one. Losses that it reveals, and the begin or end of fast recovery, are reported before.
    ///
    /// Reno and CUBIC hear less: outside fast recovery, of something new that cwnd limited.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// True if it sets cwnd in fast recovery, too. Otherwise cwnd is what Proportional Rate Reduction (RFC
    /// 6937) says, from a loss event until [`CongestionControl::on_recovered`].
    fn sets_cwnd_in_recovery(&self) -> bool {
        false
    }

    /// True if it hears the rate at which text arrives ([`Ack::rate`]), and each transmission that is
    /// lost ([`CongestionControl::on_lost`]). Each transmission then takes 20 bytes more. It is asked when text
    /// leaves.
    fn samples_rate(&self) -> bool {
        false
    }

    /// A transmission, first or repeated, was judged lost: reported before the acknowledgment that reveals it, and
    /// after the time-out.
    fn on_lost(&mut self, _window: &mut Window, _lost: &LostText) {}

    /// A segment is lost, and fast recovery begins: once for each window of text (RFC 5681 3.2). It sets
    /// ssthresh, and cwnd if [it does so](CongestionControl::sets_cwnd_in_recovery).
    fn on_loss_event(&mut self, window: &mut Window, loss: &Loss);

    /// All that was out at the loss event is acknowledged: fast recovery ends.
    fn on_recovered(&mut self, window: &mut Window, _end: &Loss) {
        // RFC 5681 4.3: "after all loss in the given window of segments has been successfully
        // retransmitted, cwnd MUST be set to no more than ssthresh".
        window.cwnd = window.ssthresh;
    }

    /// The retransmission timer ran out.
    fn on_rto(&mut self, window: &mut Window, timeout: &Timeout);

    /// The peer echoes that routers marked some of what is in flight (RFC 3168 6.1.2): at most once for each
    /// window of text, and not for one that a loss event reduced.
    fn on_ecn(&mut self, window: &mut Window, loss: &Loss) {
        self.on_loss_event(window, loss);
        window.cwnd = window.cwnd.min(window.ssthresh);
    }

    /// Text is about to leave after a pause of more than one RTO with nothing in flight (RFC 5681 4.1), or after five
    /// minutes in which less than half of the window was used (RFC 7661 4.4.3): a window of `initial` bytes would do,
    /// that of a fresh connection or more.
    fn on_idle(&mut self, window: &mut Window, initial: u32) {
        window.on_idle(initial);
    }

    /// Restores the window `before` the last loss event, or a time-out since, which has turned out to
    /// be spurious (RFC 5682, RFC 4015). Loss recovery calls this.
    fn undo(&mut self, window: &mut Window, before: &Window) {
        window.restore(before);
    }
}

/// The congestion window of a fresh connection whose full segments have `mss` bytes of text, bytes: so
/// many segments, [`INITIAL_SEGMENTS`] unless a tunable says otherwise.
#[inline]
pub fn initial_cwnd(mss: u32, segments: u8) -> u32 {
    // RFC 6928 2: "min (10*MSS, max (2*MSS, 14600))"
    let segments = u32::from(segments);
    (segments * mss).min((2 * mss).max(segments * 1_460))
}

/// The segments of RFC 6928's initial window.
pub const INITIAL_SEGMENTS: u8 = 10;

#[cfg(test)]
mod tests;
