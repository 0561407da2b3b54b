//! Invariants that hold after each step of any siege.

use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_stack::Shard;
use whimbrel_stack::shard::Census;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::State;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{Endpoint, IpHeader, Protocol, Sum};

use super::Siege;
use super::datagrams;
use super::fault::{Fault, judge};
use super::text::{self, Speaker};

/// Largest value of each of the host's bounds so far: existing records outlive a lower one, and a
/// connection's last segment outlives the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widest {
    syn_entries: u32,
    time_wait: u32,
    connections: usize,
}

impl Widest {
    pub(super) fn new(tunables: &Tunables) -> Self {
        let Tunables { max_syn_entries: syn_entries, max_time_wait: time_wait, .. } = *tunables;
        Self { syn_entries, time_wait, connections: 0 }
    }
}

/// A TCP segment that the host sent.
pub(super) struct Sent {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    pub(super) header: TcpHeader,
    /// Number of bytes of text.
    pub(super) text: u32,
}

/// State of the host.
impl Siege {
    pub(super) fn note_bounds(&mut self) {
        let now = Widest::new(self.shard.tunables());
        self.widest = Widest {
            syn_entries: self.widest.syn_entries.max(now.syn_entries),
            time_wait: self.widest.time_wait.max(now.time_wait),
            ..self.widest
        };
    }

    /// Checks the host's invariants after a step, and notes the most connections so far.
    pub(super) fn process_host(&mut self) -> Result<(), Fault> {
        let census = self.shard.census();
        self.widest.connections = self.widest.connections.max(census.connections);
        self.judge_host(&census)
    }

    fn judge_host(&self, census: &Census) -> Result<(), Fault> {
        self.shard.check_invariants().map_err(Fault)?;
        self.shard.udp().check_invariants().map_err(|wrong| Fault(wrong.into()))?;
        judge_counters(&self.shard)?;
        self.judge_bounds(census)?;
        self.held.iter().try_for_each(|handle| self.judge_held(*handle))
    }

    fn judge_bounds(&self, census: &Census) -> Result<(), Fault> {
        let bounds = [
            ("half-open entries", census.syn_entries, self.widest.syn_entries as usize),
            ("records in TIME-WAIT", census.time_wait, self.widest.time_wait as usize),
            ("datagrams in fragments", census.fragmented, FRAGMENTED),
            ("bytes of fragments", census.fragment_bytes, FRAGMENT_BYTES),
            ("replies", census.replies, REPLIES + self.widest.connections),
        ];
        let beyond = bounds.iter().find(|(_, count, most)| count > most);
        judge(beyond.is_none(), || format!("beyond its bound: {beyond:?}"))
    }

    fn judge_held(&self, handle: whimbrel_stack::Handle) -> Result<(), Fault> {
        let Some(it) = self.shard.snapshot(handle) else {
            return Err(Fault("an application's handle names nothing".into()));
        };
        let window = it.rcv.edge.distance_from(it.rcv.nxt) >= 0;
        let order = it.snd.una.at_or_before(it.snd.nxt) && it.snd.nxt.at_or_before(it.snd.max);
        judge(order && window, || format!("sequence spaces: {it:?}"))?;
        let idle = it.closed.is_some() || it.state != State::Established;
        judge(idle || it.cwnd >= 1, || format!("no congestion window: {it:?}"))
    }
}

/// Segments in are accepted or dropped with a reason; so are packets, except for fragments, which
/// wait.
fn judge_counters(shard: &Shard) -> Result<(), Fault> {
    let counters = shard.counters();
    let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
    judge(counters.in_segs == counters.accepted_segs + dropped, || {
        format!(
            "{} segments, {} accepted, {dropped} dropped",
            counters.in_segs, counters.accepted_segs
        )
    })?;
    let ip = shard.ip_counters();
    let dropped: u64 = ip.drops().map(|(_, count)| count).sum();
    let seen = ip.in_receives + ip.reassembled;
    let waiting = seen.checked_sub(ip.in_delivers + dropped);
    judge(waiting.is_some_and(|it| it <= ip.reassembly_fragments), || {
        format!("{seen} packets, {} delivered, {dropped} dropped: {ip:?}", ip.in_delivers)
    })
}

/// Output of the host.
impl Siege {
    /// Checks a packet of the host, without its link header.
    pub(super) fn judge_sent(
        &self,
        packet: &[u8],
        segment: &TxSegment,
    ) -> Result<Option<Sent>, Fault> {
        let wrong = |what: &str| Fault(format!("{what}: {packet:02x?}"));
        let (ip, payload) = IpHeader::parse(packet).map_err(|_| wrong("sent no IP packet"))?;
        let cut = segment.gso_size > 0;
        judge(cut || packet.len() <= usize::from(self.mtu), || {
            format!("{} bytes sent over a link of {}", packet.len(), self.mtu)
        })?;
        if ip.protocol == Protocol::UDP {
            datagrams::judge_sent(&ip, payload, segment)?;
        }
        if ip.protocol != Protocol::TCP || ip.fragment.is_some() {
            return Ok(None);
        }
        let (header, len) = TcpHeader::parse(payload).map_err(|_| wrong("sent no TCP header"))?;
        judge(!header.options.malformed, || wrong("sent malformed options").0)?;
        if segment.checksum == TxChecksum::Done {
            let sum = Sum::pseudo_header(ip.src, ip.dst, Protocol::TCP.0, payload.len() as u32);
            judge(sum.add_bytes(payload).is_valid(), || wrong("sent a wrong checksum").0)?;
        }
        let bytes = &payload[len..];
        let text = bytes.len() as u32;
        let (from, to) =
            (Endpoint::new(ip.src, header.src_port), Endpoint::new(ip.dst, header.dst_port));
        let begins = header.seq + u32::from(header.flags.contains(TcpFlags::SYN));
        let unread = self.flows.iter().any(|it| it.unread && it.host == from && it.own == to);
        if !unread {
            let judged = text::judge(Speaker::Host, begins, bytes);
            judge(judged.is_ok(), || {
                format!("byte {judged:?} of {text} is not what was written: {header:?}")
            })?;
        }
        Ok(Some(Sent { from, to, header, text }))
    }
}

/// Answers to a burst of frames.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Answers {
    /// Bytes of the packets without text.
    pub(super) bytes: usize,
    /// Number of resets.
    pub(super) resets: u32,
}

impl Answers {
    pub(super) fn add(&mut self, packet: usize, sent: Option<&Sent>) {
        if sent.is_none_or(|sent| sent.text == 0) {
            self.bytes += packet;
        }
        let reset = sent.is_some_and(|sent| sent.header.flags.contains(TcpFlags::RST));
        self.resets += u32::from(reset);
    }
}

/// Total of answers to frames: a forged source address must not allow amplification.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Reflection {
    frames: usize,
    bytes: usize,
    answered: usize,
}

impl Reflection {
    pub(super) fn add(
        &mut self,
        bytes: usize,
        frames: usize,
        answers: &Answers,
    ) -> Result<(), Fault> {
        self.frames += frames;
        self.bytes += bytes;
        self.answered += answers.bytes;
        judge(self.answered <= 2 * self.bytes + 64 * self.frames, || {
            format!("answered more than was asked: {self:?}, {answers:?}")
        })
    }
}

/// Bounds of reassembly and of the queue of replies; packets that end connections are additional.
const FRAGMENTED: usize = 256;
const FRAGMENT_BYTES: usize = 1 << 20;
const REPLIES: usize = 1_024;
