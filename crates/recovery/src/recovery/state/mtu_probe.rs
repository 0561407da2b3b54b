//! The outcome of a probe of the path MTU (RFC 4821 7.5).

use core::ops::Range;

use super::State;
use crate::cc::Phase;
use crate::flight::Flight;
use crate::recovery::MtuProbeOutcome;

/// A probe of the path MTU whose outcome was not taken.
#[derive(Clone, Debug)]
pub(super) struct MtuProbe {
    range: Range<u64>,
    outcome: Option<MtuProbeOutcome>,
}

impl State {
    /// `range` left in one segment that is larger than others.
    pub(in crate::recovery) fn on_mtu_probe_sent(&mut self, range: Range<u64>) {
        self.mtu_probe = Some(MtuProbe { range, outcome: None });
    }

    /// True if the outcome of a probe is not known yet.
    pub(in crate::recovery) fn has_mtu_probe_out(&self) -> bool {
        self.mtu_probe.as_ref().is_some_and(|probe| probe.outcome.is_none())
    }

    /// Takes the outcome of a probe, once it is known.
    pub(in crate::recovery) fn take_mtu_probe_outcome(&mut self) -> Option<MtuProbeOutcome> {
        let outcome = self.mtu_probe.as_ref()?.outcome?;
        self.mtu_probe = None;
        Some(outcome)
    }

    /// The probe, while its outcome is not known.
    fn undecided_mtu_probe(&mut self) -> Option<&mut MtuProbe> {
        self.mtu_probe.as_mut().filter(|probe| probe.outcome.is_none())
    }

    /// Notes that the probe was acknowledged, if it was, before which nothing took it for lost.
    pub(super) fn note_mtu_probe_arrival(&mut self, flight: &Flight) {
        if let Some(probe) = self.undecided_mtu_probe().filter(|it| flight.una() >= it.range.end) {
            // RFC 4821 7.5: "The probe is acknowledged as having been received by the remote host."
            probe.outcome = Some(MtuProbeOutcome::Arrived);
        }
    }

    /// Something was judged lost. Returns true if that is the probe and nothing else, which is no sign of congestion.
    pub(super) fn excuse_mtu_probe(&mut self, flight: &mut Flight) -> bool {
        let is_open = self.phase == Phase::Open;
        let Some(probe) = self.undecided_mtu_probe() else { return false };
        let Some(lost) = flight.lost().overlap(probe.range.clone()) else { return false };
        let is_alone = is_open
            && lost == probe.range
            && flight.lost().bytes() == probe.range.end - probe.range.start;
        if !is_alone {
            // RFC 4821 7.5: "The probe was lost in addition to other packets in the leading or trailing windows."
            probe.outcome = Some(MtuProbeOutcome::Inconclusive);
            return false;
        }
        // RFC 4821 7.6.2: "When only the probe is lost, it is treated as an indication that the Path MTU is smaller
        // than the probe size. In this case alone, the loss SHOULD NOT be interpreted as congestion signal."
        probe.outcome = Some(MtuProbeOutcome::Lost);
        flight.forget_loss_reports();
        self.recover = Some(flight.end());
        true
    }

    /// The retransmission timer ran out, or segments of the probe's size are known not to pass.
    pub(super) fn abandon_mtu_probe(&mut self, outcome: MtuProbeOutcome) {
        if let Some(probe) = self.undecided_mtu_probe() {
            probe.outcome = Some(outcome);
        }
    }

    /// The retransmission timer ran out.
    pub(super) fn time_mtu_probe_out(&mut self, flight: &Flight) {
        let is_first = |probe: &MtuProbe| probe.range.start == flight.una();
        // RFC 4821 7.5: "the probe was lost, and no packets in the leading window were lost, but is unable to
        // determine whether any packets in the trailing window were lost."
        let outcome = match self.mtu_probe.as_ref().is_some_and(is_first) {
            true => MtuProbeOutcome::TimedOut,
            false => MtuProbeOutcome::Inconclusive,
        };
        self.abandon_mtu_probe(outcome);
    }
}
