//! `--access-log`: a line for each request in the combined log format, written by a separate thread.
//!
//! The server never waits for a disk or a reader: what does not fit into [`ROOM`] is lost, and counted. A
//! client's lines may take as much as they leave: half if they are the only ones. So however many one client
//! causes, those of others have room, and of many clients each has an equal part. The file is appended to, so
//! that it may be cut by copying and truncating it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use whimbrel_apps::http::{ExchangeLog, HttpDate, LoggedExchange};
use whimbrel_apps::source::Source;
use whimbrel_io::text;

use crate::failure::Failure;
use crate::streams;

/// A log that is being written.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog(Arc<Shared>);

/// Lines of a log.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct LogLines {
    /// Written lines.
    pub(crate) written: u64,
    /// Lines without room, or that could not be written.
    pub(crate) lost: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Signals that lines wait, and that they are written.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines that wait, and their number.
    waiting: Vec<u8>,
    lines: u64,
    /// Bytes of them that each source has.
    of_sources: BTreeMap<Source, usize>,
    /// Number of lines being written.
    on_their_way: u64,
    counted: LogLines,
    /// The writer is to open the file again, by its path.
    reopens: bool,
    /// The writer is to end.
    ends: bool,
    /// The writer has ended.
    ended: bool,
}

impl AccessLog {
    /// Opens the log of this file, which is appended to, or with `-` of the standard output.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new(STANDARD_OUTPUT) {
            return Ok(Self::begin(io::stdout(), "the standard output".into(), None));
        }
        let file = append(path).map_err(|error| {
            let path = text::path(path);
            Failure::run(format!("--access-log {path}: {error}; use a file that can be written"))
        })?;
        Ok(Self::begin(file, text::path(path).to_string(), Some(path.to_owned())))
    }

    /// A log that is written to `out`, which has this name, and this path if it is a file.
    fn begin(out: impl Write + Send + 'static, name: String, path: Option<PathBuf>) -> Self {
        let state = State { waiting: Vec::with_capacity(ROOM), ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let writer = Writer { shared: Arc::clone(&shared), name, path, complained: false };
        // Without the thread all lines count as lost.
        let _detached = thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writer.run(Box::new(out)));
        Self(shared)
    }

    /// Number of written and of lost lines so far.
    pub(crate) fn counted(&self) -> LogLines {
        self.0.lock().counted
    }

    /// Opens the file again, by its path: another program has renamed it. Later lines are written there.
    pub(crate) fn reopen(&self) {
        self.0.lock().reopens = true;
        self.0.changed.notify_all();
    }

    /// Waits until all is written, at most [`GRACE`]; later lines are lost.
    pub(crate) fn finish(&self) -> LogLines {
        let mut state = self.0.lock();
        state.ends = true;
        self.0.changed.notify_all();
        let ended = self.0.changed.wait_timeout_while(state, GRACE, |state| !state.ended);
        let (mut state, _) = ended.unwrap_or_else(PoisonError::into_inner);
        let left = std::mem::take(&mut state.lines) + std::mem::take(&mut state.on_their_way);
        state.counted.lost += left;
        state.counted
    }
}

impl ExchangeLog for AccessLog {
    fn note(&mut self, exchange: &LoggedExchange) {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line = line(exchange, since_epoch.as_secs());
        let mut state = self.0.lock();
        if state.ends || !state.push(Source::of(exchange.peer), &line) {
            state.counted.lost += 1;
            return;
        }
        drop(state);
        self.0.changed.notify_all();
    }
}

impl State {
    /// Appends a line unless its source has more then than is left. Returns true if it was appended.
    fn push(&mut self, source: Source, line: &str) -> bool {
        let (own, room) = (self.of_sources.get(&source), ROOM - self.waiting.len());
        let own = own.map_or(0, |own| *own) + line.len();
        if room < line.len() || own > room - line.len() {
            return false;
        }
        self.of_sources.insert(source, own);
        self.waiting.extend_from_slice(line.as_bytes());
        self.lines += 1;
        true
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that writes.
struct Writer {
    shared: Arc<Shared>,
    name: String,
    path: Option<PathBuf>,
    complained: bool,
}

impl Writer {
    fn run(mut self, mut out: Box<dyn Write>) {
        let mut lines = Vec::with_capacity(ROOM);
        loop {
            let count = {
                let state = self.shared.lock();
                let idle =
                    |state: &mut State| state.waiting.is_empty() && !state.ends && !state.reopens;
                let state = self.shared.changed.wait_while(state, idle);
                let mut state = state.unwrap_or_else(PoisonError::into_inner);
                let reopens = std::mem::take(&mut state.reopens);
                if reopens {
                    drop(state);
                    self.reopen(&mut out);
                    continue;
                }
                if state.waiting.is_empty() {
                    state.ended = true;
                    return self.shared.changed.notify_all();
                }
                std::mem::swap(&mut state.waiting, &mut lines);
                state.of_sources.clear();
                state.on_their_way = std::mem::take(&mut state.lines);
                state.on_their_way
            };
            let written = out.write_all(&lines).and_then(|()| out.flush());
            lines.clear();
            let mut state = self.shared.lock();
            state.on_their_way = 0;
            match &written {
                Ok(()) => state.counted.written += count,
                Err(_) => state.counted.lost += count,
            }
            drop(state);
            self.complain(written.err());
        }
    }

    /// Opens the file again; if that fails, the old one stays.
    fn reopen(&self, out: &mut Box<dyn Write>) {
        let Some(path) = &self.path else { return };
        match append(path) {
            Ok(file) => *out = Box::new(file),
            Err(error) => {
                let name = &self.name;
                streams::tell(&format!(
                    "error: --access-log {name}: {error}; the old file stays\n"
                ));
            }
        }
    }

    /// Reports once why lines are lost. A full disk may have room again later.
    fn complain(&mut self, error: Option<io::Error>) {
        if let Some(error) = error.filter(|_| !self.complained) {
            self.complained = true;
            let name = &self.name;
            let text = format!("error: --access-log {name}: {error}; lines are lost, and counted");
            streams::tell(&format!("{text}\n"));
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// A line in the combined format: `10.9.0.1 - - [23/Nov/2026:00:00:00 +0000] "GET / HTTP/1.1" 200 128
/// "-" "curl/8.5.0"`.
fn line(exchange: &LoggedExchange, seconds: u64) -> String {
    let LoggedExchange { peer, request, referer, agent, status, sent } = exchange;
    let peer = peer.map_or_else(|| "-".into(), |peer| peer.addr.to_string());
    let mut line = format!("{peer} - - [{}] ", time(seconds));
    quote(Some(request).filter(|it| !it.is_empty()).map(Vec::as_slice), &mut line);
    let sent = if *sent == 0 { "-".into() } else { sent.to_string() };
    let _ = write!(line, " {status} {sent} ");
    quote(referer.as_deref(), &mut line);
    line.push(' ');
    quote(agent.as_deref(), &mut line);
    line.push('\n');
    line
}

/// `23/Nov/2026:00:00:00 +0000`, of `Mon, 23 Nov 2026 00:00:00 GMT`.
fn time(seconds: u64) -> String {
    let date = HttpDate::from_unix_seconds(seconds);
    let mut words = date.as_str().split(' ').skip(1);
    let mut word = || words.next().unwrap_or_default();
    let (day, month, year, time) = (word(), word(), word(), word());
    format!("{day}/{month}/{year}:{time} +0000")
}

/// Appends a peer's bytes in quotes. Bytes that could end them or the line, or act on a terminal, are
/// escaped as by Apache's server.
fn quote(bytes: Option<&[u8]>, line: &mut String) {
    let bytes = bytes.unwrap_or(b"-");
    line.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => line.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => line.push(char::from(*byte)),
            // By hand: with a format, 3 kB of such bytes stall the server for 100 us.
            _ => {
                let digit = |nibble| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
                line.extend(['\\', 'x', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    line.push('"');
}

/// True if the option means the standard output.
pub(crate) fn is_standard_output(path: &Option<PathBuf>) -> bool {
    path.as_deref() == Some(Path::new(STANDARD_OUTPUT))
}

const STANDARD_OUTPUT: &str = "-";
/// Bytes of lines that may wait; as many may be in the writer's hands.
const ROOM: usize = 1 << 20;
/// Time at the end for lines that are still to be written.
const GRACE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
