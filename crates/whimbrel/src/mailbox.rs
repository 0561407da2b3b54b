//! The mailbox of a shard: posted streams, requests, and the waker of its worker.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, atomic};

use crossbeam_queue::SegQueue;
use tokio::sync::{Notify, oneshot};
use whimbrel_io::Waker;
use whimbrel_stack::{Handle, Shard, UdpHandle};
use whimbrel_wire::{Address, Endpoint};

use crate::address_port::AddressCheck;
use crate::backlog::Backlog;
use crate::cell::StreamCell;
use crate::congestion::CongestionNames;
use crate::dials::AnyRequest;
use crate::fault;
use crate::ping_port::PingRequest;
use crate::udp_port::UdpRequest;
use crate::unclaimed_sender::UnclaimedSender;
use crate::waiters::{guarded, wake_all};
use crate::ways::Ways;
use worker_state::WorkerState;

mod worker_state;

/// Mailbox of one shard. Any thread posts; only its worker takes out.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Dirty streams, each once.
    streams: SegQueue<Handle>,
    /// Dirty UDP sockets, each once.
    udp: SegQueue<UdpHandle>,
    /// Requests for rare events, at most about one in a connection's life.
    requests: SegQueue<Request>,
    waker: Waker,
    worker_state: WorkerState,
    congestion_names: CongestionNames,
    /// Routes and path MTUs of its shard.
    ways: Ways,
    /// Addresses that its shard got while it ran, by the shard's index.
    added: RwLock<BTreeMap<u16, Address>>,
    /// Reason why the worker ended.
    ended: OnceLock<String>,
    /// Notifies waiting tasks of the end.
    end: Notify,
}

/// A request to a shard.
pub(crate) enum Request {
    /// Open a connection for a cell.
    Connect(Box<Connect>),
    /// Start listening for this backlog.
    Listen(Arc<Backlog>),
    /// Update a listener that has room, changed its settings or was dropped.
    Backlog(Arc<Backlog>),
    /// A request about connections to any destination.
    Any(AnyRequest),
    /// Bind or connect a UDP socket.
    Udp(UdpRequest),
    /// Inspect or change the shard.
    Inspect(InspectFn),
    /// Notify when the connections of dropped streams have ended.
    Drain(oneshot::Sender<()>),
    /// Forward unclaimed packets.
    UnclaimedPackets(UnclaimedSender),
    /// Check that an address is free.
    Check(AddressCheck),
    /// Send an echo request.
    Ping(PingRequest),
}

/// A query or change of a shard, called on its thread.
pub(crate) type InspectFn = Box<dyn FnOnce(&mut Shard, Held) + Send>;

/// A connection to be opened.
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) cell: Arc<StreamCell>,
    pub(crate) remote: Endpoint,
    pub(crate) local: Option<Endpoint>,
    /// True if the SYN carries the data in the cell, if the peer takes it.
    pub(crate) fast: bool,
}

/// Numbers of a shard's objects that tasks hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// Streams, one cell each.
    pub(crate) streams: usize,
    /// Listeners, one backlog each.
    pub(crate) listeners: usize,
    /// UDP sockets, one cell each.
    pub(crate) udp_sockets: usize,
}

impl Mailbox {
    /// Creates the mailbox of the worker that `waker` wakes.
    pub(crate) fn new(waker: Waker, congestion_names: CongestionNames, ways: Ways) -> Self {
        Self {
            congestion_names,
            ways,
            added: RwLock::default(),
            streams: SegQueue::new(),
            udp: SegQueue::new(),
            requests: SegQueue::new(),
            waker,
            worker_state: WorkerState::new(),
            ended: OnceLock::new(),
            end: Notify::new(),
        }
    }

    /// Returns the congestion controls of its stack.
    pub(crate) fn congestion_names(&self) -> &CongestionNames {
        &self.congestion_names
    }

    /// Returns the routes and path MTUs of its shard.
    pub(crate) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Records that its shard has `addr` under this index.
    pub(crate) fn note_address(&self, index: u16, addr: Address) {
        self.added.write().unwrap_or_else(PoisonError::into_inner).insert(index, addr);
    }

    /// Returns the address that its shard got under this index while it ran. An index is not reused
    /// while a connection from its former address exists.
    pub(crate) fn added_address(&self, index: u16) -> Option<Address> {
        self.added.read().unwrap_or_else(PoisonError::into_inner).get(&index).copied()
    }

    /// Posts a dirty stream. The caller must hold no lock.
    pub(crate) fn post(&self, handle: Handle) {
        // If the worker has ended, every cell with a handle knows it.
        if self.worker_state.has_ended() {
            return;
        }
        // The waker after the queue: a worker that is about to sleep looks once more.
        self.streams.push(handle);
        self.waker.wake();
    }

    /// Posts a dirty UDP socket. The caller must hold no lock.
    pub(crate) fn post_udp(&self, handle: UdpHandle) {
        if self.worker_state.has_ended() {
            return;
        }
        self.udp.push(handle);
        self.waker.wake();
    }

    /// Posts a request. The caller must hold no lock.
    pub(crate) fn ask(&self, request: Request) {
        self.requests.push(request);
        self.waker.wake();
        if self.worker_state.has_ended_since() {
            self.refuse_all();
        }
    }

    /// Records that the stack itself is no longer held; the worker ends when nothing of it is left.
    pub(crate) fn close(&self) {
        self.worker_state.close();
        self.waker.wake();
    }

    /// True if [`Mailbox::close`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        self.worker_state.is_closing()
    }

    /// Records that the worker has ended; all requests are refused from now on.
    pub(crate) fn end(&self, why: String) {
        let _ = self.ended.set(why);
        self.worker_state.end();
        self.refuse_all();
        guarded(|| self.end.notify_waiters());
    }

    /// Waits until the worker has ended.
    pub(crate) async fn until_ended(&self) {
        // Registered before the look, so that an end in between is not missed.
        let end = self.end.notified();
        if self.ended.get().is_none() {
            end.await;
        }
    }

    /// Returns the error of calls on a stack that has ended.
    pub(crate) fn ended(&self) -> io::Error {
        fault::ended(&self.why_ended())
    }

    /// Returns the reason of the end as text.
    pub(crate) fn why_ended(&self) -> String {
        self.ended.get().map_or_else(|| "its worker stopped".into(), Clone::clone)
    }

    /// Returns the error of the end, if it has ended.
    pub(crate) fn ended_already(&self) -> Option<io::Error> {
        self.ended.get().map(|why| fault::ended(why))
    }

    pub(crate) fn next_stream(&self) -> Option<Handle> {
        self.streams.pop()
    }

    pub(crate) fn next_udp(&self) -> Option<UdpHandle> {
        self.udp.pop()
    }

    pub(crate) fn next_request(&self) -> Option<Request> {
        self.requests.pop()
    }

    /// True if no stream, UDP socket or request waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty() && self.udp.is_empty() && self.requests.is_empty()
    }

    fn refuse_all(&self) {
        let mut woken = Vec::new();
        while let Some(request) = self.requests.pop() {
            match request {
                Request::Connect(connect) => {
                    connect.cell.lock().on_lost(self.ended(), &mut woken);
                }
                Request::Listen(backlog) | Request::Backlog(backlog) => {
                    backlog.lock().on_lost(self.ended(), &mut woken);
                }
                // The caller sees that the reply never comes.
                Request::Any(_)
                | Request::Udp(_)
                | Request::Inspect(_)
                | Request::Drain(_)
                | Request::UnclaimedPackets(_)
                | Request::Check(_)
                | Request::Ping(_) => {}
            }
        }
        wake_all(&mut woken);
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect(_) => "Connect",
            Self::Listen(_) => "Listen",
            Self::Backlog(_) => "Backlog",
            Self::Any(_) => "Any",
            Self::Udp(_) => "Udp",
            Self::Inspect(_) => "Inspect",
            Self::Drain(_) => "Drain",
            Self::UnclaimedPackets(_) => "Unclaimed",
            Self::Check(_) => "Check",
            Self::Ping(_) => "Ping",
        })
    }
}
