//! Names that an application keeps: an index, and a generation that makes a stale one harmless.

/// Names a connection of one shard. A handle whose connection is gone names nothing, even after
/// its place was taken by another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle {
    pub(crate) generation: u16,
    pub(crate) index: u32,
}

impl Handle {
    /// A small number, unique among the shard's connections at any one time: for tables.
    pub const fn index(self) -> u32 {
        self.index
    }
}

const _: () = assert!(size_of::<Handle>() == 8);
