//! What a client of `serve --h2c` can make the server hold, whatever it sends and does not take: every
//! allocation of a connection is counted, and how often one is made for a frame.
#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

#[path = "../../../../tests/harness/allocator.rs"]
mod allocator;
#[allow(dead_code, reason = "what the server offers to its own program")]
#[path = "../../src/serve/h2.rs"]
mod h2;

use whimbrel_apps::Model;
use whimbrel_apps::http::{ExchangeLog, FixedBody, Limits, LoggedExchange};
use whimbrel_apps::pace::Pace;
use whimbrel_base::Instant;

use allocator::held;
use h2::tests::peer::Peer;
use h2::{ExchangeLogs, H2Server};

/// What the server may hold for one connection, beside its send buffer of the stack.
const BOUND: isize = 300 << 10;
/// The same where requests are logged: a hundred of them, of three lines of 1 KiB each.
const LOGGED_BOUND: isize = 600 << 10;

/// What a client says, piece by piece.
struct Attack {
    server: H2Server<FixedBody, Peer>,
    peer: Peer,
    base: isize,
    most: isize,
}

impl Attack {
    /// By a client that takes so many bytes of what it is sent, and says this in its settings.
    fn begin(takes: usize, settings: &[u8], pace: Pace) -> Self {
        Self::begin_logged(takes, settings, pace, None)
    }

    /// The same to a server whose requests are logged.
    fn begin_logged(takes: usize, settings: &[u8], pace: Pace, logs: ExchangeLogs) -> Self {
        let peer = Peer::deaf(takes);
        let server = H2Server::new(FixedBody::new(1 << 30), Limits::default(), pace, logs);
        let mut attack = Self { server, peer, base: held(), most: 0 };
        attack.say(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, settings)[..]].concat());
        attack
    }

    /// Says that. Returns whether it is heard any longer.
    fn say(&mut self, octets: &[u8]) -> bool {
        // What the test holds is no part of it.
        let before = held();
        self.peer.say(octets);
        self.base += held() - before;
        for _ in 0..64 {
            if self.peer.said.is_empty() || self.peer.closed {
                break;
            }
            while self.server.poll(&mut self.peer, Instant::ZERO, 64) {}
        }
        self.most = self.most.max(held() - self.base);
        // It was let go of as it was read.
        if self.peer.said.is_empty() {
            self.base = self.base.min(held());
        }
        !self.peer.closed && self.peer.said.is_empty()
    }

    /// It held no more than it may.
    fn end(self, of: &str) {
        self.end_within(BOUND, of);
    }

    fn end_within(self, bound: isize, of: &str) {
        println!("{of}: {} bytes", self.most);
        assert!(self.most <= bound, "{of}: {} bytes", self.most);
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The initial window of streams.
fn window(octets: u32) -> Vec<u8> {
    [&[0, 4][..], &octets.to_be_bytes()].concat()
}

/// :method GET, :scheme http, :path /, :authority w.
const GET: [u8; 6] = [0x82, 0x86, 0x84, 0x41, 1, b'w'];
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The numbers of as many streams as there may be, and as many again.
fn streams() -> impl Iterator<Item = u32> {
    (0..200).map(|number| 2 * number + 1)
}

#[test]
fn streams_that_take_nothing_hold_no_more_than_a_piece_each() {
    for (of, octets) in [("no window", 0), ("a window of one byte", 1), ("of 64 KiB", 65_535)] {
        let mut attack = Attack::begin(usize::MAX, &window(octets), Pace::default());
        for stream in streams() {
            attack.say(&frame(1, END_STREAM | END_HEADERS, stream, &GET));
        }
        attack.end(of);
    }
    // All the windows there are, and a connection that takes nothing.
    let mut deaf = Attack::begin(100, &window(1 << 30), Pace::default());
    deaf.say(&frame(8, 0, 0, &(1_u32 << 30).to_be_bytes()));
    for stream in streams() {
        deaf.say(&frame(1, END_STREAM | END_HEADERS, stream, &GET));
    }
    deaf.end("a connection that takes nothing");
}

#[test]
fn heads_that_do_not_end_and_heads_that_are_long_end_the_connection() {
    let mut attack = Attack::begin(usize::MAX, &[], Pace::default());
    attack.say(&frame(1, END_STREAM, 1, &GET));
    let mut frames = 0;
    // A literal field without indexing: x: 1,000 times a.
    let field = [&[0, 1, b'x', 0x7f, 0xe9, 0x06][..], &[b'a'; 1_000]].concat();
    while frames < 100_000 && attack.say(&frame(9, 0, 1, &field)) {
        frames += 1;
    }
    assert!(frames < 1_000, "{frames} frames were borne with");
    attack.end("a head of many frames");
    let mut attack = Attack::begin(usize::MAX, &[], Pace::default());
    attack.say(&frame(1, END_STREAM, 1, &GET));
    let mut frames = 0;
    while frames < 100_000 && attack.say(&frame(9, 0, 1, &[])) {
        frames += 1;
    }
    assert!(frames < 1_000, "{frames} empty frames were borne with");
    attack.end("a head of empty frames");
    let mut attack = Attack::begin(usize::MAX, &window(0), Pace::default());
    for stream in streams() {
        let head = [&GET[..], &field.repeat(15)].concat();
        attack.say(&frame(1, END_STREAM | END_HEADERS, stream, &head));
    }
    attack.end("two hundred long heads");
}

/// A log that is written to nowhere.
struct Nowhere;

impl ExchangeLog for Nowhere {
    fn note(&mut self, _: &LoggedExchange) {}
}

#[test]
fn what_a_log_keeps_of_requests_whose_answers_wait_is_bounded() {
    let logs = || Box::new(Nowhere);
    let mut attack =
        Attack::begin_logged(usize::MAX, &window(0), Pace::default(), Some([logs(), logs()]));
    // referer and user-agent, without indexing: 7,000 times a each.
    let field = |low: u8| [&[0x0f, low, 0x7f, 0xd9, 0x35][..], &[b'a'; 7_000]].concat();
    let head = [&GET[..], &field(51 - 15), &field(58 - 15)].concat();
    for stream in streams() {
        attack.say(&frame(1, END_STREAM | END_HEADERS, stream, &head));
    }
    attack.end_within(LOGGED_BOUND, "two hundred logged requests");
}

#[test]
fn streams_that_are_reset_at_once_leave_nothing() {
    let think = Pace { think: std::time::Duration::from_secs(60), ..Pace::default() };
    for (of, pace) in [("reset at once", Pace::default()), ("reset while they wait", think)] {
        let mut attack = Attack::begin(usize::MAX, &window(0), pace);
        for number in 0..20_000 {
            let stream = 2 * number + 1;
            let head = frame(1, END_STREAM | END_HEADERS, stream, &GET);
            if !attack.say(&[head, frame(3, 0, stream, &8_u32.to_be_bytes())].concat()) {
                break;
            }
        }
        attack.end(of);
    }
}

#[test]
fn bytes_that_nobody_wants_are_bounded_though_each_has_a_frame() {
    let mut attack = Attack::begin(usize::MAX, &window(0), Pace::default());
    for stream in streams().take(100) {
        attack.say(&frame(1, END_HEADERS, stream, &GET));
    }
    for number in 0..70_000 {
        if !attack.say(&frame(0, 0, 2 * (number % 100) + 1, b"x")) {
            break;
        }
    }
    attack.end("bytes that nobody wants");
}

#[test]
fn questions_are_answered_one_after_the_other() {
    for (of, question) in [
        ("PING", frame(6, 0, 0, b"pingpong")),
        ("SETTINGS", frame(4, 0, 0, &window(9))),
        ("PRIORITY", frame(2, 0, 1_001, &[0, 0, 0, 0, 1])),
    ] {
        // It takes no answer.
        let mut attack = Attack::begin(64, &[], Pace::default());
        for _ in 0..50_000 {
            if !attack.say(&question) {
                break;
            }
        }
        attack.end(of);
    }
}
