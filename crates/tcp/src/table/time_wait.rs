//! TIME-WAIT: what remains of a connection when both sides are done, for 2 MSL.
//!
//! A [`TimeWait`] is 48 bytes for either family, 59 with its slot in the flow table, and 64 at most
//! where ports come back at random, as rings then have holes. It has no timer: its age is its entry
//! tick, its life time follows from its path class. A ring a class is slab and queue at once, so
//! entering, ending, and expiring are O(1), ten million or ten.
//!
//! **A changed MSL** applies at once, to records old and new: deadlines are computed, entry + 2 MSL
//! in force, when the head of a ring is looked at. All records of a ring move by the same amount,
//! so the order of entry stays the order of expiry. (Rejected: a new ring at each change. It needs
//! a bound on rings, a third coordinate in the index, and lets an MSL that someone shortens in
//! distress act only on those who did not yet suffer from it.)
//!
//! **Ticks** wrap after 49.7 days; a record lives 510 s at most (MSL is at most 255 s), so ages are
//! never ambiguous.
//!
//! The judgement over what arrives for such a record is in `judge`; it changes nothing.

use whimbrel_base::time::millis;
use whimbrel_base::{Instant, Tick};
use whimbrel_wire::tcp::Timestamps;
use whimbrel_wire::{Address, RawWindow, SeqNum, WindowScale};

use self::ring::Ring;
use crate::tunables::Tunables;

pub use self::judge::{
    RefusalReason, ReuseBy, RstVerdict, SegmentVerdict, SynAnswer, SynVerdict, TakeOver,
};

/// The distance of a peer, for what it says of the life time of segments on the way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PathClass {
    /// The peer is beyond a router.
    Remote = 0,
    /// On a directly connected network.
    Link = 1,
    /// The peer is this host itself.
    Loopback = 2,
}

impl PathClass {
    /// Every class, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Remote, Self::Link, Self::Loopback];
}

/// The time for which TIME-WAIT lasts, by path class: 2 MSL, in ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetimes([u32; 3]);

impl Lifetimes {
    /// By the rules in force. An MSL beyond 255 s counts as 255 s.
    pub fn new(tunables: &Tunables) -> Self {
        let msls = [tunables.msl_remote, tunables.msl_link, tunables.msl_loopback];
        Self(msls.map(|msl| 2 * millis(msl).min(255_000)))
    }

    /// 2 MSL of a class, ms.
    pub const fn millis(&self, class: PathClass) -> u32 {
        self.0[class as usize]
    }
}

/// Which side opened a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opener {
    /// This side: its port was drawn, or counts as drawn.
    Us,
    /// The peer, through a listener of ours.
    Peer,
}

/// A connection as it ends, for [`TimeWait::new`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The IP address of the peer.
    pub remote: Address,
    /// The TCP port of the peer.
    pub remote_port: u16,
    /// The TCP port at this side.
    pub local_port: u16,
    /// Which of this host's addresses it used.
    pub local_index: u16,
    /// The generation of the handle that named the connection.
    pub generation: u16,
    /// SND.NXT, beyond our FIN.
    pub snd_nxt: SeqNum,
    /// RCV.NXT, beyond the peer's FIN.
    pub rcv_nxt: SeqNum,
    /// The window last announced.
    pub window: RawWindow,
    /// The shift by which that window is scaled.
    pub scale: WindowScale,
    /// TS.Recent, if timestamps were negotiated.
    pub ts_recent: Option<u32>,
    /// Which side opened it.
    pub opener: Opener,
    /// The marking of its packets, as a number that means something to the caller.
    pub marking: u8,
}

/// A connection in TIME-WAIT. 48 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeWait {
    remote: Address,
    remote_port: u16,
    local_port: u16,
    local_index: u16,
    traits: u16,
    snd_nxt: SeqNum,
    rcv_nxt: SeqNum,
    window: RawWindow,
    generation: u16,
    ts_recent: u32,
    entered: Tick,
    challenged: Stamp,
    replied: Stamp,
}

impl TimeWait {
    /// The record of a connection that enters TIME-WAIT at `now`.
    pub fn new(ended: Ended, now: Tick) -> Self {
        let timestamps = if ended.ts_recent.is_some() { TIMESTAMPS } else { 0 };
        let ours = if ended.opener == Opener::Us { OURS } else { 0 };
        Self {
            remote: ended.remote,
            remote_port: ended.remote_port,
            local_port: ended.local_port,
            local_index: ended.local_index,
            traits: LIVE
                | u16::from(ended.marking) << MARKING_SHIFT
                | ours
                | timestamps
                | u16::from(ended.scale.get()),
            snd_nxt: ended.snd_nxt,
            rcv_nxt: ended.rcv_nxt,
            window: ended.window,
            generation: ended.generation,
            ts_recent: ended.ts_recent.unwrap_or(0),
            entered: now,
            challenged: Stamp::NEVER,
            replied: Stamp::NEVER,
        }
    }

    /// Returns the rest of the connection that it remembers.
    pub fn ended(&self) -> Ended {
        Ended {
            remote: self.remote,
            remote_port: self.remote_port,
            local_port: self.local_port,
            local_index: self.local_index,
            generation: self.generation,
            snd_nxt: self.snd_nxt,
            rcv_nxt: self.rcv_nxt,
            window: self.window,
            scale: self.scale(),
            ts_recent: self.ts_recent(),
            opener: self.opener(),
            marking: self.marking(),
        }
    }

    /// Which side opened the connection.
    #[inline]
    pub const fn opener(&self) -> Opener {
        if self.traits & OURS != 0 { Opener::Us } else { Opener::Peer }
    }

    /// Which of this host's addresses the connection used.
    #[inline]
    pub const fn local_index(&self) -> u16 {
        self.local_index
    }

    /// True if this is the record of the flow: what the flow table asks for equal hashes.
    #[inline]
    pub fn is_flow(
        &self,
        remote: &Address,
        remote_port: u16,
        local_port: u16,
        local_index: u16,
    ) -> bool {
        self.remote_port == remote_port
            && self.local_port == local_port
            && self.local_index == local_index
            && self.remote == *remote
    }

    /// TS.Recent, if timestamps were negotiated.
    #[inline]
    pub const fn ts_recent(&self) -> Option<u32> {
        if self.traits & TIMESTAMPS != 0 { Some(self.ts_recent) } else { None }
    }

    /// The tick at which it entered TIME-WAIT, or was last restarted.
    pub const fn entered(&self) -> Tick {
        self.entered
    }

    /// The value of a hole in a ring.
    const VACANT: Self = Self {
        remote: Address::from_bytes([0; 16]),
        remote_port: 0,
        local_port: 0,
        local_index: 0,
        traits: 0,
        snd_nxt: SeqNum::new(0),
        rcv_nxt: SeqNum::new(0),
        window: RawWindow::new(0),
        generation: 0,
        ts_recent: 0,
        entered: Tick::new(0),
        challenged: Stamp::NEVER,
        replied: Stamp::NEVER,
    };

    const fn scale(&self) -> WindowScale {
        WindowScale::new((self.traits & SCALE) as u8)
    }

    /// The marking of the segments that it sends, as the connection had it.
    pub const fn marking(&self) -> u8 {
        (self.traits >> MARKING_SHIFT) as u8
    }

    const fn is_live(&self) -> bool {
        self.traits & LIVE != 0
    }

    /// A bare acknowledgment arrived that is acceptable: its TSval is the last seen (RFC 6191 2).
    pub fn on_acceptable(&mut self, seq: SeqNum, timestamps: Option<Timestamps>) {
        // RFC 7323 4.3 (2): "If: SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent then
        // SEG.TSval is copied to TS.Recent; otherwise, it is ignored."
        if let Some(stamps) = timestamps.filter(|_| seq.at_or_before(self.rcv_nxt)) {
            self.note_tsval(stamps.val);
        }
    }

    fn restart(&mut self, now: Tick, tsval: Option<u32>) {
        self.entered = now;
        self.challenged = self.challenged.carried(now);
        self.replied = self.replied.carried(now);
        if let Some(tsval) = tsval {
            self.note_tsval(tsval);
        }
    }

    const fn note_tsval(&mut self, tsval: u32) {
        if tsval.wrapping_sub(self.ts_recent).cast_signed() > 0 {
            self.ts_recent = tsval;
        }
    }
}

/// Every record in TIME-WAIT, by path class in order of entry.
///
/// An index is what the flow table holds: two bits of class, 28 of a running number. It names a
/// record until the record goes, and is not used again for 2^28 records of its class.
#[derive(Debug)]
pub struct TimeWaits {
    rings: [Ring; 3],
}

impl TimeWaits {
    /// No records. Allocates nothing.
    pub const fn new() -> Self {
        Self { rings: [const { Ring::new() }; 3] }
    }

    /// Enters a record, whose tick is the present, and returns its index. Before that, the caller
    /// makes room while [`TimeWaits::is_full`].
    pub fn enter(&mut self, class: PathClass, record: TimeWait) -> u32 {
        let number = self.rings[class as usize].push(record);
        ((class as u32) << NUMBER_BITS) | number
    }

    /// The record at `index`.
    #[inline]
    pub fn get(&self, index: u32) -> Option<&TimeWait> {
        self.rings.get(ring_of(index))?.get(index & NUMBER_MASK)
    }

    /// The record at `index`.
    #[inline]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut TimeWait> {
        self.rings.get_mut(ring_of(index))?.get_mut(index & NUMBER_MASK)
    }

    /// The path class that an index belongs to.
    pub fn class(index: u32) -> Option<PathClass> {
        PathClass::ALL.get(ring_of(index)).copied()
    }

    /// Takes the record at `index` out.
    pub fn remove(&mut self, index: u32) -> Option<TimeWait> {
        self.rings.get_mut(ring_of(index))?.remove(index & NUMBER_MASK)
    }

    /// Begins the 2 MSL of a record again, as for the peer's FIN repeated with `tsval`, and returns
    /// its new index: it is the youngest of its class now. The caller enters that into the flow
    /// table ([`FlowTable::replace`](crate::table::FlowTable::replace)).
    pub fn restart(&mut self, index: u32, now: Tick, tsval: Option<u32>) -> Option<u32> {
        let class = Self::class(index)?;
        let mut record = self.remove(index)?;
        record.restart(now, tsval);
        Some(self.enter(class, record))
    }

    /// Takes out one record whose 2 MSL are over, with the index it had; to be called until `None`,
    /// or until the caller's budget is used up. Never early, at most 1 ms late.
    pub fn pop_expired(&mut self, now: Tick, lifetimes: &Lifetimes) -> Option<(u32, TimeWait)> {
        let class = PathClass::ALL.into_iter().find(|class| {
            let front = self.rings[*class as usize].front();
            let age = front.map(|(_, record)| now.millis_since(record.entered));
            age.is_some_and(|age| age > lifetimes.millis(*class))
        })?;
        self.pop_front(class)
    }

    /// Takes out the record that entered first, with the index it had.
    pub fn recycle_oldest(&mut self) -> Option<(u32, TimeWait)> {
        // A ring that has used up its numbers goes first, whatever its age.
        let exhausted = |class: &PathClass| self.rings[*class as usize].is_exhausted();
        let class = PathClass::ALL.into_iter().find(exhausted).or_else(|| self.oldest())?;
        self.pop_front(class)
    }

    /// True if the oldest record must go ([`TimeWaits::recycle_oldest`]) before another enters: at
    /// `max` records, or when one ring spans all of its 2^28 numbers, holes included. With a `max`
    /// of 0 it is full even when empty: enter nothing then.
    pub fn is_full(&self, max: u32) -> bool {
        self.len() >= max as usize || self.rings.iter().any(Ring::is_exhausted)
    }

    /// When the next record expires.
    pub fn next_expiry(&self, now: Instant, lifetimes: &Lifetimes) -> Option<Instant> {
        let left = |class: PathClass| {
            let (_, record) = self.rings[class as usize].front()?;
            let age = now.tick().millis_since(record.entered);
            Some((lifetimes.millis(class) + 1).saturating_sub(age))
        };
        let left = PathClass::ALL.into_iter().filter_map(left).min()?;
        Some(Instant::from_millis(now.as_nanos() / 1_000_000 + u64::from(left)))
    }

    /// The first record of a class whose index is `index` or a later one, searching at most 256 places: a
    /// step of a walk that is spread over many calls. `Err(next)` is where to continue; `None`: the class
    /// has no more. [`TimeWaits::first_of`] is where a walk begins.
    pub fn first_from(&self, index: u32) -> Option<Result<(u32, &TimeWait), u32>> {
        let ring = index & !NUMBER_MASK;
        let found = self.rings.get(ring_of(index))?.first_from(index & NUMBER_MASK)?;
        Some(match found {
            Ok((number, record)) => Ok((ring | number, record)),
            Err(next) => Err(ring | next),
        })
    }

    /// The index at which a walk over the records of a class begins.
    pub fn first_of(&self, class: PathClass) -> u32 {
        let first = self.rings[class as usize].front().map_or(0, |(number, _)| number);
        ((class as u32) << NUMBER_BITS) | first
    }

    /// The index behind `index`, in the same class.
    pub const fn index_after(index: u32) -> u32 {
        (index & !NUMBER_MASK) | ((index + 1) & NUMBER_MASK)
    }

    /// The number of places from `index` to the end of its class, where the next record enters.
    pub fn places_from(&self, index: u32) -> u32 {
        let tail = self.rings.get(ring_of(index)).map_or(index, Ring::tail);
        Self::places_between(index, tail)
    }

    /// The number of places from one index to a later one of the same class.
    pub const fn places_between(from: u32, to: u32) -> u32 {
        to.wrapping_sub(from) & NUMBER_MASK
    }

    /// Milliseconds until the 2 MSL of the record at `index` are over.
    pub fn millis_left(&self, index: u32, now: Instant, lifetimes: &Lifetimes) -> Option<u32> {
        let age = now.tick().millis_since(self.get(index)?.entered);
        Some((lifetimes.millis(Self::class(index)?) + 1).saturating_sub(age))
    }

    /// The number of records there are.
    pub fn len(&self) -> usize {
        self.rings.iter().map(Ring::len).sum()
    }

    /// The number of records of a class there are.
    pub fn len_of(&self, class: PathClass) -> usize {
        self.rings[class as usize].len()
    }

    /// True if there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held, its own included. Walks the chunks (one for 512 records): for reports.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.rings.iter().map(Ring::memory).sum::<usize>()
    }

    fn oldest(&self) -> Option<PathClass> {
        let entered =
            |class: PathClass| Some((class, self.rings[class as usize].front()?.1.entered));
        let older = |a: (PathClass, Tick), b: (PathClass, Tick)| {
            if b.1.millis_since(a.1).cast_signed() >= 0 { a } else { b }
        };
        PathClass::ALL.into_iter().filter_map(entered).reduce(older).map(|(class, _)| class)
    }

    fn pop_front(&mut self, class: PathClass) -> Option<(u32, TimeWait)> {
        let (number, record) = self.rings[class as usize].pop_front()?;
        Some((((class as u32) << NUMBER_BITS) | number, record))
    }
}

impl Default for TimeWaits {
    fn default() -> Self {
        Self::new()
    }
}

/// A time in 16 bits: units of 8 ms, a circle of 524 s. Longer than a record lives, so that a stamp
/// never looks fresh again; a restart wipes one of more than 10 s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp(u16);

impl Stamp {
    const NEVER: Self = Self(0);

    const fn new(now: Tick) -> Self {
        match (now.raw() / Self::UNIT) as u16 {
            0 => Self(u16::MAX),
            units => Self(units),
        }
    }

    /// The time since, in ms: the least that it can be, and about what it is, 16 ms more.
    fn millis_to(self, now: Tick) -> Option<(u32, u32)> {
        if self == Self::NEVER {
            return None;
        }
        let units = u32::from(Self::new(now).0.wrapping_sub(self.0));
        Some((units.saturating_sub(2) * Self::UNIT, units * Self::UNIT))
    }

    /// Returns the time that a restart keeps: limits go on across it, and 10 s with 2 MSL of 510 s are less than the
    /// circle.
    fn carried(self, now: Tick) -> Self {
        let recent = self.millis_to(now).is_some_and(|(_, millis)| millis <= 10_000);
        if recent { self } else { Self::NEVER }
    }

    const UNIT: u32 = 8;
}

const fn ring_of(index: u32) -> usize {
    (index >> NUMBER_BITS) as usize
}

const NUMBER_BITS: u32 = 28;
const NUMBER_MASK: u32 = (1 << NUMBER_BITS) - 1;

/// [`TimeWait::traits`]: the window scale, whether timestamps were negotiated, whether this side
/// opened the connection, whether this is a record at all.
const SCALE: u16 = 0x000f;
const TIMESTAMPS: u16 = 0x0010;
const MARKING_SHIFT: u32 = 5;
const OURS: u16 = 0x2000;
const LIVE: u16 = 0x8000;

const _: () = assert!(size_of::<TimeWait>() == 48);

mod judge;
mod ring;
#[cfg(test)]
mod tests;
