//! Listeners: endpoints, their backlogs, and the complete connections that wait for `accept`.
//!
//! A listener never sees a connection that is not complete: half-open ones are entries of the
//! [SYN cache](super::SynCache), of which it only knows the number.
//!
//! Closing a listener touches none of its half-open entries. Its number stays taken, found by
//! no look-up, until the last of them is gone: completed and refused, reset, or timed out. So a number
//! in an entry never comes to mean another listener, and closing costs O(accept queue).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};

use whimbrel_base::{Instant, Slab};
use whimbrel_wire::{Address, Endpoint, Family};

use super::{Cookies, FastOpenKeys, PassiveLatencies};
use crate::conn::SocketOptions;

/// The listeners of one shard.
#[derive(Debug, Default)]
pub struct Listeners {
    listeners: Slab<Listener>,
    /// The index of each by place. An unspecified address stands for every address of its family.
    places: BTreeMap<(u16, Address), u32>,
    /// The listener for what no other takes.
    any: Option<u32>,
    generation: u32,
    /// Times of handshakes and of waits, if they are recorded.
    latencies: Option<Box<PassiveLatencies>>,
}

impl Listeners {
    /// An empty table.
    pub const fn new() -> Self {
        Self {
            listeners: Slab::new(),
            places: BTreeMap::new(),
            any: None,
            generation: 0,
            latencies: None,
        }
    }

    /// Listens at `at`; an unspecified address means every address of its family, and of the
    /// other as `families` says. Up to `backlog` (0 counts as 1) complete connections wait.
    pub fn add(
        &mut self,
        at: Endpoint,
        families: Families,
        backlog: u32,
    ) -> Result<ListenerId, EndpointInUse> {
        let places = places_of(at, families);
        if places.into_iter().flatten().any(|place| self.places.contains_key(&place)) {
            return Err(EndpointInUse { at });
        }
        let id = self.insert(Listener::new(at, families, backlog));
        for place in places.into_iter().flatten() {
            self.places.insert(place, id.index);
        }
        Ok(id)
    }

    /// Listens for every SYN that finds no other listener: at every port of every address. Each waits, unanswered,
    /// for a verdict; at most [`Listener::MOST_BY_VERDICT`] are half open. There is one such listener.
    pub fn add_any(&mut self) -> Result<ListenerId, EndpointInUse> {
        let at = Endpoint::new(unspecified(Family::V6), 0);
        if self.any.is_some() {
            return Err(EndpointInUse { at });
        }
        let backlog = Listener::MOST_BY_VERDICT;
        let mut listener = Listener::new(at, Families::DualStack, backlog);
        listener.is_any = true;
        let id = self.insert(listener);
        self.any = Some(id.index);
        Ok(id)
    }

    fn insert(&mut self, listener: Listener) -> ListenerId {
        self.generation = self.generation.wrapping_add(1);
        let is_timed = self.latencies.is_some();
        let index = self.listeners.insert(listener);
        let id = ListenerId { index, generation: self.generation };
        if let Some(listener) = self.listeners.get_mut(index) {
            listener.id = id;
            if is_timed {
                listener.begin_timing(Instant::ZERO);
            }
        }
        id
    }

    /// The index of the listener for a SYN to `local`: one at exactly this address before one at
    /// the unspecified address, and last the one for what no other takes.
    pub fn find(&self, local: &Endpoint) -> Option<u32> {
        let place = |addr| self.places.get(&(local.port, addr)).copied();
        place(local.addr).or_else(|| place(unspecified(local.addr.family()))).or(self.any)
    }

    /// The index of the listener for what no other takes.
    pub const fn any(&self) -> Option<u32> {
        self.any
    }

    /// The listener with this index, unless it closed.
    pub fn get(&self, index: u32) -> Option<&Listener> {
        self.listeners.get(index).filter(|listener| listener.state != State::Closed)
    }

    /// The listener with this index, unless it closed.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Listener> {
        self.listeners.get_mut(index).filter(|listener| listener.state != State::Closed)
    }

    /// The listener that an application names, unless it closed.
    pub fn resolve(&self, id: ListenerId) -> Option<&Listener> {
        self.get(id.index).filter(|listener| listener.id == id)
    }

    /// The listener that an application names, unless it closed.
    pub fn resolve_mut(&mut self, id: ListenerId) -> Option<&mut Listener> {
        self.get_mut(id.index).filter(|listener| listener.id == id)
    }

    /// Takes the connection that waited longest at this listener, if its waits are not timed. The outer `None`
    /// says that they are, or that `id` names no listener: [`Listeners::pop_timed`] then does it.
    #[inline]
    pub fn pop_untimed(&mut self, id: ListenerId) -> Option<Option<u32>> {
        let listener = self.listeners.get_mut(id.index);
        let untimed = listener.filter(|it| it.state == State::Open && it.id == id);
        untimed.map(Listener::pop_accepted)
    }

    /// Takes the connection that waited longest at a listener, and notes how long.
    #[cold]
    #[inline(never)]
    pub fn pop_timed(&mut self, id: ListenerId, now: Instant) -> Option<u32> {
        let listener = self.resolve_mut(id)?;
        let index = listener.pop_accepted()?;
        let since = listener.waits.pop_front();
        if let (Some(latencies), Some(since)) = (&mut self.latencies, since) {
            latencies.accept_wait.note(now.nanos_since(since));
        }
        Some(index)
    }

    /// Records [`PassiveLatencies`] from now on.
    pub fn record_latencies(&mut self, now: Instant) {
        if self.latencies.is_some() {
            return;
        }
        self.latencies = Some(Box::default());
        let (ids, mut next) = (&mut self.listeners, 0);
        while let Some(found) = ids.first_from(next) {
            next = match found {
                Err(on) => on,
                Ok((index, _)) => {
                    if let Some(listener) = ids.get_mut(index) {
                        listener.begin_timing(now);
                    }
                    index + 1
                }
            };
        }
    }

    /// Returns the times recorded so far; `None` if none are recorded.
    pub fn latencies(&self) -> Option<&PassiveLatencies> {
        self.latencies.as_deref()
    }

    /// Notes that the newest connection of a listener waits from now on, and how long its handshake took, if that
    /// is known and both are timed.
    #[inline]
    pub fn note_opened(&mut self, index: u32, now: Instant, handshake_millis: Option<u64>) {
        let Some(latencies) = &mut self.latencies else { return };
        if let Some(listener) = self.listeners.get_mut(index).filter(|it| it.state == State::Timed)
        {
            listener.waits.push_back(now);
            if let Some(millis) = handshake_millis {
                latencies.handshake.note(millis * 1_000_000);
            }
        }
    }

    /// Changes how many complete connections may wait (0: none, for now); those that wait stay.
    /// Returns whether `id` names a listener.
    pub fn set_backlog(&mut self, id: ListenerId, backlog: u32) -> bool {
        let listener = self.resolve_mut(id);
        listener.map(|listener| listener.backlog = backlog).is_some()
    }

    /// Changes what connections that complete from now on inherit. Returns whether `id` names a
    /// listener.
    pub fn set_options(&mut self, id: ListenerId, options: &SocketOptions) -> bool {
        let listener = self.resolve_mut(id);
        let set = |listener: &mut Listener| {
            listener.options = *options;
            listener.inheritance = match listener.state {
                _ if *options != SocketOptions::default() => Inheritance::Options,
                State::Timed => Inheritance::Times,
                State::Open | State::Closed => Inheritance::Nothing,
            };
        };
        listener.map(set).is_some()
    }

    /// Changes how many connections may at one time be in a handshake that Fast Open began; 0: none
    /// is (RFC 7413 4.2). Returns whether `id` names a listener.
    pub fn set_fast_open(&mut self, id: ListenerId, most: u32) -> bool {
        let listener = self.resolve_mut(id);
        listener.map(|listener| listener.fast_open.limit = most).is_some()
    }

    /// Gives a listener keys of its own for the cookies of Fast Open. Returns whether `id` names one.
    pub fn set_fast_open_keys(&mut self, id: ListenerId, keys: FastOpenKeys) -> bool {
        let listener = self.resolve_mut(id);
        listener.map(|listener| listener.fast_open.keys = Some(Box::new(keys))).is_some()
    }

    /// One more connection is in a handshake that Fast Open began.
    pub fn admit_fast_open(&mut self, id: ListenerId) {
        if let Some(listener) = self.resolve_mut(id) {
            listener.fast_open.pending += 1;
        }
    }

    /// One handshake of Fast Open less is under way.
    pub fn release_fast_open(&mut self, id: ListenerId) {
        if let Some(listener) = self.resolve_mut(id) {
            debug_assert!(listener.fast_open.pending > 0, "more fast opens ended than began");
            listener.fast_open.pending = listener.fast_open.pending.saturating_sub(1);
        }
    }

    /// Every listener: the one for what no other takes, then by port and address.
    pub fn iter(&self) -> impl Iterator<Item = &Listener> {
        let any = self.any.and_then(|index| self.get(index));
        any.into_iter().chain(self.at_places())
    }

    /// The first listener at `index` or above, open or not; `Err(next)` says where to go on
    /// ([`Slab::first_from`]).
    pub fn first_from(&self, index: u32) -> Option<Result<(u32, &Listener), u32>> {
        self.listeners.first_from(index)
    }

    fn at_places(&self) -> impl Iterator<Item = &Listener> {
        self.places.iter().filter_map(|((_, addr), index)| {
            // One of two families stands in two places.
            self.get(*index).filter(|listener| listener.at.addr == *addr)
        })
    }

    /// Stops listening. Returns the connections that were not accepted, oldest first, for the caller
    /// to reset; `None` if `id` names no listener.
    pub fn remove(&mut self, id: ListenerId) -> Option<VecDeque<u32>> {
        let listener = self.resolve_mut(id)?;
        listener.state = State::Closed;
        listener.waits = VecDeque::new();
        let waiting = core::mem::take(&mut listener.accept_queue);
        let (places, half_open) = (places_of(listener.at, listener.families), listener.half_open);
        if self.any == Some(id.index) {
            self.any = None;
        } else {
            for place in places.into_iter().flatten() {
                self.places.remove(&place);
            }
        }
        if half_open == 0 {
            self.listeners.remove(id.index);
        }
        Some(waiting)
    }

    /// The number of there are; closed ones count while they have half-open entries.
    pub const fn len(&self) -> usize {
        self.listeners.len()
    }

    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    /// One more half-open entry; whether there was room for it, the caller has judged.
    pub(super) fn admit_half_open(&mut self, index: u32) {
        if let Some(listener) = self.get_mut(index) {
            listener.half_open += 1;
        }
    }

    /// A SYN was dropped because there was no room for another half-open entry.
    pub fn on_syn_dropped(&mut self, index: u32) {
        if let Some(listener) = self.get_mut(index) {
            listener.stats.syn_drops += 1;
        }
    }

    /// One half-open entry less. The last one of a closed listener frees its number.
    pub(super) fn release_half_open(&mut self, index: u32) {
        let Some(listener) = self.listeners.get_mut(index) else {
            debug_assert!(false, "a half-open entry outlived listener {index}");
            return;
        };
        debug_assert!(listener.half_open > 0, "more half-open entries left than came");
        listener.half_open = listener.half_open.saturating_sub(1);
        if listener.half_open == 0 && listener.state == State::Closed {
            self.listeners.remove(index);
        }
    }
}

/// A listener with its accept queue and its options.
#[derive(Debug)]
pub struct Listener {
    id: ListenerId,
    at: Endpoint,
    families: Families,
    state: State,
    backlog: u32,
    half_open: u32,
    accept_queue: VecDeque<u32>,
    /// Times since which these wait, if they are timed.
    waits: VecDeque<Instant>,
    stats: ListenerStats,
    /// When the last SYN cookie was sent.
    cookie_sent: Option<Instant>,
    options: SocketOptions,
    inheritance: Inheritance,
    /// Its application is being told that a connection waits.
    telling: bool,
    /// It takes what no other takes, by verdicts.
    is_any: bool,
    fast_open: FastOpenQueue,
}

/// Kind of what connections have of their listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inheritance {
    /// Nothing: they begin as the tunables say.
    Nothing,
    /// Nothing, but times of them are recorded.
    Times,
    /// Its options; their times may be recorded, too.
    Options,
}

/// The Fast Open queue of a listener (RFC 7413 4.2).
#[derive(Default, Debug)]
struct FastOpenQueue {
    /// 0: FastOpenEnabled is off.
    limit: u32,
    /// Handshakes of Fast Open under way (RFC 7413 4.2: PendingFastOpenRequests).
    pending: u32,
    /// Few have their own.
    keys: Option<Box<FastOpenKeys>>,
}

impl Listener {
    /// The least bound on half-open entries, for backlogs so small that one burst of SYNs from a
    /// single page load would be refused.
    pub const MIN_HALF_OPEN: u32 = 16;

    /// The most half-open entries by verdicts, in all: those that wait for one, and those that it answered.
    pub const MOST_BY_VERDICT: u32 = 4_096;

    fn new(at: Endpoint, families: Families, backlog: u32) -> Self {
        Self {
            id: ListenerId { index: 0, generation: 0 },
            at,
            families,
            state: State::Open,
            backlog: backlog.max(1),
            half_open: 0,
            accept_queue: VecDeque::new(),
            waits: VecDeque::new(),
            stats: ListenerStats::default(),
            cookie_sent: None,
            options: SocketOptions::default(),
            inheritance: Inheritance::Nothing,
            telling: false,
            is_any: false,
            fast_open: FastOpenQueue::default(),
        }
    }

    /// The identifier by which an application knows it.
    pub const fn id(&self) -> ListenerId {
        self.id
    }

    /// The address and port where it listens.
    pub const fn at(&self) -> Endpoint {
        self.at
    }

    /// The families whose addresses an unspecified one stands for.
    pub const fn families(&self) -> Families {
        self.families
    }

    /// True if it takes what no other takes, by verdicts.
    #[inline]
    pub const fn is_any(&self) -> bool {
        self.is_any
    }

    /// A handshake that it admitted is complete.
    pub const fn on_opened(&mut self) {
        self.stats.accepted += 1;
    }

    /// The options that its connections inherit.
    pub const fn options(&self) -> &SocketOptions {
        &self.options
    }

    /// True if no option was set, so that its connections begin as the tunables say.
    pub const fn has_default_options(&self) -> bool {
        !matches!(self.inheritance, Inheritance::Options)
    }

    /// Returns what its connections have of it.
    pub const fn inheritance(&self) -> Inheritance {
        self.inheritance
    }

    /// Times the connections that wait, those from before from `now` on. One for any destination has no such queue.
    fn begin_timing(&mut self, now: Instant) {
        if self.state == State::Open && !self.is_any {
            self.state = State::Timed;
            if self.inheritance == Inheritance::Nothing {
                self.inheritance = Inheritance::Times;
            }
            self.waits.extend(self.accept_queue.iter().map(|_| now));
        }
    }

    /// True if a handshake whose SYN-ACK was repeated `retries` times has to wait for text.
    pub const fn defers(&self, retries: u8) -> bool {
        retries < self.options.defer_accept
    }

    /// The most connections that wait to be accepted.
    pub const fn backlog(&self) -> u32 {
        self.backlog
    }

    /// The number of half-open entries it has.
    pub const fn half_open(&self) -> u32 {
        self.half_open
    }

    /// The most half-open entries: the backlog, as in Linux since 4.4, but at least
    /// [`Listener::MIN_HALF_OPEN`]. More could not be accepted if all of them completed at once.
    pub const fn half_open_limit(&self) -> u32 {
        if self.backlog < Self::MIN_HALF_OPEN { Self::MIN_HALF_OPEN } else { self.backlog }
    }

    /// True if one more half-open entry would exceed that.
    pub const fn is_half_open_full(&self) -> bool {
        self.half_open >= self.half_open_limit()
    }

    /// The most connections that may at one time be in a handshake that Fast Open began; 0: none.
    pub const fn fast_open_limit(&self) -> u32 {
        self.fast_open.limit
    }

    /// The keys of its cookies, if they are not those of all listeners.
    pub fn fast_open_keys(&self) -> Option<&FastOpenKeys> {
        self.fast_open.keys.as_deref()
    }

    /// True if one more would exceed the limit.
    pub const fn is_fast_open_full(&self) -> bool {
        self.fast_open.pending >= self.fast_open.limit
    }

    /// The number of complete connections wait to be accepted.
    pub fn waiting(&self) -> usize {
        self.accept_queue.len()
    }

    /// True if one more complete connection would exceed the backlog.
    pub fn is_accept_queue_full(&self) -> bool {
        self.accept_queue.len() >= self.backlog as usize
    }

    /// A connection is complete: it waits from now on. At the bound it is refused, and counted.
    pub fn push_accepted(&mut self, connection: u32) -> Result<(), AcceptQueueFull> {
        if self.is_accept_queue_full() {
            self.on_overflow();
            return Err(AcceptQueueFull { backlog: self.backlog });
        }
        self.accept_queue.push_back(connection);
        self.stats.accepted += 1;
        Ok(())
    }

    /// Notes that a connection waits and that the application is to be notified; returns true unless a
    /// notification was pending already.
    pub const fn tells(&mut self) -> bool {
        !core::mem::replace(&mut self.telling, true)
    }

    /// Its application was told.
    pub const fn note_told(&mut self) {
        self.telling = false;
    }

    /// The connection that waited longest.
    pub fn pop_accepted(&mut self) -> Option<u32> {
        self.accept_queue.pop_front()
    }

    /// The accept queue was found full before a connection was built for it.
    pub const fn on_overflow(&mut self) {
        self.stats.overflows += 1;
    }

    /// A SYN is answered by a cookie.
    pub const fn on_cookie_sent(&mut self, now: Instant) {
        self.stats.cookies_sent += 1;
        self.cookie_sent = Some(now);
    }

    /// True if a cookie that it sent may still be under way.
    pub fn has_cookies_out(&self, now: Instant) -> bool {
        self.cookie_sent.is_some_and(|sent| now.since(sent) <= Cookies::LIFETIME)
    }

    /// Counts so far.
    pub const fn stats(&self) -> ListenerStats {
        self.stats
    }
}

/// Names a listener of one shard. An id whose listener closed names nothing, even after its place
/// was taken by another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListenerId {
    index: u32,
    generation: u32,
}

impl ListenerId {
    /// A small number, unique among the shard's listeners at any one time.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Tells apart the listeners that had the same index.
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

/// The families whose addresses an unspecified address stands for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Families {
    /// Those of its own family (`IPV6_V6ONLY`, RFC 3493 5.3).
    #[default]
    Own,
    /// `::` takes IPv4 connections too. With any other address the same as [`Families::Own`].
    DualStack,
}

/// Counts of one listener.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ListenerStats {
    /// Connections that became complete and entered the accept queue.
    pub accepted: u64,
    /// Complete connections that were refused because the accept queue was full; a handshake
    /// counts each time its last segment arrives.
    pub overflows: u64,
    /// SYNs dropped because this listener, or the SYN cache, had no room for another entry.
    pub syn_drops: u64,
    /// SYNs answered by a cookie.
    pub cookies_sent: u64,
}

/// Another listener is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("address in use: another listener is at {at}; choose another port or close it")]
pub struct EndpointInUse {
    /// The endpoint that was asked for.
    pub at: Endpoint,
}

/// No more connections may wait to be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("accept queue full: {backlog} connections wait; accept faster or raise the backlog")]
pub struct AcceptQueueFull {
    /// The most connections that may wait.
    pub backlog: u32,
}

/// The state of a listener: it takes connections, or only waits for its half-open entries to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Open,
    /// It takes connections, and notes how long they wait.
    Timed,
    Closed,
}

/// The keys under which a listener is found: one, or two for a dual stack.
fn places_of(at: Endpoint, families: Families) -> [Option<(u16, Address)>; 2] {
    let dual = families == Families::DualStack && at.addr == unspecified(Family::V6);
    [Some((at.port, at.addr)), dual.then_some((at.port, unspecified(Family::V4)))]
}

/// The unspecified address, `0.0.0.0` or `::`.
const fn unspecified(family: Family) -> Address {
    match family {
        Family::V4 => Address::from_v4_bytes([0; 4]),
        Family::V6 => Address::from_bytes([0; 16]),
    }
}

#[cfg(test)]
mod tests;
