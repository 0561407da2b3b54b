//! Times of a script's events.

use core::time::Duration;

use super::super::ast::EventTime;

/// Clock of the script, based on the event before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// Base of relative times.
    base: Duration,
}

/// Time of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moment {
    /// Earliest valid time.
    pub(super) from: Duration,
    /// Latest valid time; `None` for any.
    pub(super) until: Option<Duration>,
    /// Time of the event before.
    pub(super) base: Duration,
    /// Time since then.
    pub(super) gap: Duration,
}

impl Clock {
    /// Time for `when`; `now` is the time for `*` in actions of the script.
    pub(super) fn moment(&self, when: EventTime, now: Duration) -> Moment {
        let (from, until) = match when {
            EventTime::Any => (now, None),
            EventTime::Absolute(at) => (at, Some(at)),
            EventTime::Relative(gap) => (self.base + gap, Some(self.base + gap)),
            EventTime::AbsoluteRange(from, until) => (from, Some(until)),
            EventTime::RelativeRange(from, until) => (self.base + from, Some(self.base + until)),
        };
        Moment { from, until, base: self.base, gap: from.saturating_sub(self.base) }
    }

    /// Notes that the event of `moment` happened at `at`.
    pub(super) fn on_event(&mut self, moment: Moment, at: Duration) {
        self.base = if moment.until == Some(moment.from) { moment.from } else { at };
    }
}
