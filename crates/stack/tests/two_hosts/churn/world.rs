//! Two hosts, a path between them, and clients that come at a fixed rate. Time goes from one event to
//! the next: what is idle costs nothing.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::shard::ConnectError;
use whimbrel_stack::{
    Capabilities, Event, Handle, InterfaceAddress, ListenerId, Medium, Recv, RxFrame, Shard,
    ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

/// The side that sends the first FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum First {
    Client,
    Server,
}

/// The purpose of each connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChurnPlan {
    pub(crate) first: First,
    /// Bytes that each client sends, and that the server reads before it closes.
    pub(crate) upload: u32,
}

/// Two hosts, and what became of their connections.
pub(crate) struct World {
    pub(crate) hosts: [Shard; 2],
    plan: ChurnPlan,
    now: Instant,
    /// Bursts under way to each, and when they arrive.
    under_way: [VecDeque<(Instant, Vec<Vec<u8>>)>; 2],
    batch: TxBatch,
    listener: ListenerId,
    /// Each connection of the client, by its handle's index.
    attempts: Vec<Attempt>,
    /// When the last connection from each port began.
    begun: Vec<Option<Instant>>,
    /// Bytes still to be read of each connection of the server, by its handle's index.
    unread: Vec<u32>,
    text: Bytes,
    pub(crate) connected: u64,
    /// Connections that waited for more than the path.
    pub(crate) delayed: u64,
    /// The longest that one waited for more than the path.
    pub(crate) longest: Duration,
    pub(crate) most_waiting: [usize; 2],
}

/// A connection on its way.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    begun: Instant,
    /// The connection from this port before it sent more bytes than the ISN clock ran on: its SYN
    /// looks old, if no timestamp speaks for it.
    outran: bool,
    unsent: u32,
}

const CLIENT: Address = Address::from_v4_bytes([10, 0, 0, 1]);
const SERVER: Address = Address::from_v4_bytes([10, 0, 0, 2]);
const ONE_WAY: Duration = Duration::from_millis(1);
/// From SYN to SYN-ACK.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(2);
/// Connections begin at most so often; more than one at once, if they are to be more.
const BEAT: Duration = Duration::from_micros(100);
/// The time in which the ISN clock adds one (`isn.tick`), ns.
const ISN_TICK_NANOS: u64 = 256;

fn host(addr: Address, seed: u64, tunables: &Tunables) -> Shard {
    let config = ShardConfig {
        tunables: tunables.clone(),
        secrets: Secrets::from_seed(seed),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    };
    Shard::new(config).expect("a valid configuration")
}

impl World {
    pub(crate) fn new(plan: ChurnPlan, settings: &[(&str, &str)]) -> Self {
        let mut tunables = Tunables::default();
        // The class of a link: as long as a remote path's.
        for (name, value) in [("msl", "60s")].iter().chain(settings) {
            tunables.set_by_name(name, value).unwrap_or_else(|error| panic!("{error}"));
        }
        let mut hosts = [host(CLIENT, 1, &tunables), host(SERVER, 2, &tunables)];
        let listener = hosts[1].listen(Endpoint::new(SERVER, 80), 4_096).expect("free");
        Self {
            hosts,
            plan,
            now: Instant::ZERO,
            under_way: [VecDeque::new(), VecDeque::new()],
            batch: TxBatch::new(64),
            listener,
            attempts: Vec::new(),
            begun: vec![None; 1 << 16],
            unread: Vec::new(),
            text: vec![b't'; plan.upload as usize].into(),
            connected: 0,
            delayed: 0,
            longest: Duration::ZERO,
            most_waiting: [0; 2],
        }
    }

    /// `count` connections more at `rate` a second, to their ends.
    pub(crate) fn play(&mut self, count: u64, rate: u64) {
        let (begin, goal) = (self.now, self.connected + count);
        let gap = (Duration::from_secs(1) / rate as u32).max(BEAT);
        let (mut opened, mut beats) = (0, 0_u32);
        loop {
            let due = (opened < count).then(|| begin + gap * beats);
            let Some(next) = self.next_event(due) else { break };
            self.now = next.max(self.now);
            self.hosts.iter_mut().for_each(|host| host.set_now(self.now));
            if due.is_some_and(|due| due <= self.now) {
                let passed = (gap * beats).as_nanos() as u64;
                beats += 1;
                while opened < count.min(passed * rate / 1_000_000_000 + 1) {
                    self.connect().unwrap_or_else(|error| panic!("connection {opened}: {error}"));
                    opened += 1;
                }
            }
            self.pass();
        }
        assert_eq!(self.connected, goal);
    }

    /// When something happens next, `due` at the latest; `None` when every connection has ended.
    fn next_event(&self, due: Option<Instant>) -> Option<Instant> {
        let alive = self.hosts.iter().any(|host| host.census().connections > 0);
        let arrivals = self.under_way.iter().filter_map(|bursts| bursts.front());
        let arrival = arrivals.map(|(at, _)| *at).min();
        if !alive && due.is_none() && arrival.is_none() {
            return None;
        }
        let deadlines = self.hosts.iter().filter_map(Shard::next_deadline).min();
        [due, arrival, deadlines].into_iter().flatten().min()
    }

    fn connect(&mut self) -> Result<(), ConnectError> {
        let handle = self.hosts[0].connect(Endpoint::new(SERVER, 80), None)?;
        let flow = self.hosts[0].flow(handle).expect("it was just made");
        let before = self.begun[usize::from(flow.local.port)].replace(self.now);
        let attempt = Attempt {
            begun: self.now,
            outran: before.is_some_and(|before| {
                let ticks = |at: Instant| at.as_nanos() / ISN_TICK_NANOS;
                // SYN and FIN count, too; RCV.NXT itself is not beyond RCV.NXT.
                ticks(self.now) - ticks(before) <= u64::from(self.plan.upload) + 2
            }),
            unsent: self.plan.upload,
        };
        put(&mut self.attempts, handle, attempt);
        Ok(())
    }

    /// Delivers what arrives now and does what is due now.
    fn pass(&mut self) {
        for (host, bursts) in self.hosts.iter_mut().zip(&mut self.under_way) {
            while let Some((_, packets)) = bursts.pop_front_if(|(at, _)| *at <= self.now) {
                let frames: Vec<_> =
                    packets.iter().map(|packet| RxFrame::new(packet, SegMeta::SINGLE)).collect();
                host.rx(self.now, &frames);
            }
            while host.advance(self.now, 256) {}
        }
        self.serve();
        self.consume();
        self.carry();
        let waiting = [0, 1].map(|side: usize| self.hosts[side].census().time_wait);
        self.most_waiting = [0, 1].map(|side| self.most_waiting[side].max(waiting[side]));
    }

    fn carry(&mut self) {
        for side in [0, 1] {
            let mut packets = Vec::new();
            loop {
                let more = self.hosts[side].tx(&mut self.batch);
                self.batch.drain(|segment| packets.push(segment.to_vec()));
                if !more {
                    break;
                }
            }
            if !packets.is_empty() {
                self.under_way[1 - side].push_back((self.now + ONE_WAY, packets));
            }
        }
    }

    fn serve(&mut self) {
        while let Some(event) = self.hosts[1].poll_event() {
            match event {
                Event::Accepted(_) => {
                    while let Some(handle) = self.hosts[1].accept(self.listener) {
                        put(&mut self.unread, handle, self.plan.upload);
                        self.read_upload(handle);
                    }
                }
                Event::Readable(handle) => self.read_upload(handle),
                other => panic!("{other:?}"),
            }
        }
    }

    fn read_upload(&mut self, handle: Handle) {
        let unread = &mut self.unread[handle.index() as usize];
        loop {
            match self.hosts[1].recv(handle) {
                Recv::Data(text) => *unread -= text.len() as u32,
                Recv::Pending if *unread > 0 || self.plan.first == First::Client => return,
                Recv::Pending | Recv::End | Recv::Closed(_) => break,
                Recv::Unknown => return,
            }
        }
        assert_eq!(*unread, 0, "the server closes when all has arrived");
        self.hosts[1].close(handle);
    }

    fn consume(&mut self) {
        while let Some(event) = self.hosts[0].poll_event() {
            match event {
                Event::Connected(handle) => {
                    self.on_connected(handle);
                    self.upload(handle);
                }
                Event::Writable(handle) => self.upload(handle),
                Event::Readable(handle) => close_at_end(&mut self.hosts[0], handle),
                other => panic!("{other:?}"),
            }
        }
    }

    fn on_connected(&mut self, handle: Handle) {
        let attempt = self.attempts[handle.index() as usize];
        let extra = self.now.since(attempt.begun).saturating_sub(ROUND_TRIP);
        self.longest = self.longest.max(extra);
        self.connected += 1;
        self.delayed += u64::from(extra > Duration::ZERO);
        let looked_old = attempt.outran && !self.hosts[0].tunables().timestamps;
        assert_eq!(extra > Duration::ZERO, looked_old, "delayed by {extra:?}: {attempt:?}");
    }

    fn upload(&mut self, handle: Handle) {
        let unsent = &mut self.attempts[handle.index() as usize].unsent;
        let mut text = self.text.slice(self.text.len() - *unsent as usize..);
        if *unsent > 0 {
            *unsent -= self.hosts[0].send(handle, &mut text).expect("open") as u32;
        }
        if *unsent == 0 && self.plan.first == First::Client {
            self.hosts[0].close(handle);
        }
    }

    /// After 2 MSL nothing is left.
    pub(crate) fn end(mut self) {
        for host in &mut self.hosts {
            let end = self.now + Duration::from_secs(121);
            while host.advance(end, 4_096) {}
            let census = host.census();
            let left = [census.connections, census.syn_entries, census.time_wait, census.flows];
            assert_eq!((left, census.timers, census.destinations), ([0; 4], 0, 0));
            host.check_invariants().expect("what must hold");
        }
    }
}

fn close_at_end(host: &mut Shard, handle: Handle) {
    if matches!(host.recv(handle), Recv::End | Recv::Closed(_)) {
        host.close(handle);
    }
}

/// Puts `value` where the handle's index says.
fn put<T: Copy>(values: &mut Vec<T>, handle: Handle, value: T) {
    let index = handle.index() as usize;
    if index >= values.len() {
        values.resize(index + 1, value);
    }
    values[index] = value;
}
