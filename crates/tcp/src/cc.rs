//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! An algorithm hears of events and answers three questions. What was lost is decided elsewhere
//! ([`crate::recovery`]); which segments go is the sender's. To add one: a file beside `new_reno.rs`
//! with an `impl` of [`CongestionControl`], and a variant of [`Algorithm`].

mod new_reno;

use core::fmt::Debug;

use whimbrel_base::{Instant, Micros};

pub use new_reno::NewReno;

/// What a congestion control is told, and asked. Windows are in octets of text, and all octets that are
/// told are of text, SYN and FIN aside.
pub trait CongestionControl: Debug + Send {
    /// cwnd: how much may be in flight, at least a full segment.
    fn cwnd(&self) -> u32;

    /// ssthresh: the window at which slow start ends; `u32::MAX` before the first loss.
    fn ssthresh(&self) -> u32;

    /// Octets per second at which text may leave; `None`: as fast as it can. To be asked by the pacer.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// A connection begins whose full segments have `mss` octets: the window is the initial one
    /// (RFC 6928), whatever it was before.
    fn begin(&mut self, mss: u32);

    /// Text or FIN leaves, for the first time or again.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// Something new is acknowledged, in whatever phase.
    fn on_ack(&mut self, ack: &Ack);

    /// A segment is lost, and fast recovery begins: once for each window of text (RFC 5681 3.2).
    fn on_loss_event(&mut self, loss: &Loss);

    /// Fast recovery goes on, and one more segment of `mss` octets left the network, as a duplicate
    /// acknowledgment tells.
    fn on_duplicate(&mut self, _mss: u32) {}

    /// All that was out at the loss event is acknowledged: fast recovery ends.
    fn on_recovered(&mut self, end: &Loss);

    /// The retransmission timer ran out.
    fn on_rto(&mut self, timeout: &Timeout);

    /// Routers marked `octets` of what is acknowledged now (RFC 3168 6.1.2): to be raised, at most once
    /// for each window, by the reader of ECE.
    fn on_ecn(&mut self, _octets: u32, _loss: &Loss) {}

    /// Text is about to leave after a pause of more than one RTO with nothing in flight (RFC 5681 4.1).
    fn on_idle(&mut self, mss: u32);

    /// The loss event or time-out was none: what it did is taken back. To be raised by whoever finds that
    /// out (RFC 5682, RFC 4015).
    fn undo(&mut self) {}
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nothing is known to be lost.
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

/// The retransmission timer ran out, or had done so for our SYN.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// Which of the three it was.
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
    /// Our SYN or SYN-ACK; it is acknowledged now, and text is about to flow.
    Syn,
}

/// The algorithm of one connection.
#[derive(Debug)]
pub enum Algorithm {
    /// [`NewReno`]: RFC 5681 with RFC 6582.
    NewReno(NewReno),
    /// A test's own, of any kind. A connection of users does without: a pointer in its record, and the
    /// question at its end whether that is to be freed, took 58 instructions of each connection. There
    /// is room for one where what is in flight has a record of its own.
    #[cfg(test)]
    Custom(Box<dyn CongestionControl>),
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

/// What happens with each segment. What is told of it is put together only for those that look at it.
impl Algorithm {
    /// Tells of text that leaves, as [`CongestionControl::on_sent`].
    #[inline(always)]
    pub fn on_sent_with(&mut self, sent: impl FnOnce() -> Sent) {
        each!(self, cc => cc.on_sent(&sent()));
    }

    /// Tells of an acknowledgment, as [`CongestionControl::on_ack`].
    #[inline(always)]
    pub fn on_ack_with(&mut self, ack: impl FnOnce() -> Ack) {
        each!(self, cc => cc.on_ack(&ack()));
    }
}

impl CongestionControl for Algorithm {
    #[inline]
    fn cwnd(&self) -> u32 {
        each!(self, cc => cc.cwnd())
    }

    #[inline]
    fn ssthresh(&self) -> u32 {
        each!(self, cc => cc.ssthresh())
    }

    fn pacing_rate(&self) -> Option<u64> {
        each!(self, cc => cc.pacing_rate())
    }

    fn begin(&mut self, mss: u32) {
        each!(self, cc => cc.begin(mss));
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        each!(self, cc => cc.on_sent(sent));
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        each!(self, cc => cc.on_ack(ack));
    }

    fn on_loss_event(&mut self, loss: &Loss) {
        each!(self, cc => cc.on_loss_event(loss));
    }

    fn on_duplicate(&mut self, mss: u32) {
        each!(self, cc => cc.on_duplicate(mss));
    }

    fn on_recovered(&mut self, end: &Loss) {
        each!(self, cc => cc.on_recovered(end));
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        each!(self, cc => cc.on_rto(timeout));
    }

    fn on_ecn(&mut self, octets: u32, loss: &Loss) {
        each!(self, cc => cc.on_ecn(octets, loss));
    }

    fn on_idle(&mut self, mss: u32) {
        each!(self, cc => cc.on_idle(mss));
    }

    fn undo(&mut self) {
        each!(self, cc => cc.undo());
    }
}

/// The congestion window of a fresh connection whose full segments have `mss` octets of text, octets.
pub fn initial_cwnd(mss: u32) -> u32 {
    // RFC 6928 2: "min (10*MSS, max (2*MSS, 14600))"
    (10 * mss).min((2 * mss).max(14_600))
}
