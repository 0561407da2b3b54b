//! One socket.

use crate::datagram::SendOptions;
use crate::error::SocketError;
use crate::key::{Key, Sharing};
use crate::queue::RecvQueue;

#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) key: Key,
    /// What it was bound to, and is again when it is no longer connected.
    pub(crate) bound: Key,
    pub(crate) port: u16,
    pub(crate) sharing: Sharing,
    pub(crate) received: RecvQueue,
    /// Bytes that wait to be sent.
    pub(crate) unsent: usize,
    pub(crate) most_unsent: usize,
    pub(crate) options: SendOptions,
    /// What was heard last of what it had sent, until somebody is told.
    pub(crate) error: Option<SocketError>,
    /// A datagram was refused because there was no room: its application is to hear of room.
    pub(crate) awaits_room: bool,
    /// It is in the list of those with news.
    pub(crate) listed: bool,
}

impl Socket {
    /// Bytes that wait to be received, and that wait to be sent, where nobody asked for others: Linux'
    /// `net.core.rmem_default` and `wmem_default`.
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
            options: SendOptions::USUAL,
            error: None,
            awaits_room: false,
            listed: false,
        }
    }
}
