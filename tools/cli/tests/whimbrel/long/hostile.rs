//! `whimbrel serve` over a socket between two processes, and a peer that sends the most costly text out
//! of order on open connections: an honest client is still served.
//!
//! A wire of that kind has one other end, so both clients are of this process: the honest one a shard,
//! the other frames that are made by hand.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_io::{Clock, Device, UnixWire, WireSpec, entropy};
use whimbrel_stack::{Handle, Recv, RxFrame, Shard, ShardConfig, TxBatch};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader};
use whimbrel_wire::{
    Address, Endpoint, IpHeader, Ipv4Header, Mss, Protocol, RawWindow, SeqNum, Sum,
};

use crate::running::Running;
use crate::scratch::scratch;

const SERVER: [u8; 4] = [10, 9, 0, 2];
const HONEST: [u8; 4] = [10, 9, 0, 1];
const HOSTILE: [u8; 4] = [10, 9, 0, 7];
/// The least of each stream: its duration, its segments, and the honest requests meanwhile.
const LASTS: Duration = Duration::from_secs(2);
const LEAST_SENT: u64 = 10_000;
const LEAST_SERVED: usize = 20;
/// Processor time of the server between a request and its response: other programs do not change it.
const AT_MOST: Duration = Duration::from_millis(100);
const ISN: SeqNum = SeqNum::new(1_000);
/// Segments of one connection: a window full, with a byte or a few each.
const SEGMENTS: u32 = 15_000;

/// Start of a segment's text behind RCV.NXT, and its length.
type Stream = fn(u32) -> (u32, usize);

const STREAMS: [(&str, Stream); 7] = [
    ("ascending", |at| (1 + at, 1)),
    ("descending", |at| (1 + (SEGMENTS - at), 1)),
    ("every second", |at| (1 + 2 * at, 1)),
    ("every second, descending", |at| (1 + 2 * (SEGMENTS - at), 1)),
    ("triples", |at| (1 + 4 * at, 3)),
    ("random", |at| (1 + (at.wrapping_mul(2_654_435_761) >> 8) % 60_000, 1)),
    ("overlapping", |at| (1 + (SEGMENTS - at), 64)),
];

#[test]
#[cfg_attr(debug_assertions, ignore = "of a debug build's speed nothing follows: give --release")]
fn out_of_order_attack_delays_others_at_most_100_ms() {
    for (name, stream) in STREAMS {
        let folder = scratch(&format!("hostile-{}", name.replace([' ', ','], "-")));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("wire").display().to_string();
        let server = serve(&path);
        let mut siege = Siege::new(&path, server);
        siege.run(stream);
        let slowest = siege.took.iter().max().copied().unwrap_or_default();
        println!(
            "{name}: {} segments, {} served, the slowest in {slowest:?}",
            siege.sent,
            siege.took.len()
        );
        assert!(slowest <= AT_MOST, "{name}: a request took {slowest:?} of the server");
        let _ = std::fs::remove_dir_all(&folder);
    }
}

fn serve(path: &str) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whimbrel"));
    command.args(["serve", "-w", &format!("unix:{path},addr=10.9.0.2/24")]).stdout(Stdio::piped());
    let mut running = Running::start(&mut command);
    let mut output = BufReader::new(running.take_stdout());
    let mut text = String::new();
    while !text.contains("try  ") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    running
}

/// Both clients, and their end of the wire.
struct Siege {
    server: Running,
    wire: UnixWire,
    clock: Clock,
    honest: Shard,
    /// The open request, since when, and the server's processor time then.
    asked: Option<(Handle, Instant, Duration)>,
    /// The server's processor time during each request.
    took: Vec<Duration>,
    /// The port of the connection that is attacked, the server's number if its SYN-ACK came, and how
    /// many segments were sent on it.
    port: u16,
    theirs: Option<SeqNum>,
    at: u32,
    /// All segments of the stream.
    sent: u64,
    batch: TxBatch,
}

impl Siege {
    fn new(path: &str, server: Running) -> Self {
        let WireSpec::Unix(config) = format!("unix:{path},addr=10.9.0.1/24").parse().unwrap()
        else {
            panic!("no unix:")
        };
        let wire = UnixWire::open(&config).unwrap();
        let honest = Shard::new(ShardConfig {
            tunables: Tunables::default(),
            secrets: entropy::secrets().unwrap(),
            capabilities: wire.capabilities(),
            addresses: config.addresses().to_vec(),
            routes: config.routes(),
        });
        Self {
            server,
            wire,
            clock: Clock::start(),
            honest: honest.unwrap(),
            asked: None,
            took: Vec::new(),
            port: 5_000,
            theirs: None,
            at: 0,
            sent: 0,
            batch: TxBatch::new(64),
        }
    }

    fn run(&mut self, stream: Stream) {
        let begun = Instant::now();
        self.open();
        while self.goes_on(begun) || self.asked.is_some() {
            self.hear();
            self.ask(begun);
            let now = self.clock.now();
            self.honest.advance(now, 64);
            self.honest.tx(&mut self.batch);
            self.press(stream);
            // What finds no room now goes first the next time.
            self.wire.tx_burst(&mut self.batch).unwrap();
            let waits = self.asked.map_or(Duration::ZERO, |(_, since, _)| since.elapsed());
            assert!(waits < Duration::from_secs(20), "not served in {waits:?}");
        }
    }

    fn goes_on(&self, begun: Instant) -> bool {
        begun.elapsed() < LASTS || self.sent < LEAST_SENT || self.took.len() < LEAST_SERVED
    }

    /// Sends the honest client's next request, on a new connection, or reads the rest of its response.
    fn ask(&mut self, begun: Instant) {
        let Some((handle, _, before)) = self.asked else {
            if self.goes_on(begun) {
                let now = self.clock.now();
                self.honest.set_now(now);
                let server = Endpoint::new(Address::from_v4_bytes(SERVER), 80);
                let handle = self.honest.connect(server, None).unwrap();
                let mut request = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                self.honest.send(handle, &mut request).unwrap();
                self.asked = Some((handle, Instant::now(), self.server.cpu_time()));
            }
            return;
        };
        match self.honest.recv(handle) {
            Recv::Data(data) => {
                assert!(data.starts_with(b"HTTP/1.1 200 OK\r\n"), "{data:?}");
                self.took.push(self.server.cpu_time() - before);
                self.honest.abort(handle);
                self.asked = None;
            }
            Recv::Pending => {}
            end => panic!("{end:?}"),
        }
        while self.honest.poll_event().is_some() {}
    }

    /// Gives each received packet to one of the two.
    fn hear(&mut self) {
        let (honest, port, theirs) = (&mut self.honest, self.port, &mut self.theirs);
        let now = self.clock.now();
        let deliver = &mut |frames: &[RxFrame<'_>]| {
            for frame in frames {
                let Ok((ip, payload)) = IpHeader::parse(frame.bytes) else { continue };
                if ip.dst == Address::from_v4_bytes(HONEST) {
                    honest.rx(now, &[*frame]);
                } else if let Ok((header, _)) = TcpHeader::parse(payload)
                    && header.dst_port == port
                    && header.flags.contains(TcpFlags::SYN_ACK)
                {
                    *theirs = Some(header.seq + 1);
                }
            }
        };
        while self.wire.rx_burst(deliver).unwrap() > 0 {}
    }

    /// The next connection to be attacked.
    fn open(&mut self) {
        self.port += 1;
        (self.theirs, self.at) = (None, 0);
        self.forge(TcpFlags::SYN, ISN, 0);
    }

    /// As much of the stream as the wire takes.
    fn press(&mut self, stream: Stream) {
        if self.theirs.is_none() {
            return;
        }
        if self.at == 0 {
            self.forge(TcpFlags::ACK, ISN + 1, 0);
        }
        while !self.batch.is_full() && self.at < SEGMENTS {
            let (place, len) = stream(self.at);
            self.forge(TcpFlags::ACK | TcpFlags::PSH, ISN + 1 + place, len);
            self.at += 1;
            self.sent += 1;
        }
        if self.at == SEGMENTS && !self.batch.is_full() {
            self.open();
        }
    }

    /// A segment of the connection that is attacked, if there is a place for it.
    fn forge(&mut self, flags: TcpFlags, seq: SeqNum, len: usize) {
        let header = TcpHeader {
            src_port: self.port,
            dst_port: 80,
            seq,
            ack: self.theirs.unwrap_or(SeqNum::new(0)),
            flags,
            window: RawWindow::new(60_000),
            ..TcpHeader::default()
        };
        self.batch.fill(|tx| {
            forge(tx, header, len);
            true
        });
    }
}

/// Headers and text, whole: the wire offers no offload.
fn forge(tx: &mut TxSegment, mut header: TcpHeader, len: usize) {
    if header.flags.contains(TcpFlags::SYN) {
        header.options.mss = Some(Mss::new(1_460));
        header.options.sack_permitted = true;
    }
    let room = tx.header_room();
    let tcp_len = header.emit(OptionOrder::Linux, &mut room[Ipv4Header::LEN..]);
    let text = Bytes::from_static(&[7; 64]).slice(..len);
    let whole = tcp_len + len;
    let ip = Ipv4Header::new(HOSTILE.into(), SERVER.into(), Protocol::TCP, whole);
    ip.emit(room);
    let (src, dst) = (Address::from_v4_bytes(HOSTILE), Address::from_v4_bytes(SERVER));
    let segment = &mut room[Ipv4Header::LEN..Ipv4Header::LEN + tcp_len];
    let sum = Sum::pseudo_header(src, dst, Protocol::TCP.0, whole as u32).add_bytes(segment);
    TcpHeader::set_checksum(segment, sum.add_bytes(&text).finish());
    tx.set_header_len(Ipv4Header::LEN + tcp_len);
    tx.transport_offset = Ipv4Header::LEN as u8;
    tx.checksum = TxChecksum::Done;
    if len > 0 {
        tx.payload.push(text).unwrap();
    }
}
