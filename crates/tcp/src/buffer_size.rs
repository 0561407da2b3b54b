//! The size that a buffer is asked to have, and its meaning by the rules in force.

use crate::Tunables;
use crate::tunables::{BufferPolicy, ReceiveWindow};

/// The size of a send or receive buffer, bytes of text.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum BufferSize {
    /// The tunable's (`buffers.send`, `buffers.recv`) at first, and as much more as the path needs, up
    /// to `buffers.send.max` or `buffers.recv.max`.
    #[default]
    Auto,
    /// So many, and what that means is for the tunable `buffers` to say: a floor, unless that is
    /// otherwise (`SO_SNDBUF`, `SO_RCVBUF`).
    Asked(u32),
    /// At least so many, and as much more as the path needs.
    Floor(u32),
    /// So many, whatever the path needs.
    Exact(u32),
}

impl From<u32> for BufferSize {
    fn from(bytes: u32) -> Self {
        Self::Asked(bytes)
    }
}

impl BufferSize {
    /// The size that was asked for, bytes, if any was.
    pub const fn bytes(self) -> Option<u32> {
        match self {
            Self::Auto => None,
            Self::Asked(bytes) | Self::Floor(bytes) | Self::Exact(bytes) => Some(bytes),
        }
    }

    /// The sizes that the receive buffer of a socket may have; `pipe` is what the route says of it, 0 if
    /// nothing.
    pub fn recv_range(self, pipe: u32, tunables: &Tunables) -> SizeRange {
        let (usual, most) = (tunables.recv_buffer, tunables.recv_buffer_max);
        self.range(pipe, tunables, usual, if tunables.recv_auto { most } else { 0 })
    }

    /// The sizes that a send buffer may have.
    pub fn send_range(self, pipe: u32, tunables: &Tunables) -> SizeRange {
        let (usual, most) = (tunables.send_buffer, tunables.send_buffer_max);
        self.range(pipe, tunables, usual, if tunables.send_auto { most } else { 0 })
    }

    /// The window that the scale is chosen for, bytes: the largest that the buffer may come to have,
    /// also if the application asked for less now. Where a size that is asked for is exact the scale
    /// follows that, but for FreeBSD.
    pub fn scale_limit(self, tunables: &Tunables) -> u32 {
        let follows = tunables.buffers != BufferPolicy::Floor
            && tunables.recv_window == ReceiveWindow::Rfc9293;
        match self.bytes() {
            Some(bytes) if follows => bytes,
            bytes => bytes.unwrap_or(tunables.recv_buffer).max(tunables.recv_buffer_max),
        }
    }

    fn range(self, pipe: u32, tunables: &Tunables, usual: u32, most: u32) -> SizeRange {
        let replaces = tunables.buffers == BufferPolicy::Route && pipe > 0;
        match self {
            _ if replaces => SizeRange::exactly(pipe),
            Self::Asked(bytes) if tunables.buffers != BufferPolicy::Floor => {
                SizeRange::exactly(bytes)
            }
            Self::Exact(bytes) => SizeRange::exactly(bytes),
            Self::Auto => SizeRange::from(usual.max(pipe), most),
            Self::Asked(bytes) | Self::Floor(bytes) => SizeRange::from(bytes.max(pipe), most),
        }
    }
}

/// The least and the greatest size of a buffer, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeRange {
    /// The size that it has at least.
    pub floor: u32,
    /// The size that it never exceeds; no less than the floor.
    pub most: u32,
}

impl SizeRange {
    const fn exactly(bytes: u32) -> Self {
        Self { floor: bytes, most: bytes }
    }

    fn from(floor: u32, most: u32) -> Self {
        Self { floor, most: most.max(floor) }
    }
}
