//! Short connections between two shards in one thread: connect, request, response, close.
//!
//! Time is virtual. Frames are copied from one shard's batch into buffers lent to the other, as a
//! device would; that copy, the applications and this loop are part of what is measured.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_stack::{
    Capabilities, Event, Handle, InterfaceAddress, ListenerId, Medium, Recv, RxFrame, Shard,
    ShardConfig, Steering, TxBatch,
};
use whimbrel_tcp::table::Secrets;
use whimbrel_tcp::{Instant, SegMeta, Tunables};
use whimbrel_wire::{Address, Endpoint};

use crate::Failure;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Connections to measure, at least 1.
    pub(crate) connections: u32,
    /// Records that are in TIME-WAIT before, at most [`MOST_WAITING`].
    pub(crate) waiting: u32,
    /// What the two hosts negotiate.
    pub(crate) options: Options,
}

/// What the two hosts negotiate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Options {
    /// What they do by default: timestamps, SACK, window scaling.
    Default,
    /// Window scaling alone.
    Off,
}

/// Two hosts and what is under way between them.
pub(crate) struct Churn {
    now: Instant,
    client: Shard,
    server: Shard,
    listener: ListenerId,
    /// The client speaks from these in turn: each has 64,512 ports towards the server.
    sources: Vec<Address>,
    wires: Wires,
    request: Bytes,
    response: Bytes,
    opened: u64,
    done: u64,
}

/// A batch between the hosts, and frames as a device would lend them: linear, in buffers that are
/// used again and again.
pub(crate) struct Wires {
    batch: TxBatch,
    buffers: Vec<Vec<u8>>,
    /// How many of the buffers hold a frame.
    count: usize,
}

impl Churn {
    /// Two hosts that know nothing of each other yet.
    pub(crate) fn new(work: &Work) -> Result<Self, Failure> {
        let sources: Vec<_> =
            (0..=2 * work.waiting / PORTS).map(|index| address(CLIENTS + index)).collect();
        // Either no record expires while it is measured, or each does at once.
        let msl = if work.waiting > 0 { "255s" } else { "1ms" };
        let mut server = shard(vec![address(SERVER)], msl, work.options)?;
        Ok(Self {
            now: Instant::ZERO,
            client: shard(sources.clone(), msl, work.options)?,
            listener: server.listen(Endpoint::new(address(SERVER), 80), 4096)?,
            server,
            sources,
            wires: Wires::new(),
            request: Bytes::from_static(&[b'q'; 64]),
            response: Bytes::from_static(&[b'r'; 256]),
            opened: 0,
            done: 0,
        })
    }

    /// Records in TIME-WAIT at the server.
    pub(crate) fn waiting(&self) -> usize {
        self.server.census().time_wait
    }

    /// So many connections from the first SYN to the end.
    pub(crate) fn run(&mut self, connections: u32) -> Result<(), Failure> {
        let goal = self.done + u64::from(connections);
        while self.done < goal {
            while self.opened - self.done < AT_A_TIME && self.opened < goal {
                self.connect()?;
            }
            let sent = self.wires.carry(self.now, &mut self.client, &mut self.server);
            let answered = self.wires.carry(self.now, &mut self.server, &mut self.client);
            self.serve()?;
            self.drive()?;
            if sent + answered == 0 {
                // Nobody has anything to say: on to the next timer.
                let deadlines = [self.client.next_deadline(), self.server.next_deadline()];
                let next = deadlines.into_iter().flatten().min();
                self.now = self.now.max(next.ok_or("both hosts wait for nothing")?);
            }
            while self.client.advance(self.now, BATCH) | self.server.advance(self.now, BATCH) {}
            self.now = self.now + ROUND;
        }
        Ok(())
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
                        check_len(&request, &self.request)?;
                        self.server.send(handle, &mut self.response.clone())?;
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
                    self.client.send(handle, &mut self.request.clone())?;
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
                Recv::Data(response) => check_len(&response, &self.response)?,
                Recv::End => {
                    self.client.close(handle);
                    self.done += 1;
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
        Self { batch: TxBatch::new(BATCH), buffers, count: 0 }
    }

    /// Takes what one host has to send to the other; returns how many frames that was.
    pub(crate) fn carry(&mut self, now: Instant, from: &mut Shard, to: &mut Shard) -> usize {
        self.take(now, from);
        self.give(now, to)
    }

    /// Takes what a host has to send.
    pub(crate) fn take(&mut self, now: Instant, from: &mut Shard) {
        from.tell_time(now);
        from.tx(&mut self.batch);
        let pending = self.batch.pending();
        for (segment, buffer) in pending.iter().zip(&mut self.buffers) {
            buffer.clear();
            buffer.extend_from_slice(segment.header());
            for slice in segment.payload.as_slice() {
                buffer.extend_from_slice(slice);
            }
        }
        self.count = pending.len();
        self.batch.consume(self.count);
    }

    /// Gives to a host what was taken; returns how many frames that was.
    pub(crate) fn give(&mut self, now: Instant, to: &mut Shard) -> usize {
        let count = std::mem::take(&mut self.count);
        let frames = self.buffers.iter().take(count);
        let lent: Vec<_> = frames.map(|frame| RxFrame::new(frame, SegMeta::SINGLE)).collect();
        to.rx(now, &lent);
        count
    }
}

fn check_len(got: &Bytes, wanted: &Bytes) -> Result<(), Failure> {
    if got.len() == wanted.len() {
        return Ok(());
    }
    Err(format!("{} octets arrived in one piece, not {}", got.len(), wanted.len()).into())
}

/// A host with these addresses, this MSL, and options as they say.
pub(crate) fn shard(
    addresses: Vec<Address>,
    msl: &str,
    options: Options,
) -> Result<Shard, Failure> {
    let mut tunables = Tunables::default();
    tunables.set_by_name("net.ipv4.tcp_max_tw_buckets", "100000000")?;
    tunables.set_by_name("net.ipv4.ip_local_port_range", "1024-65535")?;
    tunables.set_by_name("msl", msl)?;
    if options == Options::Off {
        tunables.set_by_name("net.ipv4.tcp_timestamps", "off")?;
        tunables.set_by_name("net.ipv4.tcp_sack", "off")?;
    }
    let seed = u64::from(addresses.contains(&address(SERVER)));
    let addresses = addresses.into_iter().map(|addr| InterfaceAddress { addr, prefix_len: 8 });
    let capabilities = Capabilities {
        medium: Medium::Ip,
        mtu: MTU,
        max_super: u32::from(MTU),
        tx_checksum: false,
        steering: Steering::None,
    };
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
    Address::from_v4_octets((0x0a00_0000 + host).to_be_bytes())
}

/// The most records in TIME-WAIT to begin with.
pub(crate) const MOST_WAITING: u32 = 15_000_000;

const AT_A_TIME: u64 = 64;
const BATCH: usize = 256;
const MTU: u16 = 1_500;
/// Ports of one client address.
const PORTS: u32 = 64_512;
/// The server.
pub(crate) const SERVER: u32 = 1;
/// The first client address.
pub(crate) const CLIENTS: u32 = 2;
/// Virtual time that one exchange in both directions takes.
const ROUND: Duration = Duration::from_micros(50);
