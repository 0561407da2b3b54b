//! Streams of a transfer that need work, because they had an event. A look at each of a hundred
//! streams for each packet took more time than all other work on the packet.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::mem;

use whimbrel_base::Instant;

/// Streams by index: the connection of each, those to work on now, and those to work on when their
/// rate allows.
#[derive(Default, Debug)]
pub(super) struct DueStreams {
    /// Index of the stream at each place of the transport.
    at_place: Vec<Option<usize>>,
    now: Vec<usize>,
    later: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Marks of each stream, by its index.
    marks: Vec<Marks>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Marks {
    is_now: bool,
    is_later: bool,
}

impl DueStreams {
    /// Notes that the stream at `index` has the connection at `place`.
    pub(super) fn join(&mut self, place: u32, index: usize) {
        let place = place as usize;
        self.at_place.resize(self.at_place.len().max(place + 1), None);
        if let Some(joined) = self.at_place.get_mut(place) {
            *joined = Some(index);
        }
        self.marks.resize(self.marks.len().max(index + 1), Marks::default());
    }

    /// The stream that was joined last with that place.
    pub(super) fn at_place(&self, place: u32) -> Option<usize> {
        self.at_place.get(place as usize).copied().flatten()
    }

    /// Marks the stream at `index` for work now.
    pub(super) fn mark(&mut self, index: usize) {
        if let Some(marks) = self.marks.get_mut(index)
            && !mem::replace(&mut marks.is_now, true)
        {
            self.now.push(index);
        }
    }

    /// Marks every stream for work now.
    pub(super) fn mark_all(&mut self) {
        (0..self.marks.len()).for_each(|index| self.mark(index));
    }

    /// Marks the stream at `index` for work at `time`.
    pub(super) fn mark_later(&mut self, index: usize, time: Instant) {
        if let Some(marks) = self.marks.get_mut(index)
            && !mem::replace(&mut marks.is_later, true)
        {
            self.later.push(Reverse((time, index)));
        }
    }

    /// Earliest time of a stream that waits for its rate.
    pub(super) fn next_time(&self) -> Option<Instant> {
        self.later.peek().map(|Reverse((time, _))| *time)
    }

    /// Takes the streams due at `now`, in order, and clears their marks.
    pub(super) fn take(&mut self, now: Instant) -> Vec<usize> {
        while let Some(Reverse((_, index))) = self.later.peek().copied().filter(|it| it.0.0 <= now)
        {
            self.later.pop();
            if let Some(marks) = self.marks.get_mut(index) {
                marks.is_later = false;
            }
            self.mark(index);
        }
        let mut due = mem::take(&mut self.now);
        due.sort_unstable();
        for index in &due {
            if let Some(marks) = self.marks.get_mut(*index) {
                marks.is_now = false;
            }
        }
        due
    }
}

#[cfg(test)]
mod tests;
