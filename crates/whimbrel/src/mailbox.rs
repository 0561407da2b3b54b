//! The way into a shard: a queue of streams to look at, one of requests, and what wakes it.

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

/// The way into one shard. Anybody puts something in, its worker alone takes out.
#[derive(Debug)]
pub(crate) struct Mailbox {
    /// Cells that are dirty, each once.
    streams: SegQueue<Handle>,
    /// The same of UDP sockets.
    udp: SegQueue<UdpHandle>,
    /// Everything that happens once in a connection's life, or less often.
    requests: SegQueue<Request>,
    waker: Waker,
    worker_state: WorkerState,
    congestion_names: CongestionNames,
    /// What its shard knows of its ways out.
    ways: Ways,
    /// The addresses that its shard got while it ran, by the numbers that it knows them by.
    added: RwLock<BTreeMap<u16, Address>>,
    /// Why the worker ended.
    ended: OnceLock<String>,
    /// Tells who awaits the end.
    end: Notify,
}

/// What is asked of a shard.
pub(crate) enum Request {
    /// Open a connection for a cell.
    Connect(Box<Connect>),
    /// Listen where this backlog says.
    Listen(Arc<Backlog>),
    /// Look at a listener: it has room again, or other settings, or is gone.
    Backlog(Arc<Backlog>),
    /// Something about connections to any destination.
    Any(AnyRequest),
    /// Bind or connect a UDP socket.
    Udp(UdpRequest),
    /// Look around, or change something.
    Inspect(InspectFn),
    /// Tell when nothing is left of streams that were dropped.
    Drain(oneshot::Sender<()>),
    /// Hand out what nothing takes.
    UnclaimedPackets(UnclaimedSender),
    /// Ask whether an address is free.
    Check(AddressCheck),
    /// Send an echo request.
    Ping(PingRequest),
}

/// A question to a shard, or a change of it, called where that is driven.
pub(crate) type InspectFn = Box<dyn FnOnce(&mut Shard, Held) + Send>;

/// A connection to be opened.
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) cell: Arc<StreamCell>,
    pub(crate) remote: Endpoint,
    pub(crate) local: Option<Endpoint>,
    /// Its SYN is to bring what waits in the cell, if it can.
    pub(crate) fast: bool,
}

/// How many streams and listeners of a shard tasks hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// Streams: one cell for each.
    pub(crate) streams: usize,
    /// Listeners: one backlog for each.
    pub(crate) listeners: usize,
    /// UDP sockets: one cell for each.
    pub(crate) udp_sockets: usize,
}

impl Mailbox {
    /// The way to the worker that `waker` wakes, of a stack with these congestion controls, and to
    /// a shard with these ways out.
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

    /// The congestion controls of its stack.
    pub(crate) fn congestion_names(&self) -> &CongestionNames {
        &self.congestion_names
    }

    /// What its shard knows of its ways out.
    pub(crate) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Its shard knows `addr` by this number from now on.
    pub(crate) fn note_address(&self, index: u16, addr: Address) {
        self.added.write().unwrap_or_else(PoisonError::into_inner).insert(index, addr);
    }

    /// The address that its shard got with this number while it ran. A number is not given anew while a
    /// connection from the address that had it is there.
    pub(crate) fn added_address(&self, index: u16) -> Option<Address> {
        self.added.read().unwrap_or_else(PoisonError::into_inner).get(&index).copied()
    }

    /// The cell of `handle` is dirty. Nothing may be locked.
    pub(crate) fn post(&self, handle: Handle) {
        // If the worker has ended, every cell that has a handle was told.
        if self.worker_state.has_ended() {
            return;
        }
        // The waker after the queue: a worker that is about to sleep looks once more.
        self.streams.push(handle);
        self.waker.wake();
    }

    /// The cell of a UDP socket is dirty. Nothing may be locked.
    pub(crate) fn post_udp(&self, handle: UdpHandle) {
        if self.worker_state.has_ended() {
            return;
        }
        self.udp.push(handle);
        self.waker.wake();
    }

    /// Asks for something. Nothing may be locked.
    pub(crate) fn ask(&self, request: Request) {
        self.requests.push(request);
        self.waker.wake();
        if self.worker_state.has_ended_since() {
            self.refuse_all();
        }
    }

    /// Nobody holds the stack itself any more: the worker ends when nothing of it is left.
    pub(crate) fn close(&self) {
        self.worker_state.close();
        self.waker.wake();
    }

    /// Whether [`Mailbox::close`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        self.worker_state.is_closing()
    }

    /// The worker has ended: whatever was asked, or will be, is refused.
    pub(crate) fn end(&self, why: String) {
        let _ = self.ended.set(why);
        self.worker_state.end();
        self.refuse_all();
        guarded(|| self.end.notify_waiters());
    }

    /// Waits until the worker has ended.
    pub(crate) async fn until_ended(&self) {
        // In line before the look: an end in between is not missed.
        let end = self.end.notified();
        if self.ended.get().is_none() {
            end.await;
        }
    }

    /// What to tell whoever wants something of a stack that has ended.
    pub(crate) fn ended(&self) -> io::Error {
        fault::ended(&self.why_ended())
    }

    /// Why it has ended, in words.
    pub(crate) fn why_ended(&self) -> String {
        self.ended.get().map_or_else(|| "its worker stopped".into(), Clone::clone)
    }

    /// What to tell of its end, if it has ended.
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

    /// Whether neither a stream, a UDP socket nor a request waits.
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
                // Whoever waits for it sees that the answer never comes.
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
