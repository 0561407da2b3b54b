//! How large a buffer is asked to be, and what that means by the rules in force.

use crate::Tunables;
use crate::tunables::{BufferPolicy, ReceiveWindow};

/// The size of a send or receive buffer, octets of text.
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
    fn from(octets: u32) -> Self {
        Self::Asked(octets)
    }
}

impl BufferSize {
    /// What was asked for, octets, if anything was.
    pub const fn octets(self) -> Option<u32> {
        match self {
            Self::Auto => None,
            Self::Asked(octets) | Self::Floor(octets) | Self::Exact(octets) => Some(octets),
        }
    }

    /// What the receive buffer of a socket may come to be; `pipe` is what the route says of it, 0 if
    /// nothing.
    pub fn recv_range(self, pipe: u32, tunables: &Tunables) -> SizeRange {
        let (usual, most) = (tunables.recv_buffer, tunables.recv_buffer_max);
        self.range(pipe, tunables, usual, if tunables.recv_auto { most } else { 0 })
    }

    /// The same of a send buffer.
    pub fn send_range(self, pipe: u32, tunables: &Tunables) -> SizeRange {
        let (usual, most) = (tunables.send_buffer, tunables.send_buffer_max);
        self.range(pipe, tunables, usual, if tunables.send_auto { most } else { 0 })
    }

    /// The window that the scale is chosen for, octets: the largest that the buffer may come to have,
    /// also if the application asked for less now. Where a size that is asked for is exact the scale
    /// follows that, but for FreeBSD.
    pub fn scale_limit(self, tunables: &Tunables) -> u32 {
        let follows = tunables.buffers != BufferPolicy::Floor
            && tunables.recv_window == ReceiveWindow::Rfc9293;
        match self.octets() {
            Some(octets) if follows => octets,
            octets => octets.unwrap_or(tunables.recv_buffer).max(tunables.recv_buffer_max),
        }
    }

    fn range(self, pipe: u32, tunables: &Tunables, usual: u32, most: u32) -> SizeRange {
        let replaces = tunables.buffers == BufferPolicy::Route && pipe > 0;
        match self {
            _ if replaces => SizeRange::exactly(pipe),
            Self::Asked(octets) if tunables.buffers != BufferPolicy::Floor => {
                SizeRange::exactly(octets)
            }
            Self::Exact(octets) => SizeRange::exactly(octets),
            Self::Auto => SizeRange::from(usual.max(pipe), most),
            Self::Asked(octets) | Self::Floor(octets) => SizeRange::from(octets.max(pipe), most),
        }
    }
}

/// How large a buffer is at least, and may become, octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeRange {
    /// What it has whatever the path needs.
    pub floor: u32,
    /// What it never exceeds; no less than the floor.
    pub most: u32,
}

impl SizeRange {
    const fn exactly(octets: u32) -> Self {
        Self { floor: octets, most: octets }
    }

    fn from(floor: u32, most: u32) -> Self {
        Self { floor, most: most.max(floor) }
    }
}
