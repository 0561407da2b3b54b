//! A client and a server of this crate on the hosts of a simulated world.

use whimbrel_apps::{Model, Transport};
use whimbrel_base::Instant;
use whimbrel_sim::host::Application;
use whimbrel_sim::pair::{Pair, PairConfig, server_at};
use whimbrel_sim::world::Limits;
use whimbrel_stack::Shard;
use whimbrel_wire::{Endpoint, Family};

/// The server's endpoint in each world.
pub(crate) fn target() -> Endpoint {
    server_at(Family::V4, 80)
}

/// One of the two models.
pub(crate) enum Side<C, S> {
    Client(C),
    Server(S),
}

impl<C: Model<Shard>, S: Model<Shard>> Application for Side<C, S> {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        match self {
            Self::Client(client) => while client.poll(shard, now, 64) {},
            Self::Server(server) => while server.poll(shard, now, 64) {},
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Client(client) => client.next_deadline(),
            Self::Server(server) => server.next_deadline(),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Client(client) => client.is_done(),
            Self::Server(_) => true,
        }
    }
}

/// A world after its run.
pub(crate) struct Ran<C, S> {
    pub(crate) pair: Pair<Side<C, S>>,
}

impl<C: Model<Shard>, S: Model<Shard>> Ran<C, S> {
    /// Runs `client` against `server` over links like this until it is done.
    pub(crate) fn new(links: &str, client: C, server: S) -> Self {
        Self::configured(links, PairConfig::default(), client, server)
    }

    /// Runs on hosts with this configuration.
    pub(crate) fn configured(links: &str, config: PairConfig, client: C, server: S) -> Self {
        let link: whimbrel_link::LinkConfig = links.parse().unwrap();
        let config = PairConfig { links: [link.clone(), link], ..config };
        let mut pair = Pair::new(&config, [Side::Client(client), Side::Server(server)]).unwrap();
        let (shard, _) = pair.world.host_mut(pair.server);
        shard.listen(target(), 128).unwrap();
        pair.world.run(&Limits::default()).unwrap();
        Self { pair }
    }

    pub(crate) fn client(&self) -> &C {
        match self.pair.world.host(self.pair.client).1 {
            Side::Client(client) => client,
            Side::Server(_) => panic!("the client's host has the client"),
        }
    }

    pub(crate) fn server(&self) -> &S {
        match self.pair.world.host(self.pair.server).1 {
            Side::Server(server) => server,
            Side::Client(_) => panic!("the server's host has the server"),
        }
    }

    /// Checks that after all timers neither host holds anything but its listener.
    pub(crate) fn assert_nothing_leaked(mut self) {
        self.pair.world.run_to_silence(&Limits::default()).unwrap();
        for host in [self.pair.client, self.pair.server] {
            let census = self.pair.world.host(host).0.census();
            let left = (census.connections, census.syn_entries, census.time_wait, census.buffers);
            assert_eq!(left, (0, 0, 0, 0), "{}", self.pair.world.dump());
        }
    }
}

/// A model that does nothing.
pub(crate) struct NoServer;

impl<T: Transport> Model<T> for NoServer {
    fn poll(&mut self, net: &mut T, _: Instant, _: usize) -> bool {
        while net.poll_event().is_some() {}
        false
    }

    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}
