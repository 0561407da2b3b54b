//! Commands of applications. They act at the time last told.

use bytes::Bytes;
use whimbrel_base::cold_path;
use whimbrel_tcp::conn::{Connection, Marking, Read};
use whimbrel_tcp::{Context, Reply};

use super::{ConnectionName, EventSource, SendError, Shard};
use crate::ip::FlowKey;
use crate::tcp_host::work::Cause;
use crate::{Event, Handle, ListenerId, Recv};

impl Shard {
    /// The next thing an application should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some(source) = self.tcp.work.events.pop_front() {
            match source {
                EventSource::Listener(id) => {
                    if let Some(listener) = self.tcp.passive.listeners.resolve_mut(id) {
                        listener.note_told();
                    }
                    return Some(Event::Accepted(id));
                }
                EventSource::Connection(index) => {
                    if let Some(event) = self
                        .tcp
                        .work
                        .poll_connection_event(&mut self.tcp.records.connections, index)
                    {
                        return Some(event);
                    }
                }
            }
        }
        self.packets
            .udp
            .sockets
            .next_news()
            .map(Event::Udp)
            .or_else(|| self.tcp.passive.next_dial())
    }

    /// The next complete connection of a listener, if one waits.
    pub fn accept(&mut self, listener: ListenerId) -> Option<Handle> {
        self.tcp.accept(&self.cx, listener)
    }

    /// Takes from the front of `data` what there is room for and returns how much that was; if
    /// less than all, [`Event::Writable`] follows.
    ///
    /// Of a connection that is refused room while the other connections of the shard hold more than the tunable
    /// `buffers.send.crowd` (2 MiB), no more than 32 KiB wait unsent from then on, or a quarter of what is in
    /// flight if that is more: text that waits longer has left the processor's caches.
    pub fn send(&mut self, handle: Handle, data: &mut Bytes) -> Result<usize, SendError> {
        let written = self.with_handle_quietly(handle, |connection, cx| connection.write(cx, data));
        written.ok_or(SendError::Unknown)?.map_err(|_| SendError::Closed)
    }

    /// Returns the bytes that [`Shard::send`] would take now, but for what a buffer grows by; 0 if it is stale.
    pub fn send_room(&self, handle: Handle) -> usize {
        self.tcp.records.send_room(handle)
    }

    /// Takes all of `data`, even beyond the send buffer: an application that closes the connection cannot wait
    /// with the rest.
    pub fn send_whole(&mut self, handle: Handle, data: &mut Bytes) -> Result<usize, SendError> {
        let written = self.with_handle(handle, |connection, cx| {
            let (len, data) = (data.len(), core::mem::take(data));
            connection.write_whole(cx, data).map(|()| len)
        });
        written.ok_or(SendError::Unknown)?.map_err(|_| SendError::Closed)
    }

    /// Sends as [`Shard::send`] does, and marks the stream as urgent up to the end of what was taken (RFC 9293
    /// 3.8.5). It stays in the stream; RFC 6093 advises new applications not to use it.
    pub fn send_urgent(&mut self, handle: Handle, data: &mut Bytes) -> Result<usize, SendError> {
        let written = self.with_handle(handle, |connection, cx| connection.write_urgent(cx, data));
        written.ok_or(SendError::Unknown)?.map_err(|_| SendError::Closed)
    }

    /// The next bytes that arrived in order.
    pub fn recv(&mut self, handle: Handle) -> Recv {
        self.recv_up_to(handle, usize::MAX)
    }

    /// The next bytes that arrived in order, at most `most` (>= 1) of them.
    pub fn recv_up_to(&mut self, handle: Handle, most: usize) -> Recv {
        let Some(slot) = self.tcp.records.held_mut(handle) else { return Recv::Unknown };
        let read = match slot.connection.read_up_to(&mut self.cx, most) {
            Read::Data(data) => Recv::Data(data),
            Read::Pending => Recv::Pending,
            Read::End => Recv::End,
            Read::Closed(reason) => Recv::Closed(reason),
        };
        // Reading may open the window; no deadline follows from it, and no event.
        self.tcp.work.update_dirty(slot, handle.index, Cause::QuietCall);
        read
    }

    /// Returns what can be read, piece by piece; it stays unread, and the window stays.
    pub fn peek(&self, handle: Handle) -> impl Iterator<Item = &[u8]> {
        self.tcp.records.peek(handle)
    }

    /// Sends FIN after what was sent so far; reading goes on.
    pub fn shutdown(&mut self, handle: Handle) {
        self.with_handle(handle, |connection, cx| connection.shutdown(cx));
    }

    /// The application will read no more, though it may: if it shuts its own direction down as well, text
    /// that comes then is answered by a reset (`Tunables::text_after_shutdown`).
    pub fn shut_read(&mut self, handle: Handle) {
        self.with_handle(handle, |connection, _| connection.shut_read());
    }

    /// Releases the connection. What was sent is still delivered, then FIN; if anything was
    /// received and not read, the peer gets a reset instead (RFC 9293 3.6.1). The handle
    /// names nothing afterwards.
    pub fn close(&mut self, handle: Handle) {
        let reset =
            self.with_handle_quietly(handle, |connection, cx| ReleaseBy::Close.act(connection, cx));
        self.send_reset(reset.flatten());
    }

    /// Resets the connection and releases it.
    pub fn abort(&mut self, handle: Handle) {
        let reset = self.with_handle(handle, |connection, cx| ReleaseBy::Abort.act(connection, cx));
        self.send_reset(reset.flatten());
    }

    /// Resets a connection that waited to be accepted.
    pub(super) fn abort_unaccepted(&mut self, index: u32) {
        let Some(slot) = self.tcp.records.connections.0.get_mut(index) else { return };
        slot.unaccepted = false;
        let reset = self.with_slot(ConnectionName::Index(index), Cause::Call, |connection, cx| {
            ReleaseBy::Abort.act(connection, cx)
        });
        self.send_reset(reset.flatten());
    }

    fn send_reset(&mut self, reset: Option<ResetToSend>) {
        if let Some(ResetToSend(key, reply, marking)) = reset {
            cold_path();
            self.net.reply_unbounded(key, reply, marking);
        }
    }
}

/// The call by which an application releases a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReleaseBy {
    Close,
    Abort,
}

/// The reset that the peer gets, if it has to.
struct ResetToSend(FlowKey, Reply, Marking);

impl ReleaseBy {
    fn act(self, connection: &mut Connection, cx: &mut Context) -> Option<ResetToSend> {
        let reply = match self {
            Self::Close => connection.close(cx),
            Self::Abort => connection.abort(cx),
        };
        reply.map(|reply| {
            cold_path();
            ResetToSend(FlowKey::of(connection), reply, connection.marking(&cx.tunables))
        })
    }
}
