//! All half-open connections of a shard, bounded, and the clock that repeats their SYN-ACKs.
//!
//! The time-out of a SYN-ACK depends only on how often it was repeated: `initial_rto << k`. So an
//! entry waits for its repetition in one of 31 queues, one per `k`, each in order of time by
//! itself: entering, leaving and finding the earliest cost O(1), and nothing is ever searched.
//! Rejected: the wheel of the connections, at 16 bytes a timer more than the links that stand
//! here inside the 64 bytes of the entry.
//!
//! The cache is bounded in all and per listener; what lies beyond is refused. At that point the
//! caller has two ways out: an answer without a record ([`Cookies`](super::Cookies), RFC 4987 3.6),
//! or [`SynCache::evict`] (RFC 4987 3.4).

use core::time::Duration;

use whimbrel_base::cold_path;
use whimbrel_base::time::millis;
use whimbrel_base::{Instant, Key, SipHasher24, Slab, Tick};

use super::syn_entry::{NONE, tick_rounded_up};
use super::{Listeners, SynEntry};
use crate::Tunables;

/// The half-open connections of one shard.
#[derive(Debug)]
pub struct SynCache {
    entries: Slab<SynEntry>,
    levels: [Level; LEVELS],
    /// Bit `k` is set if level `k` has an entry.
    occupied: u32,
    /// The latest time told. Earlier ones count as this, so that each queue stays in order.
    told: Instant,
    rules: Rules,
    /// One beyond the highest place that was taken since there was no entry.
    reach: u32,
    lots: SipHasher24,
    /// The number of lots were drawn.
    drawn: u64,
    /// The first entry that waits for a verdict not yet requested: the entries that follow it in its
    /// queue are the others. Or [`NONE`].
    unheard: u32,
}

/// The contents of the cache, and its decisions.
impl SynCache {
    /// A cache by these rules, empty. Who is evicted follows from `key`.
    pub fn new(tunables: &Tunables, key: &Key) -> Self {
        let rules = Rules::from(tunables);
        let level = |level| Level {
            head: NONE,
            tail: NONE,
            since: Tick::new(0),
            time_out: rules.time_out(level),
        };
        Self {
            entries: Slab::new(),
            levels: core::array::from_fn(level),
            occupied: 0,
            told: Instant::ZERO,
            rules,
            reach: 0,
            lots: key.prf(),
            drawn: 0,
            unheard: NONE,
        }
    }

    /// Judges the room for one more entry of the listener with this index.
    pub fn judge_room(&self, listener: u32, listeners: &Listeners) -> Result<(), SynCacheFull> {
        let limit = self.rules.max_entries;
        if self.entries.len() >= limit as usize {
            return Err(SynCacheFull::InAll { limit });
        }
        match listeners.get(listener) {
            Some(it) if it.is_half_open_full() => {
                Err(SynCacheFull::Listener { limit: it.half_open_limit() })
            }
            _ => Ok(()),
        }
    }

    /// The entry with this index.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&SynEntry> {
        self.entries.get(index)
    }

    /// The entry with this index.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut SynEntry> {
        self.entries.get_mut(index)
    }

    /// The number of times that an entry was taken out of the place at `index`, modulo 2^16 ([`Slab::generation`]).
    pub fn generation(&self, index: u32) -> u16 {
        self.entries.generation(index)
    }

    /// The first entry at `index` or above; `Err(next)` says where to go on ([`Slab::first_from`]).
    pub fn first_from(&self, index: u32) -> Option<Result<(u32, &SynEntry), u32>> {
        self.entries.first_from(index)
    }

    /// The time until the SYN-ACK of an entry goes again, or the entry expires.
    pub fn time_left(&self, index: u32, now: Instant) -> Option<Duration> {
        let entry = self.entries.get(index)?;
        let level = if entry.is_held() { HELD } else { usize::from(entry.retries()) };
        let due = entry.since.raw().wrapping_add(self.levels.get(level)?.time_out);
        let left = due.wrapping_sub(now.tick().raw()).cast_signed();
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    /// Returns the milliseconds from the SYN of an entry to its completion now; `None` if it is of a cookie.
    #[inline]
    pub fn handshake_millis(&self, entry: &SynEntry, now: Instant) -> Option<u64> {
        let last = u64::from(entry.millis_since_syn_ack(now)?);
        if entry.retries() == 0 {
            return Some(last);
        }
        cold_path();
        let levels = self.levels.get(..entry.retries().into()).unwrap_or(&self.levels);
        Some(levels.iter().map(|level| u64::from(level.time_out)).sum::<u64>() + last)
    }

    /// The number of there are.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory that the cache holds.
    pub fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<Slab<SynEntry>>() + self.entries.memory()
    }
}

/// Entries that come, move on and go.
impl SynCache {
    /// Goes by these rules from now on. Time-outs that run follow at once; entries above a lower
    /// bound stay.
    pub fn set_rules(&mut self, tunables: &Tunables) {
        self.rules = Rules::from(tunables);
        for (level, queue) in self.levels.iter_mut().enumerate() {
            queue.time_out = self.rules.time_out(level);
        }
    }

    /// Takes an entry in, whose SYN-ACK is sent now, and counts it for its listener; the caller
    /// found room for it, or made some.
    pub fn insert(&mut self, entry: SynEntry, listeners: &mut Listeners, now: Instant) -> u32 {
        self.make_way(entry.listener(), listeners, now);
        let index = self.entries.insert_here(entry);
        self.reach = self.reach.max(index + 1);
        self.link(index, 0);
        index
    }

    /// An entry of this listener's comes.
    fn make_way(&mut self, listener: u32, listeners: &mut Listeners, now: Instant) {
        listeners.admit_half_open(listener);
        self.told = self.told.max(now);
        if self.entries.is_empty() {
            self.reach = 0;
        }
    }

    /// Takes the oldest out of some entries that are drawn by lot, to make room for another of
    /// this listener. `None` if none of them would make any: too few entries are its.
    ///
    /// The oldest of all would be the easiest to find, and for a flood the easiest to aim at: its
    /// sender would know how long each entry lives. A lot alone takes many that would be answered in
    /// an instant. An entry whose SYN-ACK was acknowledged stays, and one that waits for a verdict.
    pub fn evict(&mut self, listener: u32, listeners: &mut Listeners) -> Option<(u32, SynEntry)> {
        let full = self.judge_room(listener, listeners).err()?;
        let any = matches!(full, SynCacheFull::InAll { .. });
        let mut chosen: Option<(u32, u8, u32)> = None;
        for index in self.draw() {
            let Some(entry) = self.entries.get(index) else { continue };
            if entry.is_deferred() || entry.is_held() || !(any || entry.listener() == listener) {
                continue;
            }
            let (retries, age) =
                (entry.retries(), tick_rounded_up(self.told).millis_since(entry.since));
            if chosen.is_none_or(|(_, most, oldest)| (retries, age) > (most, oldest)) {
                chosen = Some((index, retries, age));
            }
        }
        let (index, ..) = chosen?;
        self.remove(index, listeners).map(|entry| (index, entry))
    }

    /// Takes an entry out: completed, reset, or no longer wanted.
    pub fn remove(&mut self, index: u32, listeners: &mut Listeners) -> Option<SynEntry> {
        let entry = self.entries.get(index)?;
        if self.unheard == index {
            self.unheard = entry.next;
        }
        self.remove_answered(index, listeners)
    }

    /// Removes an entry that does not wait for a verdict.
    // Always: the entry would be copied on its way out.
    #[inline(always)]
    pub fn remove_answered(&mut self, index: u32, listeners: &mut Listeners) -> Option<SynEntry> {
        debug_assert!(self.unheard != index, "its verdict was not requested");
        self.unlink(index)?;
        let entry = self.entries.remove(index)?;
        listeners.release_half_open(entry.listener());
        Some(entry)
    }

    /// Places that no peer can foresee; each hash is good for two.
    fn draw(&mut self) -> [u32; LOTS] {
        let mut places = [0; LOTS];
        for [one, other] in places.as_chunks_mut::<2>().0 {
            self.drawn += 1;
            let lot = self.lots.hash(&self.drawn.to_be_bytes());
            *one = (lot as u32).checked_rem(self.reach).unwrap_or(0);
            *other = ((lot >> 32) as u32).checked_rem(self.reach).unwrap_or(0);
        }
        places
    }
}

/// Entries that wait for a verdict.
impl SynCache {
    /// The time for which one may wait: as long as Linux goes on asking (`tcp_syn_retries` of 6).
    pub const VERDICT_TIMEOUT: Duration = Duration::from_secs(127);

    /// Takes an entry in that is not answered until it is [admitted](SynCache::admit), and counts it for its
    /// listener; the caller found room for it.
    pub fn hold(&mut self, entry: SynEntry, listeners: &mut Listeners, now: Instant) -> u32 {
        self.make_way(entry.listener(), listeners, now);
        let index = self.entries.insert(entry.into_held());
        self.reach = self.reach.max(index + 1);
        self.link(index, HELD);
        if self.unheard == NONE {
            self.unheard = index;
        }
        index
    }

    /// Returns the entry that has waited longest of those whose verdict was not requested, and notes the request.
    pub fn ask(&mut self) -> Option<(u32, &SynEntry)> {
        let index = self.unheard;
        let entry = self.entries.get_mut(index)?;
        entry.on_asked();
        self.unheard = entry.next;
        Some((index, entry))
    }

    /// Its SYN-ACK is sent now; from here on it is as any other. Returns whether it waited.
    pub fn admit(&mut self, index: u32, now: Instant) -> bool {
        if !self.entries.get(index).is_some_and(SynEntry::is_held) {
            return false;
        }
        self.told = self.told.max(now);
        if self.unheard == index {
            self.unheard = self.entries.get(index).map_or(NONE, |entry| entry.next);
        }
        self.unlink(index);
        if let Some(entry) = self.entries.get_mut(index) {
            entry.on_admitted();
        }
        self.link(index, 0);
        true
    }

    /// The one that has waited longest for a verdict.
    pub fn first_held(&self) -> Option<u32> {
        let index = self.levels[HELD].head;
        (index != NONE).then_some(index)
    }
}

/// The next thing to do.
impl SynCache {
    /// The next thing that is due at `now`, one at a time: the caller has the budget. A
    /// repetition counts as sent with this call.
    pub fn pop_due(&mut self, now: Instant, listeners: &mut Listeners) -> Option<Due> {
        self.told = self.told.max(now);
        let (level, deadline) = self.earliest()?;
        if deadline > self.told {
            return None;
        }
        let index = self.levels.get(level)?.head;
        let (retries, listener) =
            self.entries.get(index).map(|entry| (entry.retries(), entry.listener()))?;
        // Closing a listener touches none of its entries: each goes when its time comes.
        let Some(owner) = listeners.get(listener) else {
            return self.remove(index, listeners).map(|entry| Due::Orphaned(index, entry));
        };
        let most = owner.options().overrides.syn_retries.unwrap_or(self.rules.retries);
        if retries >= most.min(MOST_RETRIES) {
            return self.remove(index, listeners).map(|entry| Due::Expired(index, entry));
        }
        self.unlink(index)?;
        // The next is due a time-out from now, however late this was called.
        self.link(index, level + 1);
        Some(Due::Repeat(index))
    }

    /// When [`SynCache::pop_due`] will have something.
    #[inline]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.earliest().map(|(_, deadline)| deadline)
    }
}

/// The queues of entries, one for each number of SYN-ACKs that were sent.
impl SynCache {
    /// The level whose head is due first, and when: at most 31 numbers are looked at, all of them
    /// in the cache itself.
    fn earliest(&self) -> Option<(usize, Instant)> {
        let told_millis = self.told.as_nanos() / NANOS_PER_MILLI;
        self.occupied_levels()
            .filter_map(|level| {
                let queue = self.levels.get(level)?;
                let due = queue.since.raw().wrapping_add(queue.time_out);
                // Ticks compare within 24.8 days; an entry left alone for longer looks due later.
                let ahead = due.wrapping_sub(told_millis as u32).cast_signed();
                let millis = told_millis.saturating_add_signed(i64::from(ahead));
                Some((level, Instant::from_millis(millis)))
            })
            .min_by_key(|(_, deadline)| *deadline)
    }

    /// The levels that have an entry, highest first: usually level 0 alone.
    fn occupied_levels(&self) -> impl Iterator<Item = usize> {
        let mut left = self.occupied;
        core::iter::from_fn(move || {
            let level = left.checked_ilog2()?;
            left &= !(1 << level);
            Some(level as usize)
        })
    }

    /// Appends an entry to a level, as of the time last told. The entry's retries follow.
    fn link(&mut self, index: u32, level: usize) {
        let since = tick_rounded_up(self.told);
        let Some(queue) = self.levels.get_mut(level) else { return };
        let tail = core::mem::replace(&mut queue.tail, index);
        if tail == NONE {
            queue.head = index;
            queue.since = since;
            self.occupied |= 1 << level;
        }
        if let Some(last) = self.entries.get_mut(tail) {
            last.next = index;
        }
        if let Some(entry) = self.entries.get_mut(index) {
            entry.previous = tail;
            entry.next = NONE;
            entry.since = since;
            entry.set_retries(level as u8);
        }
    }

    /// Takes an entry out of its level.
    #[inline(always)]
    fn unlink(&mut self, index: u32) -> Option<()> {
        let entry = self.entries.get(index)?;
        let (previous, next, level) = (entry.previous, entry.next, usize::from(entry.retries()));
        let queue = self.levels.get_mut(level)?;
        match self.entries.get_mut(previous) {
            Some(entry) => entry.next = next,
            None => queue.head = next,
        }
        match self.entries.get_mut(next) {
            Some(entry) => {
                entry.previous = previous;
                if previous == NONE {
                    queue.since = entry.since;
                }
            }
            None => queue.tail = previous,
        }
        if queue.head == NONE {
            self.occupied &= !(1 << level);
        }
        Some(())
    }
}

/// The action that is due for a half-open entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// The SYN-ACK of the entry with this index is to be sent again.
    Repeat(u32),
    /// No answer came to any SYN-ACK, or no verdict; the entry, which had this index, is out.
    Expired(u32, SynEntry),
    /// Its listener closed; the entry, which had this index, is out.
    Orphaned(u32, SynEntry),
}

/// Why a SYN found no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SynCacheFull {
    /// The bound on all entries.
    #[error("SYN cache full: {limit} half-open connections in all; raise max_syn_entries")]
    InAll {
        /// The most entries, which are there.
        limit: u32,
    },
    /// The bound on one listener's entries.
    #[error("SYN cache full: {limit} half-open connections of one listener; raise its backlog")]
    Listener {
        /// The most entries, which are there.
        limit: u32,
    },
}

/// Entries that were repeated equally often, in order of time.
#[derive(Clone, Copy, Debug)]
struct Level {
    head: u32,
    tail: u32,
    /// When the head entered: kept here, so that asking for the deadline reads no entry.
    since: Tick,
    /// Milliseconds from entering to being due.
    time_out: u32,
}

/// The tunables that count here.
#[derive(Clone, Copy, Debug)]
struct Rules {
    max_entries: u32,
    retries: u8,
    /// The first retransmission time-out, in milliseconds.
    initial_rto: u32,
    /// Milliseconds; at least `initial_rto`.
    max_rto: u32,
}

impl Rules {
    /// Milliseconds from entering a level to being due.
    fn time_out(&self, level: usize) -> u32 {
        if level == HELD {
            return SynCache::VERDICT_TIMEOUT.as_millis() as u32;
        }
        // RFC 6298 5.5: "The host MUST set RTO <- RTO * 2 ("back off the timer")"
        let backed_off = u64::from(self.initial_rto) << level;
        backed_off.min(u64::from(self.max_rto)) as u32
    }
}

impl From<&Tunables> for Rules {
    fn from(tunables: &Tunables) -> Self {
        let initial_rto = millis(tunables.initial_rto.into()).clamp(1, MAX_MILLIS);
        Self {
            max_entries: tunables.max_syn_entries,
            retries: tunables.synack_retries.min(MOST_RETRIES),
            initial_rto,
            max_rto: millis(tunables.max_rto.into()).clamp(initial_rto, MAX_MILLIS),
        }
    }
}

/// The number of places are drawn for one eviction.
const LOTS: usize = 8;
/// One level for the entries not yet repeated, one for each of up to 30 repetitions, and [`HELD`].
const LEVELS: usize = HELD + 1;
const MOST_RETRIES: u8 = 30;
/// The level of entries that wait for a verdict.
const HELD: usize = MOST_RETRIES as usize + 1;
const NANOS_PER_MILLI: u64 = 1_000_000;
/// An hour: far above any time-out, far below what ticks can compare.
const MAX_MILLIS: u32 = 3_600_000;

#[cfg(test)]
mod tests;
