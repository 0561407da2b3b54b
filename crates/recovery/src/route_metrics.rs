//! Metrics of a route: values that connections over it begin with.

use core::time::Duration;

use crate::cc::Algorithm;

/// Path metrics of one route, known beforehand. `None`: not known.
///
/// A metric never takes from a connection what it would have without: it raises the initial windows and
/// the floors of buffers, bounds segments, and stands in for what was not measured yet. Only by
/// `buffers = route` the pipes replace what the application asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RouteMetrics {
    /// The largest IP packet that the paths carry, bytes; more than the link's counts as that.
    pub mtu: Option<u16>,
    /// The most that is announced as MSS, bytes.
    pub advmss: Option<u16>,
    /// The initial congestion window, full segments.
    pub initcwnd: Option<u16>,
    /// The receive buffer of a new connection, and so its first window once that is scaled, full
    /// segments.
    pub initrwnd: Option<u16>,
    /// The round trip that the estimate begins with, unless one was measured by then.
    pub rtt: Option<Duration>,
    /// ssthresh of a new connection, bytes: where its slow start ends.
    pub ssthresh: Option<u32>,
    /// The send buffer, bytes.
    pub sendpipe: Option<u32>,
    /// The receive buffer, bytes.
    pub recvpipe: Option<u32>,
    /// The congestion control of connections whose socket or listener names none.
    pub congestion: Option<Algorithm>,
}

impl RouteMetrics {
    /// Its own metrics, and those of `other` where it has none.
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
}
