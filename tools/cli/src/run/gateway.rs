//! The gateway: what the program opens is opened outside first, and then carried on.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use whimbrel_apps::relay::{Pair, Relay, RelayStatistics, Sides};
use whimbrel_apps::{Transport, TransportEvent};
use whimbrel_base::Instant;
use whimbrel_io::poll::{Interest, PollFd, ppoll};
use whimbrel_io::{Activity, ImpairedLinks, Port, Stop};
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::link::AddressConflict;
use whimbrel_stack::{Answer, Event, Handle, ListenerId, Shard, SynRequest};

use super::destinations::{Destinations, Outside};
use super::dials::{Decided, Dials};
use super::far::{FarEvent, FarNet};
use super::ping::{FarPings, PingStatistics};
use super::publish::{Published, Publisher};
use super::session::{Session, Stage};
use super::udp::{UdpFlows, UdpStatistics};
use crate::drive::{StackState, conn_error};
use crate::failure::{Failure, tell_conflict};
use crate::refusals::Refusals;

/// The gateway's side of a shard.
pub(super) struct Gateway<F: FarNet, P> {
    net: F,
    relay: Relay<Shard, F>,
    dials: Dials<F>,
    publisher: Publisher<F>,
    udp: UdpFlows<F>,
    pings: P,
    destinations: Destinations,
    listener: ListenerId,
    session: Session,
    /// A queue of the device, to see whether packets of the program wait.
    device: OwnedFd,
    path: Option<ImpairedLinks>,
    /// All that ends a sleep.
    watch: OwnedFd,
    refused: Refusals,
    /// When open flows are cut, once the program has ended.
    until: Option<Instant>,
    linger: Duration,
    /// Set at the end.
    stop: Stop,
    failure: Option<io::Error>,
}

/// Counts of a gateway.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub(super) relay: RelayStatistics,
    pub(super) udp: UdpStatistics,
    pub(super) pings: PingStatistics,
    /// Refused destinations, by reason.
    pub(super) refused: Refusals,
    /// The stack on the wire outside, if there is one.
    pub(super) wire: Option<WireCounts>,
}

/// Counts of the stack on the wire outside.
#[derive(Clone, Debug)]
pub(super) struct WireCounts {
    pub(super) state: StackState,
    /// Its drops, by reason.
    pub(super) drops: Refusals,
}

/// Parts of a gateway.
pub(super) struct Parts {
    pub(super) destinations: Destinations,
    pub(super) session: Session,
    pub(super) device: OwnedFd,
    /// The impaired path, if there is one.
    pub(super) path: Option<ImpairedLinks>,
    pub(super) linger: Duration,
    pub(super) stop: Stop,
}

impl<F: FarNet, P: FarPings<F>> Gateway<F, P> {
    /// Takes the connections and datagrams of `shard` to any destination, and carries them on by `net`.
    pub(super) fn new(
        shard: &mut Shard,
        mut net: F,
        published: &[Published],
        parts: Parts,
    ) -> Result<Self, Failure> {
        let Parts { destinations, session, device, path, linger, stop } = parts;
        shard.take_any_address();
        let listener = shard.listen_any().map_err(Failure::run)?;
        let publisher = Publisher::new(&mut net, published)?;
        let watch = epoll::create(CreateFlags::CLOEXEC).map_err(Failure::run)?;
        let mut udp = UdpFlows::new(shard, MOST_UDP_FLOWS)?;
        udp.publish(&mut net, published, &destinations)?;
        let pings = P::new(shard, MOST_PINGS)?;
        let (channel, signals) = (session.channel(), session.signals());
        let always = [net.as_fd(), channel, signals];
        for source in always.into_iter().chain(udp.descriptor()).chain(pings.descriptor()) {
            epoll::add(&watch, source, EventData::new_u64(0), EventFlags::IN)
                .map_err(Failure::run)?;
        }
        Ok(Self {
            net,
            relay: Relay::default().with_patience(),
            dials: Dials::default(),
            publisher,
            udp,
            pings,
            destinations,
            listener,
            session,
            device,
            path,
            watch,
            refused: Refusals::default(),
            until: None,
            linger,
            stop,
            failure: None,
        })
    }

    /// Starts the program.
    pub(super) fn start_program(&self) {
        self.session.start();
    }

    /// The session, at the end, or the error that ended it.
    pub(super) fn into_session(self) -> Result<(Session, Counts), Failure> {
        let Self { mut net, refused, udp, pings, relay, .. } = self;
        net.finish();
        let (udp, pings) = (udp.statistics(), pings.statistics());
        let wire = net
            .shard()
            .map(|shard| WireCounts { state: StackState::of(shard), drops: Refusals::of(shard) });
        let counts = Counts { relay: *relay.statistics(), udp, pings, refused, wire };
        match self.failure {
            Some(error) => Err(Failure::run(error)),
            None => Ok((self.session, counts)),
        }
    }

    /// Handles events of the program's side. Returns true if there are more.
    fn take_near_events(&mut self, shard: &mut Shard, now: Instant) -> bool {
        for _ in 0..BUDGET {
            let Some(event) = shard.poll_event() else { return false };
            let event = match event {
                Event::Asked(_) => {
                    self.dial(shard);
                    continue;
                }
                Event::Opened(syn) => {
                    self.join(shard, syn, now);
                    continue;
                }
                Event::Withdrawn(syn, _) => {
                    self.dials.on_withdrawn(&mut self.net, syn);
                    continue;
                }
                Event::Connected(near) => {
                    if let Some(far) = self.publisher.on_open(near) {
                        self.pair(shard, near, far, now);
                    }
                    continue;
                }
                Event::Readable(id) => TransportEvent::Readable(id),
                Event::Writable(id) => TransportEvent::Writable(id),
                Event::Closed(id, whimbrel_tcp::CloseReason::Finished) => {
                    TransportEvent::Closed(id, None)
                }
                Event::Closed(id, reason) => TransportEvent::Closed(id, Some(reason.into())),
                _ => continue,
            };
            let sides = Sides { near: &mut *shard, far: &mut self.net };
            if !self.relay.on_near(sides, &event, now)
                && let TransportEvent::Closed(near, _) = event
                && let Some(far) = self.publisher.on_open(near)
            {
                self.refused.count(REFUSED_INSIDE);
                Transport::close(shard, near);
                self.net.abort(far);
            }
        }
        true
    }

    /// Begins to connect for the SYNs that wait.
    fn dial(&mut self, shard: &mut Shard) {
        while let Some(SynRequest { syn, flow }) = shard.asked(self.listener) {
            let refuse = |answer, why| Some(Decided { syn, answer, why: Some(why) });
            let decided = match self.destinations.judge(flow.local) {
                Outside::At(place) => self.dials.begin(&mut self.net, syn, [place].into()),
                Outside::NameServer => {
                    let all = VecDeque::from(self.destinations.name_servers.clone());
                    self.dials.begin(&mut self.net, syn, all)
                }
                Outside::Denied => refuse(Answer::Unreachable(Unreachable::Prohibited), DENIED),
                Outside::NoHost => refuse(Answer::Unreachable(Unreachable::Host), NO_HOST),
                Outside::NoPort => refuse(Answer::Reset, NO_PORT),
            };
            self.settle(shard, decided);
        }
    }

    /// Answers a SYN, if it is decided about.
    fn settle(&mut self, shard: &mut Shard, decided: Option<Decided>) {
        let Some(Decided { syn, answer, why }) = decided else { return };
        if let Some(why) = why {
            self.refused.count(why);
        }
        if !shard.answer_syn(syn, answer) {
            // It was withdrawn in this turn.
            self.dials.on_withdrawn(&mut self.net, syn);
        }
    }

    /// Joins the program's connection with the one outside.
    fn join(&mut self, shard: &mut Shard, syn: whimbrel_stack::SynHandle, now: Instant) {
        let Some(near) = shard.opened(syn) else { return };
        let Some(far) = self.dials.on_opened(syn) else {
            Transport::abort(shard, near);
            return;
        };
        self.pair(shard, near, far, now);
    }

    fn pair(&mut self, shard: &mut Shard, near: Handle, far: F::Id, now: Instant) {
        let sides = Sides { near: shard, far: &mut self.net };
        let first = bytes::Bytes::new();
        self.relay.join(sides, Pair { near, far, first }, now);
    }

    /// Handles events outside. Returns true if there are more.
    fn take_far_events(&mut self, shard: &mut Shard, now: Instant) -> bool {
        for _ in 0..BUDGET {
            let Some(event) = self.net.take_event() else { return false };
            let event = match event {
                FarEvent::Accepted(listener) => {
                    let Self { net, destinations, .. } = self;
                    for _ in 0..self.publisher.accept(net, shard, listener, destinations) {
                        self.refused.count(NOT_OPENED);
                    }
                    continue;
                }
                FarEvent::Connected(far) => {
                    let decided = self.dials.on_open(far);
                    self.settle(shard, decided);
                    continue;
                }
                FarEvent::Closed(far, error) => {
                    if let Some(error) = &error
                        && let Some(decided) = self.dials.on_failed(&mut self.net, far, error)
                    {
                        self.settle(shard, Some(decided));
                        continue;
                    }
                    TransportEvent::Closed(far, error.as_ref().map(conn_error))
                }
                FarEvent::Readable(far) => TransportEvent::Readable(far),
                FarEvent::Writable(far) => TransportEvent::Writable(far),
            };
            let sides = Sides { near: &mut *shard, far: &mut self.net };
            self.relay.on_far(sides, &event, now);
        }
        true
    }

    /// Follows the program to its end and beyond.
    fn follow(&mut self, shard: &mut Shard, now: Instant) {
        match self.session.poll() {
            Stage::Runs => return,
            Stage::Ended => {}
            Stage::Hurried => self.until = Some(now),
        }
        if self.until.is_none() {
            self.until = Some(now + self.linger);
            // The other end is gone, or about to be: it would be readable for ever.
            let _ = epoll::delete(&self.watch, self.session.channel());
            self.dials.cut_unanswered(&mut self.net);
            self.publisher.cut(&mut self.net, shard);
            self.relay.begin_drain(Sides { near: &mut *shard, far: &mut self.net });
        }
        let is_over = self.until.is_some_and(|until| now >= until);
        // What the machine's sockets hold is delivered without this process.
        let is_delivered = self.net.shard().is_none_or(|it| it.census().connections == 0);
        let is_empty = self.relay.statistics().open == 0 && self.dials.len() == 0 && is_delivered;
        if is_over || (is_empty && !self.has_input()) {
            self.dials.cut(&mut self.net);
            self.relay.cut(Sides { near: shard, far: &mut self.net });
            self.stop.set();
        }
    }

    /// True if packets of the program wait in the device, or are on the path.
    fn has_input(&self) -> bool {
        if self.path.as_ref().is_some_and(|path| !path.is_empty()) {
            return true;
        }
        let mut fds = [PollFd::new(&self.device, Interest::Read)];
        ppoll(&mut fds, Some(Duration::ZERO)).is_ok() && fds.iter().any(PollFd::is_readable)
    }
}

impl<F: FarNet, P: FarPings<F>> Port for Gateway<F, P> {
    fn flush(&mut self, now: Instant, shard: &mut Shard) -> Activity {
        let mut more = self.take_near_events(shard, now);
        more |= self.take_far_events(shard, now);
        let (to, refused) = (&self.destinations, &mut self.refused);
        let far = &mut self.net;
        more |= self.udp.take_near(shard, far, to, refused, now);
        more |= self.udp.take_far(shard, far, to, refused, now);
        self.udp.expire(far, now);
        more |= self.pings.take_near(shard, far, to, refused, now);
        more |= self.pings.take_far(shard, far, to, refused);
        self.pings.expire(now);
        let sides = Sides { near: &mut *shard, far: &mut self.net };
        more |= self.relay.poll(sides, now, BUDGET);
        self.follow(shard, now);
        match self.net.turn().and_then(|moved| self.net.check().map(|()| moved)) {
            Ok(moved) => Activity::busy_if(more).or(moved),
            Err(error) => {
                self.failure = Some(error);
                self.stop.set();
                Activity::Idle
            }
        }
    }

    fn on_conflict(&mut self, conflict: AddressConflict) {
        tell_conflict(conflict);
    }

    fn next_deadline(&self) -> Option<Instant> {
        let of_packets = [self.udp.next_deadline(), self.pings.next_deadline()];
        let [udp, pings] = of_packets;
        let far = self.net.next_deadline();
        Instant::earliest([self.relay.next_deadline(), udp, pings, self.until, far])
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.watch.as_fd())
    }
}

/// Flows of datagrams at most.
const MOST_UDP_FLOWS: usize = 4096;
/// Identifiers of echo requests at most.
const MOST_PINGS: usize = 256;
/// Events of a kind dealt with in one turn, before frames have their turn again.
const BUDGET: usize = 256;
/// Reasons of refusals that are no error of the system.
const DENIED: &str = "denied";
const NO_HOST: &str = "no such host inside";
const REFUSED_INSIDE: &str = "refused inside";
const NOT_OPENED: &str = "not opened inside";
const NO_PORT: &str = "no such port of the name server";
