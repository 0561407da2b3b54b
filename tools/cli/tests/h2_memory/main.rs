//! Memory that a client of `serve --h2c` can make the server hold by any input, and without taking
//! output: each allocation of a connection is counted, and the number of allocations per frame.
#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

#[path = "../../../../tests/harness/allocator.rs"]
mod allocator;
#[allow(dead_code, reason = "what the server offers to its own program")]
#[path = "../../src/serving/files.rs"]
mod files;
#[allow(dead_code, reason = "what the server offers to its own program")]
#[path = "../../src/serving/h2.rs"]
mod h2;
#[allow(dead_code, reason = "what the server offers to its own program")]
#[path = "../../src/streams.rs"]
mod streams;

/// Plans of files.
mod plan {
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Uploads {
        Refused,
        Allowed,
    }
}

use std::path::PathBuf;

use whimbrel_apps::Model;
use whimbrel_apps::http::{ExchangeLog, FixedBody, Limits, LoggedExchange, Site};
use whimbrel_apps::pace::Pace;
use whimbrel_base::Instant;

use allocator::held;
use files::FileRoot;
use h2::tests::peer::Peer;
use h2::{ExchangeLogs, H2Server};

/// Limit of the server's memory for one connection, in addition to its send buffer of the stack.
const BOUND: isize = 300 << 10;
/// Limit with a log: a hundred requests, of three lines of 1 KiB each.
const LOGGED_BOUND: isize = 600 << 10;

/// Input of a client, piece by piece.
struct Attack<S: Site + 'static = FixedBody> {
    server: H2Server<S, Peer>,
    peer: Peer,
    base: isize,
    most: isize,
}

impl Attack {
    /// Begins with a client that takes this many bytes, and has these settings.
    fn begin(takes: usize, settings: &[u8], pace: Pace) -> Self {
        Self::begin_logged(takes, settings, pace, None)
    }

    /// Begins against a server that logs requests.
    fn begin_logged(takes: usize, settings: &[u8], pace: Pace, logs: ExchangeLogs) -> Self {
        Self::begin_at(FixedBody::new(1 << 30), takes, settings, pace, logs)
    }
}

impl<S: Site + 'static> Attack<S> {
    /// Begins against a server of this site.
    fn begin_at(site: S, takes: usize, settings: &[u8], pace: Pace, logs: ExchangeLogs) -> Self {
        let peer = Peer::deaf(takes);
        let server = H2Server::new(site, Limits::default(), pace, logs);
        let mut attack = Self { server, peer, base: held(), most: 0 };
        attack.say(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, settings)[..]].concat());
        attack
    }

    /// Sends the bytes. Returns true if the connection is still open.
    fn say(&mut self, bytes: &[u8]) -> bool {
        // The test's own memory does not count.
        let before = held();
        self.peer.say(bytes);
        self.base += held() - before;
        for _ in 0..64 {
            if self.peer.said.is_empty() || self.peer.closed {
                break;
            }
            while self.server.poll(&mut self.peer, Instant::ZERO, 64) {}
        }
        self.most = self.most.max(held() - self.base);
        // The bytes were released as they were read.
        if self.peer.said.is_empty() {
            self.base = self.base.min(held());
        }
        !self.peer.closed && self.peer.said.is_empty()
    }

    /// Checks that the server held no more than the limit.
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
fn window(bytes: u32) -> Vec<u8> {
    [&[0, 4][..], &bytes.to_be_bytes()].concat()
}

/// :method GET, :scheme http, :path /, :authority w.
const GET: [u8; 6] = [0x82, 0x86, 0x84, 0x41, 1, b'w'];
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The numbers of twice as many streams as may be open.
fn streams() -> impl Iterator<Item = u32> {
    (0..200).map(|number| 2 * number + 1)
}

#[test]
fn unread_streams_hold_at_most_a_piece_each() {
    for (of, bytes) in [("no window", 0), ("a window of one byte", 1), ("of 64 KiB", 65_535)] {
        let mut attack = Attack::begin(usize::MAX, &window(bytes), Pace::default());
        for stream in streams() {
            attack.say(&frame(1, END_STREAM | END_HEADERS, stream, &GET));
        }
        attack.end(of);
    }
    // The largest windows, and a connection that takes nothing.
    let mut deaf = Attack::begin(100, &window(1 << 30), Pace::default());
    deaf.say(&frame(8, 0, 0, &(1_u32 << 30).to_be_bytes()));
    for stream in streams() {
        deaf.say(&frame(1, END_STREAM | END_HEADERS, stream, &GET));
    }
    deaf.end("a connection that takes nothing");
}

#[test]
fn endless_or_long_heads_end_the_connection() {
    let mut attack = Attack::begin(usize::MAX, &[], Pace::default());
    attack.say(&frame(1, END_STREAM, 1, &GET));
    let mut frames = 0;
    // A literal field without indexing: x: 1,000 times a.
    let field = [&[0, 1, b'x', 0x7f, 0xe9, 0x06][..], &[b'a'; 1_000]].concat();
    while frames < 100_000 && attack.say(&frame(9, 0, 1, &field)) {
        frames += 1;
    }
    assert!(frames < 1_000, "{frames} frames were accepted");
    attack.end("a head of many frames");
    let mut attack = Attack::begin(usize::MAX, &[], Pace::default());
    attack.say(&frame(1, END_STREAM, 1, &GET));
    let mut frames = 0;
    while frames < 100_000 && attack.say(&frame(9, 0, 1, &[])) {
        frames += 1;
    }
    assert!(frames < 1_000, "{frames} empty frames were accepted");
    attack.end("a head of empty frames");
    let mut attack = Attack::begin(usize::MAX, &window(0), Pace::default());
    for stream in streams() {
        let head = [&GET[..], &field.repeat(15)].concat();
        attack.say(&frame(1, END_STREAM | END_HEADERS, stream, &head));
    }
    attack.end("two hundred long heads");
}

/// A log without a destination.
struct Nowhere;

impl ExchangeLog for Nowhere {
    fn note(&mut self, _: &LoggedExchange) {}
}

#[test]
fn log_memory_of_waiting_requests_is_bounded() {
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
fn streams_reset_at_once_leave_nothing() {
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
fn unwanted_one_byte_frames_are_bounded() {
    let mut attack = Attack::begin(usize::MAX, &window(0), Pace::default());
    for stream in streams().take(100) {
        attack.say(&frame(1, END_HEADERS, stream, &GET));
    }
    for number in 0..70_000 {
        if !attack.say(&frame(0, 0, 2 * (number % 100) + 1, b"x")) {
            break;
        }
    }
    attack.end("unwanted bytes");
}

#[test]
fn unread_control_replies_are_bounded() {
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

/// Files of 1 MiB and of 60,000 bytes, and directories of 300 long names, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(of: &str) -> Self {
        let path = std::env::temp_dir().join(format!("whimbrel-held-{of}-{}", std::process::id()));
        for directory in 0..8 {
            let within = path.join(format!("d{directory}"));
            std::fs::create_dir_all(&within).unwrap();
            let name = |number| within.join(format!("{number:0200}"));
            (0..300).for_each(|number| std::fs::write(name(number), "").unwrap());
        }
        std::fs::write(path.join("large"), vec![b'x'; 1 << 20]).unwrap();
        std::fs::write(path.join("small"), vec![b'x'; 60_000]).unwrap();
        Self(path)
    }

    /// A server of them whose client takes this many bytes, with the largest windows.
    fn attack(&self, takes: usize, bytes: u32) -> Attack<FileRoot> {
        let site = FileRoot::open(&self.0, plan::Uploads::Allowed, 1_000).unwrap();
        let mut attack = Attack::begin_at(site, takes, &window(bytes), Pace::default(), None);
        if bytes > 65_535 {
            attack.say(&frame(8, 0, 0, &(1_u32 << 30).to_be_bytes()));
        }
        attack
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A page of one of these directories, while it is made: the server has it once for all its clients.
const PAGE: isize = 3 * 300 * 430;

/// A request with this method and :path, which are shorter than 127 bytes.
fn request(method: &str, path: &str) -> Vec<u8> {
    let literal = |index: u8, text: &str| [&[index, text.len() as u8], text.as_bytes()].concat();
    // Without indexing, by the names of the static table: :method, :scheme http, :path, :authority.
    [literal(2, method), vec![0x86], literal(4, path), literal(1, "w")].concat()
}

#[test]
fn files_not_taken_are_not_read() {
    let folder = Folder::new("files");
    for (of, takes, bytes) in [
        ("no window", usize::MAX, 0),
        ("a window of one byte", usize::MAX, 1),
        ("a window of 64 KiB", usize::MAX, 65_535),
        ("a connection that takes nothing", 100, 0x7fff_ffff),
        ("one that takes a megabyte", 1 << 20, 0x7fff_ffff),
    ] {
        for path in ["/large", "/small", "/d0/", "/d0"] {
            let mut attack = folder.attack(takes, bytes);
            for stream in streams() {
                attack.say(&frame(1, END_STREAM | END_HEADERS, stream, &request("GET", path)));
            }
            let page = if path == "/d0/" { PAGE } else { 0 };
            attack.end_within(BOUND + page, &format!("{path}, {of}"));
        }
    }
}

#[test]
fn pages_not_taken_are_not_kept() {
    let folder = Folder::new("pages");
    let mut attack = folder.attack(usize::MAX, 1);
    for stream in streams() {
        let path = format!("/d{}/", stream % 16 / 2);
        attack.say(&frame(1, END_STREAM | END_HEADERS, stream, &request("GET", &path)));
    }
    // The server keeps four of all pages, for all its clients.
    attack.end_within(BOUND + 4 * PAGE, "pages of eight directories");
}

#[test]
fn hundred_uploads_keep_little_each() {
    let folder = Folder::new("uploads");
    let mut attack = folder.attack(usize::MAX, 0);
    // With a long field in each head.
    let field = [&[0, 1, b'x', 0x7f, 0x81, 0x6d][..], &[b'a'; 14_080]].concat();
    for stream in streams().take(100) {
        let head = [request("PUT", &format!("/u{stream}")), field.clone()].concat();
        attack.say(&frame(1, END_HEADERS, stream, &head));
        for _ in 0..8 {
            attack.say(&frame(0, 0, stream, &[b'x'; 400]));
        }
    }
    attack.end("a hundred uploads");
}

#[test]
fn targets_without_file_are_not_kept() {
    let folder = Folder::new("nowhere");
    let mut attack = folder.attack(usize::MAX, 0);
    let path = [&[4, 0x7f, 0x81, 0x6d][..], &[b'/'; 14_080]].concat();
    let head = [&[0x82, 0x86][..], &path, &[0x41, 1, b'w']].concat();
    let deep = path.iter().map(|byte| if *byte == b'/' { b'a' } else { *byte });
    let mut deep: Vec<_> = deep.collect();
    deep[4] = b'/';
    let nowhere = [&[0x82, 0x86][..], &deep, &[0x41, 1, b'w']].concat();
    for stream in streams() {
        let head = if stream % 4 == 1 { &head } else { &nowhere };
        attack.say(&frame(1, END_STREAM | END_HEADERS, stream, head));
    }
    // In addition to the memory of one request in progress, whose paths begin with the folder's own.
    attack.end_within(BOUND + (80 << 10), "long targets");
}

#[test]
fn memory_of_all_connections_is_bounded() {
    let folder = Folder::new("together");
    let site = FileRoot::open(&folder.0, plan::Uploads::Refused, 1_000).unwrap();
    let limits = Limits { held: 100_000, ..Limits::default() };
    let mut server = H2Server::new(site, limits, Pace::default(), None);
    let mut peer = Peer::deaf(usize::MAX);
    let beginning = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, &window(1))[..]].concat();
    peer.say(&beginning);
    while server.poll(&mut peer, Instant::ZERO, 64) {}
    for stream in streams().take(100) {
        peer.say(&frame(1, END_STREAM | END_HEADERS, stream, &request("GET", "/large")));
        while server.poll(&mut peer, Instant::ZERO, 64) {}
    }
    assert!(peer.closed, "it held more than all may together");
    assert_eq!((server.statistics().failed, server.statistics().open), (1, 0));
}
