//! Table of the addresses and ports that sockets and listeners of one stack have bound.
//!
//! `bind` and `listen` return at once, so they cannot ask a shard. They ask this table, which no packet
//! needs. No shard refuses an entry of it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use fastrand::Rng;
use whimbrel_stack::InterfaceAddress;
use whimbrel_stack::ip::Addresses;
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Endpoint, Family};

use crate::fault;
use crate::sharded_listener::ShardedListener;

/// Bound addresses and ports.
#[derive(Debug)]
pub(crate) struct BindTable {
    /// Addresses of the stack on its networks, which may change.
    own: RwLock<Vec<InterfaceAddress>>,
    first: u16,
    last: u16,
    table: Mutex<Entries>,
    /// True if there is a listener for any destination.
    any: AtomicBool,
    sources: SourceAddresses,
}

#[derive(Debug)]
struct Entries {
    /// By port; mostly one each.
    ports: BTreeMap<u16, Vec<Holder>>,
    next: u64,
    chance: Rng,
}

#[derive(Debug)]
struct Holder {
    id: u64,
    addr: Address,
    share: Share,
    state: HolderState,
}

/// Use of a bound address and port.
#[derive(Debug)]
enum HolderState {
    Bound,
    Listening(Weak<ShardedListener>),
}

/// Sharing of a bound address and port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    /// With others that allow it, while none of them listens (`SO_REUSEADDR`).
    pub(crate) address: bool,
    /// With others that allow it, all of which may listen (`SO_REUSEPORT`).
    pub(crate) port: bool,
}

/// Addresses that the connections of a stack may come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceAddresses {
    /// The addresses that the stack has.
    Own,
    /// Each unicast address, also one of another host (`any_address`).
    Any,
}

impl Share {
    /// No sharing.
    pub(crate) const NONE: Self = Self { address: false, port: false };
    /// With `SO_REUSEADDR`, like tokio's listeners.
    pub(crate) const ADDRESS: Self = Self { address: true, port: false };
}

/// A bound address and port, released when dropped.
#[derive(Debug)]
pub(crate) struct ReservedAddr {
    bound: Arc<BindTable>,
    id: u64,
    at: Endpoint,
}

/// Reservation of the listener for any destination, released when dropped.
#[derive(Debug)]
pub(crate) struct ReservedAny(Arc<BindTable>);

impl Drop for ReservedAny {
    fn drop(&mut self) {
        self.0.any.store(false, Ordering::Release);
    }
}

impl BindTable {
    /// Creates an empty table. The order of selected ports repeats with `seed`.
    pub(crate) fn new(
        addresses: &[InterfaceAddress],
        tunables: &Tunables,
        seed: u64,
        sources: SourceAddresses,
    ) -> Self {
        Self {
            own: RwLock::new(addresses.to_vec()),
            first: tunables.port_first,
            last: tunables.port_last,
            table: Mutex::new(Entries {
                ports: BTreeMap::new(),
                next: 0,
                chance: Rng::with_seed(seed),
            }),
            any: AtomicBool::new(false),
            sources,
        }
    }

    /// Binds `at`; port 0 selects an ephemeral port.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        at: Endpoint,
        share: Share,
    ) -> io::Result<ReservedAddr> {
        self.check_own(at)?;
        self.enter(at, share)
    }

    /// Binds `at`, which may be another host's if the stack takes any address: to connect from there.
    pub(crate) fn reserve_source(
        self: &Arc<Self>,
        at: Endpoint,
        share: Share,
    ) -> io::Result<ReservedAddr> {
        self.check_source(at)?;
        self.enter(at, share)
    }

    fn enter(self: &Arc<Self>, at: Endpoint, share: Share) -> io::Result<ReservedAddr> {
        let mut table = self.lock();
        let port = match at.port {
            0 => self.draw(&mut table, at.addr)?,
            port => port,
        };
        let at = Endpoint::new(at.addr, port);
        let id = table.next;
        let holder = Holder { id, addr: at.addr, share, state: HolderState::Bound };
        let others = table.ports.entry(port).or_default();
        // Compared with all holders of the port, because an unspecified address overlaps each of them.
        if others.iter().any(|other| excludes(other, &holder)) {
            return Err(fault::in_use(at));
        }
        others.push(holder);
        table.next += 1;
        Ok(ReservedAddr { bound: Arc::clone(self), id, at })
    }

    /// Reserves the listener for any destination.
    pub(crate) fn reserve_any(self: &Arc<Self>) -> io::Result<ReservedAny> {
        if self.any.swap(true, Ordering::Acquire) {
            return Err(fault::any_in_use());
        }
        Ok(ReservedAny(Arc::clone(self)))
    }

    /// Fails unless `at` has an address of the stack or the unspecified one.
    pub(crate) fn check_own(&self, at: Endpoint) -> io::Result<()> {
        let has_it = || {
            let own = self.own.read().unwrap_or_else(PoisonError::into_inner);
            own.iter().any(|own| own.addr == at.addr)
        };
        let is_own = at.addr.is_unspecified() || Addresses::is_loopback(&at.addr) || has_it();
        if is_own { Ok(()) } else { Err(fault::not_local(at.addr)) }
    }

    /// Fails unless a connection may come from `at`: [`BindTable::check_own`], or with `any_address` any
    /// host's.
    pub(crate) fn check_source(&self, at: Endpoint) -> io::Result<()> {
        match self.sources {
            SourceAddresses::Any if !at.addr.is_multicast_or_broadcast() => Ok(()),
            SourceAddresses::Any | SourceAddresses::Own => self.check_own(at),
        }
    }

    /// Returns the stack's addresses on its networks.
    pub(crate) fn addresses(&self) -> Vec<InterfaceAddress> {
        self.own.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds an address of the stack; each shard calls this.
    pub(crate) fn add_address(&self, address: InterfaceAddress) {
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        if !own.contains(&address) {
            own.push(address);
        }
    }

    /// Removes an address of the stack. Sockets bound to it stay.
    pub(crate) fn remove_address(&self, addr: &Address) {
        let mut own = self.own.write().unwrap_or_else(PoisonError::into_inner);
        own.retain(|own| own.addr != *addr);
    }

    fn draw(&self, table: &mut Entries, addr: Address) -> io::Result<u16> {
        let count = u32::from(self.last - self.first) + 1;
        // From a random port upward, so that a port does not reveal earlier ones (RFC 6056 3.3.1).
        let from = table.chance.u32(0..count);
        let mut ports = (0..count).map(|step| self.first + ((from + step) % count) as u16);
        let free = |port: &u16| {
            let holders = table.ports.get(port).map_or(&[][..], Vec::as_slice);
            !holders.iter().any(|other| overlap(&other.addr, &addr))
        };
        ports.find(free).ok_or_else(|| fault::no_port(self.first, self.last))
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedAddr {
    /// Returns the bound address and port.
    pub(crate) fn at(&self) -> Endpoint {
        self.at
    }

    /// Sets the sharing from now on.
    pub(crate) fn share(&self, share: Share) {
        let mut table = self.bound.lock();
        let holders = table.ports.get_mut(&self.at.port).into_iter().flatten();
        for own in holders.filter(|holder| holder.id == self.id) {
            own.share = share;
        }
    }

    /// Starts listening, if all other holders share the address and do not listen, or share the port.
    /// With a shared port it joins the existing listener; otherwise `open` creates one.
    pub(crate) fn listen(
        &self,
        open: impl FnOnce() -> Arc<ShardedListener>,
    ) -> io::Result<Arc<ShardedListener>> {
        let mut table = self.bound.lock();
        let holders = table.ports.entry(self.at.port).or_default();
        let is_own = |holder: &&mut Holder| holder.id == self.id;
        let share = holders.iter_mut().find(is_own).map_or(Share::NONE, |own| own.share);
        let mut listener = None;
        for other in holders.iter().filter(|other| other.id != self.id) {
            if !overlap(&other.addr, &self.at.addr) {
                continue;
            }
            // As on Linux, SO_REUSEADDR lets two sockets bind one address and port, and one of them
            // listen.
            let is_bound = matches!(other.state, HolderState::Bound);
            if is_bound && share.address && other.share.address {
                continue;
            }
            if !(share.port && other.share.port && other.addr == self.at.addr) {
                return Err(fault::in_use(self.at));
            }
            if let HolderState::Listening(theirs) = &other.state {
                // A listener that is just being dropped still has the port.
                listener = Some(theirs.upgrade().ok_or_else(|| fault::in_use(self.at))?);
            }
        }
        let listener = listener.unwrap_or_else(open);
        if let Some(own) = holders.iter_mut().find(is_own) {
            // Weak: a table that kept listeners alive would keep the port of a dropped one.
            own.state = HolderState::Listening(Arc::downgrade(&listener));
        }
        Ok(listener)
    }
}

impl Drop for ReservedAddr {
    fn drop(&mut self) {
        let mut table = self.bound.lock();
        if let Some(holders) = table.ports.get_mut(&self.at.port) {
            holders.retain(|holder| holder.id != self.id);
            // Removes empty entries, so that the table is as large as the number of bound ports.
            if holders.is_empty() {
                table.ports.remove(&self.at.port);
            }
        }
    }
}

fn excludes(one: &Holder, other: &Holder) -> bool {
    let listens = |holder: &Holder| matches!(holder.state, HolderState::Listening(_));
    let by_address = one.share.address && other.share.address && !listens(one) && !listens(other);
    let shared = by_address || one.share.port && other.share.port;
    overlap(&one.addr, &other.addr) && !shared
}

/// True if both could receive the same SYN. `::` also accepts IPv4, like a socket without
/// `IPV6_V6ONLY`.
fn overlap(one: &Address, other: &Address) -> bool {
    let covers = |wide: &Address, narrow: &Address| {
        wide.is_unspecified() && (wide.family() == Family::V6 || narrow.family() == Family::V4)
    };
    one == other || covers(one, other) || covers(other, one)
}

#[cfg(test)]
mod tests;
