//! Link between the two hosts: frames in reused buffers, a burst at a time.

/// Limits of a frame.
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

    /// Frames of a burst: no more than 128 KiB of the largest, which is what our devices take at a time.
    pub(super) const fn burst(self) -> usize {
        let frames = BURST_BYTES / self.frame();
        if frames < BURST_FRAMES { frames } else { BURST_FRAMES }
    }

    /// True if checksums are computed and verified.
    pub(super) const fn has_checksums(self) -> bool {
        matches!(self, Self::Mtu(_))
    }
}

/// Frames of a burst, at most.
const BURST_FRAMES: usize = 64;
/// Bytes of a burst, at most.
const BURST_BYTES: usize = 128 << 10;
