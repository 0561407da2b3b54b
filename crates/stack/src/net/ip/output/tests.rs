//! Headers in front of any text, and sums that verify.

use std::vec::Vec;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use whimbrel_base::packet::{TxChecksum, TxSegment};
use whimbrel_base::{Key, Secrets};
use whimbrel_tcp::conn::Marking;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{
    Address, Family, IpHeader, Mss, Protocol, RawWindow, SeqNum, Sum, TrafficClass,
};

use super::TcpOut;
use crate::ip::addresses::tests::addr;
use crate::ip::{
    Addresses, Bounds, ErrorBudget, Identifications, IpCounters, IpLayer, PathMtus, Reassembly,
    Routes,
};
use crate::{Capabilities, InterfaceAddress, Medium, Steering};

const MARKING: Marking = Marking { hop_limit: 64, class: TrafficClass(0) };

pub(in crate::net::ip) fn host(tx_checksum: bool) -> IpLayer {
    let own = [
        InterfaceAddress { addr: addr("10.0.0.1"), prefix_len: 24 },
        InterfaceAddress { addr: addr("fd00::1"), prefix_len: 64 },
    ];
    IpLayer {
        capabilities: Capabilities {
            medium: Medium::Ip,
            mtu: 1_500,
            max_super: 65_535,
            tx_checksum,
            udp_segmentation: tx_checksum,
            steering: Steering::None,
        },
        addresses: Addresses::new(&own).expect("valid addresses"),
        routes: Routes::new(&own, &[]).expect("valid routes"),
        counters: IpCounters::default(),
        reassembly: Reassembly::new(Bounds::DEFAULT),
        identifications: Identifications::new(&Secrets::from_seed(1).timestamps),
        path_mtus: PathMtus::default(),
        probed_mtus: PathMtus::default(),
        datagram_mtus: PathMtus::default(),
        reply_mtus: PathMtus::default(),
        error_budget: ErrorBudget::new(&Key([7; 16])),
        origin: crate::ip::Origin::Wire,
    }
}

pub(in crate::net::ip) fn peer(family: Family) -> Address {
    match family {
        Family::V4 => addr("10.0.0.2"),
        Family::V6 => addr("fd00::2"),
    }
}

fn header(options: TcpOptions) -> TcpHeader {
    TcpHeader {
        src_port: 80,
        dst_port: 40_000,
        seq: SeqNum::new(0xffff_fff0),
        ack: SeqNum::new(77),
        flags: TcpFlags::ACK | TcpFlags::PSH,
        window: RawWindow::new(501),
        urgent: 0,
        options,
    }
}

/// A segment with this text, in the form that the device gets.
pub(in crate::net::ip) fn write(
    host: &mut IpLayer,
    family: Family,
    header: &TcpHeader,
    text: &[Vec<u8>],
) -> TxSegment {
    let mut tx = TxSegment::new();
    for slice in text {
        tx.payload.push(Bytes::copy_from_slice(slice)).expect("few slices");
    }
    let (local_index, remote) = (u16::from(family == Family::V6), peer(family));
    let order = OptionOrder::Linux;
    let out = TcpOut { local_index, remote: &remote, header, marking: MARKING, order };
    assert!(host.write_tcp(&out, &mut tx));
    tx
}

/// Completes the sum as a device does: adds the transport header, its field included, and the
/// text.
fn complete(packet: &mut [u8], tx: &TxSegment) {
    if let TxChecksum::Partial(offset) = tx.checksum {
        let start = usize::from(tx.transport_offset);
        let at = start + usize::from(offset);
        let checksum = Sum::new().add_bytes(&packet[start..]).finish();
        packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
}

#[test]
fn a_segment_from_an_address_that_is_not_ours_is_not_written() {
    let (mut host, mut tx) = (host(false), TxSegment::new());
    let (remote, header) = (peer(Family::V4), header(TcpOptions::default()));
    let order = OptionOrder::Linux;
    let out = TcpOut { local_index: 2, remote: &remote, header: &header, marking: MARKING, order };
    assert!(!host.write_tcp(&out, &mut tx));
    assert_eq!((tx.is_empty(), host.counters.out_requests), (true, 0));
}

#[test]
fn the_mss_leaves_room_for_the_headers_of_its_family() {
    let host = host(false);
    assert_eq!((host.mss(Family::V4), host.mss(Family::V6)), (Mss::new(1_460), Mss::new(1_440)));
}

#[test]
fn super_segments_fit_length_field_and_need_offload() {
    let mut host = host(true);
    assert_eq!(host.max_text(), 65_535 - 40 - 60);
    host.capabilities.max_super = 1_500;
    assert_eq!(host.max_text(), 0);
}

#[test]
fn the_largest_super_segment_states_its_length() {
    for family in [Family::V4, Family::V6] {
        let mut host = host(true);
        let text = [std::vec![7; host.max_text() as usize]];
        let options =
            TcpOptions { timestamps: Some(Timestamps { val: 1, ecr: 2 }), ..TcpOptions::default() };
        let tx = write(&mut host, family, &header(options), &text);
        let packet = tx.to_vec();
        let (ip, payload) = IpHeader::parse(&packet).expect("a packet");
        assert_eq!(usize::from(ip.payload_len), text[0].len() + 32);
        assert_eq!(payload.len(), text[0].len() + 32);
    }
}

proptest! {
    #[test]
    fn every_sum_verifies_whole_or_completed_by_the_device(
        v6 in any::<bool>(),
        offloaded in any::<bool>(),
        stamped in any::<bool>(),
        slices in vec(vec(any::<u8>(), 0..=301), 0..=18),
    ) {
        let family = if v6 { Family::V6 } else { Family::V4 };
        let timestamps = stamped.then_some(Timestamps { val: 0xdead_beef, ecr: 5 });
        let header = header(TcpOptions { timestamps, ..TcpOptions::default() });
        let tx = write(&mut host(offloaded), family, &header, &slices);
        prop_assert_eq!(tx.checksum == TxChecksum::Done, !offloaded);
        let mut packet = tx.to_vec();
        complete(&mut packet, &tx);
        let (ip, payload) = IpHeader::parse(&packet).expect("a packet with a right checksum");
        prop_assert_eq!(usize::from(ip.header_len), usize::from(tx.transport_offset));
        prop_assert_eq!((ip.dst, ip.protocol, ip.fragment), (peer(family), Protocol::TCP, None));
        let sum = Sum::pseudo_header(ip.src, ip.dst, Protocol::TCP.0, payload.len() as u32);
        prop_assert!(sum.add_bytes(payload).is_valid());
        let (parsed, len) = TcpHeader::parse(payload).expect("a TCP header");
        prop_assert_eq!(parsed, header);
        prop_assert_eq!(&payload[len..], &slices.concat()[..]);
    }
}
