//! Long work of streams, each piece of which waits for a separate turn. Sources take turns.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use whimbrel_apps::fair_queue::{FairQueue, Ticket};
use whimbrel_apps::source::Source;

/// Connections that wait for long work.
#[derive(Default)]
pub(super) struct LongQueue {
    waiting: RefCell<FairQueue<(u32, Waker)>>,
    /// The piece in turn.
    granted: Cell<Option<Ticket>>,
}

/// The streams of one connection, as they wait.
#[derive(Clone)]
pub(super) struct LongPlace {
    queue: Rc<LongQueue>,
    /// That of the connection.
    place: u32,
    source: Source,
}

/// Ready when it is its turn.
pub(super) struct LongTurn {
    of: LongPlace,
    ticket: Ticket,
}

impl LongQueue {
    /// True if none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// It is the turn of the next stream, which this wakes. Returns the place of its
    /// connection, if there was one.
    pub(super) fn grant(&self) -> Option<u32> {
        let (ticket, (place, waker)) = self.waiting.borrow_mut().pop()?;
        self.granted.set(Some(ticket));
        waker.wake();
        Some(place)
    }

    /// One that has not begun has had its turn.
    pub(super) fn withdraw(&self) {
        self.granted.set(None);
    }

    /// That of the connection at this place, whose client is this source.
    pub(super) fn at(self: &Rc<Self>, place: u32, source: Source) -> LongPlace {
        LongPlace { queue: Rc::clone(self), place, source }
    }
}

impl LongPlace {
    /// The next turn of a stream, after all earlier requests of its source.
    pub(super) fn turn(&self) -> LongTurn {
        let ticket = self.queue.waiting.borrow_mut().ticket(self.source);
        LongTurn { of: self.clone(), ticket }
    }
}

impl Future for LongTurn {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let LongPlace { queue, place, .. } = &self.of;
        if queue.granted.get() == Some(self.ticket) {
            queue.granted.set(None);
            return Poll::Ready(());
        }
        queue.waiting.borrow_mut().wait(self.ticket, (*place, cx.waker().clone()));
        Poll::Pending
    }
}

/// A stream that was reset waits no more.
impl Drop for LongTurn {
    fn drop(&mut self) {
        // Not there any more if it had its turn.
        self.of.queue.waiting.borrow_mut().remove(self.ticket);
    }
}
