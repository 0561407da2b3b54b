//! The streams of a metrics server: 32 at a time, four of which ask the shards, and 32 that are told why they end.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The streams that have a thread.
#[derive(Default, Debug)]
pub(super) struct Streams(Mutex<State>);

#[derive(Default, Debug)]
struct State {
    /// In the order in which they came.
    streams: Vec<Stream>,
    scrapes: usize,
    /// Number of places, with those of streams that gave way and are told so.
    places: usize,
}

#[derive(Debug)]
struct Stream {
    stream: Arc<TcpStream>,
    gave_way: Arc<AtomicBool>,
    asks_shards: bool,
}

/// The place of a stream, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    streams: Arc<Streams>,
    gave_way: Arc<AtomicBool>,
}

/// A scrape that asks the shards, until it is dropped.
pub(super) struct Scrape<'p>(&'p Place);

impl Streams {
    /// Gives a stream a place. Of a full table, the oldest that sends no request, or reads no answer, gives way.
    pub(super) fn admit(streams: &Arc<Self>, stream: &Arc<TcpStream>) -> Option<Place> {
        let mut state = streams.lock();
        if state.streams.len() >= MOST {
            state.end_idle();
        }
        if state.streams.len() >= MOST || state.places >= MOST_PLACES {
            return None;
        }
        state.places += 1;
        let gave_way = Arc::<AtomicBool>::default();
        let own = Arc::clone(&gave_way);
        state.streams.push(Stream { stream: Arc::clone(stream), gave_way, asks_shards: false });
        Some(Place { streams: Arc::clone(streams), gave_way: own })
    }

    /// Ends the oldest stream that sends no request, or reads no answer.
    pub(super) fn end_idle(&self) {
        self.lock().end_idle();
    }

    /// Nothing is half changed after a panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_idle(&mut self) {
        if let Some(at) = self.streams.iter().position(|it| !it.asks_shards) {
            let stream = self.streams.remove(at);
            stream.gave_way.store(true, Ordering::Release);
            // Its thread reads the end, and says why.
            let _gone = stream.stream.shutdown(Shutdown::Read);
        }
    }
}

impl Place {
    /// Begins a scrape; `None` if four run already.
    pub(super) fn begin_scrape(&self) -> Option<Scrape<'_>> {
        let mut state = self.streams.lock();
        if state.scrapes >= MOST_SCRAPES {
            return None;
        }
        state.scrapes += 1;
        self.mark(&mut state, true);
        Some(Scrape(self))
    }

    /// True if the stream gave way to another one.
    pub(super) fn gave_way(&self) -> bool {
        self.gave_way.load(Ordering::Acquire)
    }

    fn mark(&self, state: &mut State, asks_shards: bool) {
        let own = |it: &&mut Stream| Arc::ptr_eq(&it.gave_way, &self.gave_way);
        if let Some(stream) = state.streams.iter_mut().find(own) {
            stream.asks_shards = asks_shards;
        }
    }
}

impl Drop for Scrape<'_> {
    fn drop(&mut self) {
        let mut state = self.0.streams.lock();
        state.scrapes -= 1;
        self.0.mark(&mut state, false);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.streams.lock();
        state.places -= 1;
        state.streams.retain(|it| !Arc::ptr_eq(&it.gave_way, &self.gave_way));
    }
}

/// Streams that are served at a time, at most: those that gave way are not counted.
const MOST: usize = 32;
/// Limit of places, each of which has a thread: without it, one that connects faster than others leave would have any
/// number.
const MOST_PLACES: usize = 64;
/// Limit of scrapes at a time.
const MOST_SCRAPES: usize = 4;
