//! Sequence numbers: a circle of 2^32, on which "before" is a relation and not an order.
//!
//! RFC 9293 3.4: "all arithmetic dealing with sequence numbers must be performed modulo 2^32".
//! The comparison is the one of RFC 1982. It is not transitive, so [`SeqNum`] has no `Ord`; every
//! operator wraps and none can panic.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A TCP sequence number (RFC 9293 3.4): the number of one byte (or SYN, or FIN) of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(transparent)]
pub struct SeqNum(u32);

impl SeqNum {
    /// The sequence number `raw`.
    #[inline]
    pub const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// Returns the number as on the wire.
    #[inline]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Returns the distance of `self` ahead of `other`, negative if it is behind: in -2^31 ..=
    /// 2^31-1.
    ///
    /// At a distance of exactly 2^31 the order is undefined (RFC 1982 3.2); this returns -2^31 from
    /// both sides.
    #[inline]
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    /// Returns the bytes from `start` up to `self`, counted upward: in 0 ..= 2^32-1.
    #[inline]
    pub const fn offset_from(self, start: Self) -> u32 {
        self.0.wrapping_sub(start.0)
    }

    /// True if `self < other` on the circle.
    #[inline]
    pub const fn before(self, other: Self) -> bool {
        self.distance_from(other) < 0
    }

    /// True if `self =< other` on the circle.
    #[inline]
    pub const fn at_or_before(self, other: Self) -> bool {
        self.distance_from(other) <= 0
    }

    /// True if `self > other` on the circle.
    #[inline]
    pub const fn after(self, other: Self) -> bool {
        self.distance_from(other) > 0
    }

    /// True if `self >= other` on the circle.
    #[inline]
    pub const fn at_or_after(self, other: Self) -> bool {
        self.distance_from(other) >= 0
    }

    /// True if `start =< self < start + len`: the byte lies in a window of up to 2^32-1 bytes.
    #[inline]
    pub const fn in_window(self, start: Self, len: u32) -> bool {
        self.offset_from(start) < len
    }

    /// Returns the later of two numbers less than 2^31 apart.
    #[inline]
    #[must_use]
    pub const fn later(self, other: Self) -> Self {
        if self.after(other) { self } else { other }
    }

    /// Returns the earlier of two numbers less than 2^31 apart.
    #[inline]
    #[must_use]
    pub const fn earlier(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }
}

impl Add<u32> for SeqNum {
    type Output = Self;
    #[inline]
    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SeqNum {
    #[inline]
    fn add_assign(&mut self, bytes: u32) {
        self.0 = self.0.wrapping_add(bytes);
    }
}

impl Sub<u32> for SeqNum {
    type Output = Self;
    #[inline]
    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

impl fmt::Debug for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests;
