//! Frames as a device lends them.

use bytes::Bytes;
use whimbrel_base::packet::SegMeta;

/// A frame that arrived, lent for the length of one [`Shard::rx`](crate::Shard::rx).
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The frame: from the IP header on, where the device is of [`Medium::Ip`](crate::Medium::Ip),
    /// else from the Ethernet header on.
    pub bytes: &'a [u8],
    /// Metadata from the device.
    pub meta: SegMeta,
    /// The chunk of the shard's [pool](crate::Shard::chunk_pool) that the frame lies in, alone: long text may
    /// stay there. `None`: in other memory, so that what is kept of it is copied.
    pub chunk: Option<&'a Bytes>,
}

impl<'a> RxFrame<'a> {
    /// A frame in one piece, lent and no more.
    pub const fn new(bytes: &'a [u8], meta: SegMeta) -> Self {
        Self { bytes, meta, chunk: None }
    }
}
