//! What a UDP socket's tasks and its shard share: one cell, and in it a lock that only they take.
//!
//! Datagrams cross whole, in both directions, each bounded by a credit, as a stream's octets do
//! (`cell.rs`): what exceeds it waits in the shard's queue, where `SO_RCVBUF` bounds it, or makes the
//! sender wait.

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

/// The shared half of a UDP socket.
#[derive(Debug)]
pub(crate) struct UdpCell(Mutex<UdpState>);

/// What the lock guards. "Inward" is towards the shard, "outward" towards the tasks.
#[derive(Debug)]
pub(crate) struct UdpState {
    /// Tasks that wait for something to receive.
    pub(crate) readers: Waiters,
    /// Tasks that wait for room to send.
    pub(crate) writers: Waiters,
    outward: VecDeque<Received>,
    inward: VecDeque<Departing>,
    /// Bytes on their way outward.
    unread: usize,
    /// Bytes on their way inward.
    unsent: usize,
    /// What went wrong, until somebody was told.
    pub(crate) failure: Option<Failure>,
    /// What was last found of a destination.
    pub(crate) judged: Option<JudgedWay>,
    /// Why the stack has ended.
    over: Option<String>,
    /// What the shard knows it by, once it knows it.
    pub(crate) handle: Option<UdpHandle>,
    pub(crate) local: SocketAddr,
    pub(crate) peer: Option<SocketAddr>,
    /// What packets say of what is sent from now on.
    pub(crate) options: SendOptions,
    /// Sizes of the shard's queues that were asked for, until they are set.
    pub(crate) sizes: WantedSizes,
    /// The shard is to look, and was told so.
    is_dirty: bool,
    /// The shard has more for the tasks than there is credit for.
    is_starved: bool,
    pub(crate) is_dropped: bool,
}

/// What became of something that was sent.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: io::Error,
    told: Told,
}

/// Who is told what became of what was sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Told {
    /// Only `take_error`: it was sent to one of many, for which no call fails, or it may pass.
    Askers,
    /// The next call, of any kind: the socket is connected to where it was sent.
    Callers,
}

/// Sizes of queues that were asked for, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct WantedSizes {
    pub(crate) recv: Option<usize>,
    pub(crate) send: Option<usize>,
}

/// A datagram on its way to the shard.
#[derive(Debug)]
struct Departing {
    data: Bytes,
    send: SendTo,
}

impl UdpCell {
    /// Of a socket that the shard is yet to hear of.
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
            options: SendOptions::USUAL,
            sizes: WantedSizes::default(),
            is_dirty: false,
            is_starved: false,
            is_dropped: false,
        })))
    }

    /// Waits for any of what `interest` names.
    pub(crate) const fn ready(&self, interest: Interest) -> Readiness<'_, UdpState> {
        Readiness::new(&self.0, interest)
    }

    /// The state, which nobody else sees until the guard is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, UdpState> {
        readiness::lock(&self.0)
    }
}

/// What tasks find in the cell, and leave there.
impl UdpState {
    /// Whether a call that receives would not wait.
    pub(crate) fn is_readable(&self) -> bool {
        !self.outward.is_empty() || self.has_error()
    }

    /// Whether a call that sends would not wait.
    pub(crate) fn is_writable(&self) -> bool {
        self.has_room() || self.has_error()
    }

    /// Whether there is something to be told.
    pub(crate) fn has_error(&self) -> bool {
        self.over.is_some() || self.failure.as_ref().is_some_and(|it| it.told == Told::Callers)
    }

    /// What every call tells first: what went wrong, once; that the stack has ended, always.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        if let Some(failure) = self.failure.take_if(|it| it.told == Told::Callers) {
            return Err(failure.error);
        }
        self.over.as_ref().map_or(Ok(()), |why| Err(fault::ended(why)))
    }

    /// The datagram that came first; it stays.
    pub(crate) fn first(&mut self) -> io::Result<&Received> {
        if self.outward.is_empty() {
            self.check()?;
        }
        self.outward.front().ok_or_else(fault::would_block)
    }

    /// The same, and it is taken. The shard may be to look then.
    pub(crate) fn take_first(&mut self) -> io::Result<Taken> {
        // What had arrived before the error is not lost for it.
        let Some(received) = self.outward.pop_front() else {
            self.check()?;
            return Err(fault::would_block());
        };
        self.unread -= received.data.len() + COST;
        let_go_of(&mut self.outward);
        // Half, not any: a task that reads one at a time would wake its shard for each.
        let returns = self.is_starved && self.unread <= CREDIT / 2;
        let post = if returns { self.dirty() } else { None };
        Ok(Taken { received, post })
    }

    /// Leaves a datagram for the shard.
    pub(crate) fn leave(&mut self, data: &[u8], send: SendTo) -> io::Result<Option<UdpHandle>> {
        self.check()?;
        if !self.has_room() {
            return Err(fault::would_block());
        }
        self.unsent += data.len() + COST;
        self.inward.push_back(Departing { data: Bytes::copy_from_slice(data), send });
        Ok(self.dirty())
    }

    /// The shard is to look: whom to post, unless that was done.
    pub(crate) fn dirty(&mut self) -> Option<UdpHandle> {
        let handle = self.handle.filter(|_| !self.is_dirty)?;
        self.is_dirty = true;
        Some(handle)
    }

    fn has_room(&self) -> bool {
        self.unsent < CREDIT
    }
}

/// A datagram for a task, and whom to post.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) received: Received,
    pub(crate) post: Option<UdpHandle>,
}

/// What the shard takes from the cell, and leaves there.
impl UdpState {
    /// Moves what crosses, in both directions. Returns whether the socket is still held.
    pub(crate) fn exchange(
        &mut self,
        shard: &mut Shard,
        handle: UdpHandle,
        out: &mut Vec<Waker>,
    ) -> bool {
        self.is_dirty = false;
        self.set_sizes(shard, handle);
        if self.is_dropped {
            // What was sent leaves, whatever room there is for it.
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

    /// The stack has ended.
    pub(crate) fn on_lost(&mut self, why: String, out: &mut Vec<Waker>) {
        self.over = Some(why);
        self.readers.take_all(out);
        self.writers.take_all(out);
    }

    fn fail(&mut self, failure: Failure, out: &mut Vec<Waker>) {
        let told = failure.told;
        // What calls are to fail with is not hidden by what only concerns who asks.
        if self.failure.as_ref().is_none_or(|known| known.told <= told) {
            self.failure = Some(failure);
        }
        if told == Told::Callers {
            self.readers.take_all(out);
            self.writers.take_all(out);
        }
    }

    /// Inward: as long as the shard has room. If it has none, it tells when there is.
    fn push(&mut self, shard: &mut Shard, handle: UdpHandle, out: &mut Vec<Waker>) {
        let before = self.unsent;
        let peer = self.peer.map(Endpoint::from);
        while let Some(Departing { data, send }) = self.inward.front() {
            let len = data.len();
            let told = if send.to == peer { Told::Callers } else { Told::Askers };
            match shard.udp_send(handle, data.clone(), send) {
                Err(UdpError::Queue(QueueError::Full { .. })) => break,
                // What could be known was known when it was left here.
                Err(error) => self.fail(Failure { error: fault::udp(error), told }, out),
                Ok(()) => {}
            }
            self.inward.pop_front();
            self.unsent -= len + COST;
        }
        let_go_of(&mut self.inward);
        if self.unsent < before && self.unsent <= CREDIT / 2 {
            self.writers.take_all(out);
        }
    }

    /// Outward: as much as there is credit for.
    fn pull(&mut self, shard: &mut Shard, handle: UdpHandle, out: &mut Vec<Waker>) {
        let before = self.outward.len();
        self.is_starved = false;
        loop {
            if self.unread >= CREDIT {
                self.is_starved = true;
                break;
            }
            let Some(received) = shard.udp_recv(handle) else { break };
            self.unread += received.data.len() + COST;
            self.outward.push_back(received);
        }
        if self.outward.len() > before {
            self.readers.take_all(out);
        }
    }
}

/// The most bytes that wait in a cell, each way, and one datagram more.
const CREDIT: usize = 64 << 10;

/// What a datagram counts beside its data, bytes: its place in a queue that is half empty, and what an
/// allocator adds.
const COST: usize = 2 * LARGER + 32;
const LARGER: usize = if size_of::<Received>() < size_of::<Departing>() {
    size_of::<Departing>()
} else {
    size_of::<Received>()
};

/// An empty queue does not keep the places of a burst: whoever sends one could have each socket keep them.
fn let_go_of<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
}

/// Places that an empty queue keeps.
const KEPT: usize = 16;

#[cfg(test)]
mod tests;
