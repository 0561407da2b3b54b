//! Counts of one connection: what `TCP_INFO` shows in addition to the protocol's variables.
//!
//! The counts stand outside of the hot record, in the connection's [`ConnStats`](super::ConnStats): they
//! are written and hardly ever read, so that nothing waits for the cache line that they cost.

use core::time::Duration;

use whimbrel_base::{Instant, Micros, Tick};

use crate::RxSegment;

/// Counts of one connection.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tally {
    /// Bytes of text that the peer acknowledged.
    pub bytes_acked: u64,
    /// Bytes of text that arrived in order.
    pub bytes_received: u64,
    /// Segments that arrived, wrapping; those that the device had merged count each.
    pub segs_in: u32,
    /// Segments sent, retransmissions included.
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
    /// The least round trip since `min_rtt_since`, microseconds; `None` before the first.
    min_rtt: Option<core::num::NonZeroU32>,
    min_rtt_since: Tick,
    /// Milliseconds under [`Limit::Network`]. Those under a window or a buffer are
    /// [`TcpInfoCounts`](super::TcpInfoCounts).
    network_limited: u32,
    limit_since: Tick,
    limit: Limit,
    /// When something was acknowledged last, or began to wait for it.
    pub(super) waits_since: Tick,
    /// The most bytes of text that one segment brought.
    pub rcv_mss: u16,
    /// Segments that answered our SYN and acknowledged something else.
    pub(super) challenges: u8,
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

impl Tally {
    /// Counts of a connection that begins `now`.
    pub(super) fn new(now: Tick) -> Self {
        Self {
            last_data_sent: now,
            last_data_recv: now,
            last_ack_recv: now,
            limit_since: now,
            waits_since: now,
            ..Self::default()
        }
    }

    pub(super) fn on_segment(&mut self, seg: &RxSegment<'_>, now: Tick) {
        let segs = u32::from(seg.meta.segs);
        self.segs_in = self.segs_in.wrapping_add(segs);
        if !seg.payload.is_empty() {
            self.data_segs_in = self.data_segs_in.wrapping_add(segs);
            self.last_data_recv = now;
            let each = if segs > 1 { u32::from(seg.meta.gso_size) } else { seg.payload.len() };
            self.rcv_mss = self.rcv_mss.max(each.min(u32::from(u16::MAX)) as u16);
        }
    }

    pub(super) fn on_ack(&mut self, bytes: u32, segs: u32) {
        self.bytes_acked += u64::from(bytes);
        self.delivered = self.delivered.wrapping_add(segs);
    }

    /// `segs` segments left with `bytes` bytes of text.
    pub(super) fn on_sent(&mut self, bytes: u32, segs: u64, now: Tick) {
        self.segs_out = self.segs_out.wrapping_add(segs as u32);
        if bytes > 0 {
            self.data_segs_out = self.data_segs_out.wrapping_add(segs as u32);
            self.last_data_sent = now;
        }
    }

    /// A round trip was measured. The least counts for five minutes, as Linux' `tcp_min_rtt_wlen`
    /// has it: a path may become longer.
    pub(super) fn on_round_trip(&mut self, rtt: Micros, now: Tick) {
        let micros = rtt.get().max(1);
        let old = now.millis_since(self.min_rtt_since) > MIN_RTT_MILLIS;
        if old || self.min_rtt.is_none_or(|least| micros <= least.get()) {
            self.min_rtt = core::num::NonZeroU32::new(micros);
            self.min_rtt_since = now;
        }
    }

    /// The least round trip of the last five minutes.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.map(|micros| Duration::from_micros(u64::from(micros.get())))
    }

    /// The least round trip of the last five minutes, in microseconds.
    #[inline]
    pub(super) fn min_rtt_micros(&self) -> Option<Micros> {
        self.min_rtt.map(|micros| Micros::new(micros.get()))
    }

    /// From now on `limit` holds.
    pub(super) fn enter(&mut self, limit: Limit, now: Tick) {
        if self.limit == Limit::Network {
            self.network_limited =
                self.network_limited.wrapping_add(now.millis_since(self.limit_since));
        }
        (self.limit, self.limit_since) = (limit, now);
    }

    /// True if nothing but the application keeps the sender from sending more.
    #[inline]
    pub(super) fn is_unlimited(&self) -> bool {
        self.limit == Limit::Application
    }

    /// The time for which its limit has held, milliseconds.
    pub(super) const fn limit_millis(&self, now: Tick) -> u32 {
        now.millis_since(self.limit_since)
    }

    /// The reason why the sender does not send more, as of its last segment in or out.
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// The time for which the limit has held, to a millisecond.
    pub(super) fn limit_held(&self, now: Instant) -> Duration {
        Duration::from_millis(self.limit_millis(now.tick()).into())
    }

    /// Milliseconds for which what is under way kept the sender from sending more.
    pub(super) const fn network_limited(&self) -> u32 {
        self.network_limited
    }

    /// Returns these counts, with the time up to `now`.
    pub(super) fn until(mut self, now: Instant) -> Self {
        self.enter(self.limit, now.tick());
        self
    }
}

/// The time for which the least round trip counts, milliseconds: Linux' `tcp_min_rtt_wlen`.
const MIN_RTT_MILLIS: u32 = 300_000;
