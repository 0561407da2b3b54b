//! An application's interface to the network, which may be a shard or the kernel's sockets.
//!
//! Nothing blocks. A call returns the progress so far, and [`Transport::poll_event`] says when to
//! ask again.

use alloc::string::String;
use core::fmt::Debug;
use core::num::NonZeroU64;

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
    /// Name of a connection; a stale one has no effect.
    type Id: Copy + PartialEq + Debug;
    /// Name of a listener of this transport.
    type Listener: Copy + PartialEq + Debug;

    /// A small number for tables, unique among the connections at any time.
    fn place(id: Self::Id) -> u32;

    /// Begins to open a connection; [`TransportEvent::Connected`] or [`TransportEvent::Closed`]
    /// follows. With [`ConnectOptions::fast`], the data for the SYN is taken from the front of
    /// `first`.
    fn connect(
        &mut self,
        remote: Endpoint,
        how: &ConnectOptions,
        first: &mut Bytes,
    ) -> Result<Self::Id, OpenError>;

    /// The next complete connection of a listener.
    fn accept(&mut self, listener: Self::Listener) -> Option<Self::Id>;

    /// Takes data that fits from the front of `data`, and returns the number of bytes; if less than
    /// all, [`TransportEvent::Writable`] follows.
    fn send(&mut self, id: Self::Id, data: &mut Bytes) -> Result<usize, ConnError>;

    /// Reads the next bytes.
    fn recv(&mut self, id: Self::Id) -> Reading;

    /// Number of bytes [`Transport::send`] would take now; unbounded if the transport cannot tell.
    fn room(&self, _id: Self::Id) -> usize {
        usize::MAX
    }

    /// Reads at most `most` (>= 1) of the next bytes, if the transport can read in part.
    fn recv_up_to(&mut self, id: Self::Id, _most: usize) -> Reading {
        self.recv(id)
    }

    /// Sends FIN after the data sent so far; reading continues.
    fn shutdown(&mut self, id: Self::Id);

    /// Closes the connection: data sent is delivered, then FIN. The name becomes stale.
    fn close(&mut self, id: Self::Id);

    /// Resets the connection. The name becomes stale.
    fn abort(&mut self, id: Self::Id);

    /// The next event, if there is one; each is returned once.
    fn poll_event(&mut self) -> Option<TransportEvent<Self>>;

    /// The sender's statistics of the connection's path; `None` if the transport has none.
    fn sender_stats(&self, id: Self::Id) -> Option<SenderStats>;

    /// Segments retransmitted by all connections together; `None` if they are counted for each.
    fn retransmits(&self) -> Option<u64>;

    /// Resources in use now; `None` if the transport cannot tell.
    fn stack_usage(&self) -> Option<StackUsage>;

    /// Number of SYNs it took to open a connection that has just opened; `None` if the transport
    /// cannot tell.
    fn syns_sent(&self, _id: Self::Id) -> Option<u32> {
        None
    }

    /// Local endpoint of the connection, if known.
    fn local(&self, id: Self::Id) -> Option<Endpoint>;

    /// Remote endpoint of the connection, if known.
    fn remote(&self, id: Self::Id) -> Option<Endpoint>;

    /// Sets the options that an accepted connection can still take.
    fn adjust(&mut self, _id: Self::Id, _how: &ConnectOptions) {}

    /// True if connections can use this congestion control.
    fn knows_congestion(&self, _name: &str) -> bool {
        false
    }
}

/// Options set on a connection before it opens. The default leaves all to the transport.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ConnectOptions {
    /// Local address; `None`: the route's choice.
    pub local: Option<Address>,
    /// Delay of small segments until earlier ones are acknowledged.
    pub nagle: Nagle,
    /// Most bytes of text in a segment, in both directions.
    pub mss: Option<u16>,
    /// True for TCP Fast Open (RFC 7413): with a known cookie, or to request one.
    pub fast: bool,
    /// Name of the congestion control, if there is a choice.
    pub congestion: Option<String>,
    /// Bytes of its send buffer and its receive buffer.
    pub buffers: Option<(u32, u32)>,
    /// Most bytes of text per second that it sends, what is sent again included: text is paced.
    pub max_pacing_rate: Option<NonZeroU64>,
    /// Number of the interface for the zone of the peer's link-local address; 0: none. A transport
    /// with one link ignores it.
    pub zone: u32,
}

impl ConnectOptions {
    /// Those of a test's control connection, whose few bytes leave at once.
    pub(crate) fn at_once(&self) -> Self {
        Self { nagle: Nagle::Off, max_pacing_rate: None, ..self.clone() }
    }
}

/// Events. Like a shard's they are hints: act until nothing is left.
pub enum TransportEvent<T: Transport + ?Sized> {
    /// Connections wait to be accepted.
    Accepted(T::Listener),
    /// A connection is open.
    Connected(T::Id),
    /// There is data to read, or the end.
    Readable(T::Id),
    /// There is room to send again.
    Writable(T::Id),
    /// The connection is over. Earlier data can still be read; the name is valid until it is
    /// released. `None`: it ended without error.
    Closed(T::Id, Option<ConnError>),
}

/// Result of a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reading {
    /// Bytes in order, at least one.
    Data(Bytes),
    /// No data yet; an event will follow.
    Pending,
    /// The peer closed its direction, and all data was read.
    End,
    /// The connection failed, and all data was read.
    Failed(ConnError),
}

/// An application under a driver.
pub trait Model<T: Transport> {
    /// Handles up to `budget` events. Returns true if there are more.
    fn poll(&mut self, transport: &mut T, now: Instant, budget: usize) -> bool;

    /// Latest time of the next poll.
    fn next_deadline(&self) -> Option<Instant>;

    /// True if it is finished. A server never is.
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
