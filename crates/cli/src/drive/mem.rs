//! Both hosts in this process.

use std::net::{IpAddr, Ipv4Addr};

use whimbrel_io::pair::mem_capabilities;
use whimbrel_io::{Clock, MemPair, MemTime, Stop, entropy};
use whimbrel_link::LinkConfig;
use whimbrel_stack::{InterfaceAddress, Medium, Shard, ShardConfig};
use whimbrel_tcp::Instant;
use whimbrel_tcp::table::Secrets;
use whimbrel_wire::{Address, Endpoint};

use super::port::{ClientPort, ServerPort};
use super::{Job, Ran, StackState};
use crate::capture::{self, CapturePlan};
use crate::failure::Failure;
use crate::options::{ClockKind, Ground};

pub(super) fn run<J: Job>(
    job: &mut J,
    ground: &Ground,
    link: &LinkConfig,
    stop: &Stop,
) -> Result<Ran<J::Outcome>, Failure> {
    // Virtual time is for runs that repeat: without a seed it has one all the same.
    let seed = match (ground.seed, ground.clock) {
        (Some(seed), _) => seed,
        (None, ClockKind::Virtual) => 1,
        (None, ClockKind::Real) => entropy::seed().map_err(Failure::run)?,
    };
    let near = shard(ground, link, seed, CLIENT)?;
    let mut far = shard(ground, link, seed, SERVER)?;
    let target = Endpoint::new(address(SERVER), PORT);
    far.listen(target, BACKLOG).map_err(Failure::run)?;
    let (time, clock) = match ground.clock {
        ClockKind::Real => {
            let clock = Clock::start();
            (MemTime::Real(clock), Some(clock))
        }
        ClockKind::Virtual => (MemTime::Virtual(Instant::ZERO), None),
    };
    let open = |plan: &CapturePlan| plan.open(&ground.typed, Medium::Ip, clock);
    let tap = ground.pcap.as_ref().map(open).transpose()?;
    let server = ServerPort(job.server());
    let client = job.client(target);
    let client = ClientPort::new(job, client, stop.clone());
    let hosts = ((near, client), (far, server));
    let mut pair = MemPair::new(link, seed, hosts, time).with_tap(tap);
    pair.run(stop).map_err(Failure::run)?;
    capture::finish(pair.take_tap())?;

    let now = pair.now();
    let (shard, port) = pair.near();
    port.job.end(&mut port.client, shard, now);
    let client = StackState::of(shard);
    let server = StackState::of(pair.far().0);
    let links = pair.links().map(|link| *link.counters());
    let (_, ClientPort { job, client: model, .. }) = pair.into_near();
    Ok(Ran {
        outcome: job.outcome(model),
        client: Some(client),
        server: Some(server),
        links: Some(links),
        target,
        seed: Some(seed),
        offloads: Some(mem_capabilities(link)),
        effort: None,
    })
}

fn shard(ground: &Ground, link: &LinkConfig, seed: u64, host: u8) -> Result<Shard, Failure> {
    let more = ground.more.iter().filter(|more| host == CLIENT && **more != address(CLIENT));
    let addresses = std::iter::once(address(host)).chain(more.copied());
    let addresses = addresses.map(|addr| InterfaceAddress { addr, prefix_len: 24 });
    Shard::new(ShardConfig {
        tunables: ground.rules.tunables.clone(),
        // Nobody but this process is there to guess what the keys keep.
        secrets: Secrets::from_seed(seed.wrapping_mul(2).wrapping_add(host.into())),
        capabilities: mem_capabilities(link),
        addresses: addresses.collect(),
        routes: Vec::new(),
    })
    .map_err(Failure::run)
}

/// Whether the client can have this address: it is in the network of the two, and is not the
/// server's.
pub(crate) fn may_be_clients(ip: IpAddr) -> bool {
    let host = |ip: Ipv4Addr| matches!(ip.octets(), [10, 0, 0, host] if host != SERVER && (1..255).contains(&host));
    matches!(ip, IpAddr::V4(ip) if host(ip))
}

fn address(host: u8) -> Address {
    Address::from_v4_octets([10, 0, 0, host])
}

const CLIENT: u8 = 1;
const SERVER: u8 = 2;
const PORT: u16 = 80;
/// The bound of the accept queue, as `serve` has it by default.
const BACKLOG: u32 = 4096;
