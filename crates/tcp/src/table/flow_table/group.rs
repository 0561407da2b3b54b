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

    /// An octet for each lane, not zero if its tag is that of `hash`: an empty lane's may be, too. Whole
    /// octets and no bits, as the compiler makes two vector comparisons of that and no scalar ones: 20
    /// instructions, not 29.
    #[inline]
    fn lanes_with(&self, hash: FlowHash) -> u64 {
        let lanes = self.tags.map(|tag| if tag == hash.0 { 0xff } else { 0 });
        u64::from_le_bytes(lanes)
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
            let lane = (lanes.trailing_zeros() / u8::BITS) as usize % LANES;
            if self.records[lane].is_some_and(&mut *matches) {
                return Some(lane as u8);
            }
            cold_path();
            lanes &= !(0xff << (lane as u32 * u8::BITS));
        }
        None
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.records[LANES - 1].is_some()
    }

    /// How many lanes are taken: those come first, so the first vacant one says it.
    #[inline]
    fn len(&self) -> usize {
        self.records.iter().position(Option::is_none).unwrap_or(LANES)
    }

    /// Adds a slot. The group is not full.
    pub(super) fn push(&mut self, hash: FlowHash, record: Record) {
        debug_assert!(!self.is_full());
        let lane = self.len() % LANES;
        self.tags[lane] = hash.0;
        self.records[lane] = Some(record);
    }

    /// Takes a slot out; the last one takes its lane.
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

    pub(super) fn set(&mut self, lane: u8, record: Record) {
        self.records[usize::from(lane) % LANES] = Some(record);
    }

    /// The slots of this group that are taken.
    pub(super) fn slots(&self) -> impl Iterator<Item = (FlowHash, Record)> {
        let tags = self.tags.into_iter().map(FlowHash);
        tags.zip(self.records).map_while(|(hash, record)| Some((hash, record?)))
    }
}

const _: () = assert!(size_of::<Group>() == 64 && align_of::<Group>() == 64);
