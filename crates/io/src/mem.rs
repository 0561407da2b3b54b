//! A wire inside the process: two stacks, joined by a [`Link`] in each direction, in real time.
//!
//! What a link is like, its configuration says: by default it is perfect, with rate, delay and
//! every impairment if asked. Needs no privilege and no system call while both workers are busy: a
//! frame wakes the other worker as a command would, by its [`Waker`].
//!
//! Super-segments are cut into packets of the link's MTU, as a network card does it; frames begin
//! with their IP header.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use whimbrel_link::{Link, LinkConfig, LinkCounters, cut};
use whimbrel_stack::{Capabilities, Medium, RxFrame, Steering, TxBatch};
use whimbrel_tcp::{Instant, SegMeta};

use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};
use crate::{Clock, Waker};

/// One end of the wire. Its worker must have [`MemWire::clock`] and [`MemWire::waker`].
#[derive(Debug)]
pub struct MemWire {
    clock: Clock,
    own: Waker,
    peer: Waker,
    inward: Direction,
    outward: Direction,
    /// Packets on their way to the link: cut before the other end is locked out.
    packets: Vec<Bytes>,
    counters: DeviceCounters,
}

/// A link that both ends reach.
type Direction = Arc<Mutex<Link>>;

impl MemWire {
    /// Both ends of a wire. `there` is the way from the first to the second, `back` the other; the
    /// same `seed` makes the same choices.
    pub fn pair(there: LinkConfig, back: LinkConfig, seed: u64) -> io::Result<(Self, Self)> {
        let clock = Clock::start();
        let (first, second) = (Waker::new()?, Waker::new()?);
        let there = Arc::new(Mutex::new(Link::new(there, seed)));
        let back = Arc::new(Mutex::new(Link::new(back, !seed)));
        let end = |own: &Waker, peer: &Waker, inward: &Direction, outward: &Direction| Self {
            clock,
            own: own.clone(),
            peer: peer.clone(),
            inward: Arc::clone(inward),
            outward: Arc::clone(outward),
            packets: Vec::new(),
            counters: DeviceCounters::default(),
        };
        Ok((end(&first, &second, &back, &there), end(&second, &first, &there, &back)))
    }

    /// The clock of both ends, and of their workers.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// What wakes this end's worker.
    pub fn waker(&self) -> Waker {
        self.own.clone()
    }

    /// What happened on the way to the other end.
    pub fn outward_counters(&self) -> LinkCounters {
        *lock(&self.outward).counters()
    }
}

impl Device for MemWire {
    fn capabilities(&self) -> Capabilities {
        let mtu = lock(&self.outward).config().mtu;
        Capabilities {
            medium: Medium::Ip,
            mtu,
            max_super: MAX_SUPER,
            tx_checksum: true,
            steering: Steering::None,
        }
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let mut packets = [const { Bytes::new() }; MAX_BURST];
        let now = self.clock.now();
        let mut taken = 0;
        {
            let mut link = lock(&self.inward);
            for (place, packet) in packets.iter_mut().zip(std::iter::from_fn(|| link.pop(now))) {
                *place = packet;
                taken += 1;
            }
        }
        if taken == 0 {
            return Ok(0);
        }
        let mut frames = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
        for (frame, packet) in frames.iter_mut().zip(&packets).take(taken) {
            *frame = RxFrame::new(packet, SegMeta::SINGLE);
            self.counters.rx_octets += packet.len() as u64;
        }
        self.counters.rx_frames += taken as u64;
        self.counters.rx_segments += taken as u64;
        deliver(frames.get(..taken).unwrap_or_default());
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
        let now = self.clock.now();
        {
            let mut link = lock(&self.outward);
            for packet in self.packets.drain(..) {
                link.push_frame(now, packet);
            }
        }
        self.peer.wake();
        Ok(TxOutcome::Drained)
    }

    fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    /// When the next frame arrives. A worker asks this after it announced its sleep, so that a
    /// frame pushed before [`Waker::wake`] found it awake is not slept upon.
    fn next_deadline(&self) -> Option<Instant> {
        lock(&self.inward).next_arrival()
    }
}

impl AsFd for MemWire {
    /// Readable when the worker is to be woken: for frames, or for whatever else.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }
}

/// Nothing of ours panics while it holds the lock and leaves a link half changed.
fn lock(link: &Direction) -> MutexGuard<'_, Link> {
    link.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As large as an IP packet can be: the link cuts.
const MAX_SUPER: u32 = 65_535;

#[cfg(test)]
mod tests;
