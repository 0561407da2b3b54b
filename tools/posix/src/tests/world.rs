//! Two hosts with a process each, 1 ms apart.

use std::collections::VecDeque;
use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::shard::{Census, SocketState};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::BufferPolicy;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{
    Address, Endpoint, IcmpMessage, IpHeader, Ipv4Header, Protocol as WireProtocol, Sum,
};

use crate::{
    BlockedOn, Domain, Errno, Fd, FileFlags, Incoming, MsgFlags, OptionValue, Outcome, Outgoing,
    Protocol, SocketFlags, SocketOption, SocketType, Sockets,
};

pub(super) const DELAY: Duration = Duration::from_millis(1);

/// The process of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Client,
    Server,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) client: Sockets,
    pub(super) server: Sockets,
    to_client: VecDeque<(Instant, Vec<u8>)>,
    to_server: VecDeque<(Instant, Vec<u8>)>,
    /// Every packet that left, with lost ones.
    pub(super) log: Vec<Sent>,
    /// True if nothing arrives any more.
    pub(super) cut: bool,
    /// Code of the error with which a router answers the client's packets into a cut wire.
    pub(super) unreachable: Option<u8>,
    /// Bytes after which urgent data ends in the client's segments with text.
    pub(super) urgent: Option<u16>,
}

/// A packet as it left.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) side: Side,
    pub(super) at: Instant,
    pub(super) ip: IpHeader,
    pub(super) tcp: TcpHeader,
    pub(super) text: Vec<u8>,
}

impl Sent {
    fn read(side: Side, at: Instant, packet: &[u8]) -> Self {
        let (ip, segment) = IpHeader::parse(packet).expect("a valid packet");
        let (tcp, len) = TcpHeader::parse(segment).expect("a valid segment");
        Self { side, at, ip, tcp, text: segment[len..].to_vec() }
    }

    pub(super) fn has(&self, flag: TcpFlags) -> bool {
        self.tcp.flags.contains(flag)
    }
}

pub(super) fn client_addr() -> Address {
    Address::from_v4_bytes([10, 0, 0, 1])
}

pub(super) fn server_addr() -> Address {
    Address::from_v4_bytes([10, 0, 0, 2])
}

pub(super) fn server_addr_v6() -> Address {
    Address::from(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2))
}

pub(super) fn server_at() -> Endpoint {
    Endpoint::new(server_addr(), 80)
}

pub(super) fn any(port: u16) -> Endpoint {
    Endpoint::new(Domain::Inet.unspecified(), port)
}

/// Sets the urgent pointer of a segment with text from the client.
fn mark_urgent(packet: &mut [u8], urgent: u16) {
    let header_len = 20 + usize::from(packet[32] >> 4) * 4;
    if packet[15] != 1 || packet.len() == header_len {
        return;
    }
    packet[33] |= 0x20;
    packet[38..40].copy_from_slice(&urgent.to_be_bytes());
    packet[36..38].fill(0);
    let len = packet.len() as u32 - 20;
    let pseudo = Sum::pseudo_header(client_addr(), server_addr(), WireProtocol::TCP.0, len);
    let checksum = pseudo.add_bytes(&packet[20..]).finish();
    packet[36..38].copy_from_slice(&checksum.to_be_bytes());
}

/// A router's error for the client's `packet`.
fn unreachable(code: u8, packet: &[u8]) -> Vec<u8> {
    let quoted = &packet[..28];
    let mut message = [0; 36];
    IcmpMessage::DestinationUnreachable { code, quoted }.emit(&mut message);
    let mut bytes = vec![0; Ipv4Header::LEN];
    let header = Ipv4Header::new(
        std::net::Ipv4Addr::new(10, 0, 0, 254),
        client_addr().v4_bytes().into(),
        WireProtocol::ICMP,
        message.len(),
    );
    header.emit(&mut bytes);
    bytes.extend(message);
    bytes
}

fn process(last: u8, tunables: &Tunables) -> Sockets {
    let v4 = Address::from_v4_bytes([10, 0, 0, last]);
    let v6 = Address::from(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into()));
    let config = ShardConfig {
        tunables: tunables.clone(),
        secrets: Secrets::from_seed(last.into()),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: std::vec![
            InterfaceAddress { addr: v4, prefix_len: 24 },
            InterfaceAddress { addr: v6, prefix_len: 64 },
        ],
        routes: Vec::new(),
    };
    Sockets::new(Shard::new(config).expect("a valid configuration"))
}

/// Rules under which buffers have the requested size, or 256 KiB, and do not grow.
pub(super) fn exact() -> Tunables {
    let (recv_buffer_max, send_buffer_max) = (256 << 10, 256 << 10);
    let buffers = BufferPolicy::Exact;
    Tunables { buffers, recv_buffer_max, send_buffer_max, ..Tunables::default() }
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(&Tunables::default())
    }

    pub(super) fn with(tunables: &Tunables) -> Self {
        Self {
            now: Instant::ZERO,
            client: process(1, tunables),
            server: process(2, tunables),
            to_client: VecDeque::new(),
            to_server: VecDeque::new(),
            log: Vec::new(),
            cut: false,
            unreachable: None,
            urgent: None,
        }
    }

    pub(super) fn of(&mut self, side: Side) -> &mut Sockets {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Lets `quiet` pass.
    pub(super) fn run(&mut self, quiet: Duration) {
        let end = self.now + quiet;
        while self.step(end) {}
    }

    pub(super) fn run_until_quiet(&mut self) {
        self.run(Duration::from_millis(100));
    }

    /// Makes a call, again and again as long as it blocks, but only when its wait may be over.
    pub(super) fn call<T>(
        &mut self,
        side: Side,
        mut call: impl FnMut(&mut Sockets) -> Outcome<T>,
    ) -> Result<T, Errno> {
        let limit = self.now + Duration::from_secs(300);
        loop {
            let wait = match call(self.of(side)) {
                Outcome::Done(result) => return result,
                Outcome::Block(wait) => wait,
            };
            loop {
                let moved = self.step(limit.min(wait.until()));
                if self.of(side).may_go_on(&wait) {
                    break;
                }
                assert!(moved, "nothing ends {wait:?}");
            }
        }
    }

    /// Condition of a call that blocks.
    pub(super) fn blocks<T: std::fmt::Debug>(outcome: Outcome<T>) -> BlockedOn {
        match outcome {
            Outcome::Block(wait) => wait,
            Outcome::Done(result) => panic!("it does not block: {result:?}"),
        }
    }

    /// The next thing happens, if that is before `end`; otherwise it is `end`.
    fn step(&mut self, end: Instant) -> bool {
        self.carry();
        let deadlines = [self.client.shard().next_deadline(), self.server.shard().next_deadline()];
        let arrivals = [&self.to_client, &self.to_server].map(|wire| wire.front().map(|it| it.0));
        let next = deadlines.into_iter().chain(arrivals).flatten().min();
        let next = next.filter(|next| *next <= end);
        self.now = self.now.max(next.unwrap_or(end));
        self.arrive();
        for sockets in [&mut self.client, &mut self.server] {
            while sockets.shard_mut().advance(self.now, 64) {}
            sockets.drain_events();
        }
        next.is_some()
    }

    fn carry(&mut self) {
        let arrives = self.now + DELAY;
        let mut batch = TxBatch::new(64);
        let mut errors = Vec::new();
        for (side, sockets, wire) in [
            (Side::Client, &mut self.client, &mut self.to_server),
            (Side::Server, &mut self.server, &mut self.to_client),
        ] {
            loop {
                let more = sockets.shard_mut().tx(&mut batch);
                let packets = batch.pending().iter().map(|one| one.to_vec());
                self.log.extend(packets.map(|packet| Sent::read(side, self.now, &packet)));
                if !self.cut {
                    wire.extend(batch.pending().iter().map(|one| (arrives, one.to_vec())));
                    if let Some(urgent) = self.urgent {
                        wire.iter_mut().for_each(|(_, packet)| mark_urgent(packet, urgent));
                    }
                }
                if let Some(code) = self.unreachable.filter(|_| self.cut) {
                    let sent = batch.pending().iter().map(whimbrel_base::packet::TxSegment::to_vec);
                    errors.extend(sent.map(|packet| (arrives, unreachable(code, &packet))));
                }
                batch.consume(batch.pending().len());
                if !more {
                    break;
                }
            }
        }
        self.to_client.extend(errors);
    }

    fn arrive(&mut self) {
        for (sockets, wire) in
            [(&mut self.client, &mut self.to_client), (&mut self.server, &mut self.to_server)]
        {
            let due = wire.iter().take_while(|(at, _)| *at <= self.now).count();
            let packets: Vec<Vec<u8>> = wire.drain(..due).map(|(_, packet)| packet).collect();
            let frames: Vec<RxFrame<'_>> =
                packets.iter().map(|packet| RxFrame::new(packet, SegMeta::SINGLE)).collect();
            sockets.shard_mut().rx(self.now, &frames);
        }
    }

    /// Every descriptor closed and everything waited for: nothing is left.
    pub(super) fn assert_no_leaks(&mut self) {
        self.run(Duration::from_secs(200));
        for sockets in [&mut self.client, &mut self.server] {
            assert_eq!(sockets.descriptors().collect::<Vec<_>>(), []);
            assert_eq!(sockets.leftovers(), 0, "nothing leads to a descriptor that is gone");
            assert_eq!(sockets.shard().census(), Census::default());
        }
    }

    /// Closes every descriptor of both, then looks for leaks.
    pub(super) fn end(&mut self) {
        for side in [Side::Client, Side::Server] {
            let open: Vec<Fd> = self.of(side).descriptors().collect();
            for fd in open {
                self.call(side, |sockets| sockets.close(fd)).expect("an open descriptor");
            }
        }
        self.assert_no_leaks();
    }
}

/// Arranging.
impl World {
    /// A listener at the server's port 80.
    pub(super) fn listen(&mut self, backlog: i32) -> Fd {
        let fd = stream(&mut self.server);
        set(&mut self.server, fd, SocketOption::ReuseAddr, 1);
        self.server.bind(fd, any(80)).expect("the port is free");
        self.server.listen(fd, backlog).expect("bound");
        fd
    }

    /// A connection: the client's end, and the server's.
    pub(super) fn connected(&mut self, listener: Fd) -> (Fd, Fd) {
        let client = stream(&mut self.client);
        self.call(Side::Client, |it| it.connect(client, server_at())).expect("a listener");
        let server = self.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE));
        (client, server.expect("a connection").fd)
    }

    /// A listener and a connection.
    pub(super) fn joined() -> (Self, Fd, Fd, Fd) {
        Self::joined_with(&Tunables::default())
    }

    /// A connection under these rules.
    pub(super) fn joined_with(rules: &Tunables) -> (Self, Fd, Fd, Fd) {
        let mut world = Self::with(rules);
        let listener = world.listen(8);
        let (client, server) = world.connected(listener);
        (world, listener, client, server)
    }

    /// Packets that left `side` since the log was last cleared.
    pub(super) fn sent_by(&self, side: Side) -> Vec<Sent> {
        self.log.iter().filter(|sent| sent.side == side).cloned().collect()
    }

    pub(super) fn count(&self, side: Side, state: SocketState) -> usize {
        let sockets = match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        };
        sockets.shard().sockets().filter(|socket| socket.state == state).count()
    }

    pub(super) fn recv(&mut self, side: Side, fd: Fd, most: usize) -> Result<Vec<u8>, Errno> {
        let mut into = Incoming::new(most);
        self.call(side, |it| it.recv(fd, &mut into, MsgFlags::NONE)).map(|_| into.to_vec())
    }

    pub(super) fn send(&mut self, side: Side, fd: Fd, bytes: &[u8]) -> Result<usize, Errno> {
        let mut out = Outgoing::new(Bytes::copy_from_slice(bytes));
        self.call(side, |it| it.send(fd, &mut out, MsgFlags::NONE))
    }
}

/// A socket of IPv4 that blocks.
pub(super) fn stream(sockets: &mut Sockets) -> Fd {
    stream_of(sockets, Domain::Inet)
}

/// A socket that blocks.
pub(super) fn stream_of(sockets: &mut Sockets, domain: Domain) -> Fd {
    let made = sockets.socket(domain, SocketType::Stream, SocketFlags::NONE, Protocol::Default);
    made.expect("a free descriptor")
}

pub(super) fn set(sockets: &mut Sockets, fd: Fd, option: SocketOption, value: i32) {
    sockets.setsockopt(fd, option, &OptionValue::Int(value)).expect("it takes effect");
}

pub(super) fn get(sockets: &mut Sockets, fd: Fd, option: SocketOption) -> i32 {
    sockets.getsockopt(fd, option).expect("it is known").as_int().expect("a number")
}

pub(super) fn nonblocking(sockets: &mut Sockets, fd: Fd) {
    let flags = crate::Fcntl::SetFl(FileFlags::O_RDWR | FileFlags::O_NONBLOCK);
    sockets.fcntl(fd, flags).expect("an open descriptor");
}

/// One `recv` that does not wait.
pub(super) fn recv_now(sockets: &mut Sockets, fd: Fd, most: usize) -> Result<Vec<u8>, Errno> {
    recv_with(sockets, fd, most, MsgFlags::NONE)
}

/// Receives with flags.
pub(super) fn recv_with(
    sockets: &mut Sockets,
    fd: Fd,
    most: usize,
    flags: MsgFlags,
) -> Result<Vec<u8>, Errno> {
    let mut into = Incoming::new(most);
    let outcome = sockets.recv(fd, &mut into, flags | MsgFlags::MSG_DONTWAIT);
    outcome.done().expect("it does not wait").map(|_| into.to_vec())
}

/// One `send` that does not wait.
pub(super) fn send_now(sockets: &mut Sockets, fd: Fd, bytes: &[u8]) -> Result<usize, Errno> {
    let mut out = Outgoing::new(Bytes::copy_from_slice(bytes));
    sockets.send(fd, &mut out, MsgFlags::MSG_DONTWAIT).done().expect("it does not wait")
}
