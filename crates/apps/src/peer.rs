//! Servers of octets: what loads that are no HTTP talk to.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use bytes::Bytes;
use whimbrel_tcp::Instant;

use crate::pace::{Pace, Pacing};
use crate::transport::{Happening, Model, Reading, Transport};

/// What a server of octets does on each connection.
#[derive(Clone, Debug)]
pub enum Role {
    /// Sends back what comes (RFC 862).
    Echo,
    /// Reads and throws away (RFC 863).
    Discard,
    /// Sends without end, and throws away what comes (RFC 864).
    Chargen,
    /// Reads to the end, then says in one line how many octets came, and their CRC-32.
    Sink,
    /// Answers each request of so many octets with these.
    Respond {
        /// Octets of a request (>= 1).
        request: u64,
        /// The answer.
        answer: Bytes,
    },
}

/// How a server of octets ends a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parting {
    /// It closes first, after its first answer.
    First,
    /// It closes when the peer did.
    Second,
    /// It resets the connection when the peer has closed.
    Reset,
}

/// Plays one role over the connections of one transport, whose listeners are all its own.
#[derive(Debug)]
pub struct PeerServer<T: Transport> {
    role: Role,
    parting: Parting,
    pattern: Bytes,
    pacing: Pacing<T::Listener>,
    /// By [`Transport::place`].
    slots: Vec<Slot<T::Id>>,
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
    /// Answers: pieces echoed, responses, sums.
    pub answers: u64,
    /// Connections that failed.
    pub failed: u64,
    /// Octets received.
    pub received: u64,
    /// Octets handed to the transport.
    pub sent: u64,
}

#[derive(Debug)]
struct Slot<I> {
    id: Option<I>,
    /// What the transport had no room for yet.
    pending: Bytes,
    received: u64,
    sum: crc32fast::Hasher,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Reads, and answers.
    Open,
    /// The last answer goes out; then this side closes.
    Last,
    /// This side closed, the peer has not.
    Shut,
}

#[derive(Clone, Copy, Debug)]
enum Task<I, L> {
    Accept(L),
    Drive(I),
}

enum Turn {
    More,
    Wait,
    Over,
}

impl<I> Default for Slot<I> {
    fn default() -> Self {
        Self {
            id: None,
            pending: Bytes::new(),
            received: 0,
            sum: crc32fast::Hasher::new(),
            stage: Stage::Open,
        }
    }
}

impl<T: Transport> PeerServer<T> {
    /// A server without connections.
    pub fn new(role: Role, parting: Parting) -> Self {
        Self {
            role,
            parting,
            pattern: pattern(PIECE),
            pacing: Pacing::default(),
            slots: Vec::new(),
            again: VecDeque::new(),
            statistics: Statistics::default(),
        }
    }

    /// The same at this pace: roles that answer nothing have nothing to think about.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pacing = Pacing::at(pace);
        self
    }

    /// What happened so far.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Resets what is open.
    pub fn shut_down(&mut self, net: &mut T) {
        for slot in &mut self.slots {
            if let Some(id) = slot.id.take() {
                net.abort(id);
                self.statistics.open -= 1;
            }
        }
        self.again.clear();
    }

    fn next_task(&mut self, net: &mut T, now: Instant) -> Option<Task<T::Id, T::Listener>> {
        while let Some(happening) = net.poll_event() {
            match happening {
                Happening::Accepted(listener) => {
                    if self.pacing.may_accept(listener, now) {
                        return Some(Task::Accept(listener));
                    }
                }
                Happening::Readable(id) | Happening::Writable(id) | Happening::Closed(id, _) => {
                    return Some(Task::Drive(id));
                }
                Happening::Connected(_) => {}
            }
        }
        let again = self.again.pop_front();
        let again = again.or_else(|| self.pacing.next_accept(now).map(Task::Accept));
        again.or_else(|| {
            let place = self.pacing.next_thought(now)?;
            self.slots.get(place as usize)?.id.map(Task::Drive)
        })
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
            self.drive(net, id, now);
        }
        if self.pacing.may_accept(listener, now) {
            self.again.push_back(Task::Accept(listener));
        }
    }

    fn drive(&mut self, net: &mut T, id: T::Id, now: Instant) {
        for _ in 0..STEPS {
            match self.turn(net, id, now) {
                Turn::More => {}
                Turn::Wait => return,
                Turn::Over => return self.let_go(net, id),
            }
        }
        self.again.push_back(Task::Drive(id));
    }

    fn turn(&mut self, net: &mut T, id: T::Id, now: Instant) -> Turn {
        let place = self.slots.get_mut(T::place(id) as usize);
        let Some(slot) = place.filter(|slot| slot.id == Some(id)) else { return Turn::Wait };
        if self.pacing.is_thinking(T::place(id)) {
            return Turn::Wait;
        }
        let generates = matches!(self.role, Role::Chargen) && slot.stage == Stage::Open;
        if generates && slot.pending.is_empty() {
            slot.pending = self.pattern.clone();
        }
        if !slot.pending.is_empty() {
            match net.send(id, &mut slot.pending) {
                Ok(taken) => self.statistics.sent += taken as u64,
                Err(_) => slot.pending.clear(),
            }
            // What is not answered yet is not read on: memory is bounded, and the peer's window
            // closes. Who generates reads all the same.
            if !generates {
                return if slot.pending.is_empty() { Turn::More } else { Turn::Wait };
            }
        }
        if slot.stage == Stage::Last {
            slot.stage = Stage::Shut;
            net.shutdown(id);
        }
        let full = !slot.pending.is_empty();
        match net.recv(id) {
            Reading::Data(octets) => self.on_octets(id, octets, now),
            Reading::Pending if generates && !full => Turn::More,
            Reading::Pending => Turn::Wait,
            Reading::End => self.on_end(id, now),
            Reading::Failed(_) => {
                self.statistics.failed += 1;
                Turn::Over
            }
        }
    }

    fn on_octets(&mut self, id: T::Id, octets: Bytes, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(T::place(id) as usize) else { return Turn::Wait };
        self.statistics.received += octets.len() as u64;
        if slot.stage == Stage::Shut {
            return Turn::More;
        }
        let before = slot.received;
        slot.received += octets.len() as u64;
        let answers = match &self.role {
            Role::Discard | Role::Chargen => return Turn::More,
            Role::Sink => {
                slot.sum.update(&octets);
                return Turn::More;
            }
            Role::Echo => {
                slot.pending = octets;
                1
            }
            Role::Respond { request, answer } => {
                let request = (*request).max(1);
                let complete = slot.received / request - before / request;
                slot.pending = repeat(answer, complete);
                complete
            }
        };
        self.statistics.answers += answers;
        if answers > 0 {
            self.pacing.think(T::place(id), now);
            if self.parting == Parting::First {
                slot.stage = Stage::Last;
            }
        }
        Turn::More
    }

    /// The peer closed its direction.
    fn on_end(&mut self, id: T::Id, now: Instant) -> Turn {
        let Some(slot) = self.slots.get_mut(T::place(id) as usize) else { return Turn::Wait };
        if matches!(self.role, Role::Sink) && slot.stage == Stage::Open {
            let sum = core::mem::take(&mut slot.sum).finalize();
            slot.pending = Bytes::from(format!("{} octets, crc32 {sum:08x}\n", slot.received));
            slot.stage = Stage::Last;
            self.statistics.answers += 1;
            self.pacing.think(T::place(id), now);
            return Turn::More;
        }
        Turn::Over
    }

    fn let_go(&mut self, net: &mut T, id: T::Id) {
        let place = self.slots.get_mut(T::place(id) as usize);
        let Some(slot) = place.filter(|slot| slot.id == Some(id)) else { return };
        *slot = Slot::default();
        self.statistics.open -= 1;
        self.pacing.forget(T::place(id));
        match self.parting {
            Parting::Reset => net.abort(id),
            Parting::First | Parting::Second => net.close(id),
        }
    }
}

impl<T: Transport> Model<T> for PeerServer<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        for _ in 0..budget {
            let Some(task) = self.next_task(net, now) else { return false };
            match task {
                Task::Accept(listener) => self.accept(net, listener, now),
                Task::Drive(id) => self.drive(net, id, now),
            }
        }
        true
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.pacing.next_deadline()
    }
}

/// The answer, as often as it was asked for.
fn repeat(answer: &Bytes, times: u64) -> Bytes {
    match times {
        0 => Bytes::new(),
        1 => answer.clone(),
        _ => Bytes::from(answer.repeat(usize::try_from(times).unwrap_or(0))),
    }
}

/// Octets to send: the printable characters in turn (RFC 864), in lines of 74.
pub(crate) fn pattern(length: usize) -> Bytes {
    let line = |number: usize| {
        let characters = (0..72).map(move |column| b' ' + ((number + column) % 95) as u8);
        characters.chain(*b"\r\n")
    };
    (0..).flat_map(line).take(length).collect::<Vec<u8>>().into()
}

/// Octets handed over at a time by who sends without end.
const PIECE: usize = 128 << 10;
/// Connections accepted in one go.
const ACCEPTS: usize = 64;
/// Steps of one connection in one go.
const STEPS: usize = 64;
