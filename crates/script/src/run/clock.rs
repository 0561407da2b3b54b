//! When the events of a script are to happen.

use core::time::Duration;

use super::super::ast::EventTime;

/// The script's clock: it knows the event before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// What relative times count from.
    base: Duration,
}

/// When an event is to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moment {
    /// The earliest time that is as the script has it.
    pub(super) from: Duration,
    /// Not after; `None` for whenever it does.
    pub(super) until: Option<Duration>,
    /// When the event before was.
    pub(super) base: Duration,
    /// The time that passed since then.
    pub(super) gap: Duration,
}

impl Clock {
    /// What `when` means; `now` is what `*` means for what we do ourselves.
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

    /// The event of `moment` happened at `at`.
    pub(super) fn on_event(&mut self, moment: Moment, at: Duration) {
        self.base = if moment.until == Some(moment.from) { moment.from } else { at };
    }
}
