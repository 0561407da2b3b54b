//! Lines of a client: read within a bound, and written within a time.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::Value;

use crate::Stop;
use crate::poll::{Interest, PollFd, ppoll};
use crate::sys::option::{PlainOption, get, set};

/// A line of a client, or its end.
#[derive(Debug)]
pub(super) enum Line {
    /// A whole line without its end.
    Whole(Vec<u8>),
    /// More bytes than a request may have.
    TooLong,
    /// The client has gone, or the server ends.
    End,
}

/// Reads lines of at most [`MOST`] bytes.
#[derive(Debug)]
pub(super) struct LineReader<'s> {
    stream: &'s UnixStream,
    held: Vec<u8>,
}

impl<'s> LineReader<'s> {
    pub(super) const fn new(stream: &'s UnixStream) -> Self {
        Self { stream, held: Vec::new() }
    }

    /// Waits for the next line, until `stop` is set.
    pub(super) fn next(&mut self, stop: &Stop) -> Line {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let rest = self.held.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.held, rest);
                line.pop();
                return Line::Whole(line);
            }
            if self.held.len() > MOST {
                return Line::TooLong;
            }
            match self.read(stop) {
                Ok(0) | Err(_) => return Line::End,
                Ok(_) => {}
            }
        }
    }

    /// Waits for at most this time. Returns true once the client has sent something or has left, or `stop` is
    /// set.
    pub(super) fn wait(&self, stop: &Stop, time: Duration) -> io::Result<bool> {
        if !self.held.is_empty() {
            return Ok(true);
        }
        let mut fds = [PollFd::new(self.stream, Interest::Read), PollFd::new(stop, Interest::Read)];
        ppoll(&mut fds, Some(time))?;
        Ok(fds.iter().any(|fd| fd.is_readable() || fd.is_broken()))
    }

    fn read(&mut self, stop: &Stop) -> io::Result<usize> {
        let mut fds = [PollFd::new(self.stream, Interest::Read), PollFd::new(stop, Interest::Read)];
        ppoll(&mut fds, None)?;
        if stop.is_set() {
            return Ok(0);
        }
        let mut bytes = [0; 4_096];
        let len = (&mut &*self.stream).read(&mut bytes)?;
        self.held.extend(bytes.get(..len).unwrap_or_default());
        Ok(len)
    }
}

/// Writes lines, some at a time.
#[derive(Debug)]
pub(super) struct LineWriter<'s> {
    stream: &'s UnixStream,
    held: Vec<u8>,
}

impl<'s> LineWriter<'s> {
    /// Writes to `stream`, which fails after [`SLOW`] in which the client took nothing.
    pub(super) fn new(stream: &'s UnixStream) -> io::Result<Self> {
        stream.set_write_timeout(Some(SLOW))?;
        Ok(Self { stream, held: Vec::new() })
    }

    /// Adds a line, and writes what there is once that is much.
    pub(super) fn line(&mut self, value: &Value) -> io::Result<()> {
        // A map with texts as keys can be written to memory.
        serde_json::to_writer(&mut self.held, value)?;
        self.held.push(b'\n');
        if self.held.len() >= WRITTEN_AT_ONCE { self.flush() } else { Ok(()) }
    }

    /// Writes all that was added. A client that takes too long loses its stream, and
    /// gets an error as its last line.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let written = (&mut &*self.stream).write_all(&self.held);
        self.held.clear();
        if let Err(error) = &written
            && matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
        {
            self.tell_slow();
        }
        written
    }

    /// Tells a client that took nothing for too long, behind what it has not read, and ends its stream.
    fn tell_slow(&self) {
        // Room for one more line: half of a socket's buffer stays free for it.
        let _as_it_was = double_buffer(self.stream);
        let text = format!("\n{}\n", super::request::failure(&Value::Null, "slow", SLOW_TEXT));
        let _closed = self.stream.set_nonblocking(true);
        let _lost = (&mut &*self.stream).write_all(text.as_bytes());
        let _gone = self.stream.shutdown(Shutdown::Both);
    }
}

/// Doubles the send buffer.
fn double_buffer(stream: &UnixStream) -> io::Result<()> {
    let option = PlainOption::new(libc::SOL_SOCKET, libc::SO_SNDBUF);
    let option = option.ok_or(io::ErrorKind::Unsupported)?;
    let mut value = [0; 4];
    get(stream.as_fd(), option, &mut value)?;
    // The kernel doubles what is set: what it says is twice that already.
    set(stream.as_fd(), option, &value)
}

/// Limit of a request in bytes.
pub(super) const MOST: usize = 64 << 10;
/// Bytes that are written together.
const WRITTEN_AT_ONCE: usize = 32 << 10;
/// Time for a client to take an answer.
const SLOW: Duration = Duration::from_secs(5);
const SLOW_TEXT: &str =
    "nothing was read for 5 s, so this stream ends: read faster, or ask for less";
