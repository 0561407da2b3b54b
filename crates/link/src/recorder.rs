//! Records the frames between a device and its shard as pcapng, with the shard's decision on each
//! as its comment.
//!
//! ```text
//! drop: TCP_OLD_ACK; state: SYN-RECEIVED -> ESTABLISHED
//! ```
//!
//! While a recorder listens, the shard gets the frames of a burst one by one: the counters that
//! rise in between belong to the frame. Segments that the device is to cut are written as the shard
//! made them, in one piece and without the checksum that the device completes, as tcpdump shows
//! them on Linux.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::slice;

use crate::filter::Filter;
use crate::packet_flow::flow_of;
use crate::pcapng::{Direction, InterfaceId, LinkType, PacketNote, Section};
use whimbrel_base::Instant;
use whimbrel_base::packet::TxSegment;
use whimbrel_stack::ip::IpCounters;
use whimbrel_stack::shard::SocketState;
use whimbrel_stack::{Medium, RxFrame, Shard};
use whimbrel_tcp::Counters;
use whimbrel_wire::Flow;

/// A capture under way. Its records wait until they are [taken](Recorder::take).
#[derive(Debug)]
pub struct Recorder {
    section: Section,
    interface: InterfaceId,
    config: RecorderConfig,
    /// Last recorded state of each flow.
    states: BTreeMap<Flow, SocketState>,
    /// Number of states kept before those of closed connections are removed.
    most_states: usize,
    packets: u64,
    recorded: Vec<u8>,
}

/// Configuration of a capture.
#[derive(Clone, Debug)]
pub struct RecorderConfig {
    /// Name of its single interface.
    pub name: String,
    /// Link layer of the frames.
    pub medium: Medium,
    /// Bytes written of each frame, from its first header on; at least 1.
    pub snap: usize,
    /// Time of the clock's zero, nanoseconds since 1970; 0 for virtual time.
    pub zero: u64,
    /// Filter of the frames written, if not all.
    pub filter: Option<Filter>,
    /// Most frames written; default [`u64::MAX`].
    pub most: u64,
}

/// Counters of a shard before a frame: those that rise meanwhile belong to the frame.
#[derive(Clone, Debug)]
pub struct CountersBefore {
    tcp: Counters,
    ip: IpCounters,
}

impl CountersBefore {
    /// Returns the counters of a shard.
    pub fn of(shard: &Shard) -> Self {
        Self { tcp: shard.counters().clone(), ip: shard.ip_counters().clone() }
    }
}

impl RecorderConfig {
    /// All packets of an interface of this name, in virtual time.
    pub fn new(name: impl Into<String>, medium: Medium) -> Self {
        let (name, snap) = (name.into(), usize::MAX);
        Self { name, medium, snap, zero: 0, filter: None, most: u64::MAX }
    }

    const fn link_type(&self) -> LinkType {
        match self.medium {
            Medium::Ip => LinkType::Raw,
            Medium::Ethernet { .. } => LinkType::Ethernet,
        }
    }
}

impl Recorder {
    /// A capture that begins with its header.
    pub fn begin(config: RecorderConfig) -> Self {
        let mut recorded = Vec::new();
        let mut section = Section::begin(&mut recorded);
        let interface = section.describe(&mut recorded, &config.name, config.link_type());
        Self {
            section,
            interface,
            config,
            states: BTreeMap::new(),
            most_states: FIRST_STATES,
            packets: 0,
            recorded,
        }
    }

    /// Recorder of another shard of the host, for the same file: its packets are written between
    /// this one's, and it counts its own.
    pub fn of_another_shard(&self) -> Self {
        let mut other = Self::begin(self.config.clone());
        other.recorded.clear();
        other
    }

    /// Header of a further file of this capture.
    pub fn header(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let name = &self.config.name;
        Section::begin(&mut out).describe(&mut out, name, self.config.link_type());
        out
    }

    /// Records since the last call, for the caller to write and clear.
    pub fn take(&mut self) -> &mut Vec<u8> {
        &mut self.recorded
    }

    /// Frames recorded so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// True if the limit of frames is reached.
    pub fn is_full(&self) -> bool {
        self.packets >= self.config.most
    }

    /// Passes arriving frames to the shard.
    pub fn rx(&mut self, now: Instant, shard: &mut Shard, burst: &[RxFrame<'_>]) {
        for frame in burst {
            let before = CountersBefore::of(shard);
            shard.rx(now, slice::from_ref(frame));
            self.arrived(now, shard, &before, frame);
        }
    }

    /// Records an arrived frame that the shard has processed alone, with its counters from before.
    pub fn arrived(
        &mut self,
        now: Instant,
        shard: &Shard,
        before: &CountersBefore,
        frame: &RxFrame<'_>,
    ) {
        let mut comment = drops(before, shard);
        self.note_state(shard, Direction::In, frame.bytes, &mut comment);
        self.record(now, Direction::In, frame.bytes, &comment);
    }

    /// Records segments that leave the shard.
    pub fn tx(&mut self, now: Instant, shard: &Shard, segments: &[TxSegment]) {
        for segment in segments {
            let bytes = segment.to_vec();
            let mut comment = String::new();
            self.note_state(shard, Direction::Out, &bytes, &mut comment);
            self.record(now, Direction::Out, &bytes, &comment);
        }
    }

    /// Adds the state of the packet's flow to the comment, if it changed.
    fn note_state(
        &mut self,
        shard: &Shard,
        direction: Direction,
        bytes: &[u8],
        comment: &mut String,
    ) {
        let Some(flow) = flow_of(self.config.medium, direction, bytes) else { return };
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
            // TIME-WAIT ends without a packet: those flows are gone by now.
            self.states.retain(|flow, _| shard.state_between(flow).is_some());
            self.most_states = FIRST_STATES.max(2 * self.states.len());
        }
    }

    fn record(&mut self, now: Instant, direction: Direction, bytes: &[u8], comment: &str) {
        let link_type = self.config.link_type();
        let unwanted = |filter: &Filter| !filter.matches(link_type, bytes);
        if self.is_full() || self.config.filter.as_ref().is_some_and(unwanted) {
            return;
        }
        let note = PacketNote {
            interface: self.interface,
            at: Instant::from_nanos(self.config.zero.saturating_add(now.as_nanos())),
            direction,
            wire_len: bytes.len() as u32,
            comment,
        };
        let shown = bytes.get(..self.config.snap).unwrap_or(bytes);
        self.section.packet(&mut self.recorded, &note, shown);
        self.packets += 1;
    }
}

/// Reason of the drops since `before`, if there were any.
fn drops(before: &CountersBefore, shard: &Shard) -> String {
    let mut comment = String::new();
    for (reason, count) in shard.counters().drops() {
        if count > before.tcp.dropped(reason) {
            add(&mut comment, &format!("drop: {}", reason.name()));
        }
    }
    for (reason, count) in shard.ip_counters().drops() {
        if count > before.ip.dropped(reason) {
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

/// Smallest value of [`Recorder::most_states`].
const FIRST_STATES: usize = 65_536;
