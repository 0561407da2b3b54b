//! Which connections are to be polled: a waker for each rings its bell.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;

/// Bells that rang and were not answered, the first one first.
#[derive(Default)]
pub(super) struct Bells(Mutex<VecDeque<Rung>>);

/// That of one connection.
pub(super) struct Bell {
    place: u32,
    /// Whether it rings already.
    rings: Arc<AtomicBool>,
    bells: Arc<Bells>,
}

struct Rung {
    place: u32,
    rings: Option<Arc<AtomicBool>>,
}

impl Bell {
    /// Of the connection at this place.
    pub(super) fn new(place: u32, bells: &Arc<Bells>) -> Self {
        Self { place, rings: Arc::default(), bells: Arc::clone(bells) }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.rings.swap(true, Ordering::Relaxed) {
            let rings = Some(Arc::clone(&self.rings));
            self.bells.lock().push_back(Rung { place: self.place, rings });
        }
    }
}

impl Bells {
    /// The connection at this place has more to do.
    pub(super) fn ring(&self, place: u32) {
        self.lock().push_back(Rung { place, rings: None });
    }

    /// The place of the next bell that rings, which it does no longer. Whose it was may be gone.
    pub(super) fn next(&self) -> Option<u32> {
        let Rung { place, rings } = self.lock().pop_front()?;
        if let Some(rings) = rings {
            rings.store(false, Ordering::Relaxed);
        }
        Some(place)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Rung>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
