//! A client on our stack over a device, with an address of its own; the server is somebody else.

use std::time::Duration;

use whimbrel_io::{
    Activity, Clock, Device, PacketWire, Port, Stop, Tun, UnixWire, Waker, WireSpec, Worker,
    entropy,
};
use whimbrel_stack::{Shard, ShardConfig};
use whimbrel_tcp::Instant;
use whimbrel_tcp::table::Secrets;
use whimbrel_wire::Endpoint;

use super::port::ClientPort;
use super::{Job, Ran, StackState};
use crate::capture::{self, CapturePlan};
use crate::failure::Failure;
use crate::options::Ground;

pub(super) fn run<J: Job>(
    job: &mut J,
    ground: &Ground,
    wire: &WireSpec,
    target: Endpoint,
    stop: &Stop,
) -> Result<Ran<J::Outcome>, Failure> {
    match wire {
        WireSpec::Tun(config) | WireSpec::Tap(config) => {
            drive(job, ground, Tun::open(config)?, target, stop)
        }
        WireSpec::Packet(config) => drive(job, ground, PacketWire::open(config)?, target, stop),
        WireSpec::Unix(config) => drive(job, ground, UnixWire::open(config)?, target, stop),
        WireSpec::Pcap(_) => {
            let text = "a capture answers nobody: serve and pcap replay one";
            Err(Failure::usage("--wire", text))
        }
        _ => Err(Failure::usage("--wire", "this wire has no device to drive")),
    }
}

fn drive<J: Job, D: Device>(
    job: &mut J,
    ground: &Ground,
    device: D,
    target: Endpoint,
    stop: &Stop,
) -> Result<Ran<J::Outcome>, Failure> {
    let capabilities = device.capabilities();
    let shard = Shard::new(ShardConfig {
        tunables: ground.rules.tunables.clone(),
        secrets: match ground.seed {
            Some(seed) => Secrets::from_seed(seed),
            None => entropy::secrets().map_err(Failure::run)?,
        },
        capabilities,
        addresses: ground.wire.addresses().to_vec(),
        routes: ground.wire.routes(),
    })
    .map_err(Failure::run)?;
    let client = job.client(target);
    let port = ClientPort::new(job, client, stop.clone());
    let (clock, waker) = (Clock::start(), Waker::new().map_err(Failure::run)?);
    let open = |plan: &CapturePlan| plan.open(&ground.typed, capabilities.medium, Some(clock));
    let tap = ground.pcap.as_ref().map(open).transpose()?;
    let mut worker = Worker::new(device, shard, port, clock, waker.clone()).with_tap(tap);
    worker.run(stop).map_err(Failure::run)?;
    let tap = worker.take_tap();

    let (device, mut shard, ClientPort { job, mut client, .. }) = worker.into_parts();
    let now = clock.now();
    job.end(&mut client, &mut shard, now);
    let state = StackState::of(&shard);
    let gone = Stop::new().map_err(Failure::run)?;
    let parting = Parting { until: now + GRACE, gone: gone.clone() };
    let mut worker = Worker::new(device, shard, parting, clock, waker).with_tap(tap);
    worker.run(&gone).map_err(Failure::run)?;
    capture::finish(worker.take_tap())?;
    Ok(Ran {
        outcome: job.outcome(client),
        client: Some(state),
        server: None,
        links: None,
        target,
        seed: ground.seed,
        offloads: Some(capabilities),
        effort: None,
    })
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
