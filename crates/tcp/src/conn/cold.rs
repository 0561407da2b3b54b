//! Settings and route metrics of one connection only, and its rare counts.

use alloc::boxed::Box;
use core::num::NonZeroU64;
use core::time::Duration;

use whimbrel_base::Tick;

use crate::Tunables;
use crate::conn::marks::MarkCounters;
use crate::conn::mtu_search::MtuSearch;
use crate::conn::{AckTiming, BufferSize, RouteMetrics, SocketOverrides, TcpInfoCounts};

/// The [`ColdRecord`] of a connection that needs one: nearly none does.
#[derive(Default, Debug)]
pub(super) struct ColdOptions(Option<Box<ColdRecord>>);

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
}

impl ColdOptions {
    /// The record, if there is one.
    #[inline]
    pub(super) fn record(&self) -> Option<&ColdRecord> {
        self.0.as_deref()
    }

    /// True if there is no record.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The record, made if there is none.
    #[cold]
    pub(super) fn record_mut(&mut self) -> &mut ColdRecord {
        self.0.get_or_insert_default()
    }

    /// Notes that text arrived which the time-out took for lost.
    pub(super) fn count_recovered(&mut self, now: Tick) {
        if let Some(record) = self.0.as_deref_mut() {
            record.info_counts.on_recovered(now);
        }
    }
}

/// The search for what the path carries.
impl ColdOptions {
    /// The search, if there is one.
    #[inline]
    pub(super) fn mtu_search(&self) -> Option<MtuSearch> {
        self.0.as_deref()?.mtu_search
    }

    /// From now on the search is this.
    pub(super) fn set_mtu_search(&mut self, search: Option<MtuSearch>) {
        if let Some(record) = self.0.as_deref_mut() {
            record.mtu_search = search;
        }
    }
}

/// Accurate feedback of marks.
impl ColdOptions {
    /// The counters, once such feedback was agreed upon.
    pub(super) fn marks(&self) -> Option<&MarkCounters> {
        self.0.as_deref()?.marks.as_ref()
    }

    /// The counters, once such feedback was agreed upon.
    pub(super) fn marks_mut(&mut self) -> Option<&mut MarkCounters> {
        self.0.as_deref_mut()?.marks.as_mut()
    }
}

/// Counts.
impl ColdOptions {
    /// The number of SYNs it took to open, as long as nothing else was sent again: then each counts as one.
    pub(super) fn syns_sent(&self) -> u32 {
        let again = self.0.as_deref().map_or(0, |apart| apart.info_counts.total_retrans);
        again.wrapping_add(1)
    }

    /// `segs` segments left again with `bytes` bytes of text.
    #[cold]
    pub(super) fn count_sent_again(&mut self, bytes: u32, segs: u64) {
        self.record_mut().info_counts.on_sent_again(bytes, segs);
    }

    /// An acknowledgment told of text that the peer had already.
    #[cold]
    pub(super) fn count_duplicate(&mut self) {
        let info_counts = &mut self.record_mut().info_counts;
        info_counts.dsack_dups = info_counts.dsack_dups.wrapping_add(1);
    }

    /// `segs` segments were acknowledged with ECE.
    #[cold]
    pub(super) fn count_delivered_ce(&mut self, segs: u32) {
        let info_counts = &mut self.record_mut().info_counts;
        info_counts.delivered_ce = info_counts.delivered_ce.wrapping_add(segs);
    }

    /// Text arrived after text that was sent later.
    #[cold]
    pub(super) fn count_reordering(&mut self) {
        let info_counts = &mut self.record_mut().info_counts;
        info_counts.reorderings = info_counts.reorderings.wrapping_add(1);
    }

    pub(super) fn info_counts(&self) -> TcpInfoCounts {
        self.0.as_deref().map_or_else(TcpInfoCounts::default, |apart| apart.info_counts)
    }
}

/// Values in force for the connection: those set for it, or the tunables'.
impl ColdOptions {
    pub(super) fn overrides(&self) -> Option<&SocketOverrides> {
        self.0.as_deref().map(|apart| &apart.overrides)
    }

    pub(super) fn keepalive_time(&self, tunables: &Tunables) -> Duration {
        self.overrides().and_then(|set| set.keepalive_time).unwrap_or(tunables.keepalive_time)
    }

    pub(super) fn keepalive_interval(&self, tunables: &Tunables) -> Duration {
        let set = self.overrides().and_then(|set| set.keepalive_interval);
        set.unwrap_or(tunables.keepalive_interval)
    }

    pub(super) fn keepalive_probes(&self, tunables: &Tunables) -> u8 {
        let set = self.overrides().and_then(|set| set.keepalive_probes);
        set.unwrap_or(tunables.keepalive_probes)
    }

    pub(super) fn syn_retries(&self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.syn_retries).unwrap_or(tunables.syn_retries)
    }

    /// The retries of a SYN-ACK.
    pub(super) fn synack_retries(&self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.syn_retries).unwrap_or(tunables.synack_retries)
    }

    pub(super) fn retries(&self, tunables: &Tunables) -> u8 {
        self.asked_retries(|set| set.retries).unwrap_or(tunables.retries)
    }

    /// The retries that were set, less than the counter's largest value.
    fn asked_retries(&self, which: impl FnOnce(&SocketOverrides) -> Option<u8>) -> Option<u8> {
        self.overrides().and_then(which).map(|asked| asked.min(u8::MAX - 1))
    }

    pub(super) fn fin_timeout(&self, tunables: &Tunables) -> Duration {
        self.overrides().and_then(|set| set.fin_timeout).unwrap_or(tunables.fin_timeout)
    }

    pub(super) fn unsent_low_water(&self) -> Option<u32> {
        self.overrides()?.unsent_low_water
    }

    pub(super) fn max_pacing_rate(&self) -> Option<NonZeroU64> {
        self.overrides()?.max_pacing_rate
    }

    /// The most bytes that are announced at once; `u32::MAX` if the application did not say.
    #[inline]
    pub(super) fn window_clamp(&self) -> u32 {
        self.overrides().and_then(|set| set.window_clamp).unwrap_or(u32::MAX)
    }

    pub(super) fn acks_at_once(&self) -> bool {
        self.overrides().is_some_and(|set| set.acks == AckTiming::AtOnce)
    }

    /// The sizes that the application asked for: send and receive buffer.
    pub(super) fn asked_sizes(&self) -> (BufferSize, BufferSize) {
        self.0.as_deref().map_or_else(Default::default, |it| (it.send_size, it.recv_size))
    }
}
