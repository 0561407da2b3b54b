//! Metrics of a route: values that connections over it begin with.

use core::time::Duration;

use crate::cc::Algorithm;

/// Path metrics of one route, known beforehand. `None`: not known.
///
/// A metric never takes from a connection what it would have without: it raises the initial windows and
/// the floors of buffers, bounds segments, and stands in for what was not measured yet. Only by
/// `buffers = route` the pipes replace what the application asked for.
///
/// ```
/// use whimbrel_recovery::RouteMetrics;
///
/// let fast = RouteMetrics::new().with_initcwnd(30).with_ssthresh(1 << 20);
/// assert_eq!((fast.initcwnd, fast.mtu), (Some(30), None));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
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
    /// Returns metrics in which the route sets nothing, for the `with_` methods.
    pub const fn new() -> Self {
        Self {
            mtu: None,
            advmss: None,
            initcwnd: None,
            initrwnd: None,
            rtt: None,
            ssthresh: None,
            sendpipe: None,
            recvpipe: None,
            congestion: None,
        }
    }

    /// Sets [`mtu`](Self::mtu): the largest IP packet, bytes.
    #[must_use]
    pub const fn with_mtu(mut self, mtu: u16) -> Self {
        self.mtu = Some(mtu);
        self
    }

    /// Sets [`advmss`](Self::advmss): the largest announced MSS, bytes.
    #[must_use]
    pub const fn with_advmss(mut self, advmss: u16) -> Self {
        self.advmss = Some(advmss);
        self
    }

    /// Sets [`initcwnd`](Self::initcwnd): the initial congestion window, full segments.
    #[must_use]
    pub const fn with_initcwnd(mut self, initcwnd: u16) -> Self {
        self.initcwnd = Some(initcwnd);
        self
    }

    /// Sets [`initrwnd`](Self::initrwnd): the first receive buffer, full segments.
    #[must_use]
    pub const fn with_initrwnd(mut self, initrwnd: u16) -> Self {
        self.initrwnd = Some(initrwnd);
        self
    }

    /// Sets [`rtt`](Self::rtt): the first estimate of the round trip.
    #[must_use]
    pub const fn with_rtt(mut self, rtt: Duration) -> Self {
        self.rtt = Some(rtt);
        self
    }

    /// Sets [`ssthresh`](Self::ssthresh): ssthresh of a new connection, bytes.
    #[must_use]
    pub const fn with_ssthresh(mut self, ssthresh: u32) -> Self {
        self.ssthresh = Some(ssthresh);
        self
    }

    /// Sets [`sendpipe`](Self::sendpipe): the send buffer, bytes.
    #[must_use]
    pub const fn with_sendpipe(mut self, sendpipe: u32) -> Self {
        self.sendpipe = Some(sendpipe);
        self
    }

    /// Sets [`recvpipe`](Self::recvpipe): the receive buffer, bytes.
    #[must_use]
    pub const fn with_recvpipe(mut self, recvpipe: u32) -> Self {
        self.recvpipe = Some(recvpipe);
        self
    }

    /// Sets [`congestion`](Self::congestion): the congestion control.
    #[must_use]
    pub const fn with_congestion(mut self, congestion: Algorithm) -> Self {
        self.congestion = Some(congestion);
        self
    }

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
