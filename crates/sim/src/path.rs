//! Flows over a path: who sends as fast as the path and the stack let it, and how much of that was
//! acknowledged by when. For measurements of congestion control, recovery and buffers.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_link::{LinkConfig, LinkCounters};
use whimbrel_stack::RouteMetrics;
use whimbrel_tcp::conn::{Snapshot, SocketOptions};
use whimbrel_tcp::{Counters, Tunables};

use crate::pair::{Pair, PairConfig};
use crate::world::Checks;
use application::PathApplication;
pub use course::{PathCourse, PathSample};

mod application;
mod course;

/// What flows, over what.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// The path, alike in both directions but for what its `back` says; the slow host, if there is one, is
    /// the receiver.
    pub link: LinkConfig,
    /// The rules of both hosts.
    pub tunables: Tunables,
    /// What is set on each connection, at its sender and at its receiver.
    pub options: [SocketOptions; 2],
    /// What the sender and the receiver know of the way to each other.
    pub metrics: [RouteMetrics; 2],
    /// When each flow begins.
    pub starts: Vec<Duration>,
    /// Bytes that each flow sends; `None`: as many as it can.
    pub bytes: Option<u64>,
    /// True if FIN follows them.
    pub has_fin: bool,
    /// The times at which what was acknowledged is noted, ascending. At the last of them the run ends,
    /// or when all bytes of all flows are acknowledged.
    pub marks: Vec<Duration>,
    /// What losses and keys come from.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// Each flow, in the order of their beginnings.
    pub flows: Vec<FlowReport>,
    /// What the sender's stack counted.
    pub sender: Counters,
    /// What happened on the way from the sender to the receiver.
    pub link: LinkCounters,
    /// How long it took.
    pub lasted: Duration,
    /// How the first flow went, if it opened.
    pub course: PathCourse,
    /// What the sender put on the wire, if that was captured: a pcapng file.
    pub capture: Option<Vec<u8>>,
}

/// What became of one flow.
#[derive(Clone, Default, Debug)]
pub struct FlowReport {
    /// Bytes of text that were acknowledged at each mark; fewer marks if it ended before.
    pub acked: Vec<u64>,
    /// When its handshake was complete, since the beginning of the run.
    pub opened: Option<Duration>,
    /// When all of its bytes were acknowledged, since the beginning of the run.
    pub completed: Option<Duration>,
    /// The sender's variables when it was last looked at; `None` if it never opened.
    pub snapshot: Option<Box<Snapshot>>,
}

impl FlowReport {
    /// Bits of text per second that were acknowledged between these marks, which are that far apart.
    pub fn rate(&self, from: usize, until: usize, apart: Duration) -> f64 {
        let at = |mark: usize| self.acked.get(mark).copied().unwrap_or_default();
        (at(until).saturating_sub(at(from)) * 8) as f64 / apart.as_secs_f64()
    }

    /// How long its bytes took, from the end of the handshake until all were acknowledged.
    pub fn took(&self) -> Option<Duration> {
        Some(self.completed?.saturating_sub(self.opened?))
    }
}

/// Whether what the sender puts on the wire is captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Captured {
    /// Every packet is captured.
    All,
    /// No packet is captured.
    Nothing,
}

/// Whether a run is still wanted: it is asked every now and then.
pub type GoOn<'g> = &'g (dyn Fn() -> bool + Sync);

impl PathPlan {
    /// One flow, with nothing set, over this path; it ends at the last of `marks`.
    pub fn new(link: LinkConfig, marks: Vec<Duration>) -> Self {
        Self {
            link,
            tunables: Tunables::default(),
            options: Default::default(),
            metrics: Default::default(),
            starts: vec![Duration::ZERO],
            bytes: None,
            has_fin: false,
            marks,
            seed: 1,
        }
    }

    /// Runs it, as long as `go_on` says so; an error says what did not fit, or went wrong.
    pub fn run(&self, captured: Captured, go_on: GoOn<'_>) -> Result<PathReport, String> {
        let config = PairConfig {
            tunables: [self.tunables.clone(), self.tunables.clone()],
            metrics: self.metrics,
            mtu: [self.link.mtu, self.link.back().mtu],
            links: [self.link.clone(), self.link.back()],
            seed: self.seed,
            checks: Checks::Nothing,
            ..PairConfig::default()
        };
        let applications = [PathApplication::sender(self), PathApplication::receiver(self)];
        let pair = Pair::new(&config, applications).map_err(|error| error.to_string())?;
        let Pair { mut world, client, up, .. } = pair;
        if captured == Captured::All {
            world.start_capture();
        }
        let stuck = |stuck: crate::StuckRun| stuck.to_string();
        let end = self.marks.last().map_or(Instant::ZERO, |last| Instant::ZERO + *last);
        let mut course = PathCourse::default();
        world.start().map_err(stuck)?;
        while world.now() < end && !world.host(client).1.is_over() {
            if !world.step().map_err(stuck)? {
                return Err("nothing is due, and not everything was acknowledged".into());
            }
            if course.is_due(world.now()) {
                let (shard, sender) = world.host(client);
                let snapshot = sender.first(shard);
                course.note(world.now(), snapshot.as_ref(), world.link(up).backlog(world.now()));
            }
            if world.steps().is_multiple_of(STEPS) && !go_on() {
                return Err("interrupted".into());
            }
        }
        let capture = world.take_capture();
        let (shard, sender) = world.host(client);
        Ok(PathReport {
            flows: sender.reports(shard),
            sender: shard.counters().clone(),
            link: *world.link(up).counters(),
            lasted: world.now().since(Instant::ZERO),
            course,
            capture,
        })
    }
}

/// After how many steps it is asked whether to go on.
const STEPS: u64 = 4_096;

#[cfg(test)]
mod tests;
