//! Handles of sockets.

/// Identifies a socket. The handle of a closed socket is stale, even after its place was reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UdpHandle {
    pub(crate) generation: u16,
    pub(crate) index: u32,
}

impl UdpHandle {
    /// Returns a small number, unique among the sockets that exist at a time, for use in tables.
    pub const fn index(self) -> u32 {
        self.index
    }
}
