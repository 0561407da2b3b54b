//! Messages between the threads of `forward`: status, failures, and the end.

use std::io;
use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use whimbrel_apps::relay::RelayStatistics;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::signals::StatusRequest;
use whimbrel_io::{Stop, Waker};
use whimbrel_stack::Shard;
use whimbrel_stack::shard::{Census, Memory};

use super::dialer::DialStatistics;
use crate::failure::Failure;
use crate::refusals::Refusals;

/// Place where shards get status requests and answer, and report their end.
pub(super) struct Board {
    /// Number of status requests.
    asked: AtomicU64,
    /// The last answer of each shard, and to which request.
    answers: Mutex<Vec<(u64, Counts)>>,
    answered: Condvar,
    /// Shards that are not drained.
    undrained: AtomicUsize,
    /// Set when the drain begins.
    stop: Stop,
    /// Set when all shards are drained, or one failed.
    released: Stop,
    failure: Mutex<Option<String>>,
}

/// Counts of a shard, or of all.
#[derive(Clone, Default, Debug)]
pub(super) struct Counts {
    pub(super) relay: RelayStatistics,
    pub(super) dials: DialStatistics,
    pub(super) in_segs: u64,
    pub(super) out_segs: u64,
    pub(super) retransmitted: u64,
    pub(super) resets: u64,
    pub(super) cookies: u64,
    pub(super) census: Census,
    pub(super) memory: Memory,
    /// Drops by reason.
    pub(super) drops: Refusals,
    /// Shards that did not answer in time.
    pub(super) missing: usize,
}

impl Board {
    /// For `shards` shards. `stop` begins the drain, and `released` ends the threads.
    pub(super) fn new(shards: usize, stop: Stop, released: Stop) -> Self {
        Self {
            asked: AtomicU64::new(0),
            answers: Mutex::new(vec![(0, Counts::default()); shards]),
            answered: Condvar::new(),
            undrained: AtomicUsize::new(shards),
            stop,
            released,
            failure: Mutex::default(),
        }
    }

    /// Number of status requests so far.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// The answer of the shard numbered `shard` to request `asked`.
    pub(super) fn answer(&self, shard: usize, asked: u64, counts: Counts) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = answers.get_mut(shard) {
            *place = (asked, counts);
        }
        drop(answers);
        self.answered.notify_all();
    }

    /// A shard is drained; the last one releases all.
    pub(super) fn on_drained(&self) {
        if self.undrained.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.released.set();
        }
    }

    /// The kernel reports no more events: all ends.
    pub(super) fn fail(&self, error: &io::Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| error.to_string());
        self.end();
    }

    /// Ends all threads at once.
    pub(super) fn end(&self) {
        self.stop.set();
        self.released.set();
    }

    /// Fails if a shard reported a failure.
    pub(super) fn judge(&self) -> Result<(), Failure> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        failure.map_or(Ok(()), |error| Err(Failure::run(error)))
    }

    /// Answers status requests by `tell`, and calls `on_drain` when the drain begins, until all ends.
    pub(super) fn stay(
        &self,
        question: &StatusRequest,
        wakers: &[Waker],
        mut tell: impl FnMut(&Counts),
        on_drain: impl FnOnce(&Counts),
    ) -> Result<(), Failure> {
        let mut on_drain = Some(on_drain);
        while !self.released.is_set() {
            let mut fds = vec![
                PollFd::new(question, Interest::Read),
                PollFd::new(&self.released, Interest::Read),
            ];
            if on_drain.is_some() {
                fds.push(PollFd::new(&self.stop, Interest::Read));
            }
            ppoll(&mut fds, None).map_err(Failure::run)?;
            let is_asked = fds.first().is_some_and(PollFd::is_readable);
            drop(fds);
            if self.stop.is_set()
                && !self.released.is_set()
                && let Some(on_drain) = on_drain.take()
            {
                on_drain(&self.collect(wakers));
            }
            if is_asked {
                question.take().map_err(Failure::run)?;
                tell(&self.collect(wakers));
            }
        }
        Ok(())
    }

    /// Adds up the counts of the shards, as far as they come within [`PATIENCE`].
    fn collect(&self, wakers: &[Waker]) -> Counts {
        let number = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        wakers.iter().for_each(Waker::wake);
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let some_wait =
            |answers: &mut Vec<(u64, Counts)>| answers.iter().any(|(to, _)| *to != number);
        let waited = self.answered.wait_timeout_while(answers, PATIENCE, some_wait);
        let (answers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut sum = Counts::default();
        for (to, counts) in &*answers {
            match *to == number {
                true => sum += counts,
                false => sum.missing += 1,
            }
        }
        sum
    }
}

impl Counts {
    /// Of one shard.
    pub(super) fn of(relay: RelayStatistics, dials: DialStatistics, shard: &Shard) -> Self {
        let counters = shard.counters();
        Self {
            relay,
            dials,
            in_segs: counters.in_segs,
            out_segs: counters.out_segs,
            retransmitted: counters.retrans_segs,
            resets: counters.out_rsts,
            cookies: counters.cookies_sent,
            census: shard.census(),
            memory: shard.memory(),
            drops: Refusals::of(shard),
            missing: 0,
        }
    }
}

impl AddAssign<&Self> for Counts {
    fn add_assign(&mut self, other: &Self) {
        let Self {
            relay,
            dials,
            in_segs,
            out_segs,
            retransmitted,
            resets,
            cookies,
            census,
            memory,
            drops,
            missing,
        } = other;
        self.relay += *relay;
        self.dials += dials;
        self.in_segs += in_segs;
        self.out_segs += out_segs;
        self.retransmitted += retransmitted;
        self.resets += resets;
        self.cookies += cookies;
        self.census += *census;
        self.memory += *memory;
        self.drops += drops;
        self.missing += missing;
    }
}

/// Time for shards to answer.
const PATIENCE: Duration = Duration::from_secs(1);
