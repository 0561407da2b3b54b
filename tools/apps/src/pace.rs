//! Slows a server down on purpose, so that its accept queue fills and its clients wait.

use alloc::collections::VecDeque;
use core::time::Duration;

use whimbrel_base::Instant;

use crate::idle::IdleList;

/// Delays of a server. By default there are none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pace {
    /// Delay before it accepts a connection, one at a time of each listener, as a busy application
    /// does.
    pub accept: Duration,
    /// Delay of each response, while other connections continue.
    pub think: Duration,
    /// Work on each response, one at a time over all connections, in the order of the requests:
    /// this limits the responses per second.
    pub work: Duration,
}

impl Pace {
    /// Work for a response at this rate, to a nanosecond.
    pub fn work_at(rate: f64) -> Duration {
        Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX)
    }

    /// Pace of each of several servers that together act as one.
    #[must_use]
    pub fn shared_by(self, servers: u32) -> Self {
        Self { work: self.work.saturating_mul(servers), ..self }
    }
}

/// Responses that a server put off.
#[derive(Debug)]
pub struct Pacing<L> {
    pace: Pace,
    /// Listeners, the first due first.
    accepts: VecDeque<(Instant, L)>,
    /// Places of connections with a delayed response, and the time of each.
    thinking: IdleList,
    /// End of all work so far.
    done_at: Instant,
}

impl<L> Default for Pacing<L> {
    fn default() -> Self {
        Self {
            pace: Pace::default(),
            accepts: VecDeque::new(),
            thinking: IdleList::default(),
            done_at: Instant::ZERO,
        }
    }
}

impl<L: Copy + PartialEq> Pacing<L> {
    /// The state for `pace`, before any delay.
    pub fn at(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// Number of connections to accept at once, at most `most`.
    pub const fn accepts_at_once(&self, most: usize) -> usize {
        if self.pace.accept.is_zero() { most } else { 1 }
    }

    /// True if connections of `listener` may be accepted now. If not, [`Pacing::next_accept`]
    /// returns it later.
    pub fn may_accept(&mut self, listener: L, now: Instant) -> bool {
        let may = self.pace.accept.is_zero();
        if !may && self.accepts.iter().all(|(_, known)| *known != listener) {
            self.accepts.push_back((now + self.pace.accept, listener));
        }
        may
    }

    /// The next listener that is due.
    pub fn next_accept(&mut self, now: Instant) -> Option<L> {
        self.accepts.pop_front_if(|(due, _)| *due <= now).map(|(_, listener)| listener)
    }

    /// Delays the `answers` ready at this place. Returns true if there is a delay.
    pub fn think(&mut self, place: u32, answers: u64, now: Instant) -> bool {
        let Pace { think, work, .. } = self.pace;
        if think.is_zero() && work.is_zero() {
            return false;
        }
        let work = work.saturating_mul(u32::try_from(answers).unwrap_or(u32::MAX));
        self.done_at = self.done_at.max(now) + work;
        // A connection taken later is done later, so the list is in order of time.
        self.thinking.touch(place, self.done_at + think);
        true
    }

    /// True if the response at this place is delayed.
    pub fn is_thinking(&self, place: u32) -> bool {
        self.thinking.holds(place)
    }

    /// The next place whose delay is over.
    pub fn next_thought(&mut self, now: Instant) -> Option<u32> {
        let (place, until) = self.thinking.oldest()?;
        (until <= now).then(|| {
            self.thinking.remove(place);
            place
        })
    }

    /// Forgets a place without a connection.
    pub fn forget(&mut self, place: u32) {
        self.thinking.remove(place);
    }

    /// Time of the next delay's end.
    pub fn next_deadline(&self) -> Option<Instant> {
        let accept = self.accepts.front().map(|(due, _)| *due);
        let thought = self.thinking.oldest().map(|(_, until)| until);
        accept.into_iter().chain(thought).min()
    }
}
