//! A shard's own account of its memory, compared with the counted allocations, and its budget under
//! load.

use bytes::Bytes;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, Handle, InterfaceAddress, ListenerId, Medium, Recv, RxFrame, Shard, ShardConfig,
    TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::budget::Pressure;
use whimbrel_wire::tcp::{
    FastOpen, OptionOrder, SackBlock, SackBlocks, TcpFlags, TcpHeader, TcpOptions,
};
use whimbrel_wire::{Address, Endpoint, IpHeader, Ipv4Header, Mss, Protocol, RawWindow, SeqNum};

use crate::allocator::held;

const MIB: u64 = 1 << 20;
const MSS: usize = 1_460;
const ACK: TcpFlags = TcpFlags::ACK;

/// A server, and its allocations since the start.
pub(crate) struct Server {
    pub(crate) shard: Shard,
    pub(crate) listener: ListenerId,
    batch: TxBatch,
    pub(crate) now: Instant,
    /// Allocated bytes at the start.
    base: isize,
}

/// A client that consists only of the fields of its next segment.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    host: u16,
    pub(crate) port: u16,
    pub(crate) seq: SeqNum,
    pub(crate) ack: SeqNum,
    /// Right edge of its send window.
    edge: SeqNum,
    scale: u8,
    /// Largest segment that it accepts.
    mss: u16,
    /// Blocks that it reports beyond its cumulative acknowledgment.
    pub(crate) sack: SackBlocks,
    /// Fast Open option of its SYNs.
    pub(crate) fast_open: Option<FastOpen>,
}

impl Server {
    pub(crate) fn new(tunables: Tunables) -> Self {
        let own =
            InterfaceAddress { addr: Address::from_v4_bytes([198, 18, 0, 1]), prefix_len: 15 };
        let batch = TxBatch::new(64);
        let base = held();
        let mut shard = Shard::new(ShardConfig {
            tunables,
            secrets: Secrets::from_seed(1),
            capabilities: Capabilities::plain(Medium::Ip, 1_500),
            addresses: vec![own],
            routes: Vec::new(),
        })
        .unwrap();
        let listener = shard.listen(Endpoint::new(own.addr, 80), 4_096).unwrap();
        Self { shard, listener, batch, now: Instant::from_millis(1), base }
    }

    /// Passes a segment to the server, and lets a millisecond pass. Returns the last segment sent
    /// to that port.
    pub(crate) fn take(
        &mut self,
        peer: &Peer,
        flags: TcpFlags,
        seq: SeqNum,
        text: &[u8],
    ) -> Option<TcpHeader> {
        let packet = peer.packet(flags, seq, text);
        // Stands for a device that verified the checksum and merged segments.
        let segs = text.len().div_ceil(MSS).max(1) as u16;
        let gso_size = if segs > 1 { MSS as u16 } else { 0 };
        let meta = SegMeta { checksum: RxChecksum::Verified, segs, gso_size };
        self.shard.rx(self.now, &[RxFrame::new(&packet, meta)]);
        self.pass(1, peer.port)
    }

    pub(crate) fn pass(&mut self, millis: u64, port: u16) -> Option<TcpHeader> {
        self.now = self.now + std::time::Duration::from_millis(millis);
        while self.shard.advance(self.now, 64) {}
        while self.shard.poll_event().is_some() {}
        let mut last = None;
        loop {
            let more = self.shard.tx(&mut self.batch);
            for segment in self.batch.pending() {
                let bytes = segment.to_vec();
                let (_, tcp) = IpHeader::parse(&bytes).unwrap();
                let header = TcpHeader::parse(tcp).unwrap().0;
                last = last.filter(|_| header.dst_port != port).or(Some(header));
            }
            self.batch.consume(self.batch.pending().len());
            if !more {
                return last.filter(|last| last.dst_port == port);
            }
        }
    }

    pub(crate) fn connected(&mut self, host: u16, port: u16) -> (Peer, Handle) {
        self.connected_to(Peer::new(host, port))
    }

    pub(crate) fn connected_to(&mut self, mut peer: Peer) -> (Peer, Handle) {
        peer.open(self);
        let handle = self.shard.accept(self.listener).unwrap();
        (peer, handle)
    }

    /// Returns the allocated bytes of the server, without the test's own.
    pub(crate) fn real(&self, own: isize) -> u64 {
        (held() - self.base - own) as u64
    }

    fn in_flight(&self, handle: Handle) -> u32 {
        let snapshot = self.shard.snapshot(handle).unwrap();
        snapshot.snd.nxt.offset_from(snapshot.snd.una)
    }

    /// Checks that the reported memory is within a quarter of the allocated memory.
    fn check(&self, own: isize, what: &str) {
        let (real, said) = (self.real(own), self.shard.memory().held);
        let quarter = real / 4;
        assert!(said.abs_diff(real) <= quarter, "{what}: {said} B said, {real} B held");
    }
}

impl Peer {
    pub(crate) fn new(host: u16, port: u16) -> Self {
        let seq = SeqNum::new(u32::from(port) << 16);
        let (ack, mss, sack) = (SeqNum::new(0), MSS as u16, SackBlocks::NONE);
        Self { host, port, seq, ack, edge: seq, scale: 0, mss, sack, fast_open: None }
    }

    pub(crate) fn open(&mut self, server: &mut Server) {
        let answer = server.take(self, TcpFlags::SYN, self.seq, &[]).unwrap();
        self.scale = answer.options.window_scale.map_or(0, |scale| scale.get());
        self.seq += 1;
        self.edge = self.seq + u32::from(answer.window.get());
        self.ack = answer.seq + 1;
        server.take(self, ACK, self.seq, &[]);
    }

    pub(crate) fn packet(&self, flags: TcpFlags, seq: SeqNum, text: &[u8]) -> Vec<u8> {
        let syn = flags.contains(TcpFlags::SYN);
        let options = TcpOptions {
            mss: syn.then_some(Mss::new(self.mss)),
            window_scale: syn.then(|| whimbrel_wire::WindowScale::new(7)),
            sack_permitted: syn,
            sack: self.sack,
            fast_open: self.fast_open.filter(|_| syn),
            ..TcpOptions::default()
        };
        let tcp = TcpHeader {
            src_port: self.port,
            dst_port: 80,
            seq,
            ack: if syn { SeqNum::new(0) } else { self.ack },
            flags,
            window: RawWindow::new(65_535),
            options,
            ..TcpHeader::default()
        };
        let [high, low] = self.host.to_be_bytes();
        let tcp_len = tcp.header_len(OptionOrder::Linux);
        let ip = Ipv4Header::new(
            [198, 19, high, low].into(),
            [198, 18, 0, 1].into(),
            Protocol::TCP,
            tcp_len + text.len(),
        );
        let mut packet = vec![0; Ipv4Header::LEN + tcp_len];
        ip.emit(&mut packet);
        tcp.emit(OptionOrder::Linux, &mut packet[Ipv4Header::LEN..]);
        packet.extend_from_slice(text);
        packet
    }

    /// Sends up to `bytes` bytes in order, as far as the window allows. Returns how many were
    /// accepted.
    fn send(&mut self, server: &mut Server, bytes: usize) -> usize {
        let text = [7; MSS];
        let mut sent = 0;
        while sent < bytes {
            let room = self.edge.distance_from(self.seq).max(0) as usize;
            let part = (bytes - sent).min(MSS).min(room);
            if part == 0 {
                break;
            }
            let before = self.seq;
            if let Some(answer) = server.take(self, ACK, self.seq, &text[..part]) {
                self.hear(&answer);
            }
            // Acknowledged now, or by a segment that waits for a second one.
            if self.seq == before && server.shard.counters().dropped(REFUSED) > 0 {
                let answer = server.pass(50, self.port);
                answer.iter().for_each(|answer| self.hear(answer));
                if self.seq == before {
                    break;
                }
            }
            self.seq = self.seq.later(before + part as u32);
            sent += part;
        }
        sent
    }

    fn hear(&mut self, answer: &TcpHeader) {
        self.seq = self.seq.later(answer.ack);
        let window = u32::from(answer.window.get()) << self.scale;
        self.edge = self.edge.later(answer.ack + window);
    }
}

const REFUSED: whimbrel_tcp::DropReason = whimbrel_tcp::DropReason::MemoryBudget;

#[test]
fn text_that_nobody_reads_takes_what_is_said() {
    let mut server = Server::new(Tunables::default());
    let peers: Vec<_> = (0..100).map(|port| server.connected(0, 2_000 + port)).collect();
    let own = size_of_val(&peers[..]) as isize;
    for (mut peer, _) in peers.iter().copied() {
        assert_eq!(peer.send(&mut server, 60_000), 60_000);
    }
    server.check(own, "in order");
    for (_, handle) in peers {
        while let Recv::Data(_) = server.shard.recv(handle) {}
    }
    assert_eq!(server.shard.memory().text, 0);
}

#[test]
fn text_beyond_a_gap_takes_what_is_said() {
    for piece in [1, 64, 512, MSS] {
        let mut server = Server::new(Tunables::default());
        let peers: Vec<_> = (0..50).map(|port| server.connected(0, 2_000 + port)).collect();
        let own = size_of_val(&peers[..]) as isize;
        let text = [7; MSS];
        for (peer, _) in &peers {
            let step = piece as u32 + 1;
            for number in 0..(60_000 / step).min(200) {
                server.take(peer, ACK, peer.seq + 1 + number * step, &text[..piece]);
            }
        }
        server.check(own, &format!("pieces of {piece}"));
    }
}

#[test]
fn text_that_is_not_acknowledged_takes_what_is_said() {
    let mut server = Server::new(Tunables::default());
    let peers: Vec<_> = (0..100).map(|port| server.connected(0, 2_000 + port)).collect();
    let own = size_of_val(&peers[..]) as isize;
    for (_, handle) in &peers {
        let sent = server.shard.send(*handle, &mut Bytes::from(vec![7; 100_000]));
        assert_eq!(sent, Ok(100_000));
        server.pass(1, 0);
    }
    server.check(own, "to be sent");
    for (_, handle) in peers {
        server.shard.abort(handle);
    }
    assert_eq!(server.shard.memory().text, 0);
}

/// With the smallest segments, a segment's record is as large as its text, and twice as large if
/// the peer reports every second one.
#[test]
fn what_is_remembered_of_small_segments_takes_what_is_said() {
    let mut server = Server::new(Tunables::default());
    let small = |port| Peer { mss: 64, ..Peer::new(0, port) };
    let mut peers: Vec<_> = (0..10).map(|port| server.connected_to(small(2_000 + port))).collect();
    let own = size_of_val(&peers[..]) as isize;
    for (peer, handle) in &mut peers {
        for _ in 0..250 {
            let sent = server.shard.send(*handle, &mut Bytes::from(vec![7; 1_000]));
            assert_eq!(sent, Ok(1_000));
        }
        // Slow start: the flight doubles until half of the text is sent.
        for _ in 0..8 {
            peer.ack += server.in_flight(*handle);
            server.take(peer, ACK, peer.seq, &[]);
        }
        let in_flight = server.in_flight(*handle);
        assert!(in_flight > 60_000, "{in_flight} in flight");
    }
    server.check(own, "in flight");
    for (peer, handle) in &mut peers {
        for number in 0..server.in_flight(*handle) / 128 {
            let left = peer.ack + 128 * number + 64;
            peer.sack = SackBlocks::NONE;
            peer.sack.push(SackBlock { left, right: left + 64 });
            server.take(peer, ACK, peer.seq, &[]);
        }
    }
    server.check(own, "every second named");
    for (_, handle) in peers {
        server.shard.abort(handle);
    }
    assert_eq!(server.shard.memory().text, 0);
    assert!(server.real(own) < 3 * MIB, "{} B stay", server.real(own));
}

#[test]
fn records_take_what_is_said() {
    let mut server = Server::new(Tunables::default());
    for port in 0..8_000 {
        let peer = Peer::new(port, 2_000);
        server.take(&peer, TcpFlags::SYN, peer.seq, &[]);
    }
    assert!(server.shard.census().syn_entries > 3_000, "{:?}", server.shard.census());
    server.check(0, "half open");

    let minute = std::time::Duration::from_secs(60);
    let mut server = Server::new(Tunables { msl_link: minute, ..Tunables::default() });
    let mut idle = Vec::with_capacity(20_000);
    idle.extend((0..20_000).map(|host| server.connected(host, 2_000)));
    let own = size_of_val(&idle[..]) as isize;
    server.check(own, "idle connections");
    for (mut peer, handle) in idle.drain(..) {
        server.shard.close(handle);
        let fin = server.pass(1, peer.port).unwrap();
        peer.ack = fin.seq + 1;
        server.take(&peer, TcpFlags::from_bits(0x11), peer.seq, &[]);
    }
    assert_eq!(server.shard.census().time_wait, 20_000);
    server.check(own, "in TIME-WAIT");
}

/// Each of two thousand connections receives 256 KiB that the application does not read: 500 MiB,
/// of which the server may hold 64. An honest client among them, and a later one, are served.
#[test]
fn unread_connections_stay_in_budget_and_others_are_served() {
    let budget = 64 * MIB;
    let mut server = Server::new(Tunables { mem_budget: budget, ..Tunables::default() });
    let (mut early, handle) = server.connected(9_999, 2_000);
    // Every window is advertised before anything is sent: 125 MiB of promises.
    let mut peers: Vec<_> = (0..2_000).map(|host| server.connected(host, 2_000).0).collect();
    let own = size_of_val(&peers[..]) as isize;
    // Four segments each, the one that crosses the line, and the unused part of a chunk.
    let slack = 2_000 * 6 * MSS as u64;
    for round in 0..16 {
        for peer in &mut peers {
            peer.send(&mut server, 16 << 10);
        }
        let (real, memory) = (server.real(own), server.shard.memory());
        assert!(memory.held <= budget + slack, "round {round}: {memory:?}");
        assert!(real <= budget / 4 * 5 + slack, "round {round}: {real} B held, {memory:?}");
        exchange(&mut server, &mut early, handle);
    }
    // Connections that are not read lose what exceeds four segments before the budget is full.
    assert!(server.shard.memory().pressure >= Pressure::Tight);
    let (mut late, handle) = server.connected(9_998, 2_000);
    for _ in 0..16 {
        exchange(&mut server, &mut late, handle);
    }
    let counters = server.shard.counters();
    assert!(counters.mem_tight > 0 && counters.dropped(REFUSED) > 2_000);
}

/// A super-segment of 60,000 bytes arrives for each of two thousand connections, twice as much as
/// the server may hold, and then as much again: before any reader can be seen to be slow.
#[test]
fn super_segments_stay_in_budget_and_others_are_served() {
    let budget = 64 * MIB;
    let mut server = Server::new(Tunables { mem_budget: budget, ..Tunables::default() });
    let (mut early, handle) = server.connected(9_999, 2_000);
    let mut peers: Vec<_> = (0..2_000).map(|host| server.connected(host, 2_000)).collect();
    let own = size_of_val(&peers[..]) as isize;
    let text = vec![7; 60_000];
    for round in 0..2 {
        for (peer, _) in &mut peers {
            if let Some(answer) = server.take(peer, ACK, peer.seq, &text) {
                peer.hear(&answer);
            }
        }
        let (real, memory) = (server.real(own + text.len() as isize), server.shard.memory());
        assert!(memory.held <= budget, "round {round}: {memory:?}");
        assert!(real <= budget / 8 * 9, "round {round}: {real} B held, {memory:?}");
        assert_eq!(memory.pressure, Pressure::Tight);
        exchange(&mut server, &mut early, handle);
    }
    let counters = server.shard.counters();
    assert!(counters.mem_clipped > 1_000 && counters.mem_full == 0, "{counters:?}");
    // Every connection keeps some data, the last one, too.
    for (_, handle) in &peers {
        let unread = server.shard.snapshot(*handle).unwrap().unread;
        assert!(unread >= 2 * MSS as u32, "{unread}");
    }
    let (mut late, handle) = server.connected(9_998, 2_000);
    for _ in 0..16 {
        exchange(&mut server, &mut late, handle);
    }
}

/// Sends a request of two segments, which is read at once, and its response.
fn exchange(server: &mut Server, peer: &mut Peer, handle: Handle) {
    assert_eq!(peer.send(server, 2_000), 2_000, "an honest client's text is taken");
    let mut read = 0;
    while let Recv::Data(bytes) = server.shard.recv(handle) {
        read += bytes.len();
    }
    assert_eq!(read, 2_000);
    assert_eq!(server.shard.send(handle, &mut Bytes::from_static(&[1; 3_000])), Ok(3_000));
    let last = server.pass(1, peer.port).unwrap();
    peer.hear(&last);
    peer.ack += 3_000;
    server.take(peer, ACK, peer.seq, &[]);
}
