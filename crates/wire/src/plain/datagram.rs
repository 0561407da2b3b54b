//! Plain datagrams: UDP in IPv4, whole, without IP options, and with a checksum. As of plain segments, both headers
//! are read and written together; all other or faulty ones are left to [`UdpView`](crate::UdpView).

use super::{
    Checksum, DONT_FRAGMENT, FRAGMENT, IP_CHECKSUM_AT, IP_LEN, PROTOCOL, Text, VERSION_IHL, fold,
    is_valid, put, put_checksum, read_words, sum,
};
use crate::{Address, Protocol, Sum, TrafficClass, UdpHeader};

/// A plain datagram that arrived: its lengths fit, and its checksums are right.
#[derive(Clone, Copy, Debug)]
pub struct PlainDatagram<'a> {
    head: &'a [u8; HEADS],
    /// The bytes that it carries.
    pub data: &'a [u8],
}

impl<'a> PlainDatagram<'a> {
    /// Parses `packet`. `None` if it is no plain datagram or invalid: the parsers of its headers then find the
    /// reason.
    #[inline(always)]
    pub fn read(packet: &'a [u8], checksum: Checksum) -> Option<Self> {
        let (head, rest) = packet.split_first_chunk::<HEADS>()?;
        let [first, second, third, src, dst, ports, length] = words(head);
        let is_plain = u32::from_be(first) >> 24 == VERSION_IHL
            && u32::from_be(second) & FRAGMENT == 0
            && u32::from_be(third) & PROTOCOL == UDP;
        let addresses = u64::from(src).wrapping_add(u64::from(dst));
        if !is_plain || !is_valid(sum([first, second, third]).wrapping_add(addresses)) {
            return None;
        }
        let data_len = ((u32::from_be(first) & 0xffff) as usize).checked_sub(HEADS)?;
        let data = rest.get(..data_len)?;
        let udp_len = data_len.wrapping_add(UdpHeader::LEN);
        let length = u32::from_be(length);
        // RFC 768: "An all zero transmitted checksum value means that the transmitter generated no checksum".
        if (length >> 16) as usize != udp_len || length & 0xffff == 0 {
            return None;
        }
        if checksum == Checksum::Verify {
            let header = sum([ports, length.to_be()]).wrapping_add(addresses);
            let data = Sum::new().add_bytes(data).in_33_bits();
            if !is_valid(header.wrapping_add(pseudo(udp_len)).wrapping_add(data)) {
                return None;
            }
        }
        Some(Self { head, data })
    }

    /// Returns the addresses of the sender and of the receiver.
    #[inline]
    pub fn addresses(&self) -> (Address, Address) {
        let [_, _, _, src, dst, ..] = words(self.head);
        (Address::from_v4_bytes(src.to_ne_bytes()), Address::from_v4_bytes(dst.to_ne_bytes()))
    }

    /// Returns the ports of the sender, 0 if it expects no reply, and of the receiver.
    #[inline]
    pub fn ports(&self) -> (u16, u16) {
        let [_, _, _, _, _, ports, _] = words(self.head);
        let ports = u32::from_be(ports);
        ((ports >> 16) as u16, ports as u16)
    }

    /// Returns its type of service, and its time to live.
    #[inline]
    pub fn class_and_hop_limit(&self) -> (TrafficClass, u8) {
        let [first, _, third, ..] = words(self.head);
        (TrafficClass((u32::from_be(first) >> 16) as u8), (u32::from_be(third) >> 24) as u8)
    }

    /// True if it was not to be cut on the way (DF).
    #[inline]
    pub fn has_dont_fragment(&self) -> bool {
        let [_, second, ..] = words(self.head);
        u32::from_be(second) & DONT_FRAGMENT != 0
    }
}

/// The headers of a plain datagram to send, which is not to be cut on the way.
#[derive(Clone, Copy, Debug)]
pub struct PlainDatagramHeaders {
    /// The sender; an IPv4 address.
    pub src: Address,
    /// The receiver; an IPv4 address.
    pub dst: Address,
    /// Source port: the sender's.
    pub src_port: u16,
    /// Destination port: the receiver's.
    pub dst_port: u16,
    /// Type of service: DSCP and ECN.
    pub class: TrafficClass,
    /// Time to live: routers that it may still pass.
    pub hop_limit: u8,
}

impl PlainDatagramHeaders {
    /// Length of both headers in bytes.
    pub const LEN: usize = HEADS;

    /// Writes both headers of a datagram that carries `data`, their checksums included. Without the sum of the data
    /// the UDP checksum is that of the pseudo-header, not complemented.
    #[inline(always)]
    pub fn emit(&self, data: Text, room: &mut [u8; Self::LEN]) {
        let udp_len = (data.len as usize).wrapping_add(UdpHeader::LEN);
        let total_len = udp_len.wrapping_add(IP_LEN) as u32;
        let [src, dst] = [self.src, self.dst].map(|end| u32::from_ne_bytes(end.v4_bytes()));
        let first = (VERSION_IHL << 24 | u32::from(self.class.0) << 16 | total_len).to_be();
        let third = (u32::from(self.hop_limit) << 24 | UDP).to_be();
        let ports = (u32::from(self.src_port) << 16 | u32::from(self.dst_port)).to_be();
        let length = ((udp_len as u32) << 16).to_be();
        let addresses = u64::from(src).wrapping_add(u64::from(dst));
        put(room, [first, DONT_FRAGMENT.to_be(), third, src, dst, ports, length]);
        let ip_sum = sum([first, DONT_FRAGMENT.to_be(), third]).wrapping_add(addresses);
        put_checksum(room, IP_CHECKSUM_AT, !fold(ip_sum));
        let pseudo = addresses.wrapping_add(pseudo(udp_len));
        let checksum = match data.sum {
            Some(data) => {
                let header = sum([ports, length]).wrapping_add(pseudo);
                // RFC 768: "If the computed checksum is zero, it is transmitted as all ones".
                match !fold(header.wrapping_add(data.in_33_bits())) {
                    0 => 0xffff,
                    computed => computed,
                }
            }
            None => fold(pseudo),
        };
        put_checksum(room, IP_LEN.wrapping_add(UdpHeader::CHECKSUM_OFFSET), checksum);
    }
}

/// Returns the words of both headers, in memory order.
#[inline(always)]
fn words(head: &[u8; HEADS]) -> [u32; HEADS / 4] {
    read_words(head)
}

/// Returns what the pseudo-header adds to the sum of the addresses.
#[inline(always)]
fn pseudo(udp_len: usize) -> u64 {
    u64::from((UDP | udp_len as u32).to_be())
}

/// Length of both headers, in bytes.
const HEADS: usize = IP_LEN + UdpHeader::LEN;
const UDP: u32 = (Protocol::UDP.0 as u32) << 16;

#[cfg(test)]
mod tests;
