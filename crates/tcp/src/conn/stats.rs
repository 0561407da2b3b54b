//! Counts of one connection: what `TCP_INFO` shows in addition to the protocol's variables.
//!
//! A connection holds them in small numbers ([`Counts`]). Their wraps are counted in its
//! [`ConnStats`](super::ConnStats), which few connections have. [`Tally`] shows both together.

use alloc::boxed::Box;
use core::num::NonZeroU32;
use core::time::Duration;

use whimbrel_base::{Instant, Micros, Tick};

use crate::RxSegment;
use crate::conn::cold::ColdView;
use crate::conn::limit::LimitSpan;
use crate::conn::marks::MarkCounters;
use crate::conn::{ConnStats, Limit};

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
    /// When text was sent last, probes of a closed window aside; as the next two, when the connection began, before the
    /// first time.
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

/// The counts of a connection as it holds them, each modulo 2^16 or 2^32, and the part that few connections have.
#[derive(Default, Debug)]
pub(super) struct Counts {
    /// Made where it is needed first.
    pub(super) stats: Option<Box<ConnStats>>,
    bytes_acked: u32,
    /// Bytes of text that arrived in order.
    pub(super) bytes_received: u32,
    pub(super) last_data_recv: Tick,
    pub(super) last_ack_recv: Tick,
    /// When something was acknowledged last, or began to wait for it.
    pub(super) waits_since: Tick,
    /// The least round trip since `min_rtt_since`, microseconds; `None` before the first.
    min_rtt: Option<NonZeroU32>,
    /// In [units](MIN_RTT_UNIT), modulo 2^16: after 18.6 hours without a measurement an old one may seem new, and counts
    /// for five minutes more.
    min_rtt_since: u16,
    segs_in: u16,
    segs_out: u16,
    data_segs_in: u16,
    data_segs_out: u16,
    delivered: u16,
    rcv_mss: u16,
    /// Milliseconds under [`Limit::Network`].
    network_limited: u16,
}

/// The number of times that each of the [`Counts`] has wrapped.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Wraps {
    bytes_acked: u32,
    bytes_received: u32,
    segs_in: u16,
    segs_out: u16,
    data_segs_in: u16,
    data_segs_out: u16,
    delivered: u16,
    network_limited: u16,
}

impl Counts {
    /// Counts of a connection that begins `now`.
    pub(super) fn new(now: Tick) -> Self {
        Self { last_data_recv: now, last_ack_recv: now, waits_since: now, ..Self::default() }
    }

    /// A segment arrived.
    #[inline]
    pub(super) fn on_segment(&mut self, seg: &RxSegment<'_>, now: Tick) {
        let segs = u32::from(seg.meta.segs);
        if add(&mut self.segs_in, segs) {
            add_wraps(&mut self.wraps().segs_in, 1);
        }
        if !seg.payload.is_empty() {
            self.last_data_recv = now;
            let each = if segs > 1 { u32::from(seg.meta.gso_size) } else { seg.payload.len() };
            self.rcv_mss = self.rcv_mss.max(each.min(u32::from(u16::MAX)) as u16);
            if add(&mut self.data_segs_in, segs) {
                add_wraps(&mut self.wraps().data_segs_in, 1);
            }
        }
    }

    /// `segs` segments left with `bytes` bytes of text.
    #[inline]
    pub(super) fn on_sent(&mut self, bytes: u32, segs: u32) {
        if add(&mut self.segs_out, segs) {
            add_wraps(&mut self.wraps().segs_out, 1);
        }
        if bytes > 0 && add(&mut self.data_segs_out, segs) {
            add_wraps(&mut self.wraps().data_segs_out, 1);
        }
    }

    /// Text was acknowledged.
    #[inline]
    pub(super) fn on_ack(&mut self, bytes: u32, segs: u32) {
        if add_bytes(&mut self.bytes_acked, bytes) {
            self.wraps().bytes_acked += 1;
        }
        // One acknowledgment may take more than 65,535.
        let wraps = add_many(&mut self.delivered, segs);
        if wraps > 0 {
            add_wraps(&mut self.wraps().delivered, wraps);
        }
    }

    /// Text arrived in order.
    #[inline]
    pub(super) fn on_text(&mut self, bytes: u32) {
        if add_bytes(&mut self.bytes_received, bytes) {
            self.wraps().bytes_received += 1;
        }
    }

    /// The network was the limit for so long.
    #[inline]
    pub(super) fn on_network_limited(&mut self, millis: u32) {
        let wraps = add_many(&mut self.network_limited, millis);
        if wraps > 0 {
            add_wraps(&mut self.wraps().network_limited, wraps);
        }
    }

    #[cold]
    fn wraps(&mut self) -> &mut Wraps {
        &mut self.stats_mut().wraps
    }

    /// The part that few connections need, made if there is none.
    #[cold]
    pub(super) fn stats_mut(&mut self) -> &mut ConnStats {
        self.stats.get_or_insert_default()
    }

    /// Settings of this connection only, and its rare counts, if there are any.
    #[inline]
    pub(super) fn cold(&self) -> ColdView<'_> {
        ColdView(self.stats.as_deref().and_then(|stats| stats.cold.as_deref()))
    }

    /// True if there are settings of this connection only, or rare counts.
    #[inline]
    pub(super) fn has_record(&self) -> bool {
        self.cold().record().is_some()
    }

    /// The counters of accurate feedback, once such feedback was agreed upon.
    pub(super) fn marks_mut(&mut self) -> Option<&mut MarkCounters> {
        self.stats.as_deref_mut()?.cold.as_deref_mut()?.marks.as_mut()
    }

    /// Bytes of text that the peer acknowledged.
    pub(super) fn bytes_acked(&self) -> u64 {
        whole(self.all_wraps().bytes_acked, self.bytes_acked)
    }

    /// Bytes of text that arrived in order.
    pub(super) fn bytes_received(&self) -> u64 {
        whole(self.all_wraps().bytes_received, self.bytes_received)
    }

    fn all_wraps(&self) -> Wraps {
        self.stats.as_deref().map_or_else(Wraps::default, |stats| stats.wraps)
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

    /// Has each count wrap before so many more bytes, or the next segment.
    #[cfg(test)]
    pub(super) fn go_near_wraps(&mut self, bytes: u32) {
        self.bytes_acked = self.bytes_acked.wrapping_sub(bytes);
        self.bytes_received = self.bytes_received.wrapping_sub(bytes);
        let into = [&mut self.segs_in, &mut self.data_segs_in];
        let out = [&mut self.segs_out, &mut self.data_segs_out, &mut self.delivered];
        into.into_iter().chain(out).for_each(|count| *count = u16::MAX);
    }

    /// All counts of a connection that `limit` holds up and that sent text last at `data_sent`, with the time up to
    /// `now`.
    pub(super) fn tally(&self, limit: LimitSpan, data_sent: Tick, now: Instant) -> Tally {
        let wraps = self.all_wraps();
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

/// Adds `more`, at most 65,535, to a count. Returns true if it wrapped.
#[inline]
fn add(count: &mut u16, more: u32) -> bool {
    let (sum, wrapped) = count.overflowing_add(more as u16);
    *count = sum;
    wrapped
}

/// Adds any number to a count. Returns the number of times that it wrapped.
#[inline]
fn add_many(count: &mut u16, more: u32) -> u16 {
    let sum = u32::from(*count).wrapping_add(more);
    *count = sum as u16;
    (sum >> 16) as u16
}

#[inline]
fn add_bytes(count: &mut u32, more: u32) -> bool {
    let (sum, wrapped) = count.overflowing_add(more);
    *count = sum;
    wrapped
}

/// A count wrapped so many times more.
fn add_wraps(wraps: &mut u16, more: u16) {
    *wraps = wraps.wrapping_add(more);
}

/// A count that has wrapped `wraps` times.
fn whole(wraps: u32, low: u32) -> u64 {
    u64::from(wraps) << 32 | u64::from(low)
}

/// The time for which the least round trip counts, in units of so many milliseconds: Linux' `tcp_min_rtt_wlen`,
/// five minutes.
const MIN_RTT_UNITS: u16 = 293;
const MIN_RTT_UNIT: u32 = 1_024;
