//! An array of groups in segments, and linear probing over it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use whimbrel_base::cold_path;

use super::group::Group;
use super::{FlowHash, Record};

/// Groups, the homes of all tags in order, and beyond the last home as many as its overflow needs.
///
/// Invariant: every group from a slot's home up to the one before its own is full. (Groups that a
/// migration took away do not count.) There is no way around from the end to the start: the last
/// homes overflow into groups that are no record's home, of which the last segment has some to spare.
#[derive(Debug)]
pub(super) struct Array {
    groups: usize,
    /// Allocated when first written, given away when a migration has passed.
    segments: Vec<Option<Segment>>,
    /// One that the array before gave away, for the next that is written first. (Through the
    /// allocator, holes between records in TIME-WAIT remained of old arrays, 8 bytes for each record:
    /// as groups are aligned, a segment wants more than the one that was freed.)
    spare: Option<Segment>,
}

/// Groups that are allocated together.
pub(super) type Segment = Box<[Group; SEGMENT]>;

/// A lane of a group of an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    group: usize,
    lane: u8,
}

impl Array {
    pub(super) const fn new(groups: usize) -> Self {
        Self { groups, segments: Vec::new(), spare: None }
    }

    /// The number of groups are homes.
    pub(super) const fn groups(&self) -> usize {
        self.groups
    }

    /// The group where a tag belongs.
    #[inline]
    pub(super) const fn home(&self, hash: FlowHash) -> usize {
        ((hash.0 as u64 * self.groups as u64) >> 32) as usize
    }

    /// The first slot with this hash that `matches` accepts, looking from group `start` up to the
    /// first that is not full.
    // Always, as it compares with what is at hand.
    #[inline(always)]
    pub(super) fn locate(
        &self,
        hash: FlowHash,
        start: usize,
        mut matches: impl FnMut(Record) -> bool,
    ) -> Option<Place> {
        let mut index = start;
        loop {
            let group = self.group(index)?;
            if let Some(lane) = group.lane(hash, &mut matches) {
                return Some(Place { group: index, lane });
            }
            if !group.is_full() {
                return None;
            }
            index += 1;
        }
    }

    /// Adds a slot, if the group that its hash leads to first has room. Returns whether it has. As the next two,
    /// without a loop: nearly each record is in that group.
    #[inline(always)]
    pub(super) fn insert_at_home(&mut self, hash: FlowHash, record: Record) -> bool {
        let home = self.existing_mut(self.home(hash)).filter(|group| !group.is_full());
        home.map(|group| group.push(hash, record)).is_some()
    }

    /// Takes a record out, if it is in its first group, and that is not full. Returns whether it is.
    #[inline(always)]
    pub(super) fn remove_at_home(&mut self, hash: FlowHash, record: Record) -> bool {
        let home = self.existing_mut(self.home(hash)).filter(|group| !group.is_full());
        let Some(group) = home else { return false };
        let lane = group.lane(hash, &mut |found| found == record);
        lane.and_then(|lane| group.take(lane)).is_some()
    }

    /// Puts `new` where `old` is, if that is in its first group. Returns whether it is.
    #[inline(always)]
    pub(super) fn replace_at_home(&mut self, hash: FlowHash, old: Record, new: Record) -> bool {
        let home = self.existing_mut(self.home(hash));
        let Some(group) = home else { return false };
        let lane = group.lane(hash, &mut |found| found == old);
        lane.map(|lane| group.set(lane, new)).is_some()
    }

    // Always, as the next two: a call each from the table, and more instructions than what it calls.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: FlowHash, record: Record) {
        let mut index = self.home(hash);
        loop {
            match self.existing_mut(index) {
                Some(group) if !group.is_full() => return group.push(hash, record),
                Some(_) => index += 1,
                None => self.make_segment_of(index),
            }
        }
    }

    /// Changes the first slot with this hash that `change` has another record for. Returns that.
    #[inline(always)]
    pub(super) fn update(
        &mut self,
        hash: FlowHash,
        mut change: impl FnMut(Record) -> Option<Record>,
    ) -> Option<Record> {
        let mut index = self.home(hash);
        loop {
            let group = self.existing_mut(index)?;
            if let Some(new) = group.update(hash, &mut change) {
                return Some(new);
            }
            if !group.is_full() {
                return None;
            }
            index += 1;
        }
    }

    /// Takes a record out. Returns whether it was there.
    #[inline(always)]
    pub(super) fn remove(&mut self, hash: FlowHash, record: Record) -> bool {
        let mut index = self.home(hash);
        loop {
            let Some(group) = self.existing_mut(index) else { return false };
            let was_full = group.is_full();
            if let Some(lane) = group.lane(hash, &mut |found| found == record) {
                group.take(lane);
                if was_full {
                    self.fill(index);
                }
                return true;
            }
            if !was_full {
                return false;
            }
            index += 1;
        }
    }

    /// Takes a slot out, and fills the hole from behind as long as a full group had one in it.
    pub(super) fn take(&mut self, place: Place) {
        let Some(group) = self.existing_mut(place.group) else { return };
        let was_full = group.is_full();
        group.take(place.lane);
        if was_full {
            self.fill(place.group);
        }
    }

    /// A full group has a hole: it is filled from behind as long as a full group had one in it.
    #[inline(never)]
    fn fill(&mut self, mut hole: usize) {
        let mut index = hole + 1;
        let mut was_full = true;
        while was_full {
            let Some(group) = self.group(index) else { return };
            was_full = group.is_full();
            if let Some(lane) = self.displaced_lane(group, hole)
                && let Some((hash, record)) = self.existing_mut(index).and_then(|it| it.take(lane))
                && let Some(with_hole) = self.existing_mut(hole)
            {
                with_hole.push(hash, record);
                hole = index;
            }
            index += 1;
        }
    }

    pub(super) fn set(&mut self, place: Place, record: Record) {
        if let Some(group) = self.existing_mut(place.group) {
            group.set(place.lane, record);
        }
    }

    /// Takes a group away, for good; with the last of its segment, the segment.
    pub(super) fn take_group(&mut self, index: usize) -> (Group, Option<Segment>) {
        let Some(group) = self.group(index).copied() else { return (Group::EMPTY, None) };
        let last = index % SEGMENT == SEGMENT - 1;
        (group, self.segments[index / SEGMENT].take_if(|_| last))
    }

    /// Keeps a segment for when the next is wanted, or lets it go.
    pub(super) fn recycle(&mut self, segment: Option<Segment>) {
        self.spare = segment;
    }

    /// The records of group `start` and of all behind it.
    pub(super) fn records_from(&self, start: usize) -> impl Iterator<Item = Record> {
        let groups = (start..self.segments.len() * SEGMENT).filter_map(|index| self.group(index));
        groups.flat_map(|group| group.slots().map(|(_, record)| record))
    }

    /// Bytes held in segments and their directory.
    pub(super) fn memory(&self) -> usize {
        let segments = self.segments.iter().chain([&self.spare]).flatten().count();
        let directory = self.segments.capacity() * size_of::<Option<Segment>>();
        segments * size_of::<[Group; SEGMENT]>() + directory
    }

    /// A lane whose slot may move back to group `hole`, as its home is there or before.
    fn displaced_lane(&self, group: &Group, hole: usize) -> Option<u8> {
        let lane = group.slots().position(|(hash, _)| self.home(hash) <= hole)?;
        Some(lane as u8)
    }

    /// Returns true for each group that is full, in order.
    #[cfg(test)]
    pub(super) fn fullness(&self) -> impl Iterator<Item = bool> {
        (0..self.segments.len() * SEGMENT)
            .map(|index| self.group(index).is_some_and(Group::is_full))
    }

    #[inline]
    fn group(&self, index: usize) -> Option<&Group> {
        let Some(Some(segment)) = self.segments.get(index / SEGMENT) else {
            cold_path();
            return None;
        };
        Some(&segment[index % SEGMENT])
    }

    /// Returns the group, to be changed.
    #[inline]
    fn existing_mut(&mut self, index: usize) -> Option<&mut Group> {
        let Some(Some(segment)) = self.segments.get_mut(index / SEGMENT) else {
            cold_path();
            return None;
        };
        Some(&mut segment[index % SEGMENT])
    }

    /// Makes the segment of a group that is not there.
    #[cold]
    fn make_segment_of(&mut self, index: usize) {
        let segment = index / SEGMENT;
        if segment >= self.segments.len() {
            self.lengthen(segment + 1);
        }
        if self.segments[segment].is_none() {
            self.segments[segment] = Some(make_segment(&mut self.spare));
        }
    }

    #[cold]
    fn lengthen(&mut self, segments: usize) {
        // The directory at once, 8 bytes a segment, so that it need not grow; one more for
        // what overflows the last home.
        let directory = self.groups / SEGMENT + 2;
        self.segments.reserve_exact(directory.saturating_sub(self.segments.len()));
        self.segments.resize_with(segments, || None);
    }
}

/// The spare one, if there is one.
fn make_segment(spare: &mut Option<Segment>) -> Segment {
    spare.take().map_or_else(empty_segment, |mut spare| {
        spare.fill(Group::EMPTY);
        spare
    })
}

/// Made on the heap: on the stack it would be 16 KiB.
fn empty_segment() -> Segment {
    let groups: Box<[Group]> = (0..SEGMENT).map(|_| Group::EMPTY).collect();
    match groups.try_into() {
        Ok(groups) => groups,
        Err(_) => Box::new([Group::EMPTY; SEGMENT]),
    }
}

/// Groups of a segment: 16 KiB, about 1 us to allocate and fill. The directory of ten million
/// records is 60 KB. Larger segments would make a shorter directory and a longer pause.
pub(super) const SEGMENT: usize = 256;
