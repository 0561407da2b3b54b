//! The server as a worker's port: events, the clock on the wall, and the line of each second.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use whimbrel_apps::Model;
use whimbrel_apps::http::HttpDate;
use whimbrel_io::{Activity, Port};
use whimbrel_stack::Shard;
use whimbrel_tcp::Instant;

use super::report::Report;
use super::server::Server;

/// The server, driven by a worker.
pub(crate) struct ServePort {
    /// The server.
    pub(crate) server: Server<Shard>,
    /// What is printed.
    pub(crate) report: Report,
    dates: Dates,
}

impl ServePort {
    /// The port of `server`.
    pub(crate) fn new(server: Server<Shard>, report: Report) -> Self {
        Self { server, report, dates: Dates::default() }
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
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        let Self { server, dates, .. } = self;
        dates.refresh(now, |date| server.set_date(date));
        let more = self.server.poll(shard, now, BUDGET);
        self.report.tick(now, &self.server.statistics(), Some(shard));
        Activity::busy_if(more)
    }

    fn next_deadline(&self) -> Option<Instant> {
        [self.server.next_deadline(), self.report.next_line()].into_iter().flatten().min()
    }
}

/// Events dealt with in one turn, before frames have their turn again.
pub(crate) const BUDGET: usize = 256;
