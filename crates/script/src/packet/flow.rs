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

/// What is known of one connection.
#[derive(Clone, Debug)]
pub struct FlowState {
    /// Its 4-tuple on the wire, seen from the host.
    pub live: Flow,
    /// Its 4-tuple as the script writes it, if it does.
    pub written: Option<Flow>,
    pub(super) local_isn: Option<SeqNum>,
    /// The number of the host's SYN in the script, 0 but for few.
    script_isn: u32,
    /// One past the last number that the host sent.
    local_end: Option<SeqNum>,
    /// Where segments of the peer's begin, and where they end, as written.
    remote_begins: BTreeSet<u32>,
    remote_ends: BTreeSet<u32>,
    /// The peer's timestamps, as written.
    remote_stamps: BTreeSet<u32>,
    pub(super) remote_isn: Option<SeqNum>,
    /// The ISN of a SYN that came while another connection had the 4-tuple: valid once answered.
    pub(super) pending_syn: Option<SeqNum>,
    /// True if the next SYN of the host's may have an ISN of its own.
    pub(super) may_learn: bool,
    /// The flags of the host's last segment; none once the peer reset the connection.
    last_sent: TcpFlags,
    /// The peer's last segment had the ACK bit.
    pub(super) asked_with_ack: bool,
    /// The number of the host's FIN.
    pub(super) host_fin: Option<SeqNum>,
    /// The peer's FIN was sent.
    pub(super) peer_fin: bool,
    /// One of the peer's FINs crossed the host's: it does not acknowledge that.
    pub(super) fins_crossed: bool,
    /// Either side sent something behind the SYNs.
    is_past_syn: bool,
    stamps: Stamps,
    windows: Windows,
    moved: Vec<Moved>,
}

/// The host's timestamps: which live value a script's value stands for.
#[derive(Clone, Debug, Default)]
struct Stamps {
    by_script: BTreeMap<u32, u32>,
    /// The first, script's and live: a clock is compared with it.
    first: Option<(u32, u32)>,
}

/// The host's announced windows, as scripted and as they are.
#[derive(Clone, Debug, Default)]
struct Windows {
    /// The peer's SYN offered window scaling.
    peer_scales: bool,
    scripted: Announced,
    live: Announced,
    /// The receive buffer by the script, bytes: what its host accepts where it is more than a
    /// header could announce.
    scripted_buffer: u32,
    /// The same, told while the host had not heard the acknowledgment of its SYN.
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

/// A segment of the peer's that was sent elsewhere than written.
#[derive(Clone, Copy, Debug)]
struct Moved {
    begin: u32,
    end: u32,
    by: u32,
}

impl FlowState {
    /// A connection of which nothing was seen.
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

    /// The live number that the script's `n` is in the host's stream.
    pub fn local(&self, n: u32) -> SeqNum {
        self.local_isn.unwrap_or_default() + n
    }

    /// The live number that the script's `n` is in the peer's stream.
    pub fn remote(&self, n: u32) -> SeqNum {
        self.remote_isn.unwrap_or_default() + n
    }

    /// The script's number of a live one in the host's stream.
    pub fn local_relative(&self, live: SeqNum) -> u32 {
        live.offset_from(self.local(0))
    }

    /// The script's number of a live one in the peer's stream.
    pub fn remote_relative(&self, live: SeqNum) -> u32 {
        live.offset_from(self.remote(0))
    }

    /// What the script's numbers of the host count from in a segment of the peer's with `flags`.
    pub(super) fn local_base(&self, flags: TcpFlags) -> SeqNum {
        if flags.is_syn() { self.local(self.script_isn.wrapping_neg()) } else { self.local(0) }
    }

    /// The numbers that the host's acknowledgments count from in a segment with `flags`: in one with
    /// SYN those of the wire, as on the SYN that it answers; in a reset besides the connection's those
    /// of a new SYN that it may be an answer to.
    pub(super) fn remote_bases(&self, flags: TcpFlags) -> impl Iterator<Item = SeqNum> {
        let known = if flags.is_syn() { SeqNum::default() } else { self.remote(0) };
        let pending = self.pending_syn.filter(|_| flags.is_rst());
        core::iter::once(known).chain(pending)
    }

    /// A segment of the peer's goes in.
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
        // While the host still offers its SYN-ACK, the same SYN again asks for the same answer.
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

    /// A segment of the peer's is written so: what the host may acknowledge.
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

    /// A segment of the host's was found to be `expected`.
    pub fn on_sent(&mut self, expected: &TcpPacket, segment: &Segment) {
        if segment.flags.is_syn() {
            self.on_syn_sent(expected, segment);
        } else if !segment.flags.is_rst() {
            // What may have asked for another connection was refused.
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
            // The 4-tuple's next connection: nothing of the one before holds any more.
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

    /// A segment of the host's was passed over: what it announces holds all the same.
    pub fn on_skipped(&mut self, segment: &Segment) {
        let ack = segment.ack.offset_from(self.remote(0));
        self.windows.live.announce(ack, segment.win, segment.flags.is_syn());
        self.note_end(segment);
    }

    /// True if a segment of the host's acknowledges more, or announces another window, than its
    /// last.
    pub(in super::super) fn is_news(&self, segment: &Segment) -> bool {
        let live = &self.windows.live;
        segment.ack.offset_from(self.remote(0)) != live.ack || segment.win != live.win
    }

    /// True if a pure acknowledgment as written says the same as the one that is written before.
    pub(in super::super) fn repeats(&self, body: &TcpPacket) -> bool {
        let scripted = &self.windows.scripted;
        body.ack == Some(Ack::Relative(scripted.ack))
            && body.win.is_none_or(|win| win == scripted.win)
    }

    /// An acknowledgment is written, and did not come so far.
    pub(in super::super) fn on_owed(&mut self, body: &TcpPacket) {
        if let Some(Ack::Relative(ack)) = body.ack {
            self.windows.scripted.on_written(ack, body.win, false);
        }
    }

    /// The ISNs of an active open may change: the application connects anew.
    pub fn on_connect(&mut self) {
        self.may_learn = true;
    }

    /// The live TSval that the script's value stands for: that of the segment written with it, or
    /// as far from the nearest as it is written. 0 means "none" unless a segment was written so.
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

    /// The script's and the host's ticks since the first timestamp.
    pub(super) fn ticks(&self, script: u32, live: u32) -> (u32, u32) {
        let (first_script, first_live) = self.stamps.first.unwrap_or((script, live));
        (script.wrapping_sub(first_script), live.wrapping_sub(first_live))
    }

    /// Where a segment of the peer's begins, relative to its ISN. A SYN has a place in the window only
    /// once the connection has one, and none any more where it may open another.
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

    /// How far to move a segment of the peer's that is written at `begin`, so that it lies to the
    /// host's window as it is written to lie to the scripted one; 0 if that is no matter.
    ///
    /// Only what begins behind the expected number, at the last byte of the window or beyond it,
    /// aims at the edge; a retransmission, a probe or text in order does not. What aims at an edge that no
    /// header could announce is moved to `right_edge`, which the host has in truth, if that is known.
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
        // The host's own edge may lie up to a unit of the scale beyond what it could announce.
        let may_differ = distance >= 0 && len == 0 && right_edge.is_none();
        let unit = if may_differ { (1 << live.scale) - 1 } else { 0 };
        let by = live_edge.wrapping_sub(scripted_edge).wrapping_add(unit);
        Some(by).filter(|by| *by != 0)
    }

    /// The script says how large the receive buffer is. While the connection opens, its window is what
    /// the SYN announced, whatever the buffer holds.
    pub const fn on_buffer(&mut self, bytes: u32) {
        if self.is_past_syn {
            self.windows.scripted_buffer = bytes;
        }
    }

    /// The same of a connection in SYN-RECEIVED: there its edge is what the SYN announced, unless a
    /// segment is written to lie at the end of the buffer.
    pub const fn on_opening_buffer(&mut self, bytes: u32) {
        self.windows.opening_buffer = bytes;
    }

    /// A segment was moved.
    pub fn on_moved(&mut self, begin: u32, len: u32, by: u32) {
        self.moved.push(Moved { begin, end: begin.wrapping_add(len), by });
    }

    /// Where an edge of a selective acknowledgment lies live, whatever was moved.
    pub(super) fn live_sack_edge(&self, edge: u32) -> SeqNum {
        let holds = |moved: &&Moved| (moved.begin..=moved.end).contains(&edge);
        let by = self.moved.iter().rfind(holds).map_or(0, |moved| moved.by);
        self.remote(edge.wrapping_add(by))
    }
}

impl Announced {
    /// A segment is written, maybe without its window: that is as large then as it was, if the
    /// script ever said.
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
        // RFC 9293 3.8.6: a window should not shrink; where it does, what was allowed stays.
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
    /// The one that packets without ends belong to.
    current: Option<usize>,
    /// Where the application listens.
    listening: Endpoint,
    remote: Address,
    next_port: u16,
    /// A listener is there that no SYN has met.
    fresh_listener: bool,
}

impl Flows {
    /// The flows of a script that has not begun.
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

    /// The one that packets without ends belong to.
    pub const fn current(&self) -> Option<usize> {
        self.current
    }

    /// Packets without ends belong to this one from now on.
    pub const fn go_on_with(&mut self, index: usize) {
        self.current = Some(index);
    }

    /// The application listens at `port`; the next SYN without ends opens a connection of its
    /// own, from a port of its own.
    pub const fn on_listen(&mut self, port: u16) {
        self.listening.port = port;
        self.fresh_listener = true;
    }

    /// The script says how large the receive buffer of an open connection is.
    pub fn on_buffer(&mut self, bytes: u32) {
        self.flows.iter_mut().for_each(|flow| flow.on_buffer(bytes));
    }

    /// The script says how large the receive buffer of a connection in SYN-RECEIVED is.
    pub fn on_opening_buffer(&mut self, bytes: u32) {
        self.flows.iter_mut().for_each(|flow| flow.on_opening_buffer(bytes));
    }

    /// The application connects: the next flow is opened by its SYN.
    pub fn on_connect(&mut self) {
        self.flows.iter_mut().for_each(FlowState::on_connect);
    }

    /// The connection that a packet of the peer's with these ends and flags belongs to.
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

    /// The connection with these ends as written, or live.
    pub fn written(&self, flow: Flow) -> Option<usize> {
        let written = self.flows.iter().rposition(|it| it.written == Some(flow));
        written.or_else(|| self.live(flow))
    }

    /// The connection with this 4-tuple.
    pub fn live(&self, flow: Flow) -> Option<usize> {
        self.flows.iter().rposition(|it| it.live == flow)
    }

    /// The connection that the host sends this on; a new one if there is none.
    pub fn sending(&mut self, flow: Flow) -> usize {
        self.live(flow).unwrap_or_else(|| self.add(flow, None))
    }

    fn add(&mut self, live: Flow, written: Option<Flow>) -> usize {
        self.flows.push(FlowState { written, ..FlowState::new(live) });
        self.flows.len() - 1
    }
}

/// The peer's first port; any will do that the host does not take for its own.
const FIRST_PORT: u16 = 40_001;

#[cfg(test)]
mod tests;
