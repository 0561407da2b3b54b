//! Filter programs of packet sockets, in classic BPF.

use libc::sock_filter;
use whimbrel_wire::{EtherType, MacAddress};

/// Returns a program that accepts ARP, IPv4 and IPv6 sent to `mac` or to a group, without a VLAN
/// tag. A tagged frame belongs to another network, and the kernel has removed its tag.
pub fn own_frames(mac: MacAddress) -> [sock_filter; 14] {
    let [m0, m1, m2, m3, m4, m5] = mac.0;
    let (front, back) = (u16::from_be_bytes([m0, m1]), u32::from_be_bytes([m2, m3, m4, m5]));
    let tag = (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT).cast_unsigned();
    [
        load(libc::BPF_W, tag),
        skip(libc::BPF_JEQ, 0, 0, 10),
        // A group's stations have the lowest bit of the first byte.
        load(libc::BPF_B, 0),
        skip(libc::BPF_JSET, 1, 4, 0),
        load(libc::BPF_W, 2),
        skip(libc::BPF_JEQ, back, 0, 6),
        load(libc::BPF_H, 0),
        skip(libc::BPF_JEQ, front.into(), 0, 4),
        load(libc::BPF_H, TYPE_AT),
        skip(libc::BPF_JEQ, EtherType::ARP.0.into(), 3, 0),
        skip(libc::BPF_JEQ, EtherType::IPV4.0.into(), 2, 0),
        skip(libc::BPF_JEQ, EtherType::IPV6.0.into(), 1, 0),
        operation(libc::BPF_RET, NOTHING),
        operation(libc::BPF_RET, ALL),
    ]
}

/// Returns a program that accepts no frame.
pub fn nothing() -> [sock_filter; 1] {
    [operation(libc::BPF_RET, NOTHING)]
}

/// Returns a load of a number of this size at offset `at`.
pub(crate) const fn load(size: u32, at: u32) -> sock_filter {
    operation(libc::BPF_LD | size | libc::BPF_ABS, at)
}

/// Returns a comparison with `value` that skips `so` operations if it is true, else `not`.
pub(crate) const fn skip(test: u32, value: u32, so: u8, not: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | test | libc::BPF_K) as u16, jt: so, jf: not, k: value }
}

/// Returns an operation without a jump.
pub(crate) const fn operation(code: u32, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: value }
}

const TYPE_AT: u32 = 12;
const NOTHING: u32 = 0;
/// Bytes to keep of a frame: more than any has.
const ALL: u32 = 1 << 18;

#[cfg(test)]
mod tests;
