//! Code shared by servers of all protocols: it accepts connections within a budget, finds them by
//! their places, and drives them on events.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use whimbrel_base::Instant;

use crate::effort::TurnBudget;
use crate::fair_queue::{FairQueue, Ticket};
use crate::idle::IdleList;
use crate::pace::{Pace, Pacing};
use crate::source::Source;
use crate::transport::{Transport, TransportEvent};

/// A server of all connections of one transport.
pub(crate) trait Server<T: Transport> {
    /// State of a connection.
    type ConnectionState: Default;

    fn connections(&mut self) -> &mut ServerConnections<T, Self::ConnectionState>;

    /// Called with an accepted connection at its place.
    fn on_accepted(&mut self, id: T::Id, now: Instant);

    /// Takes a step of a connection.
    fn turn(&mut self, net: &mut T, id: T::Id, now: Instant) -> StepResult;

    /// Called when a connection is over; data before its end can still be read.
    fn on_closed(&mut self, net: &mut T, id: T::Id, now: Instant);

    /// Called when a delayed response is due.
    fn on_thought(&mut self, _id: T::Id, _now: Instant) {}

    /// An idle connection to handle.
    fn next_silent(&mut self, _now: Instant) -> Option<T::Id> {
        None
    }

    /// Releases a connection.
    fn release(&mut self, net: &mut T, id: T::Id, close_mode: CloseMode);

    /// Handles up to `budget` events and tasks, within a turn's effort. Returns true if there are
    /// more. Long work comes last.
    fn serve(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        let leads = self.connections().begin_turn();
        if leads && self.connections().effort.is_overdue() {
            self.serve_long(net, now);
        }
        for _ in 0..budget {
            if self.connections().effort.is_spent() {
                return true;
            }
            let task = self.connections().next_task(net, now);
            match task.or_else(|| self.next_silent(now).map(Task::Drive)) {
                None => return leads && self.serve_long(net, now),
                Some(Task::Accept(listener)) => self.accept(net, listener, now),
                Some(Task::Drive(id)) => self.drive(net, id, now),
                Some(Task::Close(id)) => self.on_closed(net, id, now),
                Some(Task::Answer(id)) => {
                    self.on_thought(id, now);
                    self.drive(net, id, now);
                }
            }
        }
        true
    }

    /// Serves the connection whose long work is next. Returns true if there was one.
    fn serve_long(&mut self, net: &mut T, now: Instant) -> bool {
        let connections = self.connections();
        let Some(place) = connections.long.pop() else { return false };
        connections.effort.grant();
        if let Some((id, _)) = connections.at_place(place) {
            self.drive(net, id, now);
        }
        self.connections().effort.withdraw();
        true
    }

    /// Accepts connections of a listener, and drives each.
    fn accept(&mut self, net: &mut T, listener: T::Listener, now: Instant) {
        for _ in 0..self.connections().pacing.accepts_at_once(ACCEPTS) {
            if self.connections().effort.is_spent() {
                break;
            }
            let Some(id) = self.connections().admit(net, listener) else { return };
            self.on_accepted(id, now);
            // The request may have come with the handshake, and no event would follow.
            self.drive(net, id, now);
        }
        let connections = self.connections();
        // More may wait than one pass takes; an event comes only for later arrivals.
        if connections.pacing.may_accept(listener, now)
            && !connections.accepting.contains(&listener)
        {
            connections.accepting.push_back(listener);
        }
    }

    /// Drives a connection until it must wait.
    fn drive(&mut self, net: &mut T, id: T::Id, now: Instant) {
        for _ in 0..STEPS {
            match self.turn(net, id, now) {
                StepResult::More if self.connections().effort.is_spent() => break,
                StepResult::More => {}
                StepResult::Wait => return,
                StepResult::Later => {
                    let source = Source::of(net.remote(id));
                    return self.connections().long.put(T::place(id), source);
                }
                StepResult::Over(close_mode) => return self.release(net, id, close_mode),
            }
        }
        // Others first: a connection with endless work must not starve them.
        self.connections().again.touch(T::place(id), now);
    }
}

/// Result of one step of a connection.
pub(crate) enum StepResult {
    /// There may be more to do at once.
    More,
    /// An event must come first.
    Wait,
    /// A turn of long work must come first.
    Later,
    /// Nothing is left to send or to read: it closes this way.
    Over(CloseMode),
}

/// The way a connection's place becomes free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseMode {
    /// Delivers the data sent, then sends FIN.
    Close,
    /// RST: unsent data is discarded.
    Abort,
}

/// The connections of a server, with an `S` for each.
#[derive(Debug)]
pub(crate) struct ServerConnections<T: Transport, S> {
    /// Connections and the server's state of each, by [`Transport::place`].
    slots: Vec<Option<(T::Id, S)>>,
    pacing: Pacing<T::Listener>,
    /// Places of connections with more to do, beyond their steps or the turn's effort.
    again: IdleList,
    /// Listeners with more connections to accept.
    accepting: VecDeque<T::Listener>,
    /// True if another server takes the transport's events and forwards them.
    leaves_events: bool,
    /// Budget of this turn.
    effort: TurnBudget,
    /// The connections that wait for a turn of long work.
    long: LongWork,
    /// Source of work whose turn it is: events, connections with more to do, or listeners.
    round: u8,
}

/// The places of connections that wait for a turn of long work, of each source in its turn.
#[derive(Default, Debug)]
struct LongWork {
    queue: FairQueue<u32>,
    tickets: BTreeMap<u32, Ticket>,
}

impl LongWork {
    /// Notes that the connection at `place` waits, if it does not yet.
    fn put(&mut self, place: u32, source: Source) {
        if !self.tickets.contains_key(&place) {
            let ticket = self.queue.ticket(source);
            self.tickets.insert(place, ticket);
            self.queue.wait(ticket, place);
        }
    }

    /// Takes the place that is next.
    fn pop(&mut self) -> Option<u32> {
        let (_, place) = self.queue.pop()?;
        self.tickets.remove(&place);
        Some(place)
    }

    fn remove(&mut self, place: u32) {
        if let Some(ticket) = self.tickets.remove(&place) {
            self.queue.remove(ticket);
        }
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// A connection ready for work.
pub(crate) struct Ready<'r, S, L> {
    pub(crate) slot: &'r mut S,
    /// Pace of its responses.
    pub(crate) pacing: &'r mut Pacing<L>,
    /// Budget of the turn.
    pub(crate) effort: &'r mut TurnBudget,
}

#[derive(Clone, Copy, Debug)]
enum Task<I, L> {
    Accept(L),
    Drive(I),
    /// A delayed response is due.
    Answer(I),
    Close(I),
}

impl<T: Transport, S: Default> ServerConnections<T, S> {
    /// Without connections, at this pace.
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            slots: Vec::new(),
            pacing: Pacing::at(pace),
            again: IdleList::default(),
            accepting: VecDeque::new(),
            leaves_events: false,
            effort: TurnBudget::default(),
            long: LongWork::default(),
            round: 0,
        }
    }

    /// Begins a turn, unless another server does that. Returns true if it did.
    fn begin_turn(&mut self) -> bool {
        if !self.leaves_events {
            self.effort.begin_turn(!self.long.is_empty());
        }
        !self.leaves_events
    }

    /// Budget of this turn.
    pub(crate) const fn effort(&mut self) -> &mut TurnBudget {
        &mut self.effort
    }

    /// True if a connection waits for a turn of long work.
    pub(crate) fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// Leaves the transport's events to another server.
    pub(crate) fn leave_events(&mut self) {
        self.leaves_events = true;
    }

    /// Gives a place to a connection that another server accepted.
    pub(crate) fn give_place(&mut self, id: T::Id) {
        let place = T::place(id) as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Some((id, S::default()));
        }
    }

    /// Time of the next delay's end.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.pacing.next_deadline()
    }

    /// State of a connection, unless its name is stale.
    pub(crate) fn at(&mut self, id: T::Id) -> Option<&mut S> {
        let slot = self.slots.get_mut(T::place(id) as usize)?.as_mut();
        slot.filter(|(known, _)| *known == id).map(|(_, slot)| slot)
    }

    /// Returns a connection ready for work, if none of its responses is put off.
    pub(crate) fn ready(&mut self, id: T::Id) -> Option<Ready<'_, S, T::Listener>> {
        if self.pacing.is_thinking(T::place(id)) {
            return None;
        }
        let (known, slot) = self.slots.get_mut(T::place(id) as usize)?.as_mut()?;
        let (pacing, effort) = (&mut self.pacing, &mut self.effort);
        (*known == id).then_some(Ready { slot, pacing, effort })
    }

    /// Name and state of the connection at that place.
    pub(crate) fn at_place(&mut self, place: u32) -> Option<(T::Id, &mut S)> {
        let (id, slot) = self.slots.get_mut(place as usize)?.as_mut()?;
        Some((*id, slot))
    }

    /// Delays the `answers` ready at this connection. Returns true if there is a delay.
    pub(crate) fn think(&mut self, id: T::Id, answers: u64, now: Instant) -> bool {
        self.pacing.think(T::place(id), answers, now)
    }

    /// Removes a connection. Returns its state.
    pub(crate) fn dismiss(&mut self, id: T::Id) -> Option<S> {
        self.at(id)?;
        self.pacing.forget(T::place(id));
        self.long.remove(T::place(id));
        self.again.remove(T::place(id));
        self.slots.get_mut(T::place(id) as usize)?.take().map(|(_, slot)| slot)
    }

    /// Number of places; some have no connection.
    pub(crate) fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Removes all tasks.
    pub(crate) fn forget_tasks(&mut self) {
        self.accepting.clear();
        self.again = IdleList::default();
    }

    /// The next task: events and left-over work in turn, so that neither waits for all of the
    /// other; then delayed work.
    fn next_task(&mut self, net: &mut T, now: Instant) -> Option<Task<T::Id, T::Listener>> {
        self.round = self.round.wrapping_add(1) % 4;
        let first = match self.round {
            0 => self.accepting.pop_front().map(Task::Accept),
            1 | 3 => self.next_again(),
            _ => None,
        };
        let task = first.or_else(|| self.next_event(net, now));
        let task = task.or_else(|| self.next_again());
        let task = task.or_else(|| self.accepting.pop_front().map(Task::Accept));
        let task = task.or_else(|| self.pacing.next_accept(now).map(Task::Accept));
        task.or_else(|| {
            let place = self.pacing.next_thought(now)?;
            self.at_place(place).map(|(id, _)| Task::Answer(id))
        })
    }

    /// The connection that has had more to do for longest.
    fn next_again(&mut self) -> Option<Task<T::Id, T::Listener>> {
        let (place, _) = self.again.oldest()?;
        self.again.remove(place);
        self.at_place(place).map(|(id, _)| Task::Drive(id))
    }

    /// The transport's next event, as a task.
    fn next_event(&mut self, net: &mut T, now: Instant) -> Option<Task<T::Id, T::Listener>> {
        while let Some(event) = (!self.leaves_events).then(|| net.poll_event()).flatten() {
            match event {
                TransportEvent::Accepted(listener) => {
                    if self.pacing.may_accept(listener, now) {
                        return Some(Task::Accept(listener));
                    }
                }
                TransportEvent::Readable(id) | TransportEvent::Writable(id) => {
                    return Some(Task::Drive(id));
                }
                TransportEvent::Closed(id, _) => return Some(Task::Close(id)),
                // No server opens connections.
                TransportEvent::Connected(_) => {}
            }
        }
        None
    }

    /// Accepts a connection, and gives it a place.
    fn admit(&mut self, net: &mut T, listener: T::Listener) -> Option<T::Id> {
        let id = net.accept(listener)?;
        self.give_place(id);
        Some(id)
    }
}

/// Connections accepted at a time.
const ACCEPTS: usize = 64;
/// Steps of one connection at a time.
const STEPS: usize = 128;
