use std::net::Ipv4Addr;
use std::sync::mpsc;

use whimbrel_wire::{Address, Endpoint};

use super::*;

#[path = "../../../../../tests/harness/outputs.rs"]
mod outputs;

fn exchange() -> LoggedExchange {
    LoggedExchange {
        peer: Some(Endpoint::new(Address::from_v4_bytes([10, 9, 0, 1]), 4711)),
        request: b"GET /a HTTP/1.1".to_vec(),
        referer: None,
        agent: Some(b"curl/8.5.0".to_vec()),
        status: 200,
        sent: 128,
    }
}

#[test]
fn log_line_has_combined_format() {
    assert_eq!(
        line(&exchange(), 1_795_392_000),
        "10.9.0.1 - - [23/Nov/2026:00:00:00 +0000] \"GET /a HTTP/1.1\" 200 128 \"-\" \
         \"curl/8.5.0\"\n"
    );
    let nothing = LoggedExchange { status: 408, ..LoggedExchange::default() };
    assert_eq!(line(&nothing, 0), "- - - [01/Jan/1970:00:00:00 +0000] \"-\" 408 - \"-\" \"-\"\n");
}

#[test]
fn peer_text_is_escaped_in_log_line() {
    let hostile = LoggedExchange {
        request: b"GET /\"\\\x1b[2J\xff HTTP/1.1".to_vec(),
        agent: Some(b"a\nb\x7f".to_vec()),
        ..exchange()
    };
    let line = line(&hostile, 0);
    assert!(line.contains(r#""GET /\"\\\x1b[2J\xff HTTP/1.1" 200"#), "{line}");
    assert!(line.ends_with("\"a\\x0ab\\x7f\"\n") && line.lines().count() == 1, "{line}");
}

/// A disk that blocks writes until `release` gets a message.
struct StuckDisk {
    release: mpsc::Receiver<()>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for StuckDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.release.recv();
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn stuck_disk_stalls_no_request_and_lost_lines_are_counted() {
    let (go, release) = mpsc::channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let mut log =
        AccessLog::begin(StuckDisk { release, written: Arc::clone(&written) }, "x".into(), None);
    let length = line(&exchange(), 1_795_392_000).len();
    // Three times what may wait and what may be on its way.
    let all = 6 * ROOM / length;
    (0..all).for_each(|_| log.note(&exchange()));
    let lost = usize::try_from(log.counted().lost).unwrap();
    // Of one client half of each has room, and what the writer took at first may be one line.
    assert!(lost >= all - ROOM / length && lost <= all - ROOM / 2 / length, "{lost} of {all}");
    assert!(log.0.lock().waiting.capacity() <= ROOM, "it has all its room from the beginning");
    drop(go);
    let LogLines { written: lines, lost: still } = log.finish();
    assert_eq!((lines + still, still), (all as u64, lost as u64));
    let written = written.lock().unwrap();
    assert_eq!(written.len() as u64, lines * length as u64);
    assert!(written.ends_with(b"\n"));
}

/// One client, or a hundred, cause more lines than have room while a disk takes nothing. Those of another client,
/// among them, are all written.
#[test]
fn lines_of_honest_client_are_written_amid_flood() {
    let from = |number, request: &str| LoggedExchange {
        peer: Some(Endpoint::new(Address::from(Ipv4Addr::new(10, 9, 0, number)), 4711)),
        request: request.into(),
        ..exchange()
    };
    for clients in [1, 100] {
        let (go, release) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let disk = StuckDisk { release, written: Arc::clone(&written) };
        let mut log = AccessLog::begin(disk, "x".into(), None);
        let junk: Vec<_> = (0..clients).map(|number| from(number, "GET /junk HTTP/1.1")).collect();
        while log.counted().lost < 10_000 {
            junk.iter().for_each(|exchange| log.note(exchange));
        }
        for second in 0..10 {
            log.note(&from(200, &format!("GET /honest/{second} HTTP/1.1")));
            (0..2_000).for_each(|at| log.note(&junk[at % junk.len()]));
        }
        drop(go);
        let counted = log.finish();
        assert!(counted.lost >= 20_000, "{counted:?}");
        let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let honest: Vec<_> = written.lines().filter(|line| line.contains("/honest/")).collect();
        assert_eq!(honest.len(), 10, "{honest:#?}");
        assert_eq!(written.lines().count() as u64, counted.written);
    }
}

/// A disk takes nothing until a client's lines have no room. What comes of that client once it goes on is written.
#[test]
fn lines_have_room_again_once_disk_goes_on() {
    let (go, release) = mpsc::channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let mut log =
        AccessLog::begin(StuckDisk { release, written: Arc::clone(&written) }, "x".into(), None);
    while log.counted().lost < 1_000 {
        log.note(&exchange());
    }
    drop(go);
    while log.0.lock().lines > 0 {
        thread::yield_now();
    }
    assert!(log.0.lock().of_sources.is_empty(), "written lines count for no source");
    log.note(&LoggedExchange { request: b"GET /later HTTP/1.1".to_vec(), ..exchange() });
    assert!(log.finish().lost >= 1_000);
    let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    assert!(written.lines().next_back().unwrap().contains("/later"));
}

#[test]
fn shutdown_does_not_wait_for_stuck_disk() {
    let (go, release) = mpsc::channel();
    let mut log =
        AccessLog::begin(StuckDisk { release, written: Arc::default() }, "x".into(), None);
    log.note(&exchange());
    while log.0.lock().lines > 0 {
        thread::yield_now();
    }
    log.note(&exchange());
    for _ in 0..2 {
        assert_eq!(log.finish(), LogLines { written: 0, lost: 2 }, "each is lost once");
    }
    drop(go);
}

#[test]
fn source_may_have_as_much_as_it_leaves() {
    let source =
        |host| Source::of(Some(Endpoint::new(Address::from(Ipv4Addr::new(10, 9, 0, host)), 4711)));
    let line = |bytes| "x".repeat(bytes);
    let mut state = State::default();
    assert!(!state.push(source(1), &line(ROOM / 2 + 1)));
    assert!(state.push(source(1), &line(ROOM / 2)));
    assert!(!state.push(source(1), "x"));
    assert!(state.push(source(2), &line(ROOM / 4)));
    // Longer than all that is left.
    assert!(!state.push(source(3), &line(ROOM / 2)));
    assert!(state.push(source(3), "x"));
    assert_eq!((state.waiting.len(), state.lines), (ROOM / 4 * 3 + 1, 3));
}

#[test]
fn log_is_appended_to_its_file_and_lines_after_its_end_are_lost() {
    let path = std::env::temp_dir().join(format!("whimbrel-log-{}", std::process::id()));
    std::fs::write(&path, "a line that was there\n").unwrap();
    let mut log = AccessLog::open(&path).unwrap();
    log.note(&exchange());
    assert_eq!(log.finish(), LogLines { written: 1, lost: 0 });
    log.note(&exchange());
    assert_eq!(log.finish(), LogLines { written: 1, lost: 1 });
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.starts_with("a line that was there\n10.9.0.1 - - ["), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn dash_means_standard_output() {
    AccessLog::open(Path::new("-")).unwrap();
    assert!(!Path::new("-").exists() && is_standard_output(&Some("-".into())));
    assert!(!is_standard_output(&None) && !is_standard_output(&Some("./-".into())));
}

#[test]
fn lines_that_cannot_be_written_are_counted_as_lost() {
    let mut log = AccessLog::begin(outputs::Full, "a test's".into(), None);
    (0..5).for_each(|_| log.note(&exchange()));
    assert_eq!(log.finish(), LogLines { written: 0, lost: 5 });
}
