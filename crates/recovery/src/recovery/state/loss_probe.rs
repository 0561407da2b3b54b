//! The outcome of a loss probe (RFC 8985 7.4).

use super::{State, loss};
use crate::cc::Control;
use crate::flight::Flight;
use crate::recovery::Acked;

/// A loss probe that was not acknowledged (RFC 8985 7).
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// TLP.end_seq: SND.NXT when it left.
    end: u64,
    /// TLP.is_retrans: it was old text.
    is_old: bool,
}

impl State {
    /// A loss probe left; `end` is SND.NXT since.
    pub(in crate::recovery) const fn on_probe_sent(&mut self, end: u64, is_old: bool) {
        self.probe = Some(Probe { end, is_old });
    }

    /// RFC 8985 7.4.2: what became of the loss probe.
    pub(super) fn process_probe(
        &mut self,
        flight: &Flight,
        control: &mut Control<'_>,
        acked: &Acked,
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
            self.events.loss_probe_recovery = true;
            let loss = loss(flight, control, acked.path.mss);
            self.tell_loss_event(flight, control, acked.path.mss);
            control.on_recovered(&loss);
        }
        if repaired || is_told {
            self.probe = None;
        }
    }
}
