//! Segments that no connection sends: resets, handshakes, answers of dying records, echoes.

use alloc::collections::VecDeque;

use bytes::Bytes;
use whimbrel_base::cold_path;
use whimbrel_tcp::Reply;
use whimbrel_tcp::conn::Marking;
use whimbrel_tcp::table::SynEntry;
use whimbrel_wire::Address;

use crate::ip::{Datagram, ErrorOut, FlowKey};

/// A packet that waits to be sent and is no connection's segment.
#[derive(Debug)]
pub(crate) enum PendingReply {
    /// A segment that no connection sends: a reset or an acknowledgment.
    Reply(FlowKey, Reply, Marking),
    /// The SYN-ACK of a half-open entry.
    SynAck(u32),
    /// The SYN-ACK of a handshake that only a cookie remembers.
    SynCookie(SynEntry),
    /// An answer to an echo request, or what did not leave of it yet.
    Echo(Datagram),
    /// An echo request, or what did not leave of it yet.
    EchoRequest(Datagram),
    /// An ICMP error about a packet that was refused.
    Error(ErrorOut),
    /// An IP packet of its user's, unchanged.
    Packet(Bytes),
}

impl PendingReply {
    /// True if it leaves from `addr`, of which `local` is the number.
    fn is_from(&self, local: u16, addr: &Address) -> bool {
        match self {
            Self::Reply(key, ..) => key.local_index == local,
            Self::SynCookie(entry) => entry.local_index() == local,
            Self::Echo(echo) | Self::EchoRequest(echo) => echo.local() == addr,
            Self::Error(error) => error.local_index() == local,
            // Its entry went before.
            Self::SynAck(_) | Self::Packet(_) => false,
        }
    }

    /// Returns the most replies that may wait if it is to wait as well.
    #[inline]
    const fn most(&self) -> usize {
        match self {
            Self::SynAck(_) | Self::SynCookie(_) => Replies::MOST,
            _ => Replies::MOST - Replies::KEPT_FOR_OPENINGS,
        }
    }

    /// Returns the bytes of a received packet that it repeats.
    fn bytes(&self) -> usize {
        match self {
            Self::Reply(..) | Self::SynAck(_) | Self::SynCookie(_) => 0,
            Self::Echo(echo) | Self::EchoRequest(echo) => echo.bytes(),
            Self::Error(error) => error.bytes(),
            Self::Packet(packet) => packet.len(),
        }
    }
}

/// A queue: packets that provoke more than its bounds between two bursts out are not answered. Resets and echoes,
/// which any host provokes, leave some of it to SYN-ACKs: a client that misses one waits a second for the next.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    queue: VecDeque<PendingReply>,
    /// Of packets that are repeated.
    bytes: usize,
}

impl Replies {
    /// As many replies as sixteen bursts have frames.
    const MOST: usize = 1_024;
    /// Places that SYN-ACKs alone may have: four bursts of SYNs.
    const KEPT_FOR_OPENINGS: usize = 256;
    /// While the device takes nothing, 1,024 echoes of the largest packets would be 64 MiB.
    const MOST_BYTES: usize = 1 << 20;

    /// Queues it; returns whether there was room.
    #[inline]
    pub(crate) fn push(&mut self, pending: PendingReply) -> bool {
        let bytes = self.bytes + pending.bytes();
        let room = self.queue.len() < pending.most() && bytes <= Self::MOST_BYTES;
        if room {
            self.bytes = bytes;
            self.queue.push_back(pending);
        }
        room
    }

    /// Queues the last segment of a connection: there are no more of those than connections, however
    /// many end at once.
    pub(crate) fn push_unbounded(&mut self, pending: PendingReply) {
        self.bytes += pending.bytes();
        self.queue.push_back(pending);
    }

    /// Puts back the rest of what was popped.
    pub(crate) fn push_front(&mut self, pending: PendingReply) {
        self.bytes += pending.bytes();
        self.queue.push_front(pending);
    }

    /// The first to be sent.
    #[inline]
    pub(crate) fn first(&self) -> Option<&PendingReply> {
        self.queue.front()
    }

    /// Takes out the first, which repeats nothing of anybody's packet and holds no memory.
    #[inline]
    pub(crate) fn skip_front(&mut self) {
        // To drop it would be to ask once more what it is.
        core::mem::forget(self.queue.pop_front());
    }

    pub(crate) fn pop(&mut self) -> Option<PendingReply> {
        let pending = self.queue.pop_front()?;
        if self.bytes > 0 {
            cold_path();
            self.bytes -= pending.bytes();
        }
        Some(pending)
    }

    /// Drops what was to leave from this address of the host's own.
    pub(crate) fn forget(&mut self, local: u16, addr: &Address) {
        self.queue.retain(|pending| !pending.is_from(local, addr));
        self.bytes = self.queue.iter().map(PendingReply::bytes).sum();
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}
