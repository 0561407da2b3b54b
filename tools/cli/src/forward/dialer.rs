//! Connections to the server, one for each accepted connection.
//!
//! A server whose backlog is full refuses with EAGAIN, and nothing reports when there is room (unix(7)):
//! attempts are repeated after 1 to 100 ms. A client whose connection does not open within [`PATIENCE`]
//! is reset, as are those that the server refuses.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::time::Duration;

use whimbrel_apps::place_table::PlaceTable;
use whimbrel_apps::{ConnError, Transport};
use whimbrel_base::{Instant, Slab};
use whimbrel_kernel::sockets::SocketId;

use super::server::{Attempt, Server};
use crate::drive::KernelNet;

/// Connections of the near side that wait for the server.
pub(super) struct Dialer<N: Transport> {
    server: Server,
    /// The address that last accepted a connection.
    preferred: usize,
    dials: Slab<Dial<N>>,
    by_near: PlaceTable,
    by_far: PlaceTable,
    /// Dials whose server was busy, by the time of the next attempt.
    repeats: BTreeSet<(Instant, u32)>,
    /// All dials, by the time when they are given up.
    expiries: BTreeSet<(Instant, u32)>,
    waiting: usize,
    statistics: DialStatistics,
}

struct Dial<N: Transport> {
    near: N::Id,
    state: DialState,
    /// When it is given up.
    expiry: Instant,
    /// The address that is tried, and the number of those left.
    address: usize,
    left: usize,
    /// Wait after the next refusal by a full backlog.
    pause: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DialState {
    /// The connection opens.
    Opening(SocketId),
    /// The next attempt is at this time.
    Busy(Instant),
}

/// Counts of attempts to connect.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct DialStatistics {
    /// Attempts that were repeated because the server's backlog was full.
    pub(super) repeated: u64,
    /// Clients that ended their connection before it reached the server.
    pub(super) withdrawn: u64,
    /// Connections that were reset because the server did not accept them, by reason.
    pub(super) refused: Vec<(&'static str, u64)>,
    /// Connections that wait now.
    pub(super) waiting: usize,
}

/// Connections of both sides that belong together, or the near one that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialled<I> {
    /// Both are open.
    Open(I, SocketId),
    /// The near side is to be reset.
    Refused(I),
    /// Not yet decided, or unknown.
    Pending,
}

impl<N: Transport> Dialer<N> {
    /// A dialer of this server.
    pub(super) fn new(server: Server) -> Self {
        Self {
            server,
            preferred: 0,
            dials: Slab::new(),
            by_near: PlaceTable::default(),
            by_far: PlaceTable::default(),
            repeats: BTreeSet::new(),
            expiries: BTreeSet::new(),
            waiting: 0,
            statistics: DialStatistics::default(),
        }
    }

    /// Begins to connect `near` to the server.
    pub(super) fn begin(
        &mut self,
        net: &mut KernelNet,
        near: N::Id,
        now: Instant,
    ) -> Dialled<N::Id> {
        let (address, left) = (self.preferred, self.server.addresses());
        // The common case of a Unix socket needs no record.
        let attempt = self.server.connect(net, address);
        if let Attempt::Open(far) = attempt {
            return Dialled::Open(near, far);
        }
        let (state, expiry) = (DialState::Busy(now), now + PATIENCE);
        let dial = Dial { near, state, expiry, address, left, pause: FIRST_PAUSE };
        let place = self.dials.insert(dial);
        self.waiting += 1;
        self.by_near.set(N::place(near), Some(place));
        self.expiries.insert((expiry, place));
        self.on_attempt(net, place, attempt, now)
    }

    /// The connection of the near side ended. True if it waited here.
    pub(super) fn on_near_closed(&mut self, net: &mut KernelNet, near: N::Id) -> bool {
        let place = self.by_near.at(N::place(near));
        let Some(place) = place.filter(|at| self.dials.get(*at).is_some_and(|it| it.near == near))
        else {
            return false;
        };
        self.statistics.withdrawn += 1;
        self.take(net, place);
        true
    }

    /// An event of the far side: its connection opened, or failed.
    pub(super) fn on_far(
        &mut self,
        net: &mut KernelNet,
        far: SocketId,
        error: Option<ConnError>,
        now: Instant,
    ) -> Dialled<N::Id> {
        let place = self.by_far.at(KernelNet::place(far));
        let Some(place) = place
            .filter(|at| self.dials.get(*at).is_some_and(|it| it.state == DialState::Opening(far)))
        else {
            return Dialled::Pending;
        };
        match error {
            None => self.on_attempt(net, place, Attempt::Open(far), now),
            Some(error) => {
                self.release(net, place);
                self.on_attempt(net, place, Attempt::Failed(error), now)
            }
        }
    }

    /// Repeats an attempt that is due, or gives up a dial that waited too long; `None`: none is due.
    pub(super) fn poll(&mut self, net: &mut KernelNet, now: Instant) -> Option<Dialled<N::Id>> {
        if let Some((expiry, place)) = self.expiries.first().copied()
            && expiry <= now
        {
            let why = match self.dials.get(place)?.state {
                DialState::Opening(_) => ConnError::ConnectTimeout.name(),
                DialState::Busy(_) => BACKLOG_FULL,
            };
            return Some(self.refuse(net, place, why));
        }
        let (due, place) = *self.repeats.first()?;
        if due > now {
            return None;
        }
        self.repeats.pop_first();
        self.statistics.repeated += 1;
        let address = self.dials.get(place)?.address;
        let attempt = self.server.connect(net, address);
        Some(self.on_attempt(net, place, attempt, now))
    }

    /// The time of the next [`Dialer::poll`].
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let next = [self.repeats.first(), self.expiries.first()].into_iter().flatten().min();
        next.map(|(due, _)| *due)
    }

    /// True if none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Counts so far.
    pub(super) fn statistics(&self) -> DialStatistics {
        DialStatistics { waiting: self.waiting, ..self.statistics.clone() }
    }

    /// Gives up one that waits, whose near side is to be reset; `None` if there is none.
    pub(super) fn cut(&mut self, net: &mut KernelNet) -> Option<Dialled<N::Id>> {
        let (_, place) = *self.expiries.first()?;
        Some(self.refuse(net, place, ENDED))
    }

    fn on_attempt(
        &mut self,
        net: &mut KernelNet,
        place: u32,
        attempt: Attempt,
        now: Instant,
    ) -> Dialled<N::Id> {
        let Some(dial) = self.dials.get_mut(place) else { return Dialled::Pending };
        match attempt {
            Attempt::Open(far) => {
                self.preferred = dial.address;
                let near = dial.near;
                self.by_far.set(KernelNet::place(far), None);
                dial.state = DialState::Busy(now);
                self.take(net, place);
                Dialled::Open(near, far)
            }
            Attempt::Opening(far) => {
                dial.state = DialState::Opening(far);
                self.by_far.set(KernelNet::place(far), Some(place));
                Dialled::Pending
            }
            Attempt::Busy => {
                let due = now + dial.pause;
                dial.state = DialState::Busy(due);
                dial.pause = (dial.pause * 2).min(LONGEST_PAUSE);
                self.repeats.insert((due, place));
                Dialled::Pending
            }
            Attempt::Failed(error) => {
                dial.left -= 1;
                dial.state = DialState::Busy(now);
                if dial.left == 0 {
                    return self.refuse(net, place, error.name());
                }
                dial.address = (dial.address + 1) % self.server.addresses();
                let address = dial.address;
                let attempt = self.server.connect(net, address);
                self.on_attempt(net, place, attempt, now)
            }
        }
    }

    fn refuse(&mut self, net: &mut KernelNet, place: u32, why: &'static str) -> Dialled<N::Id> {
        count(&mut self.statistics.refused, why, 1);
        self.take(net, place).map_or(Dialled::Pending, Dialled::Refused)
    }

    /// Removes a dial, with the connection that opens for it. Returns its near side.
    fn take(&mut self, net: &mut KernelNet, place: u32) -> Option<N::Id> {
        self.release(net, place);
        let dial = self.dials.remove(place)?;
        self.expiries.remove(&(dial.expiry, place));
        self.waiting -= 1;
        self.by_near.set(N::place(dial.near), None);
        Some(dial.near)
    }

    /// Ends the attempt of a dial.
    fn release(&mut self, net: &mut KernelNet, place: u32) {
        let Some(dial) = self.dials.get_mut(place) else { return };
        match dial.state {
            DialState::Opening(far) => {
                self.by_far.set(KernelNet::place(far), None);
                net.abort(far);
            }
            DialState::Busy(due) => {
                self.repeats.remove(&(due, place));
            }
        }
    }
}

impl AddAssign<&Self> for DialStatistics {
    fn add_assign(&mut self, other: &Self) {
        let Self { repeated, withdrawn, refused, waiting } = other;
        self.repeated += repeated;
        self.withdrawn += withdrawn;
        self.waiting += waiting;
        refused.iter().for_each(|(why, number)| count(&mut self.refused, why, *number));
    }
}

fn count(counts: &mut Vec<(&'static str, u64)>, why: &'static str, number: u64) {
    match counts.iter_mut().find(|(known, _)| *known == why) {
        Some((_, count)) => *count += number,
        None => counts.push((why, number)),
    }
}

/// The time that the server has to accept a connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first pause after a refusal by a full backlog; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// The reasons that are no error of the system.
const BACKLOG_FULL: &str = "backlog full";
const ENDED: &str = "forward ended";
