//! What recovery remembers while something is missing, and what it does with each acknowledgment.

use whimbrel_base::{Instant, Micros};

use super::prr::Prr;
use super::rack::{self, DUP_THRESH, Rack, is_older};
use super::{Acked, Path, Reaction};
use crate::Counters;
use crate::cc::{Ack, Control, Loss, Phase, Timeout, TimeoutKind, Window};
use crate::flight::Flight;

/// What recovery remembers while something is missing, or may have been.
#[derive(Debug, Default)]
pub(super) struct State {
    phase: Phase,
    /// Acknowledgments in a row that named something new by SACK.
    sacks: u8,
    /// Without SACK: duplicate acknowledgments, each of which tells of a segment that left the network.
    dup_acks: u8,
    /// A loss probe left, and no round trip was measured since (RFC 8985 7.3).
    probe_is_spent: bool,
    /// New text goes before what is lost (RFC 5682 3.1, step 2b).
    prefers_new: bool,
    /// SND.NXT when the last recovery began.
    recover: Option<u64>,
    rack: Rack,
    prr: Prr,
    probe: Option<Probe>,
    undo: Option<Undo>,
    pub(super) frto: Option<Frto>,
}

/// A loss probe that was not acknowledged (RFC 8985 7).
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// TLP.end_seq: SND.NXT when it left.
    end: u64,
    /// TLP.is_retrans: it was old text.
    is_old: bool,
}

/// How it was before the last loss event or time-out, until somebody knows whether that was one.
#[derive(Clone, Copy, Debug)]
struct Undo {
    window: Window,
    /// SND.UNA when that happened, as an offset.
    una: u64,
    /// When the first repair left.
    first_repair: Option<Instant>,
    /// Octets that were sent again, and not reported as come twice.
    repaired: u64,
    /// SND.NXT when recovery ended: once more than that is acknowledged, nobody will call it none.
    until: Option<u64>,
}

/// F-RTO (RFC 5682 3.1) after a time-out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frto {
    /// SND.NXT when the timer ran out.
    pub(super) recover: u64,
    /// One past the segment that it sent again.
    pub(super) repair_end: u64,
    /// New text was sent to see what comes back (step 3).
    pub(super) is_probing: bool,
}

/// What can be asked.
impl State {
    /// What it is doing, as the congestion control is told.
    #[inline]
    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Octets that are thought to be in the network. Without SACK a segment of `mss` octets left it for each
    /// duplicate acknowledgment.
    #[inline]
    pub(super) fn pipe(&self, flight: &Flight, mss: u32) -> u32 {
        flight.pipe().saturating_sub(u32::from(self.dup_acks) * mss)
    }

    /// Segments that the peer is known to hold: those that it named, or as many as duplicates came.
    pub(super) fn segs_sacked(&self, flight: &Flight, mss: u32) -> u32 {
        let octets = flight.sacked().octets();
        let named = if octets == 0 { 0 } else { u32::from(self.sacks) };
        named.max(octets.div_ceil(u64::from(mss.max(1))) as u32).max(u32::from(self.dup_acks))
    }

    /// Whether new text goes before what is lost.
    #[inline]
    pub(super) const fn prefers_new(&self) -> bool {
        self.prefers_new
    }

    /// When what is missing is to be judged again, though nothing arrives (RFC 8985 6.2).
    #[inline]
    pub(super) const fn reordering_due(&self) -> Option<Instant> {
        self.rack.due()
    }

    /// Whether a loss probe may ask for what was lost at the end (RFC 8985 7.2): "unless it is already in
    /// fast recovery, RTO recovery, or segments have been SACKed".
    #[inline]
    pub(super) fn may_probe(&self, flight: &Flight) -> bool {
        matches!(self.phase, Phase::Open)
            && self.probe.is_none()
            && !self.probe_is_spent
            && flight.sacked().is_empty()
            && !flight.has_lost()
    }

    /// Whether something may still turn out to have been no loss, or one.
    #[inline]
    pub(super) const fn remembers(&self) -> bool {
        self.undo.is_some() || self.probe.is_some()
    }

    /// Whether nothing of it matters any more.
    pub(super) fn is_over(&self, flight: &Flight) -> bool {
        flight.is_plain()
            && matches!(self.phase, Phase::Open)
            && !self.remembers()
            && !self.probe_is_spent
            && self.dup_acks == 0
            && !self.rack.is_widened()
            && self.recover.is_none_or(|recover| flight.una() > recover)
    }
}

/// What leaves.
impl State {
    /// So many octets leave, `again` of them not for the first time.
    #[inline]
    pub(super) fn on_sent(&mut self, octets: u32, again: u64, now: Instant) {
        if self.phase == Phase::FastRecovery {
            self.prr.on_sent(u64::from(octets));
        }
        if again > 0
            && let Some(undo) = &mut self.undo
        {
            undo.first_repair.get_or_insert(now);
            undo.repaired += again;
        }
    }

    /// A loss probe left; `end` is SND.NXT since.
    pub(super) const fn on_probe_sent(&mut self, end: u64, is_old: bool) {
        self.probe = Some(Probe { end, is_old });
        self.probe_is_spent = true;
    }
}

/// What arrives.
impl State {
    /// The congestion control is told of what was acknowledged.
    #[inline]
    fn grow(&self, flight: &Flight, control: &mut Control<'_>, acked: &Acked) {
        let in_flight = flight.pipe();
        control.on_ack(acked.text, |limited| Ack {
            now: acked.path.now,
            delivered: acked.text,
            limited,
            in_flight,
            rtt: acked.rtt,
            srtt: acked.path.srtt.map_or_else(Micros::default, Micros::from),
            rate: None,
            phase: self.phase,
            mss: acked.path.mss,
            slow_start: acked.slow_start,
        });
    }

    /// An acknowledgment was taken: the flight knows of it.
    pub(super) fn on_ack(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        acked: &Acked,
        counters: &mut Counters,
    ) -> Reaction {
        self.probe_is_spent &= acked.rtt.is_none();
        self.judge_probe(flight, control, acked, counters);
        self.note_duplicate(flight, acked);
        if acked.path.sack {
            self.rack.update(acked, flight.una());
            self.note_reneging(flight, acked, counters);
        }
        let undone = self.judge_undo(flight, control, acked, counters);
        self.end_recovery(flight, control, acked);
        let lost = if acked.path.sack {
            self.find_losses(flight, acked, counters)
        } else {
            self.count_duplicates(flight, acked)
        };
        let mut reaction = if undone { Reaction::TimeoutUndone } else { Reaction::None };
        match self.phase {
            Phase::Open if lost => {
                self.begin_fast_recovery(flight, control, acked, counters);
                self.reduce(flight, control, acked, false);
            }
            Phase::FastRecovery => {
                let safe = acked.advances && !lost;
                self.reduce(flight, control, acked, safe);
                if lost && !acked.path.sack {
                    // RFC 6582 3.2 step 3, partial acknowledgment: "retransmit the first
                    // unacknowledged segment."
                    reaction = Reaction::Repair;
                }
            }
            Phase::Open | Phase::AfterTimeout => {
                if acked.advances {
                    self.grow(flight, control, acked);
                }
            }
        }
        if self.phase == Phase::AfterTimeout {
            self.step_frto(flight, control, acked);
        }
        reaction
    }

    /// RFC 8985 7.4.2: what became of the loss probe.
    fn judge_probe(
        &mut self,
        flight: &Flight,
        control: &mut Control<'_>,
        acked: &Acked,
        counters: &mut Counters,
    ) {
        let Some(Probe { end, is_old }) = self.probe.filter(|probe| flight.una() >= probe.end)
        else {
            return;
        };
        // "TLP of new data delivered", or "Case 1": both copies came.
        let came_twice = acked.duplicate.is_some_and(|(to, _)| to == end);
        // "Repaired the single loss"
        let repaired = is_old && !came_twice && flight.una() > end;
        // "ACK is a DupAck without any SACK option": "Case 2"
        let is_told = !is_old || came_twice || acked.is_duplicate && !acked.advances;
        if repaired {
            counters.loss_probe_recovery += 1;
            let loss = loss(flight, control, acked.path.mss);
            control.on_loss_event(&loss);
            control.on_recovered(&loss);
        }
        if repaired || is_told {
            self.probe = None;
        }
    }

    /// Text came twice: a repair of it was none, and the reordering window is too narrow.
    fn note_duplicate(&mut self, flight: &Flight, acked: &Acked) {
        let Some((end, octets)) = acked.duplicate else { return };
        if acked.path.sack {
            self.rack.on_duplicate(flight);
        }
        // What lies elsewhere was sent again by another recovery.
        let of_this = |undo: &Undo| {
            let start = end.checked_sub(u64::from(octets));
            start.is_some_and(|start| start >= undo.una)
                && self.recover.is_some_and(|recover| end <= recover)
        };
        if let Some(undo) = self.undo.as_mut().filter(|undo| of_this(undo)) {
            undo.repaired = undo.repaired.saturating_sub(u64::from(octets));
        }
    }

    /// RFC 2018 8: what was named as held may be discarded. SND.UNA stands at the start of such text: it
    /// is not held any more, or would have been acknowledged.
    fn note_reneging(&self, flight: &mut Flight, acked: &Acked, counters: &mut Counters) {
        let una = flight.una();
        if acked.advances && flight.sacked().first().is_some_and(|first| first.start <= una) {
            counters.sack_reneging += 1;
            flight.forget_sacked();
        }
    }

    /// Whether the last loss event or time-out was none: then what it did is taken back. Returns whether
    /// that was a time-out.
    fn judge_undo(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        acked: &Acked,
        counters: &mut Counters,
    ) -> bool {
        let Some(undo) = self.undo else { return false };
        // RFC 3522 3.2: "If the value of the Timestamp Echo Reply field of the acceptable ACK's Timestamps
        // option is smaller than the value of RetransmitTS, then proceed to step (5)", which calls the
        // retransmission spurious.
        let repaired_at = undo.first_repair.filter(|_| acked.advances && flight.una() > undo.una);
        // Step (5): "If the acceptable ACK carries a DSACK option [RFC2883], then proceed to step (DONE)".
        let echoes_older = acked.duplicate.is_none()
            && repaired_at
                .zip(acked.echoed)
                .is_some_and(|(repaired, echoed)| is_older(echoed, repaired));
        // RFC 3708 2: each of them came twice.
        let all_came_twice =
            acked.duplicate.is_some() && undo.first_repair.is_some() && undo.repaired == 0;
        // RFC 5682 3.1, step 3b: "if the ACK acknowledges data that was not retransmitted after the
        // timeout", whether cumulatively or by SACK.
        let original_came = self.frto.is_some_and(|frto| {
            frto.is_probing && acked.delivered.once_from.is_some_and(|from| from < frto.recover)
        });
        if !echoes_older && !all_came_twice && !original_came {
            return false;
        }
        let was_timeout = self.phase == Phase::AfterTimeout;
        match () {
            () if was_timeout => counters.spurious_rtos += 1,
            () if all_came_twice => counters.dsack_undo += 1,
            () => counters.full_undo += 1,
        }
        control.undo(&undo.window);
        flight.forget_lost();
        (self.phase, self.recover) = (Phase::Open, Some(flight.una()));
        (self.undo, self.frto, self.prefers_new) = (None, None, false);
        (self.sacks, self.dup_acks) = (0, 0);
        was_timeout
    }

    /// All that was out when recovery began is acknowledged.
    fn end_recovery(&mut self, flight: &Flight, control: &mut Control<'_>, acked: &Acked) {
        if !acked.advances {
            return;
        }
        if self.phase == Phase::Open {
            (self.sacks, self.dup_acks) = (0, 0);
            self.undo =
                self.undo.filter(|undo| undo.until.is_none_or(|until| flight.una() <= until));
            return;
        }
        if self.recover.is_some_and(|recover| flight.una() < recover) {
            return;
        }
        if let Some(undo) = &mut self.undo {
            undo.until = Some(flight.end());
        }
        if self.phase == Phase::FastRecovery {
            let end = loss(flight, control, acked.path.mss);
            control.on_recovered(&end);
        }
        self.rack.on_recovered();
        self.phase = Phase::Open;
        (self.frto, self.prefers_new) = (None, false);
        (self.sacks, self.dup_acks) = (0, 0);
    }

    /// With SACK: what RACK takes for lost by now.
    fn find_losses(&mut self, flight: &mut Flight, acked: &Acked, counters: &mut Counters) -> bool {
        if acked.delivered.octets > u64::from(acked.text)
            || !acked.advances && acked.delivered.octets > 0
        {
            self.sacks = self.sacks.saturating_add(1);
        }
        self.judge(flight, &acked.path, counters)
    }

    fn judge(&mut self, flight: &mut Flight, path: &Path, counters: &mut Counters) -> bool {
        let window = self.reordering(flight, path);
        let judged = self.rack.judge(flight, path.now, &window);
        if judged.repair_is_lost {
            counters.lost_retransmit += 1;
        }
        judged.is_lost
    }

    fn reordering(&self, flight: &Flight, path: &Path) -> rack::Window {
        rack::Window {
            min_rtt: path.min_rtt,
            srtt: path.srtt,
            in_recovery: self.phase != Phase::Open,
            segs_sacked: self.segs_sacked(flight, path.mss),
            reorders: path.reorders,
        }
    }

    /// Without SACK: three duplicates tell of a loss, and in fast recovery whatever acknowledges a part.
    fn count_duplicates(&mut self, flight: &mut Flight, acked: &Acked) -> bool {
        match self.phase {
            Phase::Open if acked.is_duplicate => {
                self.dup_acks = self.dup_acks.saturating_add(1);
                // RFC 6582 3.2 step 2: "the Cumulative Acknowledgment field covers more than recover"
                let covers_more = self.recover.is_none_or(|recover| flight.una() > recover);
                if u32::from(self.dup_acks) < DUP_THRESH {
                    return false;
                }
                if !covers_more {
                    // RFC 3042 2 lets two new segments out, no more.
                    self.dup_acks = 2;
                    return false;
                }
            }
            Phase::FastRecovery if acked.is_duplicate => {
                self.dup_acks = self.dup_acks.saturating_add(1);
                return false;
            }
            // What ends within a repair tells of no further loss: octet by octet, each acknowledgment would
            // have a segment sent again.
            Phase::FastRecovery if acked.advances && !flight.first_is_repaired() => {
                // RFC 6937 2: what duplicates told of is part of what is acknowledged now.
                let acked = acked.text.div_ceil(acked.path.mss.max(1)).saturating_sub(1);
                self.dup_acks = self.dup_acks.saturating_sub(acked.min(255) as u8);
            }
            _ => return false,
        }
        flight.lose(flight.first_segment());
        true
    }

    fn begin_fast_recovery(
        &mut self,
        flight: &Flight,
        control: &mut Control<'_>,
        acked: &Acked,
        counters: &mut Counters,
    ) {
        if acked.path.sack {
            counters.sack_recovery += 1;
        } else {
            counters.reno_recovery += 1;
        }
        self.begin(flight, control, &acked.path, acked.delivered.octets);
    }

    fn begin(&mut self, flight: &Flight, control: &mut Control<'_>, path: &Path, delivered: u64) {
        self.set_undo(flight, control);
        self.phase = Phase::FastRecovery;
        self.recover = Some(flight.end());
        (self.probe, self.frto) = (None, None);
        let sacked = flight.sacked().octets();
        self.prr = Prr::new(flight.end() - flight.una() - sacked + delivered, path.mss);
        let loss = loss(flight, control, path.mss);
        control.on_loss_event(&loss);
    }

    /// Until what was in flight is acknowledged when a reduction was taken back, no other is: whoever calls
    /// each of them none would have the whole of it judged and sent again each time.
    fn set_undo(&mut self, flight: &Flight, control: &Control<'_>) {
        let (window, una) = (*control.window, flight.una());
        let undo = Undo { window, una, first_repair: None, repaired: 0, until: None };
        self.undo = Some(undo).filter(|_| !flight.was_forgiven());
    }

    /// In fast recovery: what may leave by PRR.
    fn reduce(&mut self, flight: &Flight, control: &mut Control<'_>, acked: &Acked, is_safe: bool) {
        let Path { sack, mss, .. } = acked.path;
        let pipe = self.pipe(flight, mss);
        let delivered = match acked.delivered.octets {
            // RFC 6937 2: "In recovery without SACK, DeliveredData is estimated to be 1 SMSS on duplicate
            // acknowledgements".
            0 if acked.is_duplicate && !sack => u64::from(mss),
            octets if sack => octets,
            octets => octets.saturating_sub(u64::from(self.dup_acks) * u64::from(mss)),
        };
        let ssthresh = control.window.ssthresh;
        control.window.cwnd = self.prr.on_ack(delivered, pipe, ssthresh, is_safe);
    }

    /// RFC 5682 2.1 and 3.1, steps 2 and 3, where what arrived did not end it.
    fn step_frto(&mut self, flight: &Flight, control: &mut Control<'_>, acked: &Acked) {
        let Some(frto) = &mut self.frto else { return };
        let Path { sack, mss, .. } = acked.path;
        // Step 2a without SACK: "the acknowledgment does not acknowledge all of the data that was
        // retransmitted in step 1".
        let acks_repair = acked.advances && flight.una() >= frto.repair_end;
        if !frto.is_probing && acks_repair && acked.can_send_new {
            // Step 2b: "transmit up to two new (previously unsent) segments and proceed to step 3."
            frto.is_probing = true;
            self.prefers_new = true;
            return;
        }
        if !acked.advances && !frto.is_probing && (sack || !acked.is_duplicate) {
            // Step 2 with SACK: "Stay in step 2 and wait for the next new acknowledgment."
            return;
        }
        if frto.is_probing && acked.is_duplicate && !sack {
            // Step 3a: "set the congestion window to no more than 3 * MSS". Two of them are new text, of
            // which nobody knows that it arrived: with less nothing would leave.
            control.window.cwnd = 3 * mss;
        }
        // Steps 2a and 3a: what was lost is repaired in slow start.
        (self.frto, self.prefers_new) = (None, false);
    }
}

/// Silence.
impl State {
    /// What is missing is old enough to be judged (RFC 8985 6.2).
    pub(super) fn on_reordering_timeout(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        path: &Path,
        counters: &mut Counters,
    ) {
        let lost = self.judge(flight, path, counters);
        if lost && self.phase == Phase::Open {
            counters.sack_recovery += 1;
            self.begin(flight, control, path, 0);
        }
        if self.phase == Phase::FastRecovery {
            let (pipe, ssthresh) = (self.pipe(flight, path.mss), control.window.ssthresh);
            control.window.cwnd = self.prr.on_ack(0, pipe, ssthresh, false);
        }
    }

    /// The retransmission timer ran out, for the `attempt`th time in a row.
    pub(super) fn on_timeout(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        path: &Path,
        attempt: u8,
    ) {
        let is_new = self.phase == Phase::Open;
        let window = self.reordering(flight, path);
        let until = self.rack.timed_out_until(path.now, &window);
        if is_new {
            self.set_undo(flight, control);
        } else if self.phase == Phase::FastRecovery {
            self.undo = None;
        }
        let kind = if attempt <= 1 { TimeoutKind::First } else { TimeoutKind::Repeated };
        let Loss { in_flight, mss } = loss(flight, control, path.mss);
        control.on_rto(&Timeout { kind, in_flight, mss });
        let repair_end = flight.first_segment().end;
        flight.lose_on_timeout(until);
        // RFC 6582 3.2 step 4: "After a retransmit timeout, record the highest sequence number transmitted
        // in the variable recover, and exit the fast recovery procedure if applicable."
        self.phase = Phase::AfterTimeout;
        self.recover = Some(flight.end());
        // RFC 5682 3.1: "This algorithm SHOULD NOT be applied if the TCP sender is already in loss
        // recovery when a retransmission timeout occurs", but "If the retransmission timer expires again
        // during the execution of the SACK-enhanced F-RTO algorithm, the TCP sender MUST re-start the
        // algorithm processing from step 1."
        let again = attempt > 1 && self.frto.is_some();
        let recover = flight.end();
        self.frto = (is_new || again).then_some(Frto { recover, repair_end, is_probing: false });
        (self.prefers_new, self.sacks, self.dup_acks, self.probe) = (false, 0, 0, None);
        self.rack.stop();
    }

    /// What was too big for the path is lost, and says nothing of congestion. Duplicate acknowledgments
    /// of what did arrive say nothing until all of it is acknowledged.
    pub(super) fn on_path_mtu(&mut self, flight: &mut Flight, mss: u16) {
        flight.lose_larger(mss);
        self.recover = Some(flight.end());
    }
}

/// What is in flight when recovery begins or ends. RFC 5681 3.2: what limited transmit sent beyond cwnd
/// "MUST NOT be included in this calculation".
fn loss(flight: &Flight, control: &Control<'_>, mss: u32) -> Loss {
    let in_flight = (flight.end() - flight.una()) as u32;
    Loss { in_flight: in_flight.min(control.window.cwnd), mss }
}
