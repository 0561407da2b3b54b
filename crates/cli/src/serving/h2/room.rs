//! What one connection holds of bodies that its client has not taken: bytes that were made for it, counted
//! until they are dropped, wherever they are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;

/// The room of one connection: its streams share [`SHARED`] octets, and each that holds nothing may hold
/// [`LEAST`] beyond. So a stream whose window is closed keeps none of the others waiting.
#[derive(Clone, Default)]
pub(super) struct Room(Arc<Mutex<Holding>>);

#[derive(Default)]
struct Holding {
    octets: usize,
    /// Streams that wait until something is dropped.
    waiting: Vec<Waker>,
}

/// What one stream has of it.
#[derive(Clone)]
pub(super) struct StreamRoom {
    room: Room,
    octets: Arc<AtomicUsize>,
}

impl Room {
    /// What is held, octets.
    pub(super) fn held(&self) -> usize {
        self.lock().octets
    }

    /// How much may be made at once for a stream that holds nothing, octets.
    pub(super) fn at_once(&self) -> usize {
        SHARED.saturating_sub(self.held()).max(LEAST)
    }

    /// That of a stream.
    pub(super) fn stream(&self) -> StreamRoom {
        StreamRoom { room: self.clone(), octets: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Holding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamRoom {
    /// How much may be made at once. `None`: nothing until something is dropped, which wakes `waker`.
    pub(super) fn at_once(&self, waker: &Waker) -> Option<usize> {
        let mut holding = self.room.lock();
        let left = SHARED.saturating_sub(holding.octets);
        if left >= LEAST || self.octets.load(Ordering::Relaxed) == 0 {
            return Some(left.max(LEAST));
        }
        if !holding.waiting.iter().any(|known| known.will_wake(waker)) {
            holding.waiting.push(waker.clone());
        }
        None
    }

    /// Counts these octets for as long as they are held.
    pub(super) fn hold(&self, octets: Bytes) -> Bytes {
        self.room.lock().octets += octets.len();
        self.octets.fetch_add(octets.len(), Ordering::Relaxed);
        Bytes::from_owner(Held { octets, room: self.clone() })
    }
}

/// Octets that are counted.
struct Held {
    octets: Bytes,
    room: StreamRoom,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.octets
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.octets.fetch_sub(self.octets.len(), Ordering::Relaxed);
        let mut holding = self.room.room.lock();
        holding.octets -= self.octets.len();
        let waiting = std::mem::take(&mut holding.waiting);
        drop(holding);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// What all streams share, octets: a frame, as peers take it at least.
const SHARED: usize = 16 << 10;
/// What a stream may have beyond that, octets. A hundred have it.
const LEAST: usize = 256;

#[cfg(test)]
#[path = "room/tests.rs"]
mod tests;
