//! Ports, which run on the threads of the same shards; the difference shows the cost of tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use whimbrel::{LinkConfig, Shard};
use whimbrel_base::Secrets;
use whimbrel_io::{Activity, Device, MemWire, Port, Stop, Worker};
use whimbrel_stack::{Event, Handle, InterfaceAddress, Recv, ShardConfig};
use whimbrel_tcp::conn::Nagle;
use whimbrel_wire::{Address, Endpoint};

use crate::Failure;
use crate::measure::{Begun, Figures, MESSAGE, TEXT, WARM_UP, Work};

pub(crate) fn run(work: Work, length: Duration) -> Result<Figures, Failure> {
    let (first, second) = MemWire::pair(LinkConfig::default(), LinkConfig::default(), 0)?;
    let (clock, stop) = (first.clock(), Stop::new()?);
    let (mut server, client) = (shard(&first, SERVER.addr)?, shard(&second, CLIENT)?);
    server.listen(SERVER, 1_024)?;
    let done = Arc::new(AtomicU64::new(0));
    let sink = Server { work, received: 0, counts: Arc::clone(&done) };
    let source = Client { work, counts: Arc::clone(&done), is_new: true };
    let waker = first.waker();
    let server = Worker::new(first, server, sink, clock, waker).spawn("server", stop.clone())?;
    let waker = second.waker();
    let client = Worker::new(second, client, source, clock, waker).spawn("client", stop.clone())?;
    thread::sleep(WARM_UP);
    let before = done.load(Ordering::Relaxed);
    let begun = Begun::now(length)?;
    thread::sleep(length);
    let figures = begun.figures(done.load(Ordering::Relaxed) - before);
    stop.set();
    for thread in [server.join().map(|ended| ended.1), client.join().map(|ended| ended.1)] {
        thread.map_err(|_| "a shard panicked")??;
    }
    figures
}

/// Sends back what comes, or counts it.
struct Server {
    work: Work,
    received: u64,
    counts: Arc<AtomicU64>,
}

impl Port for Server {
    fn flush(&mut self, _now: whimbrel_base::Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Accepted(listener) => {
                    while let Some(handle) = shard.accept(listener) {
                        self.read(shard, handle);
                    }
                }
                Event::Readable(handle) => self.read(shard, handle),
                _ => {}
            }
        }
        Activity::Idle
    }
}

impl Server {
    fn read(&mut self, shard: &mut Shard, handle: Handle) {
        loop {
            match shard.recv(handle) {
                Recv::Data(mut bytes) if self.work != Work::Stream => {
                    // A message never exceeds the room there is.
                    let _ = shard.send(handle, &mut bytes);
                }
                Recv::Data(bytes) => {
                    self.received += bytes.len() as u64;
                    self.counts.store(self.received, Ordering::Relaxed);
                }
                Recv::End | Recv::Closed(_) => return shard.close(handle),
                Recv::Pending | Recv::Unknown => return,
            }
        }
    }
}

/// Sends, and waits for the echo, or only sends.
struct Client {
    work: Work,
    counts: Arc<AtomicU64>,
    is_new: bool,
}

impl Port for Client {
    fn drain(&mut self, _now: whimbrel_base::Instant, shard: &mut Shard) -> Activity {
        if std::mem::take(&mut self.is_new) {
            (0..self.work.at_once()).for_each(|_| connect(shard));
            return Activity::Busy;
        }
        Activity::Idle
    }

    fn flush(&mut self, _now: whimbrel_base::Instant, shard: &mut Shard) -> Activity {
        while let Some(event) = shard.poll_event() {
            match (event, self.work) {
                (Event::Connected(handle) | Event::Writable(handle), Work::Stream) => {
                    pour(shard, handle);
                }
                (Event::Connected(handle), _) => send(shard, handle),
                (Event::Readable(handle), Work::Echo(_)) => {
                    while let Recv::Data(_) = shard.recv(handle) {}
                    self.counts.fetch_add(1, Ordering::Relaxed);
                    send(shard, handle);
                }
                (Event::Readable(handle), Work::Short(_)) => {
                    let Recv::Data(_) = shard.recv(handle) else { continue };
                    self.counts.fetch_add(1, Ordering::Relaxed);
                    shard.close(handle);
                    connect(shard);
                }
                _ => {}
            }
        }
        Activity::Idle
    }
}

fn connect(shard: &mut Shard) {
    if let Ok(handle) = shard.connect(SERVER, None) {
        shard.set_nodelay(handle, Nagle::Off);
    }
}

fn send(shard: &mut Shard, handle: Handle) {
    // A message never exceeds the room there is.
    let _ = shard.send(handle, &mut Bytes::from_static(&MESSAGE));
}

/// Copies each write, as a task's is.
fn pour(shard: &mut Shard, handle: Handle) {
    loop {
        let mut text = Bytes::copy_from_slice(&TEXT);
        if shard.send(handle, &mut text).is_err() || !text.is_empty() {
            return;
        }
    }
}

fn shard(wire: &MemWire, addr: Address) -> Result<Shard, Failure> {
    let mut tunables = whimbrel::Tunables::default();
    tunables.set_by_name("ports.first", "1024")?;
    tunables.set_by_name("msl", "1ms")?;
    Ok(Shard::new(ShardConfig {
        tunables,
        secrets: Secrets::from_seed(1),
        capabilities: wire.capabilities(),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    })?)
}

const SERVER: Endpoint = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 1]), 7);
const CLIENT: Address = Address::from_v4_bytes([10, 0, 0, 2]);
