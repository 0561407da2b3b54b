//! A socket between two stacks: both ends in this process, as two processes would have them.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use socket2::{Domain, SockAddr, Socket, Type};
use whimbrel_base::packet::TxSegment;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Clock, Device, TxOutcome, UnixError, UnixWire, WireSpec, entropy};
use whimbrel_stack::{Event, Recv, Shard, ShardConfig, TxBatch};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint};

#[path = "../../../tests/harness/scratch.rs"]
mod scratch;

use scratch::scratch;

const PATIENCE: Duration = Duration::from_secs(5);

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = scratch(&number.to_string());
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("wire")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn spec(path: &Path, rest: &str) -> WireSpec {
    format!("unix:{},{rest}", path.display()).parse().unwrap()
}

fn try_open(path: &Path, mtu: u16) -> Result<UnixWire, UnixError> {
    let WireSpec::Unix(config) = spec(path, &format!("addr=10.9.0.2/24,mtu={mtu}")) else {
        panic!("no unix:")
    };
    UnixWire::open(&config)
}

fn open(path: &Path) -> UnixWire {
    try_open(path, 1500).unwrap()
}

/// Returns the first end, which has accepted the second, and the second.
fn pair(path: &Path) -> (UnixWire, UnixWire) {
    let (mut first, second) = (open(path), open(path));
    assert!(!first.is_joined() && second.is_joined());
    assert_eq!(first.rx_burst(&mut |_| {}).unwrap(), 0);
    assert!(first.is_joined());
    (first, second)
}

fn batch(frames: &[Vec<u8>]) -> TxBatch {
    let mut batch = TxBatch::new(frames.len());
    for frame in frames {
        batch.fill(|tx| fill(tx, frame));
    }
    batch
}

/// Fills a segment with a header of up to 20 bytes, and the rest in slices.
fn fill(tx: &mut TxSegment, frame: &[u8]) -> bool {
    let (header, text) = frame.split_at(frame.len().min(20));
    tx.header_room()[..header.len()].copy_from_slice(header);
    tx.set_header_len(header.len());
    for slice in text.chunks(text.len().div_ceil(18).max(1)) {
        tx.payload.push(Bytes::copy_from_slice(slice)).unwrap();
    }
    true
}

/// Returns frames that differ in length and bytes.
fn frames(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| vec![number as u8 | 1; 20 + number * 37 % 1_480]).collect()
}

/// Returns all waiting frames.
fn received(wire: &mut UnixWire) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while wire
        .rx_burst(&mut |burst| frames.extend(burst.iter().map(|frame| frame.bytes.to_vec())))
        .unwrap()
        > 0
    {}
    frames
}

#[test]
fn frames_cross_whole_and_in_order_in_both_directions() {
    let folder = Folder::new();
    let (mut first, mut second) = pair(&folder.path());
    let sent = frames(100);
    for (from, to) in [(0, 1), (1, 0)] {
        let ends = &mut [&mut first, &mut second];
        let mut batch = batch(&sent[..64]);
        assert_eq!(ends[from].tx_burst(&mut batch).unwrap(), TxOutcome::Drained);
        assert_eq!(received(ends[to]), sent[..64]);
        let bytes = sent[..64].iter().map(|frame| frame.len() as u64).sum();
        let counters = (ends[from].counters(), ends[to].counters());
        assert_eq!((counters.0.tx_frames, counters.1.rx_frames), (64, 64));
        assert_eq!((counters.0.tx_bytes, counters.1.rx_bytes), (bytes, bytes));
    }
}

#[test]
fn a_full_queue_blocks_and_goes_on_when_there_is_room() {
    let folder = Folder::new();
    let (mut first, mut second) = pair(&folder.path());
    let sent = vec![vec![7; 1500]; 2_000];
    let mut batch = batch(&sent);
    let mut got = 0;
    let mut blocked = 0;
    while got < sent.len() {
        if second.tx_burst(&mut batch).unwrap() == TxOutcome::Blocked {
            blocked += 1;
        }
        got += received(&mut first).len();
        let mut fds = [PollFd::new(&second, Interest::ReadWrite)];
        assert_eq!(ppoll(&mut fds, Some(PATIENCE)).unwrap(), 1);
    }
    assert!(blocked > 0 && second.counters().tx_blocked == blocked);
    assert_eq!((got, second.counters().tx_dropped), (2_000, 0));
}

#[test]
fn nobody_at_the_other_end_is_a_cable_that_is_not_plugged_in() {
    let folder = Folder::new();
    let mut first = open(&folder.path());
    assert_eq!(first.tx_burst(&mut batch(&frames(3))).unwrap(), TxOutcome::Drained);
    assert_eq!(first.counters().tx_dropped, 3);
    assert_eq!(first.counters().tx_last_error, Some(libc::ENOTCONN));
    let second = open(&folder.path());
    let mut fds = [PollFd::new(&first, Interest::Read)];
    assert_eq!(ppoll(&mut fds, Some(PATIENCE)).unwrap(), 1, "the listener tells of the second");
    drop(second);
}

#[test]
fn the_first_end_outlives_the_second_and_takes_the_next_in() {
    let folder = Folder::new();
    let (mut first, mut second) = pair(&folder.path());
    let mut third = open(&folder.path());
    second.tx_burst(&mut batch(&frames(2))).unwrap();
    drop(second);
    let mut fds = [PollFd::new(&first, Interest::Read)];
    ppoll(&mut fds, Some(PATIENCE)).unwrap();
    assert!(fds[0].is_broken());
    first.on_poll_error().unwrap();
    assert_eq!(received(&mut first), frames(2), "what was sent before is not lost");
    assert!(!first.is_joined());
    third.tx_burst(&mut batch(&frames(3))).unwrap();
    assert_eq!(received(&mut first), frames(3));
    // Frames to a closed peer are dropped, and the wire stays.
    drop(third);
    assert_eq!(first.tx_burst(&mut batch(&frames(5))).unwrap(), TxOutcome::Drained);
    assert_eq!(first.counters().tx_dropped, 5);
}

#[test]
fn end_of_the_first_process_removes_file_and_ends_second() {
    let folder = Folder::new();
    let (first, mut second) = pair(&folder.path());
    drop(first);
    assert!(!folder.path().exists());
    let error = second.rx_burst(&mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert!(error.to_string().contains("has gone"), "{error}");
}

#[test]
fn a_socket_that_a_dead_process_left_behind_is_replaced() {
    let folder = Folder::new();
    // Closing a listener leaves its file behind, as a crash does.
    let stale = Socket::new(Domain::UNIX, Type::SEQPACKET, None).unwrap();
    stale.bind(&SockAddr::unix(folder.path()).unwrap()).unwrap();
    drop(stale);
    assert!(folder.path().exists());
    pair(&folder.path());
}

#[test]
fn what_is_not_ours_is_left_alone_and_named() {
    let folder = Folder::new();
    fs::write(folder.path(), "a file").unwrap();
    let error = try_open(&folder.path(), 1500).unwrap_err();
    assert!(matches!(error, UnixError::NotASocket(_)), "{error}");
    assert_eq!(fs::read(folder.path()).unwrap(), b"a file");
    fs::remove_file(folder.path()).unwrap();
    for stream in [true, false] {
        let _listener = stream.then(|| UnixListener::bind(folder.path()).unwrap());
        let _socket = (!stream).then(|| UnixDatagram::bind(folder.path()).unwrap());
        let error = try_open(&folder.path(), 1500).unwrap_err();
        assert!(matches!(error, UnixError::OtherSocket(_)), "{error}");
        fs::remove_file(folder.path()).unwrap();
    }
    let error = try_open(&folder.0.join("nowhere/wire"), 1500).unwrap_err();
    assert!(matches!(error, UnixError::NoFolder(_)), "{error}");
    let _lock = fs::File::open(&folder.0).unwrap();
    _lock.lock().unwrap();
    let error = try_open(&folder.path(), 1500).unwrap_err();
    assert!(matches!(error, UnixError::Locked(_)) && !error.is_privilege(), "{error}");
}

#[test]
fn many_who_wait_are_refused() {
    let folder = Folder::new();
    let _first = open(&folder.path());
    let mut waiting = Vec::new();
    let error = loop {
        match try_open(&folder.path(), 1500) {
            Ok(wire) => waiting.push(wire),
            Err(error) => break error,
        }
        assert!(waiting.len() < 20);
    };
    assert!(matches!(error, UnixError::Busy(_)), "{error}");
}

#[test]
fn frames_beyond_our_mtu_are_dropped_and_counted() {
    let folder = Folder::new();
    let mut first = try_open(&folder.path(), 600).unwrap();
    let mut second = open(&folder.path());
    second.tx_burst(&mut batch(&[vec![1; 601], vec![2; 600], vec![3; 1500]])).unwrap();
    assert_eq!(received(&mut first), [vec![2; 600]]);
    assert_eq!(first.counters().rx_oversized, 2);
}

/// A stack at one end.
struct Host {
    wire: UnixWire,
    shard: Shard,
    batch: TxBatch,
}

impl Host {
    fn new(path: &Path, address: &str) -> Self {
        let spec = spec(path, &format!("addr={address}/24,mtu=9000"));
        let WireSpec::Unix(config) = &spec else { panic!("{spec:?}") };
        let wire = UnixWire::open(config).unwrap();
        let shard = Shard::new(ShardConfig {
            tunables: Tunables::default(),
            secrets: entropy::secrets().unwrap(),
            capabilities: wire.capabilities(),
            addresses: spec.addresses().to_vec(),
            routes: spec.routes(),
        })
        .unwrap();
        Self { wire, shard, batch: TxBatch::new(64) }
    }

    fn turn(&mut self, clock: &Clock) {
        let now = clock.now();
        self.wire.rx_burst(&mut |burst| self.shard.rx(now, burst)).unwrap();
        self.shard.advance(now, 64);
        self.shard.tx(&mut self.batch);
        self.wire.tx_burst(&mut self.batch).unwrap();
    }
}

#[test]
fn two_stacks_exchange_megabytes() {
    let folder = Folder::new();
    let mut server = Host::new(&folder.path(), "10.9.0.1");
    let mut client = Host::new(&folder.path(), "10.9.0.2");
    let at = Endpoint::new(Address::from_v4_bytes([10, 9, 0, 1]), 80);
    let listener = server.shard.listen(at, 8).unwrap();
    let connection = client.shard.connect(at, None).unwrap();
    let sent: Bytes = (0..4u32 << 20).map(|at| (at ^ (at >> 7)) as u8).collect();
    let (mut rest, mut received, mut accepted) = (sent.clone(), Vec::new(), None);
    let (clock, began) = (Clock::start(), Instant::now());
    while received.len() < sent.len() {
        assert!(began.elapsed() < PATIENCE * 4, "{} bytes", received.len());
        client.turn(&clock);
        server.turn(&clock);
        while let Some(event) = server.shard.poll_event() {
            if matches!(event, Event::Accepted(_)) {
                accepted = server.shard.accept(listener);
            }
        }
        while client.shard.poll_event().is_some() {}
        let _ = client.shard.send(connection, &mut rest);
        let Some(handle) = accepted else { continue };
        while let Recv::Data(data) = server.shard.recv(handle) {
            received.extend_from_slice(&data);
        }
    }
    assert!(received == sent, "bytes differ");
    assert_eq!(client.shard.counters().retrans_segs, 0);
}
