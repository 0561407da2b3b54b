//! Packets in pieces.

use std::time::Duration;
use std::vec::Vec;

use proptest::prelude::*;
use whimbrel_base::Instant;
use whimbrel_tcp::Tunables;
use whimbrel_wire::{IcmpMessage, Icmpv6Message, IpHeader, Protocol};

use super::hosts::{BOTH, Hosts, Over, Wire, client_addr, drain, host, send, server_addr};
use super::packets::{exchange, fix_checksum, fragment, fragments, packet, sent, v6};
use crate::Shard;
use crate::ip::FrameDrop;

const DATA: usize = 3_000;

/// An echo request of many bytes.
fn request(over: Over) -> Vec<u8> {
    let data: Vec<u8> = (0..DATA).map(|at| at as u8).collect();
    let mut message = vec![0; DATA + 8];
    let (identifier, sequence) = (5, 9);
    match over {
        Over::V4 => {
            IcmpMessage::EchoRequest { identifier, sequence, data: &data }.emit(&mut message);
            packet(over, Protocol::ICMP, &message)
        }
        Over::V6 => {
            let (src, dst) = (v6(&client_addr(over)), v6(&server_addr(over)));
            let echo = Icmpv6Message::EchoRequest { identifier, sequence, data: &data };
            echo.emit(src, dst, &mut message);
            packet(over, Protocol::ICMPV6, &message)
        }
    }
}

fn server() -> Shard {
    host(server_addr, 2, &Tunables::default())
}

/// Passes packets to the host at one time. Returns the number of replies; fragments of one count once.
fn take(server: &mut Shard, packets: &[Vec<u8>]) -> usize {
    let replies = packets.iter().flat_map(|packet| exchange(server, Instant::ZERO, packet));
    replies.filter(|reply| place(reply).0 == 0).count()
}

/// Returns the fragment field of a packet, and its payload.
fn place(packet: &[u8]) -> (u16, Vec<u8>) {
    let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
    (ip.fragment.map_or(0, |fragment| fragment.offset), payload.to_vec())
}

#[test]
fn fragments_in_any_order_become_the_packet_they_were() {
    for over in BOTH {
        let pieces = fragments(&request(over), 77, 1_280);
        assert_eq!(pieces.len(), 3);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let mut server = server();
            let in_order = order.map(|at| pieces[at].clone());
            assert_eq!(take(&mut server, &in_order[..2]), 0);
            assert_eq!(server.census().fragmented, 1);
            let replies = exchange(&mut server, Instant::ZERO, &in_order[2]);
            assert_eq!(replies.iter().map(|reply| place(reply).1.len()).sum::<usize>(), DATA + 8);
            assert_eq!(server.ip_counters().reassembled, 1);
            assert_eq!(server.census(), crate::shard::Census::default());
        }
    }
}

#[test]
fn echo_reply_beyond_mtu_leaves_in_fragments() {
    for over in BOTH {
        let (mut server, mut client) = (server(), host(client_addr, 1, &Tunables::default()));
        let pieces = fragments(&request(over), 77, 1_280);
        let replies: Vec<_> =
            pieces.iter().flat_map(|it| exchange(&mut server, Instant::ZERO, it)).collect();
        assert_eq!(replies.len(), 3);
        assert!(replies.iter().all(|reply| reply.len() <= 1_500));
        let counters = server.ip_counters();
        assert_eq!((counters.fragmented, counters.fragments_created), (1, 3));
        assert_eq!((counters.echo_replies, counters.out_requests), (1, 1));
        assert_eq!(take(&mut client, &replies), 0);
        assert_eq!(client.ip_counters().reassembled, 1);
        // Its checksum was right, and it was not asked for.
        assert_eq!(client.ip_counters().dropped(FrameDrop::IcmpType), 1);
    }
}

#[test]
fn a_stream_over_a_wire_that_fragments_arrives_whole() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        hosts.wire = Wire::Fragmenting(600);
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        let text: Vec<u8> = (0..100_000u32).map(|at| (at >> 3) as u8).collect();
        send(&mut hosts.client, client, &text);
        let mut received = Vec::new();
        for _ in 0..50 {
            hosts.run(Duration::from_millis(10));
            received.extend(drain(&mut hosts.server, server).0);
        }
        assert!(received == text, "{} bytes", received.len());
        assert!(hosts.server.ip_counters().reassembled >= 68);
        assert_eq!(hosts.client.counters().retrans_segs, 0);
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_corrupted_piece_is_found_out_by_the_checksum_of_the_whole() {
    let mut server = server();
    let mut pieces = fragments(&request(Over::V6), 1, 1_280);
    *pieces[1].last_mut().expect("bytes") ^= 1;
    assert_eq!(take(&mut server, &pieces), 0);
    assert_eq!(server.ip_counters().dropped(FrameDrop::IcmpHeader), 1);
}

#[test]
fn overlapping_fragments_discard_their_datagram_in_silence() {
    for over in BOTH {
        let mut server = server();
        let whole = request(over);
        let pieces = [0..1_200, 1_192..2_400, 1_200..2_400, 2_400..3_008]
            .map(|range| fragment(&whole, 8, range));
        assert_eq!(take(&mut server, &pieces[..2]), 0);
        assert_eq!(server.ip_counters().dropped(FrameDrop::FragmentOverlap), 1);
        assert_eq!(server.census(), crate::shard::Census::default());
        // What comes later has nothing to join.
        assert_eq!(take(&mut server, &pieces[2..]), 0);
        assert_eq!(server.census().fragmented, 1);
        server.advance(Instant::from_millis(60_000), 64);
        assert_eq!(sent(&mut server), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn fragments_that_disagree_about_the_end_discard_their_datagram() {
    for over in BOTH {
        let whole = request(over);
        let shorter = packet(
            over,
            if over == Over::V4 { Protocol::ICMP } else { Protocol::ICMPV6 },
            &[0; 2_000],
        );
        let end = fragment(&whole, 8, 2_400..3_008);
        let other_end = fragment(&shorter, 8, 1_600..2_000);
        let beyond = fragment(&whole, 8, 2_000..2_400);
        for pair in [[&end, &other_end], [&other_end, &end], [&other_end, &beyond]] {
            let mut server = server();
            take(&mut server, &pair.map(Clone::clone));
            assert_eq!(server.ip_counters().dropped(FrameDrop::FragmentOverlap), 1);
            assert_eq!(server.census().fragmented, 0);
        }
    }
}

#[test]
fn exact_duplicates_do_no_harm() {
    for over in BOTH {
        let mut server = server();
        let pieces = fragments(&request(over), 8, 1_280);
        let twice = [&pieces[0], &pieces[0], &pieces[1], &pieces[1], &pieces[2]].map(Clone::clone);
        assert_eq!(take(&mut server, &twice), 1);
        assert_eq!(server.ip_counters().dropped(FrameDrop::FragmentDuplicate), 2);
    }
}

#[test]
fn fragments_of_different_packets_never_mix() {
    for over in BOTH {
        let mut server = server();
        let (one, other) =
            (fragments(&request(over), 1, 1_280), fragments(&request(over), 2, 1_280));
        let mixed = [&one[0], &other[1], &one[2], &other[0]].map(Clone::clone);
        assert_eq!(take(&mut server, &mixed), 0);
        assert_eq!(server.census().fragmented, 2);
        assert_eq!(take(&mut server, &[one[1].clone(), other[2].clone()]), 2);
    }
}

#[test]
fn reassembly_times_out_after_60s_and_reports_first() {
    for over in BOTH {
        for (piece, told) in [(0, true), (1, false)] {
            let mut server = server();
            let pieces = fragments(&request(over), 8, 1_280);
            take(&mut server, &pieces[piece..=piece]);
            let due = Instant::from_millis(60_000);
            assert_eq!(server.next_deadline(), Some(due));
            server.advance(Instant::from_millis(59_999), 64);
            assert_eq!(server.census().fragmented, 1);
            server.advance(due, 64);
            assert_eq!(server.census().fragment_bytes, 0);
            assert_eq!(server.ip_counters().reassembly_timeouts, 1);
            let replies = sent(&mut server);
            assert_eq!(replies.len(), usize::from(told));
            for reply in replies {
                let (_, payload) = IpHeader::parse(&reply).expect("an IP packet");
                let time_exceeded = if over == Over::V4 { 11 } else { 3 };
                assert_eq!(payload[..2], [time_exceeded, 1]);
                assert!(pieces[0].starts_with(&payload[8..]));
            }
        }
    }
}

#[test]
fn an_ipv6_packet_must_begin_with_all_its_headers() {
    let mut server = server();
    let whole = packet(Over::V6, Protocol::TCP, &[0; 100]);
    let replies = exchange(&mut server, Instant::ZERO, &fragment(&whole, 8, 0..16));
    assert_eq!(replies[0][40..42], [4, 3]);
    assert_eq!(server.ip_counters().dropped(FrameDrop::FragmentHeaders), 1);
    assert_eq!(server.census().fragmented, 0);
}

/// The fragments of an IPv6 packet whose payload is to be read as `protocol`. SegmentationQueue reads the
/// packet, and must not understand what it cuts.
fn fragments_of(protocol: Protocol, payload: &[u8], size: usize) -> Vec<Vec<u8>> {
    let mut pieces = fragments(&packet(Over::V6, Protocol(200), payload), 9, size);
    for piece in &mut pieces {
        piece[40] = protocol.0;
    }
    pieces
}

#[test]
fn extension_headers_behind_fragment_are_read_when_whole() {
    let mut server = server();
    let mut body = vec![Protocol::ICMPV6.0, 0, 1, 4, 0, 0, 0, 0];
    body.extend_from_slice(&request(Over::V6)[40..]);
    assert_eq!(take(&mut server, &fragments_of(Protocol::DESTINATION_OPTIONS, &body, 1_280)), 1);
    assert_eq!(server.ip_counters().echo_replies, 1);
}

#[test]
fn a_fragment_within_a_fragmented_packet_is_dropped() {
    let mut server = server();
    let inner = fragment(&request(Over::V6), 8, 0..1_200);
    let pieces = fragments_of(Protocol::FRAGMENT, &inner[40..], 800);
    assert_eq!(take(&mut server, &pieces), 0);
    assert_eq!(server.ip_counters().dropped(FrameDrop::Fragment), 1);
    assert_eq!(server.census().fragmented, 0);
}

#[test]
fn ecn_marks_survive_reassembly() {
    for (marks, answered, mark) in [([2, 3, 2], 1, 3), ([0, 3, 0], 0, 0), ([2, 2, 2], 1, 2)] {
        let mut server = server();
        let mut pieces = fragments(&request(Over::V4), 8, 1_280);
        for (piece, mark) in pieces.iter_mut().zip(marks) {
            piece[1] = mark;
            fix_checksum(piece);
        }
        let replies: Vec<_> =
            pieces.iter().flat_map(|it| exchange(&mut server, Instant::ZERO, it)).collect();
        assert_eq!(replies.iter().filter(|reply| place(reply).0 == 0).count(), answered);
        // An echo reply repeats the request's traffic class.
        assert!(replies.iter().all(|reply| reply[1] == mark));
    }
}

#[test]
fn fragment_flood_stays_bounded_and_honest_packets_pass() {
    let mut server = server();
    let whole = request(Over::V4);
    for id in 0..10_000 {
        take(&mut server, &[fragment(&whole, id, 8..1_208)]);
        let census = server.census();
        assert!(census.fragmented <= 64 && census.fragment_bytes <= 256 << 10);
    }
    let counters = server.ip_counters();
    assert_eq!(counters.reassembly_failures, 10_000 - server.census().fragmented as u64);
    assert_eq!(counters.reassembly_crowded, counters.reassembly_failures);
    assert_eq!(take(&mut server, &fragments(&request(Over::V6), 1, 1_280)), 1);
    while server.advance(Instant::from_millis(60_000), 64) {}
    assert_eq!(server.census().fragment_bytes, 0);
}

/// A fragment whose sender forges another address each time.
fn forged(id: u32) -> Vec<u8> {
    let mut piece = fragment(&request(Over::V4), id, 8..1_208);
    piece[12..16].copy_from_slice(&[198, 51, (id >> 8) as u8, id as u8]);
    fix_checksum(&mut piece);
    piece
}

#[test]
fn honest_packet_becomes_whole_amid_fragment_floods() {
    for many in [false, true] {
        let mut server = server();
        let honest = fragments(&request(Over::V6), 1, 1_280);
        take(&mut server, &honest[..1]);
        for id in 0..5_000 {
            // A source that forges 50 addresses holds more by each than the honest one by its own.
            let piece = if many {
                let mut piece = forged(id % 50);
                piece[4..6].copy_from_slice(&(id as u16).to_be_bytes());
                fix_checksum(&mut piece);
                piece
            } else {
                fragment(&request(Over::V4), id, 8..1_208)
            };
            take(&mut server, &[piece]);
            let census = server.census();
            assert!(census.fragmented <= 256 && census.fragment_bytes <= 1 << 20);
        }
        assert_eq!(server.ip_counters().reassembly_evicted > 0, many);
        assert_eq!(take(&mut server, &honest[1..]), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_cut_wherever_bounds_hold_and_all_goes(
        pieces in proptest::collection::vec(
            (any::<bool>(), 0u32..6, 0u16..=8191, any::<bool>(), 0usize..1_400, 0u64..200),
            0..400,
        ),
    ) {
        let mut server = server();
        let mut now = 0;
        for (v4, id, at, more, len, pause) in pieces {
            let over = if v4 { Over::V4 } else { Over::V6 };
            let bytes = vec![at as u8; if more { len / 8 * 8 } else { len }];
            let place = (at << 3) | u16::from(more);
            let piece = if v4 {
                let mut piece = packet(over, Protocol(id as u8), &bytes);
                piece[4..6].copy_from_slice(&(id as u16).to_be_bytes());
                piece[6..8].copy_from_slice(&(at | u16::from(more) << 13).to_be_bytes());
                fix_checksum(&mut piece);
                piece
            } else {
                let mut body = vec![id as u8, 0];
                body.extend(place.to_be_bytes());
                body.extend(id.to_be_bytes());
                body.extend(bytes);
                packet(over, Protocol::FRAGMENT, &body)
            };
            now += pause;
            server.advance(Instant::from_millis(now), 8);
            exchange(&mut server, Instant::from_millis(now), &piece);
            let census = server.census();
            prop_assert!(census.fragmented <= 256 && census.fragment_bytes <= 1 << 20);
            prop_assert_eq!(census.fragmented == 0, census.fragment_bytes == 0);
        }
        while server.advance(Instant::from_millis(now + 60_000), 64) {}
        prop_assert_eq!((server.census().fragmented, server.census().fragment_bytes), (0, 0));
    }

    #[test]
    fn no_packet_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), over: bool) {
        let over = if over { Over::V4 } else { Over::V6 };
        let mut server = server();
        if let [protocol, payload @ ..] = bytes.as_mut_slice() {
            let packet = packet(over, Protocol(*protocol % 64), payload);
            exchange(&mut server, Instant::ZERO, &packet);
        }
        exchange(&mut server, Instant::ZERO, &bytes);
    }
}
