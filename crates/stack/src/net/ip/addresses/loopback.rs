//! 127.0.0.1 and ::1: every host has them, and none is seen outside of one.
//!
//! They have numbers of their own, beyond those of all others, and stand in no table that packets from a
//! wire are looked up in: what bears them there is for another host, or a martian (RFC 1122 3.2.1.3 (g),
//! RFC 4291 2.5.3). Of the network 127.0.0.0/8 no other address is this host's.

use whimbrel_wire::Address;

use super::FIRST_LOOPBACK;

/// The loopback address with this index.
pub(super) fn get(index: u16) -> Option<&'static Address> {
    let place = index.checked_sub(FIRST_LOOPBACK)?;
    LOOPBACKS.get(usize::from(place))
}

/// The index of a loopback address.
#[inline]
pub(super) fn index_of(addr: &Address) -> Option<u16> {
    let [v4, v6] = &LOOPBACKS;
    if addr == v4 { Some(FIRST_LOOPBACK) } else { (addr == v6).then_some(FIRST_LOOPBACK + 1) }
}

/// In the order of their numbers.
static LOOPBACKS: [Address; 2] = [
    Address::from_v4_bytes([127, 0, 0, 1]),
    Address::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
];
