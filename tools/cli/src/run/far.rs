//! The network outside, by which the program's flows are carried on: the machine's sockets, or a stack on
//! a wire (`wire`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use bytes::Bytes;
use whimbrel_apps::{Destination, Transport};
use whimbrel_base::Instant;
use whimbrel_io::Activity;
use whimbrel_kernel::sockets::KernelEvent;
use whimbrel_stack::Shard;
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::udp::Received;
use whimbrel_wire::{Address, Endpoint};

use crate::drive::KernelNet;
use crate::failure::Failure;
use datagrams::MachineDatagrams;

mod datagrams;

pub(super) use datagrams::{EXPIRED, TOO_LONG, meaning, refusal_of};

/// A network that carries the program's flows on, beyond the gateway.
pub(super) trait FarNet: Transport + AsFd + Sized {
    /// Its sockets for datagrams.
    type Datagrams: FarDatagrams<Self>;

    /// Begins to open a connection.
    fn open(&mut self, to: Endpoint) -> io::Result<Self::Id>;

    /// Listens at a published port.
    fn listen_at(&mut self, at: Endpoint, backlog: u32) -> Result<(), Failure>;

    /// The next event of connections and listeners.
    fn take_event(&mut self) -> Option<FarEvent<Self>>;

    /// Fails if no more events come.
    fn check(&mut self) -> io::Result<()>;

    /// Moves packets, where that is this process' part.
    fn turn(&mut self) -> io::Result<Activity> {
        Ok(Activity::Idle)
    }

    /// The latest time of the next [`FarNet::turn`].
    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// The stack, if it is this process' own.
    fn shard(&self) -> Option<&Shard> {
        None
    }

    /// Ends its capture, if it has one.
    fn finish(&mut self) {}
}

/// An event of a connection, or of a listener, on the network outside.
pub(super) enum FarEvent<F: FarNet> {
    /// Connections wait to be accepted.
    Accepted(F::Listener),
    /// A connection opened here is open.
    Connected(F::Id),
    /// There may be data to read, or the end.
    Readable(F::Id),
    /// There may be room to send.
    Writable(F::Id),
    /// A connection is over; the error of one that failed.
    Closed(F::Id, Option<io::Error>),
}

/// Answer to the program for what cannot be sent, if there is one, and why.
pub(super) type Refusal = (Option<Unreachable>, &'static str);

/// Sockets for datagrams. Each has a number of its owner's, by which it is reported.
pub(super) trait FarDatagrams<F>: Sized {
    /// A socket outside of one endpoint of the program.
    type Socket;

    /// Creates the set, which has no sockets yet.
    fn new() -> Result<Self, Failure>;

    /// Binds a socket: at an address and port, or at any address and a free port of the family if both are
    /// unspecified.
    fn bind(&mut self, net: &mut F, at: Endpoint) -> io::Result<Self::Socket>;

    /// From now on, a socket is reported by this number.
    fn watch(&mut self, socket: &Self::Socket, number: u32) -> io::Result<()>;

    /// Closes a socket.
    fn close(&mut self, net: &mut F, socket: Self::Socket);

    /// Sends a datagram of the program to `to`, over so many hops at most, if it says so.
    fn send(
        &mut self,
        net: &mut F,
        socket: &mut Self::Socket,
        datagram: &Received,
        to: Endpoint,
        hops: Option<u8>,
    ) -> Result<(), Refusal>;

    /// Some sockets that have datagrams or errors.
    fn ready(&mut self, net: &mut F) -> Vec<ReadySocket>;

    /// Takes the next datagram, and its sender.
    fn receive(&mut self, net: &mut F, socket: &Self::Socket) -> Option<(Bytes, Endpoint)>;

    /// Takes the next error about a sent datagram. It ends with `None`.
    fn take_error(&mut self, net: &mut F, socket: &Self::Socket) -> Option<SentError>;

    /// Readable when [`FarDatagrams::ready`] has a socket, if the network's own is not.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// A socket that has datagrams or errors.
pub(super) struct ReadySocket {
    pub(super) number: u32,
    pub(super) has_errors: bool,
}

/// An error about a datagram that was sent.
pub(super) struct SentError {
    /// Destination of the datagram.
    pub(super) to: Endpoint,
    /// Answer to the program, and why; `None`: it is none of its business.
    pub(super) meaning: Option<(Unreachable, &'static str)>,
    /// Router or host that reported it, if one did.
    pub(super) reporter: Option<Address>,
    /// The front of its data, as far as it came back.
    pub(super) data: Bytes,
}

/// The failure of listening at a published port.
pub(super) fn unbound(outside: Endpoint, error: &io::Error) -> Failure {
    Failure::Run(format!(
        "--publish {outside}: {error}; choose a free address and port of this machine"
    ))
}

impl FarNet for KernelNet {
    type Datagrams = MachineDatagrams;

    fn open(&mut self, to: Endpoint) -> io::Result<Self::Id> {
        self.connect_tcp(Destination::from(to))
    }

    fn listen_at(&mut self, at: Endpoint, backlog: u32) -> Result<(), Failure> {
        self.listen(at, backlog).map(drop).map_err(|error| unbound(at, &error))
    }

    fn take_event(&mut self) -> Option<FarEvent<Self>> {
        Some(match self.poll_kernel_event()? {
            KernelEvent::Accepted(listener) => FarEvent::Accepted(listener),
            KernelEvent::Connected(far) => FarEvent::Connected(far),
            KernelEvent::Readable(far) => FarEvent::Readable(far),
            KernelEvent::Writable(far) => FarEvent::Writable(far),
            KernelEvent::Failed(far, error) => FarEvent::Closed(far, Some(error)),
            KernelEvent::Broken(far) => {
                FarEvent::Closed(far, Some(io::ErrorKind::ConnectionReset.into()))
            }
        })
    }

    fn check(&mut self) -> io::Result<()> {
        Self::check(self)
    }
}
