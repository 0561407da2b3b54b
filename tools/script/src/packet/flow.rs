//! One connection's two ways of counting: the script's numbers and the live ones.
//!
//! ```text
//!               on the wire                 in the script
//! peer's SYN    as written                  its ISN
//! peer's text   remote ISN + n              n
//! host's SYN    whatever the host chose     0, learned when it comes out
//! host's text   local ISN + n               n
//! ```
//!
//! What a segment with SYN acknowledges is written as the SYN is that it answers: 901 for `S 900:900(0)`.
//!
//! Where an ISN was never seen (a stray segment to a closed port) the numbers are as written.

mod late;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Address, Endpoint, Flow, SeqNum};

use super::super::ast::{Ack, OptionList, PacketEnds, Seq, TcpOption, TcpPacket};
use super::super::setup::Setup;
use super::Segment;

/// State of one connection.
#[derive(Clone, Debug)]
pub struct FlowState {
    /// 4-tuple on the wire, seen from the host.
    pub live: Flow,
    /// 4-tuple in the script, if written.
    pub written: Option<Flow>,
    pub(super) local_isn: Option<SeqNum>,
    /// Number of the host's SYN in the script, usually 0.
    script_isn: u32,
    /// Number after the last that the host sent.
    local_end: Option<SeqNum>,
    /// First and last numbers of the peer's segments, as written.
    remote_begins: BTreeSet<u32>,
    remote_ends: BTreeSet<u32>,
    /// The peer's timestamps, as written.
    remote_stamps: BTreeSet<u32>,
    pub(super) remote_isn: Option<SeqNum>,
    /// ISN of a SYN that came while another connection had the 4-tuple: valid once answered.
    pub(super) pending_syn: Option<SeqNum>,
    /// True if the host's next SYN may have another ISN.
    pub(super) may_learn: bool,
    /// Flags of the host's last segment; empty once the peer reset the connection.
    last_sent: TcpFlags,
    /// True if the peer's last segment had the ACK bit.
    pub(super) asked_with_ack: bool,
    /// Number of the host's FIN.
    pub(super) host_fin: Option<SeqNum>,
    /// True once the peer's FIN was sent.
    pub(super) peer_fin: bool,
    /// True if the peer's FIN crossed the host's, and so does not acknowledge it.
    pub(super) fins_crossed: bool,
    /// True once either side sent a segment after the SYNs.
    is_past_syn: bool,
    stamps: Stamps,
    windows: Windows,
    moved: Vec<Moved>,
}

/// Timestamps of the host: script values and live ones.
#[derive(Clone, Debug, Default)]
struct Stamps {
    by_script: BTreeMap<u32, u32>,
    /// The first pair, script and live: base of the clock check.
    first: Option<(u32, u32)>,
}

/// Announced windows of the host, in the script and live.
#[derive(Clone, Debug, Default)]
struct Windows {
    /// True if the peer's SYN offered window scaling.
    peer_scales: bool,
    scripted: Announced,
    live: Announced,
    /// Receive buffer in the script, bytes: the limit of the script's host where that is more than
    /// a header can announce.
    scripted_buffer: u32,
    /// Its size before the host received the acknowledgment of its SYN.
    opening_buffer: u32,
}

/// Numbers are relative to the remote ISN.
#[derive(Clone, Copy, Debug, Default)]
struct Announced {
    scale: u8,
    win: u16,
    ack: u32,
    edge: Option<u32>,
}

/// A segment of the peer that was moved.
#[derive(Clone, Copy, Debug)]
struct Moved {
    begin: u32,
    end: u32,
    by: u32,
}

impl FlowState {
    /// A connection without packets so far.
    pub fn new(live: Flow) -> Self {
        Self {
            live,
            written: None,
            local_isn: None,
            script_isn: 0,
            local_end: None,
            remote_begins: BTreeSet::new(),
            remote_ends: BTreeSet::new(),
            remote_stamps: BTreeSet::new(),
            remote_isn: None,
            pending_syn: None,
            may_learn: true,
            last_sent: TcpFlags::NONE,
            asked_with_ack: false,
            host_fin: None,
            peer_fin: false,
            fins_crossed: false,
            is_past_syn: false,
            stamps: Stamps::default(),
            windows: Windows::default(),
            moved: Vec::new(),
        }
    }

    /// The live number for the script's `n` in the host's stream.
    pub fn local(&self, n: u32) -> SeqNum {
        self.local_isn.unwrap_or_default() + n
    }

    /// The live number for the script's `n` in the peer's stream.
    pub fn remote(&self, n: u32) -> SeqNum {
        self.remote_isn.unwrap_or_default() + n
    }

    /// The script's number for a live one in the host's stream.
    pub fn local_relative(&self, live: SeqNum) -> u32 {
        live.offset_from(self.local(0))
    }

    /// The script's number for a live one in the peer's stream.
    pub fn remote_relative(&self, live: SeqNum) -> u32 {
        live.offset_from(self.remote(0))
    }

    /// Base of the script's host numbers in a segment of the peer with `flags`.
    pub(super) fn local_base(&self, flags: TcpFlags) -> SeqNum {
        if flags.is_syn() { self.local(self.script_isn.wrapping_neg()) } else { self.local(0) }
    }

    /// Bases of the host's acknowledgments in a segment with `flags`. A segment with SYN uses the
    /// numbers on the wire, as the SYN that it answers. A reset uses the connection's, or those of
    /// a new SYN that it may answer.
    pub(super) fn remote_bases(&self, flags: TcpFlags) -> impl Iterator<Item = SeqNum> {
        let known = if flags.is_syn() { SeqNum::default() } else { self.remote(0) };
        let pending = self.pending_syn.filter(|_| flags.is_rst());
        core::iter::once(known).chain(pending)
    }

    /// Notes a segment of the peer that was sent.
    pub fn on_received(&mut self, segment: &Segment) {
        self.asked_with_ack = segment.flags.is_ack();
        self.is_past_syn |= is_past_syn(segment.flags);
        if segment.flags.is_fin() {
            self.peer_fin = true;
            let is_unheard = |fin: SeqNum| segment.ack.distance_from(fin) <= 0;
            self.fins_crossed |= self.host_fin.is_some_and(is_unheard);
        }
        if segment.flags.is_rst() {
            self.last_sent = TcpFlags::NONE;
        }
        if !segment.flags.is_syn() {
            return;
        }
        let scales = |option: &TcpOption| matches!(option, TcpOption::WindowScale(_));
        self.windows.peer_scales = segment.options.iter().any(scales);
        let is_simultaneous = self.last_sent.is_syn() && !self.last_sent.is_ack();
        // While the host still offers its SYN-ACK, the same SYN asks for the same answer.
        let repeats = self.last_sent.is_syn() && self.remote_isn == Some(segment.seq);
        let opens = self.remote_isn.is_none() || is_simultaneous;
        if opens {
            self.remote_isn = Some(segment.seq);
        }
        if !segment.flags.is_ack() && !is_simultaneous && !repeats {
            self.may_learn = true;
            self.pending_syn = Some(segment.seq).filter(|_| !opens);
        }
    }

    /// Notes a segment of the peer as written, and the numbers that the host may acknowledge.
    pub(in super::super) fn on_written_in(&mut self, body: &TcpPacket) {
        if let OptionList::These(options) = &body.options {
            self.remote_stamps.extend(stamp(options));
        }
        let begin = match body.seq {
            Seq::Relative(_) if body.flags.is_syn() => 1,
            Seq::Relative(begin) => begin,
            Seq::Absolute(_) | Seq::Any => return,
        };
        let end = begin.wrapping_add(body.len).wrapping_add(u32::from(body.flags.is_fin()));
        self.remote_begins.insert(begin);
        self.remote_ends.insert(end);
    }

    /// Notes a segment of the host that matched `expected`.
    pub fn on_sent(&mut self, expected: &TcpPacket, segment: &Segment) {
        if segment.flags.is_syn() {
            self.on_syn_sent(expected, segment);
        } else if !segment.flags.is_rst() {
            // The segment that may have opened another connection was refused.
            self.pending_syn = None;
            self.may_learn &= self.local_isn.is_none();
        }
        if segment.flags.is_fin() {
            self.host_fin = Some(segment.seq + segment.len());
        }
        self.last_sent = segment.flags;
        self.is_past_syn |= is_past_syn(segment.flags);
        self.note_end(segment);
        self.note_stamp(expected, segment);
        self.note_window(expected, segment);
    }

    fn on_syn_sent(&mut self, expected: &TcpPacket, segment: &Segment) {
        if let Some(isn) = self.pending_syn.take() {
            // The 4-tuple has a new connection: no state of the old one applies.
            let peer_scales = self.windows.peer_scales;
            let remote_stamps = core::mem::take(&mut self.remote_stamps);
            *self = Self { written: self.written, remote_stamps, ..Self::new(self.live) };
            self.remote_ends.insert(1);
            self.remote_isn = Some(isn);
            self.windows.peer_scales = peer_scales;
        }
        if self.may_learn {
            self.local_isn = Some(segment.seq);
            if let Seq::Relative(isn) = expected.seq {
                self.script_isn = isn;
            }
            self.local_end = None;
            self.may_learn = false;
        }
    }

    fn note_end(&mut self, segment: &Segment) {
        if segment.flags.is_rst() {
            return;
        }
        let controls = u32::from(segment.flags.is_syn()) + u32::from(segment.flags.is_fin());
        let end = segment.seq + (segment.len() + controls);
        if self.local_end.is_none_or(|before| end.distance_from(before) > 0) {
            self.local_end = Some(end);
        }
    }

    fn note_stamp(&mut self, expected: &TcpPacket, segment: &Segment) {
        let OptionList::These(options) = &expected.options else { return };
        if let (Some(script), Some(live)) = (stamp(options), stamp(&segment.options)) {
            self.stamps.by_script.insert(script, live);
            self.stamps.first.get_or_insert((script, live));
        }
    }

    fn note_window(&mut self, expected: &TcpPacket, segment: &Segment) {
        let Windows { peer_scales, scripted, live, .. } = &mut self.windows;
        let is_syn = segment.flags.is_syn();
        if is_syn {
            live.scale = scale(&segment.options).filter(|_| *peer_scales).unwrap_or(0);
            scripted.scale = match &expected.options {
                OptionList::Any => live.scale,
                OptionList::These(options) => scale(options).filter(|_| *peer_scales).unwrap_or(0),
            };
        }
        if !segment.flags.is_ack() {
            return;
        }
        let ack = segment.ack.offset_from(self.remote_isn.unwrap_or_default());
        live.announce(ack, segment.win, is_syn);
        scripted.on_written(ack, expected.win, is_syn);
    }

    /// Notes a segment of the host that was skipped: its announcements still apply.
    pub fn on_skipped(&mut self, segment: &Segment) {
        let ack = segment.ack.offset_from(self.remote(0));
        self.windows.live.announce(ack, segment.win, segment.flags.is_syn());
        self.note_end(segment);
    }

    /// True if the host's segment acknowledges more, or announces another window, than its last.
    pub(in super::super) fn is_news(&self, segment: &Segment) -> bool {
        let live = &self.windows.live;
        segment.ack.offset_from(self.remote(0)) != live.ack || segment.win != live.win
    }

    /// True if a written pure acknowledgment equals the one written before.
    pub(in super::super) fn repeats(&self, body: &TcpPacket) -> bool {
        let scripted = &self.windows.scripted;
        body.ack == Some(Ack::Relative(scripted.ack))
            && body.win.is_none_or(|win| win == scripted.win)
    }

    /// Notes a written acknowledgment that has not come so far.
    pub(in super::super) fn on_owed(&mut self, body: &TcpPacket) {
        if let Some(Ack::Relative(ack)) = body.ack {
            self.windows.scripted.on_written(ack, body.win, false);
        }
    }

    /// Notes a connect: the ISNs of an active open may change.
    pub fn on_connect(&mut self) {
        self.may_learn = true;
    }

    /// The live TSval for a value of the script: that of the segment written with it, or at the
    /// written distance from the nearest. 0 means "none" unless a segment was written with 0.
    pub fn live_ecr(&self, ecr: u32, setup: &Setup) -> u32 {
        let exact = self.stamps.by_script.get(&ecr).copied();
        match (exact, self.stamps.first) {
            (Some(live), _) if !setup.scaled_ecr => live,
            (None, _) if ecr == 0 => 0,
            (_, None) => ecr,
            (_, Some(first)) => {
                let before = self.stamps.by_script.range(..=ecr).next_back();
                let (script, live) = match before {
                    Some((script, live)) if !setup.scaled_ecr => (*script, *live),
                    _ => first,
                };
                live.wrapping_add(ecr.wrapping_sub(script))
            }
        }
    }

    /// Ticks of the script and the host since the first timestamp.
    pub(super) fn ticks(&self, script: u32, live: u32) -> (u32, u32) {
        let (first_script, first_live) = self.stamps.first.unwrap_or((script, live));
        (script.wrapping_sub(first_script), live.wrapping_sub(first_live))
    }

    /// Start of a segment of the peer, relative to its ISN. A SYN has a place in the window only
    /// while the connection has a window and cannot be replaced.
    pub(in super::super) fn begin(&self, body: &TcpPacket) -> Option<u32> {
        match body.seq {
            Seq::Relative(begin) if !body.flags.is_syn() => Some(begin),
            Seq::Relative(number) => {
                let is_over = self.host_fin.is_some() && self.peer_fin;
                let isn = self.remote_isn.filter(|_| self.is_past_syn && !is_over)?;
                Some(number.wrapping_sub(isn.raw()))
            }
            Seq::Absolute(_) | Seq::Any => None,
        }
    }

    /// Distance to move a segment of the peer written at `begin`, so that it lies in the host's
    /// window as it does in the script's; 0 if that does not matter.
    ///
    /// Only a segment that begins after the expected number, at the last byte of the window or
    /// beyond it, aims at the edge; a retransmission, a probe or text in order does not. One beyond
    /// any edge that a header can announce moves to `right_edge`, the host's true edge, if that is
    /// known.
    pub fn aim(&self, begin: u32, len: u32, right_edge: Option<SeqNum>) -> Option<u32> {
        let Windows { scripted, live, scripted_buffer, opening_buffer, .. } = &self.windows;
        let behind = |buffer: u32| match scripted.win {
            u16::MAX => scripted.ack.saturating_add(buffer),
            _ => 0,
        };
        let (announced, live_announced) = (scripted.edge?, live.edge?);
        let is_at = |edge: u32| matches!(begin.wrapping_sub(edge).cast_signed(), -1 | 0);
        let scripted_edge = match behind(*opening_buffer) {
            edge if is_at(edge) && !is_at(announced) => edge,
            _ => announced.max(behind(*scripted_buffer)),
        };
        let right_edge = right_edge.filter(|_| scripted_edge != announced);
        let live_edge = right_edge.map_or(live_announced, |edge| self.remote_relative(edge));
        let ahead = begin.wrapping_sub(scripted.ack).cast_signed() > 0;
        let distance = begin.wrapping_sub(scripted_edge).cast_signed();
        if !ahead || distance < -1 || scripted_edge == live_edge {
            return None;
        }
        // The host's own edge may lie up to a unit of the scale beyond any that it can announce.
        let may_differ = distance >= 0 && len == 0 && right_edge.is_none();
        let unit = if may_differ { (1 << live.scale) - 1 } else { 0 };
        let by = live_edge.wrapping_sub(scripted_edge).wrapping_add(unit);
        Some(by).filter(|by| *by != 0)
    }

    /// Sets the receive buffer of the script. While the connection opens, its window is the one in
    /// the SYN, with any buffer.
    pub const fn on_buffer(&mut self, bytes: u32) {
        if self.is_past_syn {
            self.windows.scripted_buffer = bytes;
        }
    }

    /// Sets the buffer of a connection in SYN-RECEIVED. Its edge is the one that the SYN announced,
    /// unless a segment is written to lie at the end of the buffer.
    pub const fn on_opening_buffer(&mut self, bytes: u32) {
        self.windows.opening_buffer = bytes;
    }

    /// Notes a segment that was moved.
    pub fn on_moved(&mut self, begin: u32, len: u32, by: u32) {
        self.moved.push(Moved { begin, end: begin.wrapping_add(len), by });
    }

    /// The live edge of a selective acknowledgment, also in moved text.
    pub(super) fn live_sack_edge(&self, edge: u32) -> SeqNum {
        let holds = |moved: &&Moved| (moved.begin..=moved.end).contains(&edge);
        let by = self.moved.iter().rfind(holds).map_or(0, |moved| moved.by);
        self.remote(edge.wrapping_add(by))
    }
}

impl Announced {
    /// Notes a written segment. One without a window keeps the last window of the script, if there
    /// is one.
    fn on_written(&mut self, ack: u32, win: Option<u16>, is_syn: bool) {
        match win {
            Some(win) => self.announce(ack, win, is_syn),
            None => {
                let advance = ack.wrapping_sub(self.ack);
                self.edge = self.edge.map(|edge| edge.wrapping_add(advance));
                self.ack = ack;
            }
        }
    }

    fn announce(&mut self, ack: u32, win: u16, is_syn: bool) {
        let scale = if is_syn { 0 } else { self.scale.min(14) };
        let edge = ack.wrapping_add(u32::from(win) << scale);
        (self.ack, self.win) = (ack, win);
        // RFC 9293 3.8.6: a window should not shrink; if it does, the old edge stays allowed.
        self.edge = Some(self.edge.map_or(edge, |before| before.max(edge)));
    }
}

fn is_past_syn(flags: TcpFlags) -> bool {
    flags.is_ack() && !flags.is_syn() && !flags.is_rst()
}

fn stamp(options: &[TcpOption]) -> Option<u32> {
    options.iter().find_map(|option| match option {
        TcpOption::Timestamps { val, .. } => Some(*val),
        TcpOption::SomeTimestamps { val, .. } => *val,
        _ => None,
    })
}

fn scale(options: &[TcpOption]) -> Option<u8> {
    options.iter().find_map(|option| match option {
        TcpOption::WindowScale(shift) => Some(*shift),
        _ => None,
    })
}

/// The connections of a script.
#[derive(Clone, Debug)]
pub struct Flows {
    flows: Vec<FlowState>,
    /// Connection of packets without ends.
    current: Option<usize>,
    /// Listening endpoint of the application.
    listening: Endpoint,
    remote: Address,
    next_port: u16,
    /// True if there is a listener without a SYN so far.
    fresh_listener: bool,
}

impl Flows {
    /// Flows at the start of a script.
    pub fn new(setup: &Setup) -> Self {
        Self {
            flows: Vec::new(),
            current: None,
            listening: setup.bind,
            remote: setup.network.remote,
            next_port: FIRST_PORT,
            fresh_listener: false,
        }
    }

    /// The connection at `index`.
    ///
    /// # Panics
    /// If there is no such connection.
    pub fn at(&self, index: usize) -> &FlowState {
        &self.flows[index]
    }

    /// The connection at `index`.
    ///
    /// # Panics
    /// If there is no such connection.
    pub fn at_mut(&mut self, index: usize) -> &mut FlowState {
        &mut self.flows[index]
    }

    /// Connection of packets without ends.
    pub const fn current(&self) -> Option<usize> {
        self.current
    }

    /// Sets the connection of packets without ends.
    pub const fn go_on_with(&mut self, index: usize) {
        self.current = Some(index);
    }

    /// Notes a listener at `port`: the next SYN without ends opens a new connection, from a new
    /// port.
    pub const fn on_listen(&mut self, port: u16) {
        self.listening.port = port;
        self.fresh_listener = true;
    }

    /// Sets the receive buffer of an open connection, as in the script.
    pub fn on_buffer(&mut self, bytes: u32) {
        self.flows.iter_mut().for_each(|flow| flow.on_buffer(bytes));
    }

    /// Sets the receive buffer of a connection in SYN-RECEIVED, as in the script.
    pub fn on_opening_buffer(&mut self, bytes: u32) {
        self.flows.iter_mut().for_each(|flow| flow.on_opening_buffer(bytes));
    }

    /// Notes a connect: the next SYN of the host opens a flow.
    pub fn on_connect(&mut self) {
        self.flows.iter_mut().for_each(FlowState::on_connect);
    }

    /// Connection of a packet of the peer with these ends and flags.
    pub fn receiving(&mut self, ends: Option<PacketEnds>, flags: TcpFlags) -> usize {
        let opens = flags.is_syn() && !flags.is_ack();
        let index = match (ends, self.current) {
            (Some(ends), _) => {
                let flow = Flow { local: ends.to, remote: ends.from };
                self.written(flow).unwrap_or_else(|| self.add(flow, Some(flow)))
            }
            (None, Some(current)) if !(opens && self.fresh_listener) => current,
            (None, _) => {
                let remote = Endpoint::new(self.remote, self.next_port);
                self.next_port += 1;
                self.add(Flow { local: self.listening, remote }, None)
            }
        };
        self.fresh_listener &= !opens;
        self.current = Some(index);
        index
    }

    /// Connection with these ends, as written or live.
    pub fn written(&self, flow: Flow) -> Option<usize> {
        let written = self.flows.iter().rposition(|it| it.written == Some(flow));
        written.or_else(|| self.live(flow))
    }

    /// Connection with this 4-tuple.
    pub fn live(&self, flow: Flow) -> Option<usize> {
        self.flows.iter().rposition(|it| it.live == flow)
    }

    /// Connection of a packet of the host; a new one if there is none.
    pub fn sending(&mut self, flow: Flow) -> usize {
        self.live(flow).unwrap_or_else(|| self.add(flow, None))
    }

    fn add(&mut self, live: Flow, written: Option<Flow>) -> usize {
        self.flows.push(FlowState { written, ..FlowState::new(live) });
        self.flows.len() - 1
    }
}

/// First port of the peer; any port that the host does not use as its own.
const FIRST_PORT: u16 = 40_001;

#[cfg(test)]
mod tests;
