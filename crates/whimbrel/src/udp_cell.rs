//! The state that a UDP socket's tasks and its shard share: one cell, whose lock only these take.
//!
//! Datagrams pass whole, in each direction up to a credit, as a stream's bytes do (`cell.rs`).
//! Datagrams beyond the credit wait in the shard's queue, which `SO_RCVBUF` bounds, or make the sender
//! wait.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use bytes::Bytes;
use tokio::io::Interest;
use whimbrel_stack::{SendTo, Shard, UdpError, UdpHandle};
use whimbrel_udp::{QueueError, Received, SendOptions};
use whimbrel_wire::Endpoint;

use crate::fault;
use crate::readiness::{self, Readiness};
use crate::waiters::Waiters;
use crate::ways::JudgedWay;

/// Shared half of a UDP socket.
#[derive(Debug)]
pub(crate) struct UdpCell(Mutex<UdpState>);

/// State behind the lock. "Inward" is towards the shard, "outward" towards the tasks.
#[derive(Debug)]
pub(crate) struct UdpState {
    /// Tasks that wait to receive.
    pub(crate) readers: Waiters,
    /// Tasks that wait for room to send.
    pub(crate) writers: Waiters,
    outward: VecDeque<Received>,
    inward: VecDeque<Departing>,
    /// Bytes queued outward.
    unread: usize,
    /// Bytes queued inward.
    unsent: usize,
    /// Error, until it is reported.
    pub(crate) failure: Option<Failure>,
    /// Last result for a destination.
    pub(crate) judged: Option<JudgedWay>,
    /// Reason why the stack has ended.
    over: Option<String>,
    /// The shard's handle of the socket, once it has one.
    pub(crate) handle: Option<UdpHandle>,
    pub(crate) local: SocketAddr,
    pub(crate) peer: Option<SocketAddr>,
    /// Packet fields of future datagrams.
    pub(crate) options: SendOptions,
    /// Requested sizes of the shard's queues, until they are set.
    pub(crate) sizes: WantedSizes,
    /// True if the handle is posted to the shard.
    is_dirty: bool,
    /// True if the shard has more data for the tasks than there is credit for.
    is_starved: bool,
    pub(crate) is_dropped: bool,
}

/// Error of an earlier datagram.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: io::Error,
    told: Told,
}

/// Calls that report an error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Told {
    /// Only `take_error`: it concerns one of many destinations, or it is transient.
    Askers,
    /// The next call, of any kind: the socket is connected to the destination.
    Callers,
}

/// Requested sizes of queues in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct WantedSizes {
    pub(crate) recv: Option<usize>,
    pub(crate) send: Option<usize>,
}

/// A datagram queued for the shard.
#[derive(Debug)]
struct Departing {
    data: Bytes,
    send: SendTo,
}

impl UdpCell {
    /// Creates the cell of a socket that the shard does not know yet.
    pub(crate) fn new(local: SocketAddr) -> Arc<Self> {
        Arc::new(Self(Mutex::new(UdpState {
            readers: Waiters::default(),
            writers: Waiters::default(),
            outward: VecDeque::new(),
            inward: VecDeque::new(),
            unread: 0,
            unsent: 0,
            failure: None,
            judged: None,
            over: None,
            handle: None,
            local,
            peer: None,
            options: SendOptions::new(),
            sizes: WantedSizes::default(),
            is_dirty: false,
            is_starved: false,
            is_dropped: false,
        })))
    }

    /// Waits for any event of `interest`.
    pub(crate) const fn ready(&self, interest: Interest) -> Readiness<'_, UdpState> {
        Readiness::new(&self.0, interest)
    }

    /// Locks the state.
    pub(crate) fn lock(&self) -> MutexGuard<'_, UdpState> {
        readiness::lock(&self.0)
    }
}

/// The tasks' side.
impl UdpState {
    /// True if a receiving call would not wait.
    pub(crate) fn is_readable(&self) -> bool {
        !self.outward.is_empty() || self.has_error()
    }

    /// True if a sending call would not wait.
    pub(crate) fn is_writable(&self) -> bool {
        self.has_room() || self.has_error()
    }

    /// True if an error waits to be reported.
    pub(crate) fn has_error(&self) -> bool {
        self.over.is_some() || self.failure.as_ref().is_some_and(|it| it.told == Told::Callers)
    }

    /// Fails with the pending error, once, or if the stack has ended.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        if let Some(failure) = self.failure.take_if(|it| it.told == Told::Callers) {
            return Err(failure.error);
        }
        self.over.as_ref().map_or(Ok(()), |why| Err(fault::ended(why)))
    }

    /// Returns the first datagram without removing it.
    pub(crate) fn first(&mut self) -> io::Result<&Received> {
        if self.outward.is_empty() {
            self.check()?;
        }
        self.outward.front().ok_or_else(fault::would_block)
    }

    /// Removes and returns the first datagram. The caller posts the handle in it, if any.
    pub(crate) fn take_first(&mut self) -> io::Result<Taken> {
        // Datagrams that arrived before the error are not lost.
        let Some(received) = self.outward.pop_front() else {
            self.check()?;
            return Err(fault::would_block());
        };
        self.unread -= received.data.len() + Received::OVERHEAD;
        shrink(&mut self.outward);
        // At half only: a task that reads single datagrams would otherwise wake its shard for each.
        let returns = self.is_starved && self.unread <= CREDIT / 2;
        let post = if returns { self.dirty() } else { None };
        Ok(Taken { received, post })
    }

    /// Queues a datagram for the shard.
    pub(crate) fn leave(&mut self, data: &[u8], send: SendTo) -> io::Result<Option<UdpHandle>> {
        self.check()?;
        if !self.has_room() {
            return Err(fault::would_block());
        }
        self.unsent += data.len() + COST;
        self.inward.push_back(Departing { data: Bytes::copy_from_slice(data), send });
        Ok(self.dirty())
    }

    /// Marks the cell dirty. Returns the handle to post, unless it is posted already.
    pub(crate) fn dirty(&mut self) -> Option<UdpHandle> {
        let handle = self.handle.filter(|_| !self.is_dirty)?;
        self.is_dirty = true;
        Some(handle)
    }

    fn has_room(&self) -> bool {
        self.unsent < CREDIT
    }
}

/// A datagram for a task, and the handle to post.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) received: Received,
    pub(crate) post: Option<UdpHandle>,
}

/// The shard's side.
impl UdpState {
    /// Moves datagrams in both directions. Returns true if the socket is still held.
    pub(crate) fn exchange(
        &mut self,
        shard: &mut Shard,
        handle: UdpHandle,
        out: &mut Vec<Waker>,
    ) -> bool {
        self.is_dirty = false;
        self.set_sizes(shard, handle);
        if self.is_dropped {
            // Datagrams that were sent leave, even beyond the queue's size.
            shard.udp_set_send_size(handle, usize::MAX);
            self.push(shard, handle, out);
            shard.udp_close(handle);
            return false;
        }
        self.push(shard, handle, out);
        self.pull(shard, handle, out);
        if let Some(error) = shard.udp_take_error(handle) {
            let told = if error.is_hard() { Told::Callers } else { Told::Askers };
            self.fail(Failure { error: fault::udp_told(error, self.peer), told }, out);
        }
        true
    }

    fn set_sizes(&mut self, shard: &mut Shard, handle: UdpHandle) {
        let WantedSizes { recv, send } = std::mem::take(&mut self.sizes);
        if let Some(bytes) = recv {
            shard.udp_set_recv_size(handle, bytes);
        }
        if let Some(bytes) = send {
            shard.udp_set_send_size(handle, bytes);
        }
    }

    /// Records that the stack has ended.
    pub(crate) fn on_lost(&mut self, why: String, out: &mut Vec<Waker>) {
        self.over = Some(why);
        self.readers.take_all(out);
        self.writers.take_all(out);
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Waker>) {
        let told = failure.told;
        // An error for all calls is not replaced by one for `take_error` only.
        if self.failure.as_ref().is_none_or(|known| known.told <= told) {
            self.failure = Some(failure);
        }
        if told == Told::Callers {
            self.readers.take_all(out);
            self.writers.take_all(out);
        }
    }

    /// Moves datagrams inward while the shard has room; the shard reports new room by an event.
    fn push(&mut self, shard: &mut Shard, handle: UdpHandle, out: &mut Vec<Waker>) {
        let before = self.unsent;
        let peer = self.peer.map(Endpoint::from);
        while let Some(Departing { data, send }) = self.inward.front() {
            let len = data.len();
            let told = if send.to == peer { Told::Callers } else { Told::Askers };
            match shard.udp_send(handle, data.clone(), send) {
                Err(UdpError::Queue(QueueError::Full { .. })) => break,
                // Errors that a task could find were found when it was queued.
                Err(error) => self.fail(Failure { error: fault::udp(error), told }, out),
                Ok(()) => {}
            }
            self.inward.pop_front();
            self.unsent -= len + COST;
        }
        shrink(&mut self.inward);
        if self.unsent < before && self.unsent <= CREDIT / 2 {
            self.writers.take_all(out);
        }
    }

    /// Moves datagrams outward, as far as there is credit.
    fn pull(&mut self, shard: &mut Shard, handle: UdpHandle, out: &mut Vec<Waker>) {
        let before = self.outward.len();
        self.is_starved = false;
        loop {
            if self.unread >= CREDIT {
                self.is_starved = true;
                break;
            }
            let Some(received) = shard.udp_recv(handle) else { break };
            self.unread += received.data.len() + Received::OVERHEAD;
            self.outward.push_back(received);
        }
        if self.outward.len() > before {
            self.readers.take_all(out);
        }
    }
}

/// Limit of bytes in a cell, each way, exceeded by at most one datagram.
const CREDIT: usize = 64 << 10;

/// Bytes that a datagram to be sent counts in addition to its data: its place in a half-empty queue and
/// the allocator's overhead.
const COST: usize = 2 * size_of::<Departing>() + 64;

/// Shrinks an empty queue, so that bursts do not fill memory with the places of many sockets.
fn shrink<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
}

/// Places that an empty queue keeps.
const KEPT: usize = 16;

#[cfg(test)]
mod tests;
