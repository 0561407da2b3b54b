//! Counts of one connection: what `TCP_INFO` shows in addition to the protocol's variables.
//!
//! A connection has room for small numbers only ([`Counts`]); what they exceed by is carried into its
//! [`ConnStats`](super::ConnStats), which few have. [`Tally`] shows both together.

use core::num::NonZeroU32;
use core::time::Duration;

use whimbrel_base::{Instant, Micros, Tick};

/// Counts of one connection.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tally {
    /// Bytes of text that the peer acknowledged.
    pub bytes_acked: u64,
    /// Bytes of text that arrived in order.
    pub bytes_received: u64,
    /// Segments that arrived, wrapping; those that the device had merged count each.
    pub segs_in: u32,
    /// Segments sent, retransmissions included, wrapping.
    pub segs_out: u32,
    /// Those that arrived with text.
    pub data_segs_in: u32,
    /// Those sent with text.
    pub data_segs_out: u32,
    /// Acknowledged text, in full segments, rounded up for each acknowledgment.
    pub delivered: u32,
    /// When text was sent last; as the next two, when the connection began, before the first time.
    pub last_data_sent: Tick,
    /// When text arrived last.
    pub last_data_recv: Tick,
    /// When an acknowledgment arrived last.
    pub last_ack_recv: Tick,
    /// The most bytes of text that one segment brought.
    pub rcv_mss: u16,
    pub(super) min_rtt: Option<NonZeroU32>,
    /// Milliseconds under [`Limit::Network`]. Those under a window or a buffer are
    /// [`TcpInfoCounts`](super::TcpInfoCounts).
    pub(super) network_limited: u32,
    pub(super) limit: LimitSpan,
}

impl Tally {
    /// The least round trip of the last five minutes.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.map(|micros| Duration::from_micros(u64::from(micros.get())))
    }

    /// The reason why the sender does not send more, as of its last segment in or out.
    pub const fn limit(&self) -> Limit {
        self.limit.limit
    }

    /// Milliseconds for which what is under way kept the sender from sending more.
    pub(super) const fn network_limited(&self) -> u32 {
        self.network_limited
    }
}

/// The reason why the sender does not send more.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Limit {
    /// The application: there is nothing to send, and all was acknowledged.
    #[default]
    Application,
    /// The network: what is under way.
    Network,
    /// The peer's window is smaller than what is unsent, and than cwnd.
    Window,
    /// Our send buffer: the application was refused room, and all that is in it was sent.
    Buffer,
}

/// A reason, and since when it holds.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LimitSpan {
    pub(super) limit: Limit,
    pub(super) since: Tick,
}

impl LimitSpan {
    /// The time for which it has held, milliseconds; 0 if it is the application.
    pub(super) fn millis(self, now: Tick) -> u32 {
        if self.limit == Limit::Application { 0 } else { now.millis_since(self.since) }
    }
}

/// The counts of a connection as it holds them, each modulo its size.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    pub(super) bytes_acked: u32,
    pub(super) bytes_received: u32,
    pub(super) last_data_recv: Tick,
    pub(super) last_ack_recv: Tick,
    /// When something was acknowledged last, or began to wait for it.
    pub(super) waits_since: Tick,
    /// The least round trip since `min_rtt_since`, microseconds; `None` before the first.
    min_rtt: Option<NonZeroU32>,
    /// In [units](MIN_RTT_UNIT), modulo 2^16.
    min_rtt_since: u16,
    pub(super) segs_in: u16,
    pub(super) segs_out: u16,
    pub(super) data_segs_in: u16,
    pub(super) data_segs_out: u16,
    pub(super) delivered: u16,
    pub(super) rcv_mss: u16,
    /// Milliseconds under [`Limit::Network`].
    pub(super) network_limited: u16,
}

/// The number of times that each of the [`Counts`] has wrapped.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Wraps {
    pub(super) bytes_acked: u32,
    pub(super) bytes_received: u32,
    pub(super) segs_in: u16,
    pub(super) segs_out: u16,
    pub(super) data_segs_in: u16,
    pub(super) data_segs_out: u16,
    pub(super) delivered: u16,
    pub(super) network_limited: u16,
}

impl Counts {
    /// Counts of a connection that begins `now`.
    pub(super) fn new(now: Tick) -> Self {
        Self { last_data_recv: now, last_ack_recv: now, waits_since: now, ..Self::default() }
    }

    /// A round trip was measured. The least counts for five minutes, as Linux' `tcp_min_rtt_wlen`
    /// has it: a path may become longer.
    pub(super) fn on_round_trip(&mut self, rtt: Micros, now: Tick) {
        let micros = rtt.get().max(1);
        let now = (now.raw() / MIN_RTT_UNIT) as u16;
        let is_old = now.wrapping_sub(self.min_rtt_since) > MIN_RTT_UNITS;
        if is_old || self.min_rtt.is_none_or(|least| micros <= least.get()) {
            self.min_rtt = NonZeroU32::new(micros);
            self.min_rtt_since = now;
        }
    }

    /// The least round trip of the last five minutes, in microseconds.
    #[inline]
    pub(super) fn min_rtt(&self) -> Option<Micros> {
        self.min_rtt.map(|micros| Micros::new(micros.get()))
    }

    /// These counts and their wraps, `limit` and when text was sent last.
    pub(super) fn tally(
        &self,
        wraps: Wraps,
        limit: LimitSpan,
        data_sent: Tick,
        now: Instant,
    ) -> Tally {
        let whole = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let word = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        let open = if limit.limit == Limit::Network { limit.millis(now.tick()) } else { 0 };
        Tally {
            bytes_acked: whole(wraps.bytes_acked, self.bytes_acked),
            bytes_received: whole(wraps.bytes_received, self.bytes_received),
            segs_in: word(wraps.segs_in, self.segs_in),
            segs_out: word(wraps.segs_out, self.segs_out),
            data_segs_in: word(wraps.data_segs_in, self.data_segs_in),
            data_segs_out: word(wraps.data_segs_out, self.data_segs_out),
            delivered: word(wraps.delivered, self.delivered),
            last_data_sent: data_sent,
            last_data_recv: self.last_data_recv,
            last_ack_recv: self.last_ack_recv,
            rcv_mss: self.rcv_mss,
            min_rtt: self.min_rtt,
            network_limited: word(wraps.network_limited, self.network_limited).wrapping_add(open),
            limit,
        }
    }
}

/// The time for which the least round trip counts, in units of so many milliseconds: Linux' `tcp_min_rtt_wlen`,
/// five minutes.
const MIN_RTT_UNITS: u16 = 293;
const MIN_RTT_UNIT: u32 = 1_024;
