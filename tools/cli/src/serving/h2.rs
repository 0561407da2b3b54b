//! `serve --h2c`: HTTP/2 in clear text, by prior knowledge (RFC 9113 3.3), and HTTP/1.1 at the same
//! port, with the same sites over the same transports. The first bytes of a connection decide its
//! protocol.
//!
//! The protocol is hyper's. Of a runtime it needs none: each connection is a future that the model
//! polls when something happened to it, and whose bytes go through a pipe in memory.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use hyper::server::conn::http2;
use whimbrel_apps::http::{ExchangeLog, HttpDate, HttpServer, Limits, Site};
use whimbrel_apps::idle::IdleList;
use whimbrel_apps::pace::{Pace, Pacing};
use whimbrel_apps::ready_queue::{ReadyQueue, ReadyWaker};
use whimbrel_apps::source::Source;
use whimbrel_apps::{Model, Reading, Statistics, Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_wire::Endpoint;

use answer::{Answerer, Common, Shared};
use pipe::{Near, Pipe};
use room::Room;
use shares::Shares;
use tasks::Tasks;

// Named by their files, so that tests elsewhere find them, too.
#[path = "h2/answer.rs"]
mod answer;
#[path = "h2/long.rs"]
mod long;
#[path = "h2/pipe.rs"]
mod pipe;
#[path = "h2/room.rs"]
mod room;
#[path = "h2/shares.rs"]
mod shares;
#[path = "h2/tasks.rs"]
mod tasks;

/// Serves a [`Site`] over the connections of one transport, whose listeners are all its own.
pub(crate) struct H2Server<S: Site + 'static, T: Transport> {
    shared: Rc<Shared<S>>,
    limits: Limits,
    /// The connections that speak HTTP/1.1.
    plain: HttpServer<Common<S>, T>,
    /// All other connections, by [`Transport::place`].
    slots: Vec<Option<H2Connection<S, T::Id>>>,
    /// Of connections whose future is to be polled.
    ready: Arc<ReadyQueue>,
    idle: IdleList,
    accepts: Pacing<T::Listener>,
    again: VecDeque<T::Listener>,
    /// Next in turn: events, ready connections, or listeners.
    round: u8,
    /// The next turn of long work is first offered to HTTP/1.1.
    plain_first: bool,
    /// Memory of the connections, by [`Speaker::weigh`].
    shares: Shares,
    statistics: Statistics,
}

/// A connection that does not speak HTTP/1.1, as far as is known.
enum H2Connection<S: Site + 'static, I> {
    /// Its first bytes do not decide the protocol yet.
    New { id: I, bytes: BytesMut },
    /// It began with the preface of HTTP/2 (RFC 9113 3.4).
    Known(Box<Speaker<S, I>>),
}

struct Speaker<S: Site + 'static, I> {
    id: I,
    connection: Pin<Box<Served<S>>>,
    tasks: Tasks,
    near: Near,
    /// Bytes that the transport had no room for yet.
    pending: Bytes,
    waker: Waker,
    /// hyper has finished it: the pending bytes leave, then it ends.
    over: bool,
    /// Memory of its answers.
    room: Room,
    /// Its whole memory, as counted in [`H2Server::shares`], and its source.
    weight: u64,
    source: Source,
}

type Served<S> = http2::Connection<Pipe, Answerer<S>, Tasks>;

/// The next task of a server.
enum Task<T: Transport> {
    Event(TransportEvent<T>),
    Drive(u32),
    Accept(T::Listener),
}

/// The way in which a connection closes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CloseMode {
    Close,
    Abort,
}

/// Logs of one server, if there are any: one for each protocol.
pub(crate) type ExchangeLogs = Option<[Box<dyn ExchangeLog + Send>; 2]>;

impl<S: Site + 'static, T: Transport> H2Server<S, T> {
    /// A server without connections.
    pub(crate) fn new(site: S, limits: Limits, pace: Pace, logs: ExchangeLogs) -> Self {
        let [plain, fancy] = logs.map_or([None, None], |both| both.map(Some));
        let site = Common::new(site);
        // Connections are accepted here, at the requested pace.
        let later = Pace { accept: std::time::Duration::ZERO, ..pace };
        let plain = HttpServer::new(site.clone(), limits).with_pace(later).with_log(plain);
        Self {
            shared: Rc::new(Shared::new(site, limits, pace.think, fancy)),
            limits,
            plain: plain.behind_another(),
            slots: Vec::new(),
            ready: Arc::default(),
            idle: IdleList::default(),
            accepts: Pacing::at(Pace { think: std::time::Duration::ZERO, ..pace }),
            again: VecDeque::new(),
            round: 0,
            plain_first: false,
            shares: Shares::default(),
            statistics: Statistics::default(),
        }
    }

    /// Counts so far.
    pub(crate) fn statistics(&self) -> Statistics {
        let (requests, refused) = self.shared.answered();
        let mut both = *self.plain.statistics();
        both += Statistics { requests, refused, ..self.statistics };
        both
    }

    /// The time for the `Date` field of HTTP/1.1.
    pub(crate) fn set_date(&mut self, date: HttpDate) {
        self.plain.set_date(date);
    }

    /// Begins to drain: HTTP/1.1 by `Connection: close`, HTTP/2 by GOAWAY (RFC 9113 6.8).
    pub(crate) fn drain(&mut self) {
        self.plain.drain();
        for slot in self.slots.iter_mut().flatten() {
            if let H2Connection::Known(speaker) = slot {
                speaker.connection.as_mut().graceful_shutdown();
                speaker.waker.wake_by_ref();
            }
        }
    }

    /// Closes the connections that have sent nothing yet, and those of HTTP/1.1 between requests.
    pub(crate) fn close_idle(&mut self, net: &mut T) {
        for place in 0..self.slots.len() {
            if let Some(Some(slot @ H2Connection::New { .. })) = self.slots.get(place)
                && !slot.is_busy()
            {
                self.release(net, place as u32, CloseMode::Close);
            }
        }
        self.plain.close_idle(net);
    }

    /// Closes all connections; open streams are reset.
    pub(crate) fn shut_down(&mut self, net: &mut T) {
        for place in 0..self.slots.len() {
            let Some(Some(slot)) = self.slots.get(place) else { continue };
            let close_mode = if slot.is_busy() { CloseMode::Abort } else { CloseMode::Close };
            self.release(net, place as u32, close_mode);
        }
        self.again.clear();
        self.plain.shut_down(net);
    }

    fn accept(&mut self, net: &mut T, listener: T::Listener, now: Instant) {
        for _ in 0..self.accepts.accepts_at_once(ACCEPTS) {
            if self.plain.effort().is_spent() {
                break;
            }
            let Some(id) = net.accept(listener) else { return };
            let place = T::place(id);
            if self.slots.len() <= place as usize {
                self.slots.resize_with(place as usize + 1, || None);
            }
            if let Some(entry) = self.slots.get_mut(place as usize) {
                *entry = Some(H2Connection::New { id, bytes: BytesMut::new() });
            }
            self.statistics.accepted += 1;
            self.statistics.open += 1;
            self.idle.touch(place, now);
            self.drive(net, place, now);
        }
        if self.accepts.may_accept(listener, now) && !self.again.contains(&listener) {
            self.again.push_back(listener);
        }
    }

    /// Reads the first bytes of a connection, until they decide its protocol.
    fn meet(&mut self, net: &mut T, place: u32, now: Instant) {
        let Some(Some(H2Connection::New { id, bytes })) = self.slots.get_mut(place as usize) else {
            return;
        };
        let id = *id;
        // RFC 9113 3.4: the client begins with these 24 bytes; no request of HTTP/1.1 does.
        while bytes.len() < PREFACE.len() && PREFACE.starts_with(bytes) {
            match net.recv(id) {
                Reading::Data(more) => bytes.extend_from_slice(&more),
                // The HTTP/1.1 server finds the reason again.
                Reading::End | Reading::Failed(_) => break,
                Reading::Pending => return,
            }
        }
        let bytes = std::mem::take(bytes).freeze();
        if !bytes.starts_with(PREFACE) {
            self.slots[place as usize] = None;
            self.idle.remove(place);
            self.statistics.accepted -= 1;
            self.statistics.open -= 1;
            return self.plain.adopt(net, id, bytes, now);
        }
        self.statistics.received += bytes.len() as u64;
        let speaker = self.open(id, place, bytes, net.remote(id));
        self.slots[place as usize] = Some(H2Connection::Known(Box::new(speaker)));
        self.drive(net, place, now);
    }

    fn open(
        &self,
        id: T::Id,
        place: u32,
        bytes: Bytes,
        peer: Option<Endpoint>,
    ) -> Speaker<S, T::Id> {
        let (near, far) = pipe::pair();
        near.give(bytes);
        let waker = Waker::from(Arc::new(ReadyWaker::new(place, &self.ready)));
        let tasks = Tasks::new(waker.clone());
        let (shared, room) = (Rc::clone(&self.shared), Room::default());
        let source = Source::of(peer);
        let long = shared.long.at(place, source);
        let connection = http2::Builder::new(tasks.clone())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(u32::try_from(self.limits.head).unwrap_or(u32::MAX))
            .max_send_buf_size(SEND_BUFFER)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_local_error_reset_streams(Some(RESETS))
            .max_pending_accept_reset_streams(Some(RESETS))
            .serve_connection(far, Answerer { shared, peer, room: room.clone(), long });
        let (connection, pending) = (Box::pin(connection), Bytes::new());
        let (over, weight) = (false, 0);
        Speaker { id, connection, tasks, near, pending, waker, over, room, weight, source }
    }

    /// Moves a connection on until it must wait.
    fn drive(&mut self, net: &mut T, place: u32, now: Instant) {
        for _ in 0..STEPS {
            let slot = match self.slots.get_mut(place as usize) {
                Some(Some(H2Connection::Known(slot))) => slot,
                Some(Some(H2Connection::New { .. })) => return self.meet(net, place, now),
                _ => return,
            };
            let before = moved(&self.statistics);
            let answered = self.shared.answered();
            let busy = slot.is_busy();
            let step = slot.step(net, &mut self.statistics);
            let weight = slot.weigh();
            let before_step = std::mem::replace(&mut slot.weight, weight);
            self.shares.change(slot.source, place, before_step, weight);
            // What moves while no request is there (a head that comes byte by byte, PING and its
            // answer) is no sign of life: it would keep the place for ever.
            let busy = busy || slot.is_busy() || answered != self.shared.answered();
            if busy && before != moved(&self.statistics) {
                self.idle.touch(place, now);
            }
            match step {
                Step::More if self.spend(before) => break,
                Step::More => {}
                Step::Wait => {
                    self.spend(before);
                    return self.bound(net);
                }
                Step::Over(close_mode) => return self.release(net, place, close_mode),
            }
        }
        self.bound(net);
        if let Some(Some(H2Connection::Known(slot))) = self.slots.get(place as usize) {
            slot.waker.wake_by_ref();
        }
    }

    /// Events, connections that are ready and listeners by turns, so that none waits for all of another.
    fn next_task(&mut self, net: &mut T, now: Instant) -> Option<Task<T>> {
        self.round = self.round.wrapping_add(1) % 4;
        let first = match self.round {
            0 => self.again.pop_front().map(Task::Accept),
            1 | 3 => self.ready.next().map(Task::Drive),
            _ => None,
        };
        let task = first.or_else(|| net.poll_event().map(Task::Event));
        let task = task.or_else(|| self.ready.next().map(Task::Drive));
        let task = task.or_else(|| self.again.pop_front().map(Task::Accept));
        task.or_else(|| self.accepts.next_accept(now).map(Task::Accept))
    }

    /// Counts the work since `before` bytes had moved. Returns true if the turn is to end.
    fn spend(&mut self, before: u64) -> bool {
        let cost = self.shared.take_spent().saturating_add(moved(&self.statistics) - before);
        let effort = self.plain.effort();
        effort.spend(cost);
        effort.is_spent()
    }

    /// Closes the connections that hold most while all hold more than they may.
    fn bound(&mut self, net: &mut T) {
        while self.shares.held() > self.limits.held
            && let Some(place) = self.shares.greatest()
        {
            let is_busy = self.slots.get(place as usize).and_then(Option::as_ref);
            let is_busy = is_busy.is_some_and(H2Connection::is_busy);
            self.release(net, place, if is_busy { CloseMode::Abort } else { CloseMode::Close });
        }
    }

    /// Does one piece of long work, of each protocol by turns. Returns whether there was any.
    fn serve_long(&mut self, net: &mut T, now: Instant) -> bool {
        self.plain_first = !self.plain_first;
        let plain_first = self.plain_first;
        (plain_first && self.plain.serve_long(net, now))
            || self.serve_own_long(net, now)
            || (!plain_first && self.plain.serve_long(net, now))
    }

    fn serve_own_long(&mut self, net: &mut T, now: Instant) -> bool {
        let Some(place) = self.shared.long.grant() else { return false };
        self.plain.effort().note_long();
        self.drive(net, place, now);
        self.shared.long.withdraw();
        true
    }

    fn release(&mut self, net: &mut T, place: u32, close_mode: CloseMode) {
        let Some(slot) = self.slots.get_mut(place as usize).and_then(Option::take) else { return };
        if let H2Connection::Known(speaker) = &slot {
            self.shares.change(speaker.source, place, speaker.weight, 0);
        }
        self.idle.remove(place);
        self.statistics.open -= 1;
        match close_mode {
            CloseMode::Close => net.close(slot.id()),
            CloseMode::Abort => {
                self.statistics.failed += 1;
                net.abort(slot.id());
            }
        }
    }

    /// The place of a connection, if it is one of ours.
    fn place_of(&self, id: T::Id) -> Option<u32> {
        let slot = self.slots.get(T::place(id) as usize)?.as_ref()?;
        (slot.id() == id).then(|| T::place(id))
    }

    fn on_event(&mut self, net: &mut T, event: TransportEvent<T>, now: Instant) {
        match event {
            TransportEvent::Accepted(listener) => {
                if self.accepts.may_accept(listener, now) {
                    self.accept(net, listener, now);
                }
            }
            TransportEvent::Readable(id)
            | TransportEvent::Writable(id)
            | TransportEvent::Closed(id, _) => match self.place_of(id) {
                Some(place) => self.drive(net, place, now),
                None => _ = self.plain.on_event(net, &event, now),
            },
            // Nothing here opens connections.
            TransportEvent::Connected(_) => {}
        }
    }

    /// Closes connections that were silent for too long, unless an answer is delayed by `--think`.
    fn expire(&mut self, net: &mut T, now: Instant) {
        while let Some((place, since)) = self.idle.oldest() {
            if now < since + self.limits.idle {
                return;
            }
            let thinks = match self.slots.get(place as usize) {
                Some(Some(H2Connection::Known(slot))) => {
                    !slot.tasks.is_empty() && slot.pending.is_empty()
                }
                _ => false,
            };
            if thinks && self.shared.is_thinking() {
                self.idle.touch(place, now);
                continue;
            }
            self.statistics.silent += 1;
            self.release(net, place, CloseMode::Close);
        }
    }
}

/// The next step of a connection.
enum Step {
    More,
    Wait,
    Over(CloseMode),
}

impl<S: Site + 'static, I: Copy> H2Connection<S, I> {
    fn id(&self) -> I {
        match self {
            Self::New { id, .. } => *id,
            Self::Known(speaker) => speaker.id,
        }
    }

    fn is_busy(&self) -> bool {
        match self {
            Self::New { bytes, .. } => !bytes.is_empty(),
            Self::Known(speaker) => speaker.is_busy(),
        }
    }
}

impl<S: Site + 'static, I: Copy> Speaker<S, I> {
    /// True if a request is being answered, or bytes have not left yet.
    fn is_busy(&self) -> bool {
        !self.tasks.is_empty() || !self.pending.is_empty()
    }

    /// Its memory in bytes: its answers, its bytes on the way out, and the protocol's state at the most
    /// that `h2_memory` finds.
    fn weigh(&self) -> u64 {
        let bytes = self.room.held() + self.near.waiting() + self.pending.len();
        (bytes + CONNECTION + self.tasks.len() * STREAM) as u64
    }

    /// Bytes out, bytes in, and what hyper makes of them.
    fn step<T: Transport<Id = I>>(&mut self, net: &mut T, statistics: &mut Statistics) -> Step {
        if self.pending.is_empty() {
            self.pending = self.near.take_output();
        }
        if !self.pending.is_empty() {
            let Ok(taken) = net.send(self.id, &mut self.pending) else {
                return Step::Over(CloseMode::Abort);
            };
            statistics.sent += taken as u64;
            if !self.pending.is_empty() {
                return Step::Wait;
            }
            return Step::More;
        }
        if self.over {
            return Step::Over(CloseMode::Close);
        }
        if self.near.wants_input() {
            match net.recv(self.id) {
                Reading::Data(bytes) => {
                    statistics.received += bytes.len() as u64;
                    self.near.give(bytes);
                }
                Reading::End => self.near.end(),
                Reading::Pending => {}
                Reading::Failed(_) => return Step::Over(CloseMode::Abort),
            }
        }
        let mut cx = Context::from_waker(&self.waker);
        let ended = self.connection.as_mut().poll(&mut cx);
        self.tasks.poll();
        self.over = match ended {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(_)) if self.near.has_output() => true,
            Poll::Ready(Err(_)) => return Step::Over(CloseMode::Abort),
        };
        let more = self.over || self.near.has_output() || self.near.was_fed();
        if more { Step::More } else { Step::Wait }
    }
}

impl<S: Site + 'static, T: Transport> Model<T> for H2Server<S, T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        self.shared.on_time(now);
        let waits = !self.shared.long.is_empty() || self.plain.has_long();
        self.plain.effort().begin_turn(waits);
        if self.plain.effort().is_overdue() {
            self.serve_long(net, now);
        }
        for _ in 0..budget {
            if self.plain.effort().is_spent() {
                return true;
            }
            match self.next_task(net, now) {
                Some(Task::Event(event)) => self.on_event(net, event, now),
                Some(Task::Drive(place)) => self.drive(net, place, now),
                Some(Task::Accept(listener)) => self.accept(net, listener, now),
                None => {
                    self.expire(net, now);
                    let more = self.plain.poll(net, now, budget) || self.serve_long(net, now);
                    // An upload over HTTP/1.1 may have displaced one of a stream.
                    return more || !self.ready.is_empty();
                }
            }
        }
        true
    }

    fn next_deadline(&self) -> Option<Instant> {
        let silent = self.idle.oldest().map(|(_, since)| since + self.limits.idle);
        let (thought, accept) = (self.shared.next_thought(), self.accepts.next_deadline());
        let due = [silent, thought, accept, self.plain.next_deadline()];
        due.into_iter().flatten().min()
    }
}

/// Bytes that came and went.
const fn moved(statistics: &Statistics) -> u64 {
    statistics.received + statistics.sent
}

/// Connections accepted in one go.
const ACCEPTS: usize = 64;
/// Steps of one connection in one go.
const STEPS: usize = 64;
/// Limit of a connection's open streams: the least that RFC 9113 6.5.2 recommends.
const STREAMS: u32 = 100;
/// Limit of a stream's bytes that wait for its peer, bytes.
const SEND_BUFFER: usize = 64 << 10;
/// Window of a connection, and of each of its streams, bytes. More is faster over long paths, but lets
/// a peer fill more memory with unwanted text: a hundred times as much if it sends one byte in each
/// frame.
const WINDOW: u32 = 64 << 10;
/// Streams that were reset, by either side, and that a connection still remembers.
const RESETS: usize = 32;
/// Counted memory of a connection without streams, bytes.
const CONNECTION: usize = 32 << 10;
/// Counted memory of each stream in addition to its body, bytes.
const STREAM: usize = 2 << 10;
/// First bytes of an HTTP/2 client (RFC 9113 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[cfg(test)]
#[path = "h2/tests.rs"]
pub(crate) mod tests;
