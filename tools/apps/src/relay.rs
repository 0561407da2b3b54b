//! A relay: pairs of connections of two transports, each of which sends what the other receives.
//!
//! The near side is the client's, the far side the server's. Each direction holds one piece of at most
//! [`PIECE`] bytes: while the other side is full, nothing is read, so the sender's window closes. FIN
//! passes in each direction alone, a reset ends both: one of the server's behind what it sent before, for as
//! long as the client reads that. Who opens a pair, and how, is the caller's part.

use alloc::collections::{BTreeSet, VecDeque};
use core::ops::AddAssign;
use core::time::Duration;

use bytes::Bytes;
use whimbrel_base::{Instant, Slab};

use crate::place_table::PlaceTable;
use crate::transport::{ConnError, Reading, Transport, TransportEvent};
use direction::{Direction, Step};

mod direction;

/// Pairs of connections of two transports.
pub struct Relay<N: Transport, F: Transport> {
    flows: Slab<RelayedFlow<N, F>>,
    /// The flow of each place of the transports.
    by_near: PlaceTable,
    by_far: PlaceTable,
    /// Flows whose turn ended before their data.
    ready: VecDeque<FlowKey>,
    /// Flows whose far side ended or failed, by the time of the next look whether anything still passes.
    half_closed: BTreeSet<(Instant, u32)>,
    /// True if a flow whose far side ended may be idle for as long as it will.
    is_patient: bool,
    /// True if a flow ends as soon as the near side has ended.
    is_draining: bool,
    statistics: RelayStatistics,
}

/// The transports of both sides.
pub struct Sides<'s, N, F> {
    /// That of the clients.
    pub near: &'s mut N,
    /// That of the servers.
    pub far: &'s mut F,
}

impl<N, F> Sides<'_, N, F> {
    /// Lends the transports to another call.
    fn again(&mut self) -> Sides<'_, N, F> {
        Sides { near: self.near, far: self.far }
    }
}

/// Two open connections.
pub struct Pair<N: Transport, F: Transport> {
    /// The client's.
    pub near: N::Id,
    /// The server's.
    pub far: F::Id,
    /// Sent to the server before the client's data.
    pub first: Bytes,
}

/// A flow by its place, and how many the place had before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FlowKey {
    place: u32,
    generation: u16,
}

struct RelayedFlow<N: Transport, F: Transport> {
    near: N::Id,
    far: F::Id,
    /// To the far side.
    up: Direction,
    /// To the near side.
    down: Direction,
    /// The far side failed: what it sent before is still passed on.
    has_far_failed: bool,
    is_ready: bool,
    /// The next look at this flow, whose far side ended or failed.
    next_look: Option<Instant>,
    /// True if data has passed since the last look.
    has_moved: bool,
}

/// Counts of a relay. The near side is the client's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RelayStatistics {
    /// Pairs so far.
    pub flows: u64,
    /// Pairs now.
    pub open: usize,
    /// Flows that both sides ended.
    pub finished: u64,
    /// Flows that the near side reset, or that timed out there.
    pub near_failed: u64,
    /// Flows that the far side reset.
    pub far_failed: u64,
    /// Flows whose far side ended, and whose near side then sent nothing for [`HALF_CLOSED`].
    pub abandoned: u64,
    /// Flows that were open at the end of the relay.
    pub cut: u64,
    /// Bytes passed to the far side.
    pub bytes_up: u64,
    /// Bytes passed to the near side.
    pub bytes_down: u64,
}

/// The reason of a flow's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FlowEnd {
    Finished,
    NearFailed,
    FarFailed,
    Abandoned,
    Cut,
}

impl<N: Transport, F: Transport> Default for Relay<N, F> {
    fn default() -> Self {
        Self {
            flows: Slab::new(),
            by_near: PlaceTable::default(),
            by_far: PlaceTable::default(),
            ready: VecDeque::new(),
            half_closed: BTreeSet::new(),
            is_patient: false,
            is_draining: false,
            statistics: RelayStatistics::default(),
        }
    }
}

impl<N: Transport, F: Transport> Relay<N, F> {
    /// Keeps half-closed flows however long they are idle, as a path without a relay would.
    #[must_use]
    pub fn with_patience(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// From now on, a flow ends as soon as all that the near side sent, and its end, has been passed on:
    /// no reader is left on that side.
    pub fn begin_drain(&mut self, mut sides: Sides<'_, N, F>) {
        self.is_draining = true;
        self.each_place(|relay, place, flow_has_ended| {
            if flow_has_ended {
                relay.end(sides.again(), place, FlowEnd::Finished);
            }
        });
    }

    /// Joins two open connections.
    pub fn join(&mut self, sides: Sides<'_, N, F>, pair: Pair<N, F>, now: Instant) {
        let Pair { near, far, first } = pair;
        let flow = RelayedFlow {
            near,
            far,
            up: Direction::with_first(first),
            down: Direction::default(),
            has_far_failed: false,
            is_ready: false,
            next_look: None,
            has_moved: false,
        };
        let place = self.flows.insert(flow);
        self.by_near.set(N::place(near), Some(place));
        self.by_far.set(F::place(far), Some(place));
        self.statistics.flows += 1;
        self.statistics.open += 1;
        self.drive(sides, place, now);
    }

    /// Handles an event of the near side. False if no pair has this connection.
    pub fn on_near(
        &mut self,
        sides: Sides<'_, N, F>,
        event: &TransportEvent<N>,
        now: Instant,
    ) -> bool {
        let (id, failed) = match *event {
            TransportEvent::Accepted(_) => return false,
            TransportEvent::Connected(id)
            | TransportEvent::Readable(id)
            | TransportEvent::Writable(id) => (id, false),
            TransportEvent::Closed(id, error) => (id, error.is_some()),
        };
        let place = self.by_near.at(N::place(id));
        let Some(place) = place.filter(|at| self.flows.get(*at).is_some_and(|it| it.near == id))
        else {
            return false;
        };
        match failed {
            true => self.end(sides, place, FlowEnd::NearFailed),
            false => self.drive(sides, place, now),
        }
        true
    }

    /// Handles an event of the far side. False if no pair has this connection.
    pub fn on_far(
        &mut self,
        sides: Sides<'_, N, F>,
        event: &TransportEvent<F>,
        now: Instant,
    ) -> bool {
        let (TransportEvent::Connected(id)
        | TransportEvent::Readable(id)
        | TransportEvent::Writable(id)
        | TransportEvent::Closed(id, _)) = *event
        else {
            return false;
        };
        let place = self.by_far.at(F::place(id));
        let Some(place) = place.filter(|at| self.flows.get(*at).is_some_and(|it| it.far == id))
        else {
            return false;
        };
        if let (TransportEvent::Closed(_, Some(_)), Some(flow)) = (event, self.flows.get_mut(place))
        {
            flow.has_far_failed = true;
        }
        self.drive(sides, place, now);
        true
    }

    /// Continues up to `budget` flows that had more to pass on, and ends those that nothing passes any more.
    /// Returns true if more is left.
    pub fn poll(&mut self, mut sides: Sides<'_, N, F>, now: Instant, budget: usize) -> bool {
        for _ in 0..budget.min(self.ready.len()) {
            let Some(key) = self.ready.pop_front() else { break };
            if let Some(flow) = self.flows.get_mut_of(key.place, key.generation) {
                flow.is_ready = false;
                self.drive(sides.again(), key.place, now);
            }
        }
        self.end_abandoned(sides, now, budget);
        !self.ready.is_empty()
    }

    /// The latest time of the next [`Relay::poll`].
    pub fn next_deadline(&self) -> Option<Instant> {
        self.half_closed.first().map(|(due, _)| *due)
    }

    /// Counts so far.
    pub const fn statistics(&self) -> &RelayStatistics {
        &self.statistics
    }

    /// Resets both connections of each pair.
    pub fn cut(&mut self, mut sides: Sides<'_, N, F>) {
        self.each_place(|relay, place, _| relay.end(sides.again(), place, FlowEnd::Cut));
        self.ready.clear();
    }

    /// Calls `act` for the place of each flow, and whether its near side has ended.
    fn each_place(&mut self, mut act: impl FnMut(&mut Self, u32, bool)) {
        let mut from = 0;
        while let Some(found) = self.flows.first_from(from) {
            match found {
                Ok((place, flow)) => {
                    let has_ended = flow.up.has_ended();
                    act(self, place, has_ended);
                    from = place + 1;
                }
                Err(next) => from = next,
            }
        }
    }

    /// Passes on what one turn of a flow may, in both directions.
    fn drive(&mut self, sides: Sides<'_, N, F>, place: u32, now: Instant) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        let (near, far) = (flow.near, flow.far);
        let before = (flow.up.passed, flow.down.passed);
        let up = match flow.has_far_failed {
            false => flow.up.pass(sides.near, near, sides.far, far, &flow.down),
            true => Step::Wait,
        };
        flow.has_far_failed |= matches!(up, Step::SinkFailed(_));
        let down = flow.down.pass(sides.far, far, sides.near, near, &flow.up);
        let moved = (flow.up.passed - before.0, flow.down.passed - before.1);
        flow.has_moved |= moved != (0, 0);
        let drained = (self.is_draining && flow.up.has_ended()).then_some(FlowEnd::Finished);
        let end = flow.judge_end(up, down).or(drained);
        let next_look = flow.next_look(now, self.is_patient);
        let is_ready = (up == Step::More || down == Step::More) && !flow.is_ready;
        flow.is_ready |= is_ready;
        self.statistics.bytes_up += moved.0;
        self.statistics.bytes_down += moved.1;
        if let Some(end) = end {
            self.end(sides, place, end);
            return;
        }
        let key = FlowKey { place, generation: self.flows.generation(place) };
        if is_ready {
            self.ready.push_back(key);
        }
        self.look_again_at(place, next_look);
    }

    /// Puts off the next look at a flow, or sets it earlier.
    fn look_again_at(&mut self, place: u32, at: Option<Instant>) {
        let Some(flow) = self.flows.get_mut(place) else { return };
        if at == flow.next_look {
            return;
        }
        if let Some(before) = core::mem::replace(&mut flow.next_look, at) {
            self.half_closed.remove(&(before, place));
        }
        self.half_closed.extend(at.map(|at| (at, place)));
    }

    /// Ends flows that passed nothing since the last look, and whose far side ended or failed.
    fn end_abandoned(&mut self, mut sides: Sides<'_, N, F>, now: Instant, budget: usize) {
        for _ in 0..budget {
            let Some((due, place)) = self.half_closed.first().copied() else { break };
            if due > now {
                break;
            }
            let Some(flow) = self.flows.get_mut(place) else { break };
            if !core::mem::take(&mut flow.has_moved) {
                let end = if flow.has_far_failed { FlowEnd::FarFailed } else { FlowEnd::Abandoned };
                self.end(sides.again(), place, end);
                continue;
            }
            let pause = if flow.has_far_failed { FAR_FAILED } else { HALF_CLOSED };
            self.look_again_at(place, Some(now + pause));
        }
    }

    fn end(&mut self, sides: Sides<'_, N, F>, place: u32, end: FlowEnd) {
        let Some(flow) = self.flows.remove(place) else { return };
        self.by_near.set(N::place(flow.near), None);
        self.by_far.set(F::place(flow.far), None);
        if let Some(due) = flow.next_look {
            self.half_closed.remove(&(due, place));
        }
        let statistics = &mut self.statistics;
        statistics.open -= 1;
        let count = match end {
            FlowEnd::Finished => &mut statistics.finished,
            FlowEnd::NearFailed => &mut statistics.near_failed,
            FlowEnd::FarFailed => &mut statistics.far_failed,
            FlowEnd::Abandoned => &mut statistics.abandoned,
            FlowEnd::Cut => &mut statistics.cut,
        };
        *count += 1;
        match end {
            FlowEnd::Finished | FlowEnd::Abandoned => {
                sides.near.close(flow.near);
                sides.far.close(flow.far);
            }
            FlowEnd::FarFailed if flow.down.has_ended() => {
                // The server closed, then refused more: its last data and its FIN are on their way.
                sides.near.close(flow.near);
                sides.far.close(flow.far);
            }
            FlowEnd::NearFailed | FlowEnd::FarFailed | FlowEnd::Cut => {
                sides.near.abort(flow.near);
                sides.far.abort(flow.far);
            }
        }
    }
}

impl<N: Transport, F: Transport> RelayedFlow<N, F> {
    /// Returns how the flow ends, if it does.
    fn judge_end(&self, up: Step, down: Step) -> Option<FlowEnd> {
        if matches!(up, Step::SourceFailed(_)) || matches!(down, Step::SinkFailed(_)) {
            return Some(FlowEnd::NearFailed);
        }
        if matches!(down, Step::SourceFailed(_)) {
            return Some(FlowEnd::FarFailed);
        }
        if self.has_far_failed {
            // All that it sent before it failed has arrived here.
            let is_passed = down != Step::More && !self.down.is_held();
            return is_passed.then_some(FlowEnd::FarFailed);
        }
        (self.up.has_ended() && self.down.has_ended()).then_some(FlowEnd::Finished)
    }

    /// When to look whether anything still passes, if the far side ended or failed.
    fn next_look(&self, now: Instant, is_patient: bool) -> Option<Instant> {
        let soon = now + FAR_FAILED;
        match self.next_look {
            next if self.has_far_failed => Some(next.map_or(soon, |next| next.min(soon))),
            None if self.down.has_ended() && !is_patient => Some(now + HALF_CLOSED),
            next => next,
        }
    }
}

impl AddAssign for RelayStatistics {
    fn add_assign(&mut self, other: Self) {
        let Self {
            flows,
            open,
            finished,
            near_failed,
            far_failed,
            abandoned,
            cut,
            bytes_up,
            bytes_down,
        } = other;
        self.flows += flows;
        self.open += open;
        self.finished += finished;
        self.near_failed += near_failed;
        self.far_failed += far_failed;
        self.abandoned += abandoned;
        self.cut += cut;
        self.bytes_up += bytes_up;
        self.bytes_down += bytes_down;
    }
}

/// The most bytes that a direction holds.
pub const PIECE: usize = 256 << 10;
/// Time without data after which a flow ends whose server has ended. A server that closed a connection
/// for good cannot be told from one that only sends no more, and would keep no socket either.
pub const HALF_CLOSED: Duration = Duration::from_secs(60);
/// Time without data after which a flow ends whose server has failed, if its client does not read what the
/// server sent before: a client that only sends learns of the reset.
pub const FAR_FAILED: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
