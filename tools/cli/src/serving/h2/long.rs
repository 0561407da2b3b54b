//! Long work of streams, each piece of which waits for a separate turn.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Connections that wait for long work, in order of arrival.
#[derive(Default)]
pub(super) struct LongQueue {
    waiting: RefCell<BTreeMap<u64, (u32, Waker)>>,
    /// The connection in turn.
    granted: Cell<Option<u64>>,
    /// The number of the next that comes.
    next: Cell<u64>,
}

/// The streams of one connection, as they wait.
#[derive(Clone)]
pub(super) struct LongPlace {
    queue: Rc<LongQueue>,
    /// That of the connection.
    place: u32,
}

/// Ready when it is its turn.
pub(super) struct LongTurn {
    of: LongPlace,
    number: u64,
}

impl LongQueue {
    /// True if none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// It is the turn of the stream that waited longest, which this wakes. Returns the place of its
    /// connection, if there was one.
    pub(super) fn grant(&self) -> Option<u32> {
        let (number, (place, waker)) = self.waiting.borrow_mut().pop_first()?;
        self.granted.set(Some(number));
        waker.wake();
        Some(place)
    }

    /// One that has not begun has had its turn.
    pub(super) fn withdraw(&self) {
        self.granted.set(None);
    }

    /// That of the connection at this place.
    pub(super) fn at(self: &Rc<Self>, place: u32) -> LongPlace {
        LongPlace { queue: Rc::clone(self), place }
    }
}

impl LongPlace {
    /// The next turn of a stream, after all earlier requests.
    pub(super) fn turn(&self) -> LongTurn {
        let next = &self.queue.next;
        LongTurn { of: self.clone(), number: next.replace(next.get() + 1) }
    }
}

impl Future for LongTurn {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let LongPlace { queue, place } = &self.of;
        if queue.granted.get() == Some(self.number) {
            queue.granted.set(None);
            return Poll::Ready(());
        }
        queue.waiting.borrow_mut().insert(self.number, (*place, cx.waker().clone()));
        Poll::Pending
    }
}

/// A stream that was reset waits no more.
impl Drop for LongTurn {
    fn drop(&mut self) {
        // Not there any more if it had its turn.
        self.of.queue.waiting.borrow_mut().remove(&self.number);
    }
}
