//! Eight slots in one cache line.

use whimbrel_base::cold_path;

use super::{FlowHash, LANES, Record};

/// Eight slots: tags side by side, so that all are compared without a branch, then the records. Taken slots come first, so the last one says whether the group is full.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Group {
    tags: [u32; LANES],
    records: [Option<Record>; LANES],
}

impl Group {
    pub(super) const EMPTY: Self = Self { tags: [0; LANES], records: [None; LANES] };

    /// A hexadecimal digit for each lane, not zero if its tag is that of `hash`: an empty lane's may be, too.
    /// The compiler makes two vector comparisons of that: 13 instructions. (Bits are compared one by one, by
    /// 30; bytes do not fit the width of a tag and take 19.)
    #[inline]
    fn lanes_with(&self, hash: FlowHash) -> u32 {
        self.tags
            .iter()
            .zip(DIGITS)
            .fold(0, |lanes, (tag, digit)| lanes | if *tag == hash.0 { digit } else { 0 })
    }

    /// The first lane that has this hash and whose record `matches` accepts.
    // Always: called, it would call `matches` in turn.
    #[inline(always)]
    pub(super) fn lane(
        &self,
        hash: FlowHash,
        matches: &mut impl FnMut(Record) -> bool,
    ) -> Option<u8> {
        let mut lanes = self.lanes_with(hash);
        while lanes != 0 {
            let lane = (lanes.trailing_zeros() / DIGIT_BITS) as usize % LANES;
            if self.records[lane].is_some_and(&mut *matches) {
                return Some(lane as u8);
            }
            cold_path();
            lanes &= !DIGITS[lane];
        }
        None
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.records[LANES - 1].is_some()
    }

    /// The number of lanes are taken: those come first, so the first vacant one says it.
    #[inline]
    fn len(&self) -> usize {
        self.records.iter().position(Option::is_none).unwrap_or(LANES)
    }

    /// Adds a slot. The group is not full.
    #[inline]
    pub(super) fn push(&mut self, hash: FlowHash, record: Record) {
        debug_assert!(!self.is_full());
        let lane = self.len() % LANES;
        self.tags[lane] = hash.0;
        self.records[lane] = Some(record);
    }

    /// Takes a slot out; the last one takes its lane.
    #[inline]
    pub(super) fn take(&mut self, lane: u8) -> Option<(FlowHash, Record)> {
        let lane = usize::from(lane) % LANES;
        let last = self.len().checked_sub(1)?;
        let taken = (FlowHash(self.tags[lane]), self.records[lane]?);
        self.tags[lane] = self.tags[last];
        self.records[lane] = self.records[last];
        self.tags[last] = 0;
        self.records[last] = None;
        Some(taken)
    }

    /// Changes the first slot with this hash that `change` has another record for. Returns that.
    #[inline(always)]
    pub(super) fn update(
        &mut self,
        hash: FlowHash,
        change: &mut impl FnMut(Record) -> Option<Record>,
    ) -> Option<Record> {
        let mut new = None;
        let lane = self.lane(hash, &mut |found| {
            new = change(found);
            new.is_some()
        })?;
        self.set(lane, new?);
        new
    }

    pub(super) fn set(&mut self, lane: u8, record: Record) {
        self.records[usize::from(lane) % LANES] = Some(record);
    }

    /// The slots of this group that are taken.
    pub(super) fn slots(&self) -> impl Iterator<Item = (FlowHash, Record)> {
        let tags = self.tags.into_iter().map(FlowHash);
        tags.zip(self.records).map_while(|(hash, record)| Some((hash, record?)))
    }
}

/// The digit of each lane, all of its bits set.
const DIGITS: [u32; LANES] = {
    let mut digits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        digits[lane] = 0xf << (lane as u32 * DIGIT_BITS);
        lane += 1;
    }
    digits
};
const DIGIT_BITS: u32 = u32::BITS / LANES as u32;

const _: () = assert!(size_of::<Group>() == 64 && align_of::<Group>() == 64);
