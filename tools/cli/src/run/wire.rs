//! `-w`: the network outside is a wire, with a stack of this process on it.
//!
//! Both stacks have one thread: the gateway's worker calls that of the wire at the end of its turns.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task;

use bytes::Bytes;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use whimbrel_apps::transport::{ConnectOptions, OpenError, SenderStats, StackUsage};
use whimbrel_apps::{ConnError, Reading, Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_base::packet::SoftError;
use whimbrel_io::poll::Interest;
use whimbrel_io::rules::Rules;
use whimbrel_io::worker::PollResult;
use whimbrel_io::{Activity, Clock, Port, StackConfig, Stop, WireSpec, entropy, stack};
use whimbrel_stack::link::AddressConflict;
use whimbrel_stack::ping::PingEnd;
use whimbrel_stack::shard::ConnectError;
use whimbrel_stack::{Event, Handle, ListenerId, Shard, UdpHandle};
use whimbrel_tcp::CloseReason;
use whimbrel_tcp::conn::{Nagle, SocketOptions};
use whimbrel_wire::{Address, Endpoint};

use super::far::{FarEvent, FarNet, unbound};
use crate::capture::{self, CapturePlan};
use crate::drive::conn_error;
use crate::failure::{Failure, tell_conflict};
use crate::routes::{self, RouteOption};
use datagrams::WireDatagrams;
pub(super) use echoes::WirePings;

mod datagrams;
mod echoes;

/// A wire, and the rules of the stack on it.
pub(super) struct WirePlan {
    pub(super) spec: WireSpec,
    /// As it was typed.
    pub(super) typed: String,
    pub(super) rules: Rules,
    pub(super) routes: Vec<RouteOption>,
}

impl WirePlan {
    /// The plan for a wire that was typed, or the option to change.
    pub(super) fn parse(typed: &str) -> Result<WireSpec, Failure> {
        let spec: WireSpec = typed.parse().map_err(|error| Failure::usage("--wire", error))?;
        let text = if spec.is_kernel() {
            "kernel: without a wire, flows are carried on by the kernel's sockets: leave it out"
                .to_owned()
        } else if spec.mem_link().is_some() {
            "a mem: wire connects only this process: use tun:, tap:, packet: or unix:, or --link for \
             properties of a path"
                .to_owned()
        } else if spec.is_capture() {
            "a capture is read-only, so nothing of the program would leave: use tun:, tap:, packet: or \
             unix:"
                .to_owned()
        } else if spec.queues() > 1 {
            format!("queues={}: run has one thread: leave it out", spec.queues())
        } else {
            return Ok(spec);
        };
        Err(Failure::usage("--wire", text))
    }
}

/// A stack on a wire, as the network outside.
pub(super) struct WireNet {
    worker: stack::StackWorker<NoPort>,
    clock: Clock,
    addresses: Vec<Address>,
    /// Never set: the gateway ends it.
    never: Stop,
    /// Readable when the device is, or, while it is full, writable.
    epoll: OwnedFd,
    interest: Interest,
    /// When the worker's next turn is due.
    due: Option<Instant>,
    /// Events of connections, sockets with datagrams or errors, and ends of echo requests, found by a look.
    events: VecDeque<Event>,
    datagrams: VecDeque<UdpHandle>,
    pings: VecDeque<PingEnd>,
}

/// The gateway's turns take the place of a port.
struct NoPort;

impl Port for NoPort {
    fn flush(&mut self, _: Instant, _: &mut Shard) -> Activity {
        Activity::Idle
    }

    fn on_conflict(&mut self, conflict: AddressConflict) {
        tell_conflict(conflict);
    }
}

impl WireNet {
    /// Opens the wire, with the gateway's clock.
    pub(super) fn open(
        plan: &WirePlan,
        pcap: Option<&CapturePlan>,
        clock: Clock,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let secrets = entropy::secrets().map_err(Failure::run)?;
        let mut config = StackConfig::new(&plan.spec, plan.rules.tunables.clone(), secrets);
        config.routes.extend(routes::known(&plan.routes, &config.addresses, &config.routes)?);
        let mut shards = stack::open(&plan.spec, config, clock, stop)?;
        if let Some(pcap) = pcap {
            shards = pcap.tap(shards, &plan.typed, None)?;
        }
        let shard = shards.pop().ok_or_else(|| Failure::run("the wire has no queue"))?;
        let worker = shard.worker(NoPort);
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Failure::run)?;
        epoll::add(&epoll, worker.as_fd(), EventData::new_u64(0), EventFlags::IN)
            .map_err(Failure::run)?;
        Ok(Self {
            worker,
            clock,
            addresses: plan.spec.addresses().iter().map(|own| own.addr).collect(),
            never: Stop::new().map_err(Failure::run)?,
            epoll,
            interest: Interest::Read,
            due: None,
            events: VecDeque::new(),
            datagrams: VecDeque::new(),
            pings: VecDeque::new(),
        })
    }

    fn is_own(&self, addr: Address) -> bool {
        self.addresses.contains(&addr)
    }

    fn shard_mut(&mut self) -> &mut Shard {
        self.worker.shard_mut()
    }

    /// Takes what the stack reports, up to [`BUDGET`] events. Returns true if something waits.
    fn look(&mut self) -> bool {
        while self.events.len() + self.datagrams.len() < BUDGET
            && let Some(event) = self.worker.shard_mut().poll_event()
        {
            match event {
                Event::Udp(socket) => self.datagrams.push_back(socket),
                event => self.events.push_back(event),
            }
        }
        while self.pings.len() < BUDGET
            && let Some(end) = self.worker.shard_mut().poll_ping()
        {
            self.pings.push_back(end);
        }
        !(self.events.is_empty() && self.datagrams.is_empty() && self.pings.is_empty())
    }

    /// Waits for the device in the way that its worker wants.
    fn await_device(&mut self, interest: Interest) -> io::Result<()> {
        if interest != self.interest {
            let flags = match interest {
                Interest::Read => EventFlags::IN,
                Interest::ReadWrite => EventFlags::IN | EventFlags::OUT,
            };
            epoll::modify(&self.epoll, self.worker.as_fd(), EventData::new_u64(0), flags)?;
            self.interest = interest;
        }
        let mut room = [std::mem::MaybeUninit::uninit(); 1];
        let (ready, _) = epoll::wait(&self.epoll, &mut room, Some(&Timespec::default()))?;
        let broken = EventFlags::ERR | EventFlags::HUP;
        if ready.iter().map(|event| event.flags).any(|flags| flags.intersects(broken)) {
            self.worker.on_device_error().map_err(io::Error::other)?;
        }
        Ok(())
    }
}

impl AsFd for WireNet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl FarNet for WireNet {
    type Datagrams = WireDatagrams;

    fn open(&mut self, to: Endpoint) -> io::Result<Handle> {
        let options = SocketOptions { nagle: Nagle::Off, ..SocketOptions::default() };
        self.shard_mut().connect_with(to, None, &options).map_err(|error| {
            let kind = match error {
                ConnectError::NoRoute(_) | ConnectError::NoSource(_) => {
                    io::ErrorKind::NetworkUnreachable
                }
                ConnectError::PortsExhausted { .. } => io::ErrorKind::AddrNotAvailable,
                ConnectError::TooMany { .. } => io::ErrorKind::QuotaExceeded,
                _ => io::ErrorKind::HostUnreachable,
            };
            io::Error::new(kind, error)
        })
    }

    fn listen_at(&mut self, at: Endpoint, backlog: u32) -> Result<(), Failure> {
        let listening = self.shard_mut().listen(at, backlog);
        listening.map(drop).map_err(|error| unbound(at, &io::Error::other(error)))
    }

    fn take_event(&mut self) -> Option<FarEvent<Self>> {
        loop {
            if self.events.is_empty() {
                self.look();
            }
            return Some(match self.events.pop_front()? {
                Event::Accepted(listener) => FarEvent::Accepted(listener),
                Event::Connected(far) => FarEvent::Connected(far),
                Event::Readable(far) => FarEvent::Readable(far),
                Event::Writable(far) => FarEvent::Writable(far),
                Event::Closed(far, CloseReason::Finished) => FarEvent::Closed(far, None),
                Event::Closed(far, reason) => {
                    let soft = self.worker.shard().soft_error(far);
                    FarEvent::Closed(far, Some(failure(reason, soft)))
                }
                _ => continue,
            });
        }
    }

    fn check(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn turn(&mut self) -> io::Result<Activity> {
        self.due = None;
        let polled = self.worker.poll(task::Waker::noop(), &self.never, 1);
        match polled.map_err(io::Error::other)? {
            PollResult::Busy => return Ok(Activity::Busy),
            PollResult::Ended => {}
            PollResult::Waiting(wait) => {
                self.due = wait.timeout.map(|timeout| self.clock.now() + timeout);
                self.await_device(wait.interest)?;
            }
        }
        Ok(Activity::busy_if(self.look()))
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.due
    }

    fn shard(&self) -> Option<&Shard> {
        Some(self.worker.shard())
    }

    fn finish(&mut self) {
        capture::finish(self.worker.take_tap());
    }
}

/// The system's error for the end of a connection.
fn failure(reason: CloseReason, soft: Option<SoftError>) -> io::Error {
    let kind = match (reason, soft) {
        (CloseReason::Refused, _) => io::ErrorKind::ConnectionRefused,
        (CloseReason::TimedOut | CloseReason::Unreachable, Some(SoftError::NetworkUnreachable)) => {
            io::ErrorKind::NetworkUnreachable
        }
        (CloseReason::TimedOut | CloseReason::Unreachable, Some(SoftError::Prohibited)) => {
            io::ErrorKind::PermissionDenied
        }
        (CloseReason::TimedOut, Some(_)) | (CloseReason::Unreachable, _) => {
            io::ErrorKind::HostUnreachable
        }
        (CloseReason::TimedOut, None) => io::ErrorKind::TimedOut,
        (CloseReason::Reset | CloseReason::BrokenPipe, _) => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::ConnectionAborted,
    };
    kind.into()
}

impl Transport for WireNet {
    type Id = Handle;
    type Listener = ListenerId;

    fn place(id: Handle) -> u32 {
        Shard::place(id)
    }

    fn connect(
        &mut self,
        remote: Endpoint,
        how: &ConnectOptions,
        first: &mut Bytes,
    ) -> Result<Handle, OpenError> {
        Transport::connect(self.shard_mut(), remote, how, first)
    }

    fn accept(&mut self, listener: ListenerId) -> Option<Handle> {
        Transport::accept(self.shard_mut(), listener)
    }

    fn send(&mut self, id: Handle, data: &mut Bytes) -> Result<usize, ConnError> {
        Transport::send(self.shard_mut(), id, data)
    }

    fn recv(&mut self, id: Handle) -> Reading {
        Transport::recv(self.shard_mut(), id)
    }

    fn room(&self, id: Handle) -> usize {
        Transport::room(self.worker.shard(), id)
    }

    fn recv_up_to(&mut self, id: Handle, most: usize) -> Reading {
        Transport::recv_up_to(self.shard_mut(), id, most)
    }

    fn shutdown(&mut self, id: Handle) {
        Transport::shutdown(self.shard_mut(), id);
    }

    fn close(&mut self, id: Handle) {
        Transport::close(self.shard_mut(), id);
    }

    fn abort(&mut self, id: Handle) {
        Transport::abort(self.shard_mut(), id);
    }

    fn poll_event(&mut self) -> Option<TransportEvent<Self>> {
        Some(match self.take_event()? {
            FarEvent::Accepted(listener) => TransportEvent::Accepted(listener),
            FarEvent::Connected(id) => TransportEvent::Connected(id),
            FarEvent::Readable(id) => TransportEvent::Readable(id),
            FarEvent::Writable(id) => TransportEvent::Writable(id),
            FarEvent::Closed(id, error) => {
                TransportEvent::Closed(id, error.as_ref().map(conn_error))
            }
        })
    }

    fn sender_stats(&self, id: Handle) -> Option<SenderStats> {
        self.worker.shard().sender_stats(id)
    }

    fn retransmits(&self) -> Option<u64> {
        self.worker.shard().retransmits()
    }

    fn stack_usage(&self) -> Option<StackUsage> {
        self.worker.shard().stack_usage()
    }

    fn local(&self, id: Handle) -> Option<Endpoint> {
        self.worker.shard().local(id)
    }

    fn remote(&self, id: Handle) -> Option<Endpoint> {
        self.worker.shard().remote(id)
    }
}

/// Events of a kind that wait for their turn.
const BUDGET: usize = 256;
