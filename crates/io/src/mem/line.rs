//! One direction of a wire inside the process: a link, and a queue for each shard of the host at
//! its end.
//!
//! Arrived packets are sorted by shard, as a network card with several queues does it. All shards
//! wait for the next arrival on the link; sorting then shows whose packet it is.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::{Link, LinkConfig, LinkCounters, LinkOutcome, Loss, Waits};

use super::gate::{Gate, PacketVerdict};
use crate::Waker;
use crate::device::MAX_BURST;
use crate::steering::queue_of;

/// A link that both of its ends share.
#[derive(Debug)]
pub(crate) struct Line {
    state: Mutex<State>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) link: Link,
    /// Interference of tests in front of the link.
    pub(super) gate: Gate,
    /// The wakers of the shards at the far end, set by [`Line::open`].
    receivers: Arc<[Waker]>,
    /// Observer of the packets, if there is one.
    observer: Option<Box<dyn LineObserver>>,
    /// Packets that arrived, by shard. With one shard they stay on the link until it takes them.
    arrived: Vec<VecDeque<Bytes>>,
    /// The latest time passed in. Of two senders, the later caller may have read the clock earlier.
    latest: Instant,
}

/// Observes the packets of a line, under its lock.
pub(crate) trait LineObserver: fmt::Debug + Send {
    /// A packet was sent; its outcome is not known while the link is held.
    fn on_sent(&self, at: Instant, packet: &Bytes, outcome: Option<LinkOutcome>);
    /// A packet was taken at the far end.
    fn on_arrived(&self, at: Instant, packet: &Bytes);
}

impl Line {
    /// Creates a line without receivers. The same seed gives the same random choices.
    pub(crate) fn new(config: LinkConfig, seed: u64) -> Self {
        let link = Link::new(config, seed);
        let state = State {
            link,
            gate: Gate::default(),
            receivers: Arc::new([]),
            observer: None,
            arrived: Vec::new(),
            latest: Instant::ZERO,
        };
        Self { state: Mutex::new(state) }
    }

    /// Sets the shards that receive from the line, one for each waker, in place of former ones.
    pub(crate) fn open(&self, receivers: &[Waker]) {
        let mut state = self.lock();
        state.arrived.clear();
        state.arrived.resize_with(receivers.len(), VecDeque::new);
        state.receivers = receivers.into();
    }

    /// Sets the observer of the packets.
    pub(crate) fn observe(&self, observer: Box<dyn LineObserver>) {
        self.lock().observer = Some(observer);
    }

    /// Changes the line at `now`, and wakes its receivers: packets may arrive at other times.
    pub(super) fn change(&self, now: Instant, act: impl FnOnce(&mut State, Instant)) {
        let receivers = {
            let mut state = self.lock();
            let now = state.reach(now);
            act(&mut state, now);
            Arc::clone(&state.receivers)
        };
        receivers.iter().for_each(Waker::wake);
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
        let mut state = self.lock();
        let receivers = Arc::clone(&state.receivers);
        let mut queues = BTreeSet::new();
        let mut enter = |state: &mut State, packet: Bytes| {
            if receivers.len() > 1 {
                queues.insert(queue_of(&packet, receivers.len() as u16));
            }
            state.enter(now, packet);
        };
        for packet in packets {
            let Some(rule) = state.gate.rule.clone() else {
                enter(&mut state, packet);
                continue;
            };
            drop(state);
            let verdict = rule.judge(&packet);
            state = self.lock();
            match verdict {
                PacketVerdict::Pass => enter(&mut state, packet),
                PacketVerdict::Drop => state.drop_packet(now, &packet),
                PacketVerdict::Duplicate => {
                    enter(&mut state, packet.clone());
                    enter(&mut state, packet);
                }
            }
        }
        drop(state);
        match &*receivers {
            [only] => only.wake(),
            all => {
                let own = queues.iter().filter_map(|queue| all.get(usize::from(*queue)));
                own.for_each(Waker::wake);
            }
        }
    }

    /// Takes the first packet that has arrived, with the time of its arrival. For a receiver that is no
    /// shard.
    pub(crate) fn pop_first(&self, now: Instant) -> Option<(Instant, Bytes)> {
        self.lock().link.pop_arrival(now)
    }

    /// Takes packets that have arrived for the shard of `queue`. Returns their number.
    pub(crate) fn pop(&self, now: Instant, queue: u16, places: &mut [Bytes; MAX_BURST]) -> usize {
        let mut state = self.lock();
        state.sort(now);
        let State { link, arrived, observer, .. } = &mut *state;
        let alone = arrived.len() <= 1;
        let mut next = || match alone {
            true => link.pop(now),
            false => arrived.get_mut(usize::from(queue))?.pop_front(),
        };
        let mut taken = 0;
        for (place, packet) in places.iter_mut().zip(std::iter::from_fn(&mut next)) {
            if let Some(observer) = observer {
                observer.on_arrived(now, &packet);
            }
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
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the latest time passed in, `now` included.
    fn reach(&mut self, now: Instant) -> Instant {
        self.latest = self.latest.max(now);
        self.latest
    }

    /// Passes a packet to the link, or to what stands in front of it.
    pub(super) fn enter(&mut self, now: Instant, packet: Bytes) {
        let now = self.reach(now);
        let Self { link, gate, observer, .. } = self;
        let Some(observer) = observer else {
            gate.enter(link, now, packet);
            return;
        };
        let outcome = gate.enter(link, now, packet.clone());
        observer.on_sent(now, &packet, outcome);
    }

    /// Loses a packet that the rule dropped.
    fn drop_packet(&mut self, now: Instant, packet: &Bytes) {
        let outcome = self.link.lose(packet, Loss::Targeted);
        if let Some(observer) = &self.observer {
            observer.on_sent(now, packet, Some(outcome));
        }
    }

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
