//! Facts about a stream, one bit each.

/// A set of facts.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Flags(u16);

impl Flags {
    /// The connection is established, or was.
    pub(crate) const OPEN: Self = Self(1);
    /// The cell's handle stands in the inward queue.
    pub(crate) const DIRTY: Self = Self(1 << 1);
    /// The stream's owner let go.
    pub(crate) const DROPPED: Self = Self(1 << 2);
    /// No octet will be added to those that cross outward.
    pub(crate) const READ_END: Self = Self(1 << 3);
    /// The shard holds text back, because the task has not read.
    pub(crate) const STARVED: Self = Self(1 << 4);
    /// The task shut its direction down.
    pub(crate) const SHUT: Self = Self(1 << 5);
    /// The shard was told so.
    pub(crate) const SHUT_TOLD: Self = Self(1 << 6);
    /// The connection is over.
    pub(crate) const OVER: Self = Self(1 << 7);
    /// A setting changed that the shard has not applied yet.
    pub(crate) const SETTINGS: Self = Self(1 << 8);
    /// The peer ended its direction, and all of it is here.
    pub(crate) const FIN: Self = Self(1 << 9);

    /// The shard is to look at the stream that it knows by `handle`: whether that must be posted. It
    /// is once, until the shard takes [`Flags::DIRTY`] out; `tests/interleavings.rs` tries all
    /// interleavings of both.
    #[must_use]
    pub(crate) fn mark_dirty<H>(&mut self, handle: Option<H>) -> Option<H> {
        let posts = handle.filter(|_| !self.has(Self::DIRTY))?;
        self.set(Self::DIRTY);
        Some(posts)
    }

    /// Whether all of `flag` is in.
    pub(crate) const fn has(self, flag: Self) -> bool {
        self.0 & flag.0 == flag.0
    }

    /// Sets `flag`, and leaves the others.
    pub(crate) const fn set(&mut self, flag: Self) {
        self.0 |= flag.0;
    }

    /// Takes `flag` out. Returns whether it was in.
    pub(crate) const fn take(&mut self, flag: Self) -> bool {
        let had = self.has(flag);
        self.0 &= !flag.0;
        had
    }
}
