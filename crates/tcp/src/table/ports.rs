//! Ephemeral ports: which local port a new connection takes (RFC 6056).
//!
//! By default the order is the double hash of RFC 6056 3.3.4: towards one destination ports come one after
//! the other, from a start that nobody outside can guess, and by a counter that connections to
//! other destinations do not move. A port is in use per 4-tuple, never for the whole host; who
//! knows the 4-tuples says what is free.
//!
//! Here stands the *order*; the search along it is [`Ports::choose`], which probes port by port.
//! At nearly full use that takes up to one probe for each port of the range. A map of the ports in
//! use per destination, which makes it O(1) at any fill, would replace only the search.

use alloc::boxed::Box;

use whimbrel_wire::{Address, Endpoint};

use super::Secrets;
use super::sip::SipHasher24;
use crate::Tunables;
use crate::tunables::{InvalidTunable, PortOrder};

/// Draws ephemeral ports.
pub struct Ports {
    prf: SipHasher24,
    range: PortRange,
    policy: PortOrder,
    /// How many ports were drawn, counted apart for each class of destinations, from a secret
    /// start.
    table: Box<[u32; TABLE_LENGTH]>,
    /// How many ports were drawn, where the order knows no destinations.
    drawn: u32,
}

impl Ports {
    /// A drawer of ports from `range`, in an order of this kind that `secrets` decides.
    pub fn new(secrets: &Secrets, range: PortRange, policy: PortOrder) -> Self {
        let prf = secrets.ports.prf();
        // RFC 6056 3.3.4 fills the table by random(); a PRF over the index is as good, since no
        // destination hashes an input of this length.
        let start = |index: usize| prf.hash(&(index as u32).to_be_bytes()) as u32;
        let table = Box::new(core::array::from_fn(start));
        Self { prf, range, policy, table, drawn: 0 }
    }

    /// The ports it draws from.
    pub const fn range(&self) -> PortRange {
        self.range
    }

    /// Draws from `range` from now on. Ports in use stay in use.
    pub const fn set_range(&mut self, range: PortRange) {
        self.range = range;
    }

    /// A port for a connection from `local` to `remote` for which `is_free` holds: the next in
    /// this destination's order. `is_free` is asked at most once for each port of the range, and
    /// should say whether the whole 4-tuple is unused (and, where the device spreads flows by
    /// port, whether the port comes home to this shard).
    pub fn choose(
        &mut self,
        local: &Address,
        remote: &Endpoint,
        mut is_free: impl FnMut(u16) -> bool,
    ) -> Result<u16, PortsExhausted> {
        let range = self.range;
        let place = match self.policy {
            PortOrder::EvenFirst => PortRange::nth_even_first,
            _ => PortRange::nth_in_turn,
        };
        let (offset, counter) = self.order(local, remote);
        // RFC 6056 3.3.4: "port = min_ephemeral + (offset + table[index]) % num_ephemeral;
        // table[index]++;"
        let start = offset.wrapping_add(*counter);
        for step in 0..range.count() {
            let port = place(range, start, step);
            if is_free(port) {
                *counter = counter.wrapping_add(step + 1);
                return Ok(port);
            }
        }
        *counter = counter.wrapping_add(range.count());
        Err(PortsExhausted { range, tried: range.count() })
    }

    /// Where the order starts, and how far it has come.
    fn order(&mut self, local: &Address, remote: &Endpoint) -> (u32, &mut u32) {
        match self.policy {
            PortOrder::DoubleHash | PortOrder::EvenFirst => self.order_towards(local, remote),
            // RFC 6056 3.3.1: "next_ephemeral = min_ephemeral + (random() % num_ephemeral)", where
            // random() is the PRF over a counter, in octets of which no destination hashes as many.
            PortOrder::Random => {
                (self.prf.hash(&u64::from(self.drawn).to_be_bytes()) as u32, &mut self.drawn)
            }
            // RFC 6056 2.2: "next_ephemeral = min_ephemeral; (...) next_ephemeral++"
            PortOrder::Sequential => (0, &mut self.drawn),
        }
    }

    /// Where the order of this destination starts, and how far it has come. One PRF gives both
    /// hashes of RFC 6056 3.3.4: F is the upper half of its output and G is the lower.
    fn order_towards(&mut self, local: &Address, remote: &Endpoint) -> (u32, &mut u32) {
        let mut octets = [0; 34];
        let (addresses, port) = octets.split_at_mut(32);
        let (front, back) = addresses.split_at_mut(16);
        front.copy_from_slice(local.octets());
        back.copy_from_slice(remote.addr.octets());
        port.copy_from_slice(&remote.port.to_be_bytes());
        let hash = self.prf.hash(&octets);
        ((hash >> 32) as u32, &mut self.table[hash as usize % TABLE_LENGTH])
    }
}

/// Says what it draws from, and nothing of the order.
impl core::fmt::Debug for Ports {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ports").field("range", &self.range).finish_non_exhaustive()
    }
}

/// A range of ports: at least one, and never port 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// The ports from `first` to `last`, both included; `None` if there are none or 0 is one.
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if first == 0 || first > last { None } else { Some(Self { first, last }) }
    }

    /// The range that the tunables name, or why they name none.
    pub fn from_tunables(tunables: &Tunables) -> Result<Self, InvalidTunable> {
        let (first, last) = (tunables.port_first, tunables.port_last);
        Self::new(first, last).ok_or_else(|| InvalidTunable::port_range(first, last))
    }

    /// The first.
    pub const fn first(self) -> u16 {
        self.first
    }

    /// The last.
    pub const fn last(self) -> u16 {
        self.last
    }

    /// How many: 1 ..= 65,535.
    pub const fn count(self) -> u32 {
        self.last as u32 - self.first as u32 + 1
    }

    /// Whether `port` is one of them.
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }

    /// The port `step` steps behind that of `start`, round and round.
    const fn nth_in_turn(self, start: u32, step: u32) -> u16 {
        self.first + (start.wrapping_add(step) % self.count()) as u16
    }

    /// The same, but every second port from the first on before the others.
    const fn nth_even_first(self, start: u32, step: u32) -> u16 {
        let (even, odd) = (self.count().div_ceil(2), self.count() / 2);
        let place = if step < even {
            start.wrapping_add(step) % even * 2
        } else {
            start.wrapping_add(step - even) % odd * 2 + 1
        };
        self.first + place as u16
    }
}

/// No port is free towards a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no free port: all {tried} of {first} to {last} are in use towards this destination; widen \
     net.ipv4.ip_local_port_range, or add a local address",
    first = .range.first, last = .range.last
)]
pub struct PortsExhausted {
    /// The ports that were drawn from.
    pub range: PortRange,
    /// How many were asked for.
    pub tried: u32,
}

/// Counters of RFC 6056 3.3.4: 4 KiB. With as many destinations in use at once, two share a
/// counter now and then, which tells each a little of the other's rate and costs nothing else.
const TABLE_LENGTH: usize = 1024;

#[cfg(test)]
mod tests;
