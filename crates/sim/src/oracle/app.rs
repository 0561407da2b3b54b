//! The application of both ends: it acts on events alone, so that one that is missing shows.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use whimbrel_stack::shard::ConnectError;
use whimbrel_stack::{Event, Handle, Shard};
use whimbrel_tcp::Instant;
use whimbrel_wire::{Address, Endpoint};

use super::stream::{End, Plan, Stream};
use crate::host::Application;

/// One end of every connection of a scenario.
#[derive(Debug)]
pub struct Oracle {
    role: Role,
    draw: Draw,
    streams: BTreeMap<Handle, Stream>,
    /// Connections opened or accepted.
    begun: usize,
    /// Connections without disturbance that were let go of.
    over: usize,
    /// Octets of the streams that are gone.
    sent: u64,
    verified: u64,
    failure: Option<String>,
}

/// What it does beside sending and receiving.
#[derive(Debug)]
enum Role {
    /// It connects from `from`, one port a connection, each at its time.
    Client { from: Address, to: Endpoint, starts: Vec<Instant> },
    /// It listens, once it is woken for the first time; connections accepted, by port.
    Server { at: Endpoint, listening: bool, accepted: BTreeMap<u16, u16> },
}

impl Oracle {
    /// The client: connections from ports [`FIRST_PORT`] on, begun at these times.
    pub(super) fn client(draw: Draw, from: Address, to: Endpoint, starts: Vec<Instant>) -> Self {
        Self::new(draw, Role::Client { from, to, starts })
    }

    /// The server.
    pub(super) fn server(draw: Draw, at: Endpoint) -> Self {
        Self::new(draw, Role::Server { at, listening: false, accepted: BTreeMap::new() })
    }

    fn new(draw: Draw, role: Role) -> Self {
        Self {
            role,
            draw,
            streams: BTreeMap::new(),
            begun: 0,
            over: 0,
            sent: 0,
            verified: 0,
            failure: None,
        }
    }

    /// Octets that arrived and were right.
    pub fn verified(&self) -> u64 {
        self.verified + self.streams.values().map(|stream| stream.received).sum::<u64>()
    }

    fn act(&mut self, shard: &mut Shard, now: Instant) -> Result<(), String> {
        self.begin(shard, now)?;
        while let Some(event) = shard.poll_event() {
            self.on_event(shard, event, now)?;
        }
        for stream in self.streams.values_mut() {
            stream.pump(shard, now)?;
        }
        let gone = self.streams.extract_if(.., |_, stream| stream.is_over());
        for (_, stream) in gone {
            self.over += usize::from(stream.is_undisturbed());
            self.sent += stream.sent;
            self.verified += stream.received;
        }
        Ok(())
    }

    fn begin(&mut self, shard: &mut Shard, now: Instant) -> Result<(), String> {
        match &mut self.role {
            Role::Server { listening: true, .. } => Ok(()),
            Role::Server { at, listening, .. } => {
                *listening = true;
                shard.listen(*at, BACKLOG).map(|_| ()).map_err(|error| error.to_string())
            }
            Role::Client { .. } => {
                while self.next_start().is_some_and(|start| start <= now) {
                    self.connect(shard, now)?;
                }
                Ok(())
            }
        }
    }

    /// When the next connection begins: not before that which has its port is over.
    fn next_start(&self) -> Option<Instant> {
        let Role::Client { starts, .. } = &self.role else { return None };
        let slot = self.draw.slot(self.begun as u16);
        let busy = self.streams.values().any(|stream| self.draw.slot(stream.number) == slot);
        starts.get(self.begun).copied().filter(|_| !busy)
    }

    fn connect(&mut self, shard: &mut Shard, now: Instant) -> Result<(), String> {
        let Role::Client { from, to, starts } = &mut self.role else { return Ok(()) };
        let number = self.begun as u16;
        let bound = Endpoint::new(*from, FIRST_PORT + self.draw.slot(number));
        match shard.connect(*to, Some(bound)) {
            Ok(handle) => {
                self.begun += 1;
                self.enter(shard, Stream::new(handle, number, self.draw.plans(number)), now);
                Ok(())
            }
            Err(ConnectError::InUse { .. }) if self.draw.slots < self.draw.connections => {
                // The earlier connection of this port is in TIME-WAIT, or not quite over.
                starts[self.begun] = now + Duration::from_millis(777);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn enter(&mut self, shard: &mut Shard, mut stream: Stream, now: Instant) {
        stream.on_event(shard, now);
        self.streams.insert(stream.handle, stream);
    }

    fn on_event(&mut self, shard: &mut Shard, event: Event, now: Instant) -> Result<(), String> {
        match event {
            Event::Accepted(listener) => {
                while let Some(handle) = shard.accept(listener) {
                    self.accepted(shard, handle, now)?;
                }
                Ok(())
            }
            Event::Connected(handle) => self.note(shard, handle, now, |_| ()),
            Event::Readable(handle) => self.note(shard, handle, now, |it| it.readable = true),
            Event::Writable(handle) => self.note(shard, handle, now, |it| it.writable = true),
            Event::Urgent(_) => Err("urgent text that nobody sent".to_owned()),
            Event::Closed(handle, reason) => self.note(shard, handle, now, |it| {
                it.readable = true;
                it.closed = Some(reason);
            }),
        }
    }

    fn note(
        &mut self,
        shard: &mut Shard,
        handle: Handle,
        now: Instant,
        set: impl FnOnce(&mut Stream),
    ) -> Result<(), String> {
        let stream = self.streams.get_mut(&handle).ok_or("an event for none of ours")?;
        set(stream);
        stream.on_event(shard, now);
        Ok(())
    }

    fn accepted(&mut self, shard: &mut Shard, handle: Handle, now: Instant) -> Result<(), String> {
        let flow = shard.flow(handle).ok_or("an accepted connection has no flow")?;
        let Role::Server { accepted, .. } = &mut self.role else { return Ok(()) };
        let slot = flow.remote.port.wrapping_sub(FIRST_PORT);
        let earlier = accepted.entry(slot).or_default();
        let number = slot + *earlier * self.draw.slots;
        *earlier += 1;
        let [client, server] = self.draw.plans(number);
        self.begun += 1;
        self.enter(shard, Stream::new(handle, number, [server, client]), now);
        Ok(())
    }
}

impl Application for Oracle {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        if self.failure.is_none() {
            self.failure = self.act(shard, now).err();
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let start = self.next_start();
        self.streams.values().filter_map(Stream::next_deadline).chain(start).min()
    }

    fn progress(&self) -> u64 {
        let sent: u64 = self.streams.values().map(|stream| stream.sent).sum();
        self.verified() + self.sent + sent + (self.begun + self.over) as u64
    }

    fn is_done(&self) -> bool {
        self.over == self.draw.undisturbed() && self.streams.is_empty()
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn dump(&self) -> String {
        let mut text = format!("  {} of {} connections over\n", self.over, self.draw.connections);
        for stream in self.streams.values() {
            let _ = writeln!(text, "  {stream:?}");
        }
        text
    }
}

/// What both ends must agree on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub(super) seed: u64,
    /// The most octets of a stream.
    pub(super) most_octets: u64,
    pub(super) connections: u16,
    /// How many ports the client has: with fewer than connections, each serves several in turn.
    pub(super) slots: u16,
    pub(super) patience: Patience,
}

/// Whether some applications let go before the streams end. Not where ports are used again: the
/// server counts a port's connections, and one that was given up early it may never have seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Patience {
    Endless,
    Short,
}

impl Draw {
    /// The plans of the client and of the server.
    fn plans(&self, number: u16) -> [Plan; 2] {
        [End::Client, End::Server].map(|end| Plan::new(self, number, end))
    }

    fn slot(&self, number: u16) -> u16 {
        number % self.slots
    }

    /// How many connections both ends see through.
    fn undisturbed(&self) -> usize {
        let patient = |number: &u16| self.plans(*number).iter().all(Plan::is_patient);
        (0..self.connections).filter(patient).count()
    }
}

/// The client's port tells the server which connection it is.
const FIRST_PORT: u16 = 10_000;
const BACKLOG: u32 = 64;
