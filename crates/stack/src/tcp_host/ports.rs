//! Which end of this side a connection takes: an address, of a pool or by the route, and a port.
//!
//! A free port comes first. Where there is none, on any address that may be used, a TIME-WAIT of
//! ours may be ended and its 4-tuple taken over (RFC 1122 4.2.2.13, RFC 7323 B.2); where that is not
//! safe yet, the error says when it will be.

use alloc::vec::Vec;
use core::time::Duration;

use whimbrel_base::{Tick, cold_path};
use whimbrel_tcp::Context;
use whimbrel_tcp::table::{
    Destination, FlowHash, Kind, Opener, PathClass, PortUse, Record, Stamped, TakeOver, TimeWait,
};
use whimbrel_tcp::tunables::{PortReuse, RefusedPorts, Tunables};
use whimbrel_wire::{Address, Endpoint, Family, SeqNum};

use super::Active;
use crate::error::{ConnectError, NotLocal};
use crate::ip::{Addresses, FlowKey};
use crate::net::Net;
use crate::tcp_host::records::Records;

/// This side of a connection that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalEndpoint {
    pub(crate) local_index: u16,
    pub(crate) local_port: u16,
    /// The hash of the whole flow.
    pub(crate) hash: FlowHash,
    /// The connection whose 4-tuple it has.
    pub(crate) reuses: Option<Predecessor>,
}

/// The state that a connection of ours in TIME-WAIT leaves to the one that takes its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Predecessor {
    /// The ISS must lie at or beyond this.
    pub(crate) iss_floor: SeqNum,
    /// TS.Recent, if it had timestamps.
    pub(crate) ts_recent: Option<u32>,
}

/// Addresses that connections speak from in turn.
#[derive(Debug, Default)]
pub(crate) struct SourcePool {
    v4: RoundRobin,
    v6: RoundRobin,
}

/// Those of one family.
#[derive(Debug, Default)]
struct RoundRobin {
    pool: Vec<u16>,
    next: usize,
}

/// Why nothing was found, and what would be first.
#[derive(Clone, Copy, Default, Debug)]
struct PortShortage {
    in_use: u32,
    waiting: u32,
    /// A 4-tuple that can be taken over now.
    safe: Option<(u16, u16)>,
    /// When the next one can be, or comes free: ms from now.
    next: Option<u32>,
}

/// The number of another host's address to speak from, as IP_TRANSPARENT allows (ip(7)), if this host takes
/// any. Only a record holds it.
#[cold]
#[inline(never)]
fn foreign_source(net: &mut Net, local: Endpoint, remote: Endpoint) -> Result<u16, ConnectError> {
    let is_of_family = local.addr.family() == remote.addr.family();
    // What this host sends to itself has a source of its own.
    let leaves = !net.ip.addresses.is_local(&remote.addr);
    if !is_of_family || !leaves || !net.ip.is_foreign_host(&local.addr) {
        return Err(ConnectError::NotLocal(local));
    }
    net.ip.addresses.intern(local.addr).ok_or(ConnectError::NoSource(remote))
}

/// The ends that the caller of a connection asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointRequest {
    pub(crate) remote: Endpoint,
    /// This side's end; its address may be unspecified, its port 0.
    pub(crate) local: Option<Endpoint>,
}

impl EndpointRequest {
    /// The port that it has to be, if that was said.
    fn port(&self) -> Option<u16> {
        self.local.map(|local| local.port).filter(|port| *port != 0)
    }
}

/// Choosing this side's end of a connection.
impl Active {
    pub(crate) fn set_source_pool(
        &mut self,
        addresses: &Addresses,
        pool: &[Address],
    ) -> Result<(), NotLocal> {
        let mut sources = SourcePool::default();
        for addr in pool {
            let index = addresses.index_of(addr).ok_or(NotLocal(*addr))?;
            sources.of_mut(addr.family()).pool.push(index);
        }
        self.sources = sources;
        Ok(())
    }

    pub(crate) fn draw_port(
        &mut self,
        local: &Address,
        is_free: impl FnMut(u16) -> bool,
    ) -> Option<u16> {
        self.ports.draw(local, is_free).ok()
    }

    /// The end for a connection, for which the route suggests to speak from `source`; its port is in use from
    /// now on.
    // Always: what it returns would be stored and read again.
    #[inline(always)]
    pub(crate) fn choose_local_endpoint(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        records: &mut Records,
        request: EndpointRequest,
        source: Option<u16>,
    ) -> Result<LocalEndpoint, ConnectError> {
        let EndpointRequest { remote, local } = request;
        let only = self.only_source(net, remote, local, source)?;
        if let (Some(local_index), None) = (only, request.port())
            && let Some(end) = self.take_next_endpoint(cx, net, records, local_index, remote)
        {
            return Ok(end);
        }
        // In memory only here, where its address is taken.
        let request = &EndpointRequest { remote, local };
        let found = match only {
            Some(local_index) => self.find_local_endpoint(cx, net, records, local_index, request),
            None => self.find_in_source_pool(cx, net, records, request),
        };
        found.or_else(|shortage| {
            cold_path();
            self.choose_time_wait_port(cx, net, records, request, &shortage)
        })
    }

    /// An end at this address with the port that is next, if it is seen at once that it is free: as nearly
    /// always.
    #[inline(always)]
    fn take_next_endpoint(
        &mut self,
        cx: &mut Context,
        net: &Net,
        records: &Records,
        local_index: u16,
        remote: Endpoint,
    ) -> Option<LocalEndpoint> {
        let towards = Destination { local: *net.ip.addresses.get(local_index)?, remote };
        let next = self.ports.next(&towards)?;
        let local_port = next.port();
        if !net.ip.capabilities.steering.maps_to_this_queue(local_port, remote.port) {
            return None;
        }
        let key = key_of(local_index, local_port, remote);
        let hash = records.hash(&key);
        if records.flows.candidate(hash).is_some() {
            return None;
        }
        self.ports.take_next(&towards, next, &mut cx.counters);
        Some(LocalEndpoint { local_index, local_port, hash, reuses: None })
    }

    /// An end at the next address of the pool that has a free port.
    #[inline(never)]
    fn find_in_source_pool(
        &mut self,
        cx: &mut Context,
        net: &Net,
        records: &Records,
        request: &EndpointRequest,
    ) -> Result<LocalEndpoint, PortShortage> {
        let family = request.remote.addr.family();
        let mut shortage = PortShortage::default();
        for _ in 0..self.sources.of(family).len() {
            let next = self.sources.of_mut(family).take_turn();
            let Some(local_index) = next else { break };
            if request.port().is_none()
                && let Some(end) =
                    self.take_next_endpoint(cx, net, records, local_index, request.remote)
            {
                return Ok(end);
            }
            match self.find_local_endpoint(cx, net, records, local_index, request) {
                Ok(end) => return Ok(end),
                Err(found) => {
                    cold_path();
                    shortage.add(&found);
                }
            }
        }
        Err(shortage)
    }

    /// Only where no address has a free port does a connection in TIME-WAIT give up its own.
    #[cold]
    #[inline(never)]
    fn choose_time_wait_port(
        &mut self,
        cx: &mut Context,
        net: &mut Net,
        records: &mut Records,
        request: &EndpointRequest,
        shortage: &PortShortage,
    ) -> Result<LocalEndpoint, ConnectError> {
        if let Some((local_index, local_port)) = shortage.safe {
            let key = key_of(local_index, local_port, request.remote);
            let hash = records.hash(&key);
            let reuses = self.reuse_time_wait(cx, &mut net.ip.addresses, records, &key);
            return Ok(LocalEndpoint { local_index, local_port, hash, reuses });
        }
        // That a port which was asked for is taken says nothing of the others.
        let is_drawn = request.port().is_none();
        cx.counters.ports_exhausted += u64::from(is_drawn);
        Err(self.exhausted(request, shortage))
    }

    /// The one address to speak from; `None` if the pool has some.
    fn only_source(
        &self,
        net: &mut Net,
        remote: Endpoint,
        local: Option<Endpoint>,
        source: Option<u16>,
    ) -> Result<Option<u16>, ConnectError> {
        let addr = &remote.addr;
        match local.filter(|local| !local.addr.is_unspecified()) {
            Some(local) => match net.ip.addresses.source_index_of(&local.addr, addr) {
                None => foreign_source(net, local, remote).map(Some),
                own => Ok(own),
            },
            None if !self.sources.of(addr.family()).is_empty() => Ok(None),
            None => source.map(Some).ok_or(ConnectError::NoSource(remote)),
        }
    }

    /// An end with a free port at one address, or with the port that was asked for if that is free.
    fn find_local_endpoint(
        &mut self,
        cx: &mut Context,
        net: &Net,
        records: &Records,
        local_index: u16,
        request: &EndpointRequest,
    ) -> Result<LocalEndpoint, PortShortage> {
        let remote = request.remote;
        let Some(local) = net.ip.addresses.get(local_index).copied() else {
            return Err(PortShortage::default());
        };
        let towards = Destination { local, remote };
        let key = |local_port| key_of(local_index, local_port, remote);
        let end = |local_port, hash| LocalEndpoint { local_index, local_port, hash, reuses: None };
        let now = cx.tick;
        // The 4-tuple as a whole must be free, not the port: one port serves many peers.
        let mut hash = FlowHash(0);
        let mut look = |port| {
            let key = key(port);
            hash = records.hash(&key);
            port_use(records, hash, &key, now)
        };
        let Some(port) = request.port() else {
            // What a port comes home to is this shard's queue, where that can be computed.
            let steering = net.ip.capabilities.steering;
            let look_home = |port| match steering.maps_to_this_queue(port, remote.port) {
                true => look(port),
                false => PortUse::Elsewhere,
            };
            let chosen = self.ports.choose(&towards, &mut cx.counters, look_home);
            // The port that was looked up last is the one that was found free.
            return chosen.map(|port| end(port, hash)).map_err(|exhausted| {
                cold_path();
                let taken = exhausted.taken;
                let all = PortShortage {
                    in_use: taken.in_use,
                    waiting: taken.waiting,
                    ..PortShortage::default()
                };
                let longest = taken.longest.into_iter().flatten();
                longest.fold(all, |all, port| judge_wait(cx, net, records, all, &key(port)))
            });
        };
        match look(port) {
            PortUse::Free => {
                self.ports.claim(&towards, port, &mut cx.counters);
                Ok(end(port, hash))
            }
            PortUse::Waiting { .. } => {
                Err(judge_wait(cx, net, records, PortShortage::default(), &key(port)))
            }
            PortUse::Ours | PortUse::Foreign | PortUse::Elsewhere => Err(PortShortage::default()),
        }
    }

    /// Ends a TIME-WAIT of ours; its port stays in use, for its successor.
    fn reuse_time_wait(
        &mut self,
        cx: &mut Context,
        addresses: &mut Addresses,
        records: &mut Records,
        key: &FlowKey,
    ) -> Option<Predecessor> {
        let index = records.find(records.hash(key), key)?.index();
        let wait = records.remove_wait(index)?;
        self.on_wait_gone(addresses, &wait);
        let towards = destination(addresses, key)?;
        self.ports.claim(&towards, key.local_port, &mut cx.counters);
        cx.counters.time_wait_taken_over += 1;
        cx.counters.time_wait_recycled += 1;
        Some(Predecessor { iss_floor: wait.iss_floor(), ts_recent: wait.ts_recent() })
    }

    fn exhausted(&self, request: &EndpointRequest, shortage: &PortShortage) -> ConnectError {
        let EndpointRequest { remote, local } = *request;
        if let Some(local) = local.filter(|local| local.port != 0) {
            return ConnectError::InUse { local, remote };
        }
        let range = self.ports.range();
        ConnectError::PortsExhausted {
            remote,
            first: range.first(),
            last: range.last(),
            in_use: shortage.in_use,
            waiting: shortage.waiting,
            next: shortage.next.map(|millis| Duration::from_millis(millis.into())),
        }
    }
}

/// Ports whose connections end.
impl Active {
    /// A connection that this side opened entered TIME-WAIT.
    pub(crate) fn on_own_wait(&mut self, addresses: &Addresses, wait: &TimeWait) {
        if let Some((towards, port)) = own_port(addresses, wait) {
            self.ports.start_waiting(&towards, port, stamped(wait));
        }
    }

    /// A record in TIME-WAIT began anew.
    pub(crate) fn on_wait_anew(&mut self, addresses: &Addresses, wait: &TimeWait) {
        if let Some((towards, port)) = own_port(addresses, wait) {
            self.ports.wait_anew(&towards, port, stamped(wait));
        }
    }

    /// A record in TIME-WAIT is gone.
    pub(crate) fn on_wait_gone(&mut self, addresses: &mut Addresses, wait: &TimeWait) {
        addresses.release(wait.local_index());
        if let Some((towards, port)) = own_port(addresses, wait) {
            self.ports.stop_waiting(&towards, port, stamped(wait));
        }
    }

    /// A connection that this side opened is gone, without TIME-WAIT.
    pub(crate) fn release_port(&mut self, addresses: &Addresses, key: &FlowKey) {
        if let Some(towards) = destination(addresses, key) {
            self.ports.release(&towards, key.local_port);
        }
    }

    /// Our SYN was not answered: perhaps for the same reason.
    pub(crate) fn on_syn_unanswered(
        &mut self,
        cx: &mut Context,
        addresses: &Addresses,
        key: &FlowKey,
    ) {
        let Some(towards) = destination(addresses, key) else { return };
        // One who does not answer any SYN refuses nothing.
        if self.ports.has_others(&towards) {
            cx.counters.syns_unheard += 1;
            self.on_refused(cx, addresses, key);
        }
    }

    /// The peer answered our SYN with a challenge: the last connection of its port is not forgotten
    /// there.
    pub(crate) fn on_refused(&mut self, cx: &mut Context, addresses: &Addresses, key: &FlowKey) {
        if cx.tunables.refused_ports == RefusedPorts::Forget {
            return;
        }
        if let Some(towards) = destination(addresses, key) {
            self.ports.on_refused(&towards, &mut cx.counters);
        }
    }
}

impl SourcePool {
    /// An address of it is no more.
    pub(crate) fn forget(&mut self, local: u16) {
        for robin in [&mut self.v4, &mut self.v6] {
            robin.pool.retain(|index| *index != local);
        }
    }

    fn of(&self, family: Family) -> &[u16] {
        match family {
            Family::V4 => &self.v4.pool,
            Family::V6 => &self.v6.pool,
        }
    }

    fn of_mut(&mut self, family: Family) -> &mut RoundRobin {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }
}

impl RoundRobin {
    #[inline(never)]
    fn take_turn(&mut self) -> Option<u16> {
        let index = self.pool.get(self.next % self.pool.len().max(1)).copied();
        self.next = self.next.wrapping_add(1);
        index
    }
}

impl PortShortage {
    fn add(&mut self, other: &Self) {
        self.in_use += other.in_use;
        self.waiting += other.waiting;
        self.safe = self.safe.or(other.safe);
        self.next = [self.next, other.next].into_iter().flatten().min();
    }
}

/// Adds to a shortage when this 4-tuple, in TIME-WAIT, could be taken over, or will be free.
fn judge_wait(
    cx: &Context,
    net: &Net,
    records: &Records,
    shortage: PortShortage,
    key: &FlowKey,
) -> PortShortage {
    let found = records.find(records.hash(key), key);
    let index = found.filter(|record| record.kind() == Kind::TimeWait).map(Record::index);
    let Some(wait) = index.and_then(|index| records.waits.get(index)) else {
        return shortage;
    };
    let class = net.ip.addresses.path_class(&key.remote);
    let now = cx.tick;
    let lasts = records.lifetimes.millis(class) + 1;
    let left = lasts.saturating_sub(now.millis_since(wait.entered()));
    let next = |left: u32| Some(shortage.next.map_or(left, |next| next.min(left)));
    match reuse_delay(&cx.tunables, class).map(|delay| wait.judge_take_over(now, delay)) {
        Some(TakeOver::Safe) => {
            PortShortage { safe: Some((key.local_index, key.local_port)), ..shortage }
        }
        Some(TakeOver::After(millis)) => PortShortage { next: next(millis.min(left)), ..shortage },
        Some(TakeOver::Never) | None => PortShortage { next: next(left), ..shortage },
    }
}

/// Returns the least age of the last segment; `None` if nothing may be reused.
fn reuse_delay(tunables: &Tunables, class: PathClass) -> Option<Duration> {
    let allowed = match tunables.tw_reuse {
        PortReuse::Timestamped => true,
        PortReuse::Loopback => class == PathClass::Loopback,
        PortReuse::Never => false,
    };
    allowed.then_some(match class {
        PathClass::Remote => tunables.tw_reuse_delay_remote,
        PathClass::Link => tunables.tw_reuse_delay_link,
        PathClass::Loopback => tunables.tw_reuse_delay_loopback,
    })
}

/// The port of a record that this side opened.
fn own_port(addresses: &Addresses, wait: &TimeWait) -> Option<(Destination, u16)> {
    if wait.opener() == Opener::Peer {
        return None;
    }
    let key = FlowKey::of_waiting(wait);
    Some((destination(addresses, &key)?, key.local_port))
}

fn destination(addresses: &Addresses, key: &FlowKey) -> Option<Destination> {
    let local = *addresses.get(key.local_index)?;
    Some(Destination { local, remote: Endpoint::new(key.remote, key.remote_port) })
}

fn key_of(local_index: u16, local_port: u16, remote: Endpoint) -> FlowKey {
    FlowKey { remote: remote.addr, remote_port: remote.port, local_port, local_index }
}

fn stamped(wait: &TimeWait) -> Stamped {
    if wait.ts_recent().is_some() { Stamped::Yes } else { Stamped::No }
}

/// Returns the use of a 4-tuple.
fn port_use(records: &Records, hash: FlowHash, key: &FlowKey, now: Tick) -> PortUse {
    match records.find(hash, key) {
        Some(record) => use_by(records, record, now),
        None => PortUse::Free,
    }
}

#[inline(never)]
fn use_by(records: &Records, record: Record, now: Tick) -> PortUse {
    let index = record.index();
    match record.kind() {
        Kind::Connection => {
            let slot = records.connections.0.get(index);
            let ours = slot.is_some_and(|slot| slot.linked == Some(Opener::Us));
            if ours { PortUse::Ours } else { PortUse::Foreign }
        }
        Kind::SynEntry => PortUse::Foreign,
        Kind::TimeWait => match records.waits.get(index) {
            Some(wait) if wait.opener() == Opener::Us => {
                let (entered, spoke) = (wait.entered(), wait.spoke(now));
                PortUse::Waiting { entered, spoke, stamped: stamped(wait) }
            }
            _ => PortUse::Foreign,
        },
    }
}
