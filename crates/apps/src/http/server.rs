//! The server over a transport: one [`Connection`] for each of the transport's.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use whimbrel_stack::Shard;
use whimbrel_tcp::Instant;

use super::connection::{Connection, Step};
use super::{HttpDate, Limits, Site, Status, Terms};
use crate::idle::IdleList;
use crate::pace::{Pace, Pacing};
use crate::transport::{Happening, Model, Reading, Transport};

/// Serves a [`Site`] over the connections of one transport, a shard's by default, whose listeners
/// are all its own.
///
/// After each burst its driver calls [`HttpServer::poll`]; between bursts,
/// [`HttpServer::next_deadline`] says when to call at the latest.
pub struct HttpServer<S, T: Transport = Shard> {
    site: S,
    terms: Terms,
    /// By [`Transport::place`].
    slots: Vec<Slot<T::Id>>,
    idle: IdleList,
    pacing: Pacing<T::Listener>,
    /// What was left because its budget was used up.
    again: VecDeque<Task<T::Id, T::Listener>>,
    statistics: Statistics,
}

/// What happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections open now.
    pub open: usize,
    /// Requests answered: responses begun.
    pub requests: u64,
    /// Those among them answered with a status of 400 or more.
    pub refused: u64,
    /// Connections that were reset, by either side, or timed out.
    pub failed: u64,
    /// Connections closed because they were silent for [`Limits::idle`].
    pub silent: u64,
    /// Octets that the peers sent: heads and bodies.
    pub received: u64,
    /// Octets handed to the stack: heads and bodies.
    pub sent: u64,
}

/// Those of two servers.
impl core::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        let Self { accepted, open, requests, refused, failed, silent, received, sent } = other;
        self.accepted += accepted;
        self.open += open;
        self.requests += requests;
        self.refused += refused;
        self.failed += failed;
        self.silent += silent;
        self.received += received;
        self.sent += sent;
    }
}

struct Slot<I> {
    id: Option<I>,
    connection: Connection,
    /// Octets that the transport had no room for yet.
    pending: Bytes,
}

impl<I> Default for Slot<I> {
    fn default() -> Self {
        Self { id: None, connection: Connection::default(), pending: Bytes::new() }
    }
}

#[derive(Clone, Copy)]
enum Task<I, L> {
    Accept(L),
    Drive(I),
}

/// How a connection's place becomes free.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parting {
    /// What was sent is delivered, then FIN.
    Close,
    /// Reset.
    Abort,
}

/// What became of one step of a connection.
enum Turn {
    /// There may be more to do at once.
    More,
    /// An event must come first.
    Wait,
    /// It is over.
    Over(Parting),
}

impl<S: Site, T: Transport> HttpServer<S, T> {
    /// A server without connections.
    pub fn new(site: S, limits: Limits) -> Self {
        Self {
            site,
            terms: Terms { limits, date: None },
            slots: Vec::new(),
            idle: IdleList::default(),
            pacing: Pacing::default(),
            again: VecDeque::new(),
            statistics: Statistics::default(),
        }
    }

    /// The same at this pace. What is put off counts as no silence of its peer's.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pacing = Pacing::at(pace);
        self
    }

    /// What happened so far.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// When [`HttpServer::poll`] must be called at the latest, if nothing else happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        let silent = self.idle.oldest().map(|(_, since)| since + self.terms.limits.idle);
        silent.into_iter().chain(self.pacing.next_deadline()).min()
    }

    /// The time for the `Date` field, from now on.
    pub fn set_date(&mut self, date: HttpDate) {
        self.terms.date = Some(date);
    }

    /// Acts on what happened: takes up to `budget` events and tasks. Returns whether more waits.
    pub fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        for _ in 0..budget {
            let Some(task) = self.next_task(net, now) else { return false };
            match task {
                Task::Accept(listener) => self.accept(net, listener, now),
                Task::Drive(id) => self.drive(net, id, now),
            }
        }
        true
    }

    /// Lets go of every connection: those between requests are closed, the others reset.
    pub fn shut_down(&mut self, net: &mut T) {
        for index in 0..self.slots.len() {
            let Some(slot) = self.slots.get(index) else { continue };
            let Some(id) = slot.id else { continue };
            let idle = slot.pending.is_empty() && slot.connection.is_idle();
            self.release(net, id, if idle { Parting::Close } else { Parting::Abort });
        }
        self.again.clear();
    }

    /// Events first, then what was left over or put off, then whoever was silent for too long.
    fn next_task(&mut self, net: &mut T, now: Instant) -> Option<Task<T::Id, T::Listener>> {
        while let Some(event) = net.poll_event() {
            match event {
                Happening::Accepted(listener) => {
                    if self.pacing.may_accept(listener, now) {
                        return Some(Task::Accept(listener));
                    }
                }
                Happening::Readable(id) | Happening::Writable(id) => {
                    return Some(Task::Drive(id));
                }
                Happening::Closed(id, _) => self.release(net, id, Parting::Close),
                // Nothing here opens connections.
                Happening::Connected(_) => {}
            }
        }
        let again = self.again.pop_front();
        let again = again.or_else(|| self.pacing.next_accept(now).map(Task::Accept));
        again.or_else(|| self.next_thought(now)).or_else(|| self.next_silent(now))
    }

    /// Whoever has waited for its answer for long enough.
    fn next_thought(&mut self, now: Instant) -> Option<Task<T::Id, T::Listener>> {
        let place = self.pacing.next_thought(now)?;
        self.idle.touch(place, now);
        self.slots.get(place as usize)?.id.map(Task::Drive)
    }

    fn next_silent(&mut self, now: Instant) -> Option<Task<T::Id, T::Listener>> {
        let (place, since) = self.idle.oldest()?;
        if now < since + self.terms.limits.idle {
            return None;
        }
        self.statistics.silent += 1;
        self.idle.touch(place, now);
        let slot = self.slots.get_mut(place as usize)?;
        if slot.pending.is_empty() {
            slot.connection.on_silence(&self.terms);
        } else {
            slot.connection.on_stall();
            slot.pending = Bytes::new();
        }
        slot.id.map(Task::Drive)
    }

    fn accept(&mut self, net: &mut T, listener: T::Listener, now: Instant) {
        for _ in 0..self.pacing.accepts_at_once(ACCEPTS) {
            let Some(id) = net.accept(listener) else { return };
            let place = T::place(id) as usize;
            if self.slots.len() <= place {
                self.slots.resize_with(place + 1, Slot::default);
            }
            if let Some(slot) = self.slots.get_mut(place) {
                *slot = Slot { id: Some(id), ..Slot::default() };
            }
            self.statistics.accepted += 1;
            self.statistics.open += 1;
            self.idle.touch(T::place(id), now);
            self.drive(net, id, now);
        }
        if self.pacing.may_accept(listener, now) {
            self.again.push_back(Task::Accept(listener));
        }
    }

    /// Moves a connection on until it must wait.
    fn drive(&mut self, net: &mut T, id: T::Id, now: Instant) {
        for _ in 0..STEPS {
            match self.turn(net, id, now) {
                Turn::More => {}
                Turn::Wait => return,
                Turn::Over(parting) => return self.release(net, id, parting),
            }
        }
        self.again.push_back(Task::Drive(id));
    }

    fn turn(&mut self, net: &mut T, id: T::Id, now: Instant) -> Turn {
        let place = self.slots.get_mut(T::place(id) as usize);
        let Some(slot) = place.filter(|slot| slot.id == Some(id)) else {
            return Turn::Wait;
        };
        if self.pacing.is_thinking(T::place(id)) {
            return Turn::Wait;
        }
        if !slot.pending.is_empty() {
            let Ok(taken) = net.send(id, &mut slot.pending) else {
                return Turn::Over(Parting::Abort);
            };
            self.statistics.sent += taken as u64;
            if taken > 0 {
                self.idle.touch(T::place(id), now);
            }
            return if slot.pending.is_empty() { Turn::More } else { Turn::Wait };
        }
        let before = slot.connection.responses();
        let step = slot.connection.poll(&mut self.site, &self.terms);
        let fresh = self.statistics.count_responses(before, &slot.connection);
        if fresh > 0 && self.pacing.think(T::place(id), now) {
            // Whoever waits for us is not silent.
            self.idle.remove(T::place(id));
        }
        match step {
            Step::Send(octets) => {
                slot.pending = octets;
                Turn::More
            }
            Step::NeedInput => self.receive(net, id, now),
            Step::Shutdown => {
                net.shutdown(id);
                Turn::More
            }
            Step::Close => self.close_unless_more_came(net, id),
            Step::Abort => Turn::Over(Parting::Abort),
        }
    }

    fn receive(&mut self, net: &mut T, id: T::Id, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(T::place(id) as usize) else { return Turn::Wait };
        match net.recv(id) {
            Reading::Data(octets) => {
                self.statistics.received += octets.len() as u64;
                self.idle.touch(T::place(id), now);
                slot.connection.on_octets(octets);
                Turn::More
            }
            Reading::End => {
                slot.connection.on_end();
                Turn::More
            }
            Reading::Pending => Turn::Wait,
            Reading::Failed(_) => Turn::Over(Parting::Close),
        }
    }

    /// Closing with octets unread would reset the connection, and the reset may overtake the
    /// response.
    fn close_unless_more_came(&mut self, net: &mut T, id: T::Id) -> Turn {
        let Some(slot) = self.slots.get_mut(T::place(id) as usize) else { return Turn::Wait };
        match net.recv(id) {
            Reading::Data(octets) => {
                slot.connection.on_late_octets(&self.terms);
                slot.connection.on_octets(octets);
                Turn::More
            }
            Reading::Pending | Reading::End | Reading::Failed(_) => Turn::Over(Parting::Close),
        }
    }

    fn release(&mut self, net: &mut T, id: T::Id, parting: Parting) {
        let place = self.slots.get_mut(T::place(id) as usize);
        let Some(slot) = place.filter(|slot| slot.id == Some(id)) else { return };
        let unfinished = !slot.pending.is_empty() || !slot.connection.is_over();
        if parting == Parting::Abort || unfinished && !slot.connection.is_idle() {
            self.statistics.failed += 1;
        }
        *slot = Slot::default();
        self.statistics.open -= 1;
        self.idle.remove(T::place(id));
        self.pacing.forget(T::place(id));
        match parting {
            Parting::Close => net.close(id),
            Parting::Abort => net.abort(id),
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
    /// Counts the responses that were begun since, and returns how many those are.
    fn count_responses(&mut self, before: u64, connection: &Connection) -> u64 {
        let fresh = connection.responses() - before;
        self.requests += fresh;
        if connection.last_status().is_some_and(Status::is_error) {
            self.refused += fresh;
        }
        fresh
    }
}

/// Connections accepted in one go.
const ACCEPTS: usize = 64;
/// Steps of one connection in one go.
const STEPS: usize = 128;
