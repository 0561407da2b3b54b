//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! An algorithm hears of events and sets the [`Window`], which the sender asks. What was lost is decided
//! elsewhere ([`crate::recovery`]); which segments go is the sender's. To add one: a file beside
//! `new_reno.rs` with an `impl` of [`CongestionControl`], and a variant of [`Algorithm`].
//!
//! The window is part of every connection's record. What an algorithm keeps beside it is there only while
//! the connection has something to send.

mod new_reno;

#[cfg(test)]
use alloc::boxed::Box;
use core::fmt::Debug;

use whimbrel_base::{Instant, Micros};

pub use new_reno::NewReno;

/// How much may be in flight: what a connection keeps of its congestion control while it is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// cwnd: how much may be in flight, octets of text, at least a full segment.
    pub cwnd: u32,
    /// ssthresh: the window at which slow start ends, octets; `u32::MAX` before the first loss.
    pub ssthresh: u32,
}

impl Window {
    /// The initial window (RFC 6928) of a connection whose full segments have `mss` octets of text.
    pub fn new(mss: u32) -> Self {
        // RFC 5681 3.1: "The initial value of ssthresh SHOULD be set arbitrarily high"
        Self { cwnd: initial_cwnd(mss), ssthresh: u32::MAX }
    }

    /// Our SYN had to be repeated, and is acknowledged now.
    pub fn on_lost_syn(&mut self, mss: u32) {
        // Of two rules the careful one (RFC 6928 2 would forgive the first loss): "if the SYN or SYN/ACK
        // is lost, the initial window used by a sender after a correctly transmitted SYN MUST be one
        // segment consisting of at most SMSS bytes."
        self.cwnd = mss;
    }

    /// Text is about to leave after a pause. RFC 5681 4.1: "RW = min(IW,cwnd)". The threshold remembers
    /// three quarters of what there was, so that slow start leads back there (RFC 2861 3).
    pub fn on_idle(&mut self, mss: u32) {
        let restart_window = initial_cwnd(mss);
        if self.cwnd > restart_window {
            self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
            self.cwnd = restart_window;
        }
    }

    /// No window beyond what a header can announce is ever useful.
    pub const MOST: u32 = 1 << 30;
}

/// What a congestion control is told; it sets the [`Window`]. All octets that are told are of text, SYN
/// and FIN aside.
pub trait CongestionControl: Debug + Send {
    /// Octets per second at which text may leave; `None`: as fast as it can. To be asked by the pacer.
    fn pacing_rate(&self, _window: &Window) -> Option<u64> {
        None
    }

    /// Text or FIN leaves, for the first time or again.
    fn on_sent(&mut self, _window: &mut Window, _sent: &Sent) {}

    /// Something new is acknowledged, in whatever phase.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// A segment is lost, and fast recovery begins: once for each window of text (RFC 5681 3.2). It sets
    /// ssthresh; cwnd is recovery's until [`CongestionControl::on_recovered`].
    fn on_loss_event(&mut self, window: &mut Window, loss: &Loss);

    /// All that was out at the loss event is acknowledged: fast recovery ends.
    fn on_recovered(&mut self, window: &mut Window, end: &Loss);

    /// The retransmission timer ran out.
    fn on_rto(&mut self, window: &mut Window, timeout: &Timeout);

    /// Routers marked `octets` of what is acknowledged now (RFC 3168 6.1.2): to be raised, at most once
    /// for each window, by the reader of ECE.
    fn on_ecn(&mut self, _window: &mut Window, _octets: u32, _loss: &Loss) {}

    /// Text is about to leave after a pause of more than one RTO with nothing in flight (RFC 5681 4.1).
    fn on_idle(&mut self, window: &mut Window, mss: u32) {
        window.on_idle(mss);
    }

    /// The loss event or time-out was none: what it did is taken back. To be raised by whoever finds that
    /// out (RFC 5682, RFC 4015).
    fn undo(&mut self, _window: &mut Window) {}
}

/// What leaves in one segment, or in one that a device cuts.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it leaves, as the burst's clock has it.
    pub now: Instant,
    /// Octets of text that leave, in one or more segments; 0 with a FIN alone.
    pub octets: u32,
    /// Octets in flight from then on.
    pub in_flight: u32,
}

/// An acknowledgment of something new.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When the acknowledgment arrived.
    pub now: Instant,
    /// Octets that it acknowledges: 0 if that was SYN or FIN alone.
    pub delivered: u32,
    /// Octets that are in flight still.
    pub in_flight: u32,
    /// The round trip that it ends, if it could be measured.
    pub rtt: Option<Micros>,
    /// How fast text arrives, if that could be measured; to be had once delivery is sampled.
    pub rate: Option<Rate>,
    /// Whether nothing waits to be sent: the window is not what limits the sender.
    pub app_limited: bool,
    /// What recovery was doing when it arrived.
    pub phase: Phase,
    /// Octets of text in a full segment.
    pub mss: u32,
}

/// A sample of the delivery rate.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Octets that arrived at the peer in `interval`.
    pub delivered: u64,
    /// The time in which they did.
    pub interval: Micros,
    /// Whether the application limited the sender meanwhile: the path may carry more.
    pub app_limited: bool,
}

/// What recovery is doing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Phase {
    /// Nothing is known to be lost.
    #[default]
    Open,
    /// Fast recovery, from a loss event until all that was out then is acknowledged.
    FastRecovery,
    /// From a time-out until all that was out then is acknowledged.
    AfterTimeout,
}

/// What is in flight when recovery begins or ends.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Octets that were sent and are not acknowledged.
    pub in_flight: u32,
    /// Octets of text in a full segment.
    pub mss: u32,
}

/// The retransmission timer ran out for text.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// Whether it ran out before.
    pub kind: TimeoutKind,
    /// Octets that were sent and are not acknowledged.
    pub in_flight: u32,
    /// Octets of text in a full segment.
    pub mss: u32,
}

/// What a retransmission timer ran out for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutKind {
    /// Text, for the first time.
    First,
    /// Text that was sent again by a time-out before.
    Repeated,
}

/// The algorithm of one connection, and what it keeps beside the [`Window`].
#[derive(Debug)]
pub enum Algorithm {
    /// [`NewReno`]: RFC 5681 with RFC 6582.
    NewReno(NewReno),
    /// A test's own, of any kind.
    #[cfg(test)]
    Custom(Box<dyn CongestionControl>),
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::NewReno(NewReno)
    }
}

/// The same event, or question, for whichever it is.
macro_rules! each {
    ($self:ident, $cc:ident => $what:expr) => {
        match $self {
            Self::NewReno($cc) => $what,
            #[cfg(test)]
            Self::Custom($cc) => $what,
        }
    };
}

impl Algorithm {
    /// Whether what it keeps cannot be made anew from the window.
    #[inline]
    pub const fn must_stay(&self) -> bool {
        match self {
            Self::NewReno(_) => false,
            #[cfg(test)]
            Self::Custom(_) => true,
        }
    }
}

/// What happens with each segment. What is told of it is put together only for those that look at it.
impl Algorithm {
    /// Tells of text that leaves, as [`CongestionControl::on_sent`].
    #[inline(always)]
    pub fn on_sent_with(&mut self, window: &mut Window, sent: impl FnOnce() -> Sent) {
        each!(self, cc => cc.on_sent(window, &sent()));
    }

    /// Tells of an acknowledgment, as [`CongestionControl::on_ack`].
    #[inline(always)]
    pub fn on_ack_with(&mut self, window: &mut Window, ack: impl FnOnce() -> Ack) {
        each!(self, cc => cc.on_ack(window, &ack()));
    }
}

impl CongestionControl for Algorithm {
    fn pacing_rate(&self, window: &Window) -> Option<u64> {
        each!(self, cc => cc.pacing_rate(window))
    }

    #[inline]
    fn on_sent(&mut self, window: &mut Window, sent: &Sent) {
        each!(self, cc => cc.on_sent(window, sent));
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        each!(self, cc => cc.on_ack(window, ack));
    }

    fn on_loss_event(&mut self, window: &mut Window, loss: &Loss) {
        each!(self, cc => cc.on_loss_event(window, loss));
    }

    fn on_recovered(&mut self, window: &mut Window, end: &Loss) {
        each!(self, cc => cc.on_recovered(window, end));
    }

    fn on_rto(&mut self, window: &mut Window, timeout: &Timeout) {
        each!(self, cc => cc.on_rto(window, timeout));
    }

    fn on_ecn(&mut self, window: &mut Window, octets: u32, loss: &Loss) {
        each!(self, cc => cc.on_ecn(window, octets, loss));
    }

    fn on_idle(&mut self, window: &mut Window, mss: u32) {
        each!(self, cc => cc.on_idle(window, mss));
    }

    fn undo(&mut self, window: &mut Window) {
        each!(self, cc => cc.undo(window));
    }
}

/// An algorithm and the window that it sets, as recovery has them.
#[derive(Debug)]
pub struct Control<'a> {
    /// The window.
    pub window: &'a mut Window,
    /// Whoever sets it.
    pub algorithm: &'a mut Algorithm,
}

impl Control<'_> {
    /// As [`CongestionControl::on_loss_event`].
    pub fn on_loss_event(&mut self, loss: &Loss) {
        self.algorithm.on_loss_event(self.window, loss);
    }

    /// As [`CongestionControl::on_recovered`].
    pub fn on_recovered(&mut self, end: &Loss) {
        self.algorithm.on_recovered(self.window, end);
    }

    /// The last loss event or time-out was none: `before` is the window as it was then.
    pub fn undo(&mut self, before: &Window) {
        self.window.cwnd = self.window.cwnd.max(before.cwnd);
        self.window.ssthresh = before.ssthresh;
        self.algorithm.undo(self.window);
    }

    /// As [`CongestionControl::on_rto`].
    pub fn on_rto(&mut self, timeout: &Timeout) {
        self.algorithm.on_rto(self.window, timeout);
    }
}

/// The congestion window of a fresh connection whose full segments have `mss` octets of text, octets.
pub fn initial_cwnd(mss: u32) -> u32 {
    // RFC 6928 2: "min (10*MSS, max (2*MSS, 14600))"
    (10 * mss).min((2 * mss).max(14_600))
}
