//! Short connections between two shards in one thread: connect, request, response, close.
//!
//! Time is virtual. Frames are copied from one shard's batch into buffers lent to the other, as a
//! device would; that copy, the applications and this loop are part of what is measured.

use std::ops::RangeInclusive;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, Event, Handle, InterfaceAddress, ListenerId, Medium, Recv, RxFrame, Shard,
    ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

use crate::Failure;
use crate::case::{REQUEST, RESPONSE, Tally, client_addresses};
use crate::peers::frames::Kept;

/// Work to do.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Connections to measure, at least 1.
    pub(crate) connections: u32,
    /// Number of concurrent ones, at least 1.
    pub(crate) at_a_time: u32,
    /// Records that are in TIME-WAIT before, and stay as many, at most [`MOST_WAITING`].
    pub(crate) waiting: u32,
    /// Options of both hosts.
    pub(crate) options: Options,
    /// Ports of a client.
    pub(crate) ports: RangeInclusive<u16>,
}

/// Options of both hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Options {
    /// The defaults: timestamps, SACK, window scaling.
    Default,
    /// Window scaling alone.
    Off,
}

/// Two hosts and what is under way between them.
pub(crate) struct Churn {
    pub(crate) now: Instant,
    pub(crate) client: Shard,
    pub(crate) server: Shard,
    listener: ListenerId,
    /// The client speaks from these in turn: each has 64,512 ports towards the server.
    sources: Vec<Address>,
    wires: Wires,
    at_a_time: u32,
    /// Virtual time that one exchange in both directions takes.
    round: Duration,
    /// Virtual time that passes with each connection.
    pace: Duration,
    opened: u64,
    tally: Tally,
}

/// A batch between the hosts, and frames as a device would lend them: linear, in buffers that are
/// used again and again.
pub(crate) struct Wires {
    batch: TxBatch,
    buffers: Vec<Vec<u8>>,
    /// Number of buffers with a frame.
    count: usize,
    /// Reused storage for a device's frames: empty between two bursts.
    lent: Vec<RxFrame<'static>>,
}

impl Churn {
    /// Two hosts that know nothing of each other yet.
    pub(crate) fn new(work: &Work) -> Result<Self, Failure> {
        let sources: Vec<_> =
            (0..client_addresses(work.waiting)).map(|index| address(CLIENTS + index)).collect();
        // With each connection as much time passes as makes one record expire.
        let msl = (PACE * work.waiting / 2).max(Duration::from_millis(1));
        let mut server = shard(vec![address(SERVER)], msl, work)?;
        Ok(Self {
            now: Instant::ZERO,
            client: shard(sources.clone(), msl, work)?,
            listener: server.listen(Endpoint::new(address(SERVER), 80), BACKLOG)?,
            server,
            sources,
            wires: Wires::new(),
            at_a_time: work.at_a_time,
            round: if work.waiting > 0 { Duration::from_micros(1) } else { ROUND },
            pace: if work.waiting > 0 { PACE } else { Duration::ZERO },
            opened: 0,
            tally: Tally::default(),
        })
    }

    /// Records in TIME-WAIT at the server.
    pub(crate) fn waiting(&self) -> usize {
        self.server.census().time_wait
    }

    /// Work of the applications so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// So many connections from the first SYN to the end.
    pub(crate) fn run(&mut self, connections: u32) -> Result<(), Failure> {
        let goal = self.tally.connections + u64::from(connections);
        while self.tally.connections < goal {
            let before = self.tally.connections;
            while self.opened - before < u64::from(self.at_a_time) && self.opened < goal {
                self.connect()?;
            }
            let sent = self.wires.carry(self.now, &mut self.client, &mut self.server);
            let answered = self.wires.carry(self.now, &mut self.server, &mut self.client);
            self.serve()?;
            self.drive()?;
            if sent + answered == 0 {
                // No host has a frame to send: advance to the next timer.
                let deadlines = [self.client.next_deadline(), self.server.next_deadline()];
                let next = deadlines.into_iter().flatten().min();
                self.now = self.now.max(next.ok_or("both hosts wait for nothing")?);
            }
            while self.client.advance(self.now, BATCH) | self.server.advance(self.now, BATCH) {}
            let done = self.tally.connections - before;
            self.now = self.now + self.round + self.pace * done as u32;
        }
        Ok(())
    }

    /// Opens so many connections more, on which nothing is sent. Returns the client's ends.
    pub(crate) fn open_idle(
        &mut self,
        count: u32,
        mut kept: Option<&mut Kept>,
    ) -> Result<Vec<Handle>, Failure> {
        for _ in 0..count {
            self.connect()?;
        }
        let (mut connected, mut accepted) = (Vec::new(), 0);
        while connected.len() < count as usize || accepted < count {
            let sent = self.wires.carry(self.now, &mut self.client, &mut self.server);
            if let Some(kept) = &mut kept {
                self.wires.buffers.iter().take(sent).for_each(|packet| kept.keep(packet));
            }
            let answered = self.wires.carry(self.now, &mut self.server, &mut self.client);
            if sent + answered == 0 {
                return Err(format!("{} of {count} connections are open", connected.len()).into());
            }
            while let Some(event) = self.client.poll_event() {
                if let Event::Connected(handle) = event {
                    connected.push(handle);
                }
            }
            while self.server.poll_event().is_some() {}
            while self.server.accept(self.listener).is_some() {
                accepted += 1;
            }
        }
        Ok(connected)
    }

    /// Carries what each host has to send to the other.
    pub(crate) fn carry(&mut self) {
        self.wires.carry(self.now, &mut self.client, &mut self.server);
        self.wires.carry(self.now, &mut self.server, &mut self.client);
    }

    /// Drops what either host has to send.
    pub(crate) fn discard(&mut self) {
        for shard in [&mut self.client, &mut self.server] {
            loop {
                shard.tx(&mut self.wires.batch);
                let count = self.wires.batch.pending().len();
                if count == 0 {
                    break;
                }
                self.wires.batch.consume(count);
            }
        }
    }

    fn connect(&mut self) -> Result<(), Failure> {
        let source = self.sources[self.opened as usize % self.sources.len()];
        let local = (self.sources.len() > 1).then(|| Endpoint::new(source, 0));
        self.client.connect(Endpoint::new(address(SERVER), 80), local)?;
        self.opened += 1;
        Ok(())
    }

    fn serve(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Accepted(_) => while self.server.accept(self.listener).is_some() {},
                Event::Readable(handle) => {
                    if let Recv::Data(request) = self.server.recv(handle) {
                        check(&request, &REQUEST)?;
                        self.tally.up += request.len() as u64;
                        self.server.send(handle, &mut Bytes::from_static(&RESPONSE))?;
                        self.server.close(handle);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn drive(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connected(handle) => {
                    self.client.send(handle, &mut Bytes::from_static(&REQUEST))?;
                }
                Event::Readable(handle) => self.read(handle)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn read(&mut self, handle: Handle) -> Result<(), Failure> {
        loop {
            match self.client.recv(handle) {
                Recv::Data(response) => {
                    check(&response, &RESPONSE)?;
                    self.tally.down += response.len() as u64;
                }
                Recv::End => {
                    self.client.close(handle);
                    self.tally.connections += 1;
                    return Ok(());
                }
                Recv::Pending => return Ok(()),
                other => return Err(format!("a connection ended early: {other:?}").into()),
            }
        }
    }
}

impl Wires {
    pub(crate) fn new() -> Self {
        let buffers = (0..BATCH).map(|_| Vec::with_capacity(usize::from(MTU))).collect();
        Self { batch: TxBatch::new(TX_BATCH), buffers, count: 0, lent: Vec::with_capacity(BATCH) }
    }

    /// Takes what one host has to send to the other; returns how many frames that was.
    pub(crate) fn carry(&mut self, now: Instant, from: &mut Shard, to: &mut Shard) -> usize {
        self.take(now, from);
        self.give(now, to)
    }

    /// Takes what a host has to send.
    pub(crate) fn take(&mut self, now: Instant, from: &mut Shard) {
        from.set_now(now);
        let mut free = self.buffers.iter_mut();
        self.count = 0;
        loop {
            from.tx(&mut self.batch);
            let count = self.batch.drain(|segment| {
                let Some(buffer) = free.next() else { return };
                buffer.clear();
                buffer.extend_from_slice(segment.header());
                for slice in segment.payload.as_slice() {
                    buffer.extend_from_slice(slice);
                }
            });
            self.count += count;
            if count < TX_BATCH || self.count + TX_BATCH > BATCH {
                break;
            }
        }
    }

    /// Gives to a host what was taken; returns how many frames that was.
    #[allow(
        clippy::unnecessary_filter_map,
        reason = "a filter would leave the frames their lifetime"
    )]
    pub(crate) fn give(&mut self, now: Instant, to: &mut Shard) -> usize {
        let count = std::mem::take(&mut self.count);
        let mut lent: Vec<RxFrame<'_>> = std::mem::take(&mut self.lent);
        let frames = self.buffers.iter().take(count);
        lent.extend(frames.map(|frame| RxFrame::new(frame, SegMeta::SINGLE)));
        to.rx(now, &lent);
        lent.clear();
        // What lived as long as the burst and what outlives it are alike: the memory is the same.
        self.lent = lent.into_iter().filter_map(|_| None).collect();
        count
    }
}

fn check(got: &Bytes, wanted: &[u8]) -> Result<(), Failure> {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{} bytes arrived in one piece, not the {} sent", got.len(), wanted.len()).into())
}

/// A host with these addresses that keeps TIME-WAIT for twice this MSL.
pub(crate) fn shard(addresses: Vec<Address>, msl: Duration, work: &Work) -> Result<Shard, Failure> {
    let mut tunables = Tunables::default();
    tunables.set_by_name("net.ipv4.tcp_max_tw_buckets", "100000000")?;
    tunables.set_by_name("max_syn_entries", "100000000")?;
    tunables.set_by_name("max_connections", "100000000")?;
    tunables.set_by_name(
        "net.ipv4.ip_local_port_range",
        &format!("{}-{}", work.ports.start(), work.ports.end()),
    )?;
    tunables.set_by_name("msl", &format!("{}ms", msl.as_millis()))?;
    if work.options == Options::Off {
        tunables.set_by_name("net.ipv4.tcp_timestamps", "off")?;
        tunables.set_by_name("net.ipv4.tcp_sack", "off")?;
    }
    let seed = u64::from(addresses.contains(&address(SERVER)));
    let addresses = addresses.into_iter().map(|addr| InterfaceAddress { addr, prefix_len: 8 });
    let capabilities = Capabilities::plain(Medium::Ip, MTU);
    Ok(Shard::new(ShardConfig {
        tunables,
        secrets: Secrets::from_seed(seed),
        capabilities,
        addresses: addresses.collect(),
        routes: Vec::new(),
    })?)
}

/// The host with this number, in 10.0.0.0/8.
pub(crate) fn address(host: u32) -> Address {
    Address::from_v4_bytes((0x0a00_0000 + host).to_be_bytes())
}

/// The most records in TIME-WAIT to begin with.
pub(crate) const MOST_WAITING: u32 = 10_000_000;

const BATCH: usize = 256;
/// Segments that a host writes before they are copied, as in whimbrel-io's worker.
const TX_BATCH: usize = 16;
const MTU: u16 = 1_500;
/// No connection is refused, however many come at once.
const BACKLOG: u32 = 100_000_000;
/// The server.
pub(crate) const SERVER: u32 = 1;
/// The first client address.
pub(crate) const CLIENTS: u32 = 2;
/// Virtual time that an exchange takes where none are to be in TIME-WAIT.
const ROUND: Duration = Duration::from_micros(50);
/// Virtual time that a connection takes where records in TIME-WAIT are wanted: 10,000,000 are all
/// of 500 s.
const PACE: Duration = Duration::from_micros(50);
