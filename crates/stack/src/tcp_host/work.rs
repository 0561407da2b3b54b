//! After something touched a connection: what follows for the lists, the timers and the table.

use alloc::collections::VecDeque;

use whimbrel_base::{Instant, cold_path};
use whimbrel_tcp::conn::{Connection, Marking, Signals, State};
use whimbrel_tcp::table::{Ended, Kind, Opener, Record, TimeWait};
use whimbrel_tcp::{CloseReason, Context, Tunables};

use super::TcpHost;
use crate::ip::{Addresses, FlowKey};
use crate::net::Net;
use crate::net::replies::PendingReply;
use crate::tcp_host::connections::{ConnectionSlot, Connections};
use crate::tcp_host::markings::{Markings, WaitMarking};
use crate::tcp_host::pacing::PacingWheel;
use crate::tcp_host::timers::Timers;
use crate::{Event, Handle, ListenerId};

/// Lists of connections to be asked: by the device what they send, by the application what is new, by the
/// clock what is due.
#[derive(Debug)]
pub(crate) struct WorkQueues {
    pub(crate) dirty: VecDeque<u32>,
    pub(crate) events: VecDeque<EventSource>,
    pub(crate) timers: Timers,
    /// Connections whose text waits for its time.
    pub(crate) pacing: PacingWheel,
}

/// The call or segment that changed a connection, which decides what may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// Anything: a segment of the peer's, a command, a timer.
    Call,
    /// A command that brings its application no news.
    QuietCall,
    /// It made a segment, and is not in the dirty list.
    Sent,
}

/// The source of an event for an application.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventSource {
    Connection(u32),
    Listener(ListenerId),
}

impl WorkQueues {
    pub(crate) fn new() -> Self {
        Self {
            dirty: VecDeque::new(),
            events: VecDeque::new(),
            timers: Timers::new(),
            pacing: PacingWheel::default(),
        }
    }

    /// Brings the lists in line with the connection: this follows each call. Returns its deadline if
    /// the timer has to follow, too, which is rarely so.
    #[inline(always)]
    pub(crate) fn update(
        &mut self,
        slot: &mut ConnectionSlot,
        index: u32,
        cause: Cause,
    ) -> Option<Instant> {
        self.update_dirty(slot, index, cause);
        match cause {
            Cause::Call | Cause::Sent if !slot.listed && slot.has_news() => {
                slot.listed = true;
                self.events.push_back(EventSource::Connection(index));
            }
            _ => debug_assert!(slot.listed || !slot.has_news(), "its application is not told"),
        }
        Self::timer_update(slot)
    }

    /// Has the text of a paced connection wait for its time, or lists the connection if that has come.
    #[cold]
    #[inline(never)]
    pub(crate) fn follow_pace(&mut self, slot: &mut ConnectionSlot, index: u32, now: Instant) {
        slot.connection.end_pacing_wait(now);
        if slot.connection.is_paced() {
            self.pacing.wait(index, slot.connection.paced_until(), now);
        } else {
            self.update_dirty(slot, index, Cause::Call);
        }
    }

    /// Ends waits of text that are over at `now`, within the budget: their connections are listed.
    #[inline(never)]
    pub(crate) fn advance_pacing(
        &mut self,
        connections: &mut Connections,
        now: Instant,
        budget: &mut usize,
    ) {
        while let Some(index) = self.pacing.pop_due(now, budget) {
            // The place may have been freed, or taken by another, since.
            if let Some(slot) = connections.0.get_mut(index) {
                self.follow_pace(slot, index, now);
            }
        }
    }

    /// Lists the connection if it may have something to send.
    #[inline(always)]
    pub(crate) fn update_dirty(&mut self, slot: &mut ConnectionSlot, index: u32, cause: Cause) {
        let sends = match cause {
            Cause::Sent => slot.connection.may_transmit_more(),
            Cause::Call | Cause::QuietCall => !slot.dirty && slot.connection.may_transmit(),
        };
        if sends {
            slot.dirty = true;
            self.dirty.push_back(index);
        }
    }

    /// The connection's deadline, if its timer has to follow.
    #[inline(always)]
    pub(crate) fn timer_update(slot: &ConnectionSlot) -> Option<Instant> {
        let deadline = slot.connection.next_deadline();
        if deadline < slot.timer.at {
            return Some(deadline);
        }
        // A deadline that moved away leaves the timer where it is: it fires early, finds nothing due
        // and is armed again, which is cheaper than moving it with every acknowledgment.
        if deadline != Instant::NEVER {
            return None;
        }
        // Nor is it stopped while something is to be sent, which would start it again.
        let over = slot.connection.closed().is_some();
        let runs = slot.timer.at != Instant::NEVER && !slot.dirty;
        (over || runs).then_some(deadline)
    }

    /// Brings lists and timer in line with a connection that has just begun, and so is not over.
    pub(crate) fn enlist(&mut self, connections: &mut Connections, index: u32, now: Instant) {
        let Some(slot) = connections.0.get_mut(index) else { return };
        if let Some(deadline) = self.update(slot, index, Cause::Call) {
            self.timers.arm(connections, index, deadline, now);
        }
    }

    /// A connection is gone that a list still names. Where the lists are not read, because a device takes nothing or
    /// an application does not look, such names would add up for ever: they go once they are as many
    /// as all others, which costs each of them a few steps.
    #[inline(never)]
    fn thin(&mut self, connections: &mut Connections) {
        let most = Self::SPARE + 2 * connections.0.len();
        if self.dirty.len() > most {
            Self::keep_once(&mut self.dirty, connections, |it| Some(*it), |slot| &mut slot.dirty);
        }
        if self.events.len() > most {
            let index = |source: &EventSource| match source {
                EventSource::Connection(index) => Some(*index),
                EventSource::Listener(_) => None,
            };
            Self::keep_once(&mut self.events, connections, index, |slot| &mut slot.listed);
        }
    }

    /// Keeps the first name of each connection that says it is in the list, and what names none.
    fn keep_once<T>(
        list: &mut VecDeque<T>,
        connections: &mut Connections,
        index_of: impl Fn(&T) -> Option<u32>,
        mark: impl Fn(&mut ConnectionSlot) -> &mut bool,
    ) {
        list.retain(|it| {
            let Some(index) = index_of(it) else { return true };
            connections.0.get_mut(index).is_some_and(|slot| core::mem::take(mark(slot)))
        });
        for index in list.iter().filter_map(&index_of) {
            if let Some(slot) = connections.0.get_mut(index) {
                *mark(slot) = true;
            }
        }
    }

    /// The next news of a connection, for the application that holds it.
    pub(crate) fn poll_connection_event(
        &mut self,
        connections: &mut Connections,
        index: u32,
    ) -> Option<Event> {
        let (generation, slot) = connections.0.current_mut(index)?;
        if !slot.listed {
            return None;
        }
        let handle = Handle { generation, index };
        if slot.connection.is_orphan() {
            // Its application released it since it was listed: the handle names nothing any more.
            slot.listed = false;
            return None;
        }
        let closed = slot.connection.closed();
        let signals = slot.connection.signals_mut();
        let first = signals.take_first();
        let more = !signals.is_empty();
        slot.listed = more;
        if more {
            self.events.push_front(EventSource::Connection(index));
        }
        match first {
            Signals::READABLE => Some(Event::Readable(handle)),
            Signals::CONNECTED => Some(Event::Connected(handle)),
            Signals::WRITABLE => Some(Event::Writable(handle)),
            other => rare_event(other, handle, closed),
        }
    }

    /// A connection is its application's from here on, and what is new of it, too.
    pub(crate) fn accept_handle(
        &mut self,
        connections: &mut Connections,
        index: u32,
    ) -> Option<Handle> {
        let (generation, slot) = connections.0.current_mut(index)?;
        if !slot.unaccepted {
            return None;
        }
        slot.unaccepted = false;
        if !slot.listed && !slot.connection.signals_mut().is_empty() {
            slot.listed = true;
            self.events.push_back(EventSource::Connection(index));
        }
        Some(Handle { generation, index })
    }

    /// Memory of its lists, bytes.
    pub(crate) fn memory(&self) -> usize {
        let lists = self.dirty.capacity() * size_of::<u32>()
            + self.events.capacity() * size_of::<EventSource>();
        lists + self.pacing.memory()
    }

    /// Names of the gone that never matter.
    const SPARE: usize = 64;
}

impl TcpHost {
    /// The connection is over: the table forgets it or leads to its TIME-WAIT record, and it goes
    /// as soon as no application holds it.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, cx: &mut Context, net: &mut Net, index: u32) {
        let connections = &mut self.records.connections;
        let found = match connections.0.current_mut(index) {
            Some((_, slot)) if slot.timer.is_armed() => {
                self.work.timers.disarm(connections, index);
                connections.0.current_mut(index)
            }
            found => found,
        };
        let Some((generation, slot)) = found else { return };
        self.work.timers.disarm_check(slot);
        // Beforehand, and apart: what follows has enough to remember.
        if net.ip.addresses.is_other(slot.connection.local_index()) {
            hold_remains(&mut net.ip.addresses, slot);
        }
        if let Some(opener) = slot.linked.take() {
            let (hash, record) = (slot.hash, Record::new(Kind::Connection, index));
            let connection = &slot.connection;
            let key = FlowKey::of(connection);
            let found = if connection.state() == State::TimeWait {
                // Few have options of their own.
                let markings = &mut self.records.markings;
                let rare = connection
                    .has_cold_record()
                    .then(|| wait_marking(connection, markings, &cx.tunables));
                let number = rare.map_or(Markings::USUAL, |(number, _)| number);
                let wait = TimeWait::new(ended(connection, generation, opener, number), cx.tick);
                // It acknowledges the peer's FIN in place of the connection that received it, if that
                // came last; where ours was acknowledged last (CLOSING), nothing.
                if connection.owes_ack() {
                    let mut ack = wait.ack_reply(Some(connection.tsval(cx.tick)));
                    let mut marking = Marking::from_tunables(&cx.tunables);
                    if let Some((_, rare)) = rare {
                        cold_path();
                        ack.flags |= rare.flags();
                        marking = rare.ip;
                    }
                    net.replies.push_unbounded(PendingReply::Reply(key, ack, marking));
                }
                let waiting = self.start_waiting(cx, net, wait, &key);
                self.records.flows.replace(hash, record, waiting)
            } else {
                if opener == Opener::Us {
                    self.active.release_port(&net.ip.addresses, &key);
                }
                self.records.flows.remove(hash, record)
            };
            debug_assert!(found, "a linked connection stands in the table");
        }
        self.free_if_unheld(cx, net, index);
    }

    /// Frees a connection that is over and without a holder.
    fn free_if_unheld(&mut self, cx: &mut Context, net: &mut Net, index: u32) {
        let Some(slot) = self.records.connections.0.get_mut(index) else { return };
        if slot.connection.is_orphan() && slot.linked.is_none() {
            let local_index = slot.connection.local_index();
            // The dirty and event lists may still name it; they skip what is gone.
            if let Some(slot) = self.records.connections.0.remove(index) {
                let listed = slot.dirty || slot.listed;
                slot.connection.retire(&mut cx.pool);
                net.ip.addresses.release(local_index);
                if listed {
                    self.work.thin(&mut self.records.connections);
                }
            }
        }
    }
}

/// Returns an event that is rarer than the rest.
// Apart: a match of all would jump by a table.
#[inline(never)]
fn rare_event(news: Signals, handle: Handle, closed: Option<CloseReason>) -> Option<Event> {
    match news {
        Signals::URGENT => Some(Event::Urgent(handle)),
        Signals::CLOSED => closed.map(|reason| Event::Closed(handle, reason)),
        _ => None,
    }
}

/// Holds a foreign address for what is left of its connection: its record in TIME-WAIT, and the
/// acknowledgment that this may owe.
#[cold]
#[inline(never)]
fn hold_remains(addresses: &mut Addresses, slot: &ConnectionSlot) {
    let connection = &slot.connection;
    if slot.linked.is_some() && connection.state() == State::TimeWait {
        addresses.hold(connection.local_index());
        if connection.owes_ack() {
            addresses.hold(connection.local_index());
        }
    }
}

/// Returns the marking of acknowledgments that a connection leaves to its TIME-WAIT record, and the number of it.
#[cold]
#[inline(never)]
fn wait_marking(
    connection: &Connection,
    markings: &mut Markings,
    tunables: &Tunables,
) -> (u8, WaitMarking) {
    let marking = WaitMarking { ip: connection.marking(tunables), ace: connection.ace() };
    let usual = WaitMarking { ip: Marking::from_tunables(tunables), ace: None };
    let number = if marking == usual { Markings::USUAL } else { markings.number(marking) };
    (number, marking)
}

/// Returns the values that a TIME-WAIT record keeps of a connection.
fn ended(connection: &Connection, generation: u16, opener: Opener, marking: u8) -> Ended {
    let remains = connection.remains();
    Ended {
        remote: *connection.remote(),
        remote_port: connection.remote_port(),
        local_port: connection.local_port(),
        local_index: connection.local_index(),
        generation,
        snd_nxt: remains.snd_nxt,
        rcv_nxt: remains.rcv_nxt,
        window: remains.window,
        scale: remains.scale,
        ts_recent: remains.ts_recent,
        opener,
        marking,
    }
}
