//! Packets that nothing takes, kept whole for an application.

use std::vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, IcmpMessage, IpHeader, Protocol, Sum};

use super::hosts::{Over, client_addr, host, server_addr};
use super::packets::{fragments, packet_from, sent};
use crate::ip::{FrameDrop, Unreachable};
use crate::{RxFrame, Shard};

const ELSEWHERE: Address = Address::from_v4_bytes([192, 0, 2, 9]);
const PARTIAL: SegMeta = SegMeta { checksum: RxChecksum::Partial, ..SegMeta::SINGLE };

fn keeping(most: usize) -> Shard {
    let mut shard = host(server_addr, 1, &Tunables::default());
    shard.keep_unclaimed(most);
    shard
}

fn rx(shard: &mut Shard, packet: &[u8], meta: SegMeta) {
    shard.rx(Instant::ZERO, &[RxFrame::new(packet, meta)]);
}

fn sums_up(packet: &[u8]) -> bool {
    let (ip, payload) = IpHeader::parse(packet).expect("a packet");
    let len = payload.len() as u32;
    Sum::pseudo_header(ip.src, ip.dst, ip.protocol.0, len).add_bytes(payload).is_valid()
}

#[test]
fn unclaimed_packets_have_complete_checksums() {
    for (protocol, field, len) in [(Protocol::TCP, 16, 25), (Protocol::UDP, 6, 13)] {
        let mut shard = keeping(1);
        // The field holds something: what it held before is no part of the sum.
        let mut payload = vec![7; len];
        payload[field] = 0x55;
        let mut packet = packet_from(client_addr(Over::V4), ELSEWHERE, protocol, &payload);
        assert!(!sums_up(&packet));
        // And a link may pad.
        packet.extend([0; 9]);
        rx(&mut shard, &packet, PARTIAL);
        let claimed = shard.poll_unclaimed().expect("a packet");
        assert!(sums_up(&claimed));
        assert_eq!(claimed.len(), 20 + len);
        assert_eq!(claimed[..20], packet[..20]);
        assert_eq!(shard.poll_unclaimed(), None);
    }
}

#[test]
fn unclaimed_super_segments_are_dropped_and_counted() {
    let mut shard = keeping(1);
    let packet = packet_from(client_addr(Over::V4), ELSEWHERE, Protocol::UDP, &[7; 100]);
    // Several datagrams in one frame; a protocol that leaves no checksum to devices.
    rx(&mut shard, &packet, SegMeta { segs: 2, gso_size: 46, ..PARTIAL });
    let other = packet_from(client_addr(Over::V4), ELSEWHERE, Protocol::ICMP, &[7; 100]);
    rx(&mut shard, &other, PARTIAL);
    assert_eq!(shard.poll_unclaimed(), None);
    // One more than may wait.
    rx(&mut shard, &packet, SegMeta::SINGLE);
    rx(&mut shard, &packet, SegMeta::SINGLE);
    let counters = shard.ip_counters();
    assert_eq!((counters.unclaimed, counters.unclaimed_dropped), (1, 3));
    assert_eq!(counters.in_receives, counters.in_delivers + counters.dropped(FrameDrop::OtherHost));
    assert_eq!(&*shard.poll_unclaimed().expect("a packet"), &*packet);
}

#[test]
fn nobody_who_wants_them_leaves_everything_as_it_was() {
    let mut shard = keeping(4);
    let packet = packet_from(client_addr(Over::V4), ELSEWHERE, Protocol::UDP, &[7; 100]);
    rx(&mut shard, &packet, SegMeta::SINGLE);
    shard.keep_unclaimed(0);
    assert_eq!(shard.poll_unclaimed(), None, "those that wait go, too");
    rx(&mut shard, &packet, SegMeta::SINGLE);
    assert_eq!(shard.ip_counters().dropped(FrameDrop::OtherHost), 1);
    assert_eq!(shard.ip_counters().unclaimed, 1);
}

/// As a router on the way says it, from this host's own address; and of no error, no group and no later
/// fragment.
#[test]
fn unclaimed_packet_is_refused_from_own_address() {
    let mut shard = keeping(4);
    let mut data = [0; 24];
    IcmpMessage::EchoRequest { identifier: 7, sequence: 1, data: &[5; 16] }.emit(&mut data);
    let client = client_addr(Over::V4);
    let packet = packet_from(client, ELSEWHERE, Protocol::ICMP, &data);
    shard.refuse_unclaimed(&packet, Unreachable::TooBig { mtu: 1400 });
    let answers = sent(&mut shard);
    let (ip, message) = IpHeader::parse(&answers[0]).expect("a packet");
    assert_eq!((answers.len(), ip.src, ip.dst), (1, server_addr(Over::V4), client));
    let quoted = &packet[..];
    let error = IcmpMessage::FragmentationNeeded { next_hop_mtu: 1400, quoted };
    assert_eq!(IcmpMessage::parse(message), Ok(error));

    let group = Address::from_v4_bytes([224, 0, 0, 9]);
    let for_many = packet_from(client, group, Protocol::ICMP, &data);
    let [_, later, _] = <[_; 3]>::try_from(fragments(&packet, 1, 28)).expect("three");
    data[0] = 3;
    let an_error = packet_from(client, ELSEWHERE, Protocol::ICMP, &data);
    for packet in [&for_many[..], &later, &an_error, &packet[..19], &[]] {
        shard.refuse_unclaimed(packet, Unreachable::Host);
        assert!(sent(&mut shard).is_empty(), "{packet:?}");
    }
}
