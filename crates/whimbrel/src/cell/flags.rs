//! Flags of a stream, one bit each.

/// A set of flags.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Flags(u16);

impl Flags {
    /// The connection is or was established.
    pub(crate) const OPEN: Self = Self(1);
    /// The cell's handle is in the inward queue.
    pub(crate) const DIRTY: Self = Self(1 << 1);
    /// The stream was dropped.
    pub(crate) const DROPPED: Self = Self(1 << 2);
    /// No more data will be queued outward.
    pub(crate) const READ_END: Self = Self(1 << 3);
    /// The shard holds data back because the task has not read.
    pub(crate) const STARVED: Self = Self(1 << 4);
    /// The task shut its direction down.
    pub(crate) const SHUT: Self = Self(1 << 5);
    /// The shard knows of that shutdown.
    pub(crate) const SHUT_TOLD: Self = Self(1 << 6);
    /// The connection has ended.
    pub(crate) const OVER: Self = Self(1 << 7);
    /// A setting changed that the shard has not applied yet.
    pub(crate) const SETTINGS: Self = Self(1 << 8);
    /// The peer's FIN has arrived, and all its data is here.
    pub(crate) const FIN: Self = Self(1 << 9);

    /// Marks the stream dirty. Returns the handle to post, unless it is posted already. The shard
    /// clears [`Flags::DIRTY`] when it looks; `tests/interleavings.rs` tests all interleavings of both.
    #[must_use]
    pub(crate) fn mark_dirty<H>(&mut self, handle: Option<H>) -> Option<H> {
        let posts = handle.filter(|_| !self.has(Self::DIRTY))?;
        self.set(Self::DIRTY);
        Some(posts)
    }

    /// True if all bits of `flag` are set.
    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }

    /// Sets `flag`.
    pub(crate) const fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }

    /// Clears `flag`. Returns true if it was set.
    pub(crate) const fn take(&mut self, flag: Self) -> bool {
        let had = self.has(flag);
        self.0 &= !flag.0;
        had
    }
}
