//! Servers of bytes, for loads without HTTP.

use alloc::format;
use alloc::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;

use crate::Statistics;
use crate::iperf3;
use crate::pace::Pace;
use crate::server_connections::{self, Ready, Server, ServerConnections, StepResult};
use crate::transport::{Model, Reading, Transport};

/// Behaviour of a byte server on each connection.
#[derive(Clone, Debug)]
pub enum Role {
    /// Echoes the bytes (RFC 862).
    Echo,
    /// Reads and discards (RFC 863).
    Discard,
    /// Sends without end, and discards input (RFC 864).
    Chargen,
    /// Reads to the end, then sends one line with the number of bytes and their CRC-32. It refuses
    /// a client of iperf3, which sends only a cookie, with that protocol's error.
    Sink,
    /// Answers each request of a fixed length.
    Respond {
        /// Bytes of a request (>= 1).
        request: u64,
        /// Response to each request.
        answer: Bytes,
    },
}

/// The way a byte server ends a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseMode {
    /// Closes first, after its first response.
    First,
    /// Closes after the peer.
    Second,
    /// Resets the connection after the peer has closed.
    Reset,
}

/// Plays one role over all connections of one transport.
#[derive(Debug)]
pub struct PeerServer<T: Transport> {
    role: Role,
    close_mode: CloseMode,
    pattern: Bytes,
    connections: ServerConnections<T, PeerSlot>,
    statistics: Statistics,
}

/// A connection of the server's.
#[derive(Default, Debug)]
pub(crate) struct PeerSlot {
    /// Bytes that the transport had no room for yet.
    pending: Bytes,
    /// Responses due after that.
    owed: u64,
    received: u64,
    sum: crc32fast::Hasher,
    stage: PeerStage,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum PeerStage {
    #[default]
    Open,
    /// Sends the last response, then closes.
    Last,
    /// This side has closed, the peer has not.
    Shut,
}

impl<T: Transport> PeerServer<T> {
    /// A server without connections.
    pub fn new(role: Role, close_mode: CloseMode) -> Self {
        Self {
            role,
            close_mode,
            pattern: pattern(PIECE),
            connections: ServerConnections::new(Pace::default()),
            statistics: Statistics::default(),
        }
    }

    /// Sets the pace; it has no effect on roles without responses.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.connections = ServerConnections::new(pace);
        self
    }

    /// Counters so far.
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Resets open connections.
    pub fn shut_down(&mut self, net: &mut T) {
        for place in 0..self.connections.places() {
            let Some((id, _)) = self.connections.at_place(place) else { continue };
            self.connections.dismiss(id);
            self.statistics.open -= 1;
            net.abort(id);
        }
        self.connections.forget_tasks();
    }

    fn on_bytes(&mut self, id: T::Id, bytes: Bytes, now: Instant) -> StepResult {
        let Some(slot) = self.connections.at(id) else { return StepResult::Wait };
        self.statistics.received += bytes.len() as u64;
        if slot.stage == PeerStage::Shut {
            return StepResult::More;
        }
        let before = slot.received;
        slot.received += bytes.len() as u64;
        // iperf3 would wait for ever for a reply to its cookie.
        let reads = matches!(self.role, Role::Sink | Role::Discard);
        if reads && before == 0 && iperf3::is_cookie(&bytes) {
            slot.pending = Bytes::copy_from_slice(&iperf3::Refusal::Message.message());
            slot.stage = PeerStage::Last;
            return StepResult::More;
        }
        let answers = match &self.role {
            Role::Discard | Role::Chargen => return StepResult::More,
            Role::Sink => {
                slot.sum.update(&bytes);
                return StepResult::More;
            }
            Role::Echo => {
                slot.pending = bytes;
                1
            }
            Role::Respond { request, .. } => {
                let request = (*request).max(1);
                let complete = slot.received / request - before / request;
                slot.owed += complete;
                complete
            }
        };
        self.statistics.requests += answers;
        if answers > 0 {
            if self.close_mode == CloseMode::First {
                slot.stage = PeerStage::Last;
            }
            self.connections.think(id, answers, now);
        }
        StepResult::More
    }

    /// Handles the end of the peer's direction.
    fn on_end(&mut self, id: T::Id, now: Instant) -> StepResult {
        let Some(slot) = self.connections.at(id) else { return StepResult::Wait };
        if matches!(self.role, Role::Sink) && slot.stage == PeerStage::Open {
            let sum = core::mem::take(&mut slot.sum).finalize();
            slot.pending = Bytes::from(format!("{} bytes, crc32 {sum:08x}\n", slot.received));
            slot.stage = PeerStage::Last;
            self.statistics.requests += 1;
            self.connections.think(id, 1, now);
            return StepResult::More;
        }
        self.over()
    }

    /// Result for a connection without more to send.
    const fn over(&self) -> StepResult {
        StepResult::Over(match self.close_mode {
            CloseMode::Reset => server_connections::CloseMode::Abort,
            CloseMode::First | CloseMode::Second => server_connections::CloseMode::Close,
        })
    }
}

impl<T: Transport> Server<T> for PeerServer<T> {
    type ConnectionState = PeerSlot;

    fn connections(&mut self) -> &mut ServerConnections<T, PeerSlot> {
        &mut self.connections
    }

    fn on_accepted(&mut self, _: T::Id, _: Instant) {
        self.statistics.accepted += 1;
        self.statistics.open += 1;
    }

    fn turn(&mut self, net: &mut T, id: T::Id, now: Instant) -> StepResult {
        let Some(Ready { slot, effort, .. }) = self.connections.ready(id) else {
            return StepResult::Wait;
        };
        let generates = matches!(self.role, Role::Chargen) && slot.stage == PeerStage::Open;
        if generates && slot.pending.is_empty() {
            slot.pending = self.pattern.clone();
        }
        if let Role::Respond { answer, .. } = &self.role
            && slot.pending.is_empty()
        {
            let at_once = if slot.owed > 1 { net.room(id) } else { 0 };
            slot.pending = next_answers(answer, &mut slot.owed, at_once);
        }
        if !slot.pending.is_empty() {
            match net.send(id, &mut slot.pending) {
                Ok(taken) => {
                    self.statistics.sent += taken as u64;
                    effort.spend(taken as u64);
                }
                Err(_) => (slot.pending, slot.owed) = (Bytes::new(), 0),
            }
            // Input beyond the responses is not read, so memory is bounded and the peer's window
            // closes. A generator reads all the same.
            if !generates {
                return if slot.pending.is_empty() { StepResult::More } else { StepResult::Wait };
            }
        }
        if slot.stage == PeerStage::Last {
            slot.stage = PeerStage::Shut;
            net.shutdown(id);
        }
        let full = !slot.pending.is_empty();
        // Reads only as much as can be echoed: more would wait here outside of all bounds.
        let most = match self.role {
            Role::Echo => net.room(id).max(LEAST),
            _ => usize::MAX,
        };
        match net.recv_up_to(id, most) {
            Reading::Data(bytes) => {
                effort.spend(bytes.len() as u64);
                self.on_bytes(id, bytes, now)
            }
            Reading::Pending if generates && !full => StepResult::More,
            Reading::Pending => StepResult::Wait,
            Reading::End => self.on_end(id, now),
            Reading::Failed(_) => {
                self.statistics.failed += 1;
                self.over()
            }
        }
    }

    fn on_closed(&mut self, net: &mut T, id: T::Id, now: Instant) {
        self.drive(net, id, now);
    }

    fn release(&mut self, net: &mut T, id: T::Id, close_mode: server_connections::CloseMode) {
        if self.connections.dismiss(id).is_none() {
            return;
        }
        self.statistics.open -= 1;
        match close_mode {
            server_connections::CloseMode::Close => net.close(id),
            server_connections::CloseMode::Abort => net.abort(id),
        }
    }
}

impl<T: Transport> Model<T> for PeerServer<T> {
    fn poll(&mut self, net: &mut T, now: Instant, budget: usize) -> bool {
        self.serve(net, now, budget)
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.connections.next_deadline()
    }
}

/// The responses owed, at most `at_once` bytes or one response: a peer may request more than fits
/// in memory and read none.
fn next_answers(answer: &Bytes, owed: &mut u64, at_once: usize) -> Bytes {
    let times = (*owed).min((at_once.min(PIECE) / answer.len().max(1)).max(1) as u64);
    *owed -= times;
    match times {
        0 => Bytes::new(),
        1 => answer.clone(),
        _ => Bytes::from(answer.repeat(times as usize)),
    }
}

/// Bytes to send: the printable characters in turn (RFC 864), in lines of 74.
pub(crate) fn pattern(length: usize) -> Bytes {
    let line = |number: usize| {
        let characters = (0..72).map(move |column| b' ' + ((number + column) % 95) as u8);
        characters.chain(*b"\r\n")
    };
    (0..).flat_map(line).take(length).collect::<Vec<u8>>().into()
}

/// Least bytes read at a time to be echoed.
const LEAST: usize = 1 << 10;
/// Bytes made at a time by a generator, or for many responses.
const PIECE: usize = 128 << 10;

#[cfg(test)]
mod tests;
