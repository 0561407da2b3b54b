//! An attempt to open, as its application sees it: what was tried, and what came back.

use core::time::Duration;

use whimbrel_base::Instant;
use whimbrel_base::packet::SoftError;

use crate::conn::Connection;

/// The state of an attempt to open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// SYNs sent, repetitions included.
    pub syns: u32,
    /// The time since it began, to a millisecond.
    pub lasted: Duration,
    /// The number of of our SYNs the peer answered for an old connection of the same ends, which it
    /// keeps (TIME-WAIT, most often) or believes to be there.
    pub challenges: u8,
    /// The last report of a router.
    pub soft_error: Option<SoftError>,
}

impl Connection {
    /// The attempt to open, while it lasts or after it failed. Once the connection is open, the figures mean
    /// other things.
    pub fn attempt(&self, now: Instant) -> Attempt {
        let tcb = &self.transfer.tcb;
        // No text has been sent: this is when the connection began.
        let millis = now.tick().millis_since(tcb.sender.text_sent);
        Attempt {
            syns: tcb.tally(now).segs_out,
            lasted: Duration::from_millis(u64::from(millis)),
            challenges: tcb.counts.stats.as_deref().map_or(0, |stats| stats.syn_challenges),
            soft_error: self.soft_error(),
        }
    }
}
