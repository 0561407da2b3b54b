//! Captures whose cause of trouble is known: examples to judge explanations by.
//!
//! A [`Scene`] is a path and the scripts of some connections, with one cause in it. A label holds if the
//! simulation counted the cause, and the same seed without it is 200 ms and 10 % faster, or succeeds.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_link::{LinkConfig, LinkCounters};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::SocketOptions;

use crate::pair::{Pair, PairConfig};
use crate::world::{Checks, TapFrame};
use script::Talker;
pub use script::{Limits, Side, Talk, Turn};

mod captured;
mod scenes;
mod script;

pub use captured::{Damage, Spot};
pub use scenes::{LABELS, innocent, scene};

/// A path, hosts and connections.
#[derive(Clone, Debug)]
pub struct Scene {
    /// The name of the finding, and its kind behind a colon: `LOSS:policer`. Empty for none.
    pub label: &'static str,
    /// Other findings that are true as well.
    pub also: &'static [&'static str],
    /// From the client to the server, and back.
    pub links: [LinkConfig; 2],
    /// Rules of the client and of the server.
    pub tunables: [Tunables; 2],
    /// Options of the client's sockets, and of the server's.
    pub options: [SocketOptions; 2],
    /// Length of the accept queue; `None`: nothing listens.
    pub backlog: Option<u32>,
    /// Time before which the server accepts nothing.
    pub accepts_from: Duration,
    /// The connections.
    pub talks: Vec<Talk>,
    /// End of the run.
    pub until: Duration,
    /// Seed of keys and losses.
    pub seed: u64,
}

/// The course of a scene.
#[derive(Clone, Debug)]
pub struct Played {
    /// Packets at the client, and at the server.
    pub taps: [Vec<TapFrame>; 2],
    /// When the script of each connection was over at both ends, if it was.
    pub finished: Vec<Option<Duration>>,
    /// The client's port of each connection, where the script says it.
    pub ports: Vec<Option<u16>>,
    /// Limits of the server's sender in each connection whose script was over there.
    pub limits: Vec<Option<Limits>>,
    /// Counters of both links.
    pub links: [LinkCounters; 2],
    /// Delay of the way, for a capture between the hosts.
    pub delay: Duration,
}

impl Scene {
    /// Plays it. An error is a fault of the scene.
    pub fn play(&self) -> Result<Played, String> {
        let config = PairConfig {
            tunables: self.tunables.clone(),
            links: self.links.clone(),
            seed: self.seed,
            checks: Checks::Nothing,
            ..PairConfig::default()
        };
        let mut server = Talker::server(&self.talks, self.options[1], self.backlog);
        server.accept_from(self.accepts_from);
        let client = Talker::client(&self.talks, self.options[0]);
        let pair = Pair::new(&config, [client, server]).map_err(|error| error.to_string())?;
        let Pair { mut world, client, server, up, down } = pair;
        [client, server].into_iter().for_each(|host| world.start_tap(host));
        world.start().map_err(|stuck| stuck.to_string())?;
        let end = Instant::ZERO + self.until;
        while world.now() < end && world.step().map_err(|stuck| stuck.to_string())? {}
        let ends = [client, server].map(|host| world.host(host).1.finished());
        let both = |place: usize| {
            let at = ends.each_ref().map(|end| end.get(place).copied().flatten());
            at[0].zip(at[1]).map(|(client, server)| client.max(server))
        };
        Ok(Played {
            finished: (0..self.talks.len()).map(both).collect(),
            ports: self.talks.iter().map(|talk| talk.port).collect(),
            limits: world.host(server).1.limits(),
            links: [up, down].map(|link| *world.link(link).counters()),
            delay: self.links[0].delay,
            taps: [client, server].map(|host| world.take_tap(host)),
        })
    }
}

impl Played {
    /// True if `without`, the same without the cause, is 200 ms and 10 % faster, or succeeds where this fails.
    pub fn is_slower_than(&self, without: &Self) -> bool {
        let mut pairs = self.finished.iter().zip(&without.finished);
        pairs.any(|(with, without)| match (with, without) {
            (None, Some(_)) => true,
            (Some(with), Some(without)) => {
                let lost = with.saturating_sub(*without);
                lost >= Duration::from_millis(200) && lost * 10 >= *with
            }
            _ => false,
        })
    }
}
