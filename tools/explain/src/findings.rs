//! The rules: each looks at one flow's model, and sees what its documentation says.

use crate::flow::Flow;
use crate::half::{Half, MS};
use crate::id::Id;

pub(crate) mod capture;
pub(crate) mod endings;
pub(crate) mod losses;
pub(crate) mod opening;
pub(crate) mod windows;

/// Confidence of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Confidence {
    /// Other causes look alike.
    Low,
    /// The signs are typical.
    Medium,
    /// Nothing else is known to show these signs.
    High,
}

impl Confidence {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// One step less.
    pub(crate) const fn lower(self) -> Self {
        match self {
            Self::High => Self::Medium,
            Self::Medium | Self::Low => Self::Low,
        }
    }
}

/// A finding in one flow.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) id: Id,
    /// Variant of the cause, or empty.
    pub(crate) kind: &'static str,
    /// The side at which to look: 0 the client, 1 the server.
    pub(crate) side: usize,
    pub(crate) confidence: Confidence,
    /// True if it costs nothing worth naming.
    pub(crate) is_info: bool,
    /// Time lost, nanoseconds.
    pub(crate) time: u64,
    pub(crate) frames: Vec<u64>,
}

impl Found {
    pub(crate) fn new(id: Id, side: usize, frame: u64) -> Self {
        Self {
            id,
            kind: "",
            side,
            confidence: Confidence::High,
            is_info: false,
            time: 0,
            frames: vec![frame],
        }
    }

    pub(crate) fn kind(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn confidence(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    /// Sets the time lost. It is worth naming if it is 200 ms and a tenth of the flow's life.
    pub(crate) fn costs(self, time: u64, flow: &Flow) -> Self {
        let life = flow.last.saturating_sub(flow.first);
        Self { time, is_info: time < 200 * MS || time < life / 10, ..self }
    }

    pub(crate) fn info(self) -> Self {
        Self { is_info: true, ..self }
    }
}

/// Facts of other flows, for the rules that need them.
pub(crate) struct Surroundings {
    /// Time of the capture's last frame.
    pub(crate) end: u64,
    /// Connections to this server whose SYN-ACK came again after the ACK.
    pub(crate) overflows: u32,
    /// True if SYNs to it were repeated on several connections at once, while the path carried text.
    pub(crate) is_full: bool,
    /// True if a side has sent on another connection of these hosts, after the flow fell silent.
    pub(crate) is_alive: [bool; 2],
    /// True if another connection of these hosts was silent at the same time.
    pub(crate) is_shared_silence: bool,
}

/// Judges a flow by all rules.
pub(crate) fn judge(flow: &Flow, around: &Surroundings) -> Vec<Found> {
    let mut found = Vec::new();
    opening::judge(flow, around, &mut found);
    endings::judge(flow, around, &mut found);
    losses::judge(flow, around, &mut found);
    windows::judge(flow, &mut found);
    capture::judge(flow, &mut found);
    found
}

/// True if one of these was found.
pub(crate) fn has(found: &[Found], ids: &[Id]) -> bool {
    found.iter().any(|it| ids.contains(&it.id))
}

/// True if what this side's sender does is seen without the path's delay: near it, or if the place is
/// unknown and round trips are long.
pub(crate) fn is_seen_at(flow: &Flow, side: usize, half: &Half) -> bool {
    let is_near = flow.is_near(side) || flow.reach == [None; 2] && half.rtt.least > MS;
    is_near && !flow.is_of_two_places()
}
