//! The state of recovery while something is missing, and its steps at each acknowledgment.

mod frto;
mod loss_probe;
mod losses;
mod marks;
mod mtu_probe;
mod rate_limited;
mod timeout;
mod undo;

use core::mem::take;

use whimbrel_base::{Instant, Micros};

use super::prr::Prr;
use super::rack::Rack;
use super::{Acked, MtuProbeOutcome, Path, Reaction, RecoveryEvents};
use crate::cc::{Ack, Control, INITIAL_SEGMENTS, Loss, Phase, initial_cwnd};
use crate::flight::Flight;
pub(super) use frto::Frto;
use loss_probe::Probe;
use mtu_probe::MtuProbe;
use undo::{Undo, Undone};

/// The state of recovery while something is missing, or may have been.
#[derive(Debug, Default)]
pub(super) struct State {
    phase: Phase,
    /// Acknowledgments in a row that named something new by SACK.
    sacks: u8,
    /// Without SACK: duplicate acknowledgments in a row, up to the third.
    dup_acks: u8,
    /// Without SACK: bytes behind SND.UNA that arrived, as duplicate acknowledgments tell.
    credit: u64,
    /// New text goes before what is lost (RFC 5682 3.1, step 2b).
    prefers_new: bool,
    /// SND.NXT when the last recovery began.
    recover: Option<u64>,
    /// SND.NXT when marks of the network last reduced the window, unless a time-out came since.
    reduced: Option<u64>,
    rack: Rack,
    prr: Prr,
    probe: Option<Probe>,
    mtu_probe: Option<MtuProbe>,
    undo: Option<Undo>,
    pub(super) frto: Option<Frto>,
    /// The shortest round trip of what arrived since SND.UNA moved: where segments arrive out of order, what
    /// moves it is what was late.
    shortest: Option<Micros>,
    /// Bytes that were in use when something was lost of a flow that used less than half of cwnd.
    rate_limited: Option<u32>,
    /// Bytes that were sent again since.
    repaired: u64,
    /// Events of the call under way.
    events: RecoveryEvents,
}

/// Queries.
impl State {
    /// The phase, as the congestion control knows it.
    #[inline]
    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Bytes that are thought to be in the network. Without SACK a segment left it for each duplicate
    /// acknowledgment; after a time-out they are among what is lost.
    #[inline]
    pub(super) fn pipe(&self, flight: &Flight) -> u32 {
        match self.phase {
            Phase::AfterTimeout => flight.pipe(),
            _ => flight.pipe().saturating_sub(self.credit as u32),
        }
    }

    /// Bytes behind something missing that the peer is known to hold.
    #[inline]
    pub(super) fn held(&self, flight: &Flight) -> u32 {
        flight.sacked().bytes() as u32 + self.credit()
    }

    /// Bytes of these of which duplicates told, without SACK.
    #[inline]
    pub(super) const fn credit(&self) -> u32 {
        self.credit as u32
    }

    /// True if new text goes before what is lost.
    #[inline]
    pub(super) const fn prefers_new(&self) -> bool {
        self.prefers_new
    }

    /// When what is missing is to be judged again, though nothing arrives (RFC 8985 6.2).
    #[inline]
    pub(super) const fn reordering_due(&self) -> Option<Instant> {
        self.rack.due()
    }

    /// True if a loss probe may ask for what was lost at the end (RFC 8985 7.2): "unless it is already in
    /// fast recovery, RTO recovery, or segments have been SACKed".
    #[inline]
    pub(super) fn may_probe(&self, flight: &Flight) -> bool {
        matches!(self.phase, Phase::Open)
            && self.probe.is_none()
            && flight.sacked().is_empty()
            && !flight.has_lost()
    }

    /// True if a loss may still prove spurious, or a probe prove a loss.
    #[inline]
    pub(super) const fn remembers(&self) -> bool {
        self.undo.is_some() || self.probe.is_some()
    }

    /// True if nothing of it matters any more.
    pub(super) fn is_over(&self, flight: &Flight) -> bool {
        flight.is_whole()
            && matches!(self.phase, Phase::Open)
            && !self.remembers()
            && self.mtu_probe.is_none()
            && self.dup_acks == 0
            && self.credit == 0
            && !self.rack.is_widened()
            && self.recover.is_none_or(|recover| flight.una() > recover)
            && self.reduced.is_none_or(|end| flight.una() > end)
    }
}

/// Changes as segments leave.
impl State {
    /// So many bytes leave, `again` of them not for the first time.
    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u32, again: u64, now: Instant) {
        if self.phase == Phase::FastRecovery {
            self.prr.on_sent(u64::from(bytes));
            self.repaired += again;
        }
        if again > 0
            && let Some(undo) = &mut self.undo
        {
            undo.first_repair.get_or_insert(now);
            undo.repaired += again;
        }
    }
}

/// Changes as acknowledgments arrive.
impl State {
    /// Reports acknowledged data to the congestion control.
    #[inline]
    fn grow(&mut self, flight: &mut Flight, control: &mut Control<'_>, acked: &Acked) {
        let rtt = self.shortest.take().or(acked.rtt);
        control.on_ack(acked.text, |limited| self.heard(flight, acked, rtt, limited));
    }

    /// Reports an acknowledgment that lets no window grow.
    fn note_other_ack(&self, flight: &mut Flight, control: &mut Control<'_>, acked: &Acked) {
        // Without SACK, what arrives with a repair may have waited for it.
        let waited = acked.delivered.is_ambiguous && !acked.path.sack;
        let once = acked.delivered.once.filter(|_| !waited);
        let trip = once.map(|(at, _)| acked.path.now.micros_since(at));
        control.on_other_ack(|| self.heard(flight, acked, trip.or(acked.rtt), 0));
    }

    fn heard(&self, flight: &mut Flight, acked: &Acked, rtt: Option<Micros>, limited: u32) -> Ack {
        let Acked { text: delivered, path, slow_start, .. } = *acked;
        Ack {
            now: path.now,
            delivered,
            arrived: u32::try_from(acked.delivered.bytes).unwrap_or(u32::MAX),
            limited,
            in_flight: self.pipe(flight),
            rtt,
            srtt: path.srtt.map_or_else(Micros::default, Micros::from),
            rate: flight.take_rate(path.now, path.min_rtt, path.sack),
            phase: self.phase,
            mss: path.mss,
            slow_start,
        }
    }

    /// An acknowledgment was taken: the flight knows of it.
    pub(super) fn on_ack(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        acked: &Acked,
    ) -> (Reaction, RecoveryEvents) {
        let mut acked = *acked;
        if !acked.path.sack {
            acked.delivered.bytes = self.estimate_delivery(flight, &acked);
        }
        let trip = acked.delivered.once.map(|(at, _)| acked.path.now.micros_since(at));
        self.shortest = [self.shortest, trip].into_iter().flatten().min();
        self.process_probe(flight, control, &acked);
        self.note_mtu_probe_arrival(flight);
        self.note_duplicate(flight, &acked);
        if acked.path.sack {
            self.rack.update(&acked, flight.una());
            self.note_reneging(flight, &acked);
        }
        // A loss that was none is taken back before its recovery can end, and before anything else is
        // judged: both would go by a phase and a window that hold no longer.
        let undone = self.undo_spurious(flight, control, &acked);
        // What seemed lost was late: RACK waits for its like from this acknowledgment on.
        acked.path.reorders |= undone == Some(Undone::Loss);
        let acked = &acked;
        self.end_recovery(flight, control, acked);
        let lost = if acked.path.sack {
            self.find_losses(flight, acked)
        } else {
            self.count_duplicates(flight, acked)
        };
        let is_probe = lost && self.excuse_mtu_probe(flight);
        let lost = lost && !is_probe;
        tell_losses(flight, control, &acked.path);
        let mut reaction = match undone {
            None if is_probe => Reaction::Repair,
            None => Reaction::None,
            Some(Undone::Loss) => Reaction::LossUndone,
            Some(Undone::Timeout) => Reaction::TimeoutUndone,
        };
        match self.phase {
            Phase::Open if lost => {
                self.begin_fast_recovery(flight, control, acked);
                self.note_other_ack(flight, control, acked);
                self.reduce(flight, control, acked, false);
            }
            Phase::FastRecovery => {
                let safe = acked.advances && !lost;
                self.note_other_ack(flight, control, acked);
                self.reduce(flight, control, acked, safe);
                if lost && !acked.path.sack {
                    // RFC 6582 3.2 step 3, partial acknowledgment: "retransmit the first
                    // unacknowledged segment."
                    reaction = Reaction::Repair;
                }
            }
            Phase::Open | Phase::AfterTimeout => {
                // RFC 3168 6.1.2: "The sending TCP SHOULD NOT increase the congestion window in response to
                // the receipt of an ECN-Echo ACK packet." All until the first of a new window echo that.
                if acked.advances && !self.is_reduced(flight) {
                    self.grow(flight, control, acked);
                } else {
                    self.note_other_ack(flight, control, acked);
                }
            }
        }
        if self.phase == Phase::AfterTimeout {
            self.step_frto(flight, control, acked);
        }
        (reaction, self.take_events())
    }

    /// Returns the events of the call that ends.
    pub(super) fn take_events(&mut self) -> RecoveryEvents {
        take(&mut self.events)
    }

    /// All that was out when recovery began is acknowledged.
    fn end_recovery(&mut self, flight: &Flight, control: &mut Control<'_>, acked: &Acked) {
        if !acked.advances {
            return;
        }
        if self.phase == Phase::Open {
            self.forget_duplicates();
            self.undo =
                self.undo.filter(|undo| undo.until.is_none_or(|until| flight.una() <= until));
            return;
        }
        if self.recover.is_some_and(|recover| flight.una() < recover) {
            return;
        }
        if let Some(undo) = &mut self.undo {
            // Reports of text that came twice may be behind the acknowledgment that ends recovery.
            undo.until = Some(flight.end());
        }
        if self.phase == Phase::FastRecovery {
            let end = loss(flight, control, acked.path.mss);
            control.on_recovered(&end);
            self.end_rate_limited(control, acked.path.mss);
            if !acked.path.sack {
                bound_burst(flight, control, acked.path.mss);
            }
        }
        self.rack.on_recovered();
        self.phase = Phase::Open;
        (self.frto, self.prefers_new) = (None, false);
        self.forget_duplicates();
    }

    fn begin_fast_recovery(&mut self, flight: &Flight, control: &mut Control<'_>, acked: &Acked) {
        if acked.path.sack {
            self.events.sack_recovery = true;
        } else {
            self.events.reno_recovery = true;
        }
        let named = if acked.path.sack { acked.delivered.bytes } else { 0 };
        self.begin(flight, control, &acked.path, named);
    }

    fn begin(&mut self, flight: &Flight, control: &mut Control<'_>, path: &Path, delivered: u64) {
        self.set_undo(flight, control);
        self.phase = Phase::FastRecovery;
        self.recover = Some(flight.end());
        // What a probe or F-RTO asked is answered: something is lost, and this recovery sees to it.
        (self.probe, self.frto) = (None, None);
        let sacked = flight.sacked().bytes();
        self.prr = Prr::new(flight.end() - flight.una() - sacked + delivered, path.mss);
        self.tell_loss_event(flight, control, path.mss);
    }

    /// In fast recovery: what may leave by PRR, unless the algorithm says that.
    fn reduce(&mut self, flight: &Flight, control: &mut Control<'_>, acked: &Acked, is_safe: bool) {
        if control.sets_cwnd_in_recovery() {
            return;
        }
        let (pipe, ssthresh) = (self.pipe(flight), control.window.ssthresh);
        control.window.cwnd = self.prr.on_ack(acked.delivered.bytes, pipe, ssthresh, is_safe);
    }

    /// Marks segments that exceed the path's MTU as lost, which is no sign of congestion. Duplicate
    /// acknowledgments of the others are ignored until all of the flight is acknowledged.
    pub(super) fn on_path_mtu(&mut self, flight: &mut Flight, mss: u16) {
        flight.lose_larger(mss);
        self.abandon_mtu_probe(MtuProbeOutcome::Inconclusive);
        self.recover = Some(flight.end());
    }
}

/// Reports each transmission that was judged lost, to an algorithm that asks for that.
fn tell_losses(flight: &mut Flight, control: &mut Control<'_>, path: &Path) {
    while let Some(lost) = flight.next_loss(path.sack) {
        control.on_lost(&lost, path.mss);
    }
}

/// A recovery without SACK ends. RFC 6582 3.2 step 3: "the implementation is encouraged to take measures to avoid a
/// possible burst of data, in case the amount of data outstanding in the network is much less than the new congestion
/// window allows." One acknowledgment may cover much more than the window, so slow start leads from an initial window
/// beyond what is in flight to ssthresh.
fn bound_burst(flight: &Flight, control: &mut Control<'_>, mss: u32) {
    if !control.sets_cwnd_in_recovery() {
        let most = flight.pipe().saturating_add(initial_cwnd(mss, INITIAL_SEGMENTS));
        control.window.cwnd = control.window.cwnd.min(most);
    }
}

/// The flight when recovery begins or ends. RFC 5681 3.2: what limited transmit sent beyond cwnd
/// "MUST NOT be included in this calculation".
fn loss(flight: &Flight, control: &Control<'_>, mss: u32) -> Loss {
    let in_flight = (flight.end() - flight.una()) as u32;
    Loss { in_flight: in_flight.min(control.window.cwnd), mss }
}
