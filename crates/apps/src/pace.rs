//! How slowly a server goes about its work, on purpose: so that its accept queue fills, and its
//! clients wait.

use alloc::collections::VecDeque;
use core::time::Duration;

use whimbrel_base::Instant;

use crate::idle::IdleList;

/// For how long a server puts off what it could do at once. By default it does not.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pace {
    /// It waits that long before it accepts a connection, and accepts one at a time of each listener:
    /// as an application does that is busy elsewhere.
    pub accept: Duration,
    /// It waits that long before each answer, while other connections go on.
    pub think: Duration,
    /// It is at work on each answer for that long, one at a time of all connections together, in the order
    /// in which they were asked for: a second has room for so many answers.
    pub work: Duration,
}

impl Pace {
    /// The work on an answer of a server that gives so many of them a second, to a nanosecond.
    pub fn work_at(rate: f64) -> Duration {
        Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX)
    }

    /// The pace of each of so many servers that stand for one.
    #[must_use]
    pub fn shared_by(self, servers: u32) -> Self {
        Self { work: self.work.saturating_mul(servers), ..self }
    }
}

/// What a server has put off.
#[derive(Debug)]
pub struct Pacing<L> {
    pace: Pace,
    /// Listeners, the first due first.
    accepts: VecDeque<(Instant, L)>,
    /// The places of connections whose answer is put off, and until when.
    thinking: IdleList,
    /// When all work that it has taken on so far is done.
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
    /// A server's pace of which nothing was put off yet.
    pub fn at(pace: Pace) -> Self {
        Self { pace, ..Self::default() }
    }

    /// How many connections may be accepted in one go, where `most` could be.
    pub const fn accepts_at_once(&self, most: usize) -> usize {
        if self.pace.accept.is_zero() { most } else { 1 }
    }

    /// True if connections of `listener` may be accepted at once. If not, [`Pacing::next_accept`]
    /// says when.
    pub fn may_accept(&mut self, listener: L, now: Instant) -> bool {
        let may = self.pace.accept.is_zero();
        if !may && self.accepts.iter().all(|(_, known)| *known != listener) {
            self.accepts.push_back((now + self.pace.accept, listener));
        }
        may
    }

    /// The next listener whose time has come.
    pub fn next_accept(&mut self, now: Instant) -> Option<L> {
        self.accepts.pop_front_if(|(due, _)| *due <= now).map(|(_, listener)| listener)
    }

    /// So many answers are ready at this place. Returns whether they are put off.
    pub fn think(&mut self, place: u32, answers: u64, now: Instant) -> bool {
        let Pace { think, work, .. } = self.pace;
        if think.is_zero() && work.is_zero() {
            return false;
        }
        let work = work.saturating_mul(u32::try_from(answers).unwrap_or(u32::MAX));
        self.done_at = self.done_at.max(now) + work;
        // Whoever is taken on later is done later: the list is in the order of its moments.
        self.thinking.touch(place, self.done_at + think);
        true
    }

    /// True if the answer at this place is put off.
    pub fn is_thinking(&self, place: u32) -> bool {
        self.thinking.holds(place)
    }

    /// The next place whose answer is put off no longer.
    pub fn next_thought(&mut self, now: Instant) -> Option<u32> {
        let (place, until) = self.thinking.oldest()?;
        (until <= now).then(|| {
            self.thinking.remove(place);
            place
        })
    }

    /// There is no connection at this place any more.
    pub fn forget(&mut self, place: u32) {
        self.thinking.remove(place);
    }

    /// When something that was put off falls due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let accept = self.accepts.front().map(|(due, _)| *due);
        let thought = self.thinking.oldest().map(|(_, until)| until);
        accept.into_iter().chain(thought).min()
    }
}
