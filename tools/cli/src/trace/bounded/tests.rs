use std::fs;
use std::sync::mpsc::{Receiver, channel};

use super::*;

/// A disk that writes nothing until it is released.
struct StuckDisk {
    release: Receiver<()>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for StuckDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // An error means that the test has released it.
        let _ = self.release.recv();
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn stuck_disk_costs_lines_and_no_wait() {
    let (release, released) = channel();
    let written = Arc::<Mutex<Vec<u8>>>::default();
    let disk = StuckDisk { release: released, written: Arc::clone(&written) };
    let mut lines = BoundedLines::begin(disk).unwrap();
    let line = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1 << 20));
    // The first go into the thread's hands, in one piece or several; then there is room for three.
    let count = 40;
    for _ in 0..count {
        lines.write_all(line.as_bytes()).unwrap();
    }
    drop(release);
    lines.flush().unwrap();
    lines.write_all(b"last\n").unwrap();
    lines.flush().unwrap();
    let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let kept = text.lines().filter(|it| it.starts_with("{\"a\"")).count();
    let dropped = text.lines().filter_map(|it| it.strip_prefix("{\"dropped\":"));
    let dropped: usize = dropped.map(|it| it.trim_end_matches('}').parse::<usize>().unwrap()).sum();
    assert_eq!(kept + dropped, count);
    assert!((3..=7).contains(&kept), "{kept}");
    assert!(text.ends_with("}\nlast\n"));
}

#[test]
fn full_disk_is_an_error_once() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut lines = BoundedLines::begin(full).unwrap();
    lines.write_all(b"a\n").unwrap();
    assert!(lines.flush().is_err());
}
