//! The world of most tests: a client, a server, and a link each way.

use whimbrel_base::{Instant, Secrets};
use whimbrel_link::{LinkConfig, LinkState};
use whimbrel_stack::shard::ConfigError;
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, Route, RouteMetrics, Shard, ShardConfig,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint, Family};

use crate::host::{Application, HostId};
use crate::world::{Checks, LinkChange, LinkId, World};

/// Two hosts, each with an address of both families, and the links between them.
#[derive(Debug)]
pub struct Pair<A> {
    /// World of the two.
    pub world: World<A>,
    /// The host that opens connections.
    pub client: HostId,
    /// The host that accepts them.
    pub server: HostId,
    /// From the client to the server.
    pub up: LinkId,
    /// From the server to the client.
    pub down: LinkId,
}

/// Configuration of a pair.
#[derive(Clone, Debug)]
pub struct PairConfig {
    /// The rules of the client and of the server.
    pub tunables: [Tunables; 2],
    /// Metrics of the client's route to the server, and of the server's to the client.
    pub metrics: [RouteMetrics; 2],
    /// Capabilities of each host's device.
    pub offload: [Offload; 2],
    /// MTU of each device, bytes. If a link's is smaller, a router reports it. Below 1,280 there is
    /// no IPv6.
    pub mtu: [u16; 2],
    /// Links from the client to the server, and back.
    pub links: [LinkConfig; 2],
    /// Seed of keys and chance in this world.
    pub seed: u64,
    /// Checks after each step.
    pub checks: Checks,
}

/// Capabilities of a host's device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offload {
    /// Each segment is a frame of its own, whose checksum the host computes.
    None,
    /// It completes checksums and cuts super-segments of up to 65,535 bytes.
    Full,
}

impl Default for PairConfig {
    fn default() -> Self {
        Self {
            tunables: Default::default(),
            metrics: Default::default(),
            offload: [Offload::None; 2],
            mtu: [1_500; 2],
            links: Default::default(),
            seed: 1,
            checks: Checks::default(),
        }
    }
}

impl<A: Application> Pair<A> {
    /// Both hosts, with these applications.
    pub fn new(config: &PairConfig, applications: [A; 2]) -> Result<Self, ConfigError> {
        let mut world = World::new(config.checks);
        let [on_client, on_server] = applications;
        let client = world.add_host(shard(config, 0)?, on_client);
        let server = world.add_host(shard(config, 1)?, on_server);
        let [there, back] = config.links.clone();
        let up = world.add_link([client, server], there, config.seed ^ UP);
        let down = world.add_link([server, client], back, config.seed ^ DOWN);
        Ok(Self { world, client, server, up, down })
    }

    /// Plans an outage of both directions.
    pub fn plan_outage(&mut self, from: Instant, until: Instant) {
        for link in [self.up, self.down] {
            self.world.plan(from, link, LinkChange::State(LinkState::Down));
            self.world.plan(until, link, LinkChange::State(LinkState::Up));
        }
    }

    /// Plans a smaller MTU, of `mtu` bytes, for both directions for a while.
    pub fn plan_narrows(&mut self, from: Instant, until: Instant, mtu: u16) {
        for link in [self.up, self.down] {
            let usual = self.world.link(link).config().mtu;
            self.world.plan(from, link, LinkChange::Mtu(mtu.min(usual)));
            self.world.plan(until, link, LinkChange::Mtu(usual));
        }
    }
}

/// The address of the client's host in that family.
pub fn client_addr(family: Family) -> Address {
    addr(family, 1)
}

/// The server's end, at `port`.
pub fn server_at(family: Family, port: u16) -> Endpoint {
    Endpoint::new(addr(family, 2), port)
}

fn addr(family: Family, host: u8) -> Address {
    match family {
        Family::V4 => Address::from_v4_bytes([10, 0, 0, host]),
        Family::V6 => {
            Address::from(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(host)))
        }
    }
}

/// Stack of host 0, the client, or 1, the server.
pub fn shard(config: &PairConfig, number: u8) -> Result<Shard, ConfigError> {
    let place = usize::from(number);
    let (mtu, offload) = (config.mtu[place], config.offload[place]);
    let address =
        |family, prefix_len| InterfaceAddress { addr: addr(family, number + 1), prefix_len };
    let addresses = [address(Family::V4, 24), address(Family::V6, 64)];
    let addresses: Vec<_> =
        addresses.into_iter().filter(|it| it.addr.is_v4() || mtu >= V6_LEAST_MTU).collect();
    let route = |own: &InterfaceAddress| {
        Route::new(own.addr.to_ip(), own.prefix_len).with_metrics(config.metrics[place])
    };
    let plain = Capabilities::plain(Medium::Ip, mtu);
    Shard::new(ShardConfig {
        tunables: config.tunables[place].clone(),
        secrets: Secrets::from_seed(config.seed.wrapping_mul(2) + u64::from(number)),
        capabilities: match offload {
            Offload::Full => plain.with_segmentation(65_535),
            _ => plain,
        },
        routes: addresses.iter().map(route).collect(),
        addresses,
    })
}

/// The least MTU of an IPv6 link (RFC 8200 5).
const V6_LEAST_MTU: u16 = 1_280;
/// Separates the random numbers of the two directions.
const UP: u64 = 0x5555_5555_5555_5555;
const DOWN: u64 = 0xaaaa_aaaa_aaaa_aaaa;
