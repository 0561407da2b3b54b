//! A client and a server, each a whole host, and the wire between them.

use std::collections::VecDeque;
use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_base::{Instant, Secrets};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{Address, Endpoint, IpHeader};

use super::packets::{exchange, fragments, too_big};
use crate::shard::Census;
use crate::{
    Capabilities, Event, Handle, InterfaceAddress, ListenerId, Medium, Recv, RxFrame, Shard,
    ShardConfig, TxBatch,
};

/// Two hosts.
pub(super) struct Hosts {
    pub(super) now: Instant,
    pub(super) client: Shard,
    pub(super) server: Shard,
    /// Packets on the wire: 1 ms each way, in order.
    to_client: VecDeque<(Instant, Vec<u8>)>,
    to_server: VecDeque<(Instant, Vec<u8>)>,
    /// Which packets are lost: told their number, counted over both directions.
    pub(super) lose: fn(u64) -> bool,
    pub(super) carried: u64,
    pub(super) wire: Wire,
    /// The time by which each wake-up of both hosts is late.
    pub(super) late: Duration,
}

/// The path between the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wire {
    /// Nothing but the link.
    Plain,
    /// A router that refuses packets of more bytes than this, and says so; it fragments those that may be.
    Narrow(u16),
    /// Something that drops packets of more bytes than this in silence.
    Silent(u16),
    /// Something that fragments packets of more bytes than this whatever they say.
    Fragmenting(usize),
}

/// True if a packet of IPv4 has no Don't Fragment.
pub(super) fn may_be_cut(packet: &[u8]) -> bool {
    packet[0] >> 4 == 4 && packet[6] & 0x40 == 0
}

pub(super) const DELAY: Duration = Duration::from_millis(1);

/// The family that a test runs over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Over {
    V4,
    V6,
}

pub(super) const BOTH: [Over; 2] = [Over::V4, Over::V6];

pub(super) fn client_addr(over: Over) -> Address {
    match over {
        Over::V4 => Address::from_v4_bytes([10, 0, 0, 1]),
        Over::V6 => Address::from(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)),
    }
}

pub(super) fn server_addr(over: Over) -> Address {
    match over {
        Over::V4 => Address::from_v4_bytes([10, 0, 0, 2]),
        Over::V6 => Address::from(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2)),
    }
}

pub(super) fn server_at(over: Over) -> Endpoint {
    Endpoint::new(server_addr(over), 80)
}

/// Capabilities of a host's device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Device {
    /// Bytes; below 1,280 the host has no IPv6 address.
    pub(super) mtu: u16,
    /// True if it takes super-segments and completes checksums.
    pub(super) offload: bool,
}

impl Device {
    pub(super) const PLAIN: Self = Self { mtu: 1_500, offload: false };

    /// With every MTU from the least of IPv4's hosts to a jumbo frame's.
    pub(super) const ALL: [Self; 6] = [
        Self::PLAIN,
        Self { mtu: 576, offload: false },
        Self { mtu: 9_000, offload: false },
        Self { mtu: 1_500, offload: true },
        Self { mtu: 576, offload: true },
        Self { mtu: 9_000, offload: true },
    ];

    /// The family to use where `wish` would be: IPv6 needs 1,280 bytes.
    pub(super) fn family(self, wish: Over) -> Over {
        if self.mtu < 1_280 { Over::V4 } else { wish }
    }
}

pub(super) fn host(addr: fn(Over) -> Address, seed: u64, tunables: &Tunables) -> Shard {
    host_on(Device::PLAIN, addr, seed, tunables)
}

pub(super) fn host_on(
    device: Device,
    addr: fn(Over) -> Address,
    seed: u64,
    tunables: &Tunables,
) -> Shard {
    let mut config = config(addr, seed, tunables);
    let capabilities = &mut config.capabilities;
    capabilities.mtu = device.mtu;
    capabilities.max_super = if device.offload { 65_535 } else { u32::from(device.mtu) };
    capabilities.tx_checksum = device.offload;
    config.addresses.retain(|it| device.family(Over::V6) == Over::V6 || it.addr.is_v4());
    Shard::new(config).expect("a valid configuration")
}

pub(super) fn config(addr: fn(Over) -> Address, seed: u64, tunables: &Tunables) -> ShardConfig {
    let address = |over, prefix_len| InterfaceAddress { addr: addr(over), prefix_len };
    ShardConfig {
        tunables: tunables.clone(),
        secrets: Secrets::from_seed(seed),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: std::vec![address(Over::V4, 24), address(Over::V6, 64)],
        routes: Vec::new(),
    }
}

impl Hosts {
    pub(super) fn new() -> Self {
        Self::with(&Tunables::default())
    }

    pub(super) fn with(tunables: &Tunables) -> Self {
        Self::of(host(client_addr, 1, tunables), host(server_addr, 2, tunables))
    }

    pub(super) fn of(client: Shard, server: Shard) -> Self {
        Self {
            now: Instant::ZERO,
            client,
            server,
            to_client: VecDeque::new(),
            to_server: VecDeque::new(),
            lose: |_| false,
            carried: 0,
            wire: Wire::Plain,
            late: Duration::ZERO,
        }
    }

    pub(super) fn listen(&mut self, over: Over, backlog: u32) -> ListenerId {
        self.server.listen(server_at(over), backlog).expect("the port is free")
    }

    /// Runs until nothing is under way and nothing is due for `quiet`.
    pub(super) fn run(&mut self, quiet: Duration) {
        let end = self.now + quiet;
        // What was written since leaves now, not when the host was last told the time.
        self.client.set_now(self.now);
        self.server.set_now(self.now);
        loop {
            self.carry();
            let deadlines = [self.client.next_deadline(), self.server.next_deadline()];
            let arrivals =
                [&self.to_client, &self.to_server].map(|wire| wire.front().map(|it| it.0));
            let next = deadlines.into_iter().chain(arrivals).flatten().min();
            match next {
                Some(next) if next + self.late <= end => self.now = self.now.max(next + self.late),
                _ => break,
            }
            self.arrive();
            while self.client.advance(self.now, 64) {}
            while self.server.advance(self.now, 64) {}
            for shard in [&self.client, &self.server] {
                shard.check_invariants().expect("what must hold");
            }
        }
        self.now = end;
    }

    pub(super) fn run_until_quiet(&mut self) {
        self.run(Duration::from_millis(200));
    }

    fn carry(&mut self) {
        for over_there in [false, true] {
            let mut batch = TxBatch::new(64);
            loop {
                let shard = if over_there { &mut self.server } else { &mut self.client };
                let more = shard.tx(&mut batch);
                let mtu =
                    usize::from(shard.net.ip.capabilities.mtu) + shard.net.ip.link_header_len();
                batch.drain(|segment| {
                    assert!(segment.gso_size > 0 || segment.len() <= mtu, "beyond the MTU");
                    self.carry_packet(over_there, segment.to_vec());
                });
                if !more {
                    break;
                }
            }
        }
    }

    fn carry_packet(&mut self, from_server: bool, packet: Vec<u8>) {
        self.carried += 1;
        if (self.lose)(self.carried) {
            return;
        }
        let (wire, back) = if from_server {
            (&mut self.to_client, &mut self.to_server)
        } else {
            (&mut self.to_server, &mut self.to_client)
        };
        let arrives = self.now + DELAY;
        match self.wire {
            Wire::Narrow(mtu) if packet.len() > usize::from(mtu) && may_be_cut(&packet) => {
                let number = u32::from(u16::from_be_bytes([packet[4], packet[5]]));
                let pieces = fragments(&packet, number, usize::from(mtu)).into_iter();
                wire.extend(pieces.map(|piece| (arrives, piece)));
            }
            Wire::Narrow(mtu) if packet.len() > usize::from(mtu) => {
                back.push_back((arrives, too_big(&packet, mtu)));
            }
            Wire::Silent(mtu) if packet.len() > usize::from(mtu) => {}
            Wire::Fragmenting(size) if packet.len() > size => {
                let pieces = fragments(&packet, self.carried as u32, size).into_iter();
                wire.extend(pieces.map(|piece| (arrives, piece)));
            }
            _ => wire.push_back((arrives, packet)),
        }
    }

    fn arrive(&mut self) {
        for (shard, wire) in
            [(&mut self.client, &mut self.to_client), (&mut self.server, &mut self.to_server)]
        {
            let due = wire.iter().take_while(|(at, _)| *at <= self.now).count();
            let packets: Vec<Vec<u8>> = wire.drain(..due).map(|(_, packet)| packet).collect();
            let meta = SegMeta { checksum: RxChecksum::Unknown, ..SegMeta::SINGLE };
            let frames: Vec<RxFrame<'_>> =
                packets.iter().map(|packet| RxFrame::new(packet, meta)).collect();
            shard.rx(self.now, &frames);
        }
    }

    /// Hands a packet to the server; returns the segment that it sends, if it sends one.
    pub(super) fn take_at_server(&mut self, packet: &[u8]) -> Option<TcpHeader> {
        let reply = exchange(&mut self.server, self.now, packet).pop()?;
        let (_, payload) = IpHeader::parse(&reply).expect("an IP packet");
        Some(TcpHeader::parse(payload).expect("a TCP header").0)
    }

    /// An established connection: the client's handle and the server's.
    pub(super) fn connected(&mut self, over: Over, listener: ListenerId) -> (Handle, Handle) {
        let client = self.client.connect(server_at(over), None).expect("a free port");
        self.run_until_quiet();
        let server = self.server.accept(listener).expect("a complete connection");
        (client, server)
    }

    /// After everything was closed and waited for, nothing is left.
    pub(super) fn assert_no_leaks(&mut self) {
        self.run(Duration::from_secs(200));
        for shard in [&mut self.client, &mut self.server] {
            while shard.poll_event().is_some() {}
            let census = shard.census();
            assert_eq!(census, Census { listeners: census.listeners, ..Census::default() });
        }
    }
}

/// Everything there is to read.
pub(super) fn drain(shard: &mut Shard, handle: Handle) -> (Vec<u8>, Recv) {
    let mut bytes = Vec::new();
    loop {
        match shard.recv(handle) {
            Recv::Data(data) => bytes.extend_from_slice(&data),
            end => return (bytes, end),
        }
    }
}

/// Sends all of it, as far as there is room.
pub(super) fn send(shard: &mut Shard, handle: Handle, bytes: &[u8]) -> usize {
    shard.send(handle, &mut Bytes::copy_from_slice(bytes)).expect("open for sending")
}

pub(super) fn events(shard: &mut Shard) -> Vec<Event> {
    std::iter::from_fn(|| shard.poll_event()).collect()
}
