//! Both hosts in this process.

use std::iter;

use whimbrel_base::{Instant, Secrets};
use whimbrel_io::control::ControlHost;
use whimbrel_io::pair::mem_capabilities;
use whimbrel_io::steering::SteeringCounters;
use whimbrel_io::{Clock, MemPair, MemTime, Port, Stop, entropy};
use whimbrel_link::{LinkConfig, LinkCounters, Waits};
use whimbrel_stack::{InterfaceAddress, Medium, Shard, ShardConfig, Steering};
use whimbrel_wire::Endpoint;

use super::port::{ClientPort, ServerPort, Watcher};
use super::{FinishedRun, Job, StackState, clients, no_client};
use crate::capture::{self, CapturePlan};
use crate::failure::Failure;
use crate::options::{ClockKind, StackSetup};
use crate::wires::{CLIENT, SERVER, address};
use crate::{control, routes};

pub(super) fn run<J: Job>(
    job: &mut J,
    setup: &StackSetup,
    link: &LinkConfig,
    stop: &Stop,
) -> Result<FinishedRun<J::Outcome>, Failure>
where
    J::Client<Shard>: Send,
    J::Server<Shard>: Send,
{
    // Runs in virtual time repeat, so they have a seed even if none is given.
    let seed = match (setup.seed, setup.clock) {
        (Some(seed), _) => seed,
        (None, ClockKind::Virtual) => 1,
        (None, ClockKind::Real) => entropy::seed().map_err(Failure::run)?,
    };
    let (time, clock) = match setup.clock {
        ClockKind::Real => {
            let clock = Clock::start();
            (MemTime::Real(clock), Some(clock))
        }
        ClockKind::Virtual => (MemTime::Virtual(Instant::ZERO), None),
    };
    let target = Endpoint::new(address(SERVER), PORT);
    let clients = clients(job, setup.shards.into(), target);
    let mut watcher = Watcher::new(job, &clients, stop);
    let (mut hosts, back) = (Vec::new(), link.back());
    for (queue, client) in (0..).zip(clients) {
        let host = |host| {
            let outward = if host == CLIENT { link } else { &back };
            shard(setup, outward, seed, host, queue)
        };
        let (near, mut far) = (host(CLIENT)?, host(SERVER)?);
        let listener = far.listen(target, BACKLOG).map_err(Failure::run)?;
        far.set_fast_open(listener, job.fast_opens());
        let client = ClientPort::<J>::new(client, watcher.shared(), queue.into());
        hosts.push(((near, client), (far, ServerPort(job.server()))));
    }
    let mut pairs = match (setup.shards, hosts.pop()) {
        (1, Some(only)) => vec![MemPair::new(link, seed, only, time)],
        (_, last) => {
            hosts.extend(last);
            MemPair::shards(link, seed, hosts, time).map_err(Failure::run)?
        }
    };
    if let Some(omit) = job.measures_waits() {
        pairs.iter_mut().for_each(|pair| pair.measure_waits(time.now() + omit));
    }
    let open = |plan: &CapturePlan| plan.open(&setup.typed, Medium::Ip, clock);
    let taps = capture::spread(setup.pcap.as_ref().map(open).transpose()?, pairs.len());
    let trace = setup.trace.as_ref().map(|plan| plan.open(Medium::Ip, pairs.len())).transpose()?;
    let traces = trace.into_iter().flatten().chain(iter::repeat_with(|| None));
    let watched = pairs.into_iter().zip(taps).zip(traces);
    let mut pairs: Vec<_> =
        watched.map(|((pair, tap), trace)| pair.with_tap(tap).with_trace(trace)).collect();
    let _control = setup.control.start(&setup.rules, || control_hosts(&mut pairs))?;
    match clock {
        None => MemPair::run_in_turn(&mut pairs, stop, |now| watcher.look(job, now)),
        Some(clock) => {
            let run = |pair: &mut MemPair<_, _>| Ok::<_, Failure>(pair.run(stop)?);
            let watch = || watcher.stay(job, || clock.now(), stop);
            setup.threads(stop).run(&mut pairs, run, watch)?;
        }
    }
    conclude(job, pairs, link, seed)
}

/// Both hosts, for a control socket.
fn control_hosts<A: Port, B: Port>(
    pairs: &mut [MemPair<A, B>],
) -> Result<Vec<ControlHost>, Failure> {
    let inspectors = pairs.iter_mut().map(MemPair::inspectors).collect::<Result<Vec<_>, _>>();
    let (client, server): (Vec<_>, Vec<_>) =
        inspectors.map_err(Failure::run)?.into_iter().map(|[near, far]| (near, far)).unzip();
    let host = |name, inspectors| ControlHost::named(name, control::shared(inspectors));
    Ok(vec![host("client", client), host("server", server)])
}

/// The result after all have stopped.
fn conclude<J: Job, B: Port>(
    job: &mut J,
    pairs: Vec<MemPair<ClientPort<J>, B>>,
    link: &LinkConfig,
    seed: u64,
) -> Result<FinishedRun<J::Outcome>, Failure> {
    let (mut near, mut far, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
    let mut waits = [const { None }; 2];
    let (mut links, mut steering) = ([LinkCounters::default(); 2], SteeringCounters::default());
    for mut pair in pairs {
        capture::finish(pair.take_tap());
        pair.end_trace();
        let now = pair.now();
        links.iter_mut().zip(pair.links()).for_each(|(sum, link)| *sum += link);
        waits.iter_mut().zip(pair.waits()).for_each(|(sum, waits)| add(sum, waits));
        pair.steering().into_iter().for_each(|side| steering += side);
        far.push(StackState::of(pair.far().0));
        let (mut shard, port) = pair.into_near();
        outcomes.push(J::end(port.client, &mut shard, now));
        near.push(StackState::of(&shard));
    }
    let outcome = job.conclude(outcomes).ok_or_else(no_client)?;
    Ok(FinishedRun {
        client: StackState::sum(near),
        server: StackState::sum(far),
        links: Some(links),
        waits,
        steering,
        seed: Some(seed),
        offloads: Some(mem_capabilities(link)),
        ..FinishedRun::over_the_kernel(outcome, Endpoint::new(address(SERVER), PORT))
    })
}

/// Adds a measurement to earlier ones.
fn add(sum: &mut Option<Waits>, waits: Option<Waits>) {
    match (sum, waits) {
        (Some(sum), Some(waits)) => *sum += &waits,
        (sum @ None, waits) => *sum = waits,
        (Some(_), None) => {}
    }
}

/// One of the shards of a host: that at this queue.
fn shard(
    setup: &StackSetup,
    link: &LinkConfig,
    seed: u64,
    host: u8,
    queue: u16,
) -> Result<Shard, Failure> {
    let more = setup.more.iter().filter(|more| host == CLIENT && **more != address(CLIENT));
    let addresses = iter::once(address(host)).chain(more.copied());
    let addresses = addresses.map(|addr| InterfaceAddress { addr, prefix_len: 24 });
    let addresses: Vec<_> = addresses.collect();
    let routes = routes::known(&setup.routes, &addresses, &[])?;
    let steering = match setup.shards {
        1 => Steering::None,
        queues => Steering::Computable { queue, queues },
    };
    let own = setup.server_rules.as_ref().filter(|_| host == SERVER);
    Shard::new(ShardConfig {
        tunables: own.unwrap_or(&setup.rules).tunables.clone(),
        // Only this process could guess the keys.
        secrets: Secrets::from_seed(seed.wrapping_mul(2).wrapping_add(host.into())),
        capabilities: mem_capabilities(link).with_steering(steering),
        addresses,
        routes,
    })
    .map_err(Failure::run)
}

const PORT: u16 = 80;
/// Limit of the accept queue, `serve`'s default.
const BACKLOG: u32 = 4096;
