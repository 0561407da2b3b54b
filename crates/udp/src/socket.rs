//! One socket.

use alloc::boxed::Box;

use crate::datagram::SendOptions;
use crate::error::SocketError;
use crate::error_queue::ErrorQueue;
use crate::key::{Key, Sharing};
use crate::queue::RecvQueue;

#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) key: Key,
    /// Key of the bind, which applies again after a disconnect.
    pub(crate) bound: Key,
    pub(crate) port: u16,
    pub(crate) sharing: Sharing,
    pub(crate) received: RecvQueue,
    /// Bytes that wait to be sent.
    pub(crate) unsent: usize,
    pub(crate) most_unsent: usize,
    pub(crate) options: SendOptions,
    /// The last error about a sent datagram, until it is returned.
    pub(crate) error: Option<SocketError>,
    /// Errors about all of its peers, if it keeps these.
    pub(crate) errors: Option<Box<ErrorQueue>>,
    /// True if a datagram was refused because the buffer was full: an event follows when there is
    /// room.
    pub(crate) awaits_room: bool,
    /// True if it is in the list of sockets with events.
    pub(crate) listed: bool,
}

impl Socket {
    /// Default sizes in bytes of the receive and send buffers: Linux's `net.core.rmem_default` and
    /// `wmem_default`.
    pub(crate) const USUAL: usize = 212_992;

    pub(crate) const fn new(key: Key, port: u16, sharing: Sharing) -> Self {
        Self {
            key,
            bound: key,
            port,
            sharing,
            received: RecvQueue::new(Self::USUAL),
            unsent: 0,
            most_unsent: Self::USUAL,
            options: SendOptions::new(),
            error: None,
            errors: None,
            awaits_room: false,
            listed: false,
        }
    }
}
