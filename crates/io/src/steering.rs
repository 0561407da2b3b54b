//! Frames to the shard that they belong to.
//!
//! A device with several queues has a shard at each, and the kernel computes which one a segment comes in by
//! ([`program`]): `(source port ^ destination port) mod queues`. A shard draws its ports so that
//! what it asks is answered at home. What comes in elsewhere all the same is forwarded to its owner, once, and
//! counted: ICMP errors, which the kernel's program does not look into; and all
//! segments, where the kernel takes no program and spreads flows by a rule of its own. What one
//! neighbour says of where it is, each shard must hear.
//!
//! Not here: a segment of TCP in fragments. They meet at queue 0, whose shard makes it whole and
//! may not be its owner; paths that must be made narrow by fragments do not exist for TCP, whose
//! segments tell routers not to (RFC 1191).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crossbeam_queue::ArrayQueue;
use whimbrel_stack::{Capabilities, Medium, RxFrame, Steering, TxBatch, queue_between};
use whimbrel_tcp::{Instant, SegMeta};
use whimbrel_wire::QuotedSegment;
use whimbrel_wire::{ArpOperation, ArpPacket, EtherType, EthernetHeader, IpHeader, Protocol};

use crate::Waker;
use crate::device::{Device, DeviceCounters, MAX_BURST, TxOutcome};

pub mod program;

/// One queue of several: a device that keeps what belongs to its shard, and forwards the rest.
#[derive(Debug)]
pub struct Steered<D> {
    device: D,
    queue: u16,
    lanes: Arc<[Lane]>,
    counters: SteeringCounters,
}

/// What came in by the wrong queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SteeringCounters {
    /// Frames passed on to their owner, or, what neighbours say, to everybody.
    pub forwarded: u64,
    /// Frames that others passed on to this one.
    pub adopted: u64,
    /// Frames dropped because their owner has more waiting than it can take.
    pub dropped: u64,
}

/// The way to the shard of a queue.
#[derive(Debug)]
struct Lane {
    frames: ArrayQueue<(Box<[u8]>, SegMeta)>,
    waker: Waker,
}

/// Whom a frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// The shard that segments between these ports come home to.
    Between(u16, u16),
    /// Each shard.
    Everybody,
    /// Whoever has it.
    Anybody,
}

impl<D: Device> Steered<D> {
    /// The queues of one device, in the kernel's order, each with what wakes its worker.
    pub fn join(devices: Vec<D>, wakers: &[Waker]) -> Vec<Self> {
        let lane = |waker: &Waker| Lane { frames: ArrayQueue::new(LANE), waker: waker.clone() };
        let lanes: Arc<[Lane]> = wakers.iter().map(lane).collect();
        let steered = |(queue, device)| {
            let counters = SteeringCounters::default();
            Self { device, queue, lanes: Arc::clone(&lanes), counters }
        };
        (0..).zip(devices).map(steered).collect()
    }

    /// What came in by the wrong queue so far.
    pub fn steering(&self) -> &SteeringCounters {
        &self.counters
    }

    /// The device itself.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Delivers what others passed on. Returns how many frames.
    fn adopt(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> usize {
        let Some(lane) = self.lanes.get(usize::from(self.queue)) else { return 0 };
        let mut kept = Vec::new();
        while kept.len() < MAX_BURST
            && let Some(frame) = lane.frames.pop()
        {
            kept.push(frame);
        }
        if kept.is_empty() {
            return 0;
        }
        let frames: Vec<_> =
            kept.iter().map(|(octets, meta)| RxFrame::new(octets, *meta)).collect();
        deliver(&frames);
        self.counters.adopted += frames.len() as u64;
        frames.len()
    }
}

impl<D: Device> Device for Steered<D> {
    fn capabilities(&self) -> Capabilities {
        let queues = self.lanes.len() as u16;
        let steering = Steering::Computable { queue: self.queue, queues };
        Capabilities { steering, ..self.device.capabilities() }
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let adopted = self.adopt(deliver);
        let Self { device, queue, lanes, counters } = self;
        let medium = device.capabilities().medium;
        let mut sorter = Sorter { own: *queue, lanes, counters, medium };
        let taken = device.rx_burst(&mut |burst| sorter.sort(burst, deliver))?;
        Ok(adopted + taken)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        self.device.tx_burst(batch)
    }

    fn counters(&self) -> &DeviceCounters {
        self.device.counters()
    }

    /// At once, if something was passed on. A worker asks this after it announced its sleep, so
    /// that nothing passed on before [`Waker::wake`] found it awake is slept upon.
    fn next_deadline(&self) -> Option<Instant> {
        let lane = self.lanes.get(usize::from(self.queue))?;
        if lane.frames.is_empty() { self.device.next_deadline() } else { Some(Instant::ZERO) }
    }

    fn on_poll_error(&mut self) -> io::Result<()> {
        self.device.on_poll_error()
    }
}

impl<D: Device> AsFd for Steered<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Sorts the frames of a burst.
struct Sorter<'a> {
    own: u16,
    lanes: &'a [Lane],
    counters: &'a mut SteeringCounters,
    medium: Medium,
}

impl Sorter<'_> {
    fn sort(&mut self, burst: &[RxFrame<'_>], deliver: &mut dyn FnMut(&[RxFrame<'_>])) {
        let mut kept = [RxFrame::new(&[], SegMeta::SINGLE); MAX_BURST];
        let mut count = 0;
        for frame in burst {
            if self.keeps(frame)
                && let Some(place) = kept.get_mut(count)
            {
                *place = *frame;
                count += 1;
            }
        }
        // Mostly all of them; then the copies of their places were for nothing, and cheap.
        if count > 0 {
            deliver(kept.get(..count).unwrap_or_default());
        }
    }

    /// Passes the frame on, if others are to have it. Returns whether it is for this shard.
    fn keeps(&mut self, frame: &RxFrame<'_>) -> bool {
        let own = self.own;
        match home(self.medium, frame.octets) {
            Home::Anybody => true,
            Home::Between(one, other) => {
                let queue = queue_between(one, other, self.lanes.len() as u16);
                if queue != own {
                    self.forward(queue, frame);
                }
                queue == own
            }
            Home::Everybody => {
                for queue in (0..self.lanes.len() as u16).filter(|queue| *queue != own) {
                    self.forward(queue, frame);
                }
                true
            }
        }
    }

    fn forward(&mut self, queue: u16, frame: &RxFrame<'_>) {
        let Some(lane) = self.lanes.get(usize::from(queue)) else { return };
        match lane.frames.push((frame.octets.into(), frame.meta)) {
            Ok(()) => self.counters.forwarded += 1,
            Err(_full) => self.counters.dropped += 1,
        }
        lane.waker.wake();
    }
}

/// Whom a frame is for.
pub fn home(medium: Medium, frame: &[u8]) -> Home {
    let packet = match medium {
        Medium::Ip => frame,
        Medium::Ethernet { .. } => match EthernetHeader::parse(frame) {
            Ok((header, packet)) if header.ether_type == EtherType::ARP => return of_arp(packet),
            Ok((_, packet)) => packet,
            Err(_) => return Home::Anybody,
        },
    };
    let Ok((ip, payload)) = IpHeader::parse(packet) else { return Home::Anybody };
    match (ip.protocol, payload) {
        _ if ip.fragment.is_some() => Home::Anybody,
        (Protocol::TCP, [s0, s1, d0, d1, ..]) => {
            Home::Between(u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1]))
        }
        (Protocol::ICMP, [3 | 4 | 11 | 12, rest @ ..]) => of_quoted(rest),
        (Protocol::ICMPV6, [1..=4, rest @ ..]) => of_quoted(rest),
        (Protocol::ICMPV6, [NEIGHBOUR_ADVERTISEMENT, ..]) => Home::Everybody,
        _ => Home::Anybody,
    }
}

fn of_arp(packet: &[u8]) -> Home {
    match ArpPacket::parse(packet) {
        Ok(arp) if arp.operation == ArpOperation::Reply => Home::Everybody,
        _ => Home::Anybody,
    }
}

/// Of an ICMP error without its first octet: its header goes on for 7, and then comes what it quotes.
fn of_quoted(rest: &[u8]) -> Home {
    match rest.get(7..).map(QuotedSegment::parse) {
        Some(Ok(quoted)) if quoted.protocol == Protocol::TCP => {
            Home::Between(quoted.src_port, quoted.dst_port)
        }
        _ => Home::Anybody,
    }
}

/// RFC 4861 4.4.
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// Frames that may wait for a shard, each a copy: what a busy one takes in some ten bursts.
const LANE: usize = 1024;

#[cfg(test)]
mod tests;
