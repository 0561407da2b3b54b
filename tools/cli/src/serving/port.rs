//! The server as a worker's port: events, the clock on the wall, and the line of each second.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use whimbrel_apps::Model;
use whimbrel_apps::http::HttpDate;
use whimbrel_base::Instant;
use whimbrel_io::{Activity, Port};
use whimbrel_stack::link::AddressConflict;
use whimbrel_stack::{ListenerId, Shard};

use super::answers::{Answer, ShardAnswers};
use super::report::ServeReporter;
use super::server::Server;
use super::totals::{ShardTotals, Totals};
use crate::failure::tell_conflict;

/// The server, driven by a worker.
pub(crate) struct ServePort {
    pub(crate) server: Server<Shard>,
    listeners: Vec<ListenerId>,
    /// Place for reports of its work.
    place: Place,
    dates: Dates,
}

/// Place where a shard posts its counts, and for the first one the printer.
pub(crate) struct Place {
    pub(crate) shard: usize,
    /// Counts of all shards.
    pub(crate) totals: Arc<ShardTotals>,
    /// The printer, on the first shard.
    pub(crate) report: Option<ServeReporter>,
    /// When it is to post again, if it does anything.
    due: Instant,
    /// Status requests, and the number of answered ones.
    answers: Arc<ShardAnswers>,
    answered: u64,
}

impl Place {
    /// Of the shard with this number.
    pub(crate) fn new(shard: usize, totals: Arc<ShardTotals>, answers: Arc<ShardAnswers>) -> Self {
        Self { shard, totals, report: None, due: Instant::ZERO, answers, answered: 0 }
    }

    /// True if a request waits for this shard's answer.
    fn is_asked(&self) -> bool {
        self.answers.asked() != self.answered
    }

    fn tell(&mut self, now: Instant, shard: &Shard, totals: impl Fn() -> Totals) {
        let asked = self.answers.asked();
        if asked != self.answered {
            self.answered = asked;
            self.answers.answer(self.shard, asked, Answer::of(totals(), Some(shard)));
        }
        if now >= self.due {
            self.totals.post(self.shard, totals());
            self.due = now + POST_EVERY;
        }
        if let Some(report) = &mut self.report {
            report.tick(now, || {
                self.totals.post(self.shard, totals());
                self.totals.total()
            });
        }
    }

    fn next_line(&self) -> Option<Instant> {
        self.report.as_ref()?.next_line()
    }
}

impl ServePort {
    /// The port of `server`.
    pub(crate) fn new(server: Server<Shard>, listeners: Vec<ListenerId>, place: Place) -> Self {
        Self { server, listeners, place, dates: Dates::default() }
    }

    /// Accepts connections that wait. Returns true if there may be more.
    pub(crate) fn accept_waiting(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        budget: usize,
    ) -> bool {
        self.server.poll(shard, now, budget)
    }

    /// Closes all connections.
    pub(crate) fn shut_down(&mut self, shard: &mut Shard) {
        self.server.shut_down(shard);
    }

    /// Closes connections that had to send their last bytes first.
    pub(crate) fn let_go(&mut self, shard: &mut Shard, now: Instant) {
        self.server.let_go(shard, now);
        self.tell_news();
    }

    fn tell_news(&mut self) {
        if let Some(report) = &mut self.place.report
            && let Some(news) = self.server.take_news()
        {
            report.tell(&news);
        }
    }

    /// Returns the counts of all shards, after this one posted its last; with the printer, if this one
    /// has it.
    pub(crate) fn finish(self, shard: &Shard) -> Option<ServeReporter> {
        let totals = Totals::of(self.server.statistics(), Some((shard, &[])));
        self.place.totals.post(self.place.shard, totals);
        self.place.report
    }
}

/// The dates of responses.
#[derive(Default)]
pub(crate) struct Dates {
    /// From when on the last one is stale.
    stale: Instant,
}

impl Dates {
    /// The wall's clock is read once a second, and only while there is something to answer.
    pub(crate) fn refresh(&mut self, now: Instant, tell: impl FnOnce(HttpDate)) {
        if now < self.stale {
            return;
        }
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        tell(HttpDate::from_unix_seconds(since_epoch.as_secs()));
        let into_second = Duration::from_nanos(since_epoch.subsec_nanos().into());
        self.stale = now + Duration::from_secs(1).saturating_sub(into_second);
    }
}

impl Port for ServePort {
    /// Only status requests come from other threads. A request does not wake a worker that is about to
    /// sleep.
    fn drain(&mut self, _now: Instant, _shard: &mut Shard) -> Activity {
        Activity::busy_if(self.place.is_asked())
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        let Self { server, dates, .. } = self;
        dates.refresh(now, |date| server.set_date(date));
        let more = self.server.poll(shard, now, BUDGET);
        self.tell_news();
        let Self { server, listeners, place, .. } = self;
        let totals = || Totals::of(server.statistics(), Some((shard, listeners)));
        place.tell(now, shard, totals);
        Activity::busy_if(more)
    }

    fn on_conflict(&mut self, conflict: AddressConflict) {
        tell_conflict(conflict);
    }

    fn next_deadline(&self) -> Option<Instant> {
        [self.server.next_deadline(), self.place.next_line()].into_iter().flatten().min()
    }
}

/// Greatest age of other shards' counts when printed.
const POST_EVERY: Duration = Duration::from_millis(200);
/// Events dealt with in one turn, before frames have their turn again.
pub(crate) const BUDGET: usize = 256;
