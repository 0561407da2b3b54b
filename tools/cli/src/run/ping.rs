//! Echo requests: one ICMP socket of the machine for each identifier inside (icmp(7), `ping_group_range`).
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
use whimbrel_io::sent_datagrams::{clear_error, keep_errors, set_dont_fragment, take_error};
use whimbrel_stack::Shard;
use whimbrel_stack::ip::Unreachable;
use whimbrel_wire::{Address, Endpoint, Family};

use super::destinations::{Destinations, Outside};
use super::udp::{meaning, refusal_of};
use crate::failure::Failure;
use crate::refusals::Refusals;
use echo::{Echo, EchoKind, Fragments};

mod echo;

/// The echo requests of a shard's program, and the machine's sockets for them.
pub(super) struct Pings {
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
    /// Requests that the machine, and replies that the stack had no room for.
    pub(super) dropped: u64,
}

impl Pings {
    /// Takes the packets of `shard` that nothing else takes, and the echo requests among them in at most so
    /// many flows.
    pub(super) fn new(shard: &mut Shard, most: usize) -> Result<Self, Failure> {
        shard.keep_unclaimed(MOST_WAITING);
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

    /// Counts so far.
    pub(super) const fn statistics(&self) -> PingStatistics {
        self.statistics
    }

    /// The time of the next [`Pings::expire`].
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.by_last.first().map(|(last, _)| *last + PATIENCE)
    }

    /// Ends flows that were idle for long.
    pub(super) fn expire(&mut self, now: Instant) {
        for _ in 0..AT_ONCE {
            let Some((last, number)) = self.by_last.first().copied() else { return };
            if last + PATIENCE > now {
                return;
            }
            self.end(number);
        }
    }

    /// Sends requests of the program on, and refuses what is none. Returns true if there are more.
    pub(super) fn take_near(
        &mut self,
        shard: &mut Shard,
        to: &Destinations,
        refused: &mut Refusals,
        now: Instant,
    ) -> bool {
        for _ in 0..AT_ONCE {
            let Some(packet) = shard.poll_unclaimed() else { return false };
            let sent = match Echo::of_packet(&packet) {
                Some(echo) => self.send_on(&echo, to, now),
                None => Err((Some(Unreachable::Prohibited), "of a protocol that is not passed on")),
            };
            if let Err((what, why)) = sent {
                refused.count(why);
                if let Some(what) = what {
                    shard.refuse_unclaimed(&packet, what);
                }
            }
        }
        true
    }

    /// Sends one request on, or returns what to tell the program, and why.
    fn send_on(
        &mut self,
        echo: &Echo<'_>,
        to: &Destinations,
        now: Instant,
    ) -> Result<(), (Option<Unreachable>, &'static str)> {
        let outside = match to.judge(Endpoint::new(echo.to, 0)) {
            Outside::At(outside) => outside,
            Outside::NoHost => return Err((Some(Unreachable::Host), "no such host inside")),
            Outside::Denied | Outside::NameServer | Outside::NoPort => {
                return Err((Some(Unreachable::Prohibited), "denied"));
            }
        };
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
        let number = self.flows.insert(PingFlow { key, socket, last: now, dont_fragment: None });
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

    /// Passes replies and errors of the machine's sockets to the program. Returns true if there are more.
    pub(super) fn take_far(
        &mut self,
        shard: &mut Shard,
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
                self.take_errors(shard, *number, to, refused);
            }
            self.take_replies(shard, *number, to);
        }
        !ready.is_empty()
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
            let fragments = Fragments::of(&reply, shard.mtu(), self.identification);
            let passed = fragments.map(Bytes::from).try_for_each(|packet| shard.inject(packet));
            match passed {
                Ok(()) => self.statistics.received += 1,
                Err(_) => self.statistics.dropped += 1,
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
            for packet in Fragments::of(&Echo { identifier, ..request }, u16::MAX, 0) {
                shard.refuse_unclaimed(&packet, what);
            }
        }
        if let Some(flow) = self.flows.get(number) {
            // The next call would return the error once more.
            let _ = clear_error(flow.socket.as_fd());
        }
    }
}

impl AsFd for Pings {
    /// Readable when a socket has a reply or an error.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl PingFlow {
    fn send(&mut self, echo: &Echo<'_>, to: Endpoint) -> io::Result<()> {
        if to.addr.is_v4() && self.dont_fragment != Some(echo.dont_fragment) {
            set_dont_fragment(&self.socket, echo.dont_fragment)?;
            self.dont_fragment = Some(echo.dont_fragment);
        }
        let to = SocketAddr::from(Endpoint::new(to.addr, 0));
        sendto(&self.socket, &echo.message(), SendFlags::empty(), &to)?;
        Ok(())
    }
}

/// RFC 5508 3.2: a session of echo requests ends after not less than 60 s.
const PATIENCE: Duration = Duration::from_secs(60);
/// Packets that wait for their turn.
const MOST_WAITING: usize = 64;
/// Bytes of the longest ICMP message: the payload of an IPv4 packet, rounded up.
const LONGEST: usize = 65_535;
/// Requests, and sockets, dealt with in one turn, and replies of one.
const AT_ONCE: usize = 64;
const OF_ONE: usize = 16;

#[cfg(test)]
mod tests;
