//! What a client of `serve --h2c` can make the server hold, whatever it sends and does not take: every
//! allocation of a connection is counted, and how often one is made for a frame.
#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

#[path = "../../../../tests/harness/allocator.rs"]
mod allocator;
#[allow(dead_code, reason = "what the server offers to its own program")]
#[path = "../../src/serve/h2.rs"]
mod h2;

use std::collections::VecDeque;

use bytes::Bytes;
use whimbrel_apps::http::{FixedBody, Limits};
use whimbrel_apps::pace::Pace;
use whimbrel_apps::transport::{ConnectOptions, OpenError, SenderStats, StackUsage};
use whimbrel_apps::{ConnError, Model, Reading, Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_wire::Endpoint;

use allocator::held;
use h2::H2Server;

/// What the server may hold for one connection, beside its send buffer of the stack.
const BOUND: isize = 300 << 10;

/// A connection whose peer is the test, and which takes so much of what is sent and no more.
struct Peer {
    accepted: bool,
    said: VecDeque<Bytes>,
    takes: usize,
    closed: bool,
    /// Something was said that the server was not told of yet.
    news: bool,
}

impl Transport for Peer {
    type Id = u32;
    type Listener = ();

    fn place(id: u32) -> u32 {
        id
    }

    fn connect(
        &mut self,
        _: Endpoint,
        _: &ConnectOptions,
        _: &mut Bytes,
    ) -> Result<u32, OpenError> {
        Err(ConnError::Unreachable.into())
    }

    fn accept(&mut self, (): ()) -> Option<u32> {
        (!std::mem::replace(&mut self.accepted, true)).then_some(0)
    }

    fn send(&mut self, _: u32, data: &mut Bytes) -> Result<usize, ConnError> {
        let taken = data.split_to(data.len().min(self.takes)).len();
        self.takes -= taken;
        Ok(taken)
    }

    fn recv(&mut self, _: u32) -> Reading {
        self.said.pop_front().map_or(Reading::Pending, Reading::Data)
    }

    fn shutdown(&mut self, _: u32) {}

    fn close(&mut self, _: u32) {
        self.closed = true;
    }

    fn abort(&mut self, _: u32) {
        self.closed = true;
    }

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        if !self.accepted {
            return Some(TransportEvent::Accepted(()));
        }
        (std::mem::take(&mut self.news) && !self.closed).then_some(TransportEvent::Readable(0))
    }

    fn sender_stats(&self, _: u32) -> Option<SenderStats> {
        None
    }

    fn retransmits(&self) -> Option<u64> {
        None
    }

    fn stack_usage(&self) -> Option<StackUsage> {
        None
    }

    fn local(&self, _: u32) -> Option<Endpoint> {
        None
    }

    fn remote(&self, _: u32) -> Option<Endpoint> {
        None
    }
}

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
        let peer =
            Peer { accepted: false, said: VecDeque::new(), takes, closed: false, news: false };
        let server = H2Server::new(FixedBody::new(1 << 30), Limits::default(), pace, None);
        let mut attack = Self { server, peer, base: held(), most: 0 };
        attack.say(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, settings)[..]].concat());
        attack
    }

    /// Says that. Returns whether it is heard any longer.
    fn say(&mut self, octets: &[u8]) -> bool {
        // What the test holds is no part of it.
        let before = held();
        self.peer.said.push_back(Bytes::copy_from_slice(octets));
        self.base += held() - before;
        self.peer.news = true;
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

    /// The most that was held, within the bound.
    fn end(self, of: &str) -> isize {
        println!("{of}: {} bytes", self.most);
        assert!(self.most <= BOUND, "{of}: {} bytes", self.most);
        self.most
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
