//! The application of both ends. It acts only on events, so that a missing one shows.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_stack::shard::ConnectError;
use whimbrel_stack::{Event, Handle, Shard};
use whimbrel_wire::{Address, Endpoint};

use super::plan::{End, StreamPlan};
use super::shared_plan::{LISTENER_PORT, SharedPlan, SynData};
use super::stream::Stream;
use crate::host::Application;

/// One end of every connection of a scenario.
#[derive(Debug)]
pub struct Oracle {
    end: End,
    shared: SharedPlan,
    /// Connections to open, by time.
    calls: VecDeque<Call>,
    /// Address to listen on, after the first wake-up.
    listens_at: Option<Endpoint>,
    /// Connections accepted, by port.
    accepted: BTreeMap<u16, u16>,
    streams: BTreeMap<Handle, Stream>,
    /// Connections opened or accepted.
    begun: usize,
    /// Number of undisturbed connections that were closed.
    over: usize,
    /// Bytes of finished streams.
    sent: u64,
    verified: u64,
    /// Number of times that urgent text was announced.
    alarms: u64,
    failure: Option<String>,
}

/// A connection to be opened.
#[derive(Clone, Copy, Debug)]
struct Call {
    number: u16,
    at: Instant,
    local: Endpoint,
    remote: Endpoint,
}

impl Oracle {
    /// The client: connections from ports [`FIRST_PORT`] on, begun at these times.
    pub(super) fn client(shared: SharedPlan, hosts: [Address; 2], starts: &[Instant]) -> Self {
        let calls = shared.calls(starts).map(|(number, at, called)| Call {
            number,
            at,
            local: Endpoint::new(hosts[0], FIRST_PORT + shared.slot(number)),
            remote: Endpoint::new(hosts[1], called),
        });
        Self::new(shared, End::Client, calls.collect(), None)
    }

    /// The server: it listens, and connects to clients that do not call its listener.
    pub(super) fn server(shared: SharedPlan, hosts: [Address; 2], starts: &[Instant]) -> Self {
        let crossed = shared.calls(starts).filter(|(number, ..)| shared.is_crossed(*number));
        let calls = crossed.map(|(number, at, called)| Call {
            number,
            at,
            local: Endpoint::new(hosts[1], called),
            remote: Endpoint::new(hosts[0], FIRST_PORT + shared.slot(number)),
        });
        let listens_at = Some(Endpoint::new(hosts[1], LISTENER_PORT));
        Self::new(shared, End::Server, calls.collect(), listens_at)
    }

    fn new(
        shared: SharedPlan,
        end: End,
        calls: VecDeque<Call>,
        listens_at: Option<Endpoint>,
    ) -> Self {
        Self {
            end,
            shared,
            calls,
            listens_at,
            accepted: BTreeMap::new(),
            streams: BTreeMap::new(),
            begun: 0,
            over: 0,
            sent: 0,
            verified: 0,
            alarms: 0,
            failure: None,
        }
    }

    /// Bytes that arrived and were correct.
    pub fn verified(&self) -> u64 {
        self.verified + self.streams.values().map(|stream| stream.received).sum::<u64>()
    }

    /// Number of times that urgent text was announced.
    pub(super) const fn alarms(&self) -> u64 {
        self.alarms
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
        if let Some(at) = self.listens_at.take() {
            let listener = shard.listen(at, BACKLOG).map_err(|error| error.to_string())?;
            if let SynData::Fast { pending } = self.shared.syn_data {
                shard.set_fast_open(listener, pending);
            }
        }
        while let Some(call) = self.next_call().filter(|call| call.at <= now) {
            self.call(shard, call, now)?;
        }
        Ok(())
    }

    /// The next connection to open, once the one before it on its port is over.
    fn next_call(&self) -> Option<Call> {
        let call = *self.calls.front()?;
        let slot = self.shared.slot(call.number);
        let busy = self.streams.values().any(|stream| self.shared.slot(stream.number) == slot);
        (!busy).then_some(call)
    }

    fn call(&mut self, shard: &mut Shard, call: Call, now: Instant) -> Result<(), String> {
        let Call { number, local, remote, .. } = call;
        let plans = self.plans(number);
        let options = &plans[0].options;
        let opened = match self.shared.syn_data {
            SynData::Plain => shard.connect_with(remote, Some(local), options),
            // The SYN carries data written before it leaves.
            SynData::Fast { .. } => {
                shard.connect_fast(remote, Some(local), options, &mut Bytes::new())
            }
        };
        match opened {
            Ok(handle) => {
                self.calls.pop_front();
                self.enter(Stream::new(handle, number, plans), now);
                Ok(())
            }
            Err(ConnectError::InUse { .. }) if self.shared.slots < self.shared.connections => {
                // The earlier connection of this port is in TIME-WAIT, or nearly over.
                let later = now + Duration::from_millis(777);
                self.calls.iter_mut().take(1).for_each(|call| call.at = later);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Plans of this side and of the peer.
    fn plans(&self, number: u16) -> [StreamPlan; 2] {
        let [client, server] = self.shared.plans(number);
        if self.end == End::Client { [client, server] } else { [server, client] }
    }

    fn enter(&mut self, mut stream: Stream, now: Instant) {
        self.begun += 1;
        stream.port_returns = self.shared.slots < self.shared.connections;
        stream.on_event(now);
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
            Event::Connected(handle) => self.note(handle, now).map(|_| ()),
            Event::Readable(handle) => self.note(handle, now).map(|it| it.readable = true),
            Event::Writable(handle) => self.note(handle, now).map(|it| it.writable = true),
            Event::Urgent(handle) => {
                self.alarms += 1;
                self.note(handle, now)?.on_urgent(shard)
            }
            Event::Closed(handle, reason) => self.note(handle, now).map(|it| {
                it.readable = true;
                it.closed = Some(reason);
            }),
            event => Err(format!("an event that the oracle does not know: {event:?}")),
        }
    }

    /// Connection of an event.
    fn note(&mut self, handle: Handle, now: Instant) -> Result<&mut Stream, String> {
        let stream = self.streams.get_mut(&handle).ok_or("an event for none of ours")?;
        stream.on_event(now);
        Ok(stream)
    }

    fn accepted(&mut self, shard: &mut Shard, handle: Handle, now: Instant) -> Result<(), String> {
        let flow = shard.flow(handle).ok_or("an accepted connection has no flow")?;
        let slot = flow.remote.port.wrapping_sub(FIRST_PORT);
        let earlier = self.accepted.entry(slot).or_default();
        let number = slot + *earlier * self.shared.slots;
        *earlier += 1;
        if number >= self.shared.connections && self.shared.syn_data != SynData::Plain {
            // RFC 7413 2.1: a SYN that the network repeated after its connection was over.
            shard.abort(handle);
            return Ok(());
        }
        let plans = self.plans(number);
        shard.set_options(handle, &plans[0].options);
        self.enter(Stream::new(handle, number, plans), now);
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
        let start = self.next_call().map(|call| call.at);
        self.streams.values().filter_map(Stream::next_deadline).chain(start).min()
    }

    fn progress(&self) -> u64 {
        let sent: u64 = self.streams.values().map(|stream| stream.sent).sum();
        self.verified() + self.sent + sent + (self.begun + self.over) as u64
    }

    fn is_done(&self) -> bool {
        self.over == self.shared.undisturbed() && self.streams.is_empty()
    }

    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }

    fn dump(&self) -> String {
        let mut text = format!("  {} of {} connections over\n", self.over, self.shared.connections);
        for stream in self.streams.values() {
            let _ = writeln!(text, "  {stream:?}");
        }
        text
    }
}

/// The client's port identifies the connection to the server.
const FIRST_PORT: u16 = 10_000;
const BACKLOG: u32 = 64;
