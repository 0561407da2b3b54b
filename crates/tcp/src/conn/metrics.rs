//! What a route says of its paths, as a connection takes it.

use super::{Connection, RouteMetrics};
use crate::{Context, Tunables};

impl Connection {
    /// The connection's path leads over a route of which this is known. To be called before anything is
    /// sent or set.
    pub fn take_metrics(&mut self, cx: &Context, metrics: &RouteMetrics) {
        let before = self.recv_range(&cx.tunables);
        self.apart().metrics = *metrics;
        if let Some(advmss) = metrics.advmss {
            self.receiver.limit_mss(advmss.max(cx.tunables.least_mss));
        }
        if let Some(rtt) = metrics.rtt.filter(|_| self.sender.rtt().srtt().is_none()) {
            self.sender.on_first_round_trip(rtt.into(), &cx.tunables);
        }
        if let Some(algorithm) = metrics.congestion {
            self.set_congestion_control(algorithm);
        }
        self.apply_window_metrics();
        self.update_send_size(cx);
        self.update_recv_size(cx, before);
    }

    /// What the route says of the congestion window, once segments have their size.
    #[inline]
    pub(super) fn apply_window_metrics(&mut self) {
        if self.stats.apart.is_some() {
            self.apply_known_window();
        }
    }

    /// Takes the congestion window that is known of the route, if one is.
    #[inline(never)]
    fn apply_known_window(&mut self) {
        let Some(apart) = self.stats.apart.as_deref() else { return };
        let (initcwnd, ssthresh) = (apart.metrics.initcwnd, apart.metrics.ssthresh);
        self.sender.begin_window(initcwnd.unwrap_or(0), ssthresh);
    }

    /// What the route says of the receive buffer, octets; 0: nothing.
    pub(super) fn recv_pipe(&self, tunables: &Tunables) -> u32 {
        let mss = self.receiver.advertised_mss();
        self.stats.apart.as_deref().map_or(0, |apart| tunables.recv_pipe(&apart.metrics, mss))
    }
}
