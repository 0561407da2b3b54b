//! A hub inside the process: hosts joined to it by a link each way, and packets forwarded by their
//! destination address.
//!
//! It has no queue: the links have rates and delays. A packet enters the link to its destination at the
//! nanosecond at which it arrived at the hub, however late the hub is polled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::{LinkConfig, LinkOutcome};
use whimbrel_wire::{Address, IpHeader};

use super::handle::ReadTime;
use super::line::LineObserver;
use super::{Line, LinkHandle, MemEnd};
use crate::{Clock, Waker};

/// A hub, which a task polls.
pub struct Hub {
    clock: Clock,
    now: ReadTime,
    waker: Waker,
    state: Mutex<State>,
    observer: Arc<dyn HubObserver>,
}

/// A place at a [`Hub`] for a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HubPort(usize);

impl HubPort {
    /// Returns the number of the place, from 0 on.
    pub const fn index(self) -> usize {
        self.0
    }
}

/// Links between a host and a [`Hub`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HubLinks {
    /// From the host to the hub.
    pub up: LinkHandle,
    /// From the hub to the host.
    pub down: LinkHandle,
}

/// Observes all packets of a hub. It runs under locks, so it must be short, and use no handle.
pub trait HubObserver: fmt::Debug + Send + Sync {
    /// The host at `port` sent a packet. The outcome of the link to the hub is not known while that is
    /// held.
    fn on_sent(&self, at: Instant, port: HubPort, packet: &Bytes, outcome: Option<LinkOutcome>);
    /// The packet arrived at the host at `port`.
    fn on_arrived(&self, at: Instant, port: HubPort, packet: &Bytes);
    /// The hub, or the link from it to a host, lost a packet.
    fn on_lost(&self, at: Instant, packet: &Bytes, reason: HubLoss);
}

/// Reason why a packet went no further than the hub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HubLoss {
    /// No host has its destination address, or it is no IP packet.
    NoHost,
    /// The hub was told to carry no packets between these hosts.
    Partitioned,
    /// The link to its destination lost it.
    Link(LinkOutcome),
}

/// Counters of a [`Hub`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct HubCounters {
    /// Packets put on the link to their destination, which may lose them.
    pub forwarded: u64,
    /// Packets dropped because no host has their destination address.
    pub no_host: u64,
    /// Packets dropped between hosts that were parted.
    pub partitioned: u64,
}

#[derive(Default, Debug)]
struct State {
    links: Vec<HubLinks>,
    ports: BTreeMap<Address, usize>,
    /// Directions in which no packet passes: from, to.
    blocked: BTreeSet<(usize, usize)>,
    counters: HubCounters,
}

/// Observer of a link: which host's, and in which direction.
#[derive(Debug)]
enum Watched {
    Up(Arc<dyn HubObserver>, HubPort),
    Down(Arc<dyn HubObserver>, HubPort),
}

impl Hub {
    /// Creates a hub without hosts, with the time of `clock`. `now` reads it where `clock` may not be
    /// right, for handles of links: outside of the runtime whose time it is.
    ///
    /// # Errors
    ///
    /// The system gives no descriptor.
    pub fn new(
        clock: Clock,
        now: impl Fn() -> Instant + Send + Sync + 'static,
        observer: Arc<dyn HubObserver>,
    ) -> io::Result<Self> {
        let (now, waker) = (Arc::new(now), Waker::new()?);
        Ok(Self { clock, now, waker, state: Mutex::default(), observer })
    }

    /// Adds a place for a host with these addresses. `up` describes the link from the host to the hub,
    /// `down` the other. The same `seed` repeats the same losses.
    pub fn add(&self, addresses: &[Address], [up, down]: [LinkConfig; 2], seed: u64) -> HubPort {
        let [up, down] = [(up, seed), (down, !seed)].map(|(config, seed)| LinkHandle {
            line: Arc::new(Line::new(config, seed)),
            now: Arc::clone(&self.now),
        });
        up.line.open(slice::from_ref(&self.waker));
        let mut state = self.lock();
        let port = state.links.len();
        let observer = || Arc::clone(&self.observer);
        up.line.observe(Box::new(Watched::Up(observer(), HubPort(port))));
        down.line.observe(Box::new(Watched::Down(observer(), HubPort(port))));
        up.unplug();
        down.unplug();
        state.links.push(HubLinks { up, down });
        state.ports.extend(addresses.iter().map(|address| (*address, port)));
        HubPort(port)
    }

    /// Connects the host's place and returns the end of its wire, for a new stack. `None` if there is
    /// no such place.
    pub fn plug(&self, port: HubPort) -> Option<MemEnd> {
        let HubLinks { up, down } = self.links(port)?;
        up.plug();
        down.plug();
        let clock = Arc::new(OnceLock::from(self.clock));
        Some(MemEnd { clock, inward: down.line, outward: up.line })
    }

    /// Disconnects the host's place. Packets on its links are lost, and new ones too.
    pub fn unplug(&self, port: HubPort) {
        if let Some(HubLinks { up, down }) = self.links(port) {
            up.unplug();
            down.unplug();
        }
    }

    /// Returns the links of a place; `None` if there is no such place.
    pub fn links(&self, port: HubPort) -> Option<HubLinks> {
        self.lock().links.get(port.0).cloned()
    }

    /// Drops packets from one host to another from now on. Those on the link to the latter arrive.
    pub fn block(&self, from: HubPort, to: HubPort) {
        self.lock().blocked.insert((from.0, to.0));
    }

    /// Forwards packets from one host to another again.
    pub fn unblock(&self, from: HubPort, to: HubPort) {
        self.lock().blocked.remove(&(from.0, to.0));
    }

    /// Returns the counters.
    pub fn counters(&self) -> HubCounters {
        self.lock().counters
    }

    /// Forwards packets that have arrived, within a budget. Returns the time of the next arrival, which
    /// may have passed. New packets wake `task`, which is the same at each call.
    pub fn poll(&self, task: &task::Waker) -> Option<Instant> {
        self.waker.set_task(task);
        self.waker.retract();
        self.forward(self.clock.now());
        self.waker.announce();
        self.lock().links.iter().filter_map(HubLinks::next_arrival).min()
    }

    /// Forwards arrived packets in order of their arrival.
    fn forward(&self, now: Instant) {
        let due = |(port, links): (usize, &HubLinks)| {
            links.next_arrival().filter(|at| *at <= now).map(|at| (at, port))
        };
        let mut arrivals: BTreeSet<_> = {
            let state = self.lock();
            state.links.iter().enumerate().filter_map(due).collect()
        };
        for _ in 0..BUDGET {
            let Some((_, port)) = arrivals.pop_first() else { return };
            let Some(links) = self.links(HubPort(port)) else { return };
            if let Some((at, packet)) = links.up.line.pop_first(now) {
                self.forward_packet(at, port, packet);
            }
            arrivals.extend(due((port, &links)));
        }
    }

    /// Puts a packet that came from `port` on the link to its destination.
    fn forward_packet(&self, at: Instant, port: usize, packet: Bytes) {
        let routed = self.lock().route(port, &packet);
        match routed {
            // Without the lock: a rule of the link may use this hub.
            Ok(down) => down.line.push(at, std::iter::once(packet)),
            Err(reason) => self.observer.on_lost(at, &packet, reason),
        }
    }

    /// Locks the state. Nothing panics under the lock, except for an observer.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("state", &*self.lock()).finish_non_exhaustive()
    }
}

impl HubLinks {
    fn next_arrival(&self) -> Option<Instant> {
        self.up.line.next_arrival(0)
    }
}

impl State {
    /// Returns the link to the destination of a packet that came from `port`.
    fn route(&mut self, port: usize, packet: &[u8]) -> Result<LinkHandle, HubLoss> {
        let destination = IpHeader::parse(packet).ok().map(|(header, _)| header.dst);
        let to = destination.and_then(|destination| self.ports.get(&destination));
        let Some((to, links)) = to.and_then(|to| Some((*to, self.links.get(*to)?))) else {
            self.counters.no_host += 1;
            return Err(HubLoss::NoHost);
        };
        if self.blocked.contains(&(port, to)) {
            self.counters.partitioned += 1;
            return Err(HubLoss::Partitioned);
        }
        self.counters.forwarded += 1;
        Ok(links.down.clone())
    }
}

impl LineObserver for Watched {
    fn on_sent(&self, at: Instant, packet: &Bytes, outcome: Option<LinkOutcome>) {
        match self {
            Self::Up(observer, port) => observer.on_sent(at, *port, packet, outcome),
            Self::Down(observer, _) => {
                if let Some(outcome) = outcome.filter(|outcome| outcome.lost.is_some()) {
                    observer.on_lost(at, packet, HubLoss::Link(outcome));
                }
            }
        }
    }

    fn on_arrived(&self, at: Instant, packet: &Bytes) {
        if let Self::Down(observer, port) = self {
            observer.on_arrived(at, *port, packet);
        }
    }
}

/// Packets forwarded in one poll.
const BUDGET: usize = 256;

#[cfg(test)]
mod tests;
