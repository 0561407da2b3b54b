//! Lines that a thread of their own writes: who causes them never waits for the disk.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// An output of whole lines. Lines without room are dropped; where some are missing, a line says how many:
/// `{"dropped":12}`.
#[derive(Debug)]
pub(super) struct BoundedLines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Signals that lines wait, and that they are written.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines dropped since the last one that waits.
    dropped: u64,
    /// The thread has taken lines that are not written yet.
    is_writing: bool,
    failure: Option<io::Error>,
    ends: bool,
}

impl BoundedLines {
    /// Begins to write to `out`. Fails if the system gives no thread.
    pub(super) fn begin(out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let written = Arc::clone(&shared);
        // It ends with the last line, and is not waited for beyond `flush`.
        drop(thread::Builder::new().name("trace".into()).spawn(move || written.write_to(out))?);
        Ok(Self(shared))
    }
}

impl Write for BoundedLines {
    /// Queues whole lines, or drops all of them.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        if state.waiting.len() + lines.len() > ROOM {
            state.dropped += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        } else {
            state.note_dropped();
            state.waiting.extend_from_slice(lines);
            self.0.changed.notify_all();
        }
        Ok(lines.len())
    }

    /// Waits until all is written, at most [`GRACE`].
    fn flush(&mut self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.note_dropped();
        self.0.changed.notify_all();
        let waits = |state: &mut State| {
            state.failure.is_none() && (state.is_writing || !state.waiting.is_empty())
        };
        let waited = self.0.changed.wait_timeout_while(state, GRACE, waits);
        let (mut state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match state.failure.take() {
            Some(failure) => Err(failure),
            None if timeout.timed_out() => Err(io::ErrorKind::TimedOut.into()),
            None => Ok(()),
        }
    }
}

impl Drop for BoundedLines {
    fn drop(&mut self) {
        self.0.lock().ends = true;
        self.0.changed.notify_all();
    }
}

impl State {
    /// Adds a line where lines are missing; it is short, and may exceed the room.
    fn note_dropped(&mut self) {
        if self.dropped > 0 {
            let line = format!("{{\"dropped\":{}}}\n", std::mem::take(&mut self.dropped));
            self.waiting.extend_from_slice(line.as_bytes());
        }
    }
}

impl Shared {
    /// Writes lines until they end, or a write fails.
    fn write_to(&self, mut out: impl Write) {
        let mut lines = Vec::new();
        loop {
            let idle = |state: &mut State| state.waiting.is_empty() && !state.ends;
            let state = self.changed.wait_while(self.lock(), idle);
            let mut state = state.unwrap_or_else(PoisonError::into_inner);
            if state.waiting.is_empty() {
                return;
            }
            std::mem::swap(&mut state.waiting, &mut lines);
            state.is_writing = true;
            drop(state);
            let written = out.write_all(&lines).and_then(|()| out.flush());
            lines.clear();
            let mut state = self.lock();
            state.is_writing = false;
            let has_failed = written.is_err();
            state.failure = written.err();
            self.changed.notify_all();
            if has_failed {
                return;
            }
        }
    }

    /// Nothing is half changed after a panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of lines that may wait; as many may be in the thread's hands.
const ROOM: usize = 4 << 20;
/// Time at the end for lines that are still to be written.
const GRACE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
