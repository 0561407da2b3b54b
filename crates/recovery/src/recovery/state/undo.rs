//! Undoing spurious loss events and time-outs, as told by timestamps (RFC 3522), by text that came
//! twice (RFC 3708), or by what arrives after a time-out (RFC 5682).

use whimbrel_base::Instant;

use super::State;
use crate::cc::{Control, Phase, Window};
use crate::flight::Flight;
use crate::recovery::Acked;
use crate::recovery::rack::is_older;

/// State before the last loss event or time-out, until that is known to be genuine or spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    window: Window,
    /// SND.UNA when that happened, as an offset.
    una: u64,
    /// When the first repair left.
    pub(super) first_repair: Option<Instant>,
    /// Bytes that were sent again, and not reported as come twice.
    pub(super) repaired: u64,
    /// SND.NXT when recovery ended: once more is acknowledged, the loss counts as genuine.
    pub(super) until: Option<u64>,
}

/// The reduction that was taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Undone {
    /// A loss event: segments arrived in another order than they were sent.
    Loss,
    /// A time-out: the path was slow.
    Timeout,
}

impl State {
    /// Text came twice: a repair of it was none, and the reordering window is too narrow.
    pub(super) fn note_duplicate(&mut self, flight: &Flight, acked: &Acked) {
        let Some((end, bytes)) = acked.duplicate else { return };
        if acked.path.sack {
            self.rack.on_duplicate(flight);
        }
        // What lies elsewhere was sent again by another recovery.
        let of_this = |undo: &Undo| {
            let start = end.checked_sub(u64::from(bytes));
            start.is_some_and(|start| start >= undo.una)
                && self.recover.is_some_and(|recover| end <= recover)
        };
        if let Some(undo) = self.undo.as_mut().filter(|undo| of_this(undo)) {
            undo.repaired = undo.repaired.saturating_sub(u64::from(bytes));
        }
    }

    /// Takes back the last loss event or time-out if it was spurious, and returns which of them it was.
    pub(super) fn undo_spurious(
        &mut self,
        flight: &mut Flight,
        control: &mut Control<'_>,
        acked: &Acked,
    ) -> Option<Undone> {
        let undo = self.undo?;
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
            return None;
        }
        let was_timeout = self.phase == Phase::AfterTimeout;
        match () {
            () if was_timeout => self.events.spurious_rto = true,
            () if all_came_twice => self.events.dsack_undo = true,
            () => self.events.full_undo = true,
        }
        control.undo(&undo.window);
        // A peer that calls each reduction of a flight spurious gets the window back each time. Only the first
        // has losses judged anew, or each would have the whole flight judged and sent again.
        if !flight.was_undone() {
            flight.forget_lost();
        }
        (self.phase, self.recover) = (Phase::Open, Some(flight.una()));
        (self.undo, self.frto, self.prefers_new) = (None, None, false);
        self.rate_limited = None;
        self.forget_duplicates();
        Some(if was_timeout { Undone::Timeout } else { Undone::Loss })
    }

    /// Remembers the window, in case the loss event or time-out that begins is spurious.
    pub(super) fn set_undo(&mut self, flight: &Flight, control: &Control<'_>) {
        let (window, una) = (*control.window, flight.una());
        self.undo = Some(Undo { window, una, first_repair: None, repaired: 0, until: None });
    }
}
