//! The clients of a control socket: eight at a time, all of which the end of the server ends.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The streams of the clients.
#[derive(Default, Debug)]
pub(super) struct Clients {
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    places: Vec<Place>,
    next: u64,
    refusals: usize,
    has_ended: bool,
}

/// The place of a client in the table.
#[derive(Debug)]
struct Place {
    number: u64,
    stream: Arc<UnixStream>,
    /// Start of the client's silence; `None` while it is answered.
    silent_since: Option<Instant>,
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

    /// Notes that a refused client has a thread, until the result is dropped; `None` if too many have.
    pub(super) fn note_refusal(&self) -> Option<Refusing<'_>> {
        let mut state = self.lock();
        if state.refusals >= MOST_REFUSALS {
            return None;
        }
        state.refusals += 1;
        Some(Refusing(self))
    }

    /// Admits a client; `None` if there are too many, or the server has ended. Of a full table, the client that
    /// asked for nothing for the longest time gives way.
    pub(super) fn admit(&self, stream: &Arc<UnixStream>) -> Option<Admitted<'_>> {
        let mut state = self.lock();
        if state.places.len() >= Self::MOST {
            state.end_silent();
        }
        if state.has_ended || state.places.len() >= Self::MOST {
            return None;
        }
        let number = state.next;
        state.next += 1;
        let silent_since = Some(Instant::now());
        state.places.push(Place { number, stream: Arc::clone(stream), silent_since });
        Some(Admitted { clients: self, number })
    }

    /// Ends the client that asked for nothing for the longest time, if that is long.
    pub(super) fn end_silent(&self) {
        self.lock().end_silent();
    }

    /// Ends all clients: whatever they read or write fails.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        for place in &state.places {
            // The client may have gone.
            let _ = place.stream.shutdown(Shutdown::Both);
        }
    }

    /// Nothing is half changed after a panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_silent(&mut self) {
        let since = |(at, place): (usize, &Place)| Some((place.silent_since?, at));
        let longest = self.places.iter().enumerate().filter_map(since).min();
        if let Some((since, at)) = longest
            && since.elapsed() >= SILENT
        {
            let place = self.places.swap_remove(at);
            // Its thread reads the end, and says why.
            let _ = place.stream.shutdown(Shutdown::Read);
        }
    }
}

impl Admitted<'_> {
    /// Notes that the client has a request, or none. False if it gave way to another one.
    pub(super) fn note_request(&self, has_request: bool) -> bool {
        let mut state = self.clients.lock();
        let place = state.places.iter_mut().find(|place| place.number == self.number);
        let has_place = place.is_some();
        if let Some(place) = place {
            place.silent_since = (!has_request).then(Instant::now);
        }
        has_place
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.clients.lock().places.retain(|place| place.number != self.number);
    }
}

/// A thread of a refused client.
pub(super) struct Refusing<'c>(&'c Clients);

impl Drop for Refusing<'_> {
    fn drop(&mut self) {
        self.0.lock().refusals -= 1;
    }
}

/// Limit of refused clients that have a thread, which waits until they have read why.
const MOST_REFUSALS: usize = 24;
/// Silence after which a client gives way.
const SILENT: Duration = Duration::from_secs(5);
