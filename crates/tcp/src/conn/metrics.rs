//! What a route says of the paths that lead over it.

use core::time::Duration;

use super::Connection;
use crate::cc::Algorithm;
use crate::tunables::BufferPolicy;
use crate::{Context, Tunables};

/// What is known of the paths over one route, beforehand. `None`: nothing.
///
/// A metric never takes from a connection what it would have without: it raises the initial windows and
/// the floors of buffers, bounds segments, and stands in for what was not measured yet. Only by
/// `buffers = route` the pipes replace what the application asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RouteMetrics {
    /// The largest IP packet that the paths carry, octets; more than the link's counts as that.
    pub mtu: Option<u16>,
    /// The most that is announced as MSS, octets.
    pub advmss: Option<u16>,
    /// The initial congestion window, full segments.
    pub initcwnd: Option<u16>,
    /// The receive buffer of a new connection, and so its first window once that is scaled, full
    /// segments.
    pub initrwnd: Option<u16>,
    /// The round trip that the estimate begins with, unless one was measured by then.
    pub rtt: Option<Duration>,
    /// ssthresh of a new connection, octets: where its slow start ends.
    pub ssthresh: Option<u32>,
    /// The send buffer, octets.
    pub sendpipe: Option<u32>,
    /// The receive buffer, octets.
    pub recvpipe: Option<u32>,
    /// The congestion control of connections whose socket or listener names none.
    pub congestion: Option<Algorithm>,
}

impl RouteMetrics {
    /// What this says, and where it says nothing, what `other` does.
    pub fn or(self, other: Self) -> Self {
        Self {
            mtu: self.mtu.or(other.mtu),
            advmss: self.advmss.or(other.advmss),
            initcwnd: self.initcwnd.or(other.initcwnd),
            initrwnd: self.initrwnd.or(other.initrwnd),
            rtt: self.rtt.or(other.rtt),
            ssthresh: self.ssthresh.or(other.ssthresh),
            sendpipe: self.sendpipe.or(other.sendpipe),
            recvpipe: self.recvpipe.or(other.recvpipe),
            congestion: self.congestion.or(other.congestion),
        }
    }

    /// What it says of send buffers, octets; 0: nothing.
    pub(super) fn send_pipe(&self) -> u32 {
        self.sendpipe.unwrap_or(0)
    }

    /// What it says of receive buffers of connections that announce `mss`, octets; 0: nothing.
    pub fn recv_pipe(&self, mss: u16, tunables: &Tunables) -> u32 {
        let recvpipe = self.recvpipe.unwrap_or(0);
        if tunables.buffers == BufferPolicy::Route {
            return recvpipe;
        }
        recvpipe.max(u32::from(self.initrwnd.unwrap_or(0)) * u32::from(mss))
    }
}

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
        self.stats.apart.as_deref().map_or(0, |apart| apart.metrics.recv_pipe(mss, tunables))
    }
}
