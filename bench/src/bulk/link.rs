//! What lies between the two hosts: frames in buffers that are used again and again, a burst at a time.

/// What a frame may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Link {
    /// Packets of up to so many bytes, checksums computed and verified.
    Mtu(u16),
    /// An MTU of 1,500 behind a device that cuts what it is given, and joins what comes: packets of 64 KiB,
    /// no checksums. Of smoltcp, which does not cut, an MTU of 65,535 without checksums.
    Super,
}

impl Link {
    pub(super) const ALL: [Self; 4] =
        [Self::Mtu(1_500), Self::Mtu(9_000), Self::Mtu(65_535), Self::Super];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mtu(1_500) => "1500",
            Self::Mtu(9_000) => "9000",
            Self::Mtu(_) => "65535",
            Self::Super => "super",
        }
    }

    /// The largest frame, bytes.
    pub(super) const fn frame(self) -> usize {
        match self {
            Self::Mtu(mtu) => mtu as usize,
            Self::Super => 65_535,
        }
    }

    /// Whether checksums are computed and verified.
    pub(super) const fn has_checksums(self) -> bool {
        matches!(self, Self::Mtu(_))
    }
}

/// A burst is over once it has so many frames.
pub(super) const BURST_FRAMES: usize = 64;
/// A burst is over once it has so many bytes.
pub(super) const BURST_OCTETS: usize = 128 << 10;
