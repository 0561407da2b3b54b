use std::sync::mpsc;

use whimbrel_wire::{Address, Endpoint};

use super::*;

#[path = "../../../../../tests/harness/outputs.rs"]
mod outputs;

fn exchange() -> LoggedExchange {
    LoggedExchange {
        peer: Some(Endpoint::new(Address::from_v4_octets([10, 9, 0, 1]), 4711)),
        request: b"GET /a HTTP/1.1".to_vec(),
        referer: None,
        agent: Some(b"curl/8.5.0".to_vec()),
        status: 200,
        sent: 128,
    }
}

#[test]
fn a_line_is_as_tools_of_logs_read_it() {
    assert_eq!(
        line(&exchange(), 1_795_392_000),
        "10.9.0.1 - - [23/Nov/2026:00:00:00 +0000] \"GET /a HTTP/1.1\" 200 128 \"-\" \"curl/8.5.0\"\n"
    );
    let nothing = LoggedExchange { status: 408, ..LoggedExchange::default() };
    assert_eq!(line(&nothing, 0), "- - - [01/Jan/1970:00:00:00 +0000] \"-\" 408 - \"-\" \"-\"\n");
}

#[test]
fn what_a_peer_sends_ends_no_line_and_no_quotes() {
    let hostile = LoggedExchange {
        request: b"GET /\"\\\x1b[2J\xff HTTP/1.1".to_vec(),
        agent: Some(b"a\nb".to_vec()),
        ..exchange()
    };
    let line = line(&hostile, 0);
    assert!(line.contains(r#""GET /\"\\\x1b[2J\xff HTTP/1.1" 200"#), "{line}");
    assert!(line.ends_with("\"a\\x0ab\"\n") && line.lines().count() == 1, "{line}");
}

/// A disk that takes nothing until it is told to.
struct StuckRun {
    release: mpsc::Receiver<()>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for StuckRun {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let _ = self.release.recv();
        self.written.lock().unwrap().extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stuck_disk_stalls_nobody_and_what_has_no_room_is_counted() {
    let (go, release) = mpsc::channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let mut log = AccessLog::begin(StuckRun { release, written: Arc::clone(&written) }, "x".into());
    let length = line(&exchange(), 1_795_392_000).len();
    // Three times what may wait and what may be on its way: more than half of that has no room.
    let all = 6 * ROOM / length;
    (0..all).for_each(|_| log.note(&exchange()));
    let lost = usize::try_from(log.counted().lost).unwrap();
    assert!(lost >= all - 2 * ROOM / length && lost < all - ROOM / length, "{lost} of {all}");
    assert!(log.0.lock().waiting.capacity() <= ROOM, "it has all its room from the beginning");
    drop(go);
    let LogLines { written: lines, lost: still } = log.finish();
    assert_eq!((lines + still, still), (all as u64, lost as u64));
    let written = written.lock().unwrap();
    assert_eq!(written.len() as u64, lines * length as u64);
    assert!(written.ends_with(b"\n"));
}

/// A disk takes nothing while more lines come than may wait: the newest have no room. One that comes once it
/// goes on is written, behind those that waited.
#[test]
fn flood_of_lines_leaves_room_for_line_that_comes_later() {
    let (go, release) = mpsc::channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let mut log = AccessLog::begin(StuckRun { release, written: Arc::clone(&written) }, "x".into());
    let first = LoggedExchange { request: b"GET /first HTTP/1.1".to_vec(), ..exchange() };
    log.note(&first);
    while log.counted().lost < 1_000 {
        log.note(&exchange());
    }
    drop(go);
    while log.0.lock().lines > 0 {
        thread::yield_now();
    }
    let later = LoggedExchange { request: b"GET /later HTTP/1.1".to_vec(), ..exchange() };
    log.note(&later);
    assert!(log.finish().lost >= 1_000);
    let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let mut lines = written.lines();
    assert!(lines.next().unwrap().contains("/first"));
    assert!(lines.next_back().unwrap().contains("/later"));
}

#[test]
fn an_end_does_not_wait_for_a_disk_that_stays_stuck() {
    let (go, release) = mpsc::channel();
    let mut log = AccessLog::begin(StuckRun { release, written: Arc::default() }, "x".into());
    log.note(&exchange());
    while log.0.lock().lines > 0 {
        thread::yield_now();
    }
    log.note(&exchange());
    assert_eq!(log.finish(), LogLines { written: 0, lost: 2 });
    drop(go);
}

#[test]
fn lines_that_cannot_be_written_are_counted_as_lost() {
    let mut log = AccessLog::begin(outputs::Full, "a test's".into());
    (0..5).for_each(|_| log.note(&exchange()));
    assert_eq!(log.finish(), LogLines { written: 0, lost: 5 });
}
