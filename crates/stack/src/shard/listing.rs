//! A listing of all records in slices, so that a shard with a million of them serves packets in between.
//!
//! A slice visits at most 256 places; with snapshots, which cost as much again, 128. Records never move within a
//! slab, so what keeps its kind during the listing appears once. Kinds come in the order in which a connection
//! passes through them: what becomes a connection, or enters TIME-WAIT, during the listing appears at least once. A
//! record in TIME-WAIT whose 2 MSL begin again, because the peer repeated its FIN, has a new place and may appear
//! again; if they begin again twice, it may be left out ([`WaitsWalk`]).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_tcp::conn::{Connection, Snapshot, State, TimerPurpose};
use whimbrel_tcp::table::{Listener, PathClass, TimeWaits};
use whimbrel_wire::{Address, Endpoint};

use super::Shard;
use crate::tcp_host::inspect::{SocketState, StateCounts, socket_state};

/// The place at which a listing continues; the default is its beginning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ListingPlace {
    kind: ListedKind,
    next: u32,
}

/// The kinds of records, in the order of a listing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum ListedKind {
    #[default]
    Listener,
    Udp,
    HalfOpen,
    Connection,
    TimeWait(WaitsWalk),
}

/// A walk over the records in TIME-WAIT of a class. They enter at its end, and may do so faster than they are listed.
/// So the walk ends at the second end that it comes to: up to the first there is what was in TIME-WAIT when it began,
/// and up to the second what began its 2 MSL again meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct WaitsWalk {
    class: PathClass,
    /// Places up to the end.
    left: u32,
    is_second: bool,
}

/// Information that a listing has on each connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListingDetail {
    /// Ends, state, queues and timers.
    Brief,
    /// A [`Snapshot`], too.
    Full,
}

/// A record in a listing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Listed {
    /// Its state of RFC 9293 3.3.2; `None`: it is a UDP socket.
    pub state: Option<SocketState>,
    /// This side's end; a listener's address, and a UDP socket's, may be unspecified.
    pub local: Endpoint,
    /// The peer's end; a listener has none, and a UDP socket has one if it is connected.
    pub remote: Option<Endpoint>,
    /// Bytes that can be read; of a listener, connections that wait to be accepted.
    pub received: u64,
    /// Bytes that are unsent or not acknowledged; of a listener, the most connections that may wait.
    pub queued: u64,
    /// The deadlines that run.
    pub timers: Vec<ListedTimer>,
    /// The variables of a connection, by [`ListingDetail::Full`].
    pub snapshot: Option<Box<Snapshot>>,
}

/// A deadline of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedTimer {
    /// Its purpose.
    pub purpose: ListedPurpose,
    /// The time until it runs out; zero if it is due.
    pub left: Duration,
    /// The number of times in a row that it ran out without an answer.
    pub attempts: u8,
}

/// The purpose of a record's deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListedPurpose {
    /// A connection's.
    Connection(TimerPurpose),
    /// The SYN-ACK goes again.
    SynAck,
    /// The end of 2 MSL.
    TimeWait,
}

/// A listing of a shard's records.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'s> {
    shard: &'s Shard,
    detail: ListingDetail,
}

impl<'s> Listing<'s> {
    /// A listing with this detail.
    pub const fn new(shard: &'s Shard, detail: ListingDetail) -> Self {
        Self { shard, detail }
    }

    /// Lists the records in the next 256 places, at most, by [`ListingDetail::Full`] 128, and appends them to
    /// `listed`. Returns the place at which the next slice continues; `None` at the end.
    pub fn slice(&self, from: ListingPlace, listed: &mut Vec<Listed>) -> Option<ListingPlace> {
        let mut next = from.next;
        let places = if self.detail == ListingDetail::Full { SLICE / 2 } else { SLICE };
        let end = (next | (places - 1)).saturating_add(1);
        let went_on = loop {
            let Some(found) = self.list_next(from.kind, next, listed) else { break false };
            next = found;
            if next >= end || matches!(from.kind, ListedKind::TimeWait(_)) {
                break true;
            }
        };
        let waits = &self.shard.tcp.records.waits;
        let kind = match from.kind {
            ListedKind::TimeWait(walk) if went_on => {
                walk.continued(from.next, next, waits).map(ListedKind::TimeWait)
            }
            kind => went_on.then_some(kind),
        };
        let same = kind.map(|kind| ListingPlace { kind, next });
        same.or_else(|| from.kind.following(waits))
    }

    /// Adds the states of the connections in 256 places from `from` on, and at the beginning, 0, those of all
    /// other sockets. Returns the place at which the next slice continues; `None` at the end.
    pub fn count(&self, from: u32, counts: &mut StateCounts) -> Option<u32> {
        let (records, end) = (&self.shard.tcp.records, (from | (SLICE - 1)).saturating_add(1));
        if from == 0 {
            counts.add(SocketState::Listen, self.shard.tcp.passive.listeners.len());
            counts.add(SocketState::SynReceived, records.syns.len());
            counts.add(SocketState::TimeWait, records.waits.len());
        }
        let mut next = from;
        while next < end {
            match records.connections.0.first_from(next)? {
                Err(on) => next = on,
                Ok((index, slot)) => {
                    next = index + 1;
                    let state = socket_state(slot.connection.state());
                    // The record in TIME-WAIT counts.
                    let state = state.filter(|state| *state != SocketState::TimeWait);
                    state.into_iter().for_each(|state| counts.add(state, 1));
                }
            }
        }
        Some(next)
    }

    /// Lists the next record of this kind, if the next step of the walk comes by one. Returns where the walk
    /// continues.
    fn list_next(&self, kind: ListedKind, next: u32, listed: &mut Vec<Listed>) -> Option<u32> {
        let records = &self.shard.tcp.records;
        let (record, next) = match kind {
            ListedKind::Listener => {
                let step = self.shard.tcp.passive.listeners.first_from(next)?;
                match step {
                    Err(next) => return Some(next),
                    Ok((index, _)) => {
                        let open = self.shard.tcp.passive.listeners.get(index);
                        (open.map(Listed::of_listener), index + 1)
                    }
                }
            }
            ListedKind::Udp => match self.shard.packets.udp.sockets.first_from(next)? {
                Err(next) => return Some(next),
                Ok(handle) => (self.list_udp(handle), handle.index() + 1),
            },
            ListedKind::HalfOpen => match records.syns.first_from(next)? {
                Err(next) => return Some(next),
                Ok((index, _)) => (self.list_half_open(index), index + 1),
            },
            ListedKind::Connection => match records.connections.0.first_from(next)? {
                Err(next) => return Some(next),
                Ok((index, slot)) => (self.list_connection(&slot.connection), index + 1),
            },
            ListedKind::TimeWait(_) => return self.list_waits(next, listed),
        };
        listed.extend(record);
        Some(next)
    }

    fn list_udp(&self, handle: crate::UdpHandle) -> Option<Listed> {
        let sockets = &self.shard.packets.udp.sockets;
        let (received, queued) = sockets.queued(handle)?;
        let mut listed = Listed::new(None, sockets.local(handle)?, sockets.remote(handle));
        (listed.received, listed.queued) = (received as u64, queued as u64);
        Some(listed)
    }

    fn list_half_open(&self, index: u32) -> Option<Listed> {
        let records = &self.shard.tcp.records;
        let entry = records.syns.get(index)?;
        let local = self.local_endpoint(entry.local_index(), entry.local_port())?;
        let state = Some(SocketState::SynReceived);
        let mut listed = Listed::new(state, local, Some(entry.remote()));
        let left = records.syns.time_left(index, self.shard.cx.now);
        let timer =
            |left| ListedTimer { purpose: ListedPurpose::SynAck, left, attempts: entry.retries() };
        listed.timers.extend(left.map(timer));
        Some(listed)
    }

    fn list_connection(&self, connection: &Connection) -> Option<Listed> {
        // Of what is in TIME-WAIT, the record counts, though an application may hold the connection still.
        if connection.state() == State::TimeWait {
            return None;
        }
        let state = socket_state(connection.state())?;
        let local = self.local_endpoint(connection.local_index(), connection.local_port())?;
        let remote = Endpoint::new(*connection.remote(), connection.remote_port());
        let mut listed = Listed::new(Some(state), local, Some(remote));
        (listed.received, listed.queued) =
            (connection.unread().into(), connection.send_queued().into());
        let timer = |(purpose, at): (TimerPurpose, whimbrel_base::Instant)| ListedTimer {
            purpose: ListedPurpose::Connection(purpose),
            left: at.since(self.shard.cx.now),
            attempts: connection.unanswered(purpose),
        };
        listed.timers.extend(connection.deadlines().into_iter().flatten().map(timer));
        listed.snapshot = (self.detail == ListingDetail::Full)
            .then(|| Box::new(connection.snapshot(self.shard.cx.now, &self.shard.cx.tunables)));
        Some(listed)
    }

    /// Lists the next records in TIME-WAIT of the class of `next`: at most 256.
    fn list_waits(&self, mut next: u32, listed: &mut Vec<Listed>) -> Option<u32> {
        let records = &self.shard.tcp.records;
        for _ in 0..SLICE {
            let index = match records.waits.first_from(next)? {
                Err(next) => return Some(next),
                Ok((index, _)) => index,
            };
            listed.extend(self.list_wait(index));
            next = TimeWaits::index_after(index);
        }
        Some(next)
    }

    fn list_wait(&self, index: u32) -> Option<Listed> {
        let records = &self.shard.tcp.records;
        let ended = records.waits.get(index)?.ended();
        let local = self.local_endpoint(ended.local_index, ended.local_port)?;
        let remote = Endpoint::new(ended.remote, ended.remote_port);
        let mut listed = Listed::new(Some(SocketState::TimeWait), local, Some(remote));
        let left = records.waits.millis_left(index, self.shard.cx.now, &records.lifetimes)?;
        listed.timers.push(ListedTimer {
            purpose: ListedPurpose::TimeWait,
            left: Duration::from_millis(left.into()),
            attempts: 0,
        });
        Some(listed)
    }

    fn local_endpoint(&self, index: u16, port: u16) -> Option<Endpoint> {
        let addr: Address = *self.shard.net.ip.addresses.get(index)?;
        Some(Endpoint::new(addr, port))
    }
}

impl ListingPlace {
    /// True if listeners follow, with which a listing begins.
    pub fn is_at_listeners(self) -> bool {
        self.kind == ListedKind::Listener
    }

    /// True if only records in TIME-WAIT follow, with which a listing ends.
    pub const fn is_at_time_wait(self) -> bool {
        matches!(self.kind, ListedKind::TimeWait(_))
    }
}

impl ListedKind {
    /// Returns the place that follows the last record of this kind.
    fn following(self, waits: &TimeWaits) -> Option<ListingPlace> {
        let kind = match self {
            Self::Listener => Self::Udp,
            Self::Udp => Self::HalfOpen,
            Self::HalfOpen => Self::Connection,
            Self::Connection => return Self::waits_from(PathClass::ALL.first(), waits),
            Self::TimeWait(walk) => {
                let at = PathClass::ALL.iter().position(|other| *other == walk.class)?;
                return Self::waits_from(PathClass::ALL.get(at + 1), waits);
            }
        };
        Some(ListingPlace { kind, next: 0 })
    }

    fn waits_from(class: Option<&PathClass>, waits: &TimeWaits) -> Option<ListingPlace> {
        let class = *class?;
        let next = waits.first_of(class);
        let walk = WaitsWalk { class, left: waits.places_from(next), is_second: false };
        Some(ListingPlace { kind: Self::TimeWait(walk), next })
    }
}

impl WaitsWalk {
    /// The walk behind a slice; `None` at its end.
    fn continued(self, from: u32, next: u32, waits: &TimeWaits) -> Option<Self> {
        let left = self.left.saturating_sub(TimeWaits::places_between(from, next));
        let again = Self { left: waits.places_from(next), is_second: true, ..self };
        match left {
            0 => (!self.is_second).then_some(again),
            left => Some(Self { left, ..self }),
        }
    }
}

impl Listed {
    fn new(state: Option<SocketState>, local: Endpoint, remote: Option<Endpoint>) -> Self {
        let timers = Vec::new();
        Self { state, local, remote, received: 0, queued: 0, timers, snapshot: None }
    }

    fn of_listener(listener: &Listener) -> Self {
        let mut listed = Self::new(Some(SocketState::Listen), listener.at(), None);
        (listed.received, listed.queued) = (listener.waiting() as u64, listener.backlog().into());
        listed
    }
}

/// Places that a slice visits: those of a slab's chunk.
const SLICE: u32 = 256;
