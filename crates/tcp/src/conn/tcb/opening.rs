//! The route's metrics, and the size of segments once both SYNs are known.

use whimbrel_wire::Mss;

use crate::conn::stamps::TIMESTAMP_BYTES;
use crate::conn::tcb::Tcb;
use crate::conn::{Flags, RouteMetrics};
use crate::{Context, Tunables};

impl Tcb {
    /// The connection's path leads over a route of which this is known. To be called before anything is
    /// sent or set.
    pub(in crate::conn) fn take_metrics(&mut self, cx: &Context, metrics: &RouteMetrics) {
        let before = self.recv_range(&cx.tunables);
        self.cold_mut().metrics = *metrics;
        if let Some(advmss) = metrics.advmss {
            self.receiver.limit_mss(advmss.max(cx.tunables.least_mss));
        }
        if let Some(rtt) = metrics.rtt.filter(|_| self.sender.rtt().srtt().is_none()) {
            self.sender.on_first_round_trip(rtt.into());
        }
        if let Some(algorithm) = metrics.congestion {
            self.set_congestion_control(algorithm);
        }
        self.apply_window_metrics();
        self.update_send_size(cx);
        self.update_recv_size(cx, before);
    }

    /// Takes the route's metrics of the congestion window, once segments have their size.
    #[inline]
    pub(in crate::conn) fn apply_window_metrics(&mut self) {
        if self.counts.has_record() {
            self.apply_known_window();
        }
    }

    /// Takes the congestion window that is known of the route, if one is.
    #[inline(never)]
    fn apply_known_window(&mut self) {
        let Some(apart) = self.cold().record() else { return };
        let (initcwnd, ssthresh) = (apart.metrics.initcwnd, apart.metrics.ssthresh);
        self.sender.begin_window(initcwnd.unwrap_or(0), ssthresh);
    }

    /// Eff.snd.MSS (RFC 9293 3.7.1): the peer's or the path's, less the options of each segment.
    #[inline]
    pub(in crate::conn) fn agree_mss(&mut self, peer: Mss, tunables: &Tunables) {
        let options = if self.flags.has(Flags::TIMESTAMPS) { TIMESTAMP_BYTES } else { 0 };
        self.sender.agree_mss(peer, options, tunables);
        self.receiver.round_size(self.in_full_segments(self.receiver.size(), tunables));
    }
}
