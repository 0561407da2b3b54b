//! Connections that Fast Open began, until their handshake is over.
//!
//! A peer that resets such a connection gains by it: the next SYN finds room, and the answer to the
//! first was sent for nothing. So a reset one counts against its listener for as long as a handshake
//! may take (RFC 7413 5.1).

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use whimbrel_base::Instant;

use super::{ListenerId, Listeners, Service};

/// Which connections of a shard are in a handshake of Fast Open.
#[derive(Debug, Default)]
pub struct FastOpens {
    /// By the place of the connection.
    under_way: BTreeMap<u32, Opened>,
    /// When each was reset, oldest first.
    resets: VecDeque<(Instant, ListenerId)>,
}

/// The side that opened a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opened {
    /// A peer, whose cookie was valid, towards this listener.
    ByPeer(ListenerId),
    /// This side, towards this service.
    ByUs(Service),
}

impl FastOpens {
    /// The time for which a connection counts that its peer reset: Linux' 60 s.
    pub const RESET_COUNTS: Duration = Duration::from_secs(60);

    /// The connection at this place begins.
    pub fn begin(&mut self, place: u32, opened: Opened) {
        self.under_way.insert(place, opened);
    }

    /// Its handshake is over; returns who began it, if anybody did by Fast Open.
    pub fn end(&mut self, place: u32) -> Option<Opened> {
        self.under_way.remove(&place)
    }

    /// A peer's reset ended one: it goes on to count.
    pub fn on_reset(&mut self, listener: ListenerId, now: Instant) {
        self.resets.push_back((now, listener));
    }

    /// Releases those that were reset long enough ago, a few at a time: a caller that needs room calls
    /// again and again.
    pub fn forget_resets(&mut self, listeners: &mut Listeners, now: Instant) {
        for _ in 0..BUDGET {
            match self.resets.front() {
                Some((since, listener)) if now.since(*since) >= Self::RESET_COUNTS => {
                    listeners.release_fast_open(*listener);
                    self.resets.pop_front();
                }
                _ => return,
            }
        }
    }

    /// The number of are under way.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }

    /// True if no handshake is under way.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }
}

/// Resets that are forgotten for one SYN: more than one, so that their number falls.
const BUDGET: usize = 16;
