//! Ephemeral ports: which local port a new connection takes (RFC 6056).
//!
//! By default the order is the double hash of RFC 6056 3.3.4: towards one destination ports come one after
//! the other, from a secret start, and by a counter that connections to
//! other destinations do not move. A port is in use per 4-tuple, never for the whole host; who
//! knows the 4-tuples says what is free.
//!
//! **Finding a free one.** Up to 64 ports in use towards a destination, ports are looked up in the
//! flow table one after the other along the order. Above, a map with a bit for each port says
//! which is worth a look, and a bit for each word of it where it is full: some 20 words are read,
//! whatever is in use. Such maps are bounded, 1,024 at once; those that no port in use needs make
//! room, and what still finds none is counted and looked up port by port.
//!
//! **Peers that refuse.** Some servers turn away a SYN that meets their TIME-WAIT, however new it
//! is. Where that was seen ([`Ports::on_refused`]), ports that came back come last, and of those
//! the one that came back first.
//!
//! **Several shards** have a share of the ports each. Those of others are found out one by one, as
//! they are met, and passed over from then on like ports in use.
//!
//! **When none is free**, the answer says how many wait, and which has been silent for longest: the
//! caller may end that one's TIME-WAIT ([`TimeWait::judge_take_over`](super::TimeWait::judge_take_over)).
//! One that answered something since it began to wait goes behind the others, a few at a time: so who
//! keeps one from being silent keeps no other.
//!
//! What a choice and giving the port back cost, towards one destination with the usual 28,232 ports:
//! median (least to most) of five runs of 200,000 on a Xeon of two cores under other load, look-ups
//! in the flow table left out (`cargo test --release -p whimbrel-tcp ports -- --ignored
//! --nocapture`):
//!
//! | in use | ns |
//! |---|---|
//! | none | 151 (139-246) |
//! | half | 92 (90-112) |
//! | 99 % | 92 (91-121) |
//! | all: the answer that there is none | 64 (63-96) |
//!
//! Without the bits that mark full words, the last was 1,026 (939-1,206).

use alloc::boxed::Box;
use core::cell::Cell;

use whimbrel_base::ports::{Drawable, Lane};
use whimbrel_base::{PortRange, ReservedPorts, Secrets, SipHasher24, Tick};
use whimbrel_wire::{Address, Endpoint};

use self::known::{Hashed, Known};
use crate::tunables::PortOrder;
use crate::{Counters, Tunables};

pub use self::map::{Destination, Stamped};

/// Draws ephemeral ports, and remembers which are in use.
pub struct Ports {
    prf: SipHasher24,
    /// The destination that was hashed last, and its hash: most are asked for again.
    last: Cell<Option<(Destination, u64)>>,
    drawable: Drawable,
    policy: PortOrder,
    /// The number of ports were drawn, counted apart for each class of destinations, from a secret
    /// start.
    table: Box<[u32; TABLE_LENGTH]>,
    /// The number of ports were drawn, where the order knows no destinations.
    drawn: u32,
    known: Known,
}

/// The port that is next towards a destination, as long as none was taken since.
#[derive(Clone, Copy, Debug)]
pub struct NextPort {
    port: u16,
    /// That of the destination.
    hash: u64,
    /// So far does the order go on behind it.
    steps: u32,
}

impl NextPort {
    /// The port itself.
    pub const fn port(self) -> u16 {
        self.port
    }
}

/// The use of a local port towards a destination, by the flow table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortUse {
    /// No connection and no TIME-WAIT has the port.
    Free,
    /// A connection that this side opened.
    Ours,
    /// The record of one in TIME-WAIT.
    Waiting {
        /// When the connection entered TIME-WAIT.
        entered: Tick,
        /// When it last sent anything; as it entered, unless it answered something since.
        spoke: Tick,
        /// Its use of timestamps.
        stamped: Stamped,
    },
    /// Something that the peer opened.
    Foreign,
    /// Another shard: the port does not map to this one, and never will.
    Elsewhere,
}

/// Events that the shard reports: connections that begin, end and wait.
impl Ports {
    /// A port is in use towards a destination: a connection of ours begins there. What
    /// [`Ports::choose`] returned is in use already.
    pub fn claim(&mut self, towards: &Destination, port: u16, counters: &mut Counters) {
        let hash = self.hash(towards) as u32;
        self.known.claim(Hashed { towards, hash }, port, counters);
    }

    /// The port's connection is over, and does not wait.
    pub fn release(&mut self, towards: &Destination, port: u16) {
        let hash = self.hash(towards) as u32;
        self.known.release(Hashed { towards, hash }, port);
    }

    /// The port's connection entered TIME-WAIT.
    pub fn start_waiting(&mut self, towards: &Destination, port: u16, stamped: Stamped) {
        let hash = self.hash(towards) as u32;
        if let Some(map) = self.known.map_mut(Hashed { towards, hash }) {
            map.start_waiting(port, stamped);
        }
    }

    /// The port's TIME-WAIT began anew.
    pub fn wait_anew(&mut self, towards: &Destination, port: u16, stamped: Stamped) {
        let hash = self.hash(towards) as u32;
        if let Some(map) = self.known.map_mut(Hashed { towards, hash }) {
            map.stop_waiting(port, stamped);
            map.start_waiting(port, stamped);
        }
    }

    /// The port's TIME-WAIT is over.
    pub fn stop_waiting(&mut self, towards: &Destination, port: u16, stamped: Stamped) {
        let hash = self.hash(towards) as u32;
        let of = Hashed { towards, hash };
        if let Some(map) = self.known.map_mut(of) {
            map.stop_waiting(port, stamped);
        }
        self.known.release(of, port);
    }

    /// True if other ports than one are in use towards a destination, or it is known to refuse.
    pub fn has_others(&self, towards: &Destination) -> bool {
        let hash = self.hash(towards) as u32;
        self.known.has_others(Hashed { towards, hash })
    }

    /// The peer refused a connection because of the last one from the same port.
    pub fn on_refused(&mut self, towards: &Destination, counters: &mut Counters) {
        let hash = self.hash(towards) as u32;
        let of = Hashed { towards, hash };
        if let Some(map) = self.known.map_mut(of) {
            map.on_refused();
        } else if let Some(map) = self.known.add_map(of, counters) {
            map.on_refused();
        }
    }
}

/// Drawing a port for a destination, in the order of the policy.
impl Ports {
    /// A drawer of ports by these rules, in an order that `secrets` decides.
    pub fn new(secrets: &Secrets, range: PortRange, tunables: &Tunables) -> Self {
        let prf = secrets.ports.prf();
        // RFC 6056 3.3.4 fills the table by random(); a PRF over the index is as good, since no
        // destination hashes an input of this length.
        let start = |index: usize| prf.hash(&(index as u32).to_be_bytes()) as u32;
        let table = Box::new(core::array::from_fn(start));
        let drawable = Drawable::new(range, tunables.reserved_ports);
        let (policy, known) = (tunables.port_order, Known::new());
        Self { prf, last: Cell::new(None), drawable, policy, table, drawn: 0, known }
    }

    /// The ports it draws from.
    pub const fn range(&self) -> PortRange {
        self.drawable.range()
    }

    /// Draws from `range` without `reserved` from now on. Ports in use stay in use.
    pub fn set_rules(&mut self, range: PortRange, reserved: ReservedPorts) {
        if !self.drawable.is(range, reserved) {
            self.drawable = Drawable::new(range, reserved);
            // Of the new ones it is not known yet where they come home to.
            self.known.forget_elsewhere();
        }
    }

    /// The port that is next towards a destination, where few are in use: nearly always it is free, and the rest
    /// of the order need not be known. The caller looks whether it is, and then [takes](Ports::take_next) it.
    // Always, as what follows: what it returns would be stored and read again.
    #[inline(always)]
    pub fn next(&mut self, towards: &Destination) -> Option<NextPort> {
        let hash = self.hash(towards);
        if self.known.map_mut(Hashed { towards, hash: hash as u32 }).is_some() {
            return None;
        }
        let lane = self.first_lane(hash);
        let port = lane.next_open(lane.from, &self.drawable)?;
        Some(NextPort { port, hash, steps: lane.steps(port) + 1 })
    }

    /// The port that [`Ports::next`] named is in use from now on.
    #[inline(always)]
    pub fn take_next(&mut self, towards: &Destination, next: NextPort, counters: &mut Counters) {
        let NextPort { port, hash, steps } = next;
        self.known.claim(Hashed { towards, hash: hash as u32 }, port, counters);
        self.advance(hash, steps);
    }

    /// A port towards a destination, which is in use from now on ([`Ports::claim`]): the next in the
    /// destination's order that `look` calls free. `look` should look for the whole 4-tuple.
    #[inline(never)]
    pub fn choose(
        &mut self,
        towards: &Destination,
        counters: &mut Counters,
        mut look: impl FnMut(u16) -> PortUse,
    ) -> Result<u16, PortsExhausted> {
        let hash = self.hash(towards);
        let of = Hashed { towards, hash: hash as u32 };
        let lanes = self.lanes(hash);
        let Self { known, drawable, .. } = self;
        let exhausted = |taken| PortsExhausted { range: drawable.range(), taken };
        let mut returned = false;
        let port = if let Some(map) = known.map_mut(of) {
            let found = map.seek(&lanes, drawable, &mut look).or_else(|| {
                returned = true;
                map.seek_returned(drawable, &mut look)
            });
            let port = found.ok_or_else(|| exhausted(map.taken(drawable.count(), &mut look)))?;
            map.claim(port);
            port
        } else {
            let port = seek(&lanes, drawable, &mut look).map_err(exhausted)?;
            known.claim(of, port, counters);
            port
        };
        // Those that came back have an order of their own, which moves no counter.
        if !returned {
            self.advance(hash, PortRange::steps(&lanes, port) + 1);
        }
        Ok(port)
    }

    /// Draws a port at `local` without a destination yet, for which `is_free` holds. It is not in use by that.
    pub fn draw(
        &mut self,
        local: &Address,
        mut is_free: impl FnMut(u16) -> bool,
    ) -> Result<u16, PortsExhausted> {
        let unconnected = Destination { local: *local, remote: Endpoint::new(*local, 0) };
        let hash = self.hash(&unconnected);
        let lanes = self.lanes(hash);
        let mut look = |port| if is_free(port) { PortUse::Free } else { PortUse::Ours };
        let range = self.drawable.range();
        let port = seek(&lanes, &self.drawable, &mut look)
            .map_err(|taken| PortsExhausted { range, taken })?;
        self.advance(hash, PortRange::steps(&lanes, port) + 1);
        Ok(port)
    }

    /// The number of destinations have ports in use. Walks the maps: for reports.
    pub fn destinations(&self) -> usize {
        self.known.in_use()
    }

    /// The order in which the ports are tried towards a destination.
    fn lanes(&mut self, hash: u64) -> [Lane; 4] {
        let (start, range) = (self.start(hash), self.drawable.range());
        match self.policy {
            PortOrder::EvenFirst => range.even_first(start),
            _ => range.in_turn(start),
        }
    }

    /// The ports that this order begins with.
    #[inline(always)]
    fn first_lane(&mut self, hash: u64) -> Lane {
        let (start, range) = (self.start(hash), self.drawable.range());
        match self.policy {
            PortOrder::EvenFirst => range.first_even(start),
            _ => range.first_in_turn(start),
        }
    }

    /// The start of the order, in places behind the first port of the range, modulo its length.
    #[inline]
    fn start(&mut self, hash: u64) -> u32 {
        let counter = *self.counter(hash);
        match self.policy {
            // RFC 6056 3.3.4: "port = min_ephemeral + (offset + table[index]) % num_ephemeral;
            // table[index]++;"
            PortOrder::DoubleHash | PortOrder::EvenFirst => offset(hash).wrapping_add(counter),
            // RFC 6056 3.3.1: "next_ephemeral = min_ephemeral + (random() % num_ephemeral)", where
            // random() is the PRF over a counter, in bytes of which no destination hashes as many.
            PortOrder::Random => self.prf.hash(&u64::from(counter).to_be_bytes()) as u32,
            // RFC 6056 2.2: "next_ephemeral = min_ephemeral; (...) next_ephemeral++"
            PortOrder::Sequential => counter,
        }
    }

    /// The position that the order has reached.
    fn counter(&mut self, hash: u64) -> &mut u32 {
        match self.policy {
            PortOrder::DoubleHash | PortOrder::EvenFirst => {
                &mut self.table[hash as usize % TABLE_LENGTH]
            }
            PortOrder::Random | PortOrder::Sequential => &mut self.drawn,
        }
    }

    fn advance(&mut self, hash: u64, steps: u32) {
        let counter = self.counter(hash);
        *counter = counter.wrapping_add(steps);
    }

    /// One PRF gives both hashes of RFC 6056 3.3.4, F in the upper half of its output and G in the
    /// lower, by which destinations are known, too. Bytes that all IPv4 addresses share are left
    /// out.
    fn hash(&self, towards: &Destination) -> u64 {
        if let Some((last, hash)) = self.last.get()
            && last == *towards
        {
            return hash;
        }
        self.hash_another(towards)
    }

    #[inline(never)]
    fn hash_another(&self, towards: &Destination) -> u64 {
        let hash = self.hash_anew(towards);
        self.last.set(Some((*towards, hash)));
        hash
    }

    /// The hash, whatever was asked for before.
    fn hash_anew(&self, towards: &Destination) -> u64 {
        let Destination { local, remote } = towards;
        let [p, q] = remote.port.to_be_bytes();
        if local.is_v4() {
            let ([a, b, c, d], [e, f, g, h]) = (local.v4_bytes(), remote.addr.v4_bytes());
            return self.prf.hash(&[a, b, c, d, e, f, g, h, p, q]);
        }
        let mut bytes = [0; 34];
        bytes[..16].copy_from_slice(local.as_bytes());
        bytes[16..32].copy_from_slice(remote.addr.as_bytes());
        bytes[32..].copy_from_slice(&[p, q]);
        self.prf.hash(&bytes)
    }
}

/// Says what it draws from, and nothing of the order.
impl core::fmt::Debug for Ports {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ports").field("range", &self.range()).finish_non_exhaustive()
    }
}

/// No port is free towards a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no free port: of {first} to {last} {in_use} are in use towards this destination and {waiting} \
     wait; widen net.ipv4.ip_local_port_range, or add a local address",
    first = .range.first(), last = .range.last(), in_use = .taken.in_use, waiting = .taken.waiting
)]
pub struct PortsExhausted {
    /// The range that was drawn from.
    pub range: PortRange,
    /// The uses of its ports.
    pub taken: Taken,
}

/// The uses of the ports towards a destination, where none is free.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Taken {
    /// The number of are in use, of those that come home to this shard.
    pub in_use: u32,
    /// The number of wait in TIME-WAIT, on this side.
    pub waiting: u32,
    /// Of those with timestamps, and of those without, the one that has been silent for longest.
    pub longest: [Option<u16>; 2],
}

/// The first port of the lanes that is free, looked up one after the other; or what has them all.
fn seek(
    lanes: &[Lane],
    drawable: &Drawable,
    look: &mut impl FnMut(u16) -> PortUse,
) -> Result<u16, Taken> {
    let mut taken = Taken::default();
    let mut since = [Tick::default(); 2];
    for lane in lanes {
        let mut at = lane.from;
        while let Some(port) = lane.next_open(at, drawable) {
            match look(port) {
                PortUse::Free => return Ok(port),
                PortUse::Elsewhere => {}
                PortUse::Ours | PortUse::Foreign => taken.in_use += 1,
                PortUse::Waiting { spoke, stamped, .. } => {
                    let kind = stamped as usize;
                    taken.waiting += 1;
                    let is_longer = since[kind].millis_since(spoke).cast_signed() > 0;
                    if taken.longest[kind].is_none() || is_longer {
                        (taken.longest[kind], since[kind]) = (Some(port), spoke);
                    }
                }
            }
            at = u32::from(port) + lane.stride;
        }
    }
    Err(taken)
}

/// F of RFC 6056 3.3.4.
const fn offset(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Counters of RFC 6056 3.3.4: 4 KiB. With as many destinations in use at once, two share a
/// counter now and then, which tells each a little of the other's rate and costs nothing else.
const TABLE_LENGTH: usize = 1024;

mod known;
mod map;
#[cfg(test)]
mod tests;
