//! Frames as a device lends them.

use whimbrel_tcp::SegMeta;

/// A frame that arrived, lent for the length of one [`Shard::rx`](crate::Shard::rx).
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The frame: from the IP header on, where the device is of [`Medium::Ip`](crate::Medium::Ip),
    /// else from the Ethernet header on.
    pub octets: &'a [u8],
    /// What the device knows of it.
    pub meta: SegMeta,
}

impl<'a> RxFrame<'a> {
    /// A frame in one piece.
    pub const fn new(octets: &'a [u8], meta: SegMeta) -> Self {
        Self { octets, meta }
    }
}
