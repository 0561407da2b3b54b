//! A shard's part of `forward`, driven by its worker.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use whimbrel_apps::proxy_header::ProxyVersion;
use whimbrel_apps::relay::{Pair, Relay, Sides};
use whimbrel_apps::{ConnError, Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_io::{Activity, Port};
use whimbrel_kernel::sockets::KernelEvent;
use whimbrel_stack::link::AddressConflict;
use whimbrel_stack::{Handle, ListenerId, Shard};
use whimbrel_tcp::conn::KeepAlive;

use super::board::{Board, Counts};
use super::dialer::{Dialer, Dialled};
use crate::drive::{KernelNet, conn_error};
use crate::failure::tell_conflict;

/// Listeners of a shard, connections to the server, and what passes between them.
pub(super) struct ForwardPort {
    net: KernelNet,
    relay: Relay<Shard, KernelNet>,
    dialer: Dialer<Shard>,
    proxy: Option<ProxyVersion>,
    listeners: Vec<ListenerId>,
    /// Listeners with connections to accept.
    accepting: Vec<ListenerId>,
    /// Number of the shard.
    number: usize,
    board: Arc<Board>,
    /// Number of status requests answered.
    answered: u64,
    drain: Option<Drain>,
}

/// A shard's number, and where it reports.
pub(super) struct Place {
    pub(super) number: usize,
    pub(super) board: Arc<Board>,
}

/// The end: no connection is accepted any more.
struct Drain {
    /// When open flows are cut.
    until: Option<Instant>,
    is_done: bool,
}

impl ForwardPort {
    /// The port of the shard at `place`.
    pub(super) fn new(
        net: KernelNet,
        dialer: Dialer<Shard>,
        proxy: Option<ProxyVersion>,
        listeners: Vec<ListenerId>,
        place: Place,
    ) -> Self {
        let Place { number, board } = place;
        Self {
            net,
            relay: Relay::default(),
            dialer,
            proxy,
            listeners,
            accepting: Vec::new(),
            number,
            board,
            answered: 0,
            drain: None,
        }
    }

    /// Accepts what is complete, and then no more. Flows continue for at most `linger`.
    pub(super) fn begin_drain(
        &mut self,
        shard: &mut Shard,
        now: Instant,
        linger: Option<Duration>,
    ) {
        self.accepting.clone_from(&self.listeners);
        while self.accept(shard, now) {}
        for listener in self.listeners.drain(..) {
            shard.close_listener(listener);
        }
        self.drain = Some(Drain { until: linger.map(|linger| now + linger), is_done: false });
    }

    /// Counts so far.
    pub(super) fn counts(&self, shard: &Shard) -> Counts {
        Counts::of(*self.relay.statistics(), self.dialer.statistics(), shard)
    }

    /// Begins up to [`BUDGET`] flows. Returns true if more connections wait.
    fn accept(&mut self, shard: &mut Shard, now: Instant) -> bool {
        for _ in 0..BUDGET {
            let Some(listener) = self.accepting.last() else { return false };
            match Transport::accept(shard, *listener) {
                Some(near) => {
                    let dialled = self.dialer.begin(&mut self.net, near, now);
                    self.settle(shard, dialled, now);
                }
                None => drop(self.accepting.pop()),
            }
        }
        true
    }

    fn settle(&mut self, shard: &mut Shard, dialled: Dialled<Handle>, now: Instant) {
        match dialled {
            Dialled::Pending => {}
            Dialled::Refused(near) => Transport::abort(shard, near),
            Dialled::Open(near, far) => {
                let Some(flow) = shard.flow(near) else {
                    // It ended in this turn.
                    Transport::abort(shard, near);
                    self.net.abort(far);
                    return;
                };
                // A server's own probes would ask this process, and never miss a client that vanished.
                shard.set_keep_alive(near, KeepAlive::On);
                let first = self.proxy.map(|version| version.header(&flow)).unwrap_or_default();
                let sides = Sides { near: shard, far: &mut self.net };
                self.relay.join(sides, Pair { near, far, first }, now);
            }
        }
    }

    /// Handles events of clients. Returns true if there are more.
    fn take_near_events(&mut self, shard: &mut Shard, now: Instant) -> bool {
        for _ in 0..BUDGET {
            let Some(event) = Transport::poll_event(shard) else { return false };
            if let TransportEvent::Accepted(listener) = event {
                if !self.accepting.contains(&listener) {
                    self.accepting.push(listener);
                }
                continue;
            }
            let sides = Sides { near: &mut *shard, far: &mut self.net };
            let is_known = self.relay.on_near(sides, &event, now);
            if let TransportEvent::Closed(near, _) = event
                && !is_known
                && self.dialer.on_near_closed(&mut self.net, near)
            {
                Transport::close(shard, near);
            }
        }
        true
    }

    /// Handles events of the server's connections. Returns true if there are more.
    fn take_far_events(&mut self, shard: &mut Shard, now: Instant) -> bool {
        for _ in 0..BUDGET {
            let Some(event) = self.net.poll_kernel_event() else { return false };
            let event = match event {
                KernelEvent::Connected(far) => {
                    let dialled = self.dialer.on_far(&mut self.net, far, None, now);
                    self.settle(shard, dialled, now);
                    continue;
                }
                KernelEvent::Failed(far, error) => {
                    let error = Some(conn_error(&error));
                    let dialled = self.dialer.on_far(&mut self.net, far, error, now);
                    self.settle(shard, dialled, now);
                    continue;
                }
                KernelEvent::Accepted(_) => continue,
                KernelEvent::Readable(far) => TransportEvent::Readable(far),
                KernelEvent::Writable(far) => TransportEvent::Writable(far),
                KernelEvent::Broken(far) => TransportEvent::Closed(far, Some(ConnError::Reset)),
            };
            let sides = Sides { near: &mut *shard, far: &mut self.net };
            self.relay.on_far(sides, &event, now);
        }
        true
    }

    /// Continues dials whose time has come. Returns true if there are more.
    fn dial(&mut self, shard: &mut Shard, now: Instant) -> bool {
        for _ in 0..BUDGET {
            let Some(dialled) = self.dialer.poll(&mut self.net, now) else { return false };
            self.settle(shard, dialled, now);
        }
        true
    }

    /// Cuts what is open when the time is over, and reports when nothing is left.
    fn continue_drain(&mut self, shard: &mut Shard, now: Instant) {
        let Some(drain) = &mut self.drain else { return };
        if drain.is_done {
            return;
        }
        let is_over = drain.until.is_some_and(|until| now >= until);
        if is_over {
            while let Some(dialled) = self.dialer.cut(&mut self.net) {
                if let Dialled::Refused(near) = dialled {
                    Transport::abort(shard, near);
                }
            }
            self.relay.cut(Sides { near: &mut *shard, far: &mut self.net });
        }
        let is_empty = self.relay.statistics().open == 0 && self.dialer.is_empty();
        if is_over || (is_empty && shard.census().connections == 0) {
            drain.is_done = true;
            self.board.on_drained();
        }
    }

    fn answer(&mut self, shard: &Shard) {
        let asked = self.board.asked();
        if asked != self.answered {
            self.answered = asked;
            self.board.answer(self.number, asked, self.counts(shard));
        }
    }
}

impl Port for ForwardPort {
    /// Only status requests come from other threads.
    fn drain(&mut self, _now: Instant, _shard: &mut Shard) -> Activity {
        Activity::busy_if(self.board.asked() != self.answered)
    }

    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        let mut more = self.take_near_events(shard, now);
        more |= self.accept(shard, now);
        more |= self.take_far_events(shard, now);
        more |= self.dial(shard, now);
        let sides = Sides { near: &mut *shard, far: &mut self.net };
        more |= self.relay.poll(sides, now, BUDGET);
        if let Err(error) = self.net.check() {
            self.board.fail(&error);
        }
        self.continue_drain(shard, now);
        self.answer(shard);
        Activity::busy_if(more)
    }

    fn on_conflict(&mut self, conflict: AddressConflict) {
        tell_conflict(conflict);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let until = self.drain.as_ref().filter(|drain| !drain.is_done).and_then(|it| it.until);
        Instant::earliest([self.dialer.next_deadline(), self.relay.next_deadline(), until])
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.net.as_fd())
    }
}

/// Events of a kind dealt with in one turn, before frames have their turn again.
const BUDGET: usize = 256;
