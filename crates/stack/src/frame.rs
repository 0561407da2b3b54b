//! Frames as a device lends them.

use bytes::Bytes;
use whimbrel_tcp::SegMeta;

/// A frame that arrived, lent for the length of one [`Shard::rx`](crate::Shard::rx).
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The headers, and the text too if `shared` is empty. Begins with the IP header on a device
    /// of [`Medium::Ip`](crate::Medium::Ip), with the Ethernet header on one of
    /// [`Medium::Ethernet`](crate::Medium::Ethernet).
    pub head: &'a [u8],
    /// The text in reference-counted memory, following `head`. Empty where the device owns one
    /// contiguous piece.
    pub shared: &'a [Bytes],
    /// What the device knows of it.
    pub meta: SegMeta,
}

impl<'a> RxFrame<'a> {
    /// A frame in one piece.
    pub const fn new(octets: &'a [u8], meta: SegMeta) -> Self {
        Self { head: octets, shared: &[], meta }
    }
}
