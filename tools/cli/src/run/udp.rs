//! Datagrams: one socket of the machine for each endpoint inside, for all of its destinations (RFC 4787 4.1).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use bytes::Bytes;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use whimbrel_base::{Instant, Slab};
use whimbrel_io::descriptors;
use whimbrel_io::sent_datagrams::{
    QueuedError, clear_error, keep_errors, set_dont_fragment, take_error,
};
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::udp::{Arrived, Received};
use whimbrel_stack::{SendTo, Shard, UdpHandle};
use whimbrel_wire::{Endpoint, Family, TrafficClass};

use super::destinations::{Destinations, Outside, loopback};
use super::network::DNS_PORT;
use super::publish::{Published, PublishedProtocol, unbound};
use crate::failure::Failure;
use crate::refusals::Refusals;

/// The datagrams of a shard, and the machine's sockets for them.
pub(super) struct UdpFlows {
    /// The shard's socket, for any destination.
    near: UdpHandle,
    /// Flows at most: beyond, the one that was idle for longest ends.
    most: usize,
    epoll: OwnedFd,
    flows: Slab<UdpFlow>,
    by_inside: BTreeMap<FlowKey, u32>,
    /// Flows by the last datagram, and by the time of their end; not those of published ports.
    by_last: BTreeSet<(Instant, u32)>,
    by_expiry: BTreeSet<(Instant, u32)>,
    buffer: Box<[u8]>,
    statistics: UdpStatistics,
}

struct UdpFlow {
    key: FlowKey,
    socket: UdpSocket,
    /// The last datagram, and how long the flow is kept behind it; `None`: for ever.
    last: Instant,
    patience: Option<Duration>,
    /// DF of the socket's packets, if it was set.
    dont_fragment: Option<bool>,
    names: Option<NameQuery>,
}

/// An endpoint inside, and the family of a socket for it. They differ for name servers alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct FlowKey {
    inside: Endpoint,
    family: Family,
}

/// The last query of a flow for the name server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct NameQuery {
    /// Its id (RFC 1035 4.1.1).
    id: Option<[u8; 2]>,
    /// Number of the name server that it went to.
    server: usize,
}

/// Counts of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct UdpStatistics {
    /// Flows so far.
    pub(super) flows: u64,
    /// Flows that ended because others needed the place.
    pub(super) displaced: u64,
    /// Datagrams out, and in.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Bytes of those.
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    /// Datagrams that the machine, or the stack, had no room for.
    pub(super) dropped: u64,
}

impl UdpFlows {
    /// Takes the datagrams of `shard` to any destination, in at most so many flows.
    pub(super) fn new(shard: &mut Shard, most: usize) -> Result<Self, Failure> {
        Ok(Self {
            near: shard.udp_bind_any().map_err(Failure::run)?,
            most,
            epoll: epoll::create(CreateFlags::CLOEXEC).map_err(Failure::run)?,
            flows: Slab::new(),
            by_inside: BTreeMap::new(),
            by_last: BTreeSet::new(),
            by_expiry: BTreeSet::new(),
            buffer: vec![0; LONGEST].into_boxed_slice(),
            statistics: UdpStatistics::default(),
        })
    }

    /// Makes the flows of published ports, which last.
    pub(super) fn publish(
        &mut self,
        published: &[Published],
        to: &Destinations,
    ) -> Result<(), Failure> {
        for Published { outside, inside_port, protocol } in published {
            let program = to.network.program_of_family(outside.addr);
            let (PublishedProtocol::Udp, Some(program)) = (protocol, program) else { continue };
            let inside = Endpoint::new(program, *inside_port);
            let key = FlowKey { inside, family: outside.addr.family() };
            let socket = UdpSocket::bind(SocketAddr::from(*outside));
            let socket = socket.map_err(|error| unbound(*outside, &error))?;
            self.insert(key, socket, None, Instant::ZERO).map_err(Failure::run)?;
        }
        Ok(())
    }

    /// Counts so far.
    pub(super) const fn statistics(&self) -> UdpStatistics {
        self.statistics
    }

    /// The time of the next [`UdpFlows::expire`].
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.by_expiry.first().map(|(due, _)| *due)
    }

    /// Sends datagrams of the program on. Returns true if there are more.
    pub(super) fn take_near(
        &mut self,
        shard: &mut Shard,
        to: &Destinations,
        refused: &mut Refusals,
        now: Instant,
    ) -> bool {
        for _ in 0..BUDGET {
            let Some(datagram) = shard.udp_recv(self.near) else { return false };
            if let Err((what, why)) = self.send_on(&datagram, to, now) {
                refused.count(why);
                if let Some(what) = what {
                    shard.udp_refuse(&datagram, what);
                }
            }
        }
        true
    }

    /// Sends one datagram on, or returns what to tell the program, and why.
    fn send_on(
        &mut self,
        datagram: &Received,
        to: &Destinations,
        now: Instant,
    ) -> Result<(), (Option<Unreachable>, &'static str)> {
        let place =
            match self.is_published(datagram.from) && to.network.is_gateway(datagram.to.addr) {
                // An answer to a client on this machine, which the program took for the gateway.
                true => Outside::At(Endpoint::new(loopback(datagram.to.addr), datagram.to.port)),
                false => to.judge(datagram.to),
            };
        let patience = match datagram.to.port {
            DNS_PORT => NAME_PATIENCE,
            _ => PATIENCE,
        };
        let (outside, names) = match place {
            Outside::At(outside) => (outside, None),
            Outside::NameServer => self.name_server(datagram, to),
            Outside::Denied => return Err((Some(Unreachable::Prohibited), "denied")),
            Outside::NoHost => return Err((Some(Unreachable::Host), "no such host inside")),
            Outside::NoPort => return Err((Some(Unreachable::Port), "no such port inside")),
        };
        let key = FlowKey { inside: datagram.from, family: outside.addr.family() };
        let number = self.flow_of(key, patience, now).map_err(|error| {
            match descriptors::are_used_up(&error) {
                true => (Some(Unreachable::Prohibited), "no descriptor left"),
                false => (Some(Unreachable::Network), "no socket for datagrams"),
            }
        })?;
        let Some(flow) = self.flows.get_mut(number) else { return Ok(()) };
        flow.names = names.or(flow.names);
        match flow.send(datagram, outside) {
            Ok(()) => {
                self.statistics.sent += 1;
                self.statistics.bytes_sent += datagram.data.len() as u64;
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

    /// True if a port of the machine leads to this endpoint inside.
    fn is_published(&self, inside: Endpoint) -> bool {
        let number = self.by_inside.get(&FlowKey { inside, family: inside.addr.family() });
        let flow = number.and_then(|number| self.flows.get(*number));
        flow.is_some_and(|flow| flow.patience.is_none())
    }

    /// The flow of an endpoint inside, which is made if there is none. Its time begins again.
    fn flow_of(&mut self, key: FlowKey, patience: Duration, now: Instant) -> io::Result<u32> {
        if let Some(number) = self.by_inside.get(&key).copied() {
            self.touch(number, Some(patience), now);
            return Ok(number);
        }
        if self.flows.len() >= self.most
            && let Some((_, longest_idle)) = self.by_last.first().copied()
        {
            self.statistics.displaced += 1;
            self.end(longest_idle);
        }
        let any: SocketAddr = match key.family {
            Family::V4 => (Ipv4Addr::UNSPECIFIED, 0).into(),
            Family::V6 => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        self.insert(key, UdpSocket::bind(any)?, Some(patience), now)
    }

    /// The name server for a query: the next one if it is repeated.
    fn name_server(&self, query: &Received, to: &Destinations) -> (Endpoint, Option<NameQuery>) {
        let id = query.data.first_chunk::<2>().copied();
        let asked = [Family::V4, Family::V6].into_iter().find_map(|family| {
            let number = *self.by_inside.get(&FlowKey { inside: query.from, family })?;
            self.flows.get(number)?.names.filter(|names| names.id == id)
        });
        let next = asked.map_or(0, |names| names.server + 1);
        let server = next.checked_rem(to.name_servers.len()).unwrap_or(0);
        // At least one: `Resolver` has this machine if there is no other.
        let place = to.name_servers.get(server).copied();
        (place.unwrap_or(query.to), Some(NameQuery { id, server }))
    }

    fn insert(
        &mut self,
        key: FlowKey,
        socket: UdpSocket,
        patience: Option<Duration>,
        now: Instant,
    ) -> io::Result<u32> {
        socket.set_nonblocking(true)?;
        keep_errors(&socket, key.family == Family::V4)?;
        let (dont_fragment, names) = (None, None);
        let flow = UdpFlow { key, socket, last: now, patience, dont_fragment, names };
        let number = self.flows.insert(flow);
        let Some(flow) = self.flows.get(number) else { return Ok(number) };
        let event = EventData::new_u64(number.into());
        if let Err(error) = epoll::add(&self.epoll, &flow.socket, event, EventFlags::IN) {
            self.flows.remove(number);
            return Err(error.into());
        }
        if let Some(patience) = patience {
            self.by_last.insert((now, number));
            self.by_expiry.insert((now + patience, number));
        }
        self.by_inside.insert(key, number);
        self.statistics.flows += 1;
        Ok(number)
    }

    /// The time of a flow begins again. One that asked more than name servers is kept for longer.
    fn touch(&mut self, number: u32, patience: Option<Duration>, now: Instant) {
        let Some(flow) = self.flows.get_mut(number) else { return };
        let Some(before) = flow.patience else { return };
        self.by_last.remove(&(flow.last, number));
        self.by_expiry.remove(&(flow.last + before, number));
        let after = patience.unwrap_or(before).max(before);
        (flow.last, flow.patience) = (now, Some(after));
        self.by_last.insert((now, number));
        self.by_expiry.insert((now + after, number));
    }

    fn end(&mut self, number: u32) {
        let Some(flow) = self.flows.remove(number) else { return };
        self.by_inside.remove(&flow.key);
        self.by_last.remove(&(flow.last, number));
        self.by_expiry.remove(&(flow.last + flow.patience.unwrap_or_default(), number));
    }

    /// Ends flows that were idle for long.
    pub(super) fn expire(&mut self, now: Instant) {
        for _ in 0..BUDGET {
            let Some((_, number)) = self.by_expiry.first().copied().filter(|(due, _)| *due <= now)
            else {
                return;
            };
            self.end(number);
        }
    }

    /// Passes datagrams and errors of the machine's sockets to the program. Returns true if there are
    /// more.
    pub(super) fn take_far(
        &mut self,
        shard: &mut Shard,
        to: &Destinations,
        refused: &mut Refusals,
        now: Instant,
    ) -> bool {
        let mut room = [std::mem::MaybeUninit::uninit(); READY];
        let ready = epoll::wait(&self.epoll, &mut room, Some(&Timespec::default()));
        let Ok((ready, _)) = ready else { return false };
        let ready: Vec<_> =
            ready.iter().map(|event| (event.data.u64() as u32, event.flags)).collect();
        for (number, flags) in &ready {
            if flags.contains(EventFlags::ERR) {
                self.take_errors(shard, *number, to, refused);
            }
            self.take_datagrams(shard, *number, to, now);
        }
        !ready.is_empty()
    }

    fn take_datagrams(&mut self, shard: &mut Shard, number: u32, to: &Destinations, now: Instant) {
        for _ in 0..AT_ONCE {
            let Some(flow) = self.flows.get(number) else { return };
            let Ok((len, from)) = flow.socket.recv_from(&mut self.buffer) else { return };
            let from = flow.inside_of(from.into(), to);
            let send =
                SendTo::peer(flow.key.inside).with_source(from.addr).with_source_port(from.port);
            let data = Bytes::copy_from_slice(self.buffer.get(..len).unwrap_or_default());
            match shard.udp_send(self.near, data, &send) {
                Ok(()) => {
                    self.statistics.received += 1;
                    self.statistics.bytes_received += len as u64;
                }
                Err(_) => self.statistics.dropped += 1,
            }
            self.touch(number, None, now);
        }
    }

    /// Tells the program what became of its datagrams.
    fn take_errors(
        &mut self,
        shard: &mut Shard,
        number: u32,
        to: &Destinations,
        refused: &mut Refusals,
    ) {
        for _ in 0..AT_ONCE {
            let Some(flow) = self.flows.get(number) else { return };
            let Ok(Some(error)) = take_error(flow.socket.as_fd(), &mut self.buffer) else { break };
            let Some((what, why)) = meaning(&error) else { continue };
            refused.count(why);
            let arrived = Arrived {
                from: flow.key.inside,
                to: flow.inside_of(error.to.into(), to),
                data: self.buffer.get(..error.len).unwrap_or_default(),
                class: TrafficClass::default(),
                hop_limit: 1,
                dont_fragment: true,
            };
            shard.udp_refuse(&Received::of(&arrived), what);
        }
        if let Some(flow) = self.flows.get(number) {
            // The next call would return the error once more.
            let _ = clear_error(flow.socket.as_fd());
        }
    }
}

impl AsFd for UdpFlows {
    /// Readable when a socket has a datagram or an error.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl UdpFlow {
    fn send(&mut self, datagram: &Received, to: Endpoint) -> io::Result<()> {
        // What the program does not let others cut is not cut behind the gateway either.
        if to.addr.is_v4() && self.dont_fragment != Some(datagram.dont_fragment) {
            set_dont_fragment(&self.socket, datagram.dont_fragment)?;
            self.dont_fragment = Some(datagram.dont_fragment);
        }
        self.socket.send_to(&datagram.data, SocketAddr::from(to)).map(drop)
    }

    /// The endpoint inside of this sender, or destination, outside.
    fn inside_of(&self, outside: Endpoint, to: &Destinations) -> Endpoint {
        let is_name_server = self.names.is_some() && to.name_servers.contains(&outside);
        if is_name_server { to.network.name_service() } else { to.inside(outside) }
    }
}

/// Answer to the program for an error of sending by `socket`.
pub(super) fn refusal_of(
    error: &io::Error,
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> (Option<Unreachable>, &'static str) {
    match error.kind() {
        io::ErrorKind::WouldBlock => (None, "no room for a datagram"),
        io::ErrorKind::NetworkUnreachable => (Some(Unreachable::Network), "network unreachable"),
        io::ErrorKind::PermissionDenied => {
            (Some(Unreachable::Prohibited), "forbidden by the machine")
        }
        _ if error.raw_os_error() == Some(EMSGSIZE) => (too_big(socket, buffer), TOO_LONG),
        _ => (Some(Unreachable::Host), "host unreachable"),
    }
}

/// The MTU for which a call was refused. It is in the error queue, without the destination that it is of: so
/// it is taken at once. What the queue held before is lost, as errors are on their way.
fn too_big(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Option<Unreachable> {
    let queue = std::iter::from_fn(|| take_error(socket, buffer).ok()?).take(MOST_QUEUED);
    let told = queue.filter_map(|queued| Some(meaning(&queued)?.0)).last();
    let _ = clear_error(socket);
    told.filter(|what| matches!(what, Unreachable::TooBig { .. }))
}

/// Answer to the program for an error of the machine's.
pub(super) fn meaning(error: &QueuedError) -> Option<(Unreachable, &'static str)> {
    let kind = io::Error::from_raw_os_error(error.errno).kind();
    Some(match kind {
        io::ErrorKind::ConnectionRefused => (Unreachable::Port, "port unreachable"),
        io::ErrorKind::HostUnreachable => (Unreachable::Host, "host unreachable"),
        io::ErrorKind::NetworkUnreachable => (Unreachable::Network, "network unreachable"),
        io::ErrorKind::PermissionDenied => (Unreachable::Prohibited, "forbidden on the way"),
        _ if error.errno == EMSGSIZE => {
            let mtu = u16::try_from(error.mtu).unwrap_or(u16::MAX);
            (Unreachable::TooBig { mtu }, TOO_LONG)
        }
        _ => return None,
    })
}

/// RFC 4787 4.3: "A default value of five minutes or more for the NAT UDP mapping
/// timer is RECOMMENDED."
const PATIENCE: Duration = Duration::from_secs(300);
/// For queries of names, of which each has a flow of its own.
const NAME_PATIENCE: Duration = Duration::from_secs(10);
/// The longest datagram.
const LONGEST: usize = 65_535;
/// Datagrams of a kind dealt with in one turn.
const BUDGET: usize = 256;
/// Sockets looked at in one turn, and datagrams of one.
const READY: usize = 64;
const AT_ONCE: usize = 16;
/// Errors read for one.
const MOST_QUEUED: usize = 1024;
/// Linux' number for a message that is too long.
const EMSGSIZE: i32 = 90;
/// Reason of the refusal then.
const TOO_LONG: &str = "datagram too long for the path";

#[cfg(test)]
mod tests;
