//! The server over a transport: one [`Connection`] for each of the transport's.

use alloc::sync::Arc;
use core::task::Waker;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_stack::Shard;

use super::connection::{Client, Connection, Step};
use super::{ExchangeLog, HttpDate, KeepAlive, Limits, ServerSettings, Site, Status};
use crate::Statistics;
use crate::effort::TurnBudget;
use crate::idle::IdleList;
use crate::pace::Pace;
use crate::ready_queue::{ReadyQueue, ReadyWaker};
use crate::server_connections::{CloseMode, Ready, Server, ServerConnections, StepResult};
use crate::source::Source;
use crate::transport::{Model, Reading, Transport, TransportEvent};

/// Serves a [`Site`] over all connections of one transport, a shard's by default.
///
/// After each burst its driver calls [`HttpServer::poll`]; [`HttpServer::next_deadline`] returns
/// the latest time for the next call.
pub struct HttpServer<S, T: Transport = Shard> {
    site: S,
    terms: ServerSettings,
    connections: ServerConnections<T, HttpSlot>,
    idle: IdleList,
    /// Connections with a partial head, by the time of its first byte.
    heads: IdleList,
    /// Connections whose upload the site ended early.
    displaced: Arc<ReadyQueue>,
    statistics: Statistics,
    exchange_log: Option<Box<dyn ExchangeLog + Send>>,
}

/// A connection of the server's.
#[derive(Default)]
pub(crate) struct HttpSlot {
    connection: Connection,
    /// Bytes that the transport had no room for yet.
    pending: Bytes,
}

impl<S: Site, T: Transport> HttpServer<S, T> {
    /// A server without connections.
    pub fn new(site: S, limits: Limits) -> Self {
        Self {
            site,
            terms: ServerSettings { limits, ..ServerSettings::default() },
            connections: ServerConnections::new(Pace::default()),
            idle: IdleList::default(),
            heads: IdleList::default(),
            displaced: Arc::default(),
            statistics: Statistics::default(),
            exchange_log: None,
        }
    }

    /// Keeps a log of requests.
    #[must_use]
    pub fn with_log(mut self, exchange_log: Option<Box<dyn ExchangeLog + Send>>) -> Self {
        self.terms.keeps_log = exchange_log.is_some();
        self.exchange_log = exchange_log;
        self
    }

    /// Makes a server for connections that another server accepts and hands over by
    /// [`HttpServer::adopt`]. The other server takes the transport's events, and forwards those of
    /// this one by [`HttpServer::on_event`].
    #[must_use]
    pub fn behind_another(mut self) -> Self {
        self.connections.leave_events();
        self
    }

    /// Takes over a connection with the bytes received so far.
    pub fn adopt(&mut self, net: &mut T, id: T::Id, bytes: Bytes, now: Instant) {
        self.statistics.received += bytes.len() as u64;
        self.connections.give_place(id);
        self.on_accepted(id, now);
        if let Some(slot) = self.connections.at(id) {
            slot.connection.on_bytes(bytes);
        }
        self.drive(net, id, now);
    }

    /// Budget of a turn. A server in front of this one begins its turns, and starts long work by
    /// [`HttpServer::serve_long`].
    pub const fn effort(&mut self) -> &mut TurnBudget {
        self.connections.effort()
    }

    /// True if a connection waits for a turn of long work.
    pub fn has_long(&self) -> bool {
        self.connections.has_long()
    }

    /// Serves the connection whose long work is next. Returns true if there was one.
    pub fn serve_long(&mut self, net: &mut T, now: Instant) -> bool {
        Server::serve_long(self, net, now)
    }

    /// Handles an event if it concerns one of its connections. Returns true if it does.
    pub fn on_event(&mut self, net: &mut T, event: &TransportEvent<T>, now: Instant) -> bool {
        let (TransportEvent::Readable(id)
        | TransportEvent::Writable(id)
        | TransportEvent::Closed(id, _)) = event
        else {
            return false;
        };
        let is_own = self.connections.at(*id).is_some();
        match event {
            TransportEvent::Closed(..) if is_own => self.on_closed(net, *id, now),
            _ if is_own => self.drive(net, *id, now),
            _ => {}
        }
        is_own
    }

    /// Sets the pace. Responses put off do not count as silence of the peer.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.connections = ServerConnections::new(pace);
        self
    }

    /// Counters so far.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Latest time of the next [`HttpServer::poll`], if nothing happens before.
    pub fn next_deadline(&self) -> Option<Instant> {
        let Limits { idle, head_time, .. } = self.terms.limits;
        let silent = self.idle.oldest().map(|(_, since)| since + idle);
        let late = self.heads.oldest().map(|(_, since)| since + head_time);
        Instant::earliest([silent, late, self.connections.next_deadline()])
    }

    /// Sets the time for the `Date` field.
    pub fn set_date(&mut self, date: HttpDate) {
        self.terms.date = Some(date);
    }

    /// Handles up to `budget` events and tasks. Returns true if there are more.
    pub fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        self.serve(net, now, budget)
    }

    /// Begins to drain: each response from now on ends its connection (`Connection: close`).
    pub fn drain(&mut self) {
        self.terms.limits.keep_alive = KeepAlive::Never;
    }

    /// Closes the connections between requests.
    pub fn close_idle(&mut self, net: &mut T) {
        for place in 0..self.connections.places() {
            let Some((id, slot)) = self.connections.at_place(place) else { continue };
            if slot.pending.is_empty() && slot.connection.is_idle() {
                self.release(net, id, CloseMode::Close);
            }
        }
    }

    /// Closes all connections: those between requests are closed, the others reset.
    pub fn shut_down(&mut self, net: &mut T) {
        for place in 0..self.connections.places() {
            let Some((id, slot)) = self.connections.at_place(place) else { continue };
            let idle = slot.pending.is_empty() && slot.connection.is_idle();
            self.release(net, id, if idle { CloseMode::Close } else { CloseMode::Abort });
        }
        self.connections.forget_tasks();
    }

    fn receive(&mut self, net: &mut T, id: T::Id, now: Instant) -> StepResult {
        let Some(slot) = self.connections.at(id) else { return StepResult::Wait };
        match net.recv(id) {
            Reading::Data(bytes) => {
                self.statistics.received += bytes.len() as u64;
                if !slot.connection.is_over() {
                    self.idle.touch(T::place(id), now);
                }
                let fresh = bytes.len() as u64;
                slot.connection.on_bytes(bytes);
                self.connections.effort().spend(fresh);
                StepResult::More
            }
            Reading::End => {
                slot.connection.on_end();
                StepResult::More
            }
            Reading::Pending => StepResult::Wait,
            Reading::Failed(_) => StepResult::Over(CloseMode::Close),
        }
    }

    /// A connection whose upload gave way to another's.
    fn next_displaced(&mut self) -> Option<T::Id> {
        loop {
            let place = self.displaced.next()?;
            if let Some((id, _)) = self.connections.at_place(place) {
                return Some(id);
            }
        }
    }

    /// Closes unless there is unread data: then a reset would follow, and might overtake the
    /// response.
    fn close_unless_more_came(&mut self, net: &mut T, id: T::Id) -> StepResult {
        let Some(slot) = self.connections.at(id) else { return StepResult::Wait };
        match net.recv(id) {
            Reading::Data(bytes) => {
                slot.connection.on_late_bytes(bytes, &self.terms);
                StepResult::More
            }
            Reading::Pending | Reading::End | Reading::Failed(_) => {
                StepResult::Over(CloseMode::Close)
            }
        }
    }
}

/// The client of one of a transport's connections.
struct TransportClient<'c, T: Transport> {
    net: &'c T,
    id: T::Id,
    displaced: &'c Arc<ReadyQueue>,
}

impl<T: Transport> Client for TransportClient<'_, T> {
    fn room(&self) -> usize {
        self.net.room(self.id)
    }

    fn source(&self) -> Source {
        Source::of(self.net.remote(self.id))
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::new(ReadyWaker::new(T::place(self.id), self.displaced)))
    }
}

impl<S: Site, T: Transport> Server<T> for HttpServer<S, T> {
    type ConnectionState = HttpSlot;

    fn connections(&mut self) -> &mut ServerConnections<T, HttpSlot> {
        &mut self.connections
    }

    fn on_accepted(&mut self, id: T::Id, now: Instant) {
        self.statistics.accepted += 1;
        self.statistics.open += 1;
        self.idle.touch(T::place(id), now);
    }

    fn turn(&mut self, net: &mut T, id: T::Id, now: Instant) -> StepResult {
        let Some(Ready { slot, pacing, effort }) = self.connections.ready(id) else {
            return StepResult::Wait;
        };
        if !slot.pending.is_empty() {
            let Ok(taken) = net.send(id, &mut slot.pending) else {
                return StepResult::Over(CloseMode::Abort);
            };
            self.statistics.sent += taken as u64;
            if taken > 0 {
                self.idle.touch(T::place(id), now);
            }
            return if slot.pending.is_empty() { StepResult::More } else { StepResult::Wait };
        }
        let before = slot.connection.responses();
        let client = TransportClient { net: &*net, id, displaced: &self.displaced };
        let step = slot.connection.poll_within(&mut self.site, &self.terms, effort, &client);
        if let Some(exchange_log) = &mut self.exchange_log {
            if let Some(exchange) = slot.connection.under_way()
                && exchange.peer.is_none()
            {
                exchange.peer = net.remote(id);
            }
            if let Some(exchange) = slot.connection.take_ended() {
                exchange_log.note(&exchange);
            }
        }
        if slot.connection.is_within_head() {
            if !self.heads.holds(T::place(id)) {
                self.heads.touch(T::place(id), now);
            }
        } else if !self.heads.is_empty() {
            self.heads.remove(T::place(id));
        }
        let fresh = self.statistics.count_responses(before, &slot.connection);
        if fresh > 0 && pacing.think(T::place(id), fresh, now) {
            // A connection that waits for this side is not idle.
            self.idle.remove(T::place(id));
        }
        match step {
            Step::Send(bytes) => {
                slot.pending = bytes;
                StepResult::More
            }
            Step::NeedInput => self.receive(net, id, now),
            Step::Later => StepResult::Later,
            Step::Shutdown => {
                net.shutdown(id);
                StepResult::More
            }
            Step::Close => self.close_unless_more_came(net, id),
            Step::Abort => StepResult::Over(CloseMode::Abort),
        }
    }

    fn on_closed(&mut self, net: &mut T, id: T::Id, _: Instant) {
        self.release(net, id, CloseMode::Close);
    }

    fn on_thought(&mut self, id: T::Id, now: Instant) {
        self.idle.touch(T::place(id), now);
    }

    /// A connection whose upload gave way, whose head takes too long, or that was idle for too long.
    fn next_silent(&mut self, now: Instant) -> Option<T::Id> {
        if let Some(id) = self.next_displaced() {
            return Some(id);
        }
        if let Some((place, since)) = self.heads.oldest()
            && now >= since + self.terms.limits.head_time
        {
            self.statistics.slow_heads += 1;
            self.heads.remove(place);
            self.idle.touch(place, now);
            let (id, slot) = self.connections.at_place(place)?;
            let before = slot.connection.responses();
            slot.connection.on_late_head(&self.terms);
            self.statistics.count_responses(before, &slot.connection);
            return Some(id);
        }
        let (place, since) = self.idle.oldest()?;
        if now < since + self.terms.limits.idle {
            return None;
        }
        self.statistics.silent += 1;
        self.idle.touch(place, now);
        let (id, slot) = self.connections.at_place(place)?;
        if slot.pending.is_empty() {
            let before = slot.connection.responses();
            slot.connection.on_silence(&self.terms);
            self.statistics.count_responses(before, &slot.connection);
        } else {
            slot.connection.on_stall();
            slot.pending = Bytes::new();
        }
        Some(id)
    }

    fn release(&mut self, net: &mut T, id: T::Id, close_mode: CloseMode) {
        let Some(mut slot) = self.connections.dismiss(id) else { return };
        if let Some(exchange_log) = &mut self.exchange_log
            && let Some(exchange) = slot.connection.under_way().filter(|it| it.status > 0)
        {
            exchange.sent = exchange.sent.saturating_sub(slot.pending.len() as u64);
            exchange_log.note(exchange);
        }
        let unfinished = !slot.pending.is_empty() || !slot.connection.is_over();
        if close_mode == CloseMode::Abort || unfinished && !slot.connection.is_idle() {
            self.statistics.failed += 1;
        }
        self.statistics.open -= 1;
        self.idle.remove(T::place(id));
        self.heads.remove(T::place(id));
        match close_mode {
            CloseMode::Close => net.close(id),
            CloseMode::Abort => net.abort(id),
        }
    }
}

impl<S: Site, T: Transport> Model<T> for HttpServer<S, T> {
    fn poll(&mut self, transport: &mut T, now: Instant, budget: usize) -> bool {
        Self::poll(self, transport, now, budget)
    }

    fn next_deadline(&self) -> Option<Instant> {
        Self::next_deadline(self)
    }
}

impl Statistics {
    /// Counts the responses begun since `before`, and returns their number.
    fn count_responses(&mut self, before: u64, connection: &Connection) -> u64 {
        let fresh = connection.responses() - before;
        self.requests += fresh;
        if connection.last_status().is_some_and(Status::is_error) {
            self.refused += fresh;
        }
        fresh
    }
}

#[cfg(test)]
mod tests;
