//! The acknowledgments that arrive one after the other without a pause.

/// A train of acknowledgments. Each round trip begins one in slow start: a window that leaves in a burst is
/// spread by the slowest link of the path, and its acknowledgments arrive at the rate of that link, so that the
/// train is as long as the window takes there.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Train {
    /// When its first acknowledgment arrived, microseconds modulo 2^32.
    first: u32,
    /// When its last one arrived, microseconds modulo 2^32.
    last: u32,
    /// True if there was one.
    has_begun: bool,
}

impl Train {
    /// An acknowledgment arrives at `now`, microseconds modulo 2^32. If that is more than `gap` microseconds
    /// after the last, another train begins: returns the length of the one that ended, microseconds.
    #[inline]
    pub(super) fn on_ack(&mut self, now: u32, gap: u32) -> Option<u32> {
        let is_next = self.has_begun && now.wrapping_sub(self.last) <= gap;
        let ended = self.length();
        if !is_next {
            (self.first, self.has_begun) = (now, true);
        }
        self.last = now;
        (!is_next).then_some(ended)
    }

    /// The time from its first acknowledgment to its last, microseconds.
    pub(super) const fn length(&self) -> u32 {
        self.last.wrapping_sub(self.first)
    }
}

#[cfg(test)]
mod tests;
