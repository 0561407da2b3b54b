//! Datagrams there and back between two hosts in one thread: 64 bytes from each of so many sockets, which
//! the other host compares and returns, and which are compared again. The programs in C and Go follow the
//! same steps.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_stack::udp::{Bind, Local};
use whimbrel_stack::{Event, SendTo, Shard, UdpHandle};
use whimbrel_wire::Endpoint;

use crate::Failure;
use crate::case::{AT_A_TIME, Answer, Case, DATAGRAM, Limits, Measured, PORTS, Tally};
use crate::churn::{CLIENTS, Options, SERVER, Wires, Work, address, shard};
use crate::counts::measured;
use crate::meter::cpu_time;
use crate::peers::SmoltcpEcho;

/// Two hosts, one of which returns what the sockets of the other send.
pub(crate) trait Echo {
    /// Carries until so many more came back.
    fn round_trips(&mut self, count: u64) -> Result<(), Failure>;

    /// Work of the applications so far.
    fn tally(&self) -> Tally;
}

/// Does the case on a peer of this program.
pub(crate) fn answer(name: &str, case: Case, limits: &Limits) -> Result<Answer, Failure> {
    match name {
        "whimbrel" => measure(&mut Whimbrel::new(case.scale)?, case, limits),
        "smoltcp" => measure(&mut SmoltcpEcho::new(case.scale)?, case, limits),
        _ => Err(format!("{name}: no peer of datagrams").into()),
    }
}

fn measure(hosts: &mut impl Echo, case: Case, limits: &Limits) -> Result<Answer, Failure> {
    hosts.round_trips(WARM_UP)?;
    let before = hosts.tally();
    let begun = cpu_time();
    let spent = loop {
        hosts.round_trips(AT_ONCE)?;
        let spent = cpu_time() - begun;
        if spent >= limits.measure {
            break spent;
        }
    };
    let tally = hosts.tally().since(before);
    let value = micros(spent, tally.connections);
    Ok(Answer::Measured(Measured { scale: case.scale.into(), value, tally, ..Measured::default() }))
}

/// Datagrams whose instructions `counts` counts, so many at a time.
#[derive(Clone, Copy)]
pub(crate) struct CountedDatagrams {
    pub(crate) name: &'static str,
    at_a_time: u32,
    /// Instructions there and back, of both hosts, that it may take.
    pub(crate) most: u64,
}

impl CountedDatagrams {
    pub(crate) const ALL: [Self; 2] = [
        Self { name: "datagram-1", at_a_time: 1, most: 4_296 },
        Self { name: "datagram-64", at_a_time: 64, most: 3_618 },
    ];
    /// Round trips that count.
    pub(crate) const TRIPS: u64 = 1_280;

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name == name)
    }

    /// Makes the round trips, and has them counted.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut hosts = Whimbrel::new(self.at_a_time)?;
        hosts.round_trips(WARM_UP)?;
        let mut done = Ok(());
        measured(&mut || done = hosts.round_trips(Self::TRIPS));
        done
    }
}

fn micros(spent: Duration, count: u64) -> f64 {
    spent.as_secs_f64() * 1e6 / count as f64
}

/// Content of the datagram with this number: all differ.
pub(crate) fn content(number: u64) -> [u8; DATAGRAM] {
    let mut bytes = [0; DATAGRAM];
    for (word, place) in (0..).zip(bytes.chunks_exact_mut(8)) {
        place.copy_from_slice(&(number + word).to_be_bytes());
    }
    bytes
}

/// The number of a datagram, each byte of which has to be as it was made.
pub(crate) fn number_of(data: &[u8]) -> Result<u64, Failure> {
    let first = data.first_chunk().ok_or("a datagram without a number")?;
    let number = u64::from_be_bytes(*first);
    if data == content(number) { Ok(number) } else { Err("bytes that were not sent".into()) }
}

/// The exchange between two hosts of Whimbrel, driven directly as shards.
struct Whimbrel {
    now: Instant,
    client: Shard,
    server: Shard,
    wires: Wires,
    /// Last datagram of each client socket, by its place.
    sent: Vec<u64>,
    sockets: Vec<UdpHandle>,
    next: u64,
    tally: Tally,
}

impl Whimbrel {
    fn new(at_a_time: u32) -> Result<Self, Failure> {
        let work = Work {
            connections: 1,
            at_a_time: AT_A_TIME,
            waiting: 0,
            options: Options::Default,
            ports: PORTS,
        };
        let host = |number| shard(vec![address(number)], Duration::from_secs(1), &work);
        let (mut client, mut server) = (host(CLIENTS)?, host(SERVER)?);
        let own = |number, port| Bind::new(Local::Address(address(number)), port);
        server.udp_bind(&own(SERVER, PORT))?;
        let mut sockets = Vec::new();
        for _ in 0..at_a_time {
            let socket = client.udp_bind(&own(CLIENTS, 0))?;
            client.udp_connect(socket, Endpoint::new(address(SERVER), PORT))?;
            sockets.push(socket);
        }
        let mut hosts = Self {
            now: Instant::ZERO,
            client,
            server,
            wires: Wires::new(),
            sent: vec![0; sockets.len()],
            sockets,
            next: 0,
            tally: Tally::default(),
        };
        for place in 0..hosts.sockets.len() {
            hosts.send(place)?;
        }
        Ok(hosts)
    }

    /// The next datagram leaves by the socket with this place.
    fn send(&mut self, place: usize) -> Result<(), Failure> {
        let data = Bytes::copy_from_slice(&content(self.next));
        self.sent[place] = self.next;
        self.next += 1;
        Ok(self.client.udp_send(self.sockets[place], data, &SendTo::CONNECTED)?)
    }

    fn serve(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.server.poll_event() {
            let Event::Udp(socket) = event else { continue };
            while let Some(received) = self.server.udp_recv(socket) {
                number_of(&received.data)?;
                self.tally.up += received.data.len() as u64;
                self.server.udp_send(socket, received.data, &SendTo::peer(received.from))?;
            }
        }
        Ok(())
    }

    fn drive(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.client.poll_event() {
            let Event::Udp(socket) = event else { continue };
            // The sockets were made one after the other, and none was closed.
            let place = socket.index() as usize;
            while let Some(received) = self.client.udp_recv(socket) {
                if number_of(&received.data)? != self.sent[place] {
                    return Err("a datagram that another socket sent".into());
                }
                self.tally.down += received.data.len() as u64;
                self.tally.connections += 1;
                self.send(place)?;
            }
        }
        Ok(())
    }
}

impl Echo for Whimbrel {
    fn round_trips(&mut self, count: u64) -> Result<(), Failure> {
        let goal = self.tally.connections + count;
        while self.tally.connections < goal {
            let before = self.tally.connections;
            self.wires.carry(self.now, &mut self.client, &mut self.server);
            self.serve()?;
            self.wires.carry(self.now, &mut self.server, &mut self.client);
            self.drive()?;
            if self.tally.connections == before {
                return Err("nothing comes back any more".into());
            }
            while self.client.advance(self.now, BUDGET) | self.server.advance(self.now, BUDGET) {}
            self.now = self.now + TURN;
        }
        Ok(())
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

/// Port of the echo server.
pub(crate) const PORT: u16 = 7;
const WARM_UP: u64 = 10_000;
/// Round trips between two looks at the clock; a multiple of how many are under way at a time.
const AT_ONCE: u64 = 6_400;
/// Virtual time of a turn.
const TURN: Duration = Duration::from_micros(20);
const BUDGET: usize = 256;
