//! One direction of a wire inside the process: a link, and a queue for each shard of the host at its
//! end.
//!
//! What arrives is sorted by the shard that it is for, as a network card with several queues does
//! it. All shards wait for whatever arrives next on the link; whose it was shows then.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::{Link, LinkConfig, LinkCounters, Waits};

use crate::Waker;
use crate::device::MAX_BURST;
use crate::steering::queue_of;

/// A link that both of its ends reach.
#[derive(Debug)]
pub(crate) struct Line {
    state: Mutex<State>,
    /// What wakes the shards at its end, once there are some.
    receivers: OnceLock<Box<[Waker]>>,
}

#[derive(Debug)]
struct State {
    link: Link,
    /// What arrived for each shard; of one alone everything comes off the link.
    arrived: Vec<VecDeque<Bytes>>,
    /// The latest time told: of two senders one may come later, and have looked at the clock before.
    told: Instant,
}

impl Line {
    /// A line that nobody hears yet. The same seed makes the same choices.
    pub(crate) fn new(config: LinkConfig, seed: u64) -> Self {
        let link = Link::new(config, seed);
        let state = State { link, arrived: Vec::new(), told: Instant::ZERO };
        Self { state: Mutex::new(state), receivers: OnceLock::new() }
    }

    /// Shards hear it from now on, as many as there are wakers.
    pub(crate) fn open(&self, receivers: Box<[Waker]>) {
        self.lock().arrived.resize_with(receivers.len(), VecDeque::new);
        // An end is opened once: opening consumes it.
        let _ = self.receivers.set(receivers);
    }

    /// The longest packet that it takes, bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.lock().link.config().mtu
    }

    /// What happened on it.
    pub(crate) fn counters(&self) -> LinkCounters {
        *self.lock().link.counters()
    }

    /// Measures how long packets that come from `from` on wait.
    pub(crate) fn measure_waits(&self, from: Instant) {
        self.lock().link.measure_waits(from);
    }

    /// Returns the times that they waited, if these are measured.
    pub(crate) fn waits(&self) -> Option<Waits> {
        self.lock().link.waits().cloned()
    }

    /// Puts packets on it, and wakes whom they are for.
    pub(crate) fn push(&self, now: Instant, packets: impl Iterator<Item = Bytes>) {
        let receivers = self.receivers.get().map_or(&[][..], |all| all);
        let mut whose = BTreeSet::new();
        {
            let mut state = self.lock();
            state.told = state.told.max(now);
            let now = state.told;
            for packet in packets {
                if receivers.len() > 1 {
                    whose.insert(queue_of(&packet, receivers.len() as u16));
                }
                state.link.push_frame(now, packet);
            }
        }
        match receivers {
            [only] => only.wake(),
            all => {
                let own = whose.iter().filter_map(|queue| all.get(usize::from(*queue)));
                own.for_each(Waker::wake);
            }
        }
    }

    /// Takes what has arrived for the shard of `queue`. Returns how many packets.
    pub(crate) fn pop(&self, now: Instant, queue: u16, places: &mut [Bytes; MAX_BURST]) -> usize {
        let mut state = self.lock();
        state.sort(now);
        let State { link, arrived, .. } = &mut *state;
        let alone = arrived.len() <= 1;
        let mut next = || match alone {
            true => link.pop(now),
            false => arrived.get_mut(usize::from(queue))?.pop_front(),
        };
        let mut taken = 0;
        for (place, packet) in places.iter_mut().zip(std::iter::from_fn(&mut next)) {
            *place = packet;
            taken += 1;
        }
        taken
    }

    /// When something is to be taken for the shard of `queue`, or to be seen whose it is.
    pub(crate) fn next_arrival(&self, queue: u16) -> Option<Instant> {
        let state = self.lock();
        let waiting = state.arrived.get(usize::from(queue)).is_some_and(|own| !own.is_empty());
        if waiting { Some(Instant::ZERO) } else { state.link.next_arrival() }
    }

    /// Nothing of ours panics while it holds the lock and leaves a link half changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Sorts a burst of what has arrived. Nobody need be woken: whoever has something now waits for
    /// the same arrival.
    fn sort(&mut self, now: Instant) {
        let queues = self.arrived.len();
        if queues <= 1 {
            return;
        }
        for _ in 0..MAX_BURST {
            let Some(packet) = self.link.pop(now) else { break };
            let queue = queue_of(&packet, queues as u16);
            if let Some(own) = self.arrived.get_mut(usize::from(queue)) {
                own.push_back(packet);
            }
        }
    }
}
