//! A client on our stack over a device, with its own address; the server is a separate process or host.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::{Activity, Clock, Device, Port, StackShard, StackWorker, Steered, Stop};
use whimbrel_stack::Shard;
use whimbrel_wire::Endpoint;

use super::port::{ClientPort, Watcher};
use super::{FinishedRun, Job, StackState, clients, no_client};
use crate::capture;
use crate::failure::Failure;
use crate::options::StackSetup;

/// Drives a shard at each queue of the wire.
pub(super) fn run<J: Job>(
    job: &mut J,
    setup: &StackSetup,
    target: Endpoint,
    stop: &Stop,
) -> Result<FinishedRun<J::Outcome>, Failure>
where
    J::Client<Shard>: Send,
{
    if setup.wire.is_capture() {
        let text = "pcap: is read-only; use it with serve or pcap";
        return Err(Failure::usage("--wire", text));
    }
    let clock = Clock::start();
    let mut shards = setup.open(clock, stop, None)?;
    let _control = setup.control.serve(&setup.rules, &mut shards)?;
    let offloads = shards.first().map(|first| first.device.capabilities());
    let clients = clients(job, setup.shards.into(), target);
    let mut watcher = Watcher::new(job, &clients, stop);
    let worker = |(shard, client): (StackShard, _)| {
        let port = ClientPort::<J>::new(client, watcher.shared(), shard.number);
        shard.worker(port)
    };
    let workers: Vec<_> = shards.into_iter().zip(clients).map(worker).collect();
    let ended = setup.threads(stop).run(
        workers,
        |worker| drive::<J>(worker, clock, stop),
        || watcher.stay(job, || clock.now(), stop),
    )?;
    let (mut states, mut outcomes, mut sum) = (Vec::new(), Vec::new(), SteeringCounters::default());
    for Ended { device, state, outcome } in ended {
        sum += device.steering();
        states.push(state);
        outcomes.push(outcome);
    }
    let (client, steering, seed) = (StackState::sum(states), sum, setup.seed);
    let ran = FinishedRun::over_the_kernel(job.conclude(outcomes).ok_or_else(no_client)?, target);
    Ok(FinishedRun { client, steering, seed, offloads, ..ran })
}

/// The result of a client's shard. Its queue stays until all have ended: without it the kernel would
/// give its flows to the others.
struct Ended<J: Job> {
    device: Steered,
    state: StackState,
    outcome: J::Outcome,
}

/// Runs on this thread until `stop` is set, then lets everything go.
fn drive<J: Job>(
    mut worker: StackWorker<ClientPort<J>>,
    clock: Clock,
    stop: &Stop,
) -> Result<Ended<J>, Failure> {
    worker.run(stop)?;
    let gone = Stop::new().map_err(Failure::run)?;
    let mut left = None;
    let mut worker = worker.with_port(|shard, port| {
        let now = clock.now();
        let outcome = J::end(port.client, shard, now);
        left = Some((outcome, StackState::of(shard)));
        ClosingPort { until: now + GRACE, gone: gone.clone() }
    });
    worker.run(&gone)?;
    capture::finish(worker.take_tap());
    worker.end_trace();
    let (device, _, _) = worker.into_parts();
    let (outcome, state) = left.ok_or_else(no_client)?;
    Ok(Ended { device, state, outcome })
}

/// Sends the last segments, so that the peer does not keep connections without use.
struct ClosingPort {
    until: Instant,
    gone: Stop,
}

impl Port for ClosingPort {
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        while shard.poll_event().is_some() {}
        let census = shard.census();
        if now >= self.until || census.connections == 0 && census.replies == 0 {
            self.gone.set();
        }
        Activity::Idle
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.until)
    }
}

/// Time for the peer to acknowledge the last segments.
const GRACE: Duration = Duration::from_millis(500);
