//! Which neighbour takes packets to a destination: a cache in front of routes and neighbours.
//!
//! A route is found by one search for each prefix length, a neighbour by one in a tree of 1,024 at
//! most. Both together are needed for each packet, and nearly always for a destination that had one
//! just before: one comparison then. A destination that shares its place with another costs the two
//! searches; nothing else depends on who shares what, so the hash needs no key.

use alloc::boxed::Box;

use whimbrel_wire::Address;

/// To which neighbour destinations were sent last: a direct-mapped cache.
#[derive(Debug)]
pub(super) struct NextHopCache(Box<[Hop; PLACES]>);

#[derive(Clone, Copy, Debug)]
struct Hop {
    dst: Address,
    /// The next hop, by which the neighbour is known to be still the same.
    hop: Address,
    neighbour: u32,
}

impl NextHopCache {
    /// The neighbour last used for `dst`, if `is_at` says that it still is who it was.
    pub(super) fn find(
        &self,
        dst: &Address,
        is_at: impl FnOnce(u32, &Address) -> bool,
    ) -> Option<u32> {
        let place = self.0.get(place_of(dst))?;
        let found = place.dst == *dst && is_at(place.neighbour, &place.hop);
        found.then_some(place.neighbour)
    }

    /// Remembers that `dst` is reached over `hop`.
    pub(super) fn put(&mut self, dst: Address, hop: Address, neighbour: u32) {
        if let Some(place) = self.0.get_mut(place_of(&dst)) {
            *place = Hop { dst, hop, neighbour };
        }
    }
}

impl Default for NextHopCache {
    fn default() -> Self {
        let absent = Address::from_bytes([0; 16]);
        Self(Box::new([Hop { dst: absent, hop: absent, neighbour: u32::MAX }; PLACES]))
    }
}

/// Fibonacci hashing of both halves: neighbouring addresses get neighbouring places.
fn place_of(dst: &Address) -> usize {
    let bits = u128::from_be_bytes(*dst.as_bytes());
    let mixed = ((bits >> 64) as u64 ^ bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - PLACE_BITS)) as usize
}

const PLACE_BITS: u32 = 8;
/// 9 kB: a server's clients of the moment, or all of its link.
const PLACES: usize = 1 << PLACE_BITS;
