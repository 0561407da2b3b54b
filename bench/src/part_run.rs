//! Short connections part by part: all of a batch go through one part before any enters the next.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_stack::{Event, Handle, ListenerId, Recv, Shard};
use whimbrel_wire::Endpoint;

use crate::Failure;
use crate::case::{AT_A_TIME, PORTS};
use crate::churn::{CLIENTS, Options, SERVER, Wires, Work, address, shard};
use crate::counts::measured;

/// A part of a connection's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The command: a port is chosen, an ISN, a record made.
    Connect,
    /// SYN, SYN-ACK and ACK, up to accept.
    Handshake,
    /// 64 bytes there, 256 back, read on both sides.
    Request,
    /// The server's FIN, and the client's, up to the frame that carries it.
    Close,
    /// The server takes the client's FIN: a record enters TIME-WAIT.
    TimeWait,
    /// The server takes a SYN for a record in TIME-WAIT.
    Reuse,
    /// 2 MSL are over.
    Expiry,
}

impl Part {
    /// Each, with its name.
    pub(crate) const ALL: [(&str, Self); 7] = [
        ("connect", Self::Connect),
        ("handshake", Self::Handshake),
        ("request", Self::Request),
        ("close", Self::Close),
        ("time-wait", Self::TimeWait),
        ("reuse", Self::Reuse),
        ("expiry", Self::Expiry),
    ];

    /// True if a short connection has it, whatever follows.
    pub(crate) const fn is_of_every_connection(self) -> bool {
        match self {
            Self::Connect | Self::Handshake | Self::Request | Self::Close | Self::TimeWait => true,
            Self::Reuse | Self::Expiry => false,
        }
    }

    /// Number of batches through it in a round.
    pub(crate) const fn batches_a_round(self) -> u64 {
        match self {
            Self::Connect | Self::Handshake | Self::Request | Self::Reuse | Self::Expiry => 1,
            Self::Close | Self::TimeWait => 2,
        }
    }
}

/// Two hosts, and the part to be measured.
pub(crate) struct PartRun {
    part: Part,
    measuring: bool,
    now: Instant,
    client: Shard,
    server: Shard,
    listener: ListenerId,
    wires: Wires,
    request: Bytes,
    response: Bytes,
}

/// Both ends of a batch.
struct Batch {
    clients: Vec<Handle>,
    servers: Vec<Handle>,
}

impl PartRun {
    pub(crate) fn new(part: Part, options: Options) -> Result<Self, Failure> {
        let work = Work { connections: 1, at_a_time: AT_A_TIME, waiting: 0, options, ports: PORTS };
        let mut server = shard(vec![address(SERVER)], MSL, &work)?;
        Ok(Self {
            part,
            measuring: false,
            now: Instant::ZERO,
            client: shard(vec![address(CLIENTS)], MSL, &work)?,
            listener: server.listen(Endpoint::new(address(SERVER), 80), 4096)?,
            server,
            wires: Wires::new(),
            request: Bytes::from_static(&[b'q'; 64]),
            response: Bytes::from_static(&[b'r'; 256]),
        })
    }

    /// Rounds until tables and pools have their size, then [`ROUNDS`] that count.
    pub(crate) fn run(&mut self) -> Result<(), Failure> {
        for round in 0..WARM_UP + ROUNDS {
            self.measuring = round >= WARM_UP;
            self.round()?;
        }
        Ok(())
    }

    fn round(&mut self) -> Result<(), Failure> {
        let clients = self.measure(Part::Connect, |it| it.connect(&[None; SIZE]))?;
        let servers = self.measure(Part::Handshake, Self::shake_hands)?;
        let locals: Vec<_> =
            clients.iter().map(|handle| Some(self.client.flow(*handle)?.local)).collect();
        let batch = Batch { clients, servers };
        self.measure(Part::Request, |it| it.ask(&batch))?;
        self.end(batch)?;
        // A tick later, as only a newer timestamp shows that a SYN is new.
        self.pass(Duration::from_millis(2));
        let clients = self.connect(&locals)?;
        self.wires.take(self.now, &mut self.client);
        self.measure(Part::Reuse, |it| it.wires.give(it.now, &mut it.server));
        let servers = self.shake_hands()?;
        self.end(Batch { clients, servers })?;
        self.pass(Duration::from_secs(3));
        self.measure(Part::Expiry, |it| while it.server.advance(it.now, SIZE) {});
        // As a driver does in each turn: otherwise the queue of its timers would grow with each round.
        self.client.advance(self.now, usize::MAX);
        let census = (self.server.census(), self.client.census());
        if (census.0.flows, census.1.flows) != (0, 0) {
            return Err(format!("records are left behind: {census:?}").into());
        }
        Ok(())
    }

    /// Does it, and has it counted if it is what is measured.
    fn measure<T>(&mut self, part: Part, act: impl FnOnce(&mut Self) -> T) -> T {
        if part != self.part || !self.measuring {
            return act(self);
        }
        let (mut act, mut done) = (Some(act), None);
        measured(&mut || done = act.take().map(|act| act(self)));
        done.expect("it was called")
    }

    fn connect(&mut self, locals: &[Option<Endpoint>]) -> Result<Vec<Handle>, Failure> {
        let server = Endpoint::new(address(SERVER), 80);
        let opened = locals.iter().map(|local| self.client.connect(server, *local));
        Ok(opened.collect::<Result<_, _>>()?)
    }

    /// Up to accept, whatever of the SYNs arrived already.
    fn shake_hands(&mut self) -> Result<Vec<Handle>, Failure> {
        let mut servers = Vec::with_capacity(SIZE);
        while self.exchange() > 0 {
            while let Some(handle) = self.server.accept(self.listener) {
                servers.push(handle);
            }
        }
        let connected = self.drain_events();
        if (connected, servers.len()) == (SIZE, SIZE) {
            return Ok(servers);
        }
        Err(format!("{connected} connected, {} accepted, of {SIZE}", servers.len()).into())
    }

    fn ask(&mut self, batch: &Batch) -> Result<(), Failure> {
        for client in &batch.clients {
            self.client.send(*client, &mut self.request.clone())?;
        }
        self.exchange();
        for server in &batch.servers {
            expect(self.server.recv(*server), &self.request)?;
            self.server.send(*server, &mut self.response.clone())?;
        }
        self.exchange();
        for client in &batch.clients {
            expect(self.client.recv(*client), &self.response)?;
        }
        self.drain_events();
        Ok(())
    }

    /// The server closes first, and is left with the records.
    fn end(&mut self, batch: Batch) -> Result<(), Failure> {
        self.measure(Part::Close, |it| {
            batch.servers.iter().for_each(|server| it.server.close(*server));
            it.exchange();
            for client in &batch.clients {
                if it.client.recv(*client) != Recv::End {
                    return Err(Failure::from("the server's FIN did not arrive"));
                }
                it.client.close(*client);
            }
            it.wires.take(it.now, &mut it.client);
            Ok(())
        })?;
        self.measure(Part::TimeWait, |it| it.wires.give(it.now, &mut it.server));
        while self.exchange() > 0 {}
        self.drain_events();
        Ok(())
    }

    /// Delivers each host's frames to the other; returns their number.
    fn exchange(&mut self) -> usize {
        let there = self.wires.carry(self.now, &mut self.client, &mut self.server);
        there + self.wires.carry(self.now, &mut self.server, &mut self.client)
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.client.set_now(self.now);
        self.server.set_now(self.now);
    }

    /// Returns how many connections became established at the client.
    fn drain_events(&mut self) -> usize {
        while self.server.poll_event().is_some() {}
        let events = std::iter::from_fn(|| self.client.poll_event());
        events.filter(|event| matches!(event, Event::Connected(_))).count()
    }
}

fn expect(read: Recv, wanted: &Bytes) -> Result<(), Failure> {
    match read {
        Recv::Data(data) if data.len() == wanted.len() => Ok(()),
        other => Err(format!("not {} bytes: {other:?}", wanted.len()).into()),
    }
}

/// Connections of a batch.
pub(crate) const BATCH: u64 = 64;
const SIZE: usize = BATCH as usize;
/// Rounds that count.
pub(crate) const ROUNDS: u64 = 16;
const WARM_UP: u64 = 4;
/// Longer than a round, shorter than what passes before the records are to expire.
const MSL: Duration = Duration::from_secs(1);
