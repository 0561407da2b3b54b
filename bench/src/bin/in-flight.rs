//! Cost of an acknowledgment or a time-out for a sender, with the segments it then sends, with little
//! and with much in flight: instructions, with a limit for the ratio of both. It is a separate program:
//! another caller would change the inlining of the other's functions.

use std::hint::black_box;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{Payload, RxChecksum, SegMeta, Slices};
use whimbrel_tcp::conn::{ActiveOpen, Connection, FirstTrip, Handshake};
use whimbrel_tcp::{Context, RxSegment, Tunables};
use whimbrel_wire::tcp::{
    OptionOrder, SackBlock, SackBlocks, TcpFlags, TcpHeader, TcpView, Timestamps,
};
use whimbrel_wire::{Address, Mss, RawWindow, SeqNum, TrafficClass, WindowScale};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [name, events] = words.as_slice() else { return Err("in-flight NAME EVENTS".into()) };
    let case = CASES.iter().find(|case| case.name == name);
    case.ok_or_else(|| format!("{name}: not a case"))?.run(events.parse()?)
}

/// Measured event of a sender with much in flight.
#[derive(Clone, Copy)]
enum Event {
    /// Acknowledgments of a segment each.
    Acks,
    /// Acknowledgments with three blocks, of which the first names a segment more, while so many are missing.
    Sacks(u32),
    /// The retransmission timer runs out.
    Timeouts,
}

/// Segments in flight, and what happens then.
struct Case {
    name: &'static str,
    segments: u32,
    event: Event,
}

const fn case(name: &'static str, segments: u32, event: Event) -> Case {
    Case { name, segments, event }
}

const CASES: [Case; 6] = [
    case("ack-of-100", 100, Event::Acks),
    case("ack-of-100000", 100_000, Event::Acks),
    case("sack-30-in-100", 100, Event::Sacks(30)),
    case("sack-1000-in-100000", 100_000, Event::Sacks(1_000)),
    case("timeout-of-100", 100, Event::Timeouts),
    case("timeout-of-100000", 100_000, Event::Timeouts),
];

/// While this is on the stack, instructions count.
#[inline(never)]
fn measured(work: &mut dyn FnMut()) {
    work();
    // Or the call above would be a jump, which ends the function that is looked for.
    black_box(());
}

impl Case {
    /// Sends so many segments; then it happens, so many times.
    fn run(&self, events: u32) -> Result<(), Failure> {
        let mut sender = Sender::new();
        sender.open_window(self.segments)?;
        let (mut acked, mut timeouts) = (0, 0);
        match self.event {
            Event::Acks => {
                sender.pass(TRIP);
                let acks: Vec<_> = (1..=events).map(|number| sender.ack(number, &[])).collect();
                measured(&mut || acks.iter().for_each(|ack| sender.hear(ack)));
                acked = events;
            }
            Event::Sacks(holes) => {
                sender.pass(TRIP);
                let acks = self.lose(holes, events, &mut sender);
                measured(&mut || acks.iter().for_each(|ack| sender.hear(ack)));
            }
            Event::Timeouts => {
                // The loss probe, which goes before them.
                sender.run_out();
                measured(&mut || (0..events).for_each(|_| sender.run_out()));
                timeouts = events;
            }
        }
        let seq = sender.connection.send_sequence();
        let is_right = seq.max.offset_from(seq.una) == (self.segments - acked) * TEXT
            && sender.cx.counters.timeouts == u64::from(timeouts);
        if is_right { Ok(()) } else { Err(format!("{}: {seq:?}", self.name).into()) }
    }

    /// So many segments are missing among the first nine of ten, and all others arrive but for some at the
    /// end, whose acknowledgments are returned.
    fn lose(&self, holes: u32, events: u32, sender: &mut Sender) -> Vec<Vec<u8>> {
        let hole = |number: u32| number * (self.segments * 9 / 10 / holes);
        let behind = |number: u32| hole(number) + 1..hole(number + 1);
        let last = holes - 1;
        for number in 0..last {
            let named: Vec<_> = (number.saturating_sub(2)..=number).rev().map(behind).collect();
            let ack = sender.ack(0, &named);
            sender.hear(&ack);
        }
        let top = |number| hole(last) + 1..self.segments - events + number;
        let ack = |number| sender.ack(0, &[top(number), behind(last - 1), behind(last - 2)]);
        (1..=events).map(ack).collect()
    }
}

/// A connection of which nothing was lost yet.
struct Sender {
    connection: Connection,
    cx: Context,
    /// The number of its first segment in flight.
    first: SeqNum,
}

impl Sender {
    fn new() -> Self {
        let tunables =
            Tunables { send_buffer: BUFFER, send_buffer_max: BUFFER, ..Tunables::default() };
        let now = Instant::from_millis(1_000);
        let handshake = Handshake {
            open: ActiveOpen {
                remote: Address::from_v4_bytes([10, 0, 0, 2]),
                remote_port: 9,
                local_port: 80,
                local_index: 0,
                iss: ISS,
                timestamp_offset: 0,
                mss: Mss::new(1_460),
            },
            irs: IRS,
            peer_mss: Mss::new(1_460),
            scales: Some((WindowScale::new(12), WindowScale::new(12))),
            ts_recent: Some(1),
            sack: true,
            round_trip: FirstTrip::Took(TRIP.into()),
        };
        let mut cx = Context::new(now, tunables);
        let connection = Connection::from_handshake(&mut cx, &handshake);
        let mut sender = Self { connection, cx, first: ISS + 1 };
        let ack = sender.ack(0, &[]);
        sender.hear(&ack);
        sender
    }

    /// Slow start leads to a window of so many segments; as many are in flight then.
    fn open_window(&mut self, segments: u32) -> Result<(), Failure> {
        while self.connection.cwnd() < (segments + 1) * TEXT {
            let sent = self.connection.cwnd() / TEXT;
            self.send(sent);
            self.pass(TRIP);
            for pair in 1..=sent / 2 {
                let ack = self.ack(2 * pair, &[]);
                self.hear(&ack);
            }
            let ack = self.ack(sent, &[]);
            self.hear(&ack);
            self.first += sent * TEXT;
        }
        self.send(segments);
        let seq = self.connection.send_sequence();
        let in_flight = seq.nxt.offset_from(seq.una);
        let all = segments * TEXT;
        if in_flight == all { Ok(()) } else { Err(format!("{in_flight} of {all} left").into()) }
    }

    fn send(&mut self, segments: u32) {
        let text = Bytes::from_static(&[7; TEXT as usize]);
        for _ in 0..segments {
            let mut text = text.clone();
            let taken = self.with(|connection, cx| connection.write(cx, &mut text));
            debug_assert!(taken.is_ok_and(|bytes| bytes == TEXT as usize));
            self.transmit();
        }
    }

    /// Time passes until the sender's timer runs out, and what may leave then does.
    fn run_out(&mut self) {
        self.tell(self.connection.next_deadline());
        self.with(|connection, cx| connection.on_deadline(cx));
        self.transmit();
    }

    /// All that may leave does.
    fn transmit(&mut self) {
        let mut slices = Slices::default();
        while self.with(|connection, cx| connection.poll_transmit(cx, TEXT, &mut slices)).is_some()
        {
            black_box(&mut slices).clear();
        }
    }

    fn pass(&mut self, time: Duration) {
        self.tell(self.cx.now + time);
    }

    /// An acknowledgment of the first `segments` of those in flight, that names others.
    fn ack(&self, segments: u32, named: &[Range<u32>]) -> Vec<u8> {
        let place = |segment: u32| self.first + segment * TEXT;
        let mut blocks = SackBlocks::NONE;
        for range in named {
            blocks.push(SackBlock { left: place(range.start), right: place(range.end) });
        }
        let sent = self.connection.tsval(self.cx.tick).saturating_sub(TRIP.as_millis() as u32);
        let mut header = TcpHeader {
            src_port: 9,
            dst_port: 80,
            seq: IRS + 1,
            ack: place(segments),
            flags: TcpFlags::ACK,
            window: RawWindow::new(u16::MAX),
            ..TcpHeader::default()
        };
        header.options.timestamps = Some(Timestamps { val: 2, ecr: sent });
        header.options.sack = blocks;
        let mut bytes = vec![0; TcpHeader::MAX_LEN];
        let len = header.emit(OptionOrder::Linux, &mut bytes);
        bytes.truncate(len);
        bytes
    }

    /// It arrives, and what may leave then does.
    fn hear(&mut self, ack: &[u8]) {
        const META: SegMeta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
        if let Ok((header, _)) = TcpView::parse(ack) {
            let segment = RxSegment {
                header,
                payload: Payload::NONE,
                meta: META,
                class: TrafficClass::default(),
            };
            let _ = black_box(self.with(|connection, cx| connection.on_segment(cx, &segment)));
            self.transmit();
        }
    }

    fn tell(&mut self, now: Instant) {
        (self.cx.now, self.cx.tick) = (now, now.tick());
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Connection, &mut Context) -> T) -> T {
        act(&mut self.connection, &mut self.cx)
    }
}

const ISS: SeqNum = SeqNum::new(1_000);
const IRS: SeqNum = SeqNum::new(9_000);
const TRIP: Duration = Duration::from_millis(100);
/// Bytes of a segment with timestamps.
const TEXT: u32 = 1_448;
const BUFFER: u32 = 160_000_000;
