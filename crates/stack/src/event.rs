//! Events that an application receives of its connections.

use bytes::Bytes;
use whimbrel_tcp::CloseReason;

use crate::dial::{SynHandle, Withdrawal};
use crate::{Handle, ListenerId, UdpHandle};

/// Something happened. Events are hints, merged until the application polls: act until nothing is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The accept queue of this listener is no longer empty.
    Accepted(ListenerId),
    /// SYNs wait for an answer at this listener for any destination ([`Shard::asked`](crate::Shard::asked)).
    Asked(ListenerId),
    /// The handshake of a SYN that was answered by [`Answer::Accept`](crate::Answer::Accept) is
    /// complete: [`Shard::opened`](crate::Shard::opened) has its connection.
    Opened(SynHandle),
    /// A SYN that [`Shard::asked`](crate::Shard::asked) had returned is gone, unanswered or without a connection.
    Withdrawn(SynHandle, Withdrawal),
    /// An opened connection is established.
    Connected(Handle),
    /// There is something to read: text, or the end of the stream.
    Readable(Handle),
    /// The peer announced urgent data; [`Shard::urgent_mark`](crate::Shard::urgent_mark) says
    /// where it ends.
    Urgent(Handle),
    /// There is room to send again, after `send` took less than it was given.
    Writable(Handle),
    /// The connection is over. What was received before can still be read; the handle is valid
    /// until it is closed.
    Closed(Handle, CloseReason),
    /// This UDP socket has a datagram to be received, room to send again after it had none, or an error
    /// ([`Shard::udp_take_error`](crate::Shard::udp_take_error)).
    Udp(UdpHandle),
}

/// The result of a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recv {
    /// The next bytes of the stream; never empty.
    Data(Bytes),
    /// Nothing yet: an [`Event::Readable`] will come.
    Pending,
    /// The peer closed its direction and everything was read.
    End,
    /// The connection is over, for this reason, and everything that arrived was read.
    Closed(CloseReason),
    /// The handle names nothing.
    Unknown,
}
