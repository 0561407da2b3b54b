//! Cost of a quantum of a paced flow, with both hosts, the wire and the applications, among 10,000 flows of a
//! megabit per second each; and of the same two segments of flows without a rate, which an acknowledgment
//! releases a round trip after the ones before: their peer's window has room for two.
//!
//! Before anything is counted, the time of each quantum of the paced flows is checked.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_stack::{Event, Handle, ListenerId, Recv, RxFrame, Shard, TxBatch};
use whimbrel_tcp::conn::{SocketOptions, SocketOverrides};
use whimbrel_wire::Endpoint;

use super::whimbrel::shard;
use super::{Buffer, Case, Copies, Link, Stamps};
use crate::Failure;
use crate::churn::{CLIENTS, SERVER, address};
use crate::counts::measured;

/// The cause that releases text of the flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pacing {
    Off,
    On,
}

/// Two hosts with all connections between them, each with two segments under way at most.
struct PacedFlows {
    now: Instant,
    client: Shard,
    server: Shard,
    listener: ListenerId,
    there: Path,
    back: Path,
    connected: Vec<Handle>,
    accepted: u32,
    read: u64,
    /// By the port of a flow: when the first segment of its last quantum left.
    left: BTreeMap<u16, Instant>,
    /// Quanta of which the time was checked.
    checked: u32,
}

/// The names of both cases: without a rate, and with.
pub(crate) const NAMES: [&str; 2] = ["flows-10000-unpaced", "flows-10000-paced"];
/// Instructions that pacing may add to a quantum.
pub(crate) const MOST_ADDED: u64 = 300;

/// Has the quanta of this case counted, if there is one of this name, and prints how many they were.
pub(crate) fn run(name: &str) -> Option<Result<(), Failure>> {
    let pacing = match NAMES.iter().position(|known| *known == name)? {
        0 => Pacing::Off,
        _ => Pacing::On,
    };
    Some(count(pacing))
}

fn count(pacing: Pacing) -> Result<(), Failure> {
    let mut flows = PacedFlows::new(pacing)?;
    flows.write()?;
    flows.carry(WARM_UP)?;
    if pacing == Pacing::On {
        flows.check_times()?;
    }
    let (before, mut done) = (flows.read, Ok(()));
    measured(&mut || done = flows.carry(ROUND));
    done?;
    match flows.client.counters().retrans_segs {
        0 => println!("{}", (flows.read - before) / QUANTUM),
        again => return Err(format!("{again} segments were sent again").into()),
    }
    Ok(())
}

impl PacedFlows {
    fn new(pacing: Pacing) -> Result<Self, Failure> {
        let case = Case {
            flows: FLOWS,
            link: Link::Mtu(1_500),
            buffer: Buffer::Auto,
            copies: Copies::None,
            stamps: Stamps::On,
        };
        let mut server = shard(case, SERVER)?;
        let listener = server.listen(Endpoint::new(address(SERVER), 80), FLOWS)?;
        let overrides =
            SocketOverrides { window_clamp: Some(WINDOW), ..SocketOverrides::default() };
        server.set_listener_options(listener, &with(overrides));
        let mut flows = Self {
            now: Instant::ZERO,
            client: shard(case, CLIENTS)?,
            server,
            listener,
            there: Path::new(),
            back: Path::new(),
            connected: Vec::new(),
            accepted: 0,
            read: 0,
            left: BTreeMap::new(),
            checked: 0,
        };
        let mut opened = 0;
        while flows.connected.len() < FLOWS as usize || flows.accepted < FLOWS {
            if flows.accepted == opened {
                let server = Endpoint::new(address(SERVER), 80);
                for _ in 0..AT_A_TIME {
                    flows.client.connect(server, None)?;
                }
                opened += AT_A_TIME;
            }
            if flows.turn()? == 0 {
                flows.wait()?;
            }
        }
        let rate = NonZeroU64::new(RATE).filter(|_| pacing == Pacing::On);
        let overrides = SocketOverrides { max_pacing_rate: rate, ..SocketOverrides::default() };
        for handle in &flows.connected {
            flows.client.set_options(*handle, &with(overrides));
        }
        Ok(flows)
    }

    /// Each application writes all text of its flow, spread over a period.
    fn write(&mut self) -> Result<(), Failure> {
        let begun = self.now;
        for index in 0..self.connected.len() {
            let mut text = Bytes::from_static(&[7; TEXT]);
            let handle = self.connected.get(index).copied().ok_or("a flow is gone")?;
            self.client.set_now(self.now);
            if self.client.send(handle, &mut text)? != TEXT {
                return Err("a send buffer is smaller than the text".into());
            }
            self.pass(begun + PERIOD * index as u32 / FLOWS)?;
        }
        Ok(())
    }

    /// Carries so many bytes more, or some more.
    fn carry(&mut self, bytes: u64) -> Result<(), Failure> {
        let goal = self.read + bytes;
        while self.read < goal {
            if self.turn()? == 0 {
                self.wait()?;
            }
        }
        Ok(())
    }

    /// Quanta leave within a tenth of their time: checks two of each flow.
    fn check_times(&mut self) -> Result<(), Failure> {
        while self.checked < 2 * FLOWS {
            if self.turn()? == 0 {
                self.wait()?;
                continue;
            }
            for port in self.there.text_ports() {
                let Some(last) = self.left.insert(port, self.now) else { continue };
                let since = self.now.since(last);
                if since.is_zero() {
                    // The second segment of a quantum.
                } else if since.abs_diff(PERIOD) <= PERIOD / 10 {
                    self.checked += 1;
                } else {
                    let text =
                        format!("a quantum left {since:?} after the one before, not {PERIOD:?}");
                    return Err(text.into());
                }
            }
        }
        Ok(())
    }

    /// Carries what leaves and arrives now; returns the number of frames.
    fn turn(&mut self) -> Result<usize, Failure> {
        let mut moved = self.there.carry(self.now, &mut self.client, &mut self.server);
        self.serve()?;
        moved += self.back.carry(self.now, &mut self.server, &mut self.client);
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Connected(handle) => self.connected.push(handle),
                Event::Closed(_, why) => return Err(format!("it ended: {why:?}").into()),
                _ => {}
            }
        }
        Ok(moved)
    }

    /// Time passes up to `end`, with all that is due meanwhile.
    fn pass(&mut self, end: Instant) -> Result<(), Failure> {
        loop {
            while self.turn()? > 0 {}
            if self.now >= end {
                return Ok(());
            }
            self.now = self.now + WAKE;
            self.advance();
        }
    }

    /// Time passes to the next timer or arrival, and a little more.
    fn wait(&mut self) -> Result<(), Failure> {
        let next = self.next_deadline()?.as_nanos().next_multiple_of(WAKE.as_nanos() as u64);
        self.now = self.now.max(Instant::from_nanos(next));
        self.advance();
        Ok(())
    }

    fn advance(&mut self) {
        while self.client.advance(self.now, 64) | self.server.advance(self.now, 64) {}
    }

    fn next_deadline(&self) -> Result<Instant, Failure> {
        let deadlines = [self.client.next_deadline(), self.server.next_deadline()];
        let arrivals = [&self.there, &self.back].map(Path::next_arrival);
        let next = deadlines.into_iter().chain(arrivals).flatten().min();
        next.ok_or_else(|| "both hosts wait for nothing".into())
    }

    /// The server's application reads all that came.
    fn serve(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Accepted(_) => {
                    while self.server.accept(self.listener).is_some() {
                        self.accepted += 1;
                    }
                }
                Event::Readable(handle) => {
                    while let Recv::Data(text) = self.server.recv(handle) {
                        self.read += text.len() as u64;
                    }
                }
                Event::Closed(_, why) => return Err(format!("it ended: {why:?}").into()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A direction of the path between the hosts.
struct Path {
    batch: TxBatch,
    /// Frames on the way, each with the time of its arrival, in that order.
    frames: VecDeque<(Instant, Vec<u8>)>,
    /// Buffers of frames that have arrived.
    spare: Vec<Vec<u8>>,
    /// Frames that left last.
    last: usize,
}

impl Path {
    fn new() -> Self {
        Self { batch: TxBatch::new(BURST), frames: VecDeque::new(), spare: Vec::new(), last: 0 }
    }

    /// Takes a burst of what one host has to send, and hands a burst of what has arrived to the other; returns the
    /// number of frames.
    fn carry(&mut self, now: Instant, from: &mut Shard, to: &mut Shard) -> usize {
        from.set_now(now);
        from.tx(&mut self.batch);
        self.last = self.batch.pending().len();
        for segment in self.batch.pending() {
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.extend_from_slice(segment.header());
            for slice in segment.payload.as_slice() {
                frame.extend_from_slice(slice);
            }
            self.frames.push_back((now + DELAY, frame));
        }
        self.batch.consume(self.last);
        let arrived = self.frames.iter().take(BURST).take_while(|(at, _)| *at <= now).count();
        let lent: Vec<_> = self.frames.iter().take(arrived).map(|(_, frame)| lend(frame)).collect();
        to.rx(now, &lent);
        for (_, mut frame) in self.frames.drain(..arrived) {
            frame.clear();
            self.spare.push(frame);
        }
        self.last + arrived
    }

    fn next_arrival(&self) -> Option<Instant> {
        self.frames.front().map(|(at, _)| *at)
    }

    /// The ports from which the segments with text that left last came, over IPv4 without options.
    fn text_ports(&self) -> impl Iterator<Item = u16> {
        let last = self.frames.iter().rev().take(self.last).map(|(_, frame)| frame);
        let with_text = last.filter(|frame| frame.len() > WITHOUT_TEXT);
        with_text.filter_map(|frame| Some(u16::from_be_bytes([*frame.get(20)?, *frame.get(21)?])))
    }
}

fn lend(frame: &[u8]) -> RxFrame<'_> {
    RxFrame::new(frame, SegMeta { checksum: RxChecksum::Unknown, ..SegMeta::SINGLE })
}

fn with(overrides: SocketOverrides) -> SocketOptions {
    SocketOptions { overrides, ..SocketOptions::default() }
}

const FLOWS: u32 = 10_000;
/// Handshakes at a time.
const AT_A_TIME: u32 = 50;
/// A megabit per second, in bytes.
const RATE: u64 = 125_000;
/// Bytes of a quantum at [`RATE`]: two full segments.
const QUANTUM: u64 = 2 * 1_448;
const PERIOD: Duration = Duration::from_nanos(QUANTUM * 1_000_000_000 / RATE);
/// From one host to the other. A round trip is shorter than a period.
const DELAY: Duration = Duration::from_millis(5);
/// Frames of a burst, at most.
const BURST: usize = 64;
/// Bytes of a frame with no text that has every option of an acknowledgment of TCP, at most.
const WITHOUT_TEXT: usize = 80;
/// Threads wake up at multiples of this, so that bursts are of many flows.
const WAKE: Duration = Duration::from_micros(50);
/// Bytes until all flows are paced: an initial window of each leaves at once.
const WARM_UP: u64 = 8 * ROUND;
/// Bytes of a quantum of each flow.
const ROUND: u64 = QUANTUM * FLOWS as u64;
/// Bytes that each application writes.
const TEXT: usize = 20 * QUANTUM as usize;
/// The largest window of the server's, which has room for a quantum, and not for another segment.
const WINDOW: u32 = 3_072;
