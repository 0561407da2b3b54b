//! Echo requests: by the machine's sockets, one ICMP socket for each identifier inside (icmp(7),
//! `ping_group_range`).
//!
//! The kernel puts the socket's own identifier into what it sends, and gives the socket the answers to that.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recvfrom, sendto,
    socket_with,
};
use whimbrel_base::{Instant, Slab};
use whimbrel_io::descriptors;
use whimbrel_io::sent_datagrams::{
    clear_error, keep_errors, set_dont_fragment, set_hop_limit, take_error,
};
use whimbrel_stack::Shard;
use whimbrel_stack::ip::Unreachable;
use whimbrel_wire::{Address, Endpoint, Family};

use super::destinations::{Destinations, Outside};
use super::far::{Refusal, meaning, refusal_of};
use crate::drive::KernelNet;
use crate::failure::Failure;
use crate::refusals::Refusals;
use echo::Fragments;
pub(super) use echo::{Echo, EchoKind, HOP_LIMIT};

mod echo;

/// The echo requests of a shard's program, and the machine's sockets for them.
pub(super) struct MachinePings {
    /// Flows at most: beyond, the one that was idle for longest ends.
    most: usize,
    epoll: OwnedFd,
    flows: Slab<PingFlow>,
    by_key: BTreeMap<PingKey, u32>,
    /// Flows by the last request.
    by_last: BTreeSet<(Instant, u32)>,
    buffer: Box<[u8]>,
    /// Of the last reply that was cut into fragments.
    identification: u32,
    statistics: PingStatistics,
}

struct PingFlow {
    key: PingKey,
    socket: OwnedFd,
    last: Instant,
    /// DF of the socket's packets, if it was set.
    dont_fragment: Option<bool>,
    /// Their hop limit, if it was set.
    hop_limit: Option<u8>,
}

/// A sender inside, and its identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct PingKey {
    inside: Address,
    identifier: u16,
}

/// Counts of echo requests.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct PingStatistics {
    /// Requests out, and replies in.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Flows that ended because others needed the place.
    pub(super) displaced: u64,
    /// Requests that outside, and replies that the stack had no room for.
    pub(super) dropped: u64,
}

/// Echo requests of the program, outside.
pub(super) trait FarPings<F>: Sized {
    /// Takes the packets of `near` that nothing else takes.
    fn new(near: &mut Shard, most: usize) -> Result<Self, Failure>;

    /// Counts so far.
    fn statistics(&self) -> PingStatistics;

    /// Sends requests of the program on, and refuses what is none. Returns true if there are more.
    fn take_near(
        &mut self,
        near: &mut Shard,
        far: &mut F,
        to: &Destinations,
        refused: &mut Refusals,
        now: Instant,
    ) -> bool;

    /// Passes replies and errors to the program. Returns true if there are more.
    fn take_far(
        &mut self,
        near: &mut Shard,
        far: &mut F,
        to: &Destinations,
        refused: &mut Refusals,
    ) -> bool;

    /// Ends what was idle for long.
    fn expire(&mut self, now: Instant);

    /// The time of the next [`FarPings::expire`].
    fn next_deadline(&self) -> Option<Instant>;

    /// Readable when [`FarPings::take_far`] is due, if the network's own is not.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

impl FarPings<KernelNet> for MachinePings {
    fn new(near: &mut Shard, most: usize) -> Result<Self, Failure> {
        near.keep_unclaimed(MOST_WAITING);
        Ok(Self {
            most,
            epoll: epoll::create(CreateFlags::CLOEXEC).map_err(Failure::run)?,
            flows: Slab::new(),
            by_key: BTreeMap::new(),
            by_last: BTreeSet::new(),
            buffer: vec![0; LONGEST].into_boxed_slice(),
            identification: 0,
            statistics: PingStatistics::default(),
        })
    }

    fn statistics(&self) -> PingStatistics {
        self.statistics
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.by_last.first().map(|(last, _)| *last + PATIENCE)
    }

    fn expire(&mut self, now: Instant) {
        for _ in 0..AT_ONCE {
            let Some((last, number)) = self.by_last.first().copied() else { return };
            if last + PATIENCE > now {
                return;
            }
            self.end(number);
        }
    }

    fn take_near(
        &mut self,
        near: &mut Shard,
        _: &mut KernelNet,
        to: &Destinations,
        refused: &mut Refusals,
        now: Instant,
    ) -> bool {
        pass_requests(near, to, refused, |echo, outside| self.send_on(echo, outside, now))
    }

    fn take_far(
        &mut self,
        near: &mut Shard,
        _: &mut KernelNet,
        to: &Destinations,
        refused: &mut Refusals,
    ) -> bool {
        let mut room = [std::mem::MaybeUninit::uninit(); AT_ONCE];
        let ready = epoll::wait(&self.epoll, &mut room, Some(&Timespec::default()));
        let Ok((ready, _)) = ready else { return false };
        let ready: Vec<_> =
            ready.iter().map(|event| (event.data.u64() as u32, event.flags)).collect();
        for (number, flags) in &ready {
            if flags.contains(EventFlags::ERR) {
                self.take_errors(near, *number, to, refused);
            }
            self.take_replies(near, *number, to);
        }
        !ready.is_empty()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.epoll.as_fd())
    }
}

/// Sends echo requests of the program on by `send`, with the address outside, and refuses what is none.
/// Returns true if there are more.
pub(super) fn pass_requests(
    near: &mut Shard,
    to: &Destinations,
    refused: &mut Refusals,
    mut send: impl FnMut(&Echo<'_>, Address) -> Result<(), Refusal>,
) -> bool {
    for _ in 0..AT_ONCE {
        let Some(packet) = near.poll_unclaimed() else { return false };
        let sent = match Echo::of_packet(&packet) {
            Some(echo) => place(&echo, to).and_then(|(outside, hops)| {
                send(&Echo { hop_limit: hops.unwrap_or(HOP_LIMIT), ..echo }, outside)
            }),
            None => Err((Some(Unreachable::Prohibited), "of a protocol that is not passed on")),
        };
        if let Err((what, why)) = sent {
            refused.count(why);
            if let Some(what) = what {
                near.refuse_unclaimed(&packet, what);
            }
        }
    }
    true
}

/// The address outside that a request is for, and how many hops it has left.
fn place(echo: &Echo<'_>, to: &Destinations) -> Result<(Address, Option<u8>), Refusal> {
    match to.judge(Endpoint::new(echo.to, 0)) {
        Outside::At(outside) => Ok((outside.addr, to.hops_left(echo.to, echo.hop_limit)?)),
        Outside::NoHost => Err((Some(Unreachable::Host), "no such host inside")),
        Outside::Denied | Outside::NameServer | Outside::NoPort => {
            Err((Some(Unreachable::Prohibited), "denied"))
        }
    }
}

/// Sends a reply to the program, whole or in fragments. Returns true if there is room for all of it.
pub(super) fn pass_reply(near: &mut Shard, reply: &Echo<'_>, identification: u32) -> bool {
    let fragments = Fragments::of(reply, near.mtu(), identification);
    fragments.map(Bytes::from).try_for_each(|packet| near.inject(packet)).is_ok()
}

/// Tells the program what became of its request, as `reporter` does, if one did.
pub(super) fn refuse_request(
    near: &mut Shard,
    request: &Echo<'_>,
    what: Unreachable,
    reporter: Option<Address>,
) {
    for packet in Fragments::of(request, u16::MAX, 0) {
        match reporter {
            Some(router) => near.refuse_unclaimed_as(&packet, what, router),
            None => near.refuse_unclaimed(&packet, what),
        }
    }
}

impl MachinePings {
    /// Sends one request on, or returns what to tell the program, and why.
    fn send_on(&mut self, echo: &Echo<'_>, outside: Address, now: Instant) -> Result<(), Refusal> {
        let key = PingKey { inside: echo.from, identifier: echo.identifier };
        let number = self.flow_of(key, now).map_err(|error| {
            let why = match descriptors::are_used_up(&error) {
                true => "no descriptor left",
                false => "no socket for echo requests",
            };
            (Some(Unreachable::Prohibited), why)
        })?;
        let Some(flow) = self.flows.get_mut(number) else { return Ok(()) };
        match flow.send(echo, outside) {
            Ok(()) => {
                self.statistics.sent += 1;
                Ok(())
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::WouldBlock {
                    self.statistics.dropped += 1;
                }
                Err(refusal_of(&error, flow.socket.as_fd(), &mut self.buffer))
            }
        }
    }

    /// The flow of an identifier inside, which is made if there is none. Its time begins again.
    fn flow_of(&mut self, key: PingKey, now: Instant) -> io::Result<u32> {
        if let Some(number) = self.touch(key, now) {
            return Ok(number);
        }
        let (family, protocol) = match key.inside.family() {
            Family::V4 => (AddressFamily::INET, ipproto::ICMP),
            Family::V6 => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::DGRAM, flags, Some(protocol))?;
        self.insert(key, socket, now)
    }

    /// The time of a flow begins again, if there is one.
    fn touch(&mut self, key: PingKey, now: Instant) -> Option<u32> {
        let number = *self.by_key.get(&key)?;
        let flow = self.flows.get_mut(number)?;
        self.by_last.remove(&(flow.last, number));
        flow.last = now;
        self.by_last.insert((now, number));
        Some(number)
    }

    fn insert(&mut self, key: PingKey, socket: OwnedFd, now: Instant) -> io::Result<u32> {
        if self.flows.len() >= self.most
            && let Some((_, longest_idle)) = self.by_last.first().copied()
        {
            self.statistics.displaced += 1;
            self.end(longest_idle);
        }
        keep_errors(&socket, key.inside.is_v4())?;
        let number = self.flows.insert(PingFlow {
            key,
            socket,
            last: now,
            dont_fragment: None,
            hop_limit: None,
        });
        let Some(flow) = self.flows.get(number) else { return Ok(number) };
        let event = EventData::new_u64(number.into());
        if let Err(error) = epoll::add(&self.epoll, &flow.socket, event, EventFlags::IN) {
            self.flows.remove(number);
            return Err(error.into());
        }
        self.by_key.insert(key, number);
        self.by_last.insert((now, number));
        Ok(number)
    }

    fn end(&mut self, number: u32) {
        let Some(flow) = self.flows.remove(number) else { return };
        self.by_key.remove(&flow.key);
        self.by_last.remove(&(flow.last, number));
    }

    fn take_replies(&mut self, shard: &mut Shard, number: u32, to: &Destinations) {
        for _ in 0..OF_ONE {
            let Some(flow) = self.flows.get(number) else { return };
            let received = recvfrom(&flow.socket, &mut *self.buffer, RecvFlags::empty());
            let Ok((len, _, Some(from))) = received else { return };
            let Ok(from) = SocketAddr::try_from(from) else { return };
            let from = to.inside(Endpoint::from(from)).addr;
            let message = self.buffer.get(..len).unwrap_or_default();
            let PingKey { inside, identifier } = flow.key;
            let Some(reply) = Echo::of_message(EchoKind::Reply, message, from, inside) else {
                continue;
            };
            let reply = Echo { identifier, ..reply };
            self.identification = self.identification.wrapping_add(1);
            match pass_reply(shard, &reply, self.identification) {
                true => self.statistics.received += 1,
                false => self.statistics.dropped += 1,
            }
        }
    }

    /// Tells the program what became of its requests.
    fn take_errors(
        &mut self,
        shard: &mut Shard,
        number: u32,
        to: &Destinations,
        refused: &mut Refusals,
    ) {
        for _ in 0..OF_ONE {
            let Some(flow) = self.flows.get(number) else { return };
            let Ok(Some(error)) = take_error(flow.socket.as_fd(), &mut self.buffer) else { break };
            let Some((what, why)) = meaning(&error) else { continue };
            let PingKey { inside, identifier } = flow.key;
            let outside = to.inside(error.to.into()).addr;
            let message = self.buffer.get(..error.len).unwrap_or_default();
            let Some(request) = Echo::of_message(EchoKind::Request, message, inside, outside)
            else {
                continue;
            };
            refused.count(why);
            let router = error.reporter.map(|ip| to.inside(Endpoint::new(ip.into(), 0)).addr);
            refuse_request(shard, &Echo { identifier, ..request }, what, router);
        }
        if let Some(flow) = self.flows.get(number) {
            // The next call would return the error once more.
            let _ = clear_error(flow.socket.as_fd());
        }
    }
}

impl PingFlow {
    fn send(&mut self, echo: &Echo<'_>, to: Address) -> io::Result<()> {
        if to.is_v4() && self.dont_fragment != Some(echo.dont_fragment) {
            set_dont_fragment(&self.socket, echo.dont_fragment)?;
            self.dont_fragment = Some(echo.dont_fragment);
        }
        if self.hop_limit != Some(echo.hop_limit) {
            set_hop_limit(&self.socket, to.is_v4(), echo.hop_limit)?;
            self.hop_limit = Some(echo.hop_limit);
        }
        let to = SocketAddr::from(Endpoint::new(to, 0));
        sendto(&self.socket, &echo.message(), SendFlags::empty(), &to)?;
        Ok(())
    }
}

/// RFC 5508 3.2: a session of echo requests ends after not less than 60 s.
const PATIENCE: Duration = Duration::from_secs(60);
/// Packets that wait for their turn.
pub(super) const MOST_WAITING: usize = 64;
/// Bytes of the longest ICMP message: the payload of an IPv4 packet, rounded up.
const LONGEST: usize = 65_535;
/// Requests, and sockets, dealt with in one turn, and replies of one.
const AT_ONCE: usize = 64;
const OF_ONE: usize = 16;

#[cfg(test)]
mod tests;
