//! The stream oracle: over any links, each byte arrives once, in its place, and then the end of the
//! stream; and when all is over, nothing is left.
//!
//! A seed draws a [`Scenario`] (rules of both stacks, links, outages, connections) and the plans of
//! both applications for each connection. Either end computes every byte of either direction from
//! the seed, so it detects a wrong one at once.

mod app;
mod plan;
mod scenario;
mod shared_plan;
mod stream;

use std::fmt;
use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_stack::shard::Census;
use whimbrel_tcp::Counters;

use crate::pair::Pair;
use crate::world::{Checks, Limits, StuckRun};

pub use app::Oracle;
pub use plan::StreamPlan;
pub use scenario::Scenario;

/// Outcome of a seed.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Seed of the run.
    pub seed: u64,
    /// Bytes verified at both ends.
    pub bytes: u64,
    /// Number of instants with an event.
    pub steps: u64,
    /// Virtual time until nothing was due any more.
    pub lasted: Duration,
    /// Digest of every byte on the wires and its time ([`World::digest`](crate::World::digest)).
    pub digest: u64,
    /// Events that the hosts met, by name and count: seeds that never meet an event prove nothing
    /// about it.
    pub met: [(&'static str, u64); Outcome::MEETINGS],
    /// The failure, with the state of everything.
    pub failure: Option<String>,
}

impl Outcome {
    const MEETINGS: usize = 13;

    /// True if every byte arrived and nothing was left.
    pub const fn is_ok(&self) -> bool {
        self.failure.is_none()
    }

    /// Command that repeats the run.
    pub fn repeat(&self) -> String {
        format!("seed={} cargo test -p whimbrel-sim --test oracle", self.seed)
    }
}

/// One line if all is well; otherwise the command that repeats the run, then the failure.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, bytes, steps, lasted, digest, met: _, failure } = self;
        match failure {
            None => {
                write!(f, "seed={seed}: {bytes} bytes, {steps} steps, {lasted:?}, {digest:016x}")
            }
            Some(failure) => write!(f, "{}\n{}\n{failure}", self.repeat(), Scenario::new(*seed)),
        }
    }
}

/// Plays the scenario of a seed, with all checks.
pub fn run_seed(seed: u64) -> Outcome {
    let scenario = Scenario::new(seed);
    let applications = scenario.applications();
    let mut pair = match Pair::new(&scenario.pair(Checks::EachStep), applications) {
        Ok(pair) => pair,
        Err(error) => return refused(seed, error.to_string()),
    };
    for (from, until) in &scenario.outages {
        pair.plan_outage(*from, *until);
    }
    for (from, until, mtu) in &scenario.narrows {
        pair.plan_narrows(*from, *until, *mtu);
    }
    let failure = play(&scenario, &mut pair).err().map(|stuck| stuck.to_string());
    let bytes = [pair.client, pair.server].map(|host| pair.world.host(host).1.verified());
    Outcome {
        seed,
        bytes: bytes.iter().sum(),
        steps: pair.world.steps(),
        lasted: pair.world.now().since(Instant::ZERO),
        digest: pair.world.digest(),
        met: meetings(&scenario, &pair),
        failure,
    }
}

fn refused(seed: u64, failure: String) -> Outcome {
    let failure = Some(failure);
    let met = [("nothing", 0); Outcome::MEETINGS];
    Outcome { seed, bytes: 0, steps: 0, lasted: Duration::ZERO, digest: 0, met, failure }
}

fn meetings(scenario: &Scenario, pair: &Pair<Oracle>) -> [(&'static str, u64); Outcome::MEETINGS] {
    let hosts = [pair.client, pair.server].map(|host| pair.world.host(host));
    let counted = |count: fn(&Counters) -> u64| {
        hosts.iter().map(|(shard, _)| count(shard.counters())).sum::<u64>()
    };
    [
        ("connections from both ends", scenario.crossed() as u64),
        ("urgent marks", hosts.iter().map(|(_, oracle)| oracle.alarms()).sum()),
        ("narrow paths", counted(|it| it.path_mtu_lowered)),
        ("keep-alive probes", counted(|it| it.keep_alives)),
        ("window probes", counted(|it| it.window_probes)),
        ("fast retransmissions", counted(|it| it.fast_retrans)),
        ("texts of SYNs taken", counted(|it| it.fast_open_active)),
        ("texts of SYNs not taken", counted(|it| it.fast_open_active_fail)),
        ("connections given up", counted(|it| it.abort_on_timeout + it.estab_resets)),
        ("repairs that were lost", counted(|it| it.lost_retransmit)),
        ("losses that were none", counted(|it| it.spurious_rtos + it.dsack_undo + it.full_undo)),
        ("loss probes that repaired", counted(|it| it.loss_probe_recovery)),
        ("buffers that grew", counted(|it| it.recv_buffers_grown)),
    ]
}

/// Over links that lose, delay and reorder nothing, neither host has a reason to send anything
/// twice, except for window probes: a refused byte is sent again, and one that crosses others can
/// cost a time-out. If both ends open a connection, each SYN is sent again with an ACK, and so is
/// the text of a SYN that is not taken.
fn judge_perfection(scenario: &Scenario, pair: &Pair<Oracle>) -> Result<(), StuckRun> {
    let counters = [pair.client, pair.server].map(|host| pair.world.host(host).0.counters());
    let repeated = counters.map(|it| it.retrans_segs + it.timeouts + it.fast_retrans);
    // A loss probe may repeat data that the peer has, and so may delays repeat acknowledgments.
    let probes =
        counters.map(|it| 2 * it.window_probes + 2 * it.fast_open_active_fail + it.loss_probes);
    // Each SYN, and with Fast Open its text, in up to four segments.
    let each = if scenario.opens_fast() { 10 } else { 2 };
    let crossed = each * scenario.crossed() as u64;
    let (repeated, excused): (u64, u64) =
        (repeated.iter().sum(), probes.iter().sum::<u64>() + crossed);
    if repeated <= excused {
        return Ok(());
    }
    let why = format!("{repeated} retransmissions and time-outs over perfect links");
    Err(StuckRun { why, dump: pair.world.dump() })
}

fn play(scenario: &Scenario, pair: &mut Pair<Oracle>) -> Result<(), StuckRun> {
    let limits = Limits::default();
    pair.world.run(&limits)?;
    if scenario.is_perfect() {
        judge_perfection(scenario, pair)?;
    }
    pair.world.run_to_silence(&limits)?;
    for host in [pair.client, pair.server] {
        let (shard, _) = pair.world.host_mut(host);
        while shard.poll_event().is_some() {}
        let census = shard.census();
        let mut expected = Census::default();
        expected.listeners = census.listeners;
        if census != expected {
            let why = format!("leaked: {census:?}");
            return Err(StuckRun { why, dump: pair.world.dump() });
        }
    }
    Ok(())
}
