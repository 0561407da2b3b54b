//! Segments that no connection sends: resets, handshakes, answers of dying records, echoes.

use alloc::collections::VecDeque;

use whimbrel_tcp::Reply;
use whimbrel_tcp::conn::Marking;
use whimbrel_tcp::table::SynEntry;

use crate::ip::{Datagram, ErrorOut, FlowKey};

/// What waits to be sent beside the connections' segments.
#[derive(Debug)]
pub(crate) enum Pending {
    /// A stateless segment.
    Reply(FlowKey, Reply, Marking),
    /// The SYN-ACK of a half-open entry.
    SynAck(u32),
    /// The SYN-ACK of a handshake that only a cookie remembers.
    SynCookie(SynEntry),
    /// An answer to an echo request, or what did not leave of it yet.
    Echo(Datagram),
    /// An ICMP error.
    Error(ErrorOut),
}

/// A queue: whoever provokes more than its bound between two bursts out is not answered.
#[derive(Debug, Default)]
pub(crate) struct Replies(VecDeque<Pending>);

impl Replies {
    /// Sixteen bursts' worth.
    const MOST: usize = 1024;

    /// Queues it; returns whether there was room.
    pub(crate) fn push(&mut self, pending: Pending) -> bool {
        let room = self.0.len() < Self::MOST;
        if room {
            self.0.push_back(pending);
        }
        room
    }

    /// Queues the last segment of a connection: there are no more of those than connections, however
    /// many end at once.
    pub(crate) fn push_own(&mut self, pending: Pending) {
        self.0.push_back(pending);
    }

    /// Puts back the rest of what was popped.
    pub(crate) fn put_back(&mut self, pending: Pending) {
        self.0.push_front(pending);
    }

    pub(crate) fn pop(&mut self) -> Option<Pending> {
        self.0.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
