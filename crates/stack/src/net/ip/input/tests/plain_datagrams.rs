//! Plain datagrams of hostile hosts: what is read in one step is what the reading step by step finds.

use std::format;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_wire::{Address, Protocol, Sum, UdpHeader};

use super::Input;
use crate::RxFrame;
use crate::ip::output::tests::host;

/// A packet whose fields are mostly right, and its checksums too, so that each wrong one is looked at alone.
#[derive(Clone, Debug)]
struct Hostile {
    src: [u8; 4],
    dst: [u8; 4],
    ports: [u16; 2],
    /// Version and header length.
    first: u8,
    fragment: u16,
    ttl: u8,
    protocol: u8,
    /// Added to the lengths in IP's and UDP's header.
    excess: [i16; 2],
    data: Vec<u8>,
    behind: usize,
    udp_checksum: ChecksumKind,
    ip_is_right: bool,
}

#[derive(Clone, Copy, Debug)]
enum ChecksumKind {
    Right,
    Zero,
    Ones,
    Wrong,
}

fn address() -> impl Strategy<Value = [u8; 4]> {
    let named = select(
        &[
            [10, 0, 0, 1],
            [10, 0, 0, 2],
            [10, 0, 0, 0],
            [10, 0, 0, 255],
            [10, 255, 255, 255],
            [255; 4],
            [0; 4],
            [127, 0, 0, 1],
            [224, 0, 0, 1],
            [240, 0, 0, 1],
            [169, 254, 0, 1],
        ][..],
    );
    prop_oneof![4 => named, 1 => any::<[u8; 4]>()]
}

fn port() -> impl Strategy<Value = u16> {
    prop_oneof![1 => Just(0), 3 => any::<u16>()]
}

fn excess() -> impl Strategy<Value = i16> {
    prop_oneof![6 => Just(0), 1 => -40_i16..40, 1 => any::<i16>()]
}

prop_compose! {
    fn hostile()(
        src in prop_oneof![3 => Just([10, 0, 0, 2]), 1 => address()],
        dst in prop_oneof![3 => Just([10, 0, 0, 1]), 1 => address()],
        ports in [port(), port()],
        first in prop_oneof![9 => Just(0x45), 1 => any::<u8>()],
        fragment in prop_oneof![4 => select(&[0, 0x4000][..]), 1 => any::<u16>()],
        ttl in any::<u8>(),
        protocol in prop_oneof![9 => Just(Protocol::UDP.0), 1 => any::<u8>()],
        excess in [excess(), excess()],
        data in prop_oneof![vec(any::<u8>(), 0..70), vec(Just(0xff), 0..70), vec(Just(0), 0..3)],
        behind in prop_oneof![3 => Just(0_usize), 1 => 1..50_usize],
        udp_checksum in prop_oneof![
            5 => Just(ChecksumKind::Right),
            1 => select(&[ChecksumKind::Zero, ChecksumKind::Ones, ChecksumKind::Wrong][..]),
        ],
        ip_is_right in prop::bool::weighted(0.9),
    ) -> Hostile {
        Hostile {
            src, dst, ports, first, fragment, ttl, protocol, excess, data, behind, udp_checksum, ip_is_right,
        }
    }
}

impl Hostile {
    fn bytes(&self) -> Vec<u8> {
        let udp_len = UdpHeader::LEN + self.data.len();
        let lengths = [20 + udp_len, udp_len];
        let [total, length] =
            [0, 1].map(|it| (lengths[it] as u16).wrapping_add_signed(self.excess[it]));
        let mut ip = std::vec![self.first, 0];
        ip.extend_from_slice(&total.to_be_bytes());
        ip.extend_from_slice(&[7, 7]);
        ip.extend_from_slice(&self.fragment.to_be_bytes());
        ip.extend_from_slice(&[self.ttl, self.protocol, 0, 0]);
        ip.extend_from_slice(&self.src);
        ip.extend_from_slice(&self.dst);
        let sum = (!Sum::new().add_bytes(&ip).fold()).wrapping_add((!self.ip_is_right).into());
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut udp: Vec<u8> = self.ports.into_iter().flat_map(u16::to_be_bytes).collect();
        udp.extend_from_slice(&length.to_be_bytes());
        udp.extend_from_slice(&[0, 0]);
        udp.extend_from_slice(&self.data);
        let [src, dst] = [self.src, self.dst].map(Address::from_v4_bytes);
        let sum = Sum::pseudo_header(src, dst, Protocol::UDP.0, length.into()).add_bytes(&udp);
        let checksum = match self.udp_checksum {
            ChecksumKind::Right => UdpHeader::checksum_of(sum),
            ChecksumKind::Zero => 0,
            ChecksumKind::Ones => 0xffff,
            ChecksumKind::Wrong => UdpHeader::checksum_of(sum).wrapping_add(1),
        };
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
        let padding = core::iter::repeat_n(0xee, self.behind);
        ip.into_iter().chain(udp).chain(padding).collect()
    }
}

/// Reads a packet both ways. Returns whether it is plain.
fn read_both(bytes: &[u8], meta: SegMeta) -> bool {
    let mut host = host(false);
    let plain = host.read_plain_datagram(bytes, &meta).map(|arrived| format!("{arrived:?}"));
    let Some(plain) = plain else { return false };
    match host.read(Instant::ZERO, &RxFrame::new(bytes, meta)) {
        Ok(Input::Udp(arrived)) => assert_eq!(plain, format!("{arrived:?}")),
        other => panic!("{plain} is {other:?} otherwise"),
    }
    true
}

proptest! {
    #[test]
    fn hostile_packet_read_as_plain_is_what_single_headers_say(
        packet in hostile(),
        cut in prop_oneof![4 => Just(0_usize), 1 => 0..100_usize],
        checksum in select(&[RxChecksum::Unknown, RxChecksum::Verified, RxChecksum::Partial][..]),
        gso_size in prop_oneof![3 => Just(0), 1 => any::<u16>()],
    ) {
        let mut bytes = packet.bytes();
        bytes.truncate(bytes.len().saturating_sub(cut));
        let meta = SegMeta { checksum, gso_size, ..SegMeta::SINGLE };
        let _is_plain = read_both(&bytes, meta);
    }

    #[test]
    fn faultless_packet_is_plain_whatever_its_ports_and_data(
        data in vec(any::<u8>(), 0..70),
        ports in [port(), port()],
        behind in 0..50_usize,
    ) {
        let packet = Hostile {
            src: [10, 0, 0, 2],
            dst: [10, 0, 0, 1],
            ports,
            first: 0x45,
            fragment: 0x4000,
            ttl: 1,
            protocol: Protocol::UDP.0,
            excess: [0, 0],
            data,
            behind,
            udp_checksum: ChecksumKind::Right,
            ip_is_right: true,
        };
        prop_assert!(read_both(&packet.bytes(), SegMeta::SINGLE));
    }
}
