//! Settings and route metrics of one connection only, and its rare counts.

use core::num::NonZeroU64;
use core::time::Duration;

use whimbrel_base::packet::SoftError;

use crate::Tunables;
use crate::conn::marks::MarkCounters;
use crate::conn::mtu_search::MtuSearch;
use crate::conn::{AckTiming, BufferSize, RouteMetrics, SocketOverrides, TcpInfoCounts};

/// The [`ColdRecord`] of a connection, if it needs one: nearly none does.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColdView<'a>(pub(super) Option<&'a ColdRecord>);

/// The settings, route metrics and rare counts of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct ColdRecord {
    pub(super) overrides: SocketOverrides,
    pub(super) send_size: BufferSize,
    pub(super) recv_size: BufferSize,
    pub(super) metrics: RouteMetrics,
    pub(super) info_counts: TcpInfoCounts,
    pub(super) mtu_search: Option<MtuSearch>,
    pub(super) marks: Option<MarkCounters>,
    /// The last report of a router, unless data was acknowledged since.
    pub(super) soft_error: Option<SoftError>,
}

impl ColdRecord {
    /// `segs` segments left again with `bytes` bytes of text.
    #[cold]
    pub(super) fn count_sent_again(&mut self, bytes: u32, segs: u64) {
        self.info_counts.on_sent_again(bytes, segs);
    }

    /// An acknowledgment told of text that the peer had already.
    #[cold]
    pub(super) fn count_duplicate(&mut self) {
        self.info_counts.dsack_dups = self.info_counts.dsack_dups.wrapping_add(1);
    }

    /// `segs` segments were acknowledged with ECE.
    #[cold]
    pub(super) fn count_delivered_ce(&mut self, segs: u32) {
        self.info_counts.delivered_ce = self.info_counts.delivered_ce.wrapping_add(segs);
    }

    /// Text arrived after text that was sent later.
    #[cold]
    pub(super) fn count_reordering(&mut self) {
        self.info_counts.reorderings = self.info_counts.reorderings.wrapping_add(1);
    }
}

impl<'a> ColdView<'a> {
    /// The record, if there is one.
    #[inline]
    pub(super) fn record(self) -> Option<&'a ColdRecord> {
        self.0
    }

    /// The search for what the path carries, if there is one.
    #[inline]
    pub(super) fn mtu_search(self) -> Option<MtuSearch> {
        self.0?.mtu_search
    }

    /// The counters of accurate feedback of marks, once such feedback was agreed upon.
    pub(super) fn marks(self) -> Option<&'a MarkCounters> {
        self.0?.marks.as_ref()
    }

    /// The number of SYNs it took to open, as long as nothing else was sent again: then each counts as one.
    pub(super) fn syns_sent(self) -> u32 {
        let again = self.0.map_or(0, |apart| apart.info_counts.total_retrans);
        again.wrapping_add(1)
    }

    pub(super) fn info_counts(self) -> TcpInfoCounts {
        self.0.map_or_else(TcpInfoCounts::default, |apart| apart.info_counts)
    }
}

/// Values in force for the connection: those set for it, or the tunables'.
impl<'a> ColdView<'a> {
    pub(super) fn overrides(self) -> Option<&'a SocketOverrides> {
        self.0.map(|apart| &apart.overrides)
    }

    pub(super) fn keepalive_time(self, tunables: &Tunables) -> Duration {
        self.overrides().and_then(|set| set.keepalive_time).unwrap_or(tunables.keepalive_time)
    }

    pub(super) fn keepalive_interval(self, tunables: &Tunables) -> Duration {
        let set = self.overrides().and_then(|set| set.keepalive_interval);
        set.unwrap_or(tunables.keepalive_interval)
    }

    pub(super) fn keepalive_probes(self, tunables: &Tunables) -> u8 {
        let set = self.overrides().and_then(|set| set.keepalive_probes);
        set.unwrap_or(tunables.keepalive_probes)
    }

    pub(super) fn syn_retries(self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.syn_retries).unwrap_or(tunables.syn_retries)
    }

    /// The retries of a SYN-ACK.
    pub(super) fn synack_retries(self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.syn_retries).unwrap_or(tunables.synack_retries)
    }

    pub(super) fn retries(self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.retries).unwrap_or(tunables.retries)
    }

    /// The retries that were set, less than the counter's largest value.
    fn asked_retries(self, which: impl FnOnce(&SocketOverrides) -> Option<u8>) -> Option<u8> {
        self.overrides().and_then(which).map(|asked| asked.min(u8::MAX - 1))
    }

    pub(super) fn fin_timeout(self, tunables: &Tunables) -> Duration {
        self.overrides().and_then(|set| set.fin_timeout).unwrap_or(tunables.fin_timeout)
    }

    pub(super) fn unsent_low_water(self) -> Option<u32> {
        self.overrides()?.unsent_low_water
    }

    pub(super) fn max_pacing_rate(self) -> Option<NonZeroU64> {
        self.overrides()?.max_pacing_rate
    }

    /// The most bytes that are announced at once; `u32::MAX` if the application did not say.
    #[inline]
    pub(super) fn window_clamp(self) -> u32 {
        self.overrides().and_then(|set| set.window_clamp).unwrap_or(u32::MAX)
    }

    pub(super) fn acks_at_once(self) -> bool {
        self.overrides().is_some_and(|set| set.acks == AckTiming::AtOnce)
    }

    /// The sizes that the application asked for: send and receive buffer.
    pub(super) fn asked_sizes(self) -> (BufferSize, BufferSize) {
        self.0.map_or_else(Default::default, |it| (it.send_size, it.recv_size))
    }
}
