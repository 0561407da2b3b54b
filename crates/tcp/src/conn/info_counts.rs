//! Counts of events that few connections have: what is sent again, time-outs, text that arrives in another order
//! than it was sent in, and waiting for a window or a buffer. It stands with what was set for a connection
//! alone, so that the others have no room for it.

use whimbrel_base::{Instant, Tick};

use crate::conn::limit::{Limit, LimitSpan};

/// Counts of retransmissions, time-outs and waits, as in `TCP_INFO`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TcpInfoCounts {
    /// Bytes of text sent again.
    pub bytes_retrans: u64,
    /// Segments sent again, SYNs included, wrapping.
    pub total_retrans: u32,
    /// Acknowledgments that told of text that the peer had already (RFC 2883), wrapping.
    pub dsack_dups: u32,
    /// Full segments that acknowledgments with ECE acknowledged (RFC 3168), rounded up, wrapping.
    pub delivered_ce: u32,
    /// Milliseconds in which the peer's window bounded sending ([`Limit::Window`]).
    window_limited: u32,
    /// Milliseconds in which the send buffer did ([`Limit::Buffer`]).
    buffer_limited: u32,
    /// Acknowledgments that told of text which had arrived after text that was sent later, wrapping.
    pub reorderings: u32,
    /// Retransmission time-outs, each repetition of one and those of a SYN included, wrapping. A SYN-ACK
    /// goes again before there is a connection.
    pub timeouts: u16,
    /// The number of of them were the first in a row, wrapping.
    pub recoveries: u16,
    /// Milliseconds from first time-outs until what was lost was acknowledged, wrapping.
    pub millis: u32,
    /// When the one began that is not over.
    since: Option<Tick>,
}

impl TcpInfoCounts {
    /// `segs` segments left again with `bytes` bytes of text.
    pub(super) fn on_sent_again(&mut self, bytes: u32, segs: u64) {
        self.total_retrans = self.total_retrans.wrapping_add(segs as u32);
        self.bytes_retrans += u64::from(bytes);
    }

    /// `limit` held for so long.
    pub(super) const fn on_limited(&mut self, limit: Limit, millis: u32) {
        let sum = match limit {
            Limit::Application | Limit::Network => return,
            Limit::Window => &mut self.window_limited,
            Limit::Buffer => &mut self.buffer_limited,
        };
        *sum = sum.wrapping_add(millis);
    }

    /// Milliseconds under this limit; 0 if it is counted elsewhere.
    pub(super) const fn limited(&self, limit: Limit) -> u32 {
        match limit {
            Limit::Application | Limit::Network => 0,
            Limit::Window => self.window_limited,
            Limit::Buffer => self.buffer_limited,
        }
    }

    /// The retransmission timer ran out, for the `attempt`th time in a row.
    pub(super) const fn on_timeout(&mut self, attempt: u8, now: Tick) {
        self.timeouts = self.timeouts.wrapping_add(1);
        if attempt <= 1 {
            self.recoveries = self.recoveries.wrapping_add(1);
        }
        if self.since.is_none() {
            self.since = Some(now);
        }
    }

    /// Notes that text arrived which the time-out took for lost.
    pub(super) fn on_recovered(&mut self, now: Tick) {
        if let Some(since) = self.since.take() {
            self.millis = self.millis.wrapping_add(now.millis_since(since));
        }
    }

    /// Returns these counts of a connection that `limit` holds up, with the time up to `now`.
    pub(super) fn until(mut self, limit: LimitSpan, now: Instant) -> Self {
        self.on_recovered(now.tick());
        self.on_limited(limit.limit, limit.millis(now.tick()));
        self
    }
}
