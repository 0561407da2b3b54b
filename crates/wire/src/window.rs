//! Sizes that a peer advertises: segment size, window, and window scale.

/// The largest segment payload that a host accepts, in bytes without options (RFC 9293 3.7.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct Mss(u16);

impl Mss {
    /// MSS of IPv4 without an option. RFC 9293 3.7.1, MUST-15: "If an MSS Option is not received at
    /// connection setup, TCP implementations MUST assume a default send MSS of 536 (576 - 40) for
    /// IPv4".
    pub const DEFAULT_V4: Self = Self(536);
    /// MSS of IPv6 without an option: 1220 (1280 - 60).
    pub const DEFAULT_V6: Self = Self(1220);

    /// Creates an MSS of `bytes` (0 ..= 65,535), as advertised. A sender clamps it to a reasonable
    /// minimum.
    #[inline]
    pub const fn new(bytes: u16) -> Self {
        Self(bytes)
    }

    /// Returns the size in bytes.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The window field of a header, in units of `1 << scale` bytes (RFC 7323 2.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct RawWindow(u16);

impl RawWindow {
    /// Creates a window field with this value, yet to be scaled.
    #[inline]
    pub const fn new(raw: u16) -> Self {
        Self(raw)
    }

    /// Returns the value of the field, yet to be scaled.
    #[inline]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the window in bytes. On a SYN the field is never scaled: use [`WindowScale::ZERO`].
    #[inline]
    pub const fn scaled(self, scale: WindowScale) -> WindowSize {
        WindowSize((self.0 as u32) << scale.0)
    }
}

/// A window in bytes: 0 ..= 1,073,725,440 (65,535 << 14).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct WindowSize(u32);

impl WindowSize {
    /// The largest window that a header can advertise (RFC 7323 2.3).
    pub const MAX: Self = Self(65_535 << 14);

    /// Creates a window of `bytes`, at most [`WindowSize::MAX`].
    #[inline]
    pub const fn new(bytes: u32) -> Self {
        Self(if bytes > Self::MAX.0 { Self::MAX.0 } else { bytes })
    }

    /// Returns the window in bytes.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the field for this window, rounded down to the unit.
    #[inline]
    pub const fn to_raw(self, scale: WindowScale) -> RawWindow {
        let units = self.0 >> scale.0;
        RawWindow(if units > 65_535 { 65_535 } else { units as u16 })
    }
}

/// The shift count of the window-scale option: 0 ..= 14.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct WindowScale(u8);

impl WindowScale {
    /// A shift of 0: windows are not scaled.
    pub const ZERO: Self = Self(0);
    /// The largest shift. RFC 7323 2.2: "The maximum scale exponent is limited to 14".
    pub const MAX: Self = Self(14);

    /// Creates a shift of `shift`. RFC 7323 2.3: "If a Window Scale option is received with a
    /// shift.cnt value larger than 14, the TCP SHOULD log the error but MUST use 14 instead".
    #[inline]
    pub const fn new(shift: u8) -> Self {
        Self(if shift > 14 { 14 } else { shift })
    }

    /// Returns the number of bits by which a window field is shifted (0 ..= 14).
    #[inline]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the least shift with which a window of `bytes` fits in 16 bits.
    pub const fn for_window(bytes: u32) -> Self {
        let bits = u32::BITS.saturating_sub(bytes.leading_zeros());
        let shift = bits.saturating_sub(u16::BITS);
        Self::new(shift as u8)
    }
}

#[cfg(test)]
mod tests;
