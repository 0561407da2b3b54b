//! What servers have in common, whatever they speak: connections are accepted within a budget, known
//! by their places, and driven when something happened.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use whimbrel_base::Instant;

use crate::effort::TurnBudget;
use crate::idle::IdleList;
use crate::pace::{Pace, Pacing};
use crate::transport::{Transport, TransportEvent};

/// A server over the connections of one transport, whose listeners are all its own.
pub(crate) trait Server<T: Transport> {
    /// What it knows of a connection.
    type ConnectionState: Default;

    fn connections(&mut self) -> &mut ServerConnections<T, Self::ConnectionState>;

    /// A connection was accepted, and has its place.
    fn on_accepted(&mut self, id: T::Id, now: Instant);

    /// Takes a step of a connection.
    fn turn(&mut self, net: &mut T, id: T::Id, now: Instant) -> StepResult;

    /// The connection is over: what came before can still be read.
    fn on_closed(&mut self, net: &mut T, id: T::Id, now: Instant);

    /// An answer that was put off is due.
    fn on_thought(&mut self, _id: T::Id, _now: Instant) {}

    /// A connection to turn to though nothing happened there.
    fn next_silent(&mut self, _now: Instant) -> Option<T::Id> {
        None
    }

    /// Lets go of a connection.
    fn release(&mut self, net: &mut T, id: T::Id, close_mode: CloseMode);

    /// Acts on what happened: takes up to `budget` events and tasks, and what a turn may take. Returns
    /// whether more waits. Long work comes when nothing else is left.
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

    /// Moves on the connection whose long work has waited longest. Returns whether there was one.
    fn serve_long(&mut self, net: &mut T, now: Instant) -> bool {
        let connections = self.connections();
        let Some((place, _)) = connections.long.oldest() else { return false };
        connections.long.remove(place);
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
        // There may be more than one pass takes; an event comes only for those that arrive later.
        if connections.pacing.may_accept(listener, now)
            && !connections.accepting.contains(&listener)
        {
            connections.accepting.push_back(listener);
        }
    }

    /// Moves a connection on until it must wait.
    fn drive(&mut self, net: &mut T, id: T::Id, now: Instant) {
        for _ in 0..STEPS {
            match self.turn(net, id, now) {
                StepResult::More if self.connections().effort.is_spent() => break,
                StepResult::More => {}
                StepResult::Wait => return,
                StepResult::Later => return self.connections().put_off(T::place(id), now),
                StepResult::Over(close_mode) => return self.release(net, id, close_mode),
            }
        }
        // The others first: one that always has more must not starve them.
        self.connections().again.touch(T::place(id), now);
    }
}

/// What became of one step of a connection.
pub(crate) enum StepResult {
    /// There may be more to do at once.
    More,
    /// An event must come first.
    Wait,
    /// A turn of long work must.
    Later,
    /// Nothing is left to send or to read: it parts so.
    Over(CloseMode),
}

/// How a connection's place becomes free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloseMode {
    /// What was sent is delivered, then FIN.
    Close,
    /// RST: what was not sent is thrown away.
    Abort,
}

/// The connections of a server, with an `S` for each.
#[derive(Debug)]
pub(crate) struct ServerConnections<T: Transport, S> {
    /// Connections and what the server keeps of each, by [`Transport::place`].
    slots: Vec<Option<(T::Id, S)>>,
    pacing: Pacing<T::Listener>,
    /// The places of connections that have more to do, and were left because their steps or the turn's
    /// effort were used up.
    again: IdleList,
    /// Listeners of which more wait than were accepted.
    accepting: VecDeque<T::Listener>,
    /// True if the transport's events are another server's, which passes them on.
    leaves_events: bool,
    /// What this turn may take.
    effort: TurnBudget,
    /// The places of connections that wait for a turn of long work.
    long: IdleList,
    /// Whose turn it is: that of events, of connections that have more to do, or of listeners.
    round: u8,
}

/// A connection that may be moved on.
pub(crate) struct Ready<'r, S, L> {
    pub(crate) slot: &'r mut S,
    /// By what its answers can be put off.
    pub(crate) pacing: &'r mut Pacing<L>,
    /// What that may take.
    pub(crate) effort: &'r mut TurnBudget,
}

#[derive(Clone, Copy, Debug)]
enum Task<I, L> {
    Accept(L),
    Drive(I),
    /// An answer was put off for long enough.
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
            long: IdleList::default(),
            round: 0,
        }
    }

    /// A turn begins, unless that is another server's to say. Returns whether it is not.
    fn begin_turn(&mut self) -> bool {
        if !self.leaves_events {
            self.effort.begin_turn(!self.long.is_empty());
        }
        !self.leaves_events
    }

    /// What this turn may take.
    pub(crate) const fn effort(&mut self) -> &mut TurnBudget {
        &mut self.effort
    }

    /// True if a connection waits for a turn of long work.
    pub(crate) const fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// The connection at `place` waits for a turn of long work.
    fn put_off(&mut self, place: u32, now: Instant) {
        if !self.long.holds(place) {
            self.long.touch(place, now);
        }
    }

    /// From now on the transport's events are another server's.
    pub(crate) fn leave_events(&mut self) {
        self.leaves_events = true;
    }

    /// A connection that another accepted is at its place.
    pub(crate) fn give_place(&mut self, id: T::Id) {
        let place = T::place(id) as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Some((id, S::default()));
        }
    }

    /// When something that was put off falls due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.pacing.next_deadline()
    }

    /// The connection of that name, if it is not stale.
    pub(crate) fn at(&mut self, id: T::Id) -> Option<&mut S> {
        let slot = self.slots.get_mut(T::place(id) as usize)?.as_mut();
        slot.filter(|(known, _)| *known == id).map(|(_, slot)| slot)
    }

    /// The same, if no answer of its is put off.
    pub(crate) fn ready(&mut self, id: T::Id) -> Option<Ready<'_, S, T::Listener>> {
        if self.pacing.is_thinking(T::place(id)) {
            return None;
        }
        let (known, slot) = self.slots.get_mut(T::place(id) as usize)?.as_mut()?;
        let (pacing, effort) = (&mut self.pacing, &mut self.effort);
        (*known == id).then_some(Ready { slot, pacing, effort })
    }

    /// The connection at that place, and its name.
    pub(crate) fn at_place(&mut self, place: u32) -> Option<(T::Id, &mut S)> {
        let (id, slot) = self.slots.get_mut(place as usize)?.as_mut()?;
        Some((*id, slot))
    }

    /// So many answers are ready at this connection. Returns whether they are put off.
    pub(crate) fn think(&mut self, id: T::Id, answers: u64, now: Instant) -> bool {
        self.pacing.think(T::place(id), answers, now)
    }

    /// There is no such connection any more. Returns what was known of it.
    pub(crate) fn dismiss(&mut self, id: T::Id) -> Option<S> {
        self.at(id)?;
        self.pacing.forget(T::place(id));
        self.long.remove(T::place(id));
        self.again.remove(T::place(id));
        self.slots.get_mut(T::place(id) as usize)?.take().map(|(_, slot)| slot)
    }

    /// How many places there are; not at each is a connection.
    pub(crate) fn places(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Nothing is left to be done.
    pub(crate) fn forget_tasks(&mut self) {
        self.accepting.clear();
        self.again = IdleList::default();
    }

    /// Events and what was left over by turns, so that neither waits for all of the other; then what was
    /// put off.
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

    /// What the transport tells next.
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

/// Connections accepted in one go.
const ACCEPTS: usize = 64;
/// Steps of one connection in one go.
const STEPS: usize = 128;
