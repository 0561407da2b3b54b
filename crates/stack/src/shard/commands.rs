//! Commands of applications. They act at the time last told.

use bytes::Bytes;
use whimbrel_tcp::conn::Read;

use super::{SendError, Shard, Source};
use crate::replies::Pending;
use crate::{Handle, ListenerId, Recv};

impl Shard {
    /// The next complete connection of a listener, if one waits.
    pub fn accept(&mut self, listener: ListenerId) -> Option<Handle> {
        let index = self.listeners.resolve_mut(listener)?.pop_accepted()?;
        let handle = self.handle(index);
        let slot = self.records.connections.0.get_mut(index)?;
        slot.unaccepted = false;
        if !slot.listed && !slot.connection.signals_mut().is_empty() {
            slot.listed = true;
            self.events.push_back(Source::Connection(index));
        }
        Some(handle)
    }

    /// Takes from the front of `data` what there is room for and returns how much that was; if
    /// less than all, [`Event::Writable`](crate::Event::Writable) follows.
    pub fn send(&mut self, handle: Handle, data: &mut Bytes) -> Result<usize, SendError> {
        let index = self.index_of(handle).ok_or(SendError::Unknown)?;
        let (connection, mut cx) = self.connection(index).ok_or(SendError::Unknown)?;
        let taken = connection.write(&mut cx, data).map_err(|_| SendError::Closed)?;
        self.settle(index);
        Ok(taken)
    }

    /// The same, and marks the stream as urgent up to the end of what was taken (RFC 9293 3.8.5). It
    /// stays in the stream; RFC 6093 advises new applications not to use it.
    pub fn send_urgent(&mut self, handle: Handle, data: &mut Bytes) -> Result<usize, SendError> {
        let index = self.index_of(handle).ok_or(SendError::Unknown)?;
        let (connection, mut cx) = self.connection(index).ok_or(SendError::Unknown)?;
        let taken = connection.write_urgent(&mut cx, data).map_err(|_| SendError::Closed)?;
        self.settle(index);
        Ok(taken)
    }

    /// The next octets that arrived in order.
    pub fn recv(&mut self, handle: Handle) -> Recv {
        self.recv_up_to(handle, usize::MAX)
    }

    /// The next octets that arrived in order, at most `most` (>= 1) of them.
    pub fn recv_up_to(&mut self, handle: Handle, most: usize) -> Recv {
        let Some(index) = self.index_of(handle) else { return Recv::Unknown };
        let Some((connection, mut cx)) = self.connection(index) else { return Recv::Unknown };
        let read = connection.read_up_to(&mut cx, most);
        match read {
            Read::Data(data) => {
                // Reading may have opened the window.
                self.settle(index);
                Recv::Data(data)
            }
            Read::Pending => Recv::Pending,
            Read::End => Recv::End,
            Read::Closed(reason) => Recv::Closed(reason),
        }
    }

    /// What can be read, piece by piece; it stays unread, and the window as it is.
    pub fn peek(&self, handle: Handle) -> impl Iterator<Item = &[u8]> {
        self.slot(handle).into_iter().flat_map(|slot| slot.connection.peek())
    }

    /// Sends FIN after what was sent so far; reading goes on.
    pub fn shutdown(&mut self, handle: Handle) {
        let Some(index) = self.index_of(handle) else { return };
        if let Some((connection, mut cx)) = self.connection(index) {
            connection.shutdown(&mut cx);
        }
        self.settle(index);
    }

    /// Lets go of the connection. What was sent is still delivered, then FIN; if anything was
    /// received and not read, the peer is told by a reset instead (RFC 9293 3.6.1). The handle
    /// names nothing afterwards.
    pub fn close(&mut self, handle: Handle) {
        if let Some(index) = self.index_of(handle) {
            self.let_go(index, LettingGo::Close);
        }
    }

    /// Resets the connection and lets go of it.
    pub fn abort(&mut self, handle: Handle) {
        if let Some(index) = self.index_of(handle) {
            self.let_go(index, LettingGo::Abort);
        }
    }

    pub(super) fn let_go(&mut self, index: u32, how: LettingGo) {
        let Some((connection, mut cx)) = self.connection(index) else { return };
        let key = crate::ip::FlowKey::of(connection);
        let marking = connection.marking(cx.tunables);
        let reset = match how {
            LettingGo::Close => connection.close(&mut cx),
            LettingGo::Abort => connection.abort(&mut cx),
        };
        if let Some(reset) = reset {
            self.replies.push(Pending::Reply(key, reset, marking));
        }
        self.settle(index);
    }

    /// The place of a connection that its application holds.
    pub(super) fn index_of(&self, handle: Handle) -> Option<u32> {
        self.slot(handle).map(|_| handle.index)
    }
}

/// How an application lets go of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LettingGo {
    Close,
    Abort,
}
