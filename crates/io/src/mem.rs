//! A wire inside the process: two stacks, joined by a [`Link`](whimbrel_link::Link) in each
//! direction, in real time.
//!
//! What a link is like, its configuration says: by default it is perfect, with rate, delay and
//! every impairment if asked. Needs no privilege and no system call while both workers are busy: a
//! frame wakes the other worker as a command would, by its [`Waker`].
//!
//! Super-segments are cut into packets of the link's MTU, as a network card does it; frames begin
//! with their IP header. At an end with several shards each has a queue, as of a card that computes
//! which.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::{LinkConfig, LinkCounters, cut};
use whimbrel_stack::{Capabilities, Medium, RxFrame, Steering, TxBatch};

use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};
use crate::{Clock, Waker};

pub(crate) use line::Line;

mod line;

/// One end of a wire that nobody is at yet.
#[derive(Debug)]
pub struct MemEnd {
    clock: Clock,
    inward: Arc<Line>,
    outward: Arc<Line>,
}

/// A queue of one end of the wire. Its worker must have [`MemWire::clock`] and [`MemWire::waker`].
#[derive(Debug)]
pub struct MemWire {
    clock: Clock,
    waker: Waker,
    queue: u16,
    inward: Arc<Line>,
    outward: Arc<Line>,
    /// Packets on their way to the link: cut before the other end is locked out.
    packets: Vec<Bytes>,
    counters: DeviceCounters,
}

impl MemEnd {
    /// Both ends of a wire. `there` is the way from the first to the second, `back` the other; the
    /// same `seed` makes the same choices.
    pub fn pair(there: LinkConfig, back: LinkConfig, seed: u64) -> (Self, Self) {
        let clock = Clock::start();
        let there = Arc::new(Line::new(there, seed));
        let back = Arc::new(Line::new(back, !seed));
        let first = Self { clock, inward: Arc::clone(&back), outward: Arc::clone(&there) };
        (first, Self { clock, inward: there, outward: back })
    }

    /// Somebody is there: a shard at each of so many queues (1 ..= 256). Which one a segment comes
    /// in by is computed from its ports; [`Steered`](crate::Steered) does the rest.
    pub fn open(self, queues: u16) -> io::Result<Vec<MemWire>> {
        let wakers: Box<[Waker]> =
            (0..queues.max(1)).map(|_| Waker::new()).collect::<io::Result<_>>()?;
        self.inward.open(wakers.clone());
        let wire = |(queue, waker)| MemWire {
            clock: self.clock,
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
    /// Both ends of a wire as of [`MemEnd::pair`], with one queue each.
    pub fn pair(there: LinkConfig, back: LinkConfig, seed: u64) -> io::Result<(Self, Self)> {
        let (first, second) = MemEnd::pair(there, back, seed);
        let only = |end: MemEnd| end.open(1).map(|mut wires| wires.remove(0));
        Ok((only(first)?, only(second)?))
    }

    /// The clock of both ends, and of their workers.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// What wakes this queue's worker.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// What happened on the way to the other end.
    pub fn outward_counters(&self) -> LinkCounters {
        self.outward.counters()
    }
}

impl Device for MemWire {
    fn name(&self) -> String {
        "mem:".into()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            medium: Medium::Ip,
            mtu: self.outward.mtu(),
            max_super: MAX_SUPER,
            tx_checksum: true,
            udp_segmentation: false,
            steering: Steering::None,
        }
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
        let pending = batch.pending();
        for segment in pending {
            self.counters.tx_frames += 1;
            self.counters.tx_octets += segment.len() as u64;
            let text = segment.payload.octets();
            let is_super = segment.gso_size > 0 && text > segment.gso_size.into();
            self.counters.tx_super += u64::from(is_super);
            cut(segment, |packet| self.packets.push(packet));
        }
        batch.consume(pending.len());
        self.outward.push(self.clock.now(), self.packets.drain(..));
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    /// When the next frame arrives. A worker asks this after it announced its sleep, so that a
    /// frame pushed before [`Waker::wake`] found it awake is not slept upon.
    fn next_deadline(&self) -> Option<Instant> {
        self.inward.next_arrival(self.queue)
    }
}

#[cfg(target_os = "linux")]
impl AsFd for MemWire {
    /// Readable when the worker is to be woken: for frames, or for whatever else.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

/// As large as an IP packet can be: the link cuts.
const MAX_SUPER: u32 = 65_535;

#[cfg(test)]
mod tests;
