//! Steering of frames to the shard that they belong to.
//!
//! A device with several queues has a shard at each. The kernel computes a segment's queue
//! ([`program`]): `(source port ^ destination port) / 2 mod queues`. A shard chooses its local
//! ports so that replies arrive at its own queue. A frame that arrives by another queue is
//! forwarded to its owner, once, and counted. This happens to ICMP errors, which the kernel's
//! program does not parse, and to all segments if the kernel takes no program and spreads flows by
//! its own rule. What a neighbour announces about itself goes to each shard.
//!
//! UDP datagrams all belong to the shard of queue 0, as does every UDP socket. An unconnected
//! socket receives from every sender. If its datagrams were spread by their ports, it would need a
//! queue at each shard: the bounds would add up, and a sender's whole datagrams would overtake its
//! fragmented ones, which have no ports and arrive at queue 0 anyway. So one core handles all UDP.
//!
//! Limitation: TCP segments in fragments arrive at queue 0, whose shard reassembles them and may
//! not be their owner. Paths that need fragments do not occur with TCP, whose segments forbid
//! fragmentation (RFC 1191).

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};

use whimbrel_base::Instant;
use whimbrel_stack::{Capabilities, Medium, RxFrame, TxBatch, queue_between};
use whimbrel_tcp::recv::ChunkPool;
use whimbrel_wire::QuotedSegment;
use whimbrel_wire::{ArpOperation, ArpPacket, EtherType, EthernetHeader, IpHeader, Protocol};

use crate::Waker;
use crate::device::{AnyDevice, Device, DeviceCounters, TxOutcome};

pub(crate) use misrouted::MisroutedFrames;

mod misrouted;
#[cfg(target_os = "linux")]
pub mod program;

/// One queue of a device. With several queues, it keeps what belongs to its shard and forwards the
/// rest.
#[derive(Debug)]
pub struct Steered {
    device: AnyDevice,
    /// Forwarding to the other shards, if there are any.
    misrouted: Option<MisroutedFrames>,
}

/// Counters of frames that arrived by the wrong queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SteeringCounters {
    /// Frames forwarded to their owner; a neighbour's announcement is forwarded to all.
    pub forwarded: u64,
    /// Frames that other shards forwarded to this one.
    pub adopted: u64,
    /// Frames dropped because their owner's queue was full.
    pub dropped: u64,
}

whimbrel_base::sums! {
    /// Of several shards.
    SteeringCounters { forwarded, adopted, dropped }
}

/// Owner of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameOwner {
    /// The shard of the queue that segments between these ports belong to.
    Between(u16, u16),
    /// The shard of queue 0, which has all UDP sockets.
    FirstShard,
    /// Every shard: each gets a copy.
    EveryShard,
    /// Any shard: the one that received it keeps it.
    AnyShard,
}

impl Steered {
    /// Joins the queues of one device, in the kernel's order, each with the waker of its worker. A
    /// single queue receives everything.
    pub fn join(devices: Vec<AnyDevice>, wakers: &[Waker]) -> Vec<Self> {
        if devices.len() == 1 {
            return devices.into_iter().map(|device| Self { device, misrouted: None }).collect();
        }
        let steered = |(device, misrouted)| Self { device, misrouted: Some(misrouted) };
        devices.into_iter().zip(MisroutedFrames::join(wakers)).map(steered).collect()
    }

    /// Returns the counters of misrouted frames.
    pub fn steering(&self) -> SteeringCounters {
        self.misrouted.as_ref().map_or_else(Default::default, |misrouted| *misrouted.counters())
    }
}

impl Device for Steered {
    fn name(&self) -> String {
        self.device.name()
    }

    fn about(&self) -> String {
        self.device.about()
    }

    fn capabilities(&self) -> Capabilities {
        let own = self.device.capabilities();
        match &self.misrouted {
            Some(misrouted) => own.with_steering(misrouted.steering()),
            None => own,
        }
    }

    fn take_room(&mut self, chunks: &mut ChunkPool) {
        self.device.take_room(chunks);
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let Self { device, misrouted } = self;
        let Some(misrouted) = misrouted else { return device.rx_burst(deliver) };
        let adopted = misrouted.deliver_forwarded(deliver);
        let medium = device.capabilities().medium;
        let taken = device.rx_burst(&mut |burst| misrouted.sort(medium, burst, deliver))?;
        Ok(adopted + taken)
    }

    fn tx_burst(&mut self, batch: &mut TxBatch) -> io::Result<TxOutcome> {
        self.device.tx_burst(batch)
    }

    fn counters(&self) -> &DeviceCounters {
        self.device.counters()
    }

    /// Returns a time in the past if frames were forwarded here. A worker calls this after it has
    /// announced its sleep, so it does not sleep through frames forwarded before.
    fn next_deadline(&self) -> Option<Instant> {
        match &self.misrouted {
            Some(misrouted) if misrouted.are_waiting() => Some(Instant::ZERO),
            _ => self.device.next_deadline(),
        }
    }

    fn on_poll_error(&mut self) -> io::Result<()> {
        self.device.on_poll_error()
    }
}

#[cfg(target_os = "linux")]
impl AsFd for Steered {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Returns the queue, of `queues` (at least 1), that the kernel's program computes for a packet. A
/// packet that is not a whole TCP segment goes to queue 0.
pub fn queue_of(packet: &[u8], queues: u16) -> u16 {
    let Ok((ip, payload)) = IpHeader::parse(packet) else { return 0 };
    match (ip.protocol, ip.fragment, payload) {
        (Protocol::TCP, None, [s0, s1, d0, d1, ..]) => {
            let (src, dst) = (u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1]));
            queue_between(src, dst, queues)
        }
        _ => 0,
    }
}

/// Returns the owner of a frame.
pub fn frame_owner(medium: Medium, frame: &[u8]) -> FrameOwner {
    let packet = match medium {
        Medium::Ip => frame,
        Medium::Ethernet { .. } => match EthernetHeader::parse(frame) {
            Ok((header, packet)) if header.ether_type == EtherType::ARP => return of_arp(packet),
            Ok((_, packet)) => packet,
            Err(_) => return FrameOwner::AnyShard,
        },
    };
    if let Some((src, dst)) = ports_of_plain_segment(packet) {
        return FrameOwner::Between(src, dst);
    }
    let Ok((ip, payload)) = IpHeader::parse(packet) else { return FrameOwner::AnyShard };
    match (ip.protocol, payload) {
        (Protocol::UDP, _) | (Protocol::ICMP, [ECHO_REPLY, ..]) => FrameOwner::FirstShard,
        (Protocol::ICMPV6, [ECHO_REPLY_V6, ..]) => FrameOwner::FirstShard,
        // Later fragments do not show their protocol's header; echo requests are sent by the first
        // shard.
        (Protocol::ICMP | Protocol::ICMPV6, _) if ip.fragment.is_some() => FrameOwner::FirstShard,
        _ if ip.fragment.is_some() => FrameOwner::AnyShard,
        (Protocol::TCP, [s0, s1, d0, d1, ..]) => {
            FrameOwner::Between(u16::from_be_bytes([*s0, *s1]), u16::from_be_bytes([*d0, *d1]))
        }
        (Protocol::ICMP, [3 | 4 | 11 | 12, rest @ ..]) => of_quoted(rest),
        (Protocol::ICMPV6, [1..=4, rest @ ..]) => of_quoted(rest),
        (Protocol::ICMPV6, [NEIGHBOUR_ADVERTISEMENT, ..]) => FrameOwner::EveryShard,
        _ => FrameOwner::AnyShard,
    }
}

/// Returns the ports of a TCP segment behind a header without options or extensions, and without
/// fragmentation. Nothing is verified: any shard may drop a damaged segment.
fn ports_of_plain_segment(packet: &[u8]) -> Option<(u16, u16)> {
    const TCP: u8 = Protocol::TCP.0;
    let ports = match packet {
        // More fragments, or an offset: the fields below the flag that forbids them (RFC 791 3.1).
        [0x45, _, _, _, _, _, 0 | 0x40, 0, _, TCP, ..] => packet.get(20..24)?,
        [0x60..=0x6f, _, _, _, _, _, TCP, ..] => packet.get(40..44)?,
        _ => return None,
    };
    let [s0, s1, d0, d1] = *ports.first_chunk()?;
    Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])))
}

fn of_arp(packet: &[u8]) -> FrameOwner {
    match ArpPacket::parse(packet) {
        Ok(arp) if arp.operation == ArpOperation::Reply => FrameOwner::EveryShard,
        _ => FrameOwner::AnyShard,
    }
}

/// Returns the owner of an ICMP error without its first byte: 7 more bytes of header, then the
/// quoted packet.
fn of_quoted(rest: &[u8]) -> FrameOwner {
    match rest.get(7..).map(QuotedSegment::parse) {
        Some(Ok(quoted)) if quoted.protocol == Protocol::TCP => {
            FrameOwner::Between(quoted.src_port, quoted.dst_port)
        }
        Some(Ok(quoted)) if OF_THE_FIRST.contains(&quoted.protocol) => FrameOwner::FirstShard,
        _ => FrameOwner::AnyShard,
    }
}

/// Protocols whose errors go to the first shard: it has the UDP sockets and sends echo requests.
const OF_THE_FIRST: [Protocol; 3] = [Protocol::UDP, Protocol::ICMP, Protocol::ICMPV6];
/// The ICMP type of an echo reply (RFC 792).
const ECHO_REPLY: u8 = 0;
/// The ICMPv6 type of an echo reply (RFC 4443 4.2).
const ECHO_REPLY_V6: u8 = 129;
/// The ICMPv6 type of Neighbor Advertisement (RFC 4861 4.4).
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

#[cfg(test)]
mod tests;
