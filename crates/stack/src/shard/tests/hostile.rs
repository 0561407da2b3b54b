//! A peer that sends anything at all: whatever arrives in whatever state, the host counts it under
//! one verdict, keeps its books, and forgets everything in the end.

use std::time::Duration;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_tcp::conn::{SocketOptions, State};
use whimbrel_tcp::table::{KnownServer, Service};
use whimbrel_tcp::{DropReason, Tunables};
use whimbrel_wire::tcp::{FastOpen, OptionOrder, TcpFlags, TcpHeader};
use whimbrel_wire::{Endpoint, IpHeader, Mss, Protocol, RawWindow, SeqNum};

use super::hosts::{Device, Over, client_addr, host_on, server_addr, server_at};
use super::packets::packet;
use crate::shard::Census;
use crate::{Event, Handle, ListenerId, Recv, RxFrame, Shard, TxBatch};

/// The next event at the server.
#[derive(Clone, Debug)]
enum Step {
    /// A segment of the flow with this number, as the peer of the protocol would send it.
    Polite { flow: u8, flags: TcpFlags, len: u16 },
    /// A SYN with a valid Fast Open cookie and text.
    Fast { flow: u8, len: u16 },
    /// A segment of anything.
    Wild { flow: u8, flags: u16, seq: Near, ack: Near, window: u16, len: u16, options: Options },
    /// The application acts on the connection with this number.
    Act { which: u8, act: Act },
    /// Time passes.
    Wait { millis: u64 },
}

/// A number near one that means something to the connection.
#[derive(Clone, Copy, Debug)]
struct Near {
    to: Landmark,
    offset: i64,
}

#[derive(Clone, Copy, Debug)]
enum Landmark {
    Next,
    Edge,
    Acknowledged,
    Sent,
    Zero,
}

#[derive(Clone, Debug)]
enum Options {
    None,
    /// Timestamps, so far from what the peer would say.
    Timestamps(i32, u32),
    /// Those of a SYN.
    Syn {
        mss: u16,
        shift: u8,
    },
    /// Bytes that need not be options.
    Raw(Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Accept,
    Connect,
    /// With text that the SYN brings, as much of it as it can.
    ConnectFast(u16),
    Send(u16),
    Read,
    Shutdown,
    Close,
    Abort,
    Relisten,
}

/// The peer's knowledge of a flow, from what the server sent last.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    acknowledged: SeqNum,
    sent: SeqNum,
    next: SeqNum,
    edge: SeqNum,
    stamps: Option<(u32, u32)>,
    /// The peer's own port, then the server's.
    ports: (u16, u16),
}

/// The server, and what its peer knows.
struct Siege {
    over: Over,
    device: Device,
    now: Instant,
    server: Shard,
    listener: ListenerId,
    handles: Vec<Handle>,
    flows: Vec<Known>,
}

const PORTS: [u16; 3] = [5_000, 5_001, 5_002];
const ISN: u32 = u32::MAX - 3_000;

impl Siege {
    fn new(device: Device, over: Over, tunables: &Tunables) -> Self {
        let over = device.family(over);
        let mut server = host_on(device, server_addr, 2, tunables);
        let listener = listen(&mut server, over);
        // As if each of the peer's ports had granted a cookie.
        let (local, remote) = (server_addr(over), Endpoint::new(client_addr(over), 9_000));
        let cookie = FastOpen::from_cookie(&[7; 8]).expect("a cookie");
        let known = KnownServer { cookie, mss: Mss::new(1_000) };
        server.tcp.active.fast_open_cache.store(&Service { local, remote }, known);
        let flows = PORTS.map(|port| {
            let isn = SeqNum::new(ISN);
            Known { next: isn, edge: isn, ports: (port, 80), ..Known::default() }
        });
        let (now, handles) = (Instant::from_millis(1), Vec::new());
        Self { over, device, now, server, listener, handles, flows: flows.to_vec() }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Polite { flow, flags, len } => self.polite(*flow, *flags, *len),
            Step::Fast { flow, len } => self.open_fast(*flow, *len),
            Step::Wild { flow, flags, seq, ack, window, len, options } => {
                let known = self.known(*flow);
                let header = TcpHeader {
                    src_port: known.ports.0,
                    dst_port: known.ports.1,
                    seq: known.near(*seq),
                    ack: known.near(*ack),
                    flags: TcpFlags::from_bits(*flags),
                    window: RawWindow::new(*window),
                    urgent: len.wrapping_mul(3),
                    ..TcpHeader::default()
                };
                self.arrive(&header, &options.bytes(&known), *len);
            }
            Step::Act { which, act } => self.act(*which, *act),
            Step::Wait { millis } => self.wait(*millis),
        }
        self.listen_to_server();
        self.check();
    }

    fn known(&self, flow: u8) -> Known {
        self.flows[usize::from(flow) % self.flows.len()]
    }

    fn polite(&mut self, flow: u8, flags: TcpFlags, len: u16) {
        let known = self.known(flow);
        let syn = flags.contains(TcpFlags::SYN);
        let header = TcpHeader {
            src_port: known.ports.0,
            dst_port: known.ports.1,
            seq: known.next,
            ack: known.sent,
            flags,
            window: RawWindow::new(10_000),
            ..TcpHeader::default()
        };
        let options = match known.stamps {
            Some((val, ecr)) => stamps(val, ecr),
            None if syn => Options::Syn { mss: 1_000, shift: 3 }.bytes(&known),
            None => Vec::new(),
        };
        self.arrive(&header, &options, if syn { 0 } else { len });
    }

    fn open_fast(&mut self, flow: u8, len: u16) {
        let known = self.known(flow);
        let header = TcpHeader {
            src_port: known.ports.0,
            dst_port: known.ports.1,
            seq: known.next,
            flags: TcpFlags::SYN,
            window: RawWindow::new(10_000),
            ..TcpHeader::default()
        };
        let (local, remote) = (server_addr(self.over), client_addr(self.over));
        let cookie = self.server.tcp.passive.fast_open_keys.grant(&local, &remote);
        let mut options = Options::Syn { mss: 1_000, shift: 3 }.bytes(&known);
        options.extend([34, 10]);
        options.extend(cookie.cookie());
        self.arrive(&header, &options, len);
    }

    /// A segment reaches the server, as one that was merged if the device does that. Its checksum is taken for verified.
    fn arrive(&mut self, header: &TcpHeader, options: &[u8], len: u16) {
        let mut tcp = vec![0; 20];
        header.emit(OptionOrder::Linux, &mut tcp);
        tcp.extend(options);
        tcp.resize(tcp.len().next_multiple_of(4), 0);
        tcp[12] = (tcp[12] & 0x0f) | ((tcp.len() / 4) as u8) << 4;
        tcp.extend((0..len).map(|at| at as u8));
        let packet = packet(self.over, Protocol::TCP, &tcp);
        let meta = SegMeta { checksum: RxChecksum::Verified, ..self.device.merged(len) };
        self.server.rx(self.now, &[RxFrame::new(&packet, meta)]);
    }

    fn act(&mut self, which: u8, act: Act) {
        match act {
            Act::Accept => self.handles.extend(self.server.accept(self.listener)),
            Act::Connect => self.connect(which, None),
            Act::ConnectFast(len) => self.connect(which, Some(len)),
            Act::Relisten => {
                self.server.close_listener(self.listener);
                self.listener = listen(&mut self.server, self.over);
            }
            Act::Send(_) | Act::Read | Act::Shutdown | Act::Close | Act::Abort => {
                if !self.handles.is_empty() {
                    let place = usize::from(which) % self.handles.len();
                    self.act_on(place, act);
                }
            }
        }
    }

    fn act_on(&mut self, place: usize, act: Act) {
        let handle = self.handles[place];
        match act {
            Act::Send(len) => {
                let mut data = Bytes::from(vec![7; usize::from(len)]);
                let _ = self.server.send(handle, &mut data);
            }
            Act::Read => while matches!(self.server.recv(handle), Recv::Data(_)) {},
            Act::Shutdown => self.server.shutdown(handle),
            Act::Close => {
                self.server.close(self.handles.swap_remove(place));
            }
            Act::Abort => {
                self.server.abort(self.handles.swap_remove(place));
            }
            Act::Accept | Act::Connect | Act::ConnectFast(_) | Act::Relisten => {}
        }
    }

    fn connect(&mut self, which: u8, text: Option<u16>) {
        let remote = Endpoint::new(client_addr(self.over), 9_000 + u16::from(which % 2));
        let opened = match text {
            None => self.server.connect(remote, None),
            Some(len) => {
                let mut text = Bytes::from(vec![7; usize::from(len)]);
                self.server.connect_fast(remote, None, &SocketOptions::default(), &mut text)
            }
        };
        let Ok(handle) = opened else { return };
        let port = self.server.flow(handle).expect("a new connection").local.port;
        let isn = SeqNum::new(ISN);
        let known = Known { next: isn, edge: isn, ports: (remote.port, port), ..Known::default() };
        self.flows.push(known);
        self.handles.push(handle);
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        while self.server.advance(self.now, 64) {}
    }

    /// The peer learns from what the server sends.
    fn listen_to_server(&mut self) {
        let mut batch = TxBatch::new(16);
        for _ in 0..1_000 {
            let more = self.server.tx(&mut batch);
            for segment in batch.pending() {
                let bytes = segment.to_vec();
                let (_, payload) = IpHeader::parse(&bytes).expect("an IP packet");
                let (header, len) = TcpHeader::parse(payload).expect("a TCP header");
                self.learn(&header, (payload.len() - len) as u32);
            }
            batch.consume(16);
            if !more {
                return;
            }
        }
        panic!("the server sends without end");
    }

    fn learn(&mut self, header: &TcpHeader, text: u32) {
        let ports = (header.dst_port, header.src_port);
        let Some(known) = self.flows.iter_mut().find(|known| known.ports == ports) else { return };
        if header.flags.contains(TcpFlags::RST) {
            return;
        }
        known.acknowledged = header.seq;
        known.sent = header.seq + text + header.flags.sequence_len();
        if header.flags.contains(TcpFlags::ACK) {
            known.next = header.ack;
            known.edge = header.ack + u32::from(header.window.get());
        }
        known.stamps = header.options.timestamps.map(|stamps| (stamps.ecr, stamps.val));
    }

    fn check(&self) {
        self.server.check_invariants().expect("what must hold");
        let counters = self.server.counters();
        let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
        assert_eq!(counters.in_segs, counters.accepted_segs + dropped);
        for index in 0..64 {
            let Some(slot) = self.server.tcp.records.connections.0.get(index) else { continue };
            let (snd, rcv) = (slot.connection.send_sequence(), slot.connection.recv_sequence());
            assert!(snd.una.at_or_before(snd.nxt) && snd.nxt.at_or_before(snd.max), "{snd:?}");
            assert!(rcv.nxt.at_or_before(rcv.edge), "{rcv:?}");
        }
    }

    /// The application aborts everything, and time passes.
    fn give_up(&mut self) {
        while let Some(handle) = self.server.accept(self.listener) {
            self.handles.push(handle);
        }
        for handle in core::mem::take(&mut self.handles) {
            self.server.abort(handle);
        }
        self.server.close_listener(self.listener);
        // What was closed before is an orphan, which ends by its second time-out after 102 s; of a closed window
        // whose probes are answered by their number, a minute apart.
        for _ in 0..600 {
            self.wait(3_000);
            self.listen_to_server();
            while let Some(event) = self.server.poll_event() {
                assert!(matches!(event, Event::Accepted(_)), "{event:?} of a released handle");
            }
        }
        assert_eq!(self.server.census(), Census::default());
    }
}

/// Two may wait, and two may be in a handshake of Fast Open.
fn listen(server: &mut Shard, over: Over) -> ListenerId {
    let listener = server.listen(server_at(over), 2).expect("the port is free");
    assert!(server.set_fast_open(listener, 2));
    listener
}

impl Device {
    /// Segments of 1,000 bytes are merged.
    fn merged(self, len: u16) -> SegMeta {
        const SIZE: u16 = 1_000;
        if !self.offload || len <= SIZE {
            return SegMeta::SINGLE;
        }
        SegMeta { segs: len.div_ceil(SIZE), gso_size: SIZE, ..SegMeta::SINGLE }
    }
}

impl Known {
    fn near(&self, near: Near) -> SeqNum {
        let base = match near.to {
            Landmark::Next => self.next,
            Landmark::Edge => self.edge,
            Landmark::Acknowledged => self.acknowledged,
            Landmark::Sent => self.sent,
            Landmark::Zero => SeqNum::new(0),
        };
        base + near.offset as u32
    }
}

impl Options {
    fn bytes(&self, known: &Known) -> Vec<u8> {
        match self {
            Self::None => Vec::new(),
            Self::Timestamps(ahead, ecr) => {
                let (val, echo) = known.stamps.unwrap_or_default();
                stamps(val.wrapping_add_signed(*ahead), echo.wrapping_sub(*ecr))
            }
            Self::Syn { mss, shift } => {
                let [high, low] = mss.to_be_bytes();
                let mut bytes = vec![2, 4, high, low, 4, 2, 3, 3, *shift, 1, 1, 1];
                bytes.extend(stamps(77, 0));
                bytes
            }
            Self::Raw(bytes) => bytes.clone(),
        }
    }
}

fn stamps(val: u32, ecr: u32) -> Vec<u8> {
    let mut bytes = vec![1, 1, 8, 10];
    bytes.extend(val.to_be_bytes());
    bytes.extend(ecr.to_be_bytes());
    bytes
}

fn near() -> impl Strategy<Value = Near> {
    let to = prop_oneof![
        4 => Just(Landmark::Next),
        1 => Just(Landmark::Edge),
        2 => Just(Landmark::Acknowledged),
        4 => Just(Landmark::Sent),
        1 => Just(Landmark::Zero),
    ];
    let offset = prop_oneof![
        6 => Just(0),
        4 => -3i64..=3,
        2 => -3_000i64..=3_000,
        1 => -70_000i64..=70_000,
        1 => (1i64 << 31) - 2..=(1i64 << 31) + 2,
        1 => any::<u32>().prop_map(i64::from),
    ];
    (to, offset).prop_map(|(to, offset)| Near { to, offset })
}

fn options() -> impl Strategy<Value = Options> {
    let shift = prop_oneof![0u8..=14, any::<u8>()];
    prop_oneof![
        2 => Just(Options::None),
        6 => (-2i32..=2, 0u32..=5).prop_map(|(val, ecr)| Options::Timestamps(val, ecr)),
        1 => (any::<i32>(), any::<u32>()).prop_map(|(val, ecr)| Options::Timestamps(val, ecr)),
        2 => (any::<u16>(), shift).prop_map(|(mss, shift)| Options::Syn { mss, shift }),
        2 => vec(prop_oneof![0u8..=30, any::<u8>()], 0..=40).prop_map(Options::Raw),
    ]
}

fn flags() -> impl Strategy<Value = u16> {
    let usual = [0x02u16, 0x10, 0x18, 0x11, 0x12, 0x14, 0x04, 0x30, 0x01, 0x00];
    prop_oneof![4 => proptest::sample::select(usual.to_vec()), 1 => 0u16..=0x1ff]
}

fn step() -> impl Strategy<Value = Step> {
    let ack = TcpFlags::ACK;
    let polite = prop_oneof![
        3 => Just((TcpFlags::SYN, 0)),
        1 => Just((TcpFlags::SYN_ACK, 0)),
        4 => Just((ack, 0)),
        3 => (1u16..=1_400).prop_map(move |len| (ack | TcpFlags::PSH, len)),
        1 => (1u16..=30_000).prop_map(move |len| (ack | TcpFlags::PSH, len)),
        2 => (0u16..=10).prop_map(move |len| (ack | TcpFlags::FIN, len)),
    ];
    let act = prop_oneof![
        3 => Just(Act::Accept),
        1 => Just(Act::Connect),
        1 => (0u16..=2_000).prop_map(Act::ConnectFast),
        3 => (0u16..=20_000).prop_map(Act::Send),
        2 => Just(Act::Read),
        2 => Just(Act::Shutdown),
        1 => Just(Act::Close),
        1 => Just(Act::Abort),
        1 => Just(Act::Relisten),
    ];
    let len = prop_oneof![6 => Just(0u16), 4 => 1u16..=3, 4 => 0u16..=1_400, 1 => 0u16..=30_000];
    let millis = prop_oneof![0u64..=50, 0u64..=2_000, 0u64..=130_000];
    prop_oneof![
        6 => (0u8..8, polite)
            .prop_map(|(flow, (flags, len))| Step::Polite { flow, flags, len }),
        3 => (0u8..8, 0u16..=3_000).prop_map(|(flow, len)| Step::Fast { flow, len }),
        8 => (0u8..8, flags(), near(), near(), any::<u16>(), len, options()).prop_map(
            |(flow, flags, seq, ack, window, len, options)| Step::Wild {
                flow, flags, seq, ack, window, len, options
            }
        ),
        4 => (any::<u8>(), act).prop_map(|(which, act)| Step::Act { which, act }),
        2 => millis.prop_map(|millis| Step::Wait { millis }),
    ]
}

#[test]
fn the_number_of_a_syn_that_was_not_sent_cannot_be_acknowledged() {
    let mut siege = Siege::new(Device::PLAIN, Over::V4, &Tunables::default());
    siege.connect(0, None);
    let (known, handle) = (siege.flows[3], siege.handles[0]);
    let connection =
        &siege.server.tcp.records.connections.0.get(handle.index()).expect("it is new");
    let header = TcpHeader {
        src_port: known.ports.0,
        dst_port: known.ports.1,
        ack: connection.connection.send_sequence().una,
        flags: TcpFlags::SYN_ACK,
        ..TcpHeader::default()
    };
    siege.arrive(&header, &[], 0);
    assert_eq!(siege.server.counters().dropped(DropReason::UnacceptableAck), 1);
    assert_eq!(siege.server.state(handle), Some(State::SynSent));
    siege.give_up();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_segment_has_one_verdict_and_nothing_outlives_its_end(
        v6 in any::<bool>(),
        small in any::<bool>(),
        device in proptest::sample::select(Device::ALL.to_vec()),
        steps in vec(step(), 1..120),
    ) {
        let recv_buffer = if small { 2_048 } else { 256 << 10 };
        let tunables = Tunables { recv_buffer, max_time_wait: 2, ..Tunables::default() };
        let mut siege = Siege::new(device, if v6 { Over::V6 } else { Over::V4 }, &tunables);
        for step in &steps {
            siege.take(step);
        }
        siege.give_up();
    }
}
