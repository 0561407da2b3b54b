//! The one table that finds a segment's record, whatever its kind.
//!
//! A slot is 8 bytes: 32 bits of keyed hash (the *tag*), 2 bits of kind, 30 bits of index. Eight
//! make a group, and a group is one cache line, so that most look-ups, hits and misses alike, read
//! one line here and one line of the record. The tag alone says where a slot belongs: growing reads
//! no record.
//!
//! **Placement.** The home of a tag is `tag * groups / 2^32`: order is kept, any number of groups
//! will do. A slot lies in the first group from its home on that had room; all groups before it are
//! full. Removal restores that by moving slots back, so there are no tombstones and a table does
//! not age. (Rejected: powers of two, which on average waste a quarter of the table; tombstones,
//! with which a steady churn must rebuild it again and again.)
//!
//! **Growth.** Above a load of 0.84 the table moves to one 1.125 times as large, below 0.30 to one
//! half as large: two groups an insertion, one a removal, so that nothing ever stalls (a
//! `hashbrown` of 7 M entries stalls 105 ms when it grows). As order is kept, old and new are both
//! walked in sequence; arrays are segments of 16 KiB, which behind the walk of the one are used
//! ahead of it by the other. A record costs 9.5 to 10.7 bytes here at any size reached by growing
//! (in steps of a quarter 11.9; growing then moves each record four times, not eight).
//!
//! **Collisions.** Ports and addresses are the peer's choice, so a fixed hash would let it put all
//! its flows into one group. The tag is a hash under a secret key and that
//! serves nothing else ([`FlowHasher`]); its value never leaves the host, and the one thing that it
//! influences, the time of a look-up, differs by some ns between groups, against us of noise from the
//! network. A peer without the key can do no better than chance: n flows are spread as by random
//! placement, the longest run of full groups at a load of 0.84 is a few tens. What a flood may enter
//! without an address of its own is bounded by the SYN cache, too. (Rejected: SipHash-1-3, which
//! would stand a peer that sees tags as well, for 80 instructions more a segment.)
//!
//! Measured, ns a look-up that hits, hash excluded (14 ns): median and range of ten runs on an EPYC
//! with 512 KiB of L2 a core and 32 MiB of L3, shared with other work:
//!
//! | records | serial, dependent | [`FlowTable::candidate`] in passes of 64 |
//! |---|---|---|
//! | 1,000 | 25 (24-35) | 9 (8-15) |
//! | 1,000,000 | 121 (84-249) | 37 (24-74) |
//! | 10,000,000 | 186 (165-365) | 72 (60-130) |
//!
//! `cargo test --release -p whimbrel-tcp flow_table -- --ignored --nocapture`. Segments of 128 KiB,
//! with a shorter directory, were no faster (in passes, 1 M: 31-76; 10 M: 58-100).

use alloc::boxed::Box;
use core::num::NonZeroU32;

use whimbrel_base::cold_path;

use self::array::{Array, Place};
pub use self::hash::{FlowHash, FlowHasher};

/// The kind of a record: which of the other tables holds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A connection, from SYN-SENT to CLOSED.
    Connection = 1,
    /// A half-open entry of the SYN cache.
    SynEntry = 2,
    /// A record in TIME-WAIT.
    TimeWait = 3,
}

/// The place of a record: its kind, and its index there (less than 2^30). 4 bytes, and so is its
/// `Option`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Record(NonZeroU32);

/// Every flow of a shard, found by its hash.
#[derive(Debug)]
pub struct FlowTable {
    /// The array in which all records are, or to which they go.
    current: Array,
    migration: Option<Box<Migration>>,
    len: usize,
    /// Fewer records, or more, ask for a smaller or a larger array.
    fitting: (usize, usize),
    /// Of which sixty-fourths of all hashes something changed since [`FlowTable::forget_changes`].
    changed: u64,
}

/// A move from one array to another, under way.
#[derive(Debug)]
struct Migration {
    old: Array,
    /// Every group of `old` before this was moved; its home decides where a tag is sought first.
    cursor: usize,
    /// The group before `cursor` was full when it was moved, so slots whose home lies before
    /// `cursor` may remain at `cursor` and after.
    stragglers: bool,
}

impl FlowTable {
    /// A table without records. Allocates nothing.
    pub const fn new() -> Self {
        let fitting = fitting(MIN_GROUPS);
        Self { current: Array::new(MIN_GROUPS), migration: None, len: 0, fitting, changed: 0 }
    }

    /// The record with this hash that `matches` recognises by its addresses and ports.
    #[inline]
    pub fn find(&self, hash: FlowHash, mut matches: impl FnMut(Record) -> bool) -> Option<Record> {
        let mut found = None;
        self.locate(hash, |record| {
            let is_it = matches(record);
            if is_it {
                found = Some(record);
            }
            is_it
        });
        found
    }

    /// The first record with this hash, most probably the one sought: reads the table and not the
    /// record. A burst asks for all its segments in one pass, then touches the records in another,
    /// so that cache misses overlap; the answer holds until [`FlowTable::may_differ`].
    #[inline]
    pub fn candidate(&self, hash: FlowHash) -> Option<Record> {
        self.find(hash, |_| true)
    }

    /// Enters a record that is not yet in the table.
    pub fn insert(&mut self, hash: FlowHash, record: Record) {
        self.changed |= sixty_fourth(hash);
        self.len += 1;
        if self.migration.is_none() && self.current.insert_at_home(hash, record) {
            return self.resize_if_due();
        }
        self.insert_farther(hash, record);
    }

    /// Inserts where the first group has no room, or while records move.
    // Out of line, as the next two: what it calls would take registers of those that call nothing.
    #[inline(never)]
    fn insert_farther(&mut self, hash: FlowHash, record: Record) {
        // Two groups for each record that comes: a move ends before the next is due.
        self.migrate(2);
        match &mut self.migration {
            Some(migration) if !migration.has_moved(hash) => {
                cold_path();
                migration.old.insert(hash, record);
            }
            _ => self.current.insert(hash, record),
        }
        self.resize_if_due();
    }

    /// Takes a record out. Returns whether it was there.
    pub fn remove(&mut self, hash: FlowHash, record: Record) -> bool {
        if self.migration.is_some() || !self.current.remove_at_home(hash, record) {
            return self.remove_farther(hash, record);
        }
        self.changed |= sixty_fourth(hash);
        self.len -= 1;
        self.resize_if_due();
        true
    }

    /// Takes out a record that may be in another group, or while records move.
    #[inline(never)]
    fn remove_farther(&mut self, hash: FlowHash, record: Record) -> bool {
        let removed = if self.migration.is_some() {
            cold_path();
            self.remove_from_both(hash, record)
        } else {
            self.current.remove(hash, record)
        };
        if !removed {
            return false;
        }
        self.changed |= sixty_fourth(hash);
        self.len -= 1;
        self.migrate(1);
        self.resize_if_due();
        true
    }

    /// Puts `new` where `old` is, as when a connection becomes a TIME-WAIT record. Returns whether
    /// `old` was there.
    pub fn replace(&mut self, hash: FlowHash, old: Record, new: Record) -> bool {
        if self.migration.is_some() || !self.current.replace_at_home(hash, old, new) {
            return self.replace_farther(hash, old, new);
        }
        self.changed |= sixty_fourth(hash);
        true
    }

    /// Replaces a record that may be in another group, or while records move.
    #[inline(never)]
    fn replace_farther(&mut self, hash: FlowHash, old: Record, new: Record) -> bool {
        self.update(hash, |found| (found == old).then_some(new)).is_some()
    }

    /// Changes the first record with this hash that `change` has another for. Returns what it is now, if there is one.
    #[inline]
    pub fn update(
        &mut self,
        hash: FlowHash,
        change: impl FnMut(Record) -> Option<Record>,
    ) -> Option<Record> {
        let new = if self.migration.is_some() {
            cold_path();
            self.update_in_both(hash, change)?
        } else {
            self.current.update(hash, change)?
        };
        self.changed |= sixty_fourth(hash);
        Some(new)
    }

    /// Every record, in the order of their keyed hashes: for reports, not for the way of a segment.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        let old = self.migration.iter().flat_map(|it| it.old.records_from(it.cursor));
        self.current.records_from(0).chain(old)
    }

    /// The number of records there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is no record.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// From here on [`FlowTable::may_differ`] tells of changes.
    pub const fn forget_changes(&mut self) {
        self.changed = 0;
    }

    /// True if what was found, or not found, of this hash may no longer hold: something changed of a hash
    /// that has its first six bits. One number that each change moved on was rejected: what a burst's
    /// first segment changed had all others looked at again, 20 instructions each or more.
    #[inline]
    pub const fn may_differ(&self, hash: FlowHash) -> bool {
        self.changed & sixty_fourth(hash) != 0
    }

    /// Bytes held, its own included.
    pub fn memory(&self) -> usize {
        let old = self.migration.as_ref();
        size_of::<Self>()
            + self.current.memory()
            + old.map_or(0, |migration| size_of::<Migration>() + migration.old.memory())
    }

    /// Finds the first record that has this hash and that `matches` accepts.
    // Always: it compares with what its caller knows.
    #[inline(always)]
    fn locate(&self, hash: FlowHash, matches: impl FnMut(Record) -> bool) -> Option<(Side, Place)> {
        if let Some(migration) = &self.migration {
            cold_path();
            return self.locate_in_both(migration, hash, matches);
        }
        let place = self.current.locate(hash, self.current.home(hash), matches)?;
        Some((Side::Current, place))
    }

    /// Locates a record while a move is under way.
    #[inline(never)]
    fn locate_in_both(
        &self,
        migration: &Migration,
        hash: FlowHash,
        mut matches: impl FnMut(Record) -> bool,
    ) -> Option<(Side, Place)> {
        let home = migration.old.home(hash);
        if migration.has_moved(hash) {
            let home = self.current.home(hash);
            if let Some(place) = self.current.locate(hash, home, &mut matches) {
                return Some((Side::Current, place));
            }
            // A record lies in the group of its home or behind it: one whose home was moved may still be
            // in the old array, from the cursor on.
            if !migration.stragglers {
                return None;
            }
        }
        let place = migration.old.locate(hash, home.max(migration.cursor), matches)?;
        Some((Side::Old, place))
    }

    /// [`FlowTable::update`] while a move is under way.
    #[inline(never)]
    fn update_in_both(
        &mut self,
        hash: FlowHash,
        mut change: impl FnMut(Record) -> Option<Record>,
    ) -> Option<Record> {
        let mut new = None;
        let (side, place) = self.locate(hash, |found| {
            new = change(found);
            new.is_some()
        })?;
        self.array_mut(side).set(place, new?);
        new
    }

    /// [`FlowTable::remove`] while a move is under way.
    #[inline(never)]
    fn remove_from_both(&mut self, hash: FlowHash, record: Record) -> bool {
        let Some((side, place)) = self.locate(hash, |found| found == record) else { return false };
        self.array_mut(side).take(place);
        true
    }

    fn array_mut(&mut self, side: Side) -> &mut Array {
        match (side, &mut self.migration) {
            (Side::Old, Some(migration)) => &mut migration.old,
            _ => &mut self.current,
        }
    }

    /// Starts to move when the load has left its bounds. A move under way ends long before the
    /// next is due: after growth by an eighth the load is 0.81 at most, after halving 0.2 to 0.81.
    #[inline]
    fn resize_if_due(&mut self) {
        let (least, most) = self.fitting;
        if self.len < least || self.len > most {
            self.resize();
        }
    }

    #[cold]
    fn resize(&mut self) {
        if self.migration.is_some() {
            return;
        }
        let groups = self.current.groups();
        let groups = match self.len > self.fitting.1 {
            true => groups + groups / 8,
            false => (groups / 2).max(MIN_GROUPS),
        };
        let old = core::mem::replace(&mut self.current, Array::new(groups));
        self.migration = Some(Box::new(Migration { old, cursor: 0, stragglers: false }));
        self.fitting = fitting(groups);
    }

    /// Moves the next `count` groups, if a move is under way.
    #[inline]
    fn migrate(&mut self, count: usize) {
        if self.migration.is_some() {
            cold_path();
            self.move_on(count);
        }
    }

    #[inline(never)]
    fn move_on(&mut self, count: usize) {
        let Some(migration) = &mut self.migration else { return };
        for _ in 0..count {
            migration.step(&mut self.current);
        }
        if migration.is_done() {
            self.migration = None;
            self.current.recycle(None);
        }
    }
}

impl Default for FlowTable {
    fn default() -> Self {
        Self::new()
    }
}

impl Migration {
    /// True if the home of `hash` was moved: new slots go to the new array then.
    #[inline]
    fn has_moved(&self, hash: FlowHash) -> bool {
        self.old.home(hash) < self.cursor
    }

    /// Moves one group to the new array.
    fn step(&mut self, new: &mut Array) {
        let (group, segment) = self.old.take_group(self.cursor);
        if segment.is_some() {
            new.recycle(segment);
        }
        self.cursor += 1;
        self.stragglers = group.is_full();
        for (hash, record) in group.slots() {
            new.insert(hash, record);
        }
    }

    /// True if every slot was moved, those beyond the last home included.
    fn is_done(&self) -> bool {
        self.cursor >= self.old.groups() && !self.stragglers
    }
}

impl Record {
    /// The record of this kind at `index`, which is less than 2^30.
    #[inline]
    pub const fn new(kind: Kind, index: u32) -> Self {
        debug_assert!(index <= Self::MAX_INDEX);
        let packed = ((kind as u32) << INDEX_BITS) | (index & Self::MAX_INDEX);
        match NonZeroU32::new(packed) {
            Some(packed) => Self(packed),
            // Never: no kind is zero.
            None => Self(NonZeroU32::MAX),
        }
    }

    /// The greatest index that a slot can hold.
    pub const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

    /// Which kind of record it is.
    #[inline]
    pub const fn kind(self) -> Kind {
        match self.0.get() >> INDEX_BITS {
            1 => Kind::Connection,
            2 => Kind::SynEntry,
            _ => Kind::TimeWait,
        }
    }

    /// Its index in the table of its kind.
    #[inline]
    pub const fn index(self) -> u32 {
        self.0.get() & Self::MAX_INDEX
    }
}

impl core::fmt::Debug for Record {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}({})", self.kind(), self.index())
    }
}

/// The fewest records for so many groups, and the most: a load of 0.30, and of 0.84.
const fn fitting(groups: usize) -> (usize, usize) {
    let slots = groups * LANES;
    let least = if groups > MIN_GROUPS { (slots * 3).div_ceil(10) } else { 0 };
    (least, slots * 21 / 25)
}

/// The bit that stands for a hash among its like.
const fn sixty_fourth(hash: FlowHash) -> u64 {
    1 << (hash.0 >> 26)
}

#[derive(Clone, Copy)]
enum Side {
    Current,
    Old,
}

const INDEX_BITS: u32 = 30;
/// Slots of a group: with 8 bytes each they fill a cache line.
const LANES: usize = 8;
/// The least number of groups: one segment, 16 KiB, up to 1,720 records.
const MIN_GROUPS: usize = array::SEGMENT;

const _: () = assert!(size_of::<Record>() == 4 && size_of::<Option<Record>>() == 4);

mod array;
mod group;
mod hash;
#[cfg(test)]
mod tests;
