//! The two hosts of a case: a client that loads a web server, and an observer.

use std::iter;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_apps::http::{FixedBody, HttpServer, Limits};
use whimbrel_apps::load::{Finished, LoadPlan, Repeat, Runs};
use whimbrel_apps::{Model, Pace};
use whimbrel_base::Instant;
use whimbrel_link::{Link, LinkConfig, cut};
use whimbrel_sim::host::{Application, Host};
use whimbrel_sim::pair::{self, PairConfig, server_at};
use whimbrel_sim::path::GoOn;
use whimbrel_sim::world::Checks;
use whimbrel_stack::Shard;
use whimbrel_stack::shard::ConfigError;
use whimbrel_tcp::{Counters, Tunables};
use whimbrel_wire::Family;

use super::Moment;
use super::packet_verdict::PacketVerdict;

/// Scenario of two hosts.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// The rules of the client and of the server.
    pub rules: [Tunables; 2],
    pub link: LinkConfig,
    /// Load of the client; its target is the server.
    pub load: LoadPlan,
    pub repeat: Repeat,
    /// Limits of the server.
    pub limits: Limits,
    pub pace: Pace,
    pub seed: u64,
}

/// Result of a scene.
#[derive(Clone, Debug)]
pub(super) struct CaseRun {
    pub runs: Vec<Finished>,
    /// State of both hosts each second.
    pub moments: Vec<Moment>,
    /// Counters of the client's stack, and of the server's.
    pub counters: [Counters; 2],
}

/// One of the two hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The host that opens connections.
    Client,
    /// The host that accepts them.
    Server,
}

/// Observer of a scene.
pub(super) trait Observer {
    /// Examines a packet that leaves. Returns whether the observer needs more.
    fn on_sent(&mut self, at: Instant, from: Side, packet: &Bytes) -> ObserverStatus;

    /// True if the observer wants the verdict of `_to` on this packet.
    fn follows(&self, _to: Side, _packet: &Bytes) -> bool {
        false
    }

    /// Called with a host's verdict on a packet.
    fn on_taken(&mut self, _packet: &Bytes, _ruling: PacketVerdict) {}
}

/// Status of an observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ObserverStatus {
    Yes,
    No,
}

impl Scene {
    /// Runs the scene to its end, or until the observer has seen enough.
    pub(super) fn play(
        &self,
        onlooker: &mut dyn Observer,
        go_on: GoOn<'_>,
    ) -> Result<CaseRun, String> {
        let mut hosts = Hosts::new(self).map_err(|error| error.to_string())?;
        let mut moments = Vec::new();
        let mut enough = hosts.wake_both(onlooker);
        for step in 0_u64.. {
            if hosts.near.model().is_done() || enough == ObserverStatus::Yes {
                break;
            }
            if step.is_multiple_of(STEPS) && !go_on() {
                return Err("interrupted".into());
            }
            let next = hosts.next_deadline().ok_or("nothing is due, and the client is not done")?;
            while let Some(at) = next_moment(&moments).filter(|at| *at <= next) {
                moments.push(hosts.moment(at));
            }
            enough = hosts.step(next, onlooker);
        }
        let runs = hosts.near.model().finished().to_vec();
        let counters =
            [hosts.near.shard(), hosts.far.shard()].map(|shard| shard.counters().clone());
        Ok(CaseRun { runs, moments, counters })
    }
}

/// Time of the next look at both hosts.
fn next_moment(moments: &[Moment]) -> Option<Instant> {
    Some(Instant::ZERO + Duration::from_secs(moments.len() as u64))
}

/// The two hosts, and the links between them.
struct Hosts {
    near: Station<Runs<Shard>>,
    far: Station<HttpServer<FixedBody>>,
    up: Link,
    down: Link,
    now: Instant,
}

/// A host with a model on it.
struct Station<M> {
    side: Side,
    host: Host<Driven<M>>,
    /// Latest time of its next call. Only a call changes it, so it is computed once after each:
    /// asking the shard, the model and the links at every step took a quarter of a case's time.
    due: Option<Instant>,
    /// Frames that arrived, for one call; kept for their memory.
    arrived: Vec<Bytes>,
}

/// A model on a host.
struct Driven<M>(M);

impl<M: Model<Shard>> Application for Driven<M> {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        while self.0.poll(shard, now, BUDGET) {}
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.0.next_deadline()
    }
}

impl Hosts {
    fn new(scene: &Scene) -> Result<Self, ConfigError> {
        let config = PairConfig {
            tunables: scene.rules.clone(),
            mtu: [scene.link.mtu; 2],
            seed: scene.seed,
            checks: Checks::Nothing,
            ..PairConfig::default()
        };
        let target = server_at(Family::V4, PORT);
        let client = Runs::new(LoadPlan { target, ..scene.load.clone() }, scene.repeat);
        let server = HttpServer::new(FixedBody::new(BODY), scene.limits).with_pace(scene.pace);
        let mut far = Station::new(Side::Server, pair::shard(&config, 1)?, server);
        // A new host has room for a listener.
        let _ = far.host.shard.listen(target, BACKLOG);
        Ok(Self {
            near: Station::new(Side::Client, pair::shard(&config, 0)?, client),
            far,
            up: Link::new(scene.link.clone(), scene.seed ^ UP),
            down: Link::new(scene.link.back(), scene.seed ^ DOWN),
            now: Instant::ZERO,
        })
    }

    fn next_deadline(&self) -> Option<Instant> {
        let (up, down) = (self.up.next_arrival(), self.down.next_arrival());
        Instant::earliest([self.near.due, self.far.due, up, down])
    }

    fn wake_both(&mut self, onlooker: &mut dyn Observer) -> ObserverStatus {
        let Self { near, far, up, down, now } = self;
        let first = near.wake(*now, [down, up], onlooker);
        let second = far.wake(*now, [up, down], onlooker);
        first.or(second)
    }

    /// Runs the events due at `next`.
    fn step(&mut self, next: Instant, onlooker: &mut dyn Observer) -> ObserverStatus {
        self.now = self.now.max(next);
        let Self { near, far, up, down, now } = self;
        let mut enough = ObserverStatus::No;
        if near.is_due(*now, down) {
            enough = enough.or(near.wake(*now, [&mut *down, &mut *up], onlooker));
        }
        if far.is_due(*now, up) {
            enough = enough.or(far.wake(*now, [up, down], onlooker));
        }
        enough
    }

    /// State of both hosts at this moment.
    fn moment(&self, at: Instant) -> Moment {
        let [client, server] = [self.near.shard(), self.far.shard()];
        let census = client.census();
        Moment {
            at,
            answered: self.far.model().statistics().requests,
            time_wait: [census.time_wait, server.census().time_wait].map(|count| count as u64),
            ports_in_use: (census.connections + census.time_wait) as u64,
            syns_repeated: client.counters().syn_retrans,
            repeated: [client, server].map(|host| host.counters().retrans_segs).iter().sum(),
        }
    }
}

impl<M: Model<Shard>> Station<M> {
    fn new(side: Side, shard: Shard, model: M) -> Self {
        let host = Host::new(shard, Driven(model));
        Self { side, host, due: None, arrived: Vec::new() }
    }

    const fn model(&self) -> &M {
        &self.host.application.0
    }

    const fn shard(&self) -> &Shard {
        &self.host.shard
    }

    /// True if it has work, or a frame on this link.
    fn is_due(&self, now: Instant, inward: &Link) -> bool {
        Instant::earliest([self.due, inward.next_arrival()]).is_some_and(|due| due <= now)
    }

    /// Receives frames, does work that is due, and sends.
    fn wake(
        &mut self,
        now: Instant,
        [inward, outward]: [&mut Link; 2],
        onlooker: &mut dyn Observer,
    ) -> ObserverStatus {
        self.receive(now, inward, onlooker);
        self.host.act(now);
        let (side, mut enough) = (self.side, ObserverStatus::No);
        self.host.send(|segment| {
            cut(segment, |frame| {
                enough = enough.or(onlooker.on_sent(now, side, &frame));
                outward.push_frame(now, frame);
            });
        });
        self.due = self.host.next_deadline();
        enough
    }

    /// Receives the frames that have arrived.
    fn receive(&mut self, now: Instant, inward: &mut Link, onlooker: &mut dyn Observer) {
        self.arrived.extend(iter::from_fn(|| inward.pop(now)));
        let mut rest = self.arrived.as_slice();
        // An observed packet is processed separately, so that the counters that rise belong to it.
        while let Some(place) = rest.iter().position(|frame| onlooker.follows(self.side, frame)) {
            self.host.take(now, &rest[..place]);
            let ruling = PacketVerdict::of(&rest[place], now, &mut self.host.shard);
            onlooker.on_taken(&rest[place], ruling);
            rest = &rest[place + 1..];
        }
        self.host.take(now, rest);
        self.arrived.clear();
    }
}

impl Side {
    /// The other host.
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

impl ObserverStatus {
    fn or(self, other: Self) -> Self {
        if self == Self::Yes { self } else { other }
    }
}

/// Port of the server, and the length of its accept queue.
const PORT: u16 = 80;
const BACKLOG: u32 = 4_096;
/// Bytes of each response: a small page.
const BODY: u64 = 128;
/// Events that an application handles at a time.
const BUDGET: usize = 256;
/// Steps after which the run asks whether to continue.
const STEPS: u64 = 4_096;
/// Separates the random numbers of the two directions.
const UP: u64 = 0x5555_5555_5555_5555;
const DOWN: u64 = 0xaaaa_aaaa_aaaa_aaaa;
