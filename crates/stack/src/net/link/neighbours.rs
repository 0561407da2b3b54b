//! The neighbours and their stations: one table for ARP and Neighbour Discovery, by the
//! states of RFC 4861 7.3, which RFC 1122 2.3.2.1 leaves ARP free to follow.
//!
//! ```text
//!            seek                    answered
//!  (nobody) ──────> INCOMPLETE ──────────────────────> REACHABLE <──┐
//!     │                 │ 3 questions, 1 s each            │        │ confirmed
//!     │ asked by it     v                                  │ 30 s   │
//!     │             (nobody), packets dropped              v        │
//!     └──────────────────────────────────────────────────> STALE ───┤
//!                                                          │ used   │
//!              (nobody) <── 3 questions ── PROBE <── 5 s ─ DELAY ───┘
//! ```
//!
//! A neighbour is probed only while it is used: STALE costs nothing. That REACHABLE is over is
//! seen at the next use, without a timer; the others share one wheel, one timer a neighbour.
//!
//! # Whom to believe
//!
//! RFC 4861 7.2.5 lets an unsolicited advertisement replace the station of a neighbour that
//! was just confirmed, and RFC 826 any ARP packet: one forged frame takes over a host's traffic. Here
//! the station known is asked first, three times within a second, and keeps the address if it
//! answers; one that moved, or gave its address to another, is silent. Meanwhile packets go where
//! they went. Within [`CLAIM_PAUSE`] of a confirmation claims are not looked at, as in Linux'
//! `locktime`, so that they cost three questions a second and neighbour at most. The tunable
//! `neighbours.claims` has the RFCs' way.
//!
//! # Bounds
//!
//! [`MOST`] neighbours, of which [`MOST_SOUGHT`] are INCOMPLETE; a new one makes room for itself:
//! an INCOMPLETE one by forgetting the oldest of these, whose packets are dropped, any other by
//! forgetting whichever was not used for the longest time. So a scan of a whole network through us
//! leaves those alone that answer, and a neighbour that answers within a millisecond is found even while
//! others make us seek a hundred thousand a second. [`MOST_WAITING`] packets wait for a neighbour,
//! the oldest giving way (RFC 4861 7.2.2), so [`MOST_WAITING`] x [`MOST_SOUGHT`] in all. Questions
//! that seek a neighbour leave at [`ASKS_PER_SECOND`] at most; where all are used up, a new one is
//! not sought instead of one that was asked for. Questions to those known have as many of their own:
//! who makes us seek without end starves none of these, and none is given up, or its address another
//! station's, without being asked.

mod claims;
mod list;
mod probe_budget;
mod questions;

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use whimbrel_base::packet::TxSegment;
use whimbrel_base::{Instant, Slab};
use whimbrel_tcp::tunables::NeighbourClaims;
use whimbrel_wire::{Address, MacAddress};

use super::{LinkCounters, Outbox, readdress};
use crate::wheel::{TimerNode, TimerNodes, Wheel};
pub(super) use claims::Advertised;
use list::{Links, List};
use probe_budget::ProbeBudget;
pub use probe_budget::{ASKS_AT_ONCE, ASKS_PER_SECOND};

/// The neighbours of a host.
#[derive(Debug)]
pub struct Neighbours {
    slots: Slots,
    index_of: BTreeMap<Address, u32>,
    /// Those that are sought, the oldest last.
    sought: List,
    /// The others, the longest unused last.
    settled: List,
    wheel: Wheel,
    /// The rate at which those sought are asked for, and those known are asked.
    seeks: ProbeBudget,
    probes: ProbeBudget,
    /// Packets whose neighbour was found.
    ready: VecDeque<TxSegment>,
    /// Packets whose neighbour did not answer: not to be sent, but told of.
    failed: VecDeque<TxSegment>,
    /// Neighbours that did not answer any more, until they are taken.
    silent: VecDeque<Address>,
    /// Half of REACHABLE_TIME and more, by an amount of this host's own.
    reachable: Duration,
    /// The policy towards a station that claims a confirmed neighbour's address.
    claims: NeighbourClaims,
}

/// A neighbour's state (RFC 4861 7.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeighbourState {
    /// Sought: no station has answered yet.
    Incomplete,
    /// Confirmed a short while ago.
    Reachable,
    /// Not confirmed lately, and not used since.
    Stale,
    /// Used without being confirmed; confirmation may come by itself.
    Delay,
    /// Asked whether it is still there.
    Probe,
}

/// The parts of a link that a question needs.
pub(super) struct ProbeContext<'a> {
    pub(super) outbox: &'a mut Outbox,
    pub(super) counters: &'a mut LinkCounters,
}

#[derive(Debug)]
struct Neighbour {
    addr: Address,
    /// Without meaning while it is sought.
    mac: MacAddress,
    state: NeighbourState,
    /// Questions asked in this state.
    asked: u8,
    /// True if this station ever answered a question of ours.
    confirmed: bool,
    /// Another station that claims to be it, while the one known is asked whether it is.
    rival: Option<MacAddress>,
    timer: TimerNode,
    links: Links,
    /// Until when REACHABLE holds.
    reachable_until: Instant,
    /// Packets that wait for it, while it is sought.
    waiting: VecDeque<TxSegment>,
}

impl Neighbour {
    /// It is at this station.
    fn move_to(&mut self, mac: MacAddress) {
        self.confirmed &= self.mac == mac;
        self.mac = mac;
    }
}

/// The records, in whose slots the wheel and the lists have their nodes.
#[derive(Debug, Default)]
struct Slots(Slab<Neighbour>);

/// Getters, which ask no neighbour.
impl Neighbours {
    pub(super) fn new(own: MacAddress) -> Self {
        Self {
            slots: Slots::default(),
            index_of: BTreeMap::new(),
            sought: List::default(),
            settled: List::default(),
            wheel: Wheel::new(Instant::ZERO),
            seeks: ProbeBudget::full(),
            probes: ProbeBudget::full(),
            ready: VecDeque::new(),
            failed: VecDeque::new(),
            silent: VecDeque::new(),
            reachable: reachable_time(own),
            claims: NeighbourClaims::Verify,
        }
    }

    /// From now on claims are answered so.
    pub(super) fn set_claims(&mut self, claims: NeighbourClaims) {
        self.claims = claims;
    }

    /// Returns the number known or sought.
    pub fn len(&self) -> usize {
        self.slots.0.len()
    }

    /// True if no neighbour is known or sought.
    pub fn is_empty(&self) -> bool {
        self.slots.0.is_empty()
    }

    /// Returns the number sought.
    pub fn sought(&self) -> usize {
        self.sought.len()
    }

    /// Returns the number of packets that wait for a neighbour, or to be sent to one that was found. Walks the table.
    pub fn waiting(&self) -> usize {
        let waiting = |index: &u32| self.slots.0.get(*index).map_or(0, |it| it.waiting.len());
        self.ready.len() + self.index_of.values().map(waiting).sum::<usize>()
    }

    /// The state of the neighbour at `addr` and its station, if it is known.
    pub fn get(&self, addr: &Address) -> Option<(NeighbourState, Option<MacAddress>)> {
        let neighbour = self.slots.0.get(self.find(addr)?)?;
        let known = neighbour.state != NeighbourState::Incomplete;
        Some((neighbour.state, known.then_some(neighbour.mac)))
    }

    pub(super) fn find(&self, addr: &Address) -> Option<u32> {
        self.index_of.get(addr).copied()
    }

    /// True if the neighbour of this index is the one at `addr`.
    pub(super) fn is_at(&self, index: u32, addr: &Address) -> bool {
        self.slots.0.get(index).is_some_and(|neighbour| neighbour.addr == *addr)
    }
}

/// Packets that are to go to a neighbour, and what arrived from one.
impl Neighbours {
    /// A packet is to go to this neighbour: its station, if it is known. Use is what makes a stale
    /// neighbour be asked.
    pub(super) fn station(&mut self, index: u32, now: Instant) -> Option<MacAddress> {
        let neighbour = self.slots.0.get_mut(index)?;
        let (state, mac) = (neighbour.state, neighbour.mac);
        let holds = now < neighbour.reachable_until;
        match state {
            NeighbourState::Incomplete => return None,
            NeighbourState::Reachable if holds => {}
            // It is being asked, or soon is: meanwhile its known station is used.
            NeighbourState::Delay | NeighbourState::Probe => {}
            NeighbourState::Reachable | NeighbourState::Stale => {
                self.enter(index, NeighbourState::Delay, now);
            }
        }
        self.settled.move_to_front(&mut self.slots, index);
        Some(mac)
    }

    /// A connection over this neighbour hears nothing: what confirmed it counts no more, and its
    /// next use asks.
    pub(super) fn suspect(&mut self, index: u32, now: Instant) {
        if let Some(neighbour) = self.slots.0.get_mut(index) {
            neighbour.reachable_until = neighbour.reachable_until.min(now);
        }
    }

    /// Lets a packet wait for a neighbour that is sought.
    pub(super) fn park(&mut self, index: u32, packet: TxSegment, counters: &mut LinkCounters) {
        let Some(neighbour) = self.slots.0.get_mut(index) else { return };
        // RFC 4861 7.2.2: "When a queue overflows, the new arrival SHOULD replace the oldest
        // entry."
        if neighbour.waiting.len() >= MOST_WAITING {
            neighbour.waiting.pop_front();
            counters.out_queue_full += 1;
        }
        neighbour.waiting.push_back(packet);
    }

    /// The next packet whose neighbour was found.
    pub(super) fn pop_ready(&mut self) -> Option<TxSegment> {
        self.ready.pop_front()
    }

    /// The next packet whose neighbour did not answer.
    pub(super) fn pop_failed(&mut self) -> Option<TxSegment> {
        self.failed.pop_front()
    }

    /// Takes the next neighbour that did not answer.
    pub(super) fn pop_silent(&mut self) -> Option<Address> {
        self.silent.pop_front()
    }

    /// All packets whose neighbour did not answer.
    pub(super) fn take_failed(&mut self) -> VecDeque<TxSegment> {
        core::mem::take(&mut self.failed)
    }

    /// There is no other way for a packet whose neighbour did not answer.
    pub(super) fn give_up(&mut self, packet: TxSegment) {
        self.failed.push_back(packet);
    }

    /// A packet is addressed, and leaves with those whose neighbour was found.
    pub(super) fn make_ready(&mut self, packet: TxSegment) {
        self.ready.push_back(packet);
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }
}

/// Records that come, change and go, and the lists that they are in.
impl Neighbours {
    /// A neighbour that is sought.
    fn insert(
        &mut self,
        addr: Address,
        mac: MacAddress,
        now: Instant,
        counters: &mut LinkCounters,
    ) -> u32 {
        if self.len() >= MOST
            && let Some(unused) = self.settled.back()
        {
            counters.evicted += 1;
            self.forget(unused);
        }
        let index = self.slots.0.insert(Neighbour {
            addr,
            mac,
            state: NeighbourState::Incomplete,
            asked: 0,
            confirmed: false,
            rival: None,
            timer: TimerNode::default(),
            links: Links::default(),
            reachable_until: now,
            waiting: VecDeque::new(),
        });
        self.index_of.insert(addr, index);
        self.sought.push_front(&mut self.slots, index);
        index
    }

    /// It is known now: in `state`, and whatever waited for it goes.
    fn enter(&mut self, index: u32, state: NeighbourState, now: Instant) {
        let Some(neighbour) = self.slots.0.get_mut(index) else { return };
        let before = core::mem::replace(&mut neighbour.state, state);
        neighbour.asked = 0;
        neighbour.rival = None;
        neighbour.confirmed |= state == NeighbourState::Reachable;
        neighbour.reachable_until = now + self.reachable;
        let mac = neighbour.mac;
        for mut packet in core::mem::take(&mut neighbour.waiting) {
            readdress(&mut packet, mac);
            self.ready.push_back(packet);
        }
        if before == NeighbourState::Incomplete {
            self.sought.remove(&mut self.slots, index);
            self.settled.push_front(&mut self.slots, index);
        }
        if state == NeighbourState::Delay {
            self.wheel.arm(&mut self.slots, index, now + DELAY_FIRST_PROBE);
        } else {
            // Only DELAY runs from here; who asks sets the timer of the questions.
            self.wheel.disarm(&mut self.slots, index);
        }
    }

    /// It goes; returns the packets that waited for it.
    fn forget(&mut self, index: u32) -> VecDeque<TxSegment> {
        let Some(neighbour) = self.slots.0.get(index) else { return VecDeque::new() };
        let (addr, state) = (neighbour.addr, neighbour.state);
        let list = match state {
            NeighbourState::Incomplete => &mut self.sought,
            _ => &mut self.settled,
        };
        list.remove(&mut self.slots, index);
        self.wheel.disarm(&mut self.slots, index);
        self.index_of.remove(&addr);
        self.slots.0.remove(index).map(|neighbour| neighbour.waiting).unwrap_or_default()
    }
}

impl TimerNodes for Slots {
    fn node(&self, id: u32) -> &TimerNode {
        &self.0.get(id).expect("an armed timer has a neighbour").timer
    }

    fn node_mut(&mut self, id: u32) -> &mut TimerNode {
        &mut self.0.get_mut(id).expect("an armed timer has a neighbour").timer
    }
}

/// RFC 4861 6.3.2: "a uniformly distributed random value between MIN_RANDOM_FACTOR and
/// MAX_RANDOM_FACTOR times BaseReachableTime", so that hosts that started together do not probe
/// together. What differs between them, and costs no entropy, is their station: 15 to 45 s.
fn reachable_time(own: MacAddress) -> Duration {
    let mixed = own
        .0
        .iter()
        .fold(0u64, |mixed, byte| (mixed ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Duration::from_millis(15_000 + (mixed >> 32) % 30_001)
}

/// Neighbours known and sought (Linux: `gc_thresh3`, 1,024). Fewer: those in turn use forget each
/// other, and each use asks again. More: a station that takes a million addresses costs us as many
/// records of about 130 bytes.
pub const MOST: usize = 1_024;
/// Neighbours sought at once. Fewer: who does not answer keeps others from being found. More:
/// [`MOST_WAITING`] packets each.
pub const MOST_SOUGHT: usize = 128;
/// Packets that wait for one neighbour: the first segments of a few connections. Fewer: a burst of
/// connections to a new neighbour loses SYNs. More: each may hold 64 kB.
pub const MOST_WAITING: usize = 3;
/// RFC 4861 10: MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT.
pub const MOST_ASKED: u8 = 3;
/// RFC 4861 10. RFC 1122 2.3.2.1 recommends as much for ARP: "The recommended maximum rate is 1 per
/// second per destination."
pub const RETRANS_TIMER: Duration = Duration::from_secs(1);
/// RFC 4861 10: DELAY_FIRST_PROBE_TIME.
pub const DELAY_FIRST_PROBE: Duration = Duration::from_secs(5);
/// The time for which a confirmation silences other stations' claims (Linux' `locktime`). Less: more questions
/// for a station that likes to provoke them. More: who moves at once is followed later.
pub const CLAIM_PAUSE: Duration = Duration::from_secs(1);
