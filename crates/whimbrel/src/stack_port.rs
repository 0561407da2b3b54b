//! The port of a shard's worker: it takes requests, passes events on and wakes tasks.
//!
//! Before the shard's step, a turn looks at each dirty cell. After it, it looks at each connection with
//! an event, once a burst however many packets there were. Tasks are woken last, together and without
//! locks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use whimbrel_base::Instant;
use whimbrel_io::{Activity, Port};
use whimbrel_stack::{DatagramPathsSeen, Event, Handle, ListenerId, Shard, SynHandle};
use whimbrel_tcp::CloseReason;

use crate::address_port::AddressPort;
use crate::any_port::AnyPort;
use crate::backlog::{Accepted, Backlog};
use crate::cell::{Flags, Settings, StreamCell, StreamState};
use crate::exchange::CellDisposition;
use crate::fault;
use crate::mailbox::{Connect, Held, Mailbox, Request};
use crate::ping_port::PingPort;
use crate::shutdown::Shutdown;
use crate::udp_port::UdpPort;
use crate::unclaimed_sender::UnclaimedSender;
use crate::waiters::{deliver, wake_all};

/// Connection between the tasks of a stack and one of its shards, on the shard's thread.
#[derive(Debug)]
pub(crate) struct StackPort {
    mailbox: Arc<Mailbox>,
    shutdown: Arc<Shutdown>,
    /// Indexed by [`Handle::index`]; 8 bytes a connection.
    streams: Vec<Option<Arc<StreamCell>>>,
    open: usize,
    udp: UdpPort,
    listeners: BTreeMap<ListenerId, Arc<Backlog>>,
    any: AnyPort,
    /// Tasks to wake at the end of this step.
    woken: Vec<Waker>,
    /// Number of tasks woken since the last query.
    woken_since: usize,
    /// Tasks that wait for the end of dropped streams.
    draining: Vec<oneshot::Sender<()>>,
    /// Pending address checks.
    addresses: AddressPort,
    /// Pending echo requests.
    pings: PingPort,
    /// Receiver of unclaimed packets.
    unclaimed: Option<UnclaimedSender>,
    /// Path changes that tasks know already.
    paths_seen: DatagramPathsSeen,
    /// Actions for the next turn.
    later: Deferred,
    /// Actions for this turn, now that the segments of the last have left.
    now: Deferred,
    /// True once the stack itself is no longer held.
    closing: bool,
    lifecycle: Lifecycle,
}

/// Actions that must wait until segments have left.
#[derive(Default, Debug)]
struct Deferred {
    /// Connections to be reset.
    resets: Vec<Handle>,
    /// Waiting tasks to notify that dropped streams have ended.
    drained: Vec<oneshot::Sender<()>>,
}

/// Need for a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lifecycle {
    /// Something of the stack is held.
    Needed,
    /// The last segments may be sent until then.
    Parting(Instant),
    /// Released; other shards may still be needed.
    Released,
}

impl StackPort {
    /// Creates a port that serves `mailbox` and reports when its shard is no longer needed.
    pub(crate) fn new(mailbox: Arc<Mailbox>, shutdown: Arc<Shutdown>) -> Self {
        Self {
            mailbox,
            shutdown,
            streams: Vec::new(),
            open: 0,
            udp: UdpPort::default(),
            listeners: BTreeMap::new(),
            any: AnyPort::default(),
            woken: Vec::new(),
            woken_since: 0,
            draining: Vec::new(),
            addresses: AddressPort::default(),
            pings: PingPort::default(),
            unclaimed: None,
            paths_seen: DatagramPathsSeen::default(),
            later: Deferred::default(),
            now: Deferred::default(),
            closing: false,
            lifecycle: Lifecycle::Needed,
        }
    }

    /// Returns the number of tasks woken since the last call.
    pub(crate) fn take_woken(&mut self) -> usize {
        std::mem::take(&mut self.woken_since)
    }

    fn wake_all(&mut self) {
        self.woken_since += self.woken.len();
        wake_all(&mut self.woken);
    }

    fn held(&self) -> Held {
        let (streams, listeners) = (self.open, self.listeners.len() + self.any.len());
        Held { streams, listeners, udp_sockets: self.udp.len() }
    }

    fn keep(&mut self, handle: Handle, cell: Arc<StreamCell>) {
        let place = handle.index() as usize;
        if self.streams.len() <= place {
            if self.streams.capacity() <= place {
                // Grows by an eighth instead of doubling, because vacant places count for each
                // connection.
                self.streams.reserve_exact(place + 1 + place / 8 - self.streams.len());
            }
            self.streams.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.streams.get_mut(place) {
            *slot = Some(cell);
            self.open += 1;
        }
    }

    /// Calls `act` with the cell of `handle`, if it still exists.
    fn with(
        &mut self,
        shard: &mut Shard,
        handle: Handle,
        act: impl FnOnce(&mut StreamState, &mut Shard, &mut Vec<Waker>) -> CellDisposition,
    ) {
        let Some(slot) = self.streams.get_mut(handle.index() as usize) else { return };
        let Some(cell) = slot else { return };
        let disposition = {
            let mut state = cell.lock();
            // The place may belong to a later connection: handles differ by generation, places do not.
            if state.handle != Some(handle) {
                return;
            }
            act(&mut state, shard, &mut self.woken)
        };
        match disposition {
            CellDisposition::Kept => {}
            CellDisposition::Resetting => self.later.resets.push(handle),
            CellDisposition::Parted => {
                *slot = None;
                self.open -= 1;
            }
        }
    }

    fn exchange(&mut self, shard: &mut Shard, handle: Handle) {
        self.with(shard, handle, |state, shard, woken| state.exchange(shard, handle, woken));
    }
}

/// Requests of tasks.
impl StackPort {
    fn process_request(&mut self, shard: &mut Shard, request: Request) {
        match request {
            Request::Connect(connect) => self.connect(shard, *connect),
            Request::Listen(backlog) => self.listen(shard, backlog),
            Request::Backlog(backlog) => self.update_listener(shard, &backlog),
            Request::Any(request) => self.any.process_request(shard, request),
            Request::Udp(request) => {
                self.udp.process_request(shard, request, &mut self.woken);
            }
            Request::Inspect(inspect) => inspect(shard, self.held()),
            Request::Drain(done) => self.draining.push(done),
            Request::Check(check) => self.addresses.process_request(shard, check),
            Request::Ping(ping) => self.pings.process_request(shard, ping),
            Request::UnclaimedPackets(sender) => {
                shard.keep_unclaimed(UNCLAIMED);
                self.unclaimed = Some(sender);
            }
        }
    }

    fn connect(&mut self, shard: &mut Shard, connect: Connect) {
        let Connect { cell, remote, local, fast } = connect;
        let handle = {
            let mut state = cell.lock();
            // The future was dropped before the shard received the request: no SYN leaves.
            if state.flags.has(Flags::DROPPED) {
                return;
            }
            let opened = if fast {
                // Before it leaves, the SYN takes the written data.
                let options = state.options();
                shard.connect_fast(remote, local, &options, &mut Bytes::new())
            } else {
                shard.connect(remote, local)
            };
            let handle = match opened {
                Ok(handle) => handle,
                Err(error) => return state.on_lost(fault::connect(error), &mut self.woken),
            };
            state.handle = Some(handle);
            state.apply_settings(shard, handle);
            note_congestion_control(&mut state.settings, shard, handle);
            if fast {
                state.push(shard, handle, &mut self.woken);
            }
            if let Some(flow) = shard.flow(handle) {
                state.local_port = flow.local.port;
                state.local_index = shard.addresses().local_index_of(&flow.local.addr).unwrap_or(0);
            }
            handle
        };
        self.keep(handle, cell);
    }

    fn listen(&mut self, shard: &mut Shard, backlog: Arc<Backlog>) {
        let listening = shard.listen_for(backlog.at, backlog.families, backlog.most);
        let mut state = backlog.lock();
        match listening {
            Ok(id) => {
                shard.set_listener_options(id, &state.options());
                shard.set_fast_open(id, backlog.fast_open);
                state.id = Some(id);
                drop(state);
                self.listeners.insert(id, backlog);
            }
            Err(error) => state.on_lost(fault::listen(error), &mut self.woken),
        }
    }

    /// Updates a listener that has room, changed its settings or was dropped.
    fn update_listener(&mut self, shard: &mut Shard, backlog: &Backlog) {
        let (id, dropped, options) = {
            let state = backlog.lock();
            (state.id, state.is_dropped(), state.options())
        };
        let Some(id) = id else { return };
        if !dropped {
            shard.set_listener_options(id, &options);
            return self.accept(shard, id);
        }
        self.listeners.remove(&id);
        shard.close_listener(id);
        // As by close(2) of a listening socket, connections that were not accepted are reset.
        let ready = backlog.lock().take_ready();
        for Accepted { cell, .. } in ready {
            let handle = cell.lock().handle;
            if let Some(handle) = handle {
                self.reset(shard, handle);
            }
        }
    }

    fn reset(&mut self, shard: &mut Shard, handle: Handle) {
        self.with(shard, handle, |_, shard, _| {
            shard.abort(handle);
            CellDisposition::Parted
        });
    }
}

/// Events of the shard, passed on to cells and backlogs.
impl StackPort {
    fn on_event(&mut self, shard: &mut Shard, event: Event) {
        match event {
            Event::Accepted(listener) => self.accept(shard, listener),
            Event::Asked(_) => self.any.ask(shard),
            Event::Opened(syn) => self.on_opened(shard, syn),
            Event::Withdrawn(syn, why) => self.any.on_withdrawn(syn, why),
            Event::Connected(handle) => {
                self.with(shard, handle, |state, _, woken| {
                    state.on_connected(woken);
                    CellDisposition::Kept
                });
                self.exchange(shard, handle);
            }
            Event::Readable(handle) | Event::Writable(handle) => self.exchange(shard, handle),
            Event::Closed(handle, reason) => self.on_closed(shard, handle, reason),
            Event::Udp(handle) => self.udp.exchange(shard, handle, &mut self.woken),
            // Urgent data are read inline, as by a socket with SO_OOBINLINE.
            _ => {}
        }
    }

    fn on_closed(&mut self, shard: &mut Shard, handle: Handle, reason: CloseReason) {
        self.with(shard, handle, |state, shard, woken| {
            state.on_closed(shard, handle, reason, woken);
            CellDisposition::Kept
        });
        self.exchange(shard, handle);
    }

    /// Passes on a completed connection to any destination.
    fn on_opened(&mut self, shard: &mut Shard, syn: SynHandle) {
        let Some(handle) = shard.opened(syn) else { return };
        let (Some((opened, mut settings)), Some(flow)) =
            (self.any.on_opened(syn), shard.flow(handle))
        else {
            return shard.abort(handle);
        };
        note_congestion_control(&mut settings, shard, handle);
        let cell = StreamCell::accepted(handle, settings);
        let _kept = cell.lock().exchange(shard, handle, &mut self.woken);
        self.keep(handle, Arc::clone(&cell));
        // Its receiver has gone.
        if !deliver(opened, Ok(Accepted { cell, flow })) {
            self.reset(shard, handle);
        }
    }

    /// Hands over completed connections, as many as the backlog has room for.
    fn accept(&mut self, shard: &mut Shard, id: ListenerId) {
        let Some(backlog) = self.listeners.get(&id).map(Arc::clone) else { return };
        let (room, settings, rate) = {
            let state = backlog.lock();
            (state.room(backlog.most), state.settings, state.rate)
        };
        for _ in 0..room {
            let Some(handle) = shard.accept(id) else { break };
            let Some(flow) = shard.flow(handle) else {
                shard.abort(handle);
                continue;
            };
            let mut settings = settings;
            note_congestion_control(&mut settings, shard, handle);
            let cell = StreamCell::accepted(handle, settings);
            cell.lock().set_max_pacing_rate(rate);
            // Data that arrived with the handshake can be read at once.
            let _kept = cell.lock().exchange(shard, handle, &mut self.woken);
            self.keep(handle, Arc::clone(&cell));
            backlog.lock().push(Accepted { cell, flow }, &mut self.woken);
        }
        backlog.lock().report_length(shard, id, backlog.most);
    }
}

/// Copies the congestion control, which may be that of the route or the stack, to the stream's
/// settings.
fn note_congestion_control(settings: &mut Settings, shard: &Shard, handle: Handle) {
    if let Some(algorithm) = shard.congestion_control(handle) {
        settings.set_congestion_control(algorithm);
    }
}

/// Release of the shard when the stack is no longer held.
impl StackPort {
    /// Releases the shard once nothing of the stack is held and the last segments are out.
    fn release_if_unheld(&mut self, now: Instant, shard: &Shard) {
        if !self.mailbox.is_closing() || self.lifecycle == Lifecycle::Released {
            return;
        }
        let Held { streams, listeners, udp_sockets } = self.held();
        // The mailbox may contain a stream that the shard does not know yet.
        if streams + listeners + udp_sockets > 0 || !self.mailbox.is_empty() {
            self.lifecycle = Lifecycle::Needed;
            return;
        }
        let until = match self.lifecycle {
            Lifecycle::Parting(until) => until,
            _ => now + GRACE,
        };
        self.lifecycle = Lifecycle::Parting(until);
        let census = shard.census();
        let unsent = census.replies + census.udp_unsent;
        let busy = census.connections + census.syn_entries + unsent;
        if busy == 0 || now >= until {
            self.lifecycle = Lifecycle::Released;
            self.shutdown.release();
        }
    }

    /// Defers the notification of waiting tasks to the next turn, if only connections of held streams
    /// are left.
    fn defer_drained(&mut self, shard: &Shard) {
        // A dropped stream may still be in the mailbox.
        if self.draining.is_empty() || !self.mailbox.is_empty() {
            return;
        }
        let census = shard.census();
        if census.connections <= self.open && census.replies + census.udp_unsent == 0 {
            self.later.drained.append(&mut self.draining);
        }
    }

    /// Performs the actions that waited for the segments of the last turn. Returns true if there were
    /// any.
    fn catch_up(&mut self, shard: &mut Shard) -> bool {
        let Deferred { resets, drained } = std::mem::take(&mut self.now);
        let any = !resets.is_empty() || !drained.is_empty();
        for handle in resets {
            self.reset(shard, handle);
        }
        for done in drained {
            // The caller may have gone.
            deliver(done, ());
        }
        any
    }

    /// Reports the end of the stack to every stream and listener.
    pub(crate) fn end(&mut self, why: String) {
        self.mailbox.end(why);
        (self.draining, self.unclaimed, self.later, self.now) = Default::default();
        (self.addresses, self.pings) = Default::default();
        for cell in self.streams.drain(..).flatten() {
            cell.lock().on_lost(self.mailbox.ended(), &mut self.woken);
        }
        self.open = 0;
        self.udp.end(&self.mailbox.why_ended(), &mut self.woken);
        self.any.end(|| self.mailbox.ended());
        for backlog in std::mem::take(&mut self.listeners).into_values() {
            backlog.lock().on_lost(self.mailbox.ended(), &mut self.woken);
        }
        wake_all(&mut self.woken);
    }
}

impl Port for StackPort {
    fn drain(&mut self, _now: Instant, shard: &mut Shard) -> Activity {
        let mut busy = self.catch_up(shard);
        for _ in 0..BUDGET {
            let Some(request) = self.mailbox.next_request() else { break };
            self.process_request(shard, request);
            busy = true;
        }
        for _ in 0..BUDGET {
            let Some(handle) = self.mailbox.next_stream() else { break };
            self.exchange(shard, handle);
            busy = true;
        }
        for _ in 0..BUDGET {
            let Some(handle) = self.mailbox.next_udp() else { break };
            self.udp.exchange(shard, handle, &mut self.woken);
            busy = true;
        }
        self.wake_all();
        // The last release of the stack queues nothing, so it must be seen before the worker sleeps.
        if !self.closing && self.mailbox.is_closing() {
            self.closing = true;
            busy = true;
        }
        Activity::busy_if(busy)
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        // Tasks learn of a path before its socket gets the event.
        self.mailbox.ways().learn(&mut self.paths_seen, shard);
        let mut left = BUDGET;
        while left > 0
            && let Some(event) = shard.poll_event()
        {
            self.on_event(shard, event);
            left -= 1;
        }
        self.addresses.tell(shard);
        self.pings.tell(shard);
        if self.unclaimed.as_ref().is_some_and(|wanted| !wanted.forward(shard)) {
            shard.keep_unclaimed(0);
            self.unclaimed = None;
        }
        self.wake_all();
        self.release_if_unheld(now, shard);
        self.defer_drained(shard);
        // The worker sends between this turn and the next; these actions wait for that.
        self.now = std::mem::take(&mut self.later);
        let more = !self.now.resets.is_empty() || !self.now.drained.is_empty();
        Activity::busy_if(left == 0 || more)
    }

    fn next_deadline(&self) -> Option<Instant> {
        match self.lifecycle {
            Lifecycle::Parting(until) => Some(until),
            Lifecycle::Needed | Lifecycle::Released => None,
        }
    }
}

impl Drop for StackPort {
    /// Ends the waits of all tasks, here and at other shards, also after a panic of this shard.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shutdown.fail("a worker of it stopped".into());
        }
        self.end(self.shutdown.why());
    }
}

/// Unclaimed packets of one turn: twice the frames that arrive in one.
const UNCLAIMED: usize = 128;
/// Limit of requests, dirty cells and events, each, in one turn.
const BUDGET: usize = 256;
/// Time for peers to acknowledge the last segments of a stack that is no longer held.
const GRACE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
