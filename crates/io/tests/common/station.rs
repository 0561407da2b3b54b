//! A stack with its own station that sends to the kernel, and commands that inspect both.

use std::io::Read;
use std::net::{IpAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_io::worker::Ended;
use whimbrel_io::{Activity, Clock, Device, Port, Stop, Waker, WireSpec, Worker, entropy};
use whimbrel_stack::{Event, Handle, Shard, ShardConfig};
use whimbrel_tcp::Tunables;
use whimbrel_wire::Endpoint;

use crate::common::needs;

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
const MIB: usize = 1 << 20;

/// An application that sends a mebibyte to each of its peers.
pub(crate) struct Sender {
    peers: Vec<Endpoint>,
    open: Vec<(Handle, Bytes)>,
    /// Connections closed after all their data.
    pub(crate) closed: usize,
}

impl Sender {
    fn send(&mut self, shard: &mut Shard) {
        for (handle, rest) in &mut self.open {
            if !rest.is_empty() && shard.send(*handle, rest).is_ok() && rest.is_empty() {
                shard.close(*handle);
                self.closed += 1;
            }
        }
    }
}

impl Port for Sender {
    fn drain(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        for peer in self.peers.drain(..) {
            let handle = shard.connect(peer, None).unwrap();
            self.open.push((handle, Bytes::from(vec![7; MIB])));
        }
        Activity::Idle
    }

    fn flush(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        let mut activity = Activity::Idle;
        while let Some(event) = shard.poll_event() {
            activity = Activity::Busy;
            if let Event::Connected(_) | Event::Writable(_) = event {
                self.send(shard);
            }
        }
        activity
    }
}

/// The stack, driven by a thread in the test's namespace.
pub(crate) struct Running<D> {
    pub(crate) thread: JoinHandle<Ended<D, Sender>>,
    stop: Stop,
}

/// Runs the stack that `spec` describes on its device, sending to `peers`.
pub(crate) fn run<D>(spec: &WireSpec, device: D, peers: &[Endpoint]) -> Running<D>
where
    D: Device + Send + 'static,
{
    let shard = Shard::new(ShardConfig {
        tunables: Tunables::default(),
        secrets: entropy::secrets().unwrap(),
        capabilities: device.capabilities(),
        addresses: spec.addresses().to_vec(),
        routes: spec.routes(),
    })
    .unwrap();
    let stop = Stop::new().unwrap();
    let port = Sender { peers: peers.to_vec(), open: Vec::new(), closed: 0 };
    let worker = Worker::new(device, shard, port, Clock::start(), Waker::new().unwrap());
    Running { thread: worker.spawn("station", stop.clone()).unwrap(), stop }
}

impl<D: Device> Running<D> {
    pub(crate) fn stop(self) -> Worker<D, Sender> {
        self.stop.set();
        let (worker, result) = self.thread.join().unwrap();
        result.unwrap();
        let counters = worker.device().counters();
        assert_eq!((counters.rx_malformed, counters.rx_oversized), (0, 0), "{counters:?}");
        worker
    }
}

/// Returns listeners of the kernel for both families, and their endpoints for the stack.
pub(crate) fn listen() -> ([TcpListener; 2], Vec<Endpoint>) {
    let listeners = ["0.0.0.0:0", "[::]:0"].map(|any| TcpListener::bind(any).unwrap());
    let peers = ["10.9.0.1", "fd09::1"].iter().zip(&listeners).map(|(addr, listener)| {
        let addr: IpAddr = addr.parse().unwrap();
        Endpoint::new(addr.into(), listener.local_addr().unwrap().port())
    });
    let peers = peers.collect();
    (listeners, peers)
}

/// Receives the stack's whole data at each of them.
pub(crate) fn receive(listeners: &[TcpListener]) {
    for listener in listeners {
        let (mut stream, from) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert_eq!((received.len(), received.iter().all(|byte| *byte == 7)), (MIB, true));
        assert!(["10.9.0.2", "fd09::2"].contains(&from.ip().to_string().as_str()), "{from}");
    }
}

/// Runs a command line. Returns its output, and whether it succeeded.
pub(crate) fn attempt(line: &str) -> (bool, String) {
    let output = needs::command(line).output().unwrap();
    let text = [output.stdout, output.stderr].map(|out| String::from_utf8_lossy(&out).into_owned());
    (output.status.success(), text.concat())
}

/// Runs a command line, which must succeed. Returns its output.
pub(crate) fn command(line: &str) -> String {
    let (success, text) = attempt(line);
    assert!(success, "{line}: {text}");
    text
}
