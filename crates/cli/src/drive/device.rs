//! A client on our stack over a device, with an address of its own; the server is somebody else.

use std::thread;
use std::time::Duration;

use whimbrel_apps::Part;
use whimbrel_base::{Instant, Secrets};
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::{
    Activity, Clock, Device, PacketWire, Port, Steered, Stop, Tun, UnixWire, Waker, WireSpec,
    Worker,
};
use whimbrel_stack::{Shard, ShardConfig};
use whimbrel_wire::Endpoint;

use super::port::{ClientPort, Watcher};
use super::{Job, Ran, StackState, nobody};
use crate::capture::{self, CapturePlan};
use crate::failure::Failure;
use crate::options::StackSetup;
use crate::shards::{self, EndsAll};

pub(super) fn run<J: Job>(
    job: &mut J,
    setup: &StackSetup,
    target: Endpoint,
    stop: &Stop,
) -> Result<Ran<J::Outcome>, Failure>
where
    J::Client<Shard>: Send,
{
    let to = (target, stop);
    match &setup.wire {
        WireSpec::Tun(config) | WireSpec::Tap(config) => {
            drive_queues(job, setup, Tun::open_queues(config)?, to)
        }
        WireSpec::Packet(config) => drive_queues(job, setup, PacketWire::open_fanout(config)?, to),
        WireSpec::Unix(config) => drive_queues(job, setup, vec![UnixWire::open(config)?], to),
        WireSpec::Pcap(_) => {
            let text = "a capture answers nobody: serve and pcap replay one";
            Err(Failure::usage("--wire", text))
        }
        _ => Err(Failure::usage("--wire", "this wire has no device to drive")),
    }
}

/// What came in by the wrong queue of several, as the device tells.
pub(crate) type SteeringOf<D> = fn(&D) -> SteeringCounters;

/// Drives a shard at each of these queues.
fn drive_queues<J: Job, D: Device + Send>(
    job: &mut J,
    setup: &StackSetup,
    mut devices: Vec<D>,
    to: (Endpoint, &Stop),
) -> Result<Ran<J::Outcome>, Failure>
where
    J::Client<Shard>: Send,
{
    setup.wire.dad().check(&mut devices, setup.wire.addresses()).map_err(Failure::run)?;
    let wakers = devices.iter().map(|_| Waker::new()).collect::<Result<Vec<_>, _>>();
    let wakers = wakers.map_err(Failure::run)?;
    if devices.len() == 1 {
        let devices = devices.into_iter().zip(wakers).collect();
        return drive(job, setup, (devices, |_| SteeringCounters::default()), to);
    }
    let devices = Steered::join(devices, &wakers).into_iter().zip(wakers).collect();
    drive(job, setup, (devices, |device| *device.steering()), to)
}

/// Drives a shard at each of these devices, on a thread of its own; `steering` is what came in by the
/// wrong one.
fn drive<J: Job, D: Device + Send>(
    job: &mut J,
    setup: &StackSetup,
    (devices, steering): (Vec<(D, Waker)>, SteeringOf<D>),
    (target, stop): (Endpoint, &Stop),
) -> Result<Ran<J::Outcome>, Failure>
where
    J::Client<Shard>: Send,
{
    let Some(capabilities) = devices.first().map(|(device, _)| device.capabilities()) else {
        return Err(nobody());
    };
    let parts = (0..u32::from(setup.shards)).map(|number| Part { number, of: setup.shards.into() });
    let clients: Vec<_> = parts.map(|part| job.client(target, part)).collect();
    let mut watcher = Watcher::new(job, &clients, stop);
    let secrets = setup.secrets()?;
    let clock = Clock::start();
    let open = |plan: &CapturePlan| plan.open(&setup.typed, capabilities.medium, Some(clock));
    let taps = capture::spread(setup.pcap.as_ref().map(open).transpose()?, devices.len());
    let mut loaders = Vec::new();
    for (((device, waker), client), tap) in devices.into_iter().zip(clients).zip(taps) {
        let number = loaders.len();
        let shard = shard(setup, &device, &secrets)?;
        let port = ClientPort::<J>::new(client, watcher.shared(), number);
        let worker = Worker::new(device, shard, port, clock, waker.clone()).with_tap(tap);
        loaders.push(Loader { number, worker, clock, waker });
    }
    let ended = thread::scope(|scope| {
        let threads: Vec<_> = loaders
            .into_iter()
            .map(|loader| scope.spawn(move || loader.run(setup, stop)))
            .collect();
        let watched = {
            let _whatever_happens = EndsAll(stop);
            watcher.stay(job, (|| clock.now(), stop))
        };
        let ended = threads.into_iter().map(shards::join).collect::<Result<Vec<_>, _>>();
        watched.and(ended)
    })?;
    let (mut states, mut outcomes, mut sum) = (Vec::new(), Vec::new(), SteeringCounters::default());
    for Ended { device, state, outcome } in ended {
        sum += steering(&device);
        states.push(state);
        outcomes.push(outcome);
    }
    Ok(Ran {
        outcome: job.conclude(outcomes).ok_or_else(nobody)?,
        client: StackState::sum(states),
        server: None,
        links: None,
        steering: sum,
        target,
        seed: setup.seed,
        offloads: Some(capabilities),
        effort: None,
    })
}

fn shard(setup: &StackSetup, device: &impl Device, secrets: &Secrets) -> Result<Shard, Failure> {
    Shard::new(ShardConfig {
        tunables: setup.rules.tunables.clone(),
        secrets: *secrets,
        capabilities: device.capabilities(),
        addresses: setup.wire.addresses().to_vec(),
        routes: setup.wire.routes(),
    })
    .map_err(Failure::run)
}

/// A shard with a client.
struct Loader<J: Job, D> {
    number: usize,
    worker: Worker<D, ClientPort<J>>,
    clock: Clock,
    waker: Waker,
}

/// What is left of it. Its queue stays until all have ended: without it the kernel would deal its flows
/// to the others.
struct Ended<J: Job, D> {
    device: D,
    state: StackState,
    outcome: J::Outcome,
}

impl<J: Job, D: Device> Loader<J, D> {
    /// Runs on this thread until `stop` is set, then lets everything go.
    fn run(self, setup: &StackSetup, stop: &Stop) -> Result<Ended<J, D>, Failure> {
        let _whatever_happens = EndsAll(stop);
        let Self { number, mut worker, clock, waker } = self;
        shards::pin(&setup.processors, number)?;
        worker.run(stop).map_err(Failure::run)?;
        let tap = worker.take_tap();
        let (device, mut shard, port) = worker.into_parts();
        let now = clock.now();
        let outcome = J::end(port.client, &mut shard, now);
        let state = StackState::of(&shard);
        let gone = Stop::new().map_err(Failure::run)?;
        let parting = Parting { until: now + GRACE, gone: gone.clone() };
        let mut worker = Worker::new(device, shard, parting, clock, waker).with_tap(tap);
        worker.run(&gone).map_err(Failure::run)?;
        capture::finish(worker.take_tap());
        let (device, _, _) = worker.into_parts();
        Ok(Ended { device, state, outcome })
    }
}

/// Lets the last segments out, so that the peer does not keep what nobody will use.
struct Parting {
    until: Instant,
    gone: Stop,
}

impl Port for Parting {
    fn drain(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

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

/// How long the peer has to acknowledge the last segments.
const GRACE: Duration = Duration::from_millis(500);
