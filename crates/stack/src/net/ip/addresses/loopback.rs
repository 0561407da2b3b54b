//! 127.0.0.1 and ::1: every host has them, and none is seen outside of one.
//!
//! They have numbers of their own, beyond those of all others, and stand in no table that packets from a
//! wire are looked up in: what bears them there is for another host, or a martian (RFC 1122 3.2.1.3 (g),
//! RFC 4291 2.5.3). Of the network 127.0.0.0/8 no other address is this host's.

use whimbrel_wire::Address;

use super::{Addresses, FIRST_LOOPBACK};

impl Addresses {
    /// Whether `addr` is this host's: one on its networks, or a loopback address.
    #[inline]
    pub fn is_local(&self, addr: &Address) -> bool {
        self.local_index_of(addr).is_some()
    }

    /// The index of `addr`, if it is this host's in this sense.
    #[inline]
    pub fn local_index_of(&self, addr: &Address) -> Option<u16> {
        self.index_of(addr).or_else(|| index_of(addr))
    }

    /// The index of `source`, if it is this host's and packets to `to` can come from there.
    #[inline(never)]
    pub(crate) fn source_index_of(&self, source: &Address, to: &Address) -> Option<u16> {
        // RFC 1122 3.2.1.3 (g): "Addresses of this form MUST NOT appear outside a host."
        let may_speak = !Self::is_loopback(source) || self.is_local(to);
        self.local_index_of(source).filter(|_| may_speak && source.family() == to.family())
    }

    /// Whether `addr` is one of the two loopback addresses that every host has.
    pub fn is_loopback(addr: &Address) -> bool {
        index_of(addr).is_some()
    }

    /// The loopback address with this index.
    pub fn loopback(index: u16) -> Option<Address> {
        get(index).copied()
    }
}

/// The loopback address with this index.
pub(super) fn get(index: u16) -> Option<&'static Address> {
    let place = index.checked_sub(FIRST_LOOPBACK)?;
    LOOPBACKS.get(usize::from(place))
}

#[inline]
fn index_of(addr: &Address) -> Option<u16> {
    let [v4, v6] = &LOOPBACKS;
    if addr == v4 { Some(FIRST_LOOPBACK) } else { (addr == v6).then_some(FIRST_LOOPBACK + 1) }
}

/// In the order of their numbers.
static LOOPBACKS: [Address; 2] = [
    Address::from_v4_octets([127, 0, 0, 1]),
    Address::from_octets([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
];
