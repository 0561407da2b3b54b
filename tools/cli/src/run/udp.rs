//! Datagrams: one socket outside for each endpoint inside, for all of its destinations (RFC 4787 4.1).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use whimbrel_base::{Instant, Slab};
use whimbrel_io::descriptors;
use whimbrel_stack::ip::Unreachable;
use whimbrel_stack::udp::{Arrived, Received};
use whimbrel_stack::{SendTo, Shard, UdpHandle};
use whimbrel_wire::{Endpoint, Family, TrafficClass};

use super::destinations::{Destinations, Outside, loopback};
use super::far::{FarDatagrams, FarNet, ReadySocket, Refusal, unbound};
use super::network::DNS_PORT;
use super::publish::{Published, PublishedProtocol};
use crate::failure::Failure;
use crate::refusals::Refusals;

/// The datagrams of a shard, and the sockets outside for them.
pub(super) struct UdpFlows<F: FarNet> {
    /// The shard's socket, for any destination.
    near: UdpHandle,
    /// Flows at most: beyond, the one that was idle for longest ends.
    most: usize,
    sockets: F::Datagrams,
    flows: Slab<UdpFlow<F>>,
    by_inside: BTreeMap<FlowKey, u32>,
    /// Flows by the last datagram, and by the time of their end; not those of published ports.
    by_last: BTreeSet<(Instant, u32)>,
    by_expiry: BTreeSet<(Instant, u32)>,
    statistics: UdpStatistics,
}

struct UdpFlow<F: FarNet> {
    key: FlowKey,
    socket: <F::Datagrams as FarDatagrams<F>>::Socket,
    /// The last datagram, and how long the flow is kept behind it; `None`: for ever.
    last: Instant,
    patience: Option<Duration>,
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

impl<F: FarNet> UdpFlows<F> {
    /// Takes the datagrams of `shard` to any destination, in at most so many flows.
    pub(super) fn new(shard: &mut Shard, most: usize) -> Result<Self, Failure> {
        Ok(Self {
            near: shard.udp_bind_any().map_err(Failure::run)?,
            most,
            sockets: F::Datagrams::new()?,
            flows: Slab::new(),
            by_inside: BTreeMap::new(),
            by_last: BTreeSet::new(),
            by_expiry: BTreeSet::new(),
            statistics: UdpStatistics::default(),
        })
    }

    /// Makes the flows of published ports, which last.
    pub(super) fn publish(
        &mut self,
        far: &mut F,
        published: &[Published],
        to: &Destinations,
    ) -> Result<(), Failure> {
        for Published { outside, inside_port, protocol } in published {
            let program = to.network.program_of_family(outside.addr);
            let (PublishedProtocol::Udp, Some(program)) = (protocol, program) else { continue };
            let inside = Endpoint::new(program, *inside_port);
            let key = FlowKey { inside, family: outside.addr.family() };
            let made = self.insert(far, key, *outside, None, Instant::ZERO);
            made.map_err(|error| unbound(*outside, &error))?;
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
        far: &mut F,
        to: &Destinations,
        refused: &mut Refusals,
        now: Instant,
    ) -> bool {
        for _ in 0..BUDGET {
            let Some(datagram) = shard.udp_recv(self.near) else { return false };
            if let Err((what, why)) = self.send_on(far, &datagram, to, now) {
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
        far: &mut F,
        datagram: &Received,
        to: &Destinations,
        now: Instant,
    ) -> Result<(), Refusal> {
        let place =
            match self.is_published(datagram.from) && to.network.is_gateway(datagram.to.addr) {
                // An answer to a client on this machine, which the program took for the gateway.
                true => Outside::At(Endpoint::new(loopback(datagram.to.addr), datagram.to.port)),
                false => to.judge(datagram.to),
            };
        let hops = to.hops_left(datagram.to.addr, datagram.hop_limit)?;
        let patience = match datagram.to.port {
            DNS_PORT => NAME_PATIENCE,
            _ => PATIENCE,
        };
        let (outside, names) = match place {
            Outside::At(outside) => (outside, None),
            Outside::NameServer => self.name_server(datagram, to)?,
            Outside::Denied => return Err((Some(Unreachable::Prohibited), "denied")),
            Outside::NoHost => return Err((Some(Unreachable::Host), "no such host inside")),
            Outside::NoPort => return Err((Some(Unreachable::Port), "no such port inside")),
        };
        let key = FlowKey { inside: datagram.from, family: outside.addr.family() };
        let number =
            self.flow_of(far, key, patience, now).map_err(
                |error| match descriptors::are_used_up(&error) {
                    true => (Some(Unreachable::Prohibited), "no descriptor left"),
                    false => (Some(Unreachable::Network), "no socket for datagrams"),
                },
            )?;
        let Some(flow) = self.flows.get_mut(number) else { return Ok(()) };
        flow.names = names.or(flow.names);
        let sent = self.sockets.send(far, &mut flow.socket, datagram, outside, hops);
        match sent {
            Ok(()) => {
                self.statistics.sent += 1;
                self.statistics.bytes_sent += datagram.data.len() as u64;
            }
            Err((None, _)) => self.statistics.dropped += 1,
            Err(_) => {}
        }
        sent
    }

    /// True if a port of the machine leads to this endpoint inside.
    fn is_published(&self, inside: Endpoint) -> bool {
        let number = self.by_inside.get(&FlowKey { inside, family: inside.addr.family() });
        let flow = number.and_then(|number| self.flows.get(*number));
        flow.is_some_and(|flow| flow.patience.is_none())
    }

    /// The flow of an endpoint inside, which is made if there is none. Its time begins again.
    fn flow_of(
        &mut self,
        far: &mut F,
        key: FlowKey,
        patience: Duration,
        now: Instant,
    ) -> io::Result<u32> {
        if let Some(number) = self.by_inside.get(&key).copied() {
            self.touch(number, Some(patience), now);
            return Ok(number);
        }
        if self.flows.len() >= self.most
            && let Some((_, longest_idle)) = self.by_last.first().copied()
        {
            self.statistics.displaced += 1;
            self.end(far, longest_idle);
        }
        let any = match key.family {
            Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        self.insert(far, key, Endpoint::new(any, 0), Some(patience), now)
    }

    /// The name server for a query: the next one if it is repeated.
    fn name_server(
        &self,
        query: &Received,
        to: &Destinations,
    ) -> Result<(Endpoint, Option<NameQuery>), Refusal> {
        let id = query.data.first_chunk::<2>().copied();
        let asked = [Family::V4, Family::V6].into_iter().find_map(|family| {
            let number = *self.by_inside.get(&FlowKey { inside: query.from, family })?;
            self.flows.get(number)?.names.filter(|names| names.id == id)
        });
        let next = asked.map_or(0, |names| names.server + 1);
        let server = next.checked_rem(to.name_servers.len()).unwrap_or(0);
        let place = to.name_servers.get(server).copied();
        let place = place.ok_or((Some(Unreachable::Host), NO_NAME_SERVER))?;
        Ok((place, Some(NameQuery { id, server })))
    }

    fn insert(
        &mut self,
        far: &mut F,
        key: FlowKey,
        at: Endpoint,
        patience: Option<Duration>,
        now: Instant,
    ) -> io::Result<u32> {
        let socket = self.sockets.bind(far, at)?;
        let names = None;
        let number = self.flows.insert(UdpFlow { key, socket, last: now, patience, names });
        let Some(flow) = self.flows.get(number) else { return Ok(number) };
        if let Err(error) = self.sockets.watch(&flow.socket, number) {
            if let Some(UdpFlow { socket, .. }) = self.flows.remove(number) {
                self.sockets.close(far, socket);
            }
            return Err(error);
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

    fn end(&mut self, far: &mut F, number: u32) {
        let Some(flow) = self.flows.remove(number) else { return };
        self.by_inside.remove(&flow.key);
        self.by_last.remove(&(flow.last, number));
        self.by_expiry.remove(&(flow.last + flow.patience.unwrap_or_default(), number));
        self.sockets.close(far, flow.socket);
    }

    /// Ends flows that were idle for long.
    pub(super) fn expire(&mut self, far: &mut F, now: Instant) {
        for _ in 0..BUDGET {
            let Some((_, number)) = self.by_expiry.first().copied().filter(|(due, _)| *due <= now)
            else {
                return;
            };
            self.end(far, number);
        }
    }

    /// Passes datagrams and errors from outside to the program. Returns true if there are more.
    pub(super) fn take_far(
        &mut self,
        shard: &mut Shard,
        far: &mut F,
        to: &Destinations,
        refused: &mut Refusals,
        now: Instant,
    ) -> bool {
        let ready = self.sockets.ready(far);
        for ReadySocket { number, has_errors } in &ready {
            if *has_errors {
                self.take_errors(shard, far, *number, to, refused);
            }
            self.take_datagrams(shard, far, *number, to, now);
        }
        !ready.is_empty()
    }

    fn take_datagrams(
        &mut self,
        shard: &mut Shard,
        far: &mut F,
        number: u32,
        to: &Destinations,
        now: Instant,
    ) {
        for _ in 0..AT_ONCE {
            let Some(flow) = self.flows.get(number) else { return };
            let Some((data, from)) = self.sockets.receive(far, &flow.socket) else { return };
            let from = flow.inside_of(from, to);
            let send =
                SendTo::peer(flow.key.inside).with_source(from.addr).with_source_port(from.port);
            let len = data.len();
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
        far: &mut F,
        number: u32,
        to: &Destinations,
        refused: &mut Refusals,
    ) {
        for _ in 0..AT_ONCE {
            let Some(flow) = self.flows.get(number) else { return };
            let Some(error) = self.sockets.take_error(far, &flow.socket) else { return };
            let Some((what, why)) = error.meaning else { continue };
            refused.count(why);
            let arrived = Arrived {
                from: flow.key.inside,
                to: flow.inside_of(error.to, to),
                data: &error.data,
                class: TrafficClass::default(),
                hop_limit: 1,
                dont_fragment: true,
            };
            let received = Received::of(&arrived);
            match error.reporter {
                Some(router) if what != Unreachable::Port => {
                    let router = to.inside(Endpoint::new(router, 0)).addr;
                    shard.udp_refuse_as(&received, what, router);
                }
                _ => shard.udp_refuse(&received, what),
            }
        }
    }

    /// Readable when a socket has a datagram or an error, if the network's descriptor is not.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.sockets.descriptor()
    }
}

impl<F: FarNet> UdpFlow<F> {
    /// The endpoint inside of this sender, or destination, outside.
    fn inside_of(&self, outside: Endpoint, to: &Destinations) -> Endpoint {
        let is_name_server = self.names.is_some() && to.name_servers.contains(&outside);
        if is_name_server { to.network.name_service() } else { to.inside(outside) }
    }
}

/// RFC 4787 4.3: "A default value of five minutes or more for the NAT UDP mapping
/// timer is RECOMMENDED."
const PATIENCE: Duration = Duration::from_secs(300);
/// For queries of names, of which each has a flow of its own.
const NAME_PATIENCE: Duration = Duration::from_secs(10);
/// Datagrams of a kind dealt with in one turn.
const BUDGET: usize = 256;
/// Datagrams, and errors, of one socket.
const AT_ONCE: usize = 16;
/// Reason of a refusal.
const NO_NAME_SERVER: &str = "no name server on the wire";

#[cfg(test)]
mod tests;
