//! Ten thousand slow readers, and a fast one, at one server whose memory is short.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_sim::host::Application;
use whimbrel_sim::pair::{Offload, Pair, PairConfig, server_at};
use whimbrel_sim::world::Checks;
use whimbrel_stack::{Event, Handle, ListenerId, Recv, Shard};
use whimbrel_tcp::conn::{BufferSize, SocketOptions};
use whimbrel_tcp::{DropReason, Tunables};
use whimbrel_wire::Family;

/// Application of both hosts.
#[derive(Debug)]
enum End {
    Sender(Sender),
    Reader(Reader),
}

/// Sends as much as possible on each of its connections.
#[derive(Debug)]
struct Sender {
    /// Number of slow connections still to open, and the time of the next.
    to_come: usize,
    at: Instant,
    fast: Option<Handle>,
    slow: Vec<Handle>,
    /// Time when the slow ones begin to send.
    begins: Option<Instant>,
}

/// Reads a KiB of each slow connection in turn, and all of the fast one.
#[derive(Debug)]
struct Reader {
    fast_listener: Option<ListenerId>,
    fast: Option<Handle>,
    slow: Vec<Handle>,
    next: usize,
    at: Instant,
    /// Bytes read from each slow connection.
    read: Vec<u64>,
    /// Most memory that the shard ever held.
    most_held: u64,
}

impl Application for End {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        match self {
            Self::Sender(sender) => sender.on_wake(shard, now),
            Self::Reader(reader) => reader.on_wake(shard, now),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Sender(sender) if sender.to_come > 0 => Some(sender.at),
            Self::Sender(sender) => sender.begins,
            Self::Reader(reader) => Some(reader.at),
        }
    }
}

impl Sender {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        if self.fast.is_none() {
            self.fast = Some(shard.connect(server_at(Family::V4, FAST), None).unwrap());
        }
        if self.to_come > 0 && self.at <= now {
            let few = self.to_come.min(100);
            for _ in 0..few {
                let send_size = BufferSize::Exact(32 << 10);
                let options = SocketOptions { send_size, ..SocketOptions::default() };
                let at = server_at(Family::V4, SLOW);
                self.slow.push(shard.connect_with(at, None, &options).unwrap());
            }
            self.to_come -= few;
            self.at = now + Duration::from_millis(10);
        }
        if self.begins.is_some_and(|begins| begins <= now) {
            self.begins = None;
            self.slow.iter().for_each(|handle| fill(shard, *handle));
        }
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Connected(handle) if self.fast == Some(handle) => fill(shard, handle),
                Event::Writable(handle) => fill(shard, handle),
                Event::Closed(_, reason) => panic!("a connection ended at {now:?}: {reason:?}"),
                _ => {}
            }
        }
    }
}

/// Writes text while there is room.
fn fill(shard: &mut Shard, handle: Handle) {
    while shard.send(handle, &mut Bytes::from_static(&TEXT)).unwrap() == TEXT.len() {}
}

impl Reader {
    fn on_wake(&mut self, shard: &mut Shard, now: Instant) {
        if self.fast_listener.is_none() {
            self.fast_listener = Some(shard.listen(server_at(Family::V4, FAST), 16).unwrap());
            shard.listen(server_at(Family::V4, SLOW), 16_384).unwrap();
        }
        while let Some(event) = shard.poll_event() {
            match event {
                Event::Accepted(listener) => {
                    while let Some(handle) = shard.accept(listener) {
                        if self.fast_listener == Some(listener) {
                            self.fast = Some(handle);
                            continue;
                        }
                        self.slow.push(handle);
                        self.read.push(0);
                    }
                }
                Event::Readable(handle) if self.fast == Some(handle) => {
                    while let Recv::Data(_) = shard.recv(handle) {}
                }
                Event::Closed(_, reason) => panic!("a connection ended at {now:?}: {reason:?}"),
                _ => {}
            }
        }
        if self.at <= now {
            self.at = now + Duration::from_millis(10);
            self.read_in_turn(shard);
        }
        self.most_held = self.most_held.max(shard.memory().held);
    }

    /// Reads a KiB of each connection in turn, at a pace that serves all in ten seconds.
    fn read_in_turn(&mut self, shard: &mut Shard) {
        for _ in 0..self.slow.len().div_ceil(1_000) {
            let place = self.next % self.slow.len();
            if let Recv::Data(text) = shard.recv_up_to(self.slow[place], 1 << 10) {
                self.read[place] += text.len() as u64;
            }
            self.next += 1;
        }
    }
}

const FAST: u16 = 5_201;
const SLOW: u16 = 5_202;
static TEXT: [u8; 16 << 10] = [7; 16 << 10];
const BUDGET: u64 = 128 << 20;

/// Runs a fast flow together with `slow` slow ones, which start after a second, from a host whose
/// device cuts super-segments or does not. Returns the fast flow's bytes in each second between
/// these two, and the pair at the end.
fn play(slow: usize, offload: Offload, seconds: [u64; 2]) -> (u64, Pair<End>) {
    let rules = [1 << 42, BUDGET].map(|mem_budget| Tunables { mem_budget, ..Tunables::default() });
    // The path loses nothing: the crowd affects the fast one only by the memory that it takes.
    let link = "rate=200M,delay=5ms,queue=300000p".parse::<whimbrel_link::LinkConfig>().unwrap();
    let config = PairConfig {
        tunables: rules,
        offload: [offload, Offload::None],
        links: [link.clone(), link],
        checks: Checks::Nothing,
        ..PairConfig::default()
    };
    let begin = Instant::ZERO + Duration::from_secs(1);
    let begins = Some(begin + Duration::from_secs(9));
    let sender = Sender { to_come: slow, at: begin, fast: None, slow: Vec::new(), begins };
    let reader = Reader {
        fast_listener: None,
        fast: None,
        slow: Vec::new(),
        next: 0,
        at: begin,
        read: Vec::new(),
        most_held: 0,
    };
    let mut pair = Pair::new(&config, [End::Sender(sender), End::Reader(reader)]).unwrap();
    pair.world.start().unwrap();
    let mut carried = 0;
    for second in seconds {
        while pair.world.now() < Instant::ZERO + Duration::from_secs(second) {
            pair.world.step().unwrap();
        }
        let (shard, End::Sender(sender)) = pair.world.host(pair.client) else { unreachable!() };
        let acked = shard.snapshot(sender.fast.unwrap()).unwrap().tally.bytes_acked;
        carried = acked - carried;
    }
    (carried / (seconds[1] - seconds[0]), pair)
}

/// Slow readers' peers send from such a host: the budget holds, and a fast reader keeps its rate.
fn judge_crowd(offload: Offload) {
    const SLOW_ONES: usize = 10_000;
    let (alone, _) = play(0, offload, [10, 15]);
    // By then the refused senders have backed off: their useless data would take the path.
    let (together, pair) = play(SLOW_ONES, offload, [41, 61]);
    let (shard, End::Sender(sender)) = pair.world.host(pair.client) else { unreachable!() };
    let again = shard.snapshot(sender.fast.unwrap()).unwrap().info_counts.total_retrans;
    assert!(again < 16, "{again} segments of the fast one's were refused, or came late");
    let (shard, End::Reader(reader)) = pair.world.host(pair.server) else { unreachable!() };
    assert_eq!(reader.slow.len(), SLOW_ONES);
    let counters = shard.counters();
    let levels = [counters.mem_tight, counters.mem_full];
    assert!(levels[0] > 0 && levels[1] == 0, "{levels:?}, at most {} held", reader.most_held);
    assert!(shard.counters().dropped(DropReason::MemoryBudget) > 0);
    assert!(reader.most_held <= BUDGET, "{}", reader.most_held);
    assert!(together * 10 >= alone * 9, "{together} of {alone}");
    let least = reader.read.iter().min().unwrap();
    assert!(*least >= 1 << 10, "each of them is served: {least}");
}

#[test]
fn slow_readers_stay_within_budget_and_fast_one_keeps_rate() {
    judge_crowd(Offload::None);
}

/// Ten segments of each come at once, and then as many more as allowed, before any can be seen to
/// be slow.
#[test]
fn slow_readers_stay_within_budget_under_bursts() {
    judge_crowd(Offload::Full);
}
