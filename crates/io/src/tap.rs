//! A capture of what passes between a device and its shard: pcapng, with what the shard made of
//! each frame as its comment.
//!
//! ```text
//! drop: TCP_OLD_ACK; state: SYN-RECEIVED -> ESTABLISHED
//! ```
//!
//! While a tap listens, the shard gets the frames of a burst one by one: what it counted in between
//! is the frame's. Segments that the device is to cut are written as the shard made them, in one
//! piece and without the checksum that the device completes, as tcpdump shows them on Linux.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::slice;

use whimbrel_link::pcapng::{Direction, InterfaceId, LinkType, PacketNote, Section};
use whimbrel_stack::ip::IpCounters;
use whimbrel_stack::shard::SocketState;
use whimbrel_stack::{Medium, RxFrame, Shard, TxBatch};
use whimbrel_tcp::{Counters, Instant};
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{Endpoint, EthernetHeader, Flow, IpHeader, Protocol};

/// A capture under way. Ends, and says how it went, by [`Tap::finish`].
pub struct Tap {
    out: Box<dyn Write + Send>,
    section: Section,
    interface: InterfaceId,
    config: TapConfig,
    /// The state in which each flow was seen last.
    states: HashMap<Flow, SocketState>,
    /// How many of them there may be before those that are gone are forgotten.
    most_states: usize,
    /// Segments of the batch that were written already and still wait for the device.
    kept: usize,
    packets: u64,
    /// One block, before it is written.
    block: Vec<u8>,
    failure: Option<io::Error>,
}

/// What a capture is of.
#[derive(Clone, Debug)]
pub struct TapConfig {
    /// The name of its one interface.
    pub name: String,
    /// What the frames begin with.
    pub medium: Medium,
    /// The octets of each frame that are written, from its first header on; at least 1.
    pub snap: usize,
    /// What the clock's zero is, nanoseconds since 1970 ([`Clock::zero_since_1970`]); 0 for
    /// virtual time.
    ///
    /// [`Clock::zero_since_1970`]: crate::Clock::zero_since_1970
    pub zero: u64,
}

impl Tap {
    /// A capture written to `out`, which is best buffered: there is a write a frame.
    pub fn begin(config: TapConfig, out: impl Write + Send + 'static) -> Self {
        let mut block = Vec::new();
        let mut section = Section::begin(&mut block);
        let link_type = match config.medium {
            Medium::Ip => LinkType::Raw,
            Medium::Ethernet { .. } => LinkType::Ethernet,
        };
        let interface = section.describe(&mut block, &config.name, link_type);
        let mut tap = Self {
            out: Box::new(out),
            section,
            interface,
            config,
            states: HashMap::new(),
            most_states: FIRST_STATES,
            kept: 0,
            packets: 0,
            block,
            failure: None,
        };
        tap.write_block();
        tap
    }

    /// Ends the capture: how many packets were written, or why no more could be.
    pub fn finish(mut self) -> io::Result<u64> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.out.flush().map(|()| self.packets),
        }
    }

    /// Frames arrived, and go to the shard.
    pub(crate) fn rx(&mut self, now: Instant, shard: &mut Shard, burst: &[RxFrame<'_>]) {
        for frame in burst {
            let before = (shard.counters().clone(), shard.ip_counters().clone());
            shard.rx(now, slice::from_ref(frame));
            let mut comment = drops(&before, shard);
            self.note_state(shard, Direction::In, frame.octets, &mut comment);
            self.write(now, Direction::In, frame.octets, &comment);
        }
    }

    /// Segments go to the device.
    pub(crate) fn tx(&mut self, now: Instant, shard: &Shard, batch: &TxBatch) {
        for segment in batch.pending().iter().skip(self.kept) {
            let octets = segment.to_vec();
            let mut comment = String::new();
            self.note_state(shard, Direction::Out, &octets, &mut comment);
            self.write(now, Direction::Out, &octets, &comment);
        }
    }

    /// The device took of the batch what it could; the rest comes again.
    pub(crate) fn keep(&mut self, batch: &TxBatch) {
        self.kept = batch.pending().len();
    }

    /// Adds to the comment what state the packet's flow is in, if that is news.
    fn note_state(&mut self, shard: &Shard, way: Direction, octets: &[u8], comment: &mut String) {
        let Some(flow) = flow_of(self.config.medium, way, octets) else { return };
        let state = shard.state_between(&flow);
        let before = match state {
            Some(state) => self.states.insert(flow, state),
            None => self.states.remove(&flow),
        };
        if before == state {
            return;
        }
        let now = state.map_or("CLOSED".to_owned(), |state| state.to_string());
        add(
            comment,
            &match before {
                Some(before) => format!("state: {before} -> {now}"),
                None => format!("state: {now}"),
            },
        );
        if self.states.len() > self.most_states {
            // TIME-WAIT ends without a packet: such flows are gone by now.
            self.states.retain(|flow, _| shard.state_between(flow).is_some());
            self.most_states = FIRST_STATES.max(2 * self.states.len());
        }
    }

    fn write(&mut self, now: Instant, direction: Direction, octets: &[u8], comment: &str) {
        let note = PacketNote {
            interface: self.interface,
            at: Instant::from_nanos(self.config.zero.saturating_add(now.as_nanos())),
            direction,
            wire_len: octets.len() as u32,
            comment,
        };
        let shown = octets.get(..self.config.snap).unwrap_or(octets);
        self.section.packet(&mut self.block, &note, shown);
        self.packets += 1;
        self.write_block();
    }

    /// After a failure nothing is written any more: the stack goes on without its capture.
    fn write_block(&mut self) {
        if self.failure.is_none() {
            self.failure = self.out.write_all(&self.block).err();
        }
        self.block.clear();
    }
}

impl std::fmt::Debug for Tap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tap")
            .field("config", &self.config)
            .field("packets", &self.packets)
            .finish_non_exhaustive()
    }
}

/// Why what the shard was given since `before` was dropped, if it was.
fn drops(before: &(Counters, IpCounters), shard: &Shard) -> String {
    let mut comment = String::new();
    for (reason, count) in shard.counters().drops() {
        if count > before.0.dropped(reason) {
            add(&mut comment, &format!("drop: {}", reason.name()));
        }
    }
    for (reason, count) in shard.ip_counters().drops() {
        if count > before.1.dropped(reason) {
            add(&mut comment, &format!("drop: {}", reason.name()));
        }
    }
    comment
}

fn add(comment: &mut String, remark: &str) {
    let gap = if comment.is_empty() { "" } else { "; " };
    // Writing to a string cannot fail.
    let _ = write!(comment, "{gap}{remark}");
}

/// Whose packet it is, if it is an unbroken one of TCP.
fn flow_of(medium: Medium, way: Direction, octets: &[u8]) -> Option<Flow> {
    let packet = match medium {
        Medium::Ip => octets,
        Medium::Ethernet { .. } => EthernetHeader::parse(octets).ok()?.1,
    };
    let (ip, segment) = IpHeader::parse(packet).ok()?;
    if ip.protocol != Protocol::TCP || ip.fragment.is_some() {
        return None;
    }
    let (tcp, _) = TcpHeader::parse(segment).ok()?;
    let (src, dst) = (Endpoint::new(ip.src, tcp.src_port), Endpoint::new(ip.dst, tcp.dst_port));
    Some(match way {
        Direction::In => Flow { local: dst, remote: src },
        Direction::Out => Flow { local: src, remote: dst },
    })
}

/// The least of [`Tap::most_states`].
const FIRST_STATES: usize = 65_536;

#[cfg(test)]
mod tests;
