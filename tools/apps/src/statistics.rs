//! Counters of a server of any kind.

/// Counters of a server. Those that its protocol has no use for stay 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Connections accepted since the server began.
    pub accepted: u64,
    /// Connections open now.
    pub open: usize,
    /// Requests answered: responses begun over HTTP; pieces echoed, responses and sums of a server
    /// of bytes; tests of iperf3 that were completed or refused.
    pub requests: u64,
    /// Requests refused: responses with a status of 400 or more; connections to a busy server of
    /// iperf3, and its tests.
    pub refused: u64,
    /// Connections that were reset, by either side, or timed out; tests of iperf3 that failed, and
    /// connections without a cookie.
    pub failed: u64,
    /// Connections closed because they were idle for [`Limits::idle`](crate::http::Limits::idle).
    pub silent: u64,
    /// Connections closed because the head of a request took longer than
    /// [`Limits::head_time`](crate::http::Limits::head_time).
    pub slow_heads: u64,
    /// Bytes received: heads and bodies.
    pub received: u64,
    /// Bytes passed to the stack: heads and bodies.
    pub sent: u64,
}

whimbrel_base::sums! {
    /// Adds the counters of another server.
    Statistics { accepted, open, requests, refused, failed, silent, slow_heads, received, sent }
}
