//! What an application sets on a stream, or on a socket before it is one.

use std::time::Duration;

use whimbrel_stack::{Handle, Shard};
use whimbrel_tcp::Tunables;
use whimbrel_tcp::cc::Algorithm;
use whimbrel_tcp::conn::{AckTiming, BufferSize, KeepAlive, Nagle, SocketOptions, SocketOverrides};
use whimbrel_wire::TrafficClass;

/// Settings of a stream, 14 octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    /// The size of the send buffer.
    send_size: Size,
    /// The size of the receive buffer.
    recv_size: Size,
    /// `SO_LINGER`, seconds; [`Settings::NO_LINGER`] if off.
    linger: u16,
    /// Time to live, or hop limit.
    hop_limit: u8,
    /// Type of service (IPv4).
    tos: TrafficClass,
    /// Traffic class of the packets of IPv6.
    traffic_class: TrafficClass,
    /// What is switched on, and in the upper half the congestion control, if that is known.
    switches: u8,
}

/// A buffer's size in halves, as a whole number would align the settings to four octets, and the cell
/// would be larger than two cache lines: the octets but one, and in the two bits that are left what they
/// mean. Where nothing was asked for they are the stack's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Size([u16; 2]);

impl Size {
    const MEANING: u32 = 30;

    fn new(size: BufferSize, usual: u32) -> Self {
        let (meaning, octets) = match size {
            BufferSize::Auto => (0, usual),
            BufferSize::Asked(octets) => (1, octets),
            BufferSize::Floor(octets) => (2, octets),
            BufferSize::Exact(octets) => (3, octets),
        };
        let octets = octets.clamp(*Settings::SIZES.start(), *Settings::SIZES.end());
        let both = meaning << Self::MEANING | (octets - 1);
        Self([(both >> 16) as u16, both as u16])
    }

    fn size(self) -> BufferSize {
        let octets = self.octets();
        match self.0[0] >> (Self::MEANING - 16) {
            0 => BufferSize::Auto,
            1 => BufferSize::Asked(octets),
            2 => BufferSize::Floor(octets),
            _ => BufferSize::Exact(octets),
        }
    }

    const fn octets(self) -> u32 {
        let both = (self.0[0] as u32) << 16 | self.0[1] as u32;
        (both & ((1 << Self::MEANING) - 1)) + 1
    }
}

impl Settings {
    const NO_LINGER: u16 = u16::MAX;
    const NO_DELAY: u8 = 1;
    const KEEP_ALIVE: u8 = 1 << 1;
    /// The hop limit is not the stack's.
    const HOP_LIMIT: u8 = 1 << 2;
    /// Text is acknowledged at once.
    const QUICK_ACK: u8 = 1 << 3;
    /// Of the number of the congestion control, and one.
    const CONGESTION: u32 = 4;
    /// The most congestion controls that there can be.
    pub(crate) const CONGESTION_CONTROLS: u8 = u8::MAX >> Self::CONGESTION;

    /// What a stack with these rules begins with.
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

    /// Tells the shard, of a connection.
    pub(crate) fn apply(&self, shard: &mut Shard, handle: Handle) {
        shard.set_options(handle, &self.options());
    }

    /// What the shard calls them.
    pub(crate) fn options(&self) -> SocketOptions {
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
                ..SocketOverrides::default()
            },
            ..SocketOptions::default()
        }
    }

    /// Whether Nagle's algorithm is off.
    pub(crate) const fn nodelay(&self) -> bool {
        self.has(Self::NO_DELAY)
    }

    /// Switches Nagle's algorithm off, or on.
    pub(crate) const fn set_nodelay(&mut self, off: bool) {
        self.switch(Self::NO_DELAY, off);
    }

    /// Whether text is acknowledged at once.
    pub(crate) const fn quickack(&self) -> bool {
        self.has(Self::QUICK_ACK)
    }

    /// Acknowledges text at once, or in its time.
    pub(crate) const fn set_quickack(&mut self, at_once: bool) {
        self.switch(Self::QUICK_ACK, at_once);
    }

    /// Whether the connection is probed when it is silent.
    pub(crate) const fn keepalive(&self) -> bool {
        self.has(Self::KEEP_ALIVE)
    }

    /// Probes the connection when it is silent, or stops to.
    pub(crate) const fn set_keepalive(&mut self, on: bool) {
        self.switch(Self::KEEP_ALIVE, on);
    }

    /// How long closing lingers.
    pub(crate) fn linger(&self) -> Option<Duration> {
        (self.linger != Self::NO_LINGER).then(|| Duration::from_secs(self.linger.into()))
    }

    /// Lingers so long, rounded up to whole seconds, 65,534 at most. Only 0 makes a difference: it
    /// resets.
    pub(crate) fn set_linger(&mut self, linger: Option<Duration>) {
        self.linger = linger.map_or(Self::NO_LINGER, |linger| {
            let seconds = linger.as_secs() + u64::from(linger.subsec_nanos() > 0);
            u16::try_from(seconds).unwrap_or(u16::MAX).min(Self::NO_LINGER - 1)
        });
    }

    /// The send buffer, octets.
    pub(crate) const fn send_size(&self) -> u32 {
        self.send_size.octets()
    }

    /// Sets the send buffer, within [`Settings::SIZES`] as Linux does; `Auto` is the size there was, no
    /// longer asked for.
    pub(crate) fn set_send_size(&mut self, size: impl Into<BufferSize>) {
        self.send_size = Size::new(size.into(), self.send_size());
    }

    /// The receive buffer, octets.
    pub(crate) const fn recv_size(&self) -> u32 {
        self.recv_size.octets()
    }

    /// Sets the receive buffer, within [`Settings::SIZES`] as Linux does; `Auto` is the size there was,
    /// no longer asked for.
    pub(crate) fn set_recv_size(&mut self, size: impl Into<BufferSize>) {
        self.recv_size = Size::new(size.into(), self.recv_size());
    }

    /// Time to live, or hop limit.
    pub(crate) const fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// Sends with this time to live, or hop limit.
    pub(crate) const fn set_hop_limit(&mut self, hops: u8) {
        self.hop_limit = hops;
        self.switches |= Self::HOP_LIMIT;
    }

    /// Type of service of IPv4 packets.
    pub(crate) const fn tos(&self) -> u8 {
        self.tos.0
    }

    /// Sends IPv4 packets with this type of service, as Linux without its two bits for ECN, which are
    /// the protocol's.
    pub(crate) const fn set_tos(&mut self, tos: u8) {
        self.tos = TrafficClass(tos & NOT_ECN);
    }

    /// Traffic class of IPv6 packets.
    pub(crate) const fn traffic_class(&self) -> u8 {
        self.traffic_class.0
    }

    /// Sends IPv6 packets with this traffic class, without its two bits for ECN.
    pub(crate) const fn set_traffic_class(&mut self, class: u8) {
        self.traffic_class = TrafficClass(class & NOT_ECN);
    }

    /// The congestion control, if one was asked for, or the connection is there.
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

    /// The range of the tunables `buffers.send` and `buffers.recv`.
    const SIZES: std::ops::RangeInclusive<u32> = 2 << 10..=1 << 30;
}

/// RFC 3168 5: the two low bits.
const NOT_ECN: u8 = 0xfc;

#[cfg(test)]
mod tests;
