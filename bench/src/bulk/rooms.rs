//! Memory that applications copy into before they write it: of one pool, as an allocator has it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::text::COPIED;

/// Pieces of memory that are free. The one that was used last is used next.
#[derive(Default)]
pub(super) struct Rooms(Arc<Mutex<Vec<Vec<u8>>>>);

/// A piece in use. Its drop returns it.
struct Room {
    bytes: Vec<u8>,
    home: Rooms,
}

impl Rooms {
    /// A copy of `piece`, which is no longer than [`COPIED`].
    pub(super) fn copy(&self, piece: &[u8]) -> Bytes {
        let mut bytes = self.idle(Vec::pop).unwrap_or_else(|| Vec::with_capacity(COPIED));
        bytes.clear();
        bytes.extend_from_slice(piece);
        Bytes::from_owner(Room { bytes, home: Self(Arc::clone(&self.0)) })
    }

    fn idle<T>(&self, act: impl FnOnce(&mut Vec<Vec<u8>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AsRef<[u8]> for Room {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.home.idle(|idle| idle.push(bytes));
    }
}
