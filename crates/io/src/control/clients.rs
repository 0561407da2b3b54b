//! The clients of a control socket: eight at a time, all of which the end of the server ends.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The streams of the clients.
#[derive(Default, Debug)]
pub(super) struct Clients {
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    streams: Vec<(u64, UnixStream)>,
    next: u64,
    threads: usize,
    has_ended: bool,
}

/// A client's place, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted<'c> {
    clients: &'c Clients,
    number: u64,
}

impl Clients {
    /// Limit of clients at a time.
    pub(super) const MOST: usize = 8;

    /// True if one more stream may have a thread. Refused clients have theirs for a moment, too.
    pub(super) fn have_room(&self) -> bool {
        self.lock().threads < MOST_THREADS
    }

    /// Notes that a stream has a thread, until the result is dropped.
    pub(super) fn note_thread(&self) -> OnThread<'_> {
        self.lock().threads += 1;
        OnThread(self)
    }

    /// Admits a client; `None` if there are too many, or the server has ended.
    pub(super) fn admit(&self, stream: &UnixStream) -> Option<Admitted<'_>> {
        let mut state = self.lock();
        if state.has_ended || state.streams.len() >= Self::MOST {
            return None;
        }
        let (stream, number) = (stream.try_clone().ok()?, state.next);
        state.next += 1;
        state.streams.push((number, stream));
        Some(Admitted { clients: self, number })
    }

    /// Ends all clients: whatever they read or write fails.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        for (_, stream) in &state.streams {
            // The client may have gone.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Nothing is half changed after a panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.clients.lock().streams.retain(|(number, _)| *number != self.number);
    }
}

/// A thread of a stream.
pub(super) struct OnThread<'c>(&'c Clients);

impl Drop for OnThread<'_> {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
    }
}

/// Limit of threads: the clients, and as many again and more that are being refused.
const MOST_THREADS: usize = 32;
