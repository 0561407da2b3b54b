//! The application of both ends: it acts on events alone, so that one that is missing shows.

use std::collections::BTreeMap;
use std::fmt::Write;

use whimbrel_stack::{Event, Handle, Shard};
use whimbrel_tcp::Instant;
use whimbrel_wire::{Address, Endpoint};

use super::stream::{End, Plan, Stream};
use crate::host::Application;

/// One end of every connection of a scenario.
#[derive(Debug)]
pub struct Oracle {
    role: Role,
    seed: u64,
    /// The most octets of a stream.
    most_octets: u64,
    /// How many connections there will be.
    expected: usize,
    streams: BTreeMap<Handle, Stream>,
    /// Connections opened or accepted, and those let go of.
    begun: usize,
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
    /// It listens, once it is woken for the first time.
    Server { at: Endpoint, listening: bool },
}

impl Oracle {
    /// The client: connections from ports [`FIRST_PORT`] on, begun at these times.
    pub(super) fn client(draw: Draw, from: Address, to: Endpoint, starts: Vec<Instant>) -> Self {
        Self::new(draw, Role::Client { from, to, starts })
    }

    /// The server.
    pub(super) fn server(draw: Draw, at: Endpoint) -> Self {
        Self::new(draw, Role::Server { at, listening: false })
    }

    fn new(draw: Draw, role: Role) -> Self {
        let Draw { seed, most_octets, connections } = draw;
        Self {
            role,
            seed,
            most_octets,
            expected: usize::from(connections),
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
            self.on_event(shard, event)?;
        }
        for stream in self.streams.values_mut() {
            stream.pump(shard, now)?;
        }
        let gone = self.streams.extract_if(.., |_, stream| stream.is_over());
        for (_, stream) in gone {
            self.over += 1;
            self.sent += stream.sent;
            self.verified += stream.received;
        }
        Ok(())
    }

    fn begin(&mut self, shard: &mut Shard, now: Instant) -> Result<(), String> {
        match &mut self.role {
            Role::Server { listening: true, .. } => Ok(()),
            Role::Server { at, listening } => {
                *listening = true;
                shard.listen(*at, BACKLOG).map(|_| ()).map_err(|error| error.to_string())
            }
            Role::Client { from, to, starts } => {
                let (from, to) = (*from, *to);
                while starts.get(self.begun).is_some_and(|start| *start <= now) {
                    let number = self.begun as u16;
                    let bound = Endpoint::new(from, FIRST_PORT + number);
                    let opened = shard.connect(to, Some(bound));
                    let handle = opened.map_err(|error| error.to_string())?;
                    self.begun += 1;
                    let plans = plans(self.seed, number, self.most_octets);
                    self.streams.insert(handle, Stream::new(handle, number, plans));
                }
                Ok(())
            }
        }
    }

    fn on_event(&mut self, shard: &mut Shard, event: Event) -> Result<(), String> {
        let stream = |streams: &mut BTreeMap<Handle, Stream>, handle: Handle, set: fn(&mut Stream)| {
            streams.get_mut(&handle).map(set).ok_or(format!("an event for none of ours: {event:?}"))
        };
        let streams = &mut self.streams;
        match event {
            Event::Accepted(listener) => {
                while let Some(handle) = shard.accept(listener) {
                    self.accepted(shard, handle)?;
                }
                Ok(())
            }
            Event::Connected(handle) => stream(streams, handle, |_| ()),
            Event::Readable(handle) => stream(streams, handle, |stream| stream.readable = true),
            Event::Writable(handle) => stream(streams, handle, |stream| stream.writable = true),
            Event::Closed(handle, reason) => {
                stream(streams, handle, |stream| stream.readable = true)?;
                if let Some(stream) = streams.get_mut(&handle) {
                    stream.closed = Some(reason);
                }
                Ok(())
            }
        }
    }

    fn accepted(&mut self, shard: &Shard, handle: Handle) -> Result<(), String> {
        let flow = shard.flow(handle).ok_or("an accepted connection has no flow")?;
        let number = flow.remote.port.wrapping_sub(FIRST_PORT);
        let [client, server] = plans(self.seed, number, self.most_octets);
        self.begun += 1;
        self.streams.insert(handle, Stream::new(handle, number, [server, client]));
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
        let start = match &self.role {
            Role::Client { starts, .. } => starts.get(self.begun).copied(),
            Role::Server { .. } => None,
        };
        self.streams.values().filter_map(Stream::next_deadline).chain(start).min()
    }

    fn progress(&self) -> u64 {
        let sent: u64 = self.streams.values().map(|stream| stream.sent).sum();
        self.verified() + self.sent + sent + (self.begun + self.over) as u64
    }

    fn is_done(&self) -> bool {
        self.over == self.expected
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn dump(&self) -> String {
        let mut text = format!("  {} of {} connections over\n", self.over, self.expected);
        for stream in self.streams.values() {
            let _ = writeln!(text, "  {stream:?}");
        }
        text
    }
}

/// The plans of the client and of the server.
fn plans(seed: u64, number: u16, most_octets: u64) -> [Plan; 2] {
    [End::Client, End::Server].map(|end| Plan::new(seed, number, end, most_octets))
}

/// What both ends must agree on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    pub(super) seed: u64,
    pub(super) most_octets: u64,
    pub(super) connections: u16,
}

/// The client's port tells the server which connection it is.
const FIRST_PORT: u16 = 10_000;
const BACKLOG: u32 = 64;
