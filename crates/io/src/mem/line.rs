//! One direction of a wire inside the process: a link, and a queue for each shard of the host at
//! its end.
//!
//! Arrived packets are sorted by shard, as a network card with several queues does it. All shards
//! wait for the next arrival on the link; sorting then shows whose packet it is.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::{Link, LinkConfig, LinkCounters, Waits};

use crate::Waker;
use crate::device::MAX_BURST;
use crate::steering::queue_of;

/// A link that both of its ends share.
#[derive(Debug)]
pub(crate) struct Line {
    state: Mutex<State>,
    /// The wakers of the shards at the far end, set once by [`Line::open`].
    receivers: OnceLock<Box<[Waker]>>,
}

#[derive(Debug)]
struct State {
    link: Link,
    /// Packets that arrived, by shard. With one shard they stay on the link until it takes them.
    arrived: Vec<VecDeque<Bytes>>,
    /// The latest time passed in. Of two senders, the later caller may have read the clock earlier.
    latest: Instant,
}

impl Line {
    /// Creates a line without receivers. The same seed gives the same random choices.
    pub(crate) fn new(config: LinkConfig, seed: u64) -> Self {
        let link = Link::new(config, seed);
        let state = State { link, arrived: Vec::new(), latest: Instant::ZERO };
        Self { state: Mutex::new(state), receivers: OnceLock::new() }
    }

    /// Sets the shards that receive from the line, one for each waker.
    pub(crate) fn open(&self, receivers: Box<[Waker]>) {
        self.lock().arrived.resize_with(receivers.len(), VecDeque::new);
        // Opening consumes an end, so this is called once.
        let _ = self.receivers.set(receivers);
    }

    /// Returns the size of the longest packet that it takes, in bytes.
    pub(crate) fn mtu(&self) -> u16 {
        self.lock().link.config().mtu
    }

    /// Returns the counters of the link.
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

    /// Puts packets on the link, and wakes the shards that they are for.
    pub(crate) fn push(&self, now: Instant, packets: impl Iterator<Item = Bytes>) {
        let receivers = self.receivers.get().map_or(&[][..], |all| all);
        let mut queues = BTreeSet::new();
        {
            let mut state = self.lock();
            state.latest = state.latest.max(now);
            let now = state.latest;
            for packet in packets {
                if receivers.len() > 1 {
                    queues.insert(queue_of(&packet, receivers.len() as u16));
                }
                state.link.push_frame(now, packet);
            }
        }
        match receivers {
            [only] => only.wake(),
            all => {
                let own = queues.iter().filter_map(|queue| all.get(usize::from(*queue)));
                own.for_each(Waker::wake);
            }
        }
    }

    /// Takes packets that have arrived for the shard of `queue`. Returns their number.
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

    /// Returns the time of the next arrival for the shard of `queue`, or of one whose shard is not
    /// known yet.
    pub(crate) fn next_arrival(&self, queue: u16) -> Option<Instant> {
        let state = self.lock();
        let waiting = state.arrived.get(usize::from(queue)).is_some_and(|own| !own.is_empty());
        if waiting { Some(Instant::ZERO) } else { state.link.next_arrival() }
    }

    /// Locks the state. No code of this crate panics while it holds the lock, so a poisoned link is
    /// whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Sorts a burst of arrived packets. No shard needs waking: those that have packets now were
    /// waiting for this arrival.
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
