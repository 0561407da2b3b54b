//! The server as a worker's port: events, the clock on the wall, and the line of each second.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use whimbrel_apps::http::{HttpDate, HttpServer};
use whimbrel_io::{Activity, Port};
use whimbrel_stack::Shard;
use whimbrel_tcp::Instant;

use super::content::Content;
use super::report::Report;

/// The server, driven by a worker.
pub(crate) struct ServePort {
    /// The server.
    pub(crate) server: HttpServer<Content>,
    /// What is printed.
    pub(crate) report: Report,
    /// From when on the `Date` field is stale.
    stale: Instant,
}

impl ServePort {
    /// The port of `server`.
    pub(crate) fn new(server: HttpServer<Content>, report: Report) -> Self {
        Self { server, report, stale: Instant::ZERO }
    }

    /// The wall's clock is read once a second, and only while there is something to answer.
    fn refresh_date(&mut self, now: Instant) {
        if now < self.stale {
            return;
        }
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.server.set_date(HttpDate::from_unix_seconds(since_epoch.as_secs()));
        let into_second = Duration::from_nanos(since_epoch.subsec_nanos().into());
        self.stale = now + Duration::from_secs(1).saturating_sub(into_second);
    }
}

impl Port for ServePort {
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        self.refresh_date(now);
        let more = self.server.poll(shard, now, BUDGET);
        self.report.tick(now, &self.server, shard);
        Activity::busy_if(more)
    }

    fn next_deadline(&self) -> Option<Instant> {
        [self.server.next_deadline(), self.report.next_line()].into_iter().flatten().min()
    }
}

/// Events dealt with in one turn, before frames have their turn again.
const BUDGET: usize = 256;
