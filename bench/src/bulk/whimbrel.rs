//! Two shards in one thread.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::packet::{RxChecksum, SegMeta, TxSegment};
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, Event, Handle, InterfaceAddress, ListenerId, Medium, Recv, RxFrame, Shard,
    ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::Endpoint;

use super::link::Link;
use super::rooms::Rooms;
use super::text::{PIECE, Source};
use super::{Case, Check, Copies, Pair, Stamps};
use crate::Failure;
use crate::churn::{CLIENTS, SERVER, address};

/// A client that sends, a server that reads, and the connections between them.
pub(crate) struct Whimbrel {
    now: Instant,
    client: Shard,
    server: Shard,
    listener: ListenerId,
    there: Wire,
    back: Wire,
    source: Source,
    copies: Copies,
    senders: Vec<Sender>,
    readers: Vec<Reader>,
    readable: VecDeque<usize>,
    /// Storage for applications' copies: before they write, and as they read.
    written: Rooms,
    read: Vec<u8>,
    carried: u64,
    /// True if the server's application reads.
    reads: bool,
}

struct Sender {
    handle: Handle,
    sent: u64,
    /// Bytes that the stack had no room for yet.
    left: Bytes,
}

struct Reader {
    handle: Handle,
    read: u64,
}

impl Whimbrel {
    /// Two hosts, with all connections of `case` between them.
    pub(crate) fn new(case: Case) -> Result<Self, Failure> {
        let mut server = shard(case, SERVER)?;
        let mut hosts = Self {
            now: Instant::ZERO,
            client: shard(case, CLIENTS)?,
            listener: server.listen(Endpoint::new(address(SERVER), 80), case.flows)?,
            server,
            there: Wire::new(case.link),
            back: Wire::new(case.link),
            source: Source::new(case.copies),
            copies: case.copies,
            senders: Vec::new(),
            readers: Vec::new(),
            readable: VecDeque::new(),
            written: Rooms::default(),
            read: Vec::with_capacity(PIECE),
            carried: 0,
            reads: true,
        };
        for _ in 0..case.flows {
            hosts.client.connect(Endpoint::new(address(SERVER), 80), None)?;
        }
        while hosts.senders.len() < case.flows as usize || hosts.readers.len() < case.flows as usize
        {
            hosts.turn(Check::Every)?;
        }
        Ok(hosts)
    }

    /// The server's application stops reading, until so many bytes of text wait for it.
    pub(crate) fn fill(&mut self, bytes: u64) -> Result<(), Failure> {
        self.reads = false;
        while self.server.memory().text < bytes {
            self.turn(Check::None)?;
        }
        Ok(())
    }

    /// True if the server says that memory can be given back to the system.
    pub(crate) fn take_release(&mut self) -> bool {
        self.server.take_release()
    }

    /// It reads all that waits, and everybody is silent for so long.
    pub(crate) fn empty(&mut self, silence: Duration) -> Result<(), Failure> {
        self.reads = true;
        for index in 0..self.readers.len() {
            self.readable.push_back(index);
        }
        self.serve(Check::None)?;
        let end = self.now + silence;
        while self.now < end {
            let next = self.server.next_deadline().map_or(end, |next| next.clamp(self.now, end));
            self.now = next;
            while self.server.advance(self.now, 64) {}
        }
        Ok(())
    }

    /// A burst there, and one back; then the applications' turns.
    fn turn(&mut self, check: Check) -> Result<(), Failure> {
        let sent = self.there.carry(self.now, &mut self.client, &mut self.server);
        self.serve(check)?;
        let answered = self.back.carry(self.now, &mut self.server, &mut self.client);
        self.drive()?;
        if sent + answered == 0 {
            // No host has a frame to send: advance to the next timer.
            let deadlines = [self.client.next_deadline(), self.server.next_deadline()];
            let next = deadlines.into_iter().flatten().min();
            self.now = self.now.max(next.ok_or("both hosts wait for nothing")?);
        }
        self.now = self.now + TURN;
        while self.client.advance(self.now, 64) | self.server.advance(self.now, 64) {}
        Ok(())
    }

    fn serve(&mut self, check: Check) -> Result<(), Failure> {
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Accepted(_) => {
                    while let Some(handle) = self.server.accept(self.listener) {
                        self.readers.push(Reader { handle, read: 0 });
                    }
                }
                Event::Readable(handle) => {
                    self.readable.extend(self.readers.iter().position(|it| it.handle == handle));
                }
                Event::Closed(_, why) => return Err(format!("it ended: {why:?}").into()),
                _ => {}
            }
        }
        while let Some(index) = self.readable.pop_front().filter(|_| self.reads) {
            let Some(reader) = self.readers.get_mut(index) else { continue };
            while let Recv::Data(text) = self.server.recv(reader.handle) {
                let text: &[u8] = match self.copies {
                    Copies::None => &text,
                    Copies::Both => {
                        self.read.clear();
                        self.read.extend_from_slice(&text);
                        &self.read
                    }
                };
                self.source.check(reader.read, std::hint::black_box(text), check)?;
                reader.read += text.len() as u64;
                self.carried += text.len() as u64;
            }
        }
        Ok(())
    }

    fn drive(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connected(handle) => {
                    self.senders.push(Sender { handle, sent: 0, left: Bytes::new() });
                    self.write(self.senders.len() - 1)?;
                }
                Event::Writable(handle) => {
                    if let Some(index) = self.senders.iter().position(|it| it.handle == handle) {
                        self.write(index)?;
                    }
                }
                Event::Closed(_, why) => return Err(format!("it ended: {why:?}").into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes until there is no more room.
    fn write(&mut self, index: usize) -> Result<(), Failure> {
        let Some(sender) = self.senders.get_mut(index) else { return Ok(()) };
        loop {
            if sender.left.is_empty() {
                let piece = self.source.piece(sender.sent);
                sender.sent += piece.len() as u64;
                sender.left = match self.copies {
                    Copies::None => piece,
                    Copies::Both => self.written.copy(&piece),
                };
            }
            self.client.send(sender.handle, &mut sender.left)?;
            if !sender.left.is_empty() {
                return Ok(());
            }
        }
    }
}

impl Pair for Whimbrel {
    fn carry(&mut self, bytes: u64, check: Check) -> Result<(), Failure> {
        let goal = self.carried + bytes;
        while self.carried < goal {
            self.turn(check)?;
        }
        match self.client.counters().retrans_segs {
            0 => Ok(()),
            again => {
                Err(format!("{again} segments were sent again, over a wire that loses none").into())
            }
        }
    }

    fn carried(&self) -> u64 {
        self.carried
    }

    fn frames(&self) -> u64 {
        self.there.with_text
    }
}

/// Frames of one direction as a device would lend them: linear, in buffers that are used again and again.
struct Wire {
    link: Link,
    batch: TxBatch,
    buffers: Vec<Vec<u8>>,
    metas: Vec<SegMeta>,
    with_text: u64,
}

impl Wire {
    fn new(link: Link) -> Self {
        let buffers = (0..link.burst()).map(|_| Vec::new()).collect();
        Self { link, batch: TxBatch::new(link.burst()), buffers, metas: Vec::new(), with_text: 0 }
    }

    /// Takes a burst of what one host has to send to the other; returns how many frames that was.
    fn carry(&mut self, now: Instant, from: &mut Shard, to: &mut Shard) -> usize {
        from.set_now(now);
        from.tx(&mut self.batch);
        self.metas.clear();
        for (segment, buffer) in self.batch.pending().iter().zip(&mut self.buffers) {
            self.with_text += u64::from(segment.payload.bytes() > 0);
            buffer.clear();
            buffer.extend_from_slice(segment.header());
            for slice in segment.payload.as_slice() {
                buffer.extend_from_slice(slice);
            }
            self.metas.push(self.link.meta(segment));
        }
        self.batch.consume(self.metas.len());
        let frames = self.buffers.iter().zip(&self.metas);
        let lent: Vec<_> = frames.map(|(frame, meta)| RxFrame::new(frame, *meta)).collect();
        to.rx(now, &lent);
        lent.len()
    }
}

impl Link {
    /// Metadata of a segment from the receiver's device.
    fn meta(self, segment: &TxSegment) -> SegMeta {
        let size = u32::from(segment.gso_size);
        let is_super = size > 0 && segment.payload.bytes() > size;
        let segs = if is_super { segment.payload.bytes().div_ceil(size) as u16 } else { 1 };
        let gso_size = if is_super { segment.gso_size } else { 0 };
        let checksum = if self.has_checksums() { RxChecksum::Unknown } else { RxChecksum::Partial };
        SegMeta { segs, gso_size, checksum }
    }
}

pub(super) fn shard(case: Case, host: u32) -> Result<Shard, Failure> {
    let mut tunables = Tunables::default();
    if let Some(bytes) = case.buffer.bytes() {
        for name in ["buffers.send", "buffers.recv"] {
            tunables.set_by_name(name, &bytes.to_string())?;
        }
        tunables.set_by_name("buffers.send.auto", "off")?;
        tunables.set_by_name("net.ipv4.tcp_moderate_rcvbuf", "off")?;
    }
    tunables.set_by_name("mem.budget", &(4_u64 << 30).to_string())?;
    if case.stamps == Stamps::Off {
        tunables.set_by_name("net.ipv4.tcp_timestamps", "off")?;
    }
    let mut capabilities = match case.link {
        Link::Mtu(mtu) => Capabilities::plain(Medium::Ip, mtu),
        Link::Super => Capabilities::plain(Medium::Ip, 1_500),
    };
    capabilities.max_super = case.link.frame() as u32;
    capabilities.tx_checksum = !case.link.has_checksums();
    Ok(Shard::new(ShardConfig {
        tunables,
        secrets: Secrets::from_seed(host.into()),
        capabilities,
        addresses: vec![InterfaceAddress { addr: address(host), prefix_len: 8 }],
        routes: Vec::new(),
    })?)
}

/// Virtual time that a turn takes.
const TURN: Duration = Duration::from_micros(20);
