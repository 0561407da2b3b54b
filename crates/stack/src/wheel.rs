//! The timers of connections: a hierarchical timing wheel whose nodes live in the records.
//!
//! Six levels of 64 slots; a slot of level `n` spans 64^n ticks of 2^20 ns (1.05 ms), so the levels
//! reach 67 ms, 4.3 s, 4.6 minutes, 4.9 hours, 13 days and beyond. A timer waits in the slot of its
//! deadline on the level where deadline and present first differ, and *cascades* to a finer level
//! when that slot's time comes: five times at most within [`Wheel::HORIZON`], a retransmission time-out once or twice. A
//! bitmap a level says which slots are taken, so neither finding the next deadline nor skipping
//! idle time looks at empty slots. (Schemes 6 and 7 of Varghese and Lauck, 1987.)
//!
//! Nodes are 16 bytes *inside* the records, linked by index. Rejected: a binary heap, 30-100 ns a
//! re-arm at a million timers and growth by copying; a list of entries apart from the records, one
//! cache line more for each timer touched.
//!
//! **Promises.** A timer fires at or after its instant, at most one tick after it (or after the call
//! that armed it for the past), provided that [`Wheel::pop_due`] is called then.
//! Every operation moves at most a budget's worth of nodes: a slot that comes due is taken off whole
//! by re-linking its first node, and its nodes are fired or cascaded one at a time, so 16,000 timers
//! of one tick cost what the caller's budget allows per call. Timers of one tick fire in no
//! particular, but repeatable, order.
//!
//! **Not for** what waits a constant time (TIME-WAIT, SYN-ACK retries): a queue is cheaper.
//!
//! Measured (`cargo test --release -p whimbrel-stack wheel -- --ignored --nocapture`, median and
//! range of four runs on a shared EPYC): to arm again 14 ns (9-15) among 1,000 timers and 14 (12-17)
//! among a million in turn; to cascade and fire one of a million 165 ns (117-172), its cache misses
//! included.

use whimbrel_base::Instant;

/// The node of a record for its one timer: 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimerNode {
    /// The node before it, or `LIST` and the number of the list that it heads; [`UNARMED`].
    previous: u32,
    next: u32,
    /// When it is to fire, [`Instant::NEVER`] if it is not; while it is not armed, for its owner to use.
    pub(crate) at: Instant,
}

/// The records that nodes live in, found by number: indices of a slab, less than 2^31.
pub trait TimerNodes {
    /// The node of record `id`, which has one while its timer is armed.
    fn node(&self, id: u32) -> &TimerNode;
    /// The node of record `id`, which has one while its timer is armed.
    fn node_mut(&mut self, id: u32) -> &mut TimerNode;
}

/// Any number of timers, at most one a record.
#[derive(Debug)]
pub struct Wheel {
    /// The tick that everything armed lies beyond, but for what is in `DUE` and `CASCADING`.
    elapsed: u64,
    len: usize,
    /// Which slots of each level hold a timer.
    taken: [u64; LEVELS],
    /// The first node of each slot; then of `DUE` and `CASCADING`.
    heads: [u32; LISTS],
}

impl Wheel {
    /// The longest that a timer waits on one level, in ticks: 2^31 - 1, 26 days. One armed for later is cascaded then.
    pub const HORIZON: u64 = (1 << 31) - 1;

    /// A wheel without timers, at `now`.
    pub const fn new(now: Instant) -> Self {
        Self {
            elapsed: now.as_nanos() >> TICK_BITS,
            len: 0,
            taken: [0; LEVELS],
            heads: [NONE; LISTS],
        }
    }

    /// Returns the number of armed timers.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if no timer is armed.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Arms the timer of record `id` to fire at `at`, whatever it was armed for before.
    pub fn arm(&mut self, nodes: &mut impl TimerNodes, id: u32, at: Instant) {
        self.disarm(nodes, id);
        self.len += 1;
        // At least one tick ahead, so that a record that arms itself for the past waits its turn behind those
        // that are due.
        self.link(nodes, id, at, self.elapsed + 1);
    }

    /// Disarms the timer of record `id`, if it is armed. To be called before a record goes.
    pub fn disarm(&mut self, nodes: &mut impl TimerNodes, id: u32) {
        if nodes.node(id).is_armed() {
            self.unlink(nodes, id);
            self.len -= 1;
        }
    }

    /// Disarms and returns a timer that is due at `now`; to be called until `None`. Each timer
    /// fired or cascaded takes one from `budget`; when that is used up, `None` does not mean that
    /// nothing is due: [`Wheel::next_deadline`] says so.
    #[inline]
    pub fn pop_due(
        &mut self,
        nodes: &mut impl TimerNodes,
        now: Instant,
        budget: &mut usize,
    ) -> Option<u32> {
        let present = now.as_nanos() >> TICK_BITS;
        if self.len == 0 {
            // No slot to stop at.
            self.elapsed = self.elapsed.max(present);
            return None;
        }
        self.pop_armed(nodes, present, budget)
    }

    #[inline(never)]
    fn pop_armed(
        &mut self,
        nodes: &mut impl TimerNodes,
        present: u64,
        budget: &mut usize,
    ) -> Option<u32> {
        while let Some(left) = budget.checked_sub(1) {
            if let Some((id, _)) = self.pop(nodes, DUE) {
                *budget = left;
                self.len -= 1;
                return Some(id);
            }
            if let Some((id, at)) = self.pop(nodes, CASCADING) {
                *budget = left;
                self.link(nodes, id, at, self.elapsed);
            } else if !self.turn(nodes, present) {
                return None;
            }
        }
        None
    }

    /// When [`Wheel::pop_due`] must be called at the latest: the next deadline, or earlier if a
    /// cascade comes before it; in the past if timers are due or being cascaded.
    pub fn next_deadline(&self) -> Option<Instant> {
        let busy = self.heads[DUE] != NONE || self.heads[CASCADING] != NONE;
        let tick = if busy { self.elapsed } else { self.next_slot()?.2 };
        Some(Instant::from_nanos(tick << TICK_BITS))
    }

    /// Moves time to the next taken slot and takes its timers off, or to `present` if there is none
    /// until then. Returns whether there was one.
    fn turn(&mut self, nodes: &mut impl TimerNodes, present: u64) -> bool {
        match self.next_slot() {
            Some((level, slot, start)) if start <= present => {
                // One loop through `pop_due` a taken slot: its timers pay for it.
                self.elapsed = self.elapsed.max(start);
                let list = level * SLOTS + slot;
                let to = if level == 0 { DUE } else { CASCADING };
                self.taken[level] &= !(1 << slot);
                self.heads[to] = core::mem::replace(&mut self.heads[list], NONE);
                if self.heads[to] != NONE {
                    nodes.node_mut(self.heads[to]).previous = LIST | to as u32;
                }
                true
            }
            _ => {
                self.elapsed = self.elapsed.max(present);
                false
            }
        }
    }

    /// The next taken slot: its level, its number, and the tick at which its span begins. As a
    /// timer waits where its deadline first differs from the present, those of a finer level come
    /// before all of a coarser one.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.taken.iter().position(|taken| *taken != 0)?;
        let shift = LEVEL_BITS * level as u32;
        let present = self.elapsed >> shift;
        // The last level is a circle; on the others no slot before the present is taken.
        let ahead = self.taken[level].rotate_right((present % SLOTS as u64) as u32);
        let start = present + u64::from(ahead.trailing_zeros());
        Some((level, (start % SLOTS as u64) as usize, start << shift))
    }

    /// Has a node wait until `at`, at least until the tick `first`.
    fn link(&mut self, nodes: &mut impl TimerNodes, id: u32, at: Instant, first: u64) {
        // Up to the next tick, so that it never fires early.
        let tick = at.as_nanos().div_ceil(1 << TICK_BITS);
        let tick = tick.clamp(first, self.elapsed + Self::HORIZON);
        let list = self.list_for(tick);
        if list < DUE {
            self.taken[list / SLOTS] |= 1 << (list % SLOTS);
        }
        let next = core::mem::replace(&mut self.heads[list], id);
        *nodes.node_mut(id) = TimerNode { previous: LIST | list as u32, next, at };
        if next != NONE {
            nodes.node_mut(next).previous = id;
        }
    }

    /// Returns the list in which a timer for `tick` waits.
    const fn list_for(&self, tick: u64) -> usize {
        if tick <= self.elapsed {
            return DUE;
        }
        let differs = (tick ^ self.elapsed).ilog2() / LEVEL_BITS;
        let level = if differs < LEVELS as u32 { differs } else { LEVELS as u32 - 1 };
        let slot = (tick >> (LEVEL_BITS * level)) as usize % SLOTS;
        level as usize * SLOTS + slot
    }

    fn unlink(&mut self, nodes: &mut impl TimerNodes, id: u32) {
        let node = core::mem::replace(nodes.node_mut(id), TimerNode::UNARMED);
        if node.next != NONE {
            nodes.node_mut(node.next).previous = node.previous;
        }
        if node.previous & LIST == 0 {
            nodes.node_mut(node.previous).next = node.next;
            return;
        }
        let list = (node.previous & !LIST) as usize % LISTS;
        self.heads[list] = node.next;
        if node.next == NONE && list < DUE {
            self.taken[list / SLOTS] &= !(1 << (list % SLOTS));
        }
    }

    /// Takes the first node of a list off. Returns its record, and when it was to fire.
    fn pop(&mut self, nodes: &mut impl TimerNodes, list: usize) -> Option<(u32, Instant)> {
        let id = self.heads[list];
        if id == NONE {
            return None;
        }
        let at = nodes.node(id).at;
        self.unlink(nodes, id);
        Some((id, at))
    }
}

impl TimerNode {
    /// A node that is not armed.
    pub const UNARMED: Self = Self { previous: UNARMED, next: NONE, at: Instant::NEVER };

    /// True if it is armed, which is to say linked.
    #[inline]
    pub const fn is_armed(&self) -> bool {
        self.previous != UNARMED
    }
}

impl Default for TimerNode {
    fn default() -> Self {
        Self::UNARMED
    }
}

/// 2^20 ns: finer than any time-out of ours, and a shift instead of a division.
const TICK_BITS: u32 = 20;
const LEVEL_BITS: u32 = 6;
const SLOTS: usize = 1 << LEVEL_BITS;
const LEVELS: usize = 6;
/// The list of those to fire: one tick's at a time, or what was due when it cascaded.
const DUE: usize = LEVELS * SLOTS;
/// The list of those to be linked anew: one slot's at a time.
const CASCADING: usize = DUE + 1;
const LISTS: usize = CASCADING + 1;
const LIST: u32 = 1 << 31;
const NONE: u32 = u32::MAX;
/// As `previous`: no list has this number.
const UNARMED: u32 = u32::MAX;

const _: () = assert!(size_of::<TimerNode>() == 16);
const _: () = assert!(size_of::<Wheel>() <= 1_624);

#[cfg(test)]
mod tests;
