//! Status of a running server on SIGUSR1, on the standard error: states, queues, drops.
//!
//! Each shard answers at the end of its turn; a separate thread adds up and writes the answers, so that
//! no shard waits for a reader.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use whimbrel_apps::Statistics;
use whimbrel_base::Instant;
use whimbrel_io::{Clock, Stop, Waker};
use whimbrel_stack::Shard;

use super::access_log::{AccessLog, LogLines};
use super::notify::ServiceManager;
use super::report;
use super::supervision::{Duty, Supervision};
use super::totals::{StackTotals, Totals};
use crate::failure::Failure;
use crate::quantity::{of, thousands};
use crate::refusals::Refusals;
use crate::wrap::wrap;
use crate::{size, streams};

/// Place where shards get status requests, and answer.
#[derive(Debug)]
pub(crate) struct ShardAnswers {
    /// Number of requests.
    asked: AtomicU64,
    /// The last answer of each, and to which question.
    answers: Mutex<Vec<(u64, Answer)>>,
    answered: Condvar,
    log: Option<AccessLog>,
}

/// Status of a shard, or of all.
#[derive(Clone, Default, Debug)]
pub(crate) struct Answer {
    totals: Totals,
    /// Drops by reason; none of the kernel's stack.
    drops: Refusals,
    /// Shards that did not answer in time.
    missing: usize,
}

impl Answer {
    /// That of a server on this stack.
    pub(crate) fn of(totals: Totals, shard: Option<&Shard>) -> Self {
        Self { totals, drops: shard.map(Refusals::of).unwrap_or_default(), missing: 0 }
    }

    /// Gives the service manager a sign of life, unless a shard is missing.
    pub(super) fn give(&self, manager: &mut ServiceManager, now: Instant) {
        manager.sign_of_life(now, self.missing, &self.status());
    }

    /// A line for the service manager.
    fn status(&self) -> String {
        let Statistics { open, requests, .. } = self.totals.statistics;
        format!("serving: {} open, {}", of(open as u64, "connection"), of(requests, "request"))
    }
}

impl ShardAnswers {
    /// For `shards` shards.
    pub(crate) fn new(shards: usize, log: Option<AccessLog>) -> Arc<Self> {
        Arc::new(Self {
            asked: AtomicU64::new(0),
            answers: Mutex::new(vec![(0, Answer::default()); shards]),
            answered: Condvar::new(),
            log,
        })
    }

    /// Number of requests to the shards.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// The answer of the shard numbered `shard` to question `asked`.
    pub(crate) fn answer(&self, shard: usize, asked: u64, answer: Answer) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = answers.get_mut(shard) {
            *place = (asked, answer);
        }
        drop(answers);
        self.answered.notify_all();
    }

    /// Asks all shards, and waits for their answers.
    fn ask(&self, wakers: &[Waker]) -> Answer {
        let number = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        wakers.iter().for_each(Waker::wake);
        self.collect(number)
    }

    /// Sends status requests on each signal, prints the answers, and gives the service manager signs of life,
    /// until `stop` is set.
    pub(crate) fn stay(
        &self,
        supervision: &mut Supervision,
        stop: &Stop,
        wakers: &[Waker],
        clock: Clock,
    ) -> Result<(), Failure> {
        while !stop.is_set() {
            match supervision.wait(stop, clock)? {
                Duty::Nothing => {}
                Duty::Status => tell(clock.now(), &self.ask(wakers), self.log.as_ref()),
                Duty::SignOfLife => self.ask(wakers).give(&mut supervision.manager, clock.now()),
                Duty::Reload => supervision.reload(self.log.as_ref()),
            }
        }
        Ok(())
    }

    /// Adds up the answers of the shards to that request, as far as they come within [`PATIENCE`].
    fn collect(&self, number: u64) -> Answer {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let some_wait =
            |answers: &mut Vec<(u64, Answer)>| answers.iter().any(|(to, _)| *to != number);
        let waited = self.answered.wait_timeout_while(answers, PATIENCE, some_wait);
        let (answers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let mut sum = Answer::default();
        for (to, answer) in &*answers {
            if *to != number {
                sum.missing += 1;
                continue;
            }
            sum.totals += answer.totals;
            sum.drops += &answer.drops;
        }
        sum
    }
}

/// Writes a table of how a server is.
pub(super) fn tell(now: Instant, answer: &Answer, log: Option<&AccessLog>) {
    streams::tell(&text(now, answer, log.map(AccessLog::counted)));
}

fn text(now: Instant, answer: &Answer, log: Option<LogLines>) -> String {
    let Answer { totals, drops, missing } = answer;
    let up = now.since(Instant::ZERO).as_secs_f64();
    let Statistics { open, .. } = totals.statistics;
    let mut text = format!("whimbrel serve, pid {}, up {up:.1} s\n", std::process::id());
    text += &report::served(&totals.statistics);
    text += &format!("open       {}\n", of(open as u64, "connection"));
    match &totals.stack {
        Some(stack) => {
            text += &format!("states     {}\n", report::states(totals));
            text += &queues(stack);
            text += &report::segments(stack);
            text += &format!("drops      {drops}\n");
        }
        None if *missing > 0 => {}
        None => text += "states     the kernel's: ss -tan; queues: ss -ltn; drops: nstat -az\n",
    }
    if *missing > 0 {
        text +=
            &format!("missing    {}, which did not answer in time\n", of(*missing as u64, "shard"));
    }
    if let Some(lines) = log {
        text += &report::log(lines);
    }
    wrap(&text, report::INDENT)
}

fn queues(stack: &StackTotals) -> String {
    let StackTotals { census, memory, accept_queue: (waiting, most), .. } = stack;
    format!(
        "queues     accept {waiting} of {}, half-open {}, answers {}, fragments {} ({})\n\
         memory     {} of {} (mem.budget), text {}\n",
        thousands(*most as u64),
        thousands(census.syn_entries as u64),
        thousands(census.replies as u64),
        thousands(census.fragmented as u64),
        size::display(census.fragment_bytes as u64),
        size::display(memory.held),
        size::display(memory.budget),
        size::display(memory.text),
    )
}

/// Time for shards to answer.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
