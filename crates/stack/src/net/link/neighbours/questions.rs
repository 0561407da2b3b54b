//! Neighbours are asked where they are and whether they are still there, again if need be, and given up.

use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_wire::{Address, MacAddress};

use super::{MOST_ASKED, MOST_SOUGHT, NeighbourState, Neighbours, RETRANS_TIMER};
use crate::link::message::LinkMessage;
use crate::link::{LinkCounters, Outbox};

impl Neighbours {
    /// Asks again or gives up, for up to `left` neighbours; takes them from `left`.
    pub(in crate::net::link) fn advance(
        &mut self,
        now: Instant,
        left: &mut usize,
        outbox: &mut Outbox,
        counters: &mut LinkCounters,
    ) {
        while let Some(index) = self.wheel.pop_due(&mut self.slots, now, left) {
            self.on_timer(index, now, outbox, counters);
        }
    }

    pub(in crate::net::link) fn next_deadline(&self) -> Option<Instant> {
        self.wheel.next_deadline()
    }

    fn on_timer(
        &mut self,
        index: u32,
        now: Instant,
        outbox: &mut Outbox,
        counters: &mut LinkCounters,
    ) {
        let Some(neighbour) = self.slots.0.get_mut(index) else { return };
        match (neighbour.state, neighbour.rival) {
            (NeighbourState::Probe, Some(rival)) if neighbour.asked >= MOST_ASKED => {
                counters.moved += 1;
                neighbour.move_to(rival);
                self.enter(index, NeighbourState::Stale, now);
            }
            (NeighbourState::Incomplete | NeighbourState::Probe, _)
                if neighbour.asked >= MOST_ASKED =>
            {
                counters.failed += 1;
                self.silent.push_back(neighbour.addr);
                let waited = self.forget(index);
                self.failed.extend(waited);
            }
            (NeighbourState::Incomplete | NeighbourState::Probe, _) => {
                self.ask(index, now, outbox, counters);
            }
            (NeighbourState::Delay, _) => {
                self.enter(index, NeighbourState::Probe, now);
                self.ask(index, now, outbox, counters);
            }
            (NeighbourState::Reachable | NeighbourState::Stale, _) => {}
        }
    }

    /// Begins to seek the station of `addr`, which is not known; unless as many are sought as may be, and none
    /// more can be asked for now.
    pub(in crate::net::link) fn seek(
        &mut self,
        addr: Address,
        now: Instant,
        outbox: &mut Outbox,
        counters: &mut LinkCounters,
    ) -> Option<u32> {
        if self.sought.len() >= MOST_SOUGHT
            && let Some(oldest) = self.sought.back()
        {
            if !self.seeks.has_any(now) {
                counters.ask_limited += 1;
                counters.out_queue_full += 1;
                return None;
            }
            counters.evicted += 1;
            counters.out_queue_full += self.forget(oldest).len() as u64;
        }
        let index = self.insert(addr, MacAddress::default(), now, counters);
        self.ask(index, now, outbox, counters);
        Some(index)
    }

    /// Asks once more, and sees to it that there is an answer or another question in time.
    pub(super) fn ask(
        &mut self,
        index: u32,
        now: Instant,
        outbox: &mut Outbox,
        counters: &mut LinkCounters,
    ) {
        let Some(neighbour) = self.slots.0.get_mut(index) else { return };
        let of = (neighbour.state == NeighbourState::Probe).then_some(neighbour.mac);
        let pause = if neighbour.rival.is_some() { CLAIM_QUESTION } else { RETRANS_TIMER };
        let question = LinkMessage::Ask { target: neighbour.addr, of };
        let budget = if of.is_some() { &mut self.probes } else { &mut self.seeks };
        let is_asked = budget.take(now) && outbox.push(question);
        if is_asked {
            counters.asked += 1;
        } else {
            counters.ask_limited += 1;
        }
        // Who is known has the time of as many questions as it was asked.
        neighbour.asked += u8::from(is_asked || of.is_none());
        self.wheel.arm(&mut self.slots, index, now + pause);
    }
}

/// The time that the one known has for each of [`MOST_ASKED`] answers.
const CLAIM_QUESTION: Duration = Duration::from_millis(300);
