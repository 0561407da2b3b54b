//! Hosts, links, and one virtual time for all of them.
//!
//! The world jumps from one deadline to the next: an hour without events costs nothing. Each step
//! wakes the hosts that have an event at that instant, in the order of their numbers, then puts
//! their packets on the links. No other order exists, so the same hosts, links and seeds make the
//! same run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::{Link, LinkConfig, LinkOutcome, LinkState, Loss, cut};
use whimbrel_stack::Shard;
use whimbrel_wire::{Address, IpHeader};

use crate::capture::Capture;
use crate::host::{Application, Host, HostId};
use crate::router;
use crate::watch::Watch;

/// A world of hosts that all run applications of type `A`.
#[derive(Debug)]
pub struct World<A> {
    now: Instant,
    hosts: Vec<Host<A>>,
    links: Vec<Line>,
    /// Link from a host to an address.
    routes: BTreeMap<(usize, Address), usize>,
    /// Changes of links, by time.
    turns: BTreeMap<Instant, Vec<(LinkId, LinkChange)>>,
    watch: Watch,
    capture: Option<Capture>,
    /// Packets as hosts see them, by host.
    taps: BTreeMap<usize, Vec<TapFrame>>,
    checks: Checks,
    steps: u64,
    /// Sum of all applications' progress when it last grew, and the time of that.
    progress: (u64, Instant),
    /// Packets without a link.
    unrouted: u64,
    /// Digest of all packets and their times.
    digest: u64,
}

/// Change of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkChange {
    /// The link goes down or up.
    State(LinkState),
    /// The link's MTU changes.
    Mtu(u16),
}

/// A link and the host at its far end.
#[derive(Debug)]
struct Line {
    link: Link,
    to: usize,
}

/// A packet as a capture at a host sees it: sent, or arrived.
#[derive(Clone, Debug)]
pub struct TapFrame {
    /// Time at the host.
    pub at: Instant,
    /// True if the host sent it.
    pub is_sent: bool,
    /// The IP packet.
    pub packet: Bytes,
}

/// Name of a link of a world: one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkId(usize);

/// Check of all invariants after each step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checks {
    /// All checks at every step: several times the run's own cost.
    EachStep,
    /// Only the checks of the wire.
    Wire,
    /// No checks, and no digest: for measurements, whose time they would double.
    Nothing,
}

impl Default for Checks {
    fn default() -> Self {
        if cfg!(debug_assertions) { Self::EachStep } else { Self::Wire }
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most steps (default ten million).
    pub steps: u64,
    /// Longest virtual time without progress of any application (default 600 s: longer than any
    /// retransmission time-out after an outage of five minutes).
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 10_000_000, idle: Duration::from_secs(600) }
    }
}

/// A run that did not end: the reason, and the state of everything.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}\n{dump}")]
pub struct StuckRun {
    /// Reason that the run is stuck.
    pub why: String,
    /// State of hosts, applications and links.
    pub dump: String,
}

/// Construction and inspection.
impl<A: Application> World<A> {
    /// An empty world at time zero.
    pub fn new(checks: Checks) -> Self {
        Self {
            now: Instant::ZERO,
            hosts: Vec::new(),
            links: Vec::new(),
            routes: BTreeMap::new(),
            turns: BTreeMap::new(),
            watch: Watch::default(),
            capture: None,
            taps: BTreeMap::new(),
            checks,
            steps: 0,
            progress: (0, Instant::ZERO),
            unrouted: 0,
            digest: 0,
        }
    }

    /// Adds a host that runs this application, and names it.
    pub fn add_host(&mut self, shard: Shard, application: A) -> HostId {
        self.hosts.push(Host::new(shard, application));
        HostId(self.hosts.len() - 1)
    }

    /// Adds one direction of a link: it carries what `from` sends to the addresses of `to`.
    pub fn add_link(&mut self, ends: [HostId; 2], config: LinkConfig, seed: u64) -> LinkId {
        let [HostId(from), HostId(to)] = ends;
        let number = self.links.len();
        self.links.push(Line { link: Link::new(config, seed), to });
        for address in self.hosts[to].shard.addresses().iter() {
            self.routes.insert((from, address.addr), number);
        }
        LinkId(number)
    }

    /// Plans a change of a link.
    pub fn plan(&mut self, at: Instant, link: LinkId, turn: LinkChange) {
        self.turns.entry(at).or_default().push((link, turn));
    }

    /// Measures the waits of frames that come to the queue of a link from `from` on.
    pub fn measure_waits(&mut self, LinkId(number): LinkId, from: Instant) {
        self.links[number].link.measure_waits(from);
    }

    /// Starts a capture of the packets that each host added so far sends.
    pub fn start_capture(&mut self) {
        self.capture = Some(Capture::new(self.hosts.len()));
    }

    /// Returns the capture as a pcapng file, and stops it.
    pub fn take_capture(&mut self) -> Option<Vec<u8>> {
        self.capture.take().map(Capture::into_file)
    }

    /// Starts to keep all packets that a host sends and gets.
    pub fn start_tap(&mut self, HostId(number): HostId) {
        self.taps.insert(number, Vec::new());
    }

    /// Returns the packets that the host has sent and got so far, in the order of time, and keeps no more.
    pub fn take_tap(&mut self, HostId(number): HostId) -> Vec<TapFrame> {
        self.taps.remove(&number).unwrap_or_default()
    }

    /// The virtual time of all hosts and links.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Number of instants with an event.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Packets dropped because no link leads to their receiver.
    pub fn unrouted(&self) -> u64 {
        self.unrouted
    }

    /// Digest of all bytes sent, their senders and times: equal runs have equal ones. 0 without
    /// checks.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// A link of this world, for inspection.
    pub fn link(&self, LinkId(number): LinkId) -> &Link {
        &self.links[number].link
    }

    /// A host's shard and application.
    pub fn host(&self, HostId(number): HostId) -> (&Shard, &A) {
        let host = &self.hosts[number];
        (&host.shard, &host.application)
    }

    /// A host's shard and application, to act on: call [`World::step`] or a run afterwards.
    pub fn host_mut(&mut self, HostId(number): HostId) -> (&mut Shard, &mut A) {
        let host = &mut self.hosts[number];
        (&mut host.shard, &mut host.application)
    }

    /// State of everything, for people.
    pub fn dump(&self) -> String {
        let mut text = format!("at {:?}, step {}:\n", self.now.since(Instant::ZERO), self.steps);
        for (number, host) in self.hosts.iter().enumerate() {
            let (census, deadline) = (host.shard.census(), host.next_deadline());
            let _ = writeln!(text, "host {number}: {census:?}, next deadline {deadline:?}");
            let _ = writeln!(text, "  {:?}", host.shard.counters());
            text.push_str(&host.application.dump());
        }
        for (number, line) in self.links.iter().enumerate() {
            let (state, counters) = (line.link.state(), line.link.counters());
            let _ = writeln!(text, "link {number}: {state:?}, {counters:?}");
        }
        text
    }
}

/// Running.
impl<A: Application> World<A> {
    /// Runs until every application is done.
    pub fn run(&mut self, limits: &Limits) -> Result<(), StuckRun> {
        self.start()?;
        while !self.hosts.iter().all(|host| host.application.is_done()) {
            if !self.step()? {
                return Err(self.stuck("nothing is due and not every application is done"));
            }
            self.check_progress(limits)?;
        }
        Ok(())
    }

    /// Runs until nothing is due any more: all timers ran out, all records expired.
    pub fn run_to_silence(&mut self, limits: &Limits) -> Result<(), StuckRun> {
        self.progress.1 = self.now;
        while self.step()? {
            self.check_progress(limits)?;
        }
        Ok(())
    }

    /// Wakes every host once, at the present time, so that the applications start.
    pub fn start(&mut self) -> Result<(), StuckRun> {
        for host in 0..self.hosts.len() {
            self.wake(host)?;
        }
        self.check()
    }

    /// Advances to the next instant at which something is due. Returns true if there was one.
    pub fn step(&mut self) -> Result<bool, StuckRun> {
        let Some(next) = self.next_deadline() else { return Ok(false) };
        self.now = self.now.max(next);
        self.steps += 1;
        while let Some(turns) = self.turns.first_entry().filter(|turns| *turns.key() <= self.now) {
            for (LinkId(link), turn) in turns.remove() {
                let link = &mut self.links[link].link;
                match turn {
                    LinkChange::State(state) => link.set_state(state),
                    LinkChange::Mtu(mtu) => link.set_mtu(mtu),
                }
            }
        }
        for host in 0..self.hosts.len() {
            let deadlines = self.arrivals(host).chain(self.hosts[host].next_deadline());
            if deadlines.min().is_some_and(|due| due <= self.now) {
                self.wake(host)?;
            }
        }
        self.check()?;
        Ok(true)
    }

    fn next_deadline(&self) -> Option<Instant> {
        let hosts = self.hosts.iter().filter_map(Host::next_deadline);
        let links = self.links.iter().filter_map(|line| line.link.next_arrival());
        let turns = self.turns.keys().next().copied();
        hosts.chain(links).chain(turns).min()
    }

    /// Next arrival on each link into `host`.
    fn arrivals(&self, host: usize) -> impl Iterator<Item = Instant> {
        let into = self.links.iter().filter(move |line| line.to == host);
        into.filter_map(|line| line.link.next_arrival())
    }

    /// Delivers arrived frames to a host, lets it work, and sends its packets.
    fn wake(&mut self, number: usize) -> Result<(), StuckRun> {
        let mut frames = Vec::new();
        for line in self.links.iter_mut().filter(|line| line.to == number) {
            while let Some(frame) = line.link.pop(self.now) {
                frames.push(frame);
            }
        }
        if let Some(tap) = self.taps.get_mut(&number) {
            let arrived = frames.iter().cloned();
            tap.extend(arrived.map(|packet| TapFrame { at: self.now, is_sent: false, packet }));
        }
        self.hosts[number].wake(self.now, &frames);
        if let Some(failure) = self.hosts[number].application.failure() {
            return Err(self.stuck(&format!("host {number}: {failure}")));
        }
        let mut sent = Vec::new();
        self.hosts[number].send(|segment| cut(segment, |frame| sent.push(frame)));
        sent.into_iter().try_for_each(|frame| self.carry(number, frame))
    }

    fn carry(&mut self, from: usize, frame: Bytes) -> Result<(), StuckRun> {
        if self.checks != Checks::Nothing {
            if let Err(broken) = self.watch.on_packet(&frame) {
                return Err(self.stuck(&broken.to_string()));
            }
            self.digest = digest(self.digest ^ self.now.as_nanos() ^ from as u64, &frame);
        }
        let receiver = IpHeader::parse(&frame).ok().map(|(header, _)| header.dst);
        let route = receiver.and_then(|receiver| self.routes.get(&(from, receiver))).copied();
        let fate = route.map(|link| self.links[link].link.push_frame(self.now, frame.clone()));
        self.unrouted += u64::from(fate.is_none());
        if let Some(tap) = self.taps.get_mut(&from) {
            tap.push(TapFrame { at: self.now, is_sent: true, packet: frame.clone() });
        }
        if let Some(capture) = &mut self.capture {
            capture.on_sent(self.now, from, &frame, fate);
        }
        let is_narrow = |link: &usize| frame.len() > self.links[*link].link.config().mtu.into();
        let is_too_long = fate == Some(LinkOutcome::lost(Loss::TooLong));
        // A step of the link's own configuration sends no error.
        if let Some(link) = route.filter(is_narrow).filter(|_| is_too_long) {
            self.send_back(link, &frame);
        }
        Ok(())
    }

    /// Sends the error of the router in front of a narrow link, over the link back to the sender.
    fn send_back(&mut self, link: usize, frame: &[u8]) {
        let Line { link, to } = &self.links[link];
        let Some(error) = router::too_long(frame, link.config().mtu) else { return };
        let sender = IpHeader::parse(frame).ok().map(|(header, _)| header.src);
        let back = sender.and_then(|sender| self.routes.get(&(*to, sender)));
        if let Some(back) = back {
            self.links[*back].link.push_frame(self.now, error);
        }
    }
}

/// Digest of `before` with these bytes (FNV-1a's step, over words).
fn digest(before: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let step =
        |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    words.fold(before.wrapping_add(bytes.len() as u64), step)
}

/// Failures.
impl<A: Application> World<A> {
    fn check(&self) -> Result<(), StuckRun> {
        if self.checks != Checks::EachStep {
            return Ok(());
        }
        for (number, host) in self.hosts.iter().enumerate() {
            let checked = host.shard.check_invariants();
            checked.map_err(|what| self.stuck(&format!("host {number}: {what}")))?;
        }
        Ok(())
    }

    fn check_progress(&mut self, limits: &Limits) -> Result<(), StuckRun> {
        let progress = self.hosts.iter().map(|host| host.application.progress()).sum();
        if progress > self.progress.0 {
            self.progress = (progress, self.now);
        }
        if self.steps > limits.steps {
            return Err(self.stuck(&format!("no end after {} steps", limits.steps)));
        }
        if self.now.since(self.progress.1) > limits.idle {
            return Err(self.stuck(&format!("no progress for {:?}", limits.idle)));
        }
        Ok(())
    }

    fn stuck(&self, why: &str) -> StuckRun {
        StuckRun { why: why.to_owned(), dump: self.dump() }
    }
}

#[cfg(test)]
mod tests;
