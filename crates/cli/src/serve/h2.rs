//! `serve --h2c`: HTTP/2 in clear text, by prior knowledge (RFC 9113 3.3), of the same sites over the
//! same transports.
//!
//! The protocol is hyper's. Of a runtime it needs none: each connection is a future that the model
//! polls when something happened to it, and whose octets go through a pipe in memory.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::server::conn::http2;
use whimbrel_apps::http::{Limits, Statistics};
use whimbrel_apps::idle::IdleList;
use whimbrel_apps::pace::{Pace, Pacing};
use whimbrel_apps::{Happening, Model, Reading, Transport};
use whimbrel_tcp::Instant;

use super::content::Content;
use answer::{Answerer, Shared};
use bell::{Bell, Bells};
use pipe::{Near, Pipe};
use tasks::Tasks;

mod answer;
mod bell;
mod pipe;
mod tasks;

/// Serves [`Content`] over the connections of one transport, whose listeners are all its own.
pub(crate) struct H2Server<T: Transport> {
    shared: Rc<Shared>,
    limits: Limits,
    /// By [`Transport::place`].
    slots: Vec<Option<Slot<T::Id>>>,
    /// Of connections whose future is to be polled.
    bells: Arc<Bells>,
    idle: IdleList,
    accepts: Pacing<T::Listener>,
    again: VecDeque<T::Listener>,
    statistics: Statistics,
}

struct Slot<I> {
    id: I,
    connection: Pin<Box<Served>>,
    tasks: Tasks,
    near: Near,
    /// What the transport had no room for yet.
    pending: Bytes,
    waker: Waker,
    /// hyper has done with it: what is pending goes out, and that was it.
    over: bool,
}

type Served = http2::Connection<Pipe, Answerer, Tasks>;

/// What becomes of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parting {
    Close,
    Abort,
}

impl<T: Transport> H2Server<T> {
    /// A server without connections.
    pub(crate) fn new(content: Content, limits: Limits, pace: Pace) -> Self {
        Self {
            shared: Rc::new(Shared::new(content, limits, pace.think)),
            limits,
            slots: Vec::new(),
            bells: Arc::default(),
            idle: IdleList::default(),
            accepts: Pacing::at(Pace { think: std::time::Duration::ZERO, ..pace }),
            again: VecDeque::new(),
            statistics: Statistics::default(),
        }
    }

    /// What happened so far.
    pub(crate) fn statistics(&self) -> Statistics {
        let (requests, refused) = self.shared.answered();
        Statistics { requests, refused, ..self.statistics }
    }

    /// Lets go of every connection: whoever has a stream open is reset.
    pub(crate) fn shut_down(&mut self, net: &mut T) {
        for place in 0..self.slots.len() {
            let Some(Some(slot)) = self.slots.get(place) else { continue };
            let idle = slot.pending.is_empty() && slot.tasks.is_empty();
            let parting = if idle { Parting::Close } else { Parting::Abort };
            self.release(net, place as u32, parting);
        }
        self.again.clear();
    }

    fn accept(&mut self, net: &mut T, listener: T::Listener, now: Instant) {
        for _ in 0..self.accepts.accepts_at_once(ACCEPTS) {
            let Some(id) = net.accept(listener) else { return };
            let place = T::place(id);
            if self.slots.len() <= place as usize {
                self.slots.resize_with(place as usize + 1, || None);
            }
            let slot = self.open(id, place);
            if let Some(entry) = self.slots.get_mut(place as usize) {
                *entry = Some(slot);
            }
            self.statistics.accepted += 1;
            self.statistics.open += 1;
            self.idle.touch(place, now);
            self.drive(net, place, now);
        }
        if self.accepts.may_accept(listener, now) {
            self.again.push_back(listener);
        }
    }

    fn open(&self, id: T::Id, place: u32) -> Slot<T::Id> {
        let (near, far) = pipe::pair();
        let tasks = Tasks::default();
        let connection = http2::Builder::new(tasks.clone())
            .max_concurrent_streams(STREAMS)
            .serve_connection(far, Answerer(Rc::clone(&self.shared)));
        let waker = Waker::from(Arc::new(Bell::new(place, &self.bells)));
        let connection = Box::pin(connection);
        Slot { id, connection, tasks, near, pending: Bytes::new(), waker, over: false }
    }

    /// Moves a connection on until it must wait.
    fn drive(&mut self, net: &mut T, place: u32, now: Instant) {
        for _ in 0..STEPS {
            let Some(Some(slot)) = self.slots.get_mut(place as usize) else { return };
            let before = (self.statistics.received, self.statistics.sent);
            let answered = self.shared.answered();
            let busy = slot.is_busy();
            let step = slot.step(net, &mut self.statistics);
            // What moves while no request is there (a head that comes byte by byte, PING and its
            // answer) is no sign of life: it would keep the place for ever.
            let busy = busy || slot.is_busy() || answered != self.shared.answered();
            if busy && before != (self.statistics.received, self.statistics.sent) {
                self.idle.touch(place, now);
            }
            match step {
                Step::More => {}
                Step::Wait => return,
                Step::Over(parting) => return self.release(net, place, parting),
            }
        }
        self.bells.ring(place);
    }

    fn release(&mut self, net: &mut T, place: u32, parting: Parting) {
        let Some(slot) = self.slots.get_mut(place as usize).and_then(Option::take) else { return };
        self.idle.remove(place);
        self.statistics.open -= 1;
        match parting {
            Parting::Close => net.close(slot.id),
            Parting::Abort => {
                self.statistics.failed += 1;
                net.abort(slot.id);
            }
        }
    }

    /// The place of a connection, if it is one of ours.
    fn place_of(&self, id: T::Id) -> Option<u32> {
        let slot = self.slots.get(T::place(id) as usize)?.as_ref()?;
        (slot.id == id).then(|| T::place(id))
    }

    fn on_happening(&mut self, net: &mut T, happening: Happening<T>, now: Instant) {
        match happening {
            Happening::Accepted(listener) => {
                if self.accepts.may_accept(listener, now) {
                    self.accept(net, listener, now);
                }
            }
            Happening::Readable(id) | Happening::Writable(id) | Happening::Closed(id, _) => {
                if let Some(place) = self.place_of(id) {
                    self.drive(net, place, now);
                }
            }
            // Nothing here opens connections.
            Happening::Connected(_) => {}
        }
    }

    /// Whoever was silent for too long, unless an answer is being thought about.
    fn expire(&mut self, net: &mut T, now: Instant) {
        while let Some((place, since)) = self.idle.oldest() {
            if now < since + self.limits.idle {
                return;
            }
            let thinks = self.slots.get(place as usize).is_some_and(|slot| {
                slot.as_ref().is_some_and(|slot| !slot.tasks.is_empty() && slot.pending.is_empty())
            });
            if thinks && self.shared.is_thinking() {
                self.idle.touch(place, now);
                continue;
            }
            self.statistics.silent += 1;
            self.release(net, place, Parting::Close);
        }
    }
}

/// What a connection does next.
enum Step {
    More,
    Wait,
    Over(Parting),
}

impl<I: Copy> Slot<I> {
    /// Whether a request is being answered, or what was said has not left.
    fn is_busy(&self) -> bool {
        !self.tasks.is_empty() || !self.pending.is_empty()
    }

    /// Octets out, octets in, and what hyper makes of them.
    fn step<T: Transport<Id = I>>(&mut self, net: &mut T, statistics: &mut Statistics) -> Step {
        if self.pending.is_empty() {
            self.pending = self.near.take_output();
        }
        if !self.pending.is_empty() {
            let Ok(taken) = net.send(self.id, &mut self.pending) else {
                return Step::Over(Parting::Abort);
            };
            statistics.sent += taken as u64;
            if !self.pending.is_empty() {
                return Step::Wait;
            }
            return Step::More;
        }
        if self.over {
            return Step::Over(Parting::Close);
        }
        if self.near.wants_input() {
            match net.recv(self.id) {
                Reading::Data(octets) => {
                    statistics.received += octets.len() as u64;
                    self.near.give(octets);
                }
                Reading::End => self.near.end(),
                Reading::Pending => {}
                Reading::Failed(_) => return Step::Over(Parting::Abort),
            }
        }
        let mut cx = Context::from_waker(&self.waker);
        let ended = self.connection.as_mut().poll(&mut cx);
        self.tasks.poll(&mut cx);
        self.over = match ended {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(_)) if self.near.has_output() => true,
            Poll::Ready(Err(_)) => return Step::Over(Parting::Abort),
        };
        let more = self.over || self.near.has_output() || self.near.was_fed();
        if more { Step::More } else { Step::Wait }
    }
}

impl<T: Transport> Model<T> for H2Server<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        self.shared.on_time(now);
        for _ in 0..budget {
            if let Some(happening) = net.poll_event() {
                self.on_happening(net, happening, now);
            } else if let Some(place) = self.bells.next() {
                self.drive(net, place, now);
            } else if let Some(listener) =
                self.again.pop_front().or_else(|| self.accepts.next_accept(now))
            {
                self.accept(net, listener, now);
            } else {
                self.expire(net, now);
                return false;
            }
        }
        true
    }

    fn next_deadline(&self) -> Option<Instant> {
        let silent = self.idle.oldest().map(|(_, since)| since + self.limits.idle);
        let due = [silent, self.shared.next_thought(), self.accepts.next_deadline()];
        due.into_iter().flatten().min()
    }
}

/// Connections accepted in one go.
const ACCEPTS: usize = 64;
/// Steps of one connection in one go.
const STEPS: usize = 64;
/// Streams that a connection may have open at a time: as many as RFC 9113 6.5.2 has it at the least.
const STREAMS: u32 = 100;

#[cfg(test)]
mod tests;
