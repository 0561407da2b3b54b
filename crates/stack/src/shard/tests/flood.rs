//! 200,000 SYNs a second from addresses that no host has, while real clients connect.

use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::State;
use whimbrel_tcp::table::SynEntry;
use whimbrel_tcp::tunables::SynCookies;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{Address, IpHeader, Mss, Protocol, RawWindow, SeqNum, WindowScale};

use super::hosts::{Over, client_addr, host, server_addr, server_at};
use super::packets::{fix_checksum, packet_from};
use crate::{Handle, ListenerId, RxFrame, Shard, TxBatch};

/// SYNs in each millisecond.
const SYNS: u32 = 200;
const MILLIS: u64 = 1_000;
const BACKLOG: u32 = 1_024;
/// A millisecond each way, and one for packets in between.
const IN_TIME: u64 = 4;

/// A server under attack, and clients of its own at a millisecond's distance.
struct Siege {
    now: Instant,
    server: Shard,
    listener: ListenerId,
    client: Shard,
    /// Packets that arrive a millisecond later.
    to_server: Vec<Vec<u8>>,
    to_client: Vec<Vec<u8>>,
    /// Connections that are opening, and since when.
    opening: Vec<(Handle, Instant)>,
    accepted: Vec<Handle>,
    late: u64,
    /// Multiplied on, for the flood's addresses.
    dice: u64,
}

impl Siege {
    fn new(syn_cookies: SynCookies) -> Self {
        let mut server = host(server_addr, 2, &Tunables { syn_cookies, ..Tunables::default() });
        let listener = server.listen(server_at(Over::V4), BACKLOG).expect("the port is free");
        Self {
            now: Instant::from_millis(1),
            server,
            listener,
            client: host(client_addr, 1, &Tunables::default()),
            to_server: Vec::new(),
            to_client: Vec::new(),
            opening: Vec::new(),
            accepted: Vec::new(),
            late: 0,
            dice: 1,
        }
    }

    /// A SYN from anywhere in 10.128.0.0/9.
    fn spoofed(&mut self) -> Vec<u8> {
        self.dice = self.dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let [a, b, c, d, e, ..] = self.dice.to_be_bytes();
        let syn = TcpHeader {
            src_port: 1_024 | u16::from_be_bytes([d, e]),
            dst_port: 80,
            seq: SeqNum::new(u32::from_be_bytes([e, d, c, b])),
            flags: TcpFlags::SYN,
            window: RawWindow::new(65_535),
            options: TcpOptions {
                mss: Some(Mss::new(1_460)),
                window_scale: Some(WindowScale::new(7)),
                sack_permitted: true,
                timestamps: Some(Timestamps { val: 1, ecr: 0 }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        let mut bytes = [0; 60];
        let len = syn.emit(OptionOrder::Linux, &mut bytes);
        let from = Address::from_v4_bytes([10, a | 128, b, c]);
        let mut packet = packet_from(from, server_addr(Over::V4), Protocol::TCP, &bytes[..len]);
        fix_checksum(&mut packet);
        packet
    }

    fn millisecond(&mut self) {
        let mut arriving = core::mem::take(&mut self.to_server);
        for number in 0..SYNS {
            // The clients' packets come somewhere between.
            let place = (number as usize * 7) % (arriving.len() + 1);
            let packet = self.spoofed();
            arriving.insert(place, packet);
        }
        let answers = exchange(&mut self.server, self.now, &arriving);
        let ours = |packet: &Vec<u8>| {
            IpHeader::parse(packet).is_ok_and(|(ip, _)| ip.dst == client_addr(Over::V4))
        };
        self.to_client.extend(answers.into_iter().filter(ours));
        while let Some(handle) = self.server.accept(self.listener) {
            self.accepted.push(handle);
        }
        let arriving = core::mem::take(&mut self.to_client);
        self.to_server = exchange(&mut self.client, self.now, &arriving);
        self.now = self.now + core::time::Duration::from_millis(1);
    }

    /// Begins a connection, and ends those that were established in time.
    fn connect(&mut self) {
        self.client.set_now(self.now);
        let handle = self.client.connect(server_at(Over::V4), None).expect("a free port");
        self.opening.push((handle, self.now));
        let (client, now) = (&mut self.client, self.now);
        let mut late = 0;
        self.opening.retain(|(handle, since)| {
            let open = client.state(*handle) == Some(State::Established);
            let over = now.since(*since).as_millis() > u128::from(IN_TIME);
            late += u64::from(over && !open);
            if open || over {
                client.abort(*handle);
            }
            !(open || over)
        });
        self.late += late;
        for handle in self.accepted.drain(..) {
            self.server.abort(handle);
        }
    }

    /// Checks the bounds on what the flood may make the server hold.
    fn assert_bounded(&self) {
        let census = self.server.census();
        assert!(census.syn_entries <= BACKLOG as usize, "{} entries", census.syn_entries);
        assert!(census.connections <= 64, "{} connections", census.connections);
        assert_eq!(census.flows, census.syn_entries + census.connections);
        assert!(census.replies <= 1_024, "{} replies", census.replies);
        // Half as much again for the slab's places.
        let most = BACKLOG as usize * size_of::<SynEntry>() * 3 / 2;
        let held = self.server.tcp.records.syns.memory();
        assert!(held <= most, "{held} bytes of half-open entries");
        let table = self.server.tcp.records.flows.memory();
        assert!(table <= 64 << 10, "{table} bytes of table for {} flows", census.flows);
    }
}

/// Returns what a host sends when this arrives.
fn exchange(shard: &mut Shard, now: Instant, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let meta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
    let mut sent = Vec::new();
    let mut batch = TxBatch::new(64);
    for burst in packets.chunks(64).chain([&[][..]]) {
        let frames: Vec<_> = burst.iter().map(|packet| RxFrame::new(packet, meta)).collect();
        shard.rx(now, &frames);
        while shard.advance(now, 64) {}
        loop {
            let more = shard.tx(&mut batch);
            batch.drain(|segment| sent.push(segment.to_vec()));
            if !more {
                break;
            }
        }
    }
    sent
}

#[test]
fn syn_flood_lets_clients_connect_within_bounds() {
    for policy in [SynCookies::Auto, SynCookies::Always, SynCookies::Off] {
        let mut siege = Siege::new(policy);
        for milli in 0..MILLIS {
            siege.connect();
            siege.millisecond();
            if milli % 100 == 0 {
                siege.server.check_invariants().expect("what must hold");
                siege.assert_bounded();
            }
        }
        siege.assert_bounded();
        assert!(siege.late * 100 < MILLIS, "{policy:?}: {} of {MILLIS} were late", siege.late);
        let counters = siege.server.counters();
        let answered = counters.cookies_sent + counters.syn_received;
        assert!(answered >= u64::from(SYNS) * MILLIS, "{policy:?}: {answered} SYNs were answered");
        assert_eq!((counters.listen_drops, counters.cookies_failed), (0, 0), "{policy:?}");
        assert!(counters.passive_opens * 100 > MILLIS * 99, "{}", counters.passive_opens);
        assert_eq!(counters.syn_evictions > 0, policy == SynCookies::Off);
        assert_eq!(counters.syn_received > 0, policy != SynCookies::Always);
    }
}
