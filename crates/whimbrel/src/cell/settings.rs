//! Socket options of a stream, or of a socket that becomes one.

use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use whimbrel_tcp::Tunables;
use whimbrel_tcp::cc::Algorithm;
use whimbrel_tcp::conn::{AckTiming, BufferSize, KeepAlive, Nagle, SocketOptions, SocketOverrides};
use whimbrel_wire::TrafficClass;

use crate::fault;

/// Settings of a stream, 14 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    /// Size of the send buffer.
    send_size: Size,
    /// Size of the receive buffer.
    recv_size: Size,
    /// `SO_LINGER`, seconds; [`Settings::NO_LINGER`] if off.
    linger: u16,
    /// Time to live, or hop limit.
    hop_limit: u8,
    /// Type of service of IPv4 packets.
    tos: TrafficClass,
    /// Traffic class of IPv6 packets.
    traffic_class: TrafficClass,
    /// Switches in the lower half; in the upper half the congestion control, if it is known.
    switches: u8,
}

/// A buffer's size minus one in bytes, and its meaning in the two remaining bits. It is split in halves
/// because a `u32` would align the settings to four bytes and make the cell larger than two cache
/// lines. Unless requested, the size is the stack's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Size([u16; 2]);

impl Size {
    const MEANING: u32 = 30;

    fn new(size: BufferSize, usual: u32) -> Self {
        let (meaning, bytes) = match size {
            BufferSize::Auto => (0, usual),
            BufferSize::Asked(bytes) => (1, bytes),
            BufferSize::Floor(bytes) => (2, bytes),
            BufferSize::Exact(bytes) => (3, bytes),
        };
        let bytes = bytes.clamp(*Settings::SIZES.start(), *Settings::SIZES.end());
        let both = meaning << Self::MEANING | (bytes - 1);
        Self([(both >> 16) as u16, both as u16])
    }

    fn size(self) -> BufferSize {
        let bytes = self.bytes();
        match self.0[0] >> (Self::MEANING - 16) {
            0 => BufferSize::Auto,
            1 => BufferSize::Asked(bytes),
            2 => BufferSize::Floor(bytes),
            _ => BufferSize::Exact(bytes),
        }
    }

    const fn bytes(self) -> u32 {
        let both = (self.0[0] as u32) << 16 | self.0[1] as u32;
        (both & ((1 << Self::MEANING) - 1)) + 1
    }
}

impl Settings {
    const NO_LINGER: u16 = u16::MAX;
    const NO_DELAY: u8 = 1;
    const KEEP_ALIVE: u8 = 1 << 1;
    /// The hop limit differs from the stack's default.
    const HOP_LIMIT: u8 = 1 << 2;
    /// Data is acknowledged at once.
    const QUICK_ACK: u8 = 1 << 3;
    /// Shift of the congestion control's number plus one.
    const CONGESTION: u32 = 4;
    /// Limit of congestion controls.
    pub(crate) const CONGESTION_CONTROLS: u8 = u8::MAX >> Self::CONGESTION;

    /// Returns the defaults of a stack with these tunables.
    pub(crate) fn new(tunables: &Tunables) -> Self {
        Self {
            send_size: Size::new(BufferSize::Auto, tunables.send_buffer),
            recv_size: Size::new(BufferSize::Auto, tunables.recv_buffer),
            linger: Self::NO_LINGER,
            hop_limit: tunables.hop_limit,
            tos: TrafficClass::default(),
            traffic_class: TrafficClass::default(),
            switches: 0,
        }
    }

    /// Returns the settings and the limit of the rate in the shard's form.
    pub(crate) fn options(&self, max_pacing_rate: Option<NonZeroU64>) -> SocketOptions {
        let hop_limit = self.has(Self::HOP_LIMIT).then_some(self.hop_limit);
        let acks = if self.quickack() { AckTiming::AtOnce } else { AckTiming::Delayed };
        SocketOptions {
            nagle: if self.nodelay() { Nagle::Off } else { Nagle::On },
            keep_alive: if self.keepalive() { KeepAlive::On } else { KeepAlive::Off },
            send_size: self.send_size.size(),
            recv_size: self.recv_size.size(),
            congestion_control: self.congestion_control(),
            overrides: SocketOverrides {
                ttl: hop_limit,
                hop_limit,
                tos: self.tos,
                traffic_class: self.traffic_class,
                acks,
                max_pacing_rate,
                ..SocketOverrides::default()
            },
            ..SocketOptions::default()
        }
    }

    /// True if Nagle's algorithm is off.
    pub(crate) const fn nodelay(&self) -> bool {
        self.has(Self::NO_DELAY)
    }

    /// Switches Nagle's algorithm off or on.
    pub(crate) const fn set_nodelay(&mut self, off: bool) {
        self.switch(Self::NO_DELAY, off);
    }

    /// True if data is acknowledged at once.
    pub(crate) const fn quickack(&self) -> bool {
        self.has(Self::QUICK_ACK)
    }

    /// Acknowledges data at once, or delayed.
    pub(crate) const fn set_quickack(&mut self, at_once: bool) {
        self.switch(Self::QUICK_ACK, at_once);
    }

    /// True if idle connections are probed.
    pub(crate) const fn keepalive(&self) -> bool {
        self.has(Self::KEEP_ALIVE)
    }

    /// Switches probes of idle connections on or off.
    pub(crate) const fn set_keepalive(&mut self, on: bool) {
        self.switch(Self::KEEP_ALIVE, on);
    }

    /// Returns the linger time.
    pub(crate) fn linger(&self) -> Option<Duration> {
        (self.linger != Self::NO_LINGER).then(|| Duration::from_secs(self.linger.into()))
    }

    /// Sets the linger time, rounded up to whole seconds, at most 65,534. Only 0 has an effect: it
    /// resets.
    pub(crate) fn set_linger(&mut self, linger: Option<Duration>) {
        self.linger = linger.map_or(Self::NO_LINGER, |linger| {
            let seconds = linger.as_secs() + u64::from(linger.subsec_nanos() > 0);
            u16::try_from(seconds).unwrap_or(u16::MAX).min(Self::NO_LINGER - 1)
        });
    }

    /// Returns the size of the send buffer in bytes.
    pub(crate) const fn send_size(&self) -> u32 {
        self.send_size.bytes()
    }

    /// Sets the size of the send buffer, clamped to [`Settings::SIZES`] as on Linux. `Auto` keeps the
    /// current size but no longer requests it.
    pub(crate) fn set_send_size(&mut self, size: impl Into<BufferSize>) {
        self.send_size = Size::new(size.into(), self.send_size());
    }

    /// Returns the size of the receive buffer in bytes.
    pub(crate) const fn recv_size(&self) -> u32 {
        self.recv_size.bytes()
    }

    /// Sets the size of the receive buffer, clamped to [`Settings::SIZES`] as on Linux. `Auto` keeps
    /// the current size but no longer requests it.
    pub(crate) fn set_recv_size(&mut self, size: impl Into<BufferSize>) {
        self.recv_size = Size::new(size.into(), self.recv_size());
    }

    /// Returns the time to live or hop limit.
    pub(crate) const fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Sets the time to live or hop limit.
    pub(crate) const fn set_hop_limit(&mut self, hops: u8) {
        self.hop_limit = hops;
        self.switches |= Self::HOP_LIMIT;
    }

    /// Returns the type of service of IPv4 packets.
    pub(crate) const fn tos(&self) -> u8 {
        self.tos.0
    }

    /// Sets the type of service of IPv4 packets, except the two bits for ECN, which TCP sets; as on
    /// Linux.
    pub(crate) const fn set_tos(&mut self, tos: u8) {
        self.tos = TrafficClass(tos & NOT_ECN);
    }

    /// Returns the traffic class of IPv6 packets.
    pub(crate) const fn traffic_class(&self) -> u8 {
        self.traffic_class.0
    }

    /// Sets the traffic class of IPv6 packets, except the two bits for ECN.
    pub(crate) const fn set_traffic_class(&mut self, class: u8) {
        self.traffic_class = TrafficClass(class & NOT_ECN);
    }

    /// Returns the congestion control, if one was requested or the connection exists.
    pub(crate) fn congestion_control(&self) -> Option<Algorithm> {
        (self.switches >> Self::CONGESTION).checked_sub(1).map(Algorithm::of_number)
    }

    /// Sets the congestion control, one of the first [`Settings::CONGESTION_CONTROLS`].
    pub(crate) fn set_congestion_control(&mut self, algorithm: Algorithm) {
        let switches = self.switches & ((1 << Self::CONGESTION) - 1);
        self.switches = switches | (algorithm.number() + 1) << Self::CONGESTION;
    }

    const fn has(&self, switch: u8) -> bool {
        self.switches & switch != 0
    }

    const fn switch(&mut self, switch: u8, on: bool) {
        if on {
            self.switches |= switch;
        } else {
            self.switches &= !switch;
        }
    }

    /// Range of the tunables `buffers.send` and `buffers.recv`.
    const SIZES: std::ops::RangeInclusive<u32> = 2 << 10..=1 << 30;
}

/// Returns the limit that an application gives in bytes per second; `u64::MAX` is none.
pub(crate) fn rate_limit(rate: u64) -> io::Result<Option<NonZeroU64>> {
    let rate = NonZeroU64::new(rate).ok_or_else(fault::pacing_rate)?;
    Ok(Some(rate).filter(|rate| *rate != NonZeroU64::MAX))
}

/// Returns the limit as an application reads it.
pub(crate) fn rate_of(limit: Option<NonZeroU64>) -> u64 {
    limit.map_or(u64::MAX, NonZeroU64::get)
}

/// RFC 3168 5: the two low bits.
const NOT_ECN: u8 = 0xfc;

#[cfg(test)]
mod tests;
