//! From packets to a report, in one pass.

use std::collections::BTreeMap;

use whimbrel_link::reader::Packet;
use whimbrel_wire::{Address, Endpoint};

use crate::findings::{Found, Surroundings, judge};
use crate::flow::{CLIENT, Flow, Prior};
use crate::half::SECOND;
use crate::id::Id;
use crate::ports::PortUses;
use crate::report::{Finding, FlowReport, Report};
use crate::segment::Segment;
use crate::table::Table;

/// Takes packets, and explains them at the end.
#[derive(Default, Debug)]
pub struct Explainer {
    table: Table,
    ports: PortUses,
    paths: BTreeMap<[Address; 2], PathState>,
    servers: BTreeMap<Endpoint, ServerState>,
    groups: BTreeMap<GroupKey, Finding>,
    flows: Vec<FlowReport>,
    report: Report,
    /// Time of the first frame of all.
    began: Option<u64>,
    /// Latest time since it last went backwards by much.
    latest: u64,
    /// The frame at which it did, if no segment has come since.
    unordered: Option<u64>,
    /// Memory of the flows, bytes.
    held: usize,
}

/// Findings that are one: of the same cause, at the same side, to the same server.
type GroupKey = (Id, &'static str, usize, Option<Endpoint>);

/// A pair of hosts, client and server.
#[derive(Clone, Default, Debug)]
struct PathState {
    /// For each side, its latest segment and the client's port of that flow; and of another flow.
    heard: [[(u64, u16); 2]; 2],
    /// Times without signs, with the flow's port.
    silences: Vec<(u64, u64, u16)>,
}

impl PathState {
    fn note(&mut self, flow: &Flow) {
        let port = flow.ends[CLIENT].port;
        for (latest, at) in self.heard.iter_mut().zip(flow.heard) {
            let [first, second] = latest;
            if first.1 == port {
                first.0 = first.0.max(at);
            } else if at >= first.0 {
                (*first, *second) = ((at, port), *first);
            } else if at >= second.0 {
                *second = (at, port);
            }
        }
        if flow.unaccepted().is_some() {
            return;
        }
        let silences = flow.halves.iter().flat_map(|half| {
            let open = half.losses.silence.map(|it| (it.since, flow.last));
            half.losses.silences.iter().map(|(since, until, _)| (*since, *until)).chain(open)
        });
        let long = silences.filter(|(since, until)| until.saturating_sub(*since) >= SECOND / 2);
        for (since, until) in long {
            if self.silences.len() < 64 {
                self.silences.push((since, until, port));
            }
        }
    }

    /// True if a side has sent on another flow than that of `port` after `since`.
    fn is_alive(&self, side: usize, port: u16, since: u64) -> bool {
        let heard = self.heard.get(side).into_iter().flatten();
        heard.into_iter().any(|(at, other)| *other != port && *at > since)
    }

    /// True if text of another flow than that of `port` was repeated without an answer in this time.
    fn is_silent(&self, port: u16, from: u64, until: u64) -> bool {
        let others = self.silences.iter().filter(|(_, _, other)| *other != port);
        others.into_iter().any(|(since, to, _)| *since < until && from < *to)
    }

    fn is_shared(&self, port: u16) -> bool {
        let own = self.silences.iter().filter(|(_, _, own)| *own == port);
        own.into_iter().any(|(since, until, _)| {
            let others = self.silences.iter().filter(|(_, _, other)| *other != port);
            others.into_iter().any(|(from, to, _)| from < until && since < to)
        })
    }
}

/// A server, as several flows show it.
#[derive(Clone, Default, Debug)]
struct ServerState {
    /// Connections whose SYN-ACK came again after the ACK, or whose text it does not know.
    overflows: u32,
    /// Times in which SYNs were repeated and nothing came back, before the handshake succeeded.
    unheeded: Vec<(u64, u64)>,
    syns: u64,
    repeated_syns: u64,
    segments: u64,
    repeated: u64,
}

impl ServerState {
    fn note(&mut self, flow: &Flow) {
        self.overflows += u32::from(flow.late_syn_acks > 0 || flow.unaccepted().is_some());
        let count = u64::from(flow.halves[CLIENT].opening.count);
        self.syns += count;
        if let Some(time) = flow.unheeded_syns() {
            self.repeated_syns += count.saturating_sub(1);
            if self.unheeded.len() < 32 {
                self.unheeded.push(time);
            }
        }
        for half in &flow.halves {
            self.segments += half.segments;
            self.repeated += half.losses.repeated;
        }
    }

    /// True if SYNs of three flows were repeated at once, and text is lost far more rarely.
    fn is_full(&self, time: (u64, u64)) -> bool {
        let at_once = self.unheeded.iter().filter(|it| it.0 < time.1 && time.0 < it.1);
        let is_path = self.repeated.saturating_mul(self.syns).saturating_mul(4)
            > self.repeated_syns.saturating_mul(self.segments);
        at_once.count() >= 3 && !is_path
    }
}

impl Explainer {
    /// An explainer that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next frame of the capture.
    pub fn take(&mut self, packet: &Packet<'_>) {
        self.skip(packet.at);
        let Some(segment) = Segment::read(self.report.frames, packet) else {
            self.report.cut += u64::from(Segment::is_cut(packet));
            return;
        };
        self.report.segments += 1;
        if let Some(frame) = self.unordered.take() {
            let found = Found::new(Id::CaptureUnordered, CLIENT, frame).info();
            self.add(segment.ends, found, 1);
        }
        self.on_segment(&segment);
    }

    /// Source and destination of a packet, if it is a TCP segment.
    pub fn ends(packet: &Packet<'_>) -> Option<[Endpoint; 2]> {
        Segment::read(0, packet).map(|segment| segment.ends)
    }

    /// Counts a frame that is not to be explained, so that numbers of frames are those of the file.
    pub fn skip(&mut self, at: u64) {
        self.report.frames += 1;
        if at.saturating_add(SECOND) < self.latest {
            self.end_capture();
            (self.latest, self.unordered) = (at, Some(self.report.frames));
        }
        self.latest = self.latest.max(at);
        self.began = Some(self.began.map_or(at, |began| began.min(at)));
        self.report.last = self.report.last.max(at);
    }

    /// Counts a frame that is not to be explained, and has no time that is known.
    pub const fn skip_untimed(&mut self) {
        self.report.frames += 1;
    }

    /// Judges all flows: those that follow are of another capture.
    fn end_capture(&mut self) {
        let table = std::mem::take(&mut self.table);
        table.flows().for_each(|flow| self.note(flow));
        self.table = table;
        while let Some(flow) = self.table.pop_oldest() {
            self.judge(&flow);
        }
        let (end, frame) = (self.latest, self.report.frames);
        for exhausted in std::mem::take(&mut self.ports).exhausted(end, frame) {
            let found = Found::new(Id::PortExhausted, CLIENT, exhausted.frame);
            let found = found.kind(exhausted.kind).confidence(exhausted.confidence);
            let found = Found { time: exhausted.time, ..found };
            self.add(
                [Endpoint::new(exhausted.client, 0), exhausted.server],
                found,
                exhausted.flows,
            );
        }
        (self.paths, self.servers, self.held) = Default::default();
    }

    /// Judges all flows, and returns the report.
    pub fn finish(mut self) -> Report {
        self.end_capture();
        let mut report = self.report;
        report.first = self.began.unwrap_or(0);
        report.findings = self.groups.into_values().collect();
        report.sort();
        self.flows.sort_by_key(|flow| (std::cmp::Reverse(flow.time_lost), flow.first_frame));
        report.flows = self.flows;
        report.flows.truncate(Report::MOST_FLOWS);
        report
    }

    fn on_segment(&mut self, segment: &Segment) {
        let mut prior = None;
        if let Some(flow) = self.table.touch(segment.ends) {
            if !flow.is_reopened_by(segment) {
                let before = flow.held();
                flow.take(segment);
                self.held = (self.held + flow.held()).saturating_sub(before);
                self.sum_up();
                return;
            }
            prior = Some(flow.as_prior());
            if let Some(flow) = self.table.remove(segment.ends) {
                self.held = self.held.saturating_sub(flow.held());
                self.note(&flow);
                self.judge(&flow);
            }
        }
        self.open(segment, prior);
    }

    fn open(&mut self, segment: &Segment, prior: Option<Prior>) {
        self.report.flow_count += 1;
        let mut flow = Flow::new(segment, prior);
        if segment.flags.is_syn() && !segment.flags.is_ack() {
            let closed = prior.filter(|prior| prior.is_closed).map(|prior| prior.closed_at);
            self.ports.on_syn(flow.ends, segment.at, segment.frame, closed);
        }
        flow.take(segment);
        self.held += flow.held();
        self.table.insert(flow);
        self.sum_up();
    }

    /// Judges the flows that are silent for longest, while there are too many.
    fn sum_up(&mut self) {
        while self.table.len() > Self::MOST_FLOWS || self.held > Self::MOST_BYTES {
            let Some(flow) = self.table.pop_oldest() else { return };
            self.held = self.held.saturating_sub(flow.held());
            self.report.summed_up += 1;
            self.note(&flow);
            self.judge(&flow);
        }
    }

    /// Notes what rules of other flows need.
    fn note(&mut self, flow: &Flow) {
        let key = flow.ends.map(|end| end.addr);
        if self.paths.contains_key(&key) || self.paths.len() < Self::MOST_PATHS {
            self.paths.entry(key).or_default().note(flow);
        }
        let server = flow.ends[1];
        if self.servers.contains_key(&server) || self.servers.len() < Self::MOST_PATHS {
            self.servers.entry(server).or_default().note(flow);
        }
    }

    fn judge(&mut self, flow: &Flow) {
        let path = self.paths.get(&flow.ends.map(|end| end.addr));
        let port = flow.ends[CLIENT].port;
        let is_alive = [0, 1].map(|side| {
            path.is_some_and(|path| path.is_alive(side, port, flow.heard[side].max(flow.first)))
        });
        let server = self.servers.get(&flow.ends[1]);
        let is_silent = |(from, until)| path.is_some_and(|path| path.is_silent(port, from, until));
        let unheeded = flow.unheeded_syns().filter(|time| !is_silent(*time));
        let around = Surroundings {
            end: self.latest,
            overflows: server.map_or(0, |it| it.overflows),
            is_full: unheeded.is_some_and(|time| server.is_some_and(|server| server.is_full(time))),
            is_alive,
            is_shared_silence: path.is_some_and(|path| path.is_shared(port)),
        };
        let found = judge(flow, &around);
        let mut summary = FlowReport::of(flow);
        for found in found {
            if !found.is_info {
                summary.time_lost = summary.time_lost.saturating_add(found.time);
            }
            if !summary.ids.contains(&found.id) {
                summary.ids.push(found.id);
            }
            self.add(flow.ends, found, 1);
        }
        self.flows.push(summary);
        if self.flows.len() >= 2 * Report::MOST_FLOWS {
            self.flows.sort_by_key(|flow| (std::cmp::Reverse(flow.time_lost), flow.first_frame));
            self.flows.truncate(Report::MOST_FLOWS);
        }
    }

    /// Adds a finding to those that are alike.
    fn add(&mut self, ends: [Endpoint; 2], found: Found, flows: u64) {
        let own = (found.id, found.kind, found.side, Some(ends[1]));
        let is_known = self.groups.contains_key(&own);
        let key = match is_known || self.groups.len() < Self::MOST_GROUPS {
            true => own,
            false => (found.id, found.kind, found.side, None),
        };
        let group = self.groups.entry(key).or_insert_with(|| Finding {
            id: found.id,
            kind: found.kind,
            confidence: found.confidence,
            is_info: true,
            ends,
            side: found.side,
            flows: 0,
            time_lost: 0,
            time_lost_most: 0,
            frames: Vec::new(),
            evidence: Vec::new(),
        });
        if group.is_info && !found.is_info {
            // The first flow that it costs something is the example.
            (group.is_info, group.ends) = (false, ends);
            group.frames.clear();
        }
        group.flows += flows;
        group.time_lost = group.time_lost.saturating_add(found.time);
        group.time_lost_most = group.time_lost_most.max(found.time);
        group.confidence = group.confidence.max(found.confidence);
        for frame in found.frames {
            if group.frames.len() < Finding::MOST_FRAMES && !group.frames.contains(&frame) {
                group.frames.push(frame);
            }
        }
    }

    /// Most flows that are followed at a time: of these, the one silent for longest is judged early.
    pub const MOST_FLOWS: usize = 50_000;
    /// Most memory of these, bytes; all else takes a quarter of it at most.
    const MOST_BYTES: usize = 160 << 20;
    /// Most pairs of hosts, and most findings to different servers, that are told apart.
    const MOST_PATHS: usize = 10_000;
    const MOST_GROUPS: usize = 1_000;
}
