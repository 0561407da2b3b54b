//! The acknowledgments that arrive one after the other without a pause.

/// A train of acknowledgments. Each round trip begins one in slow start: a window that leaves in a burst is
/// spread by the slowest link of the path, and its acknowledgments arrive at the rate of that link, so that the
/// train is as long as the window takes there.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Train {
    /// When its last acknowledgment arrived, microseconds modulo 2^32; 0 before the first.
    last: u32,
    /// The time from its first acknowledgment to its last, microseconds.
    length: u32,
}

impl Train {
    /// An acknowledgment arrives at `now`, microseconds modulo 2^32. If that is more than `gap` microseconds
    /// after the last, another train begins: returns the length of the one that ended, microseconds.
    #[inline]
    pub(super) fn on_ack(&mut self, now: u32, gap: u32) -> Option<u32> {
        let since = now.wrapping_sub(self.last);
        self.last = now;
        if since <= gap {
            self.length = self.length.saturating_add(since);
            return None;
        }
        Some(core::mem::take(&mut self.length))
    }

    /// The time from its first acknowledgment to its last, microseconds.
    pub(super) const fn length(&self) -> u32 {
        self.length
    }
}

#[cfg(test)]
mod tests;
