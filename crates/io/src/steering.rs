//! Frames to the shard that they belong to.
//!
//! A device with several queues has a shard at each, and the kernel computes which one a segment comes in by
//! ([`program`]): `(source port ^ destination port) / 2 mod queues`. A shard draws its ports so that
//! what it asks is answered at home. What comes in elsewhere all the same is forwarded to its owner, once, and
//! counted: ICMP errors, which the kernel's program does not look into; and all
//! segments, where the kernel takes no program and spreads flows by a rule of its own. What one
//! neighbour says of where it is, each shard must hear.
//!
//! Datagrams of UDP all belong to the shard of queue 0, and so does every UDP socket. A socket that is
//! connected to nobody hears everybody: spread by their ports, its datagrams would need a queue at each
//! shard, whose bounds would add up, and those of one sender that came whole would overtake those that
//! came in fragments, which name no port and meet at queue 0 anyway. So one core has all of them.
//!
//! Not here: a segment of TCP in fragments. They meet at queue 0, whose shard makes it whole and
//! may not be its owner; paths that must be made narrow by fragments do not exist for TCP, whose
//! segments tell routers not to (RFC 1191).

use std::io;
use std::ops::AddAssign;
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

/// One queue of a device: where there are several, it keeps what belongs to its shard, and forwards the
/// rest.
#[derive(Debug)]
pub struct Steered {
    device: AnyDevice,
    /// What is for other shards, if there are any.
    misrouted: Option<MisroutedFrames>,
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

/// Of several shards.
impl AddAssign for SteeringCounters {
    fn add_assign(&mut self, other: Self) {
        self.forwarded += other.forwarded;
        self.adopted += other.adopted;
        self.dropped += other.dropped;
    }
}

/// Whom a frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// The shard that segments between these ports come home to.
    Between(u16, u16),
    /// The shard of queue 0, which has all UDP sockets.
    First,
    /// Each shard gets a copy.
    Everybody,
    /// Any shard: whichever has it keeps it.
    Anybody,
}

impl Steered {
    /// The queues of one device, in the kernel's order, each with what wakes its worker. To one alone
    /// everything comes.
    pub fn join(devices: Vec<AnyDevice>, wakers: &[Waker]) -> Vec<Self> {
        if devices.len() == 1 {
            return devices.into_iter().map(|device| Self { device, misrouted: None }).collect();
        }
        let steered = |(device, misrouted)| Self { device, misrouted: Some(misrouted) };
        devices.into_iter().zip(MisroutedFrames::join(wakers)).map(steered).collect()
    }

    /// What came in by the wrong queue so far.
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
            Some(misrouted) => Capabilities { steering: misrouted.steering(), ..own },
            None => own,
        }
    }

    fn take_room(&mut self, chunks: &mut ChunkPool) {
        self.device.take_room(chunks);
    }

    fn rx_burst(&mut self, deliver: &mut dyn FnMut(&[RxFrame<'_>])) -> io::Result<usize> {
        let Self { device, misrouted } = self;
        let Some(misrouted) = misrouted else { return device.rx_burst(deliver) };
        let adopted = misrouted.adopt(deliver);
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

    /// At once, if something was passed on. A worker asks this after it announced its sleep, so
    /// that nothing passed on before [`Waker::wake`] found it awake is slept upon.
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

/// The queue, of so many (>= 1), that the kernel's program would compute for a packet: what is no
/// whole segment of TCP goes to queue 0.
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
    if let Some((src, dst)) = ports_of_plain_segment(packet) {
        return Home::Between(src, dst);
    }
    let Ok((ip, payload)) = IpHeader::parse(packet) else { return Home::Anybody };
    match (ip.protocol, payload) {
        (Protocol::UDP, _) | (Protocol::ICMP, [ECHO_REPLY, ..]) => Home::First,
        (Protocol::ICMPV6, [ECHO_REPLY_V6, ..]) => Home::First,
        // The later ones say nothing of what they belong to; who asks, asks at the first shard.
        (Protocol::ICMP | Protocol::ICMPV6, _) if ip.fragment.is_some() => Home::First,
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

/// The ports, if the packet is a segment of TCP behind a header without options or extensions, and no
/// fragment. Nothing is verified: where a broken one is dropped makes no difference.
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

fn of_arp(packet: &[u8]) -> Home {
    match ArpPacket::parse(packet) {
        Ok(arp) if arp.operation == ArpOperation::Reply => Home::Everybody,
        _ => Home::Anybody,
    }
}

/// Of an ICMP error without its first byte: its header goes on for 7, and then comes what it quotes.
fn of_quoted(rest: &[u8]) -> Home {
    match rest.get(7..).map(QuotedSegment::parse) {
        Some(Ok(quoted)) if quoted.protocol == Protocol::TCP => {
            Home::Between(quoted.src_port, quoted.dst_port)
        }
        Some(Ok(quoted)) if OF_THE_FIRST.contains(&quoted.protocol) => Home::First,
        _ => Home::Anybody,
    }
}

/// Whose errors the first shard hears: it has the sockets of UDP, and asks for echoes.
const OF_THE_FIRST: [Protocol; 3] = [Protocol::UDP, Protocol::ICMP, Protocol::ICMPV6];
/// The ICMP type of an echo reply (RFC 792).
const ECHO_REPLY: u8 = 0;
/// The ICMPv6 type of an echo reply (RFC 4443 4.2).
const ECHO_REPLY_V6: u8 = 129;
/// The ICMPv6 type of Neighbor Advertisement (RFC 4861 4.4).
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

#[cfg(test)]
mod tests;
