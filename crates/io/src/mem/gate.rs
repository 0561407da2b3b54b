//! Interference of tests with packets in front of a link: judge, drop, hold, unplug.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_link::{Link, LinkOutcome, Loss};

/// Decision of a rule ([`LinkHandle::on`](super::LinkHandle::on)) on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PacketVerdict {
    /// The packet enters the link.
    Pass,
    /// The packet is lost.
    Drop,
    /// The packet enters the link twice.
    Duplicate,
}

/// A rule that judges packets. It has a lock of its own, so that it may use the handle of its link.
#[derive(Clone)]
pub(super) struct Rule(Arc<Mutex<Judge>>);

type Judge = dyn FnMut(&[u8]) -> PacketVerdict + Send;

/// State in front of a link.
#[derive(Default, Debug)]
pub(super) struct Gate {
    pub(super) rule: Option<Rule>,
    /// Number of packets to drop.
    pub(super) drops: u64,
    /// Packets that wait, while the link is held.
    held: Option<VecDeque<Bytes>>,
    held_bytes: u64,
    /// True if nothing is connected: packets are lost.
    pub(super) is_unplugged: bool,
}

impl Rule {
    pub(super) fn new(judge: impl FnMut(&[u8]) -> PacketVerdict + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(judge)))
    }

    /// Judges a packet. Call it without a lock of the line.
    pub(super) fn judge(&self, packet: &[u8]) -> PacketVerdict {
        // After a panic the rule is called no more: its worker has ended.
        let mut judge = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        judge(packet)
    }
}

impl Gate {
    /// Passes a packet to the link, unless it is lost here or waits. Returns its outcome, if known.
    pub(super) fn enter(
        &mut self,
        link: &mut Link,
        now: Instant,
        packet: Bytes,
    ) -> Option<LinkOutcome> {
        if self.is_unplugged {
            return Some(link.lose(&packet, Loss::Down));
        }
        if self.drops > 0 {
            self.drops -= 1;
            return Some(link.lose(&packet, Loss::Targeted));
        }
        let Some(held) = &mut self.held else { return Some(link.push_frame(now, packet)) };
        let bytes = packet.len() as u64 + size_of::<Bytes>() as u64;
        if self.held_bytes + bytes > Link::MAX_BYTES {
            return Some(link.lose(&packet, Loss::Crowded));
        }
        self.held_bytes += bytes;
        held.push_back(packet);
        None
    }

    /// Holds packets from now on.
    pub(super) fn hold(&mut self) {
        self.held.get_or_insert_default();
    }

    /// Holds no more packets, and returns those that wait.
    pub(super) fn release(&mut self) -> VecDeque<Bytes> {
        self.held_bytes = 0;
        self.held.take().unwrap_or_default()
    }

    /// Loses the packets that wait. The link stays held.
    pub(super) fn lose_held(&mut self, link: &mut Link) {
        for packet in self.held.iter_mut().flat_map(|held| held.drain(..)) {
            link.lose(&packet, Loss::Down);
        }
        self.held_bytes = 0;
    }

    /// Returns the number of packets that wait.
    pub(super) fn waiting(&self) -> usize {
        self.held.as_ref().map_or(0, VecDeque::len)
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
