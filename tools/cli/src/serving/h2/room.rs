//! Memory of one connection for bodies that its client has not taken: bytes made for it, counted until
//! they are dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;

/// The room of one connection: its streams share [`SHARED`] bytes, and each that holds nothing may hold
/// [`LEAST`] more. So a stream with a closed window blocks none of the others.
#[derive(Clone, Default)]
pub(super) struct Room(Arc<Mutex<Holding>>);

#[derive(Default)]
struct Holding {
    bytes: usize,
    /// Streams that wait until something is dropped.
    waiting: Vec<Waker>,
}

/// The share of one stream.
#[derive(Clone)]
pub(super) struct StreamRoom {
    room: Room,
    bytes: Arc<AtomicUsize>,
}

impl Room {
    /// Bytes in memory.
    pub(super) fn held(&self) -> usize {
        self.lock().bytes
    }

    /// Bytes that may be made at once for a stream that holds nothing.
    pub(super) fn at_once(&self) -> usize {
        SHARED.saturating_sub(self.held()).max(LEAST)
    }

    /// That of a stream.
    pub(super) fn stream(&self) -> StreamRoom {
        StreamRoom { room: self.clone(), bytes: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Holding> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamRoom {
    /// Bytes that may be made at once. `None`: nothing until a drop, which wakes `waker`.
    pub(super) fn at_once(&self, waker: &Waker) -> Option<usize> {
        let mut holding = self.room.lock();
        let left = SHARED.saturating_sub(holding.bytes);
        if left >= LEAST || self.bytes.load(Ordering::Relaxed) == 0 {
            return Some(left.max(LEAST));
        }
        if !holding.waiting.iter().any(|known| known.will_wake(waker)) {
            holding.waiting.push(waker.clone());
        }
        None
    }

    /// Counts these bytes for as long as they are held.
    pub(super) fn hold(&self, bytes: Bytes) -> Bytes {
        self.room.lock().bytes += bytes.len();
        self.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        Bytes::from_owner(Held { bytes, room: self.clone() })
    }
}

/// Bytes that are counted.
struct Held {
    bytes: Bytes,
    room: StreamRoom,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.bytes.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        let mut holding = self.room.room.lock();
        holding.bytes -= self.bytes.len();
        let waiting = std::mem::take(&mut holding.waiting);
        drop(holding);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Bytes shared by all streams: one frame of the size that peers accept at least.
const SHARED: usize = 16 << 10;
/// Bytes that a stream may have in addition. A hundred streams have it.
const LEAST: usize = 256;

#[cfg(test)]
#[path = "room/tests.rs"]
mod tests;
