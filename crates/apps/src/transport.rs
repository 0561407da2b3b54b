//! What an application asks of the network, whoever carries it: a shard, or the kernel's sockets.
//!
//! Nothing blocks. A call says what happened so far, and [`Transport::poll_event`] says when to ask
//! again.

use alloc::string::String;
use core::fmt::Debug;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_tcp::CloseReason;
use whimbrel_tcp::conn::Nagle;
use whimbrel_wire::{Address, Endpoint};

pub use conn_error::ConnError;
pub use open_error::{OpenError, PortShortage};
pub use sender_stats::{Limit, Limited, SenderStats};
pub use stack_usage::StackUsage;

mod conn_error;
mod open_error;
mod sender_stats;
mod shard;
mod stack_usage;

/// Connections, as applications use them.
pub trait Transport {
    /// Names a connection; a stale one names nothing.
    type Id: Copy + PartialEq + Debug;
    /// What names a listener of this transport.
    type Listener: Copy + PartialEq + Debug;

    /// A small number, unique among the connections of any one time: for tables.
    fn place(id: Self::Id) -> u32;

    /// Begins to open a connection; [`TransportEvent::Connected`] or [`TransportEvent::Closed`] follows. If
    /// [`ConnectOptions::fast`] says so and may be, what travels with the SYN is taken from the front of
    /// `first`.
    fn connect(
        &mut self,
        remote: Endpoint,
        how: &ConnectOptions,
        first: &mut Bytes,
    ) -> Result<Self::Id, OpenError>;

    /// The next complete connection of a listener.
    fn accept(&mut self, listener: Self::Listener) -> Option<Self::Id>;

    /// Takes from the front of `data` what there is room for, and returns how many bytes that
    /// was; if less than all, [`TransportEvent::Writable`] follows.
    fn send(&mut self, id: Self::Id, data: &mut Bytes) -> Result<usize, ConnError>;

    /// The next bytes that arrived.
    fn recv(&mut self, id: Self::Id) -> Reading;

    /// How many bytes [`Transport::send`] would take now; without a bound if it cannot tell.
    fn room(&self, _id: Self::Id) -> usize {
        usize::MAX
    }

    /// The next bytes that arrived, at most `most` (>= 1) of them if it can read a part of what it has.
    fn recv_up_to(&mut self, id: Self::Id, _most: usize) -> Reading {
        self.recv(id)
    }

    /// Sends FIN after what was sent so far; reading goes on.
    fn shutdown(&mut self, id: Self::Id);

    /// Lets go of the connection: what was sent is delivered, then FIN. The name is stale.
    fn close(&mut self, id: Self::Id);

    /// Resets the connection. The name is stale.
    fn abort(&mut self, id: Self::Id);

    /// What happened next, if anything did: each event is told once.
    fn poll_event(&mut self) -> Option<TransportEvent<Self>>;

    /// What the connection's sender knows of its path; `None` if it cannot tell.
    fn sender_stats(&self, id: Self::Id) -> Option<SenderStats>;

    /// Segments sent again by all connections together; `None` if only each tells.
    fn retransmits(&self) -> Option<u64>;

    /// What it holds at this moment; `None` if it cannot tell.
    fn stack_usage(&self) -> Option<StackUsage>;

    /// How many SYNs it took to open a connection that has just opened; `None` if it cannot tell.
    fn syns_sent(&self, _id: Self::Id) -> Option<u32> {
        None
    }

    /// This side's end of the connection, if it is known.
    fn local(&self, id: Self::Id) -> Option<Endpoint>;

    /// The peer's end of the connection, if it is known.
    fn remote(&self, id: Self::Id) -> Option<Endpoint>;

    /// Sets on a connection that was accepted what can still be set.
    fn adjust(&mut self, _id: Self::Id, _how: &ConnectOptions) {}

    /// True if connections can have this congestion control.
    fn knows_congestion(&self, _name: &str) -> bool {
        false
    }
}

/// What is set on a connection before it opens. The default leaves all to the transport.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ConnectOptions {
    /// The address to connect from; `None`: whichever the route suggests.
    pub local: Option<Address>,
    /// Whether small segments wait for earlier ones.
    pub nagle: Nagle,
    /// The most bytes of text in a segment, either way.
    pub mss: Option<u16>,
    /// True if it opens fast (RFC 7413): by a cookie that is known, or asking for one.
    pub fast: bool,
    /// The congestion control, by its name, where there is a choice.
    pub congestion: Option<String>,
    /// Bytes of its send buffer, and of its receive buffer.
    pub buffers: Option<(u32, u32)>,
    /// The number of the interface in whose zone a link-local address of the peer's is meant; 0: none.
    /// Nothing to a transport that has one link.
    pub zone: u32,
}

/// Something happened. Like a shard's events these are hints: act until nothing is left.
pub enum TransportEvent<T: Transport + ?Sized> {
    /// Connections wait to be accepted.
    Accepted(T::Listener),
    /// A connection that was begun is open.
    Connected(T::Id),
    /// There is something to read, or the end.
    Readable(T::Id),
    /// There is room again.
    Writable(T::Id),
    /// The connection is over. What came before can still be read; the name is good until it is
    /// let go. `None`: it ended well.
    Closed(T::Id, Option<ConnError>),
}

/// What there is to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Bytes in order, at least one.
    Data(Bytes),
    /// No byte has come since; an event will tell when one does.
    Pending,
    /// The peer closed its direction, and all was read.
    End,
    /// The connection failed, and all that came was read.
    Failed(ConnError),
}

/// An application under a driver.
pub trait Model<T: Transport> {
    /// Acts on what happened, up to `budget` events. Returns whether more waits.
    fn poll(&mut self, transport: &mut T, now: Instant, budget: usize) -> bool;

    /// When to poll at the latest, though nothing happens.
    fn next_deadline(&self) -> Option<Instant>;

    /// True if it has done what it came for. A server never has.
    fn is_done(&self) -> bool {
        false
    }
}

impl From<CloseReason> for ConnError {
    fn from(reason: CloseReason) -> Self {
        match reason {
            CloseReason::Reset | CloseReason::BrokenPipe => Self::Reset,
            CloseReason::Refused => Self::Refused,
            CloseReason::TimedOut => Self::TimedOut,
            CloseReason::Unreachable => Self::Unreachable,
            _ => Self::EndedEarly,
        }
    }
}
