//! Loss detection from acknowledgments and time-outs, and recovery.
//!
//! With SACK losses are detected by time (RACK, RFC 8985), without it by counting duplicate
//! acknowledgments (RFC 5681 3.2, RFC 6582). In fast recovery the window follows PRR. A loss probe
//! detects losses at the end of a burst (RFC 8985 7). A spurious loss is undone; it is detected by
//! timestamps (RFC 3522), by duplicate text (RFC 3708) or after a time-out (F-RTO, RFC 5682).

mod events;
mod prr;
mod rack;
mod state;

use alloc::boxed::Box;
use core::ops::Range;
use core::time::Duration;

use whimbrel_base::{Instant, Micros};

use crate::cc::{Control, Phase, SlowStart};
use crate::flight::{Delivered, Flight};
pub use events::RecoveryEvents;
use state::State;

/// Loss recovery of one connection. As long as all goes well it remembers nothing.
#[derive(Debug, Default)]
pub struct Recovery(Option<Box<State>>);

/// The state of loss recovery, in the words of Linux' `tcpi_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaState {
    /// Nothing that was sent is known to be missing.
    Open,
    /// Something arrived that was sent later than what is missing: too little to act upon.
    Disorder,
    /// The window was reduced because the network marked what it carried (RFC 3168), and something is in
    /// flight that was then.
    Cwr,
    /// Fast recovery: a loss is being repaired without a time-out.
    Recovery,
    /// A retransmission time-out is being repaired.
    Loss,
}

/// An acknowledgment, as recovery looks at it.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// It acknowledges something new.
    pub advances: bool,
    /// Bytes of text that it acknowledges.
    pub text: u32,
    /// The text that it newly reports as delivered.
    pub delivered: Delivered,
    /// Text came twice, up to this offset, so many bytes (RFC 2883).
    pub duplicate: Option<(u64, u32)>,
    /// It is a duplicate acknowledgment as RFC 5681 2 has it.
    pub is_duplicate: bool,
    /// When the segment left that it echoes, to a millisecond.
    pub echoed: Option<Instant>,
    /// The round trip that it ends.
    pub rtt: Option<Micros>,
    /// Something unsent could be sent.
    pub can_send_new: bool,
    /// The connection's knowledge of its path.
    pub path: Path,
    /// The rules of slow start.
    pub slow_start: SlowStart,
}

/// A connection's knowledge of its path and peer.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The time at which the acknowledgment arrived, or the timer ran out.
    pub now: Instant,
    /// Selective acknowledgments were negotiated.
    pub sack: bool,
    /// Bytes of text in a full segment.
    pub mss: u32,
    /// SRTT, if there was a measurement.
    pub srtt: Option<Duration>,
    /// The least round trip of the last minutes.
    pub min_rtt: Option<Micros>,
    /// Segments were seen to arrive in another order than they were sent (RFC 8985 5.3:
    /// RACK.reordering_seen).
    pub reorders: bool,
}

/// An action that is due at once, regardless of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Reaction {
    /// Nothing: what the window allows is sent in its turn.
    None,
    /// The first of what is lost is to be sent again.
    Repair,
    /// A time-out was none: what it asked to be sent again need not be.
    TimeoutUndone,
    /// A loss event was spurious: the path reorders segments.
    LossUndone,
}

/// The outcome of a probe of the path MTU (RFC 4821 7.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MtuProbeOutcome {
    /// Success: it arrived.
    Arrived,
    /// Failure: it was lost, and nothing around it.
    Lost,
    /// Timeout failure: it was not answered, nor was what followed it.
    TimedOut,
    /// More than the probe was lost, or it matters no more.
    Inconclusive,
}

/// Queries.
impl Recovery {
    /// The phase, as the congestion control knows it.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.0.as_ref().map_or(Phase::Open, |state| state.phase())
    }

    /// True if nothing is remembered.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// The state of loss recovery, of a connection with this flight.
    pub fn ca_state(&self, flight: &Flight) -> CaState {
        match self.phase() {
            Phase::Open if self.is_reduced(flight) => CaState::Cwr,
            Phase::Open if self.segs_sacked(flight, 1) == 0 => CaState::Open,
            Phase::Open => CaState::Disorder,
            Phase::FastRecovery => CaState::Recovery,
            Phase::AfterTimeout => CaState::Loss,
        }
    }

    /// True if marks of the network reduced the window, and something is in flight that was then.
    fn is_reduced(&self, flight: &Flight) -> bool {
        flight.end() > flight.una() && self.0.as_ref().is_some_and(|state| state.is_reduced(flight))
    }

    /// Bytes that are thought to be in the network. Without SACK a segment left it for each duplicate
    /// acknowledgment.
    #[inline]
    pub fn pipe(&self, flight: &Flight) -> u32 {
        match &self.0 {
            None => flight.pipe(),
            Some(state) => state.pipe(flight),
        }
    }

    /// Bytes behind something missing that the peer is known to hold: those that it named, or of which duplicates
    /// told.
    #[inline]
    pub fn held(&self, flight: &Flight) -> u32 {
        self.0.as_ref().map_or(0, |state| state.held(flight))
    }

    /// Bytes of these of which duplicates told, without SACK.
    #[inline]
    pub fn credit(&self) -> u32 {
        self.0.as_ref().map_or(0, |state| state.credit())
    }

    /// Segments that the peer is known to hold: those that it named, or as many as duplicates came.
    pub fn segs_sacked(&self, flight: &Flight, mss: u32) -> u32 {
        self.0.as_ref().map_or(0, |state| state.segs_sacked(flight, mss))
    }

    /// True if new text goes before what is lost (RFC 5682 3.1, step 2b).
    #[inline]
    pub fn prefers_new(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.prefers_new())
    }

    /// When what is missing is to be judged again, though nothing arrives (RFC 8985 6.2).
    #[inline]
    pub fn reordering_due(&self) -> Option<Instant> {
        self.0.as_ref()?.reordering_due()
    }

    /// True if a loss probe may ask for what was lost at the end (RFC 8985 7.2).
    #[inline]
    pub fn may_probe(&self, flight: &Flight) -> bool {
        self.0.as_ref().is_none_or(|state| state.may_probe(flight))
    }

    /// True if the outcome of a probe of the path MTU is not known yet.
    pub fn has_mtu_probe_out(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.has_mtu_probe_out())
    }

    /// True if a loss may still prove spurious, or a probe prove a loss.
    #[inline]
    pub fn remembers(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.remembers())
    }
}

/// Reports of the sender: segments that leave, acknowledgments, time-outs.
impl Recovery {
    fn state(&mut self) -> &mut State {
        self.0.get_or_insert_default()
    }

    /// So many bytes leave, `again` of them not for the first time.
    #[inline]
    pub fn on_sent(&mut self, bytes: u32, again: u64, now: Instant) {
        if let Some(state) = &mut self.0 {
            state.on_sent(bytes, again, now);
        }
    }

    /// A loss probe left; `end` is SND.NXT since.
    pub fn on_probe_sent(&mut self, end: u64, is_old: bool) {
        self.state().on_probe_sent(end, is_old);
    }

    /// `range` left in one segment that is larger than others, as a probe of the path MTU (RFC 4821 7.5).
    pub fn on_mtu_probe_sent(&mut self, range: Range<u64>) {
        self.state().on_mtu_probe_sent(range);
    }

    /// Takes the outcome of a probe of the path MTU, once it is known.
    pub fn take_mtu_probe_outcome(&mut self, flight: &Flight) -> Option<MtuProbeOutcome> {
        let outcome = self.0.as_mut()?.take_mtu_probe_outcome();
        self.0 = self.0.take().filter(|state| !state.is_over(flight));
        outcome
    }

    /// An acknowledgment was taken that is not plain: the flight knows of it.
    pub fn on_ack(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        acked: &Acked,
    ) -> (Reaction, RecoveryEvents) {
        let outcome = self.state().on_ack(flight, control, acked);
        self.0 = self.0.take().filter(|state| !state.is_over(flight));
        outcome
    }

    /// The peer echoes a mark of the network (RFC 3168 6.1.2), by an acknowledgment of all below `ack` that the flight
    /// does not know of yet. Returns true if the window is reduced for it.
    pub fn on_ecn(
        &mut self,
        flight: &Flight,
        control: &mut Control<'_>,
        ack: u64,
        mss: u32,
    ) -> bool {
        self.state().on_ecn(flight, control, ack, mss)
    }

    /// The reordering timer ran out: what is missing is old enough to be judged (RFC 8985 6.2).
    pub fn on_reordering_timeout(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        path: &Path,
    ) -> RecoveryEvents {
        self.state().on_reordering_timeout(flight, control, path)
    }

    /// The retransmission timer ran out, for the `attempt`th time in a row.
    pub fn on_timeout(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        path: &Path,
        attempt: u8,
    ) {
        self.state().on_timeout(flight, control, path, attempt);
    }

    /// Marks segments of more than `mss` bytes as lost: they were too big for the path, which is no sign of
    /// congestion.
    pub fn on_path_mtu(&mut self, flight: &mut Flight, mss: u16) {
        self.state().on_path_mtu(flight, mss);
    }

    /// Whatever was remembered is out of date.
    #[inline]
    pub fn forget(&mut self) {
        if !self.is_none() {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests;
