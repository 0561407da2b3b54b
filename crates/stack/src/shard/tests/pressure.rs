//! The steps of pressure as connections feel them: windows, who is refused, and that everybody goes on.

use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::budget::Pressure;
use whimbrel_tcp::conn::{BufferSize, SocketOptions};
use whimbrel_wire::SeqNum;

use super::budget::Short;
use super::hosts::{Over, drain, send, server_at};
use crate::Handle;

const BUDGET: u64 = 16 << 20;
/// The text with which the second and third step begin: there are some records too.
const TIGHT: usize = BUDGET as usize / 100 * 92;
const HIGH: usize = BUDGET as usize / 100 * 78;
const MSS: u32 = 1_448;
/// Of a window, by the scale for the largest buffer, bytes.
const UNIT: i32 = 1 << 11;
static TEXT: [u8; 1 << 20] = [7; 1 << 20];

/// Both ends of a connection.
#[derive(Clone, Copy)]
struct Ends {
    client: Handle,
    server: Handle,
}

impl Short {
    fn roomy() -> Self {
        Self::of(BUDGET, &Tunables::default())
    }

    fn connect(&mut self) -> Ends {
        let (client, server) = self.hosts.connected(Over::V4, self.listener);
        Ends { client, server }
    }

    /// Has the client send all that it may for so long, while the server reads. Returns the bytes that arrived.
    fn stream(&mut self, ends: Ends, millis: u64) -> usize {
        let mut read = 0;
        for _ in 0..millis {
            let now = self.hosts.now;
            self.hosts.client.set_now(now);
            let _ = self.hosts.client.send(ends.client, &mut Bytes::from_static(&TEXT));
            self.hosts.run(Duration::from_millis(1));
            read += drain(&mut self.hosts.server, ends.server).0.len();
        }
        read
    }

    /// The client sends so much, and the server does not read. Returns where the window's right edge was meanwhile.
    fn pour(&mut self, ends: Ends, bytes: usize, millis: u64) -> Vec<SeqNum> {
        let mut rest = Bytes::from(std::vec![7; bytes]);
        let mut edges = Vec::new();
        for _ in 0..millis {
            let now = self.hosts.now;
            self.hosts.client.set_now(now);
            let _ = self.hosts.client.send(ends.client, &mut rest);
            self.hosts.run(Duration::from_millis(1));
            edges.push(self.edge(ends.client));
        }
        edges
    }

    /// Returns the edge of the server's window, as the client knows it.
    fn edge(&self, client: Handle) -> SeqNum {
        let snd = self.hosts.client.snapshot(client).expect("open").snd;
        snd.una + snd.wnd.get()
    }

    fn recv_size(&self, server: Handle) -> u32 {
        self.hosts.server.snapshot(server).expect("open").recv_size
    }

    fn unread(&self, server: Handle) -> u32 {
        self.hosts.server.snapshot(server).expect("open").unread
    }
}

/// RFC 7323 2.4: windows are told in units of the scale, rounded down, which moves no edge that is kept.
fn never_moves_left(before: SeqNum, edges: &[SeqNum]) -> bool {
    let mut furthest = before;
    edges.iter().all(|edge| {
        furthest = furthest.later(*edge);
        furthest.distance_from(*edge) < UNIT
    })
}

#[test]
fn from_three_quarters_on_no_window_grows_and_nobody_is_refused() {
    let mut short = Short::roomy().fill(HIGH);
    assert_eq!(short.pressure(), Pressure::High);
    let ends = short.connect();
    let usual = Tunables::default().recv_buffer;
    assert!(short.stream(ends, 300) > 4 << 20);
    assert_eq!(short.recv_size(ends.server), usual);
    let counters = short.server().counters();
    assert!(counters.recv_buffers_held > 0 && counters.recv_buffers_grown == 0);
    assert_eq!(short.refused(), 0);
    // There is room again: so it grows.
    short.read_all();
    assert_eq!(short.pressure(), Pressure::None);
    short.stream(ends, 300);
    assert!(short.recv_size(ends.server) > 2 * usual, "{}", short.recv_size(ends.server));
}

#[test]
fn slow_reader_at_90_percent_holds_four_more_segments() {
    let mut short = Short::roomy().fill(TIGHT);
    assert_eq!(short.pressure(), Pressure::Tight);
    let slow = short.connect();
    let (before, refused) = (short.edge(slow.client), short.refused());
    // What comes at once is that of one who may be about to read; later it is slow.
    short.pour(slow, 3_000, 150);
    let edges = short.pour(slow, 100_000, 400);
    assert!(never_moves_left(before, &edges));
    assert!(short.refused() > refused, "more came than it may hold");
    assert!(short.unread(slow.server) <= 4 * MSS, "{}", short.unread(slow.server));
    assert_eq!(short.pressure(), Pressure::Tight, "and so all the while");
    // It begins to read: nothing was lost.
    let mut read = 0;
    for _ in 0..3_000 {
        short.hosts.run(Duration::from_millis(10));
        read += drain(short.server(), slow.server).0.len();
    }
    assert_eq!(read, 103_000);
}

#[test]
fn slow_reader_at_90_percent_gives_up_buffer_growth() {
    let mut short = Short::roomy();
    let usual = Tunables::default().recv_buffer;
    let ends = short.connect();
    short.stream(ends, 300);
    let grown = short.recv_size(ends.server);
    assert!(grown > 2 * usual, "{grown}");
    short.hosts.run_until_quiet();
    let mut came = drain(short.server(), ends.server).0.len();
    let edge = short.edge(ends.client);
    let mut short = short.fill(TIGHT);
    assert_eq!(short.recv_size(ends.server), grown, "it has nothing unread");
    short.pour(ends, 3_000, 150);
    let edges = short.pour(ends, 30_000, 100);
    assert_eq!(short.recv_size(ends.server), usual);
    assert!(short.server().counters().recv_buffers_shrunk > 0);
    // RFC 9293 3.8.6: "A TCP receiver SHOULD NOT shrink the window".
    assert!(never_moves_left(edge, &edges));
    for _ in 0..3_000 {
        short.hosts.run(Duration::from_millis(10));
        came += drain(short.server(), ends.server).0.len();
    }
    assert!(came >= 33_000, "{came}");
}

#[test]
fn from_nine_tenths_on_who_reads_is_as_fast_as_before() {
    let mut short = Short::roomy();
    let ends = short.connect();
    // A window that was grown would grow on.
    let size = BufferSize::Exact(256 << 10);
    short.server().set_recv_size(ends.server, size);
    short.stream(ends, 200);
    let before = short.stream(ends, 200);
    while short.hosts.client.snapshot(ends.client).expect("open").send_queued > 0 {
        short.hosts.run(Duration::from_millis(1));
        drain(short.server(), ends.server);
    }
    let mut short = short.fill(TIGHT);
    let refused = short.refused();
    let now = short.stream(ends, 200);
    assert_eq!((short.pressure(), short.refused()), (Pressure::Tight, refused));
    assert!(now * 10 >= before * 9, "{now} for {before}");
}

#[test]
fn one_that_may_buffer_more_than_there_is_takes_not_all_of_it() {
    let mut short = Short::roomy();
    let greedy =
        SocketOptions { recv_size: BufferSize::Exact(1 << 30), ..SocketOptions::default() };
    let listener = short.listener;
    assert!(short.server().set_listener_options(listener, &greedy));
    let ends = short.connect();
    assert!(short.server().set_listener_options(listener, &SocketOptions::default()));
    // Three times the budget, as far as accepted.
    for _ in 0..48 {
        short.pour(ends, 1 << 20, 20);
    }
    short.hosts.run(Duration::from_secs(5));
    let memory = short.server().memory();
    assert!(memory.held > BUDGET / 10 * 8 && memory.held <= BUDGET, "{memory:?}");
    // Others are served all the same, from either side.
    for _ in 0..3 {
        let other = short.connect();
        assert!(short.stream(other, 300) > 1 << 20);
    }
    let back = short.hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    short.hosts.run_until_quiet();
    assert_eq!(send(&mut short.hosts.client, back, b"hello"), 5);
}

#[test]
fn from_nine_tenths_on_nobody_starves_among_many() {
    let mut short = Short::roomy().fill(TIGHT);
    let slow: Vec<Ends> = (0..16).map(|_| short.connect()).collect();
    let prompt: Vec<Ends> = (0..16).map(|_| short.connect()).collect();
    let mut left: Vec<Bytes> = std::vec![Bytes::from_static(&TEXT[..200_000]); 32];
    let (mut read, mut most_held) = (std::vec![0; 32], 0);
    for millis in 0..20_000u64 {
        let now = short.hosts.now;
        short.hosts.client.set_now(now);
        for (ends, rest) in slow.iter().chain(&prompt).zip(&mut left) {
            let _ = short.hosts.client.send(ends.client, rest);
        }
        short.hosts.run(Duration::from_millis(1));
        most_held = most_held.max(short.server().memory().held);
        for (place, ends) in slow.iter().chain(&prompt).enumerate() {
            // A slow one looks every 200 ms.
            if place >= slow.len() || millis % 200 == place as u64 {
                read[place] += drain(short.server(), ends.server).0.len();
            }
        }
    }
    assert_eq!(read, [200_000; 32]);
    // Beyond the budget a connection holds four segments, and the one that crosses the line.
    assert!(most_held <= BUDGET + 32 * u64::from(5 * MSS), "{most_held}");
    assert!(short.refused() > 0);
}
