//! What a host makes of one packet: the state that it met, the rules that it was judged by, and what was
//! counted of it.

use std::slice;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_stack::shard::SocketState;
use whimbrel_stack::{RxFrame, Shard};
use whimbrel_tcp::{Counters, DropReason, TUNABLES, Tunables};
use whimbrel_wire::{Endpoint, Flow, IpHeader, SeqNum, TcpFlags, TcpView};

/// What became of a packet at its receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketVerdict {
    /// When it arrived.
    pub at: Instant,
    /// The state between the two ends before it and after it; `None`: nothing was there.
    pub states: [Option<SocketState>; 2],
    /// What the receiver expected next (RCV.NXT), if a connection was there.
    pub expected: Option<SeqNum>,
    /// Why it was dropped, if it was.
    pub dropped: Option<DropReason>,
    /// The tunables that decided, and what they were.
    pub rules: Vec<(&'static str, String)>,
    /// What was counted of it beside that it came, and what that means.
    pub counted: Vec<(&'static str, &'static str)>,
}

impl PacketVerdict {
    /// Gives it to the stack, and says what came of that.
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

/// Whose packet it is.
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

/// RCV.NXT of a connection that knows it.
fn expected(shard: &Shard, flow: &Flow) -> Option<SeqNum> {
    let known = shard.state_between(flow)? != SocketState::SynSent;
    shard.snapshot_between(flow).filter(|_| known).map(|it| it.rcv.nxt)
}

/// The tunables that say what becomes of such a segment in such a state.
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

/// What rose of what is not counted of every segment.
fn counted(before: &Counters, after: &Counters) -> Vec<(&'static str, &'static str)> {
    let pairs = before.iter().zip(after.iter());
    let risen = pairs.filter(|((.., old), (.., new))| new > old);
    let told = risen.map(|(_, (name, about, _))| (name, about));
    told.filter(|(name, _)| !OF_ALL.contains(name)).collect()
}

/// What is counted of all that comes.
const OF_ALL: [&str; 3] = ["TcpInSegs", "WhimbrelInAccepted", "TcpOutSegs"];
