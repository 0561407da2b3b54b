//! A middlebox that keeps flows in mind, each direction by itself: it forgets idle ones (`forget=`), or
//! resets them (`forget=TIME:rst`, `inject=rst`).
//!
//! A flow that was never seen is taken for one that is known, so a changed configuration stops no
//! connection. A reset has the box's own TTL and IP id, as forged ones have on real paths.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;

use bytes::Bytes;
use core::net::Ipv6Addr;
use whimbrel_base::Instant;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpView};
use whimbrel_wire::{Endpoint, IpHeader, Ipv4Header, Ipv6Header, Protocol, SeqNum, Sum};

use crate::config::{Forgetting, Forgotten, LinkConfig};

/// State of the box at one direction of a link.
#[derive(Debug)]
pub(crate) struct Middlebox {
    forgetting: Option<Forgetting>,
    injects: bool,
    flows: BTreeMap<[Endpoint; 2], BoxFlow>,
    /// When to look at flows that may be idle then, the earliest in front: one entry each.
    due: VecDeque<(Instant, [Endpoint; 2])>,
    /// Number of resets sent: the IP id of the next.
    resets: u16,
}

/// One direction of a flow.
#[derive(Clone, Copy, Debug)]
struct BoxFlow {
    /// Time of its latest frame.
    last: Instant,
    /// Number after its latest frame, and what that acknowledged.
    next: SeqNum,
    ack: SeqNum,
    phase: Phase,
    /// True once a reset was injected.
    is_injected: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Known,
    /// The sender has sent its FIN.
    Closing,
    Forgotten,
}

/// A TCP segment on its way through the box.
struct Passing {
    ends: [Endpoint; 2],
    seq: SeqNum,
    ack: SeqNum,
    flags: TcpFlags,
    text: u32,
}

impl Middlebox {
    /// The box that a configuration asks for.
    pub(crate) fn of(config: &LinkConfig) -> Option<Box<Self>> {
        let (forgetting, injects) = (config.forget, config.inject_rst);
        let empty = || Self {
            forgetting,
            injects,
            flows: BTreeMap::new(),
            due: VecDeque::new(),
            resets: 0,
        };
        (forgetting.is_some() || injects).then(|| Box::new(empty()))
    }

    /// False if the frame is lost because its flow is forgotten. Notes all others.
    pub(crate) fn admits(&mut self, now: Instant, frame: &[u8]) -> bool {
        let Some(passing) = Passing::read(frame) else { return true };
        if passing.flags.contains(TcpFlags::RST) {
            self.flows.remove(&passing.ends);
            return true;
        }
        let is_known = self.flows.contains_key(&passing.ends);
        if !is_known && self.flows.len() >= Self::MOST_FLOWS {
            return true;
        }
        let known = self.flows.get(&passing.ends);
        let is_injected = known.is_some_and(|flow| flow.is_injected && !passing.flags.is_syn());
        if let (Some(Forgetting { after, then: Forgotten::Lost }), Some(flow)) =
            (self.forgetting, known)
        {
            let is_forgotten = flow.phase == Phase::Forgotten || now.since(flow.last) >= after;
            if is_forgotten && !passing.flags.is_syn() {
                let flow = BoxFlow { phase: Phase::Forgotten, ..*flow };
                self.flows.insert(passing.ends, flow);
                return false;
            }
        }
        let was_closing =
            known.is_some_and(|it| it.phase == Phase::Closing) && !passing.flags.is_syn();
        let is_closing = was_closing || passing.flags.is_fin();
        let flow = BoxFlow {
            last: now,
            next: passing.next(),
            ack: passing.ack,
            phase: if is_closing { Phase::Closing } else { Phase::Known },
            is_injected,
        };
        self.flows.insert(passing.ends, flow);
        if let Some(Forgetting { after, .. }) = self.forgetting.filter(|_| !is_known) {
            self.due.push_back((now + after, passing.ends));
        }
        true
    }

    /// The reset that follows a frame, if it has the first text of its flow.
    pub(crate) fn inject(&mut self, frame: &[u8]) -> Option<Bytes> {
        let passing = Passing::read(frame).filter(|it| self.injects && it.text > 0)?;
        let flow = self.flows.get_mut(&passing.ends).filter(|flow| !flow.is_injected)?;
        flow.is_injected = true;
        Some(self.reset(passing.ends, passing.next(), passing.ack))
    }

    /// When the first flow is to be reset, unless a frame passes before.
    pub(crate) fn next_reset(&self) -> Option<Instant> {
        let resets = self.forgetting.is_some_and(|it| it.then == Forgotten::Reset);
        self.due.front().filter(|_| resets).map(|(at, _)| *at)
    }

    /// Takes a reset that is due.
    pub(crate) fn pop_reset(&mut self, now: Instant) -> Option<Bytes> {
        let Forgetting { after, then } = self.forgetting?;
        while let Some((_, ends)) = self.due.pop_front_if(|(at, _)| *at <= now) {
            let Some(flow) = self.flows.get(&ends).copied() else { continue };
            if now.since(flow.last) < after {
                // Of one constant time, so nearly in order; a look that comes early comes again.
                self.due.push_back((flow.last + after, ends));
                continue;
            }
            if then == Forgotten::Lost {
                let limit = flow.last + after * Self::KEPT;
                match limit > now {
                    true => self.due.push_back((limit, ends)),
                    false => drop(self.flows.remove(&ends)),
                }
                continue;
            }
            self.flows.remove(&ends);
            if flow.phase == Phase::Known {
                return Some(self.reset(ends, flow.next, flow.ack));
            }
        }
        None
    }

    fn reset(&mut self, [from, to]: [Endpoint; 2], seq: SeqNum, ack: SeqNum) -> Bytes {
        self.resets = self.resets.wrapping_add(1);
        let flags = TcpFlags::RST | TcpFlags::ACK;
        let header = TcpHeader {
            src_port: from.port,
            dst_port: to.port,
            seq,
            ack,
            flags,
            ..TcpHeader::default()
        };
        let mut segment = [0; TcpHeader::LEN];
        header.emit(OptionOrder::Linux, &mut segment);
        let sum = Sum::pseudo_header(from.addr, to.addr, TCP, TcpHeader::LEN as u32);
        let sum = sum.add_bytes(&segment).finish();
        TcpHeader::set_checksum(&mut segment, sum);
        let len = if from.addr.is_v4() { Ipv4Header::LEN } else { Ipv6Header::LEN };
        let mut packet = vec![0; len + TcpHeader::LEN];
        if from.addr.is_v4() {
            let (src, dst) = (from.addr.v4_bytes().into(), to.addr.v4_bytes().into());
            let ip = Ipv4Header {
                ttl: Self::TTL,
                identification: Self::FIRST_ID.wrapping_add(self.resets),
                dont_fragment: false,
                ..Ipv4Header::new(src, dst, Protocol::TCP, TcpHeader::LEN)
            };
            ip.emit(&mut packet);
        } else {
            let [src, dst] = [from.addr, to.addr].map(|addr| Ipv6Addr::from(*addr.as_bytes()));
            let ip = Ipv6Header::new(src, dst, Protocol::TCP, TcpHeader::LEN);
            Ipv6Header { hop_limit: Self::TTL, ..ip }.emit(&mut packet);
        }
        if let Some(place) = packet.get_mut(len..) {
            place.copy_from_slice(&segment);
        }
        Bytes::from(packet)
    }

    /// Most flows in mind; further ones pass unseen.
    const MOST_FLOWS: usize = 1 << 16;
    /// Times of `forget` after which a forgotten flow's record goes, too.
    const KEPT: u32 = 16;
    const TTL: u8 = 125;
    const FIRST_ID: u16 = 0x2f00;
}

impl Passing {
    fn read(frame: &[u8]) -> Option<Self> {
        let (ip, payload) = IpHeader::parse(frame).ok()?;
        if ip.protocol != Protocol::TCP || ip.fragment.is_some() {
            return None;
        }
        let (tcp, header_len) = TcpView::parse(payload).ok()?;
        Some(Self {
            ends: [Endpoint::new(ip.src, tcp.src_port), Endpoint::new(ip.dst, tcp.dst_port)],
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            text: (payload.len() - header_len) as u32,
        })
    }

    /// Number after the segment.
    fn next(&self) -> SeqNum {
        self.seq + (self.text + self.flags.sequence_len())
    }
}

/// The protocol number of TCP in an IP header (IANA).
const TCP: u8 = 6;
