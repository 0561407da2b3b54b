//! Flows over a path: a sender uses all that path and stack allow, and the acknowledged bytes are
//! noted over time. For measurements of congestion control, recovery and buffers.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_link::{LinkConfig, LinkCounters, Waits};
use whimbrel_stack::RouteMetrics;
use whimbrel_tcp::conn::{Snapshot, SocketOptions};
use whimbrel_tcp::tunables::CongestionAlgorithm;
use whimbrel_tcp::{Counters, Tunables};

use crate::pair::{Pair, PairConfig};
use crate::world::Checks;
use application::PathApplication;
pub use course::{PathCourse, PathSample};

mod application;
mod course;

/// Flows and the path under them.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// The path, the same in both directions except for its `back`; the slow host, if there is one,
    /// is the receiver.
    pub link: LinkConfig,
    /// Rules of both hosts.
    pub tunables: Tunables,
    /// Options of each connection, at its sender and at its receiver.
    pub options: [SocketOptions; 2],
    /// Metrics of the sender's route, and of the receiver's.
    pub metrics: [RouteMetrics; 2],
    /// Start of each flow.
    pub starts: Vec<Duration>,
    /// Congestion control of each flow; of others it follows `options` and `tunables`.
    pub algorithms: Vec<CongestionAlgorithm>,
    /// Bytes of each flow; `None`: unlimited.
    pub bytes: Option<u64>,
    /// True if FIN follows them.
    pub has_fin: bool,
    /// Times, ascending, at which the acknowledged bytes are noted. The run ends at the last, or
    /// when all bytes of all flows are acknowledged.
    pub marks: Vec<Duration>,
    /// Seed of losses and keys.
    pub seed: u64,
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// Flows, in order of their start.
    pub flows: Vec<FlowReport>,
    /// Counters of the sender's stack.
    pub sender: Counters,
    /// Counters of the link from the sender to the receiver.
    pub link: LinkCounters,
    /// Times in its queue, of packets that came after the first mark.
    pub waits: Option<Waits>,
    /// Duration of the run.
    pub lasted: Duration,
    /// Course of the first flow, if it opened.
    pub course: PathCourse,
    /// Packets that the sender put on the wire, if they were captured: a pcapng file.
    pub capture: Option<Vec<u8>>,
}

/// Results of one flow.
#[derive(Clone, Default, Debug)]
pub struct FlowReport {
    /// Bytes of text acknowledged at each mark; fewer marks if it ended before.
    pub acked: Vec<u64>,
    /// End of its handshake, since the start of the run.
    pub opened: Option<Duration>,
    /// Time when all of its bytes were acknowledged, since the start of the run.
    pub completed: Option<Duration>,
    /// Last snapshot of the sender; `None` if it never opened.
    pub snapshot: Option<Box<Snapshot>>,
}

impl FlowReport {
    /// Bits of text acknowledged per second between these marks, which are `apart`.
    pub fn rate(&self, from: usize, until: usize, apart: Duration) -> f64 {
        let at = |mark: usize| self.acked.get(mark).copied().unwrap_or_default();
        (at(until).saturating_sub(at(from)) * 8) as f64 / apart.as_secs_f64()
    }

    /// Time from the end of the handshake until all bytes were acknowledged.
    pub fn took(&self) -> Option<Duration> {
        Some(self.completed?.saturating_sub(self.opened?))
    }
}

/// Capture of the packets that the sender puts on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Captured {
    /// Every packet is captured.
    All,
    /// No packet is captured.
    Nothing,
}

/// Returns true while a run is still wanted; it is called every now and then.
pub type GoOn<'g> = &'g (dyn Fn() -> bool + Sync);

impl PathPlan {
    /// One flow over this path with default settings; it ends at the last of `marks`.
    pub fn new(link: LinkConfig, marks: Vec<Duration>) -> Self {
        Self {
            link,
            tunables: Tunables::default(),
            options: Default::default(),
            metrics: Default::default(),
            starts: vec![Duration::ZERO],
            algorithms: Vec::new(),
            bytes: None,
            has_fin: false,
            marks,
            seed: 1,
        }
    }

    /// Runs the plan while `go_on` is true; an error gives the reason of a failure.
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
        world.measure_waits(up, self.marks.first().map_or(Instant::ZERO, |it| Instant::ZERO + *it));
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
            waits: world.link(up).waits().cloned(),
            lasted: world.now().since(Instant::ZERO),
            course,
            capture,
        })
    }
}

/// Steps after which the run asks whether to continue.
const STEPS: u64 = 4_096;

#[cfg(test)]
mod tests;
