//! Frames of all kinds: each becomes a segment, an echo, or a counted drop, and none a panic.

use std::format;
use std::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use whimbrel_base::Instant;
use whimbrel_base::packet::{Payload, RxChecksum, SegMeta};
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{Address, Family, Protocol, SeqNum};

use super::{Arrival, FlowKey, Input};
use crate::ip::addresses::tests::addr;
use crate::ip::output::tests::{host, peer, write};
use crate::ip::{FrameDrop, IpLayer, Routes};
use crate::{InterfaceAddress, RxFrame};

mod plain_datagrams;

const BOTH: [Family; 2] = [Family::V4, Family::V6];

fn header() -> TcpHeader {
    TcpHeader {
        src_port: 40_000,
        dst_port: 80,
        seq: SeqNum::new(5),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    }
}

fn local(family: Family) -> Address {
    match family {
        Family::V4 => addr("10.0.0.1"),
        Family::V6 => addr("fd00::1"),
    }
}

/// A packet from the peer to us with this text. Both ends' addresses changed places since it was
/// written; the sums over them do not see that.
fn packet(family: Family, header: &TcpHeader, text: &[u8]) -> Vec<u8> {
    let mut packet = write(&mut host(false), family, header, &[text.to_vec()]).to_vec();
    let (at, len) = match family {
        Family::V4 => (12, 4),
        Family::V6 => (8, 16),
    };
    packet[at..at + 2 * len].rotate_left(len);
    packet
}

/// The fate of a frame: the drop, or the flow and the text of a segment.
fn read(
    host: &mut IpLayer,
    bytes: &[u8],
    checksum: RxChecksum,
) -> Result<(FlowKey, Vec<u8>), FrameDrop> {
    let frame = RxFrame::new(bytes, SegMeta { checksum, ..SegMeta::SINGLE });
    let plain = host.read_plain(bytes, frame.meta.checksum);
    let plain =
        plain.map(|(key, segment)| format!("{:?}", Arrival::of_plain(key, &segment, &frame.meta)));
    let read = host.read(Instant::ZERO, &frame).map_err(|refused| refused.reason);
    if let Some(plain) = plain {
        assert_eq!(format!("{read:?}"), format!("Ok(Segment({plain}))"));
    }
    match read? {
        Input::Segment(arrival) => {
            let Payload::Borrowed(_, text) = arrival.segment.payload else {
                panic!("not borrowed")
            };
            Ok((arrival.key, text.to_vec()))
        }
        Input::Echo(_) | Input::EchoReply(_) | Input::Report(_) => Err(FrameDrop::IcmpType),
        Input::Udp(_) => Err(FrameDrop::UdpPort),
        _ => Err(FrameDrop::Fragment),
    }
}

fn refusal(bytes: &[u8]) -> Option<FrameDrop> {
    read(&mut host(false), bytes, RxChecksum::Unknown).err()
}

#[test]
fn a_segment_is_read_with_its_flow_and_its_text() {
    for family in BOTH {
        let mut bytes = packet(family, &header(), b"hello");
        // A link may pad.
        bytes.extend([0xaa; 7]);
        let key = FlowKey {
            remote: peer(family),
            remote_port: 40_000,
            local_port: 80,
            local_index: u16::from(family == Family::V6),
        };
        let read = read(&mut host(false), &bytes, RxChecksum::Unknown);
        assert_eq!(read, Ok((key, b"hello".to_vec())));
    }
}

#[test]
fn a_wrong_checksum_is_found_unless_the_device_vouches_for_it() {
    for family in BOTH {
        let mut bytes = packet(family, &header(), b"hello");
        *bytes.last_mut().expect("text") ^= 1;
        assert_eq!(refusal(&bytes), Some(FrameDrop::TcpChecksum));
        for vouched in [RxChecksum::Verified, RxChecksum::Partial] {
            assert!(read(&mut host(false), &bytes, vouched).is_ok());
        }
    }
}

/// An IPv4 packet with another source or destination, its header's sum mended.
fn readdressed(src: Address, dst: Address) -> Vec<u8> {
    let mut bytes = packet(Family::V4, &header(), b"");
    bytes[12..16].copy_from_slice(&src.v4_bytes());
    bytes[16..20].copy_from_slice(&dst.v4_bytes());
    bytes[10..12].fill(0);
    let checksum = whimbrel_wire::Sum::new().add_bytes(&bytes[..20]).finish();
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn foreign_packets_and_martians_are_dropped_by_reason() {
    let (us, them) = (local(Family::V4), peer(Family::V4));
    assert_eq!(refusal(&readdressed(them, addr("10.0.0.3"))), Some(FrameDrop::OtherHost));
    for src in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "127.0.0.1", "10.0.0.1", "10.0.0.255"] {
        assert_eq!(refusal(&readdressed(addr(src), us)), Some(FrameDrop::Martian), "{src}");
    }
}

#[test]
fn port_zero_is_nobodys() {
    for family in BOTH {
        let from = TcpHeader { src_port: 0, ..header() };
        let to = TcpHeader { dst_port: 0, ..header() };
        assert_eq!(refusal(&packet(family, &from, b"")), Some(FrameDrop::TcpPort));
        assert_eq!(refusal(&packet(family, &to, b"")), Some(FrameDrop::TcpPort));
    }
}

#[test]
fn a_packet_cut_anywhere_is_dropped() {
    for family in BOTH {
        let bytes = packet(family, &header(), b"hello");
        for len in 0..bytes.len() {
            assert!(refusal(&bytes[..len]).is_some(), "{len} bytes");
        }
    }
}

#[test]
fn protocols_nobody_speaks_are_dropped() {
    let mut bytes = packet(Family::V6, &header(), b"");
    bytes[6] = 132;
    assert_eq!(refusal(&bytes), Some(FrameDrop::Protocol), "SCTP");
    bytes[6] = Protocol::ICMP.0;
    assert_eq!(refusal(&bytes), Some(FrameDrop::Protocol), "the other family's ICMP");
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200), version in 0u8..3) {
        let mut bytes = bytes;
        if let (Some(first), 1..) = (bytes.first_mut(), version) {
            *first = if version == 1 { 0x45 } else { 0x60 };
        }
        for checksum in [RxChecksum::Unknown, RxChecksum::Verified, RxChecksum::Partial] {
            let _ = read(&mut host(false), &bytes, checksum);
        }
    }

    #[test]
    fn mutated_packets_never_panic_and_changed_bytes_are_seen(
        v6 in any::<bool>(),
        text in vec(any::<u8>(), 0..60),
        changes in vec((any::<Index>(), 1u8..), 1..4),
    ) {
        let family = if v6 { Family::V6 } else { Family::V4 };
        let good = packet(family, &header(), &text);
        let mut bytes = good.clone();
        for (at, by) in &changes {
            let at = at.index(bytes.len());
            bytes[at] ^= by;
        }
        let _ = read(&mut host(false), &bytes, RxChecksum::Verified);
        let checked = read(&mut host(false), &bytes, RxChecksum::Unknown);
        // One changed byte of the segment itself never cancels out in its sum.
        let ip_len = good.len() - 20 - text.len();
        if changes.len() == 1 && bytes[..ip_len] == good[..ip_len] {
            let refused = matches!(checked, Err(FrameDrop::TcpChecksum | FrameDrop::TcpHeader));
            prop_assert!(refused, "{:?}", checked);
        }
    }
}

#[test]
fn a_segment_in_plain_ipv4_is_read_at_once() {
    let at_once = |family| {
        let packet = packet(family, &header(), b"text");
        host(false).read_plain(&packet, RxChecksum::Unknown).is_some()
    };
    assert_eq!(BOTH.map(at_once), [true, false]);
}

#[test]
fn whatever_is_martian_may_be_martian() {
    let mut host = host(false);
    let network = |own, prefix_len| InterfaceAddress { addr: addr(own), prefix_len };
    let own = [network("10.0.0.1", 24), network("172.16.5.2", 22), network("192.0.2.9", 30)];
    host.routes = Routes::new(&own, &[]).expect("valid routes");
    let ends = [0, 1, 5, 7, 16, 100, 255];
    let middles = ends.iter().flat_map(|second| ends.map(|third| (*second, third)));
    let firsts = (0..=255).flat_map(|first| middles.clone().map(move |middle| (first, middle)));
    let mut found = 0;
    let all = firsts.flat_map(|(first, (second, third))| {
        (0..=255).map(move |last| Address::from_v4_bytes([first, second, third, last]))
    });
    for src in all.chain([addr("192.0.2.11")]) {
        if host.is_martian(&src) {
            found += 1;
            assert!(host.may_be_martian(&src), "{src}");
        }
    }
    // 127/8 and 224/4 in so many parts; 0.0.0.0, 255.255.255.255, our address, and all hosts of three
    // networks.
    assert_eq!(found, 17 * 49 * 256 + 6);
    assert!(!host.may_be_martian(&addr("198.51.100.7")), "nearly all are told at once");
}
