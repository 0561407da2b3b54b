//! By ports, which run on the shards' own threads.

use bytes::Bytes;
use whimbrel::{LinkConfig, Shard};
use whimbrel_base::Secrets;
use whimbrel_io::{Activity, Device, MemWire, Port, Stop, Worker};
use whimbrel_stack::{Event, Handle, InterfaceAddress, Recv, ShardConfig};
use whimbrel_tcp::conn::Nagle;
use whimbrel_wire::{Address, Endpoint};

use super::{Begun, Load, MESSAGE, Outcome, PORT, WRITE};

pub(crate) fn run(load: Load) -> Outcome {
    let (first, second) = MemWire::pair(LinkConfig::default(), LinkConfig::default(), 0).unwrap();
    let (clock, stop) = (first.clock(), Stop::new().unwrap());
    let (mut server, mut client) = (shard(&first, SERVER.addr), shard(&second, CLIENT));
    server.listen(SERVER, 1_024).unwrap();
    let (mut connections, mut left) = (1, 0);
    match load {
        Load::PingPong { connections: count } => connections = count,
        Load::Stream { octets } => left = octets,
    }
    for _ in 0..connections {
        let handle = client.connect(SERVER, None).unwrap();
        client.set_nodelay(handle, Nagle::Off);
    }
    let begun = Begun::now();
    let echo = Echo { load, done: 0 };
    let source = Source { load, left, begun, done: 0, stop: stop.clone(), has_ended: false };
    let waker = first.waker();
    let server = Worker::new(first, server, echo, clock, waker).spawn("server", stop.clone());
    let waker = second.waker();
    let client = Worker::new(second, client, source, clock, waker).spawn("client", stop);
    let client = client.unwrap().join().unwrap().0;
    let server = server.unwrap().join().unwrap().0;
    let done = match load {
        Load::PingPong { .. } => client.port().done,
        Load::Stream { .. } => server.port().done,
    };
    begun.outcome(done)
}

/// Sends back what comes, or counts it.
struct Echo {
    load: Load,
    done: u64,
}

impl Port for Echo {
    fn drain(&mut self, _now: whimbrel_base::Instant, _shard: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, _now: whimbrel_base::Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Accepted(listener) => while shard.accept(listener).is_some() {},
                Event::Readable(handle) => self.read(shard, handle),
                _ => {}
            }
        }
        Activity::Idle
    }
}

impl Echo {
    fn read(&mut self, shard: &mut Shard, handle: Handle) {
        loop {
            match shard.recv(handle) {
                Recv::Data(mut octets) => {
                    self.done += octets.len() as u64;
                    if matches!(self.load, Load::PingPong { .. }) {
                        shard.send(handle, &mut octets).unwrap();
                    }
                }
                Recv::End | Recv::Closed(_) => return shard.close(handle),
                Recv::Pending | Recv::Unknown => return,
            }
        }
    }
}

/// Sends, and waits for the echo, or only sends.
struct Source {
    load: Load,
    left: u64,
    begun: Begun,
    done: u64,
    stop: Stop,
    has_ended: bool,
}

impl Port for Source {
    fn drain(&mut self, _now: whimbrel_base::Instant, _shard: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn flush(&mut self, _now: whimbrel_base::Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            match (event, self.load) {
                (Event::Connected(handle), Load::PingPong { .. }) => Self::ping(shard, handle),
                (Event::Readable(handle), Load::PingPong { .. }) => {
                    while let Recv::Data(_) = shard.recv(handle) {}
                    self.done += 1;
                    Self::ping(shard, handle);
                }
                (Event::Connected(handle) | Event::Writable(handle), Load::Stream { .. }) => {
                    self.pour(shard, handle);
                }
                (Event::Closed(..), _) => self.stop.set(),
                _ => {}
            }
        }
        if matches!(self.load, Load::PingPong { .. }) && self.begun.is_over() {
            self.stop.set();
        }
        Activity::Idle
    }
}

impl Source {
    fn ping(shard: &mut Shard, handle: Handle) {
        shard.send(handle, &mut Bytes::from_static(&MESSAGE)).unwrap();
    }

    /// Copies each write, as a task's is.
    fn pour(&mut self, shard: &mut Shard, handle: Handle) {
        while self.left > 0 {
            let mut text = Bytes::copy_from_slice(&TEXT);
            let taken = shard.send(handle, &mut text).unwrap();
            self.left = self.left.saturating_sub(taken as u64);
            if !text.is_empty() {
                return;
            }
        }
        if !self.has_ended {
            self.has_ended = true;
            shard.shutdown(handle);
        }
    }
}

fn shard(wire: &MemWire, addr: Address) -> Shard {
    Shard::new(ShardConfig {
        tunables: whimbrel::Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: wire.capabilities(),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    })
    .unwrap()
}

static TEXT: [u8; WRITE] = [7; WRITE];
const SERVER: Endpoint = Endpoint::new(Address::from_v4_octets([10, 0, 0, 1]), PORT);
const CLIENT: Address = Address::from_v4_octets([10, 0, 0, 2]);
