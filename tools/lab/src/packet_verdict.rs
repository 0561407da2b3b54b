//! A host's verdict on one packet: the state it met, the rules that applied, and the counters that
//! rose.

use std::slice;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::shard::SocketState;
use whimbrel_stack::{RxFrame, Shard};
use whimbrel_tcp::{Counters, DropReason, TUNABLES, Tunables};
use whimbrel_wire::{Endpoint, Flow, IpHeader, SeqNum, TcpFlags, TcpView};

/// Verdict of a packet's receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketVerdict {
    /// Time of arrival.
    pub at: Instant,
    /// State between the two ends before and after; `None`: no connection.
    pub states: [Option<SocketState>; 2],
    /// Next sequence number expected (RCV.NXT), if there was a connection.
    pub expected: Option<SeqNum>,
    /// Reason of the drop, if it was dropped.
    pub dropped: Option<DropReason>,
    /// Tunables that decided, with their values.
    pub rules: Vec<(&'static str, String)>,
    /// Counters that rose, apart from those of all segments, and their meaning.
    pub counted: Vec<(&'static str, &'static str)>,
}

impl PacketVerdict {
    /// Passes the packet to the stack, and returns the verdict.
    pub(super) fn of(packet: &Bytes, now: Instant, shard: &mut Shard) -> Self {
        let seen = RuledPacket::of(packet);
        let state = |shard: &Shard| shard.state_between(&seen?.flow);
        let before = (state(shard), shard.counters().clone());
        let expected = seen.and_then(|seen| expected(shard, &seen.flow));
        shard.rx(now, slice::from_ref(&RxFrame::new(packet, SegMeta::SINGLE)));
        let after = shard.counters();
        let dropped = after.drops().find(|(reason, count)| *count > before.1.dropped(*reason));
        let dropped = dropped.map(|(reason, _)| reason);
        let flags = seen.map(|seen| seen.flags).unwrap_or_default();
        let rules = deciding(before.0, flags, dropped);
        Self {
            at: now,
            states: [before.0, state(shard)],
            expected,
            dropped,
            rules: rules.iter().filter_map(|key| rule(key, shard.tunables())).collect(),
            counted: counted(&before.1, shard.counters()),
        }
    }
}

/// Packet under judgement.
#[derive(Clone, Copy)]
struct RuledPacket {
    flow: Flow,
    flags: TcpFlags,
}

impl RuledPacket {
    fn of(packet: &[u8]) -> Option<Self> {
        let (ip, segment) = IpHeader::parse(packet).ok()?;
        let (tcp, _) = TcpView::parse(segment).ok()?;
        let remote = Endpoint::new(ip.src, tcp.src_port);
        let local = Endpoint::new(ip.dst, tcp.dst_port);
        Some(Self { flow: Flow { local, remote }, flags: tcp.flags })
    }
}

/// RCV.NXT of an established connection.
fn expected(shard: &Shard, flow: &Flow) -> Option<SeqNum> {
    let known = shard.state_between(flow)? != SocketState::SynSent;
    shard.snapshot_between(flow).filter(|_| known).map(|it| it.rcv.nxt)
}

/// Tunables that decide about such a segment in such a state.
fn deciding(
    state: Option<SocketState>,
    flags: TcpFlags,
    dropped: Option<DropReason>,
) -> &'static [&'static str] {
    match state {
        Some(SocketState::TimeWait) if flags.contains(TcpFlags::RST) => &["tw.rst"],
        Some(SocketState::TimeWait) if flags.contains(TcpFlags::SYN) => match dropped {
            Some(_) => &["tw.syn", "tw.answer"],
            None => &["tw.syn"],
        },
        Some(SocketState::SynSent) if dropped == Some(DropReason::UnacceptableAck) => {
            &["syn.after_challenge"]
        }
        _ => &[],
    }
}

fn rule(key: &'static str, rules: &Tunables) -> Option<(&'static str, String)> {
    let info = TUNABLES.iter().find(|info| info.name.text == key)?;
    Some((key, info.value(rules)))
}

/// Counters that rose, apart from those of every segment.
fn counted(before: &Counters, after: &Counters) -> Vec<(&'static str, &'static str)> {
    let pairs = before.iter().zip(after.iter());
    let risen = pairs.filter(|((.., old), (.., new))| new > old);
    let told = risen.map(|(_, (name, about, _))| (name, about));
    told.filter(|(name, _)| !OF_ALL.contains(name)).collect()
}

/// Counters that rise with every packet.
const OF_ALL: [&str; 3] = ["TcpInSegs", "WhimbrelInAccepted", "TcpOutSegs"];
