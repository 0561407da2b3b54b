//! Direction of bytes in a transfer, and in iperf3's protocol.

/// Direction of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// This side sends, and the other reads.
    Send,
    /// This side reads, and the other sends.
    Receive,
    /// Each stream carries bytes both ways at once.
    Both,
}

impl Direction {
    pub(crate) const fn sends(self) -> bool {
        matches!(self, Self::Send | Self::Both)
    }

    pub(crate) const fn receives(self) -> bool {
        matches!(self, Self::Receive | Self::Both)
    }
}
