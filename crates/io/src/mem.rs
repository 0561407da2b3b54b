//! A wire inside the process, which joins two stacks by a [`Link`](whimbrel_link::Link) in each
//! direction, in real time.
//!
//! A link is perfect by default; its configuration sets rate, delay and impairments. It needs no
//! privilege, and no system call while both workers are busy. A frame wakes the other worker by its
//! [`Waker`], as a command does.
//!
//! Super-segments are cut into packets of the link's MTU, as by a network card. Frames begin with
//! their IP header. An end with several shards has a queue for each, selected as by a card's hash.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::{LinkConfig, LinkCounters, cut};
use whimbrel_stack::{Capabilities, Medium, RxFrame, TxBatch};

use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};
use crate::{Clock, Waker};

pub use gate::PacketVerdict;
pub use handle::LinkHandle;
pub(crate) use line::Line;

mod gate;
mod handle;
pub mod hub;
mod line;

/// One end of a wire that is not open yet.
#[derive(Debug)]
pub struct MemEnd {
    /// Clock of both ends, which the first to open sets.
    clock: Arc<OnceLock<Clock>>,
    inward: Arc<Line>,
    outward: Arc<Line>,
}

/// A queue of one end of the wire. Its worker needs [`MemWire::clock`] and [`MemWire::waker`].
#[derive(Debug)]
pub struct MemWire {
    clock: Clock,
    waker: Waker,
    queue: u16,
    inward: Arc<Line>,
    outward: Arc<Line>,
    /// Packets for the link, segmented before the other end is locked out.
    packets: Vec<Bytes>,
    counters: DeviceCounters,
}

impl MemEnd {
    /// Creates both ends of a wire. `there` describes the direction from the first to the second,
    /// `back` the other. The same `seed` repeats the same decisions.
    pub fn pair(there: LinkConfig, back: LinkConfig, seed: u64) -> (Self, Self) {
        let clock = Arc::new(OnceLock::new());
        let there = Arc::new(Line::new(there, seed));
        let back = Arc::new(Line::new(back, !seed));
        let first = Self {
            clock: Arc::clone(&clock),
            inward: Arc::clone(&back),
            outward: Arc::clone(&there),
        };
        (first, Self { clock, inward: there, outward: back })
    }

    /// Returns a handle of the link from this end to the other, to change it while stacks use it.
    pub fn outgoing(&self) -> LinkHandle {
        let clock = Arc::clone(&self.clock);
        // Zero before an end is open.
        let now = move || clock.get().map_or(Instant::ZERO, Clock::now);
        LinkHandle { line: Arc::clone(&self.outward), now: Arc::new(now) }
    }

    /// Opens this end with `queues` queues (1 to 256), one for each shard. The queue of a segment
    /// follows from its ports; [`Steered`](crate::Steered) forwards the rest. Both ends follow the
    /// clock of the first that is opened: `clock`, unless the other end is open.
    pub fn open(self, queues: u16, clock: Clock) -> io::Result<Vec<MemWire>> {
        let clock = *self.clock.get_or_init(|| clock);
        let wakers: Box<[Waker]> =
            (0..queues.max(1)).map(|_| Waker::new()).collect::<io::Result<_>>()?;
        self.inward.open(&wakers);
        let wire = |(queue, waker)| MemWire {
            clock,
            waker,
            queue,
            inward: Arc::clone(&self.inward),
            outward: Arc::clone(&self.outward),
            packets: Vec::new(),
            counters: DeviceCounters::default(),
        };
        Ok((0..).zip(wakers).map(wire).collect())
    }
}

impl MemWire {
    /// Creates both ends as [`MemEnd::pair`] does, with one queue each.
    pub fn pair(there: LinkConfig, back: LinkConfig, seed: u64) -> io::Result<(Self, Self)> {
        let (first, second) = MemEnd::pair(there, back, seed);
        let clock = Clock::start();
        let only = |end: MemEnd| end.open(1, clock).map(|mut wires| wires.remove(0));
        Ok((only(first)?, only(second)?))
    }

    /// Returns the clock of both ends and their workers.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns the waker of this queue's worker.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Returns the counters of the link towards the other end.
    pub fn outward_counters(&self) -> LinkCounters {
        self.outward.counters()
    }
}

impl Device for MemWire {
    fn name(&self) -> String {
        "mem:".into()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::plain(Medium::Ip, self.outward.mtu()).with_segmentation(MAX_SUPER)
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let mut packets = [const { Bytes::new() }; MAX_BURST];
        let taken = self.inward.pop(self.clock.now(), self.queue, &mut packets);
        if taken == 0 {
            return Ok(0);
        }
        self.counters.deliver_packets(packets.get(..taken).unwrap_or_default(), deliver);
        Ok(taken)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        batch.drain(|segment| {
            self.counters.count_sent(segment);
            cut(segment, |packet| self.packets.push(packet));
        });
        self.outward.push(self.clock.now(), self.packets.drain(..));
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    /// Returns the arrival time of the next frame. A worker calls this after announcing its sleep, so
    /// that a frame pushed before [`Waker::wake`] is not missed.
    fn next_deadline(&self) -> Option<Instant> {
        self.inward.next_arrival(self.queue)
    }
}

#[cfg(target_os = "linux")]
impl AsFd for MemWire {
    /// Becomes readable when the worker has to wake, for frames or anything else.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// Largest IP packet: the link segments.
const MAX_SUPER: u32 = 65_535;

#[cfg(test)]
mod tests;
