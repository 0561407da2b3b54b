//! The result: findings of alike flows together, worst first, and the flows themselves.

use whimbrel_wire::Endpoint;

use crate::findings::{Confidence, is_seen_at};
use crate::flow::{CLIENT, Flow, SERVER};
use crate::id::Id;
use crate::shares::TimeShares;

/// Results of a capture.
#[derive(Clone, Default, Debug)]
#[non_exhaustive]
pub struct Report {
    /// Frames of the capture.
    pub frames: u64,
    /// TCP segments among them.
    pub segments: u64,
    /// Further segments, of which the capture has not the whole fixed header: they are left out.
    pub cut: u64,
    /// Connections, with attempts.
    pub flow_count: u64,
    /// Flows judged before the end, because there were too many.
    pub summed_up: u64,
    /// Time of the first and of the last frame, nanoseconds since 1970.
    pub first: u64,
    /// Time of the last frame.
    pub last: u64,
    /// Findings, the worst first; what costs nothing stands behind.
    pub findings: Vec<Finding>,
    /// Flows by time lost, at most [`Report::MOST_FLOWS`].
    pub flows: Vec<FlowReport>,
}

impl Report {
    /// Most flows that are listed.
    pub const MOST_FLOWS: usize = 1_000;

    /// Sorts the findings: the worst first.
    pub(crate) fn sort(&mut self) {
        let key = |it: &Finding| (it.is_info, std::cmp::Reverse((it.time_lost, it.flows)));
        self.findings.sort_by_key(key);
    }

    /// Findings that cost something.
    pub fn worst(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|it| !it.is_info)
    }
}

/// A cause, of one flow or of several to one server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// Its name, with cause and settings.
    pub id: Id,
    /// Variant of the cause, or empty.
    pub kind: &'static str,
    /// Confidence, of the surest flow.
    pub confidence: Confidence,
    /// True if it costs nothing worth naming.
    pub is_info: bool,
    /// The first flow's client and server.
    pub ends: [Endpoint; 2],
    /// The end at which to look: 0 the client, 1 the server.
    pub side: usize,
    /// Number of flows.
    pub flows: u64,
    /// Time that they lost, nanoseconds: the sum over all flows, which may exceed the time of the capture.
    pub time_lost: u64,
    /// Time that one of them lost at most, nanoseconds.
    pub time_lost_most: u64,
    /// Numbers of frames that show it, at most [`Finding::MOST_FRAMES`].
    pub frames: Vec<u64>,
    /// Facts of the hosts that confirm or refute it ([`Report::settle`]).
    pub evidence: Vec<String>,
}

impl Finding {
    /// The cause, in one sentence.
    pub fn cause(&self) -> &'static str {
        self.id.texts_of(self.kind).cause
    }

    /// An observation that would show the finding to be wrong.
    pub fn refuted_by(&self) -> &'static str {
        self.id.texts_of(self.kind).refuted_by
    }

    /// The change on Linux.
    pub fn linux(&self) -> &'static str {
        self.id.texts_of(self.kind).linux
    }

    /// The change on FreeBSD.
    pub fn freebsd(&self) -> &'static str {
        self.id.texts_of(self.kind).freebsd
    }

    /// Most frames that are named.
    pub const MOST_FRAMES: usize = 8;
}

/// The place of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At the client, or close to it.
    Client,
    /// At the server, or close to it.
    Server,
    /// Between them.
    Between,
    /// The handshake is missing, which would show it.
    Unknown,
}

impl Place {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Between => "between",
            Self::Unknown => "unknown",
        }
    }
}

/// A flow.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowReport {
    /// Client and server.
    pub ends: [Endpoint; 2],
    /// Number of its first frame.
    pub first_frame: u64,
    /// Time of its first and its last frame, nanoseconds since 1970.
    pub first: u64,
    /// Time of its last frame.
    pub last: u64,
    /// Bytes of text from the client, and from the server.
    pub text: [u64; 2],
    /// Segments sent again, in each direction.
    pub repeated: [u64; 2],
    /// Least round trip from text to its ACK, nanoseconds, if one was seen.
    pub rtt: [Option<u64>; 2],
    /// True if windows can be read: the scale is known.
    pub has_scale: bool,
    /// Place of the capture, by the handshake.
    pub place: Place,
    /// Time of each direction, by what it waited for.
    pub shares: [TimeShares; 2],
    /// True for a direction of which that is known: the capture was taken at its sender. Elsewhere the path's
    /// delay, its queue and the acknowledgments under way hide what the sender waited for.
    pub are_shares_known: [bool; 2],
    /// Names of its findings.
    pub ids: Vec<Id>,
    /// Time lost, nanoseconds.
    pub time_lost: u64,
}

impl FlowReport {
    pub(crate) fn of(flow: &Flow) -> Self {
        let halves = flow.halves.each_ref();
        let place = match flow.reach {
            [Some(_), Some(_)] if flow.is_near(CLIENT) => Place::Client,
            [Some(_), Some(_)] if flow.is_near(SERVER) => Place::Server,
            [Some(_), Some(_)] => Place::Between,
            _ => Place::Unknown,
        };
        Self {
            ends: flow.ends,
            first_frame: flow.first_frame,
            first: flow.first,
            last: flow.last,
            text: halves.map(|half| half.text),
            repeated: halves.map(|half| half.losses.repeated),
            rtt: halves.map(|half| (half.rtt.samples > 0).then_some(half.rtt.least)),
            has_scale: halves.iter().all(|half| half.edge_shift.is_some()),
            place,
            shares: halves.map(|half| half.shares_by_limit()),
            are_shares_known: [CLIENT, SERVER].map(|side| is_seen_at(flow, side, halves[side])),
            ids: Vec::new(),
            time_lost: 0,
        }
    }
}
