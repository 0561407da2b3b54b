//! One direction of the link between two hosts, as one pair of their shards has it.

use std::sync::Arc;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_base::packet::TxSegment;
use whimbrel_link::{Link, LinkConfig, LinkCounters, Waits, cut};

use crate::device::MAX_BURST;
use crate::mem::Line;

/// A link of one pair, or one pair's part of a shared link.
#[derive(Debug)]
pub(super) enum PairLink {
    Own(Box<Link>),
    Shared { line: Arc<Line>, queue: u16 },
}

impl PairLink {
    pub(super) fn own(link: LinkConfig, seed: u64) -> Self {
        Self::Own(Box::new(Link::new(link, seed)))
    }

    pub(super) fn shared(line: &Arc<Line>, queue: u16) -> Self {
        Self::Shared { line: Arc::clone(line), queue }
    }

    /// Puts segments on the link.
    pub(super) fn push(&mut self, now: Instant, segments: &[TxSegment]) {
        match self {
            Self::Own(link) => segments.iter().for_each(|segment| link.push(now, segment)),
            Self::Shared { line, .. } => {
                let mut packets = Vec::new();
                segments.iter().for_each(|segment| cut(segment, |packet| packets.push(packet)));
                if !packets.is_empty() {
                    line.push(now, packets.into_iter());
                }
            }
        }
    }

    /// Takes one burst of arrived frames.
    pub(super) fn pop(&mut self, now: Instant) -> Vec<Bytes> {
        match self {
            Self::Own(link) => {
                let mut packets = Vec::new();
                while packets.len() < MAX_BURST
                    && let Some(packet) = link.pop(now)
                {
                    packets.push(packet);
                }
                packets
            }
            Self::Shared { line, queue } => {
                let mut places = [const { Bytes::new() }; MAX_BURST];
                let taken = line.pop(now, *queue, &mut places);
                places.into_iter().take(taken).collect()
            }
        }
    }

    /// Returns the time of the next arrival, if a frame is under way.
    pub(super) fn next_arrival(&self) -> Option<Instant> {
        match self {
            Self::Own(link) => link.next_arrival(),
            Self::Shared { line, queue } => line.next_arrival(*queue),
        }
    }

    /// Measures how long frames that are sent from `from` on wait.
    pub(super) fn measure_waits(&mut self, from: Instant) {
        match self {
            Self::Own(link) => link.measure_waits(from),
            Self::Shared { line, queue: 0 } => line.measure_waits(from),
            Self::Shared { .. } => {}
        }
    }

    /// Returns the measured waits; of a shared link, the first pair has them.
    pub(super) fn waits(&self) -> Option<Waits> {
        match self {
            Self::Own(link) => link.waits().cloned(),
            Self::Shared { line, queue: 0 } => line.waits(),
            Self::Shared { .. } => None,
        }
    }

    /// Returns the link's counters; of a shared link, the first pair has them.
    pub(super) fn counters(&self) -> LinkCounters {
        match self {
            Self::Own(link) => *link.counters(),
            Self::Shared { line, queue: 0 } => line.counters(),
            Self::Shared { .. } => LinkCounters::default(),
        }
    }
}
