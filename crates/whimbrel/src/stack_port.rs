//! The port of a shard's worker: requests in, events out, tasks woken.
//!
//! On its way in, a turn looks at each dirty cell; on its way out, at each connection that
//! something happened to, once for a burst however many packets it had. Tasks are woken last, all
//! together, when nothing is locked any more.

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

/// What joins the tasks of a stack to one of its shards, where that is driven.
#[derive(Debug)]
pub(crate) struct StackPort {
    mailbox: Arc<Mailbox>,
    shutdown: Arc<Shutdown>,
    /// By [`Handle::index`]: 8 octets a connection.
    streams: Vec<Option<Arc<StreamCell>>>,
    open: usize,
    udp: UdpPort,
    listeners: BTreeMap<ListenerId, Arc<Backlog>>,
    any: AnyPort,
    /// Who is to be woken at the end of this step.
    woken: Vec<Waker>,
    /// How many were woken so far, since that was last asked.
    woken_since: usize,
    /// Who waits until nothing is left of streams that were dropped.
    draining: Vec<oneshot::Sender<()>>,
    /// Who waits until it is known whether an address is free.
    addresses: AddressPort,
    /// Who waits for echoes.
    pings: PingPort,
    /// Who wants the packets that nothing takes.
    unclaimed: Option<UnclaimedSender>,
    /// What tasks know of paths.
    paths_seen: DatagramPathsSeen,
    /// To be done in the next turn,
    later: Deferred,
    /// and in this one, since the segments of the last have left.
    now: Deferred,
    /// It was seen that nobody holds the stack itself any more.
    closing: bool,
    lifecycle: Lifecycle,
}

/// What must wait until segments have left.
#[derive(Default, Debug)]
struct Deferred {
    /// Connections to be reset.
    resets: Vec<Handle>,
    /// Who is to be told that nothing is left.
    drained: Vec<oneshot::Sender<()>>,
}

/// How long a shard is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lifecycle {
    /// As long as somebody holds something of it.
    Needed,
    /// Until then the last segments have time.
    Parting(Instant),
    /// Not any more; the others may be.
    Released,
}

impl StackPort {
    /// Serves what comes through `mailbox`; says so when nobody needs it any more.
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

    /// How many tasks were woken since this was last asked.
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
                // By an eighth, not to the double: what is vacant counts for each connection there is.
                self.streams.reserve_exact(place + 1 + place / 8 - self.streams.len());
            }
            self.streams.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.streams.get_mut(place) {
            *slot = Some(cell);
            self.open += 1;
        }
    }

    /// Does something with the cell of `handle`, if there is one still.
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
            // The place may be a later connection's: handles differ by their generation, places do not.
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

/// What tasks ask of the shard.
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
            // The future was dropped before the shard heard of it: no SYN leaves.
            if state.flags.has(Flags::DROPPED) {
                return;
            }
            let opened = if fast {
                // The SYN brings what is written before it leaves.
                let options = state.settings.options();
                shard.connect_fast(remote, local, &options, &mut Bytes::new())
            } else {
                shard.connect(remote, local)
            };
            let handle = match opened {
                Ok(handle) => handle,
                Err(error) => return state.on_lost(fault::connect(error), &mut self.woken),
            };
            state.handle = Some(handle);
            state.settings.apply(shard, handle);
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
                shard.set_listener_options(id, &state.settings.options());
                shard.set_fast_open(id, backlog.fast_open);
                state.id = Some(id);
                drop(state);
                self.listeners.insert(id, backlog);
            }
            Err(error) => state.on_lost(fault::listen(error), &mut self.woken),
        }
    }

    /// A listener has room again, or other settings, or is gone.
    fn update_listener(&mut self, shard: &mut Shard, backlog: &Backlog) {
        let (id, dropped, options) = {
            let state = backlog.lock();
            (state.id, state.is_dropped(), state.settings.options())
        };
        let Some(id) = id else { return };
        if !dropped {
            shard.set_listener_options(id, &options);
            return self.accept(shard, id);
        }
        self.listeners.remove(&id);
        shard.close_listener(id);
        // As by close(2) of a listening socket: what nobody accepted is reset.
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

/// What the shard tells, passed on to cells and backlogs.
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

    /// A connection to any destination is complete.
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
        // Nobody waits for it any more.
        if !deliver(opened, Ok(Accepted { cell, flow })) {
            self.reset(shard, handle);
        }
    }

    /// Hands complete connections over, as many as the backlog has room for.
    fn accept(&mut self, shard: &mut Shard, id: ListenerId) {
        let Some(backlog) = self.listeners.get(&id).map(Arc::clone) else { return };
        let (room, settings) = {
            let state = backlog.lock();
            (state.room(backlog.most), state.settings)
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
            // What came with the handshake is read at once.
            let _kept = cell.lock().exchange(shard, handle, &mut self.woken);
            self.keep(handle, Arc::clone(&cell));
            backlog.lock().push(Accepted { cell, flow }, &mut self.woken);
        }
        backlog.lock().report_length(shard, id, backlog.most);
    }
}

/// What a connection has of its route or its stack, its stream is to know.
fn note_congestion_control(settings: &mut Settings, shard: &Shard, handle: Handle) {
    if let Some(algorithm) = shard.congestion_control(handle) {
        settings.set_congestion_control(algorithm);
    }
}

/// How a shard is let go of when nobody holds the stack.
impl StackPort {
    /// Lets go of the shard once nobody holds anything of the stack, and the last segments are out.
    fn release_if_unheld(&mut self, now: Instant, shard: &Shard) {
        if !self.mailbox.is_closing() || self.lifecycle == Lifecycle::Released {
            return;
        }
        let Held { streams, listeners, udp_sockets } = self.held();
        // What is in the mailbox may be a stream that the shard is yet to hear of.
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

    /// Who waits until dropped streams are delivered is told in the next turn, if no connection is left but
    /// those of streams that are held.
    fn defer_drained(&mut self, shard: &Shard) {
        // A stream that was dropped may stand in the mailbox still.
        if self.draining.is_empty() || !self.mailbox.is_empty() {
            return;
        }
        let census = shard.census();
        if census.connections <= self.open && census.replies + census.udp_unsent == 0 {
            self.later.drained.append(&mut self.draining);
        }
    }

    /// Does what waited for the segments of the last turn to leave. Returns whether there was any.
    fn catch_up(&mut self, shard: &mut Shard) -> bool {
        let Deferred { resets, drained } = std::mem::take(&mut self.now);
        let any = !resets.is_empty() || !drained.is_empty();
        for handle in resets {
            self.reset(shard, handle);
        }
        for done in drained {
            // Whoever asked may have gone.
            deliver(done, ());
        }
        any
    }

    /// Tells every stream and listener that the stack has ended.
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
        // Who lets go of the stack last puts nothing into a queue: that, too, has to be seen before
        // the worker sleeps, so that the end is judged.
        if !self.closing && self.mailbox.is_closing() {
            self.closing = true;
            busy = true;
        }
        Activity::busy_if(busy)
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        // Before a socket hears of it, a call of it knows.
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
        // Between this turn and the next the worker sends, and that is what they wait for.
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
    /// After a panic of the shard's thread or task, too, nobody waits for ever, here or at another shard.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shutdown.fail("a worker of it stopped".into());
        }
        self.end(self.shutdown.why());
    }
}

/// Packets that nothing takes, of one turn: twice the frames that come in one.
const UNCLAIMED: usize = 128;
/// Requests, dirty cells and events of one turn, each.
const BUDGET: usize = 256;
/// How long peers have to acknowledge the last segments of a stack that nobody holds.
const GRACE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
