//! The course of a direction: how much had been sent at times all over it.

use crate::segment::Segment;

/// Times, and the bytes sent before them: all over the direction, ever farther apart.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pace {
    points: Vec<(u64, u64)>,
    /// New segments from one point to the next is 2 to this power.
    spread: u8,
    segments: u64,
}

impl Pace {
    /// Handles new text, before which `bytes` had been sent.
    pub(super) fn on_new(&mut self, segment: &Segment, bytes: u64) {
        self.segments += 1;
        if !self.segments.is_multiple_of(16 << self.spread) {
            return;
        }
        if self.points.len() >= Self::MOST {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.spread += 1;
        }
        self.points.push((segment.at, bytes));
    }

    /// Times in order, and the bytes sent before each.
    pub(crate) fn points(&self) -> &[(u64, u64)] {
        &self.points
    }

    /// Memory, bytes.
    pub(super) fn held(&self) -> usize {
        self.points.capacity() * size_of::<(u64, u64)>()
    }

    const MOST: usize = 256;
}
