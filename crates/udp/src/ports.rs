//! The ports of sockets, and the selection of ephemeral ones.
//!
//! **One probe finds the socket of a datagram.** The destination port is the index of an array:
//! nothing is hashed, so an attacker cannot choose colliding ports, and a datagram for no socket
//! ends there. Nearly every port has at most one socket, whose own record decides whether it
//! accepts the sender. If several share a port, its entry is a map of their keys. It takes at most
//! four look-ups, the most exact key first, whose cost grows with the number of the host's own
//! sockets there. Rejected: one hash table of 4-tuples, as for TCP, which takes three probes for a
//! socket that is bound to all addresses, as nearly every server is.
//!
//! The array comes in pages of 256 ports, 4 KiB each, so that few sockets take little memory.
//!
//! **Selection** follows RFC 6056 3.3.1, with a random start each time. A port is a large part of
//! the protection against forged replies (RFC 8085 5.1), and unlike a connection's, its destination
//! is unknown at bind time.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use whimbrel_base::ports::{Drawable, PortBits, Words};
use whimbrel_base::{PortRange, ReservedPorts, Secrets, SipHasher24};
use whimbrel_wire::{Address, Endpoint};

use crate::key::Key;

/// Sockets by their ports.
#[derive(Default, Debug)]
pub(crate) struct PortTable {
    pages: Vec<Option<Box<Page>>>,
    /// Number of pages.
    count: usize,
}

#[derive(Debug)]
struct Page {
    ports: [Port; PAGE],
    used: u16,
}

/// Sockets of a port.
#[derive(Default, Debug)]
enum Port {
    #[default]
    Free,
    /// One socket, which does not share the port.
    One(u32),
    /// Several; those with equal keys in the order of their binds.
    Several(Box<Sharers>),
}

/// Sockets that share a port, by their keys.
#[derive(Default, Debug)]
struct Sharers(BTreeMap<Key, Vec<u32>>);

impl PortTable {
    /// Returns the socket that receives a datagram from `from` to this address and port. `key_of`
    /// returns the key of a socket.
    #[inline]
    pub(crate) fn find(
        &self,
        to: &Endpoint,
        from: &Endpoint,
        key_of: impl Fn(u32) -> Option<Key>,
    ) -> Option<u32> {
        match self.port(to.port)? {
            Port::Free => None,
            Port::One(index) => {
                key_of(*index).filter(|key| key.takes(&to.addr, from)).map(|_| *index)
            }
            Port::Several(sharers) => sharers.find(&to.addr, from),
        }
    }

    /// Returns every socket of a port.
    pub(crate) fn of(&self, port: u16) -> Vec<u32> {
        match self.port(port) {
            Some(Port::One(index)) => alloc::vec![*index],
            Some(Port::Several(sharers)) => sharers.0.values().flatten().copied().collect(),
            Some(Port::Free) | None => Vec::new(),
        }
    }

    /// Adds a socket to the port. `key_of` returns the keys of those there.
    pub(crate) fn insert(&mut self, port: u16, index: u32, key_of: impl Fn(u32) -> Option<Key>) {
        let page = self.page_mut(port);
        let place = &mut page.ports[place_of(port)];
        page.used += u16::from(matches!(place, Port::Free));
        *place = match core::mem::take(place) {
            Port::Free => Port::One(index),
            Port::One(first) => {
                let mut sharers = Box::<Sharers>::default();
                for index in [first, index] {
                    sharers.add(index, &key_of);
                }
                Port::Several(sharers)
            }
            Port::Several(mut sharers) => {
                sharers.add(index, &key_of);
                Port::Several(sharers)
            }
        };
    }

    /// Removes a socket with `key` from the port. Returns whether the port is free now.
    pub(crate) fn remove(&mut self, port: u16, index: u32, key: &Key) -> bool {
        let Some(page) = self.pages.get_mut(page_of(port)).and_then(Option::as_mut) else {
            return true;
        };
        let place = &mut page.ports[place_of(port)];
        *place = match core::mem::take(place) {
            Port::One(own) if own == index => Port::Free,
            Port::Several(mut sharers) => {
                sharers.remove(index, key);
                let mut left = sharers.0.values().flatten();
                match (left.next(), left.next()) {
                    (None, _) => Port::Free,
                    (Some(last), None) => Port::One(*last),
                    _ => Port::Several(sharers),
                }
            }
            other => other,
        };
        let is_free = matches!(place, Port::Free);
        page.used -= u16::from(is_free);
        if page.used == 0 {
            self.count -= 1;
            self.pages[page_of(port)] = None;
        }
        is_free
    }

    /// Returns the bytes that the pages take.
    pub(crate) fn memory(&self) -> usize {
        self.count * size_of::<Page>()
    }

    #[inline]
    fn port(&self, port: u16) -> Option<&Port> {
        Some(&self.pages.get(page_of(port))?.as_ref()?.ports[place_of(port)])
    }

    fn page_mut(&mut self, port: u16) -> &mut Page {
        if self.pages.is_empty() {
            self.pages.resize_with(PAGE, || None);
        }
        let Self { pages, count } = self;
        pages[page_of(port)].get_or_insert_with(|| {
            *count += 1;
            Box::new(Page { ports: [const { Port::Free }; PAGE], used: 0 })
        })
    }
}

impl Sharers {
    #[inline(never)]
    fn find(&self, to: &Address, from: &Endpoint) -> Option<u32> {
        let candidates = Key::candidates(to, from);
        candidates.iter().find_map(|key| self.0.get(key)?.last().copied())
    }

    fn add(&mut self, index: u32, key_of: &impl Fn(u32) -> Option<Key>) {
        if let Some(key) = key_of(index) {
            self.0.entry(key).or_default().push(index);
        }
    }

    fn remove(&mut self, index: u32, key: &Key) {
        let Some(same) = self.0.get_mut(key) else { return };
        same.retain(|it| *it != index);
        if same.is_empty() {
            self.0.remove(key);
        }
    }
}

/// Selection of ephemeral ports that no socket has.
#[derive(Debug)]
pub(crate) struct Drawing {
    prf: SipHasher24,
    drawn: u64,
    drawable: Drawable,
    /// Ports that sockets have; created for the first one.
    taken: Option<PortBits>,
}

impl Drawing {
    pub(crate) fn new(secrets: &Secrets, range: PortRange, reserved: ReservedPorts) -> Self {
        let drawable = Drawable::new(range, reserved);
        Self { prf: secrets.ports.prf(), drawn: 0, drawable, taken: None }
    }

    pub(crate) fn range(&self) -> PortRange {
        self.drawable.range()
    }

    pub(crate) fn set_rules(&mut self, range: PortRange, reserved: ReservedPorts) {
        if !self.drawable.is(range, reserved) {
            self.drawable = Drawable::new(range, reserved);
        }
    }

    pub(crate) fn claim(&mut self, port: u16) {
        self.taken.get_or_insert_default().insert(port);
    }

    pub(crate) fn release(&mut self, port: u16) {
        if let Some(taken) = &mut self.taken {
            taken.remove(port);
        }
    }

    /// Returns a free port, without claiming it.
    pub(crate) fn draw(&mut self) -> Option<u16> {
        // RFC 6056 3.3.1: "next_ephemeral = min_ephemeral + (random() % num_ephemeral)". random()
        // is the PRF over a counter, in a number of bytes that TCP's ports never hash under the
        // same key.
        let [a, b, c, d, e, f, g, h] = self.drawn.to_be_bytes();
        self.drawn = self.drawn.wrapping_add(1);
        let random = self.prf.hash(&[b'u', b'd', b'p', 0, a, b, c, d, e, f, g, h]);
        let closed = Closed { drawable: &self.drawable, taken: self.taken.as_ref() };
        let lanes = self.drawable.range().in_turn(random as u32);
        lanes.iter().find_map(|lane| lane.next_open(lane.from, &closed))
    }
}

/// Ports that are reserved, or in use.
struct Closed<'a> {
    drawable: &'a Drawable,
    taken: Option<&'a PortBits>,
}

impl Words for Closed<'_> {
    fn word(&self, index: usize) -> u64 {
        self.drawable.word(index) | self.taken.map_or(0, |taken| taken.word(index))
    }

    fn next_with_gap(&self, index: usize) -> usize {
        // Words that the two fill together are found full one by one: at most 1,024.
        self.taken
            .map_or(index, |taken| taken.next_with_gap(index))
            .max(self.drawable.next_with_gap(index))
    }
}

const fn page_of(port: u16) -> usize {
    (port >> 8) as usize
}

const fn place_of(port: u16) -> usize {
    (port & 0xff) as usize
}

/// Number of ports in a page, and of pages in the array.
const PAGE: usize = 256;

#[cfg(test)]
mod tests;
