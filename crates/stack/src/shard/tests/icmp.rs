//! ICMP errors, in and out.

use std::collections::BTreeSet;
use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::{SegMeta, SoftError};
use whimbrel_tcp::conn::State;
use whimbrel_tcp::{CloseReason, Tunables};
use whimbrel_wire::{Address, Endpoint, IcmpMessage, Icmpv6Message, IpHeader, Protocol, UdpHeader};

use super::hosts::{
    BOTH, Hosts, Over, Wire, client_addr, drain, events, host, may_be_cut, send, server_addr,
    server_at,
};
use super::packets::{
    exchange, fix_checksum, icmp, icmpv6, packet, packet_from, sent, tcp, too_big, unreachable, v6,
};
use crate::ip::FrameDrop;
use crate::{Event, Handle, RxFrame, Shard};

const UNKNOWN: Protocol = Protocol(200);

/// Type, code and word of the error in `packet`, and what it quotes.
fn read_error(over: Over, packet: &[u8]) -> (u8, u8, u32, Vec<u8>) {
    let (ip, payload) = IpHeader::parse(packet).expect("an IP packet");
    assert_eq!((ip.src, ip.dst), (server_addr(over), client_addr(over)));
    match over {
        Over::V4 => assert!(IcmpMessage::parse(payload).is_ok()),
        Over::V6 => assert!(Icmpv6Message::parse(v6(&ip.src), v6(&ip.dst), payload).is_ok()),
    }
    let word = u32::from_be_bytes(*payload[4..].first_chunk().expect("four bytes"));
    (payload[0], payload[1], word, payload[8..].to_vec())
}

/// A client whose SYN is out, and the SYN.
fn opening(over: Over) -> (Shard, Handle, Vec<u8>) {
    let mut client = host(client_addr, 1, &Tunables::default());
    let handle = client.connect(server_at(over), None).expect("a free port");
    let syn = sent(&mut client).remove(0);
    (client, handle, syn)
}

#[test]
fn unknown_protocol_gets_error_that_quotes_packet() {
    let cases = [
        (Over::V4, UNKNOWN, (3, 2, 0)),
        (Over::V4, Protocol::UDP, (3, 3, 0)),
        (Over::V4, Protocol::ICMPV6, (3, 2, 0)),
        (Over::V6, UNKNOWN, (4, 1, 6)),
        (Over::V6, Protocol::UDP, (1, 4, 0)),
        (Over::V6, Protocol::ICMP, (4, 1, 6)),
    ];
    for (over, protocol, expected) in cases {
        let mut server = host(server_addr, 2, &Tunables::default());
        let mut bytes = [200; 1_400];
        if protocol == Protocol::UDP {
            let header = UdpHeader { src_port: 51_400, dst_port: 51_400 };
            header.emit_datagram(client_addr(over), server_addr(over), &[200; 1_392], &mut bytes);
        }
        let packet = packet(over, protocol, &bytes);
        let replies = exchange(&mut server, Instant::ZERO, &packet);
        let (icmp_type, code, word, quoted) = read_error(over, &replies[0]);
        assert_eq!((icmp_type, code, word), expected, "{over:?} {protocol:?}");
        let most = if over == Over::V4 { 576 } else { 1_280 };
        assert_eq!(replies[0].len(), most);
        assert!(packet.starts_with(&quoted));
        assert_eq!(server.ip_counters().icmp_errors_sent, 1);
    }
}

#[test]
fn unknown_ipv6_options_get_parameter_problem() {
    // Destination options: one of type 0xc7, "discard and tell".
    let option = [UNKNOWN.0, 0, 0xc7, 4, 0, 0, 0, 0];
    // A routing header of type 9 that is not done.
    let routing = [UNKNOWN.0, 0, 9, 1, 0, 0, 0, 0];
    for (protocol, body, expected) in [
        (Protocol::DESTINATION_OPTIONS, option, (4, 2, 42)),
        (Protocol::ROUTING, routing, (4, 0, 42)),
        (Protocol::DESTINATION_OPTIONS, [UNKNOWN.0, 0, 1, 4, 0, 0, 0, 0], (4, 1, 40)),
    ] {
        let mut server = host(server_addr, 2, &Tunables::default());
        let packet = packet(Over::V6, protocol, &body);
        let replies = exchange(&mut server, Instant::ZERO, &packet);
        let (icmp_type, code, word, quoted) = read_error(Over::V6, &replies[0]);
        assert_eq!((icmp_type, code, word), expected);
        assert_eq!(quoted, packet);
    }
    let mut server = host(server_addr, 2, &Tunables::default());
    let nothing = packet(Over::V6, Protocol::NO_NEXT_HEADER, &[]);
    assert!(exchange(&mut server, Instant::ZERO, &nothing).is_empty());
}

#[test]
fn errors_and_group_packets_get_no_error() {
    let mut server = host(server_addr, 2, &Tunables::default());
    let refused = packet(Over::V4, UNKNOWN, &[0; 8]);
    let here = server_addr(Over::V4);
    let sources = [[0, 0, 0, 0], [255; 4], [10, 0, 0, 255], [224, 0, 0, 1], [127, 0, 0, 1]];
    let from_many =
        sources.map(|src| packet_from(Address::from_v4_bytes(src), here, UNKNOWN, &[0; 8]));
    let to_many = [[224, 0, 0, 1], [255; 4], [10, 0, 0, 255], [10, 0, 0, 9]].map(|dst| {
        packet_from(client_addr(Over::V4), Address::from_v4_bytes(dst), UNKNOWN, &[0; 8])
    });
    // ICMPv6 errors in IPv4 packets, and the reverse: no host speaks them, and they are errors.
    let foreign = [
        packet(Over::V4, Protocol::ICMPV6, &[1, 4, 0, 0, 0, 0, 0, 0]),
        packet(Over::V6, Protocol::ICMP, &[3, 3, 0, 0, 0, 0, 0, 0]),
        icmp(
            &packet_from(here, here, UNKNOWN, &[]),
            &IcmpMessage::SourceQuench { quoted: &refused },
        ),
    ];
    for packet in from_many.iter().chain(&to_many).chain(&foreign) {
        assert!(exchange(&mut server, Instant::ZERO, packet).is_empty(), "{packet:x?}");
    }
    assert_eq!(server.ip_counters().icmp_errors_sent, 0);
}

#[test]
fn an_error_has_no_class_whatever_it_is_about() {
    let mut server = host(server_addr, 2, &Tunables::default());
    let mut packet = packet(Over::V4, UNKNOWN, &[0; 8]);
    packet[1] = 0x28;
    fix_checksum(&mut packet);
    let replies = exchange(&mut server, Instant::ZERO, &packet);
    assert_eq!(read_error(Over::V4, &replies[0]).3, packet);
    assert_eq!(replies[0][1], 0, "RFC 1122 3.2.2");
}

#[test]
fn messages_of_an_unknown_type_are_dropped_in_silence() {
    for over in BOTH {
        let mut server = host(server_addr, 2, &Tunables::default());
        // Sent as if by a router, about a packet that the server sent.
        let about = packet_from(server_addr(over), client_addr(over), Protocol::TCP, &[0; 20]);
        // IPv4 timestamp and address mask, unassigned, for experiments (RFC 4727 4, RFC 4443 2.1).
        for icmp_type in [13, 17, 44, 200, 253] {
            let message = match over {
                Over::V4 => icmp(&about, &IcmpMessage::Other { icmp_type, code: 0 }),
                Over::V6 => icmpv6(&about, &Icmpv6Message::Other { icmp_type, code: 0 }),
            };
            assert!(exchange(&mut server, Instant::ZERO, &message).is_empty());
        }
        assert_eq!(server.ip_counters().dropped(FrameDrop::IcmpType), 5, "{over:?}");
    }
}

#[test]
fn errors_out_are_limited_to_a_burst_and_a_rate() {
    let mut server = host(server_addr, 2, &Tunables::default());
    let packet = packet(Over::V4, UNKNOWN, &[0; 8]);
    let mut answered = |at: u64, count: usize| -> usize {
        let now = Instant::from_millis(at);
        (0..count).map(|_| exchange(&mut server, now, &packet).len()).sum()
    };
    // An error takes nothing, one's worth or two's, so that no host can count what others took.
    let bursts: Vec<_> = (0..40).map(|second| answered(second * 1_000, 200)).collect();
    assert!(bursts.iter().all(|it| (30..=75).contains(it)), "{bursts:?}");
    assert!(bursts.iter().any(|it| *it != bursts[0]), "{bursts:?}");
    let mean = bursts.iter().sum::<usize>() / bursts.len();
    assert!((47..=56).contains(&mean), "{mean} at once");
    let (early, late) = (answered(39_010, 200), answered(39_020, 200));
    assert!((2..=40).contains(&(early + late)), "{early} and {late} in 10 ms each");
    let sent = bursts.iter().sum::<usize>() + early + late;
    assert_eq!(server.ip_counters().icmp_errors_limited, 42 * 200 - sent as u64);
}

#[test]
fn a_hard_error_about_our_syn_ends_the_attempt_at_once() {
    let cases = [
        (Over::V4, 3, CloseReason::Refused),
        (Over::V4, 2, CloseReason::Refused),
        (Over::V4, 13, CloseReason::Unreachable),
        (Over::V6, 4, CloseReason::Refused),
        (Over::V6, 1, CloseReason::Unreachable),
    ];
    for (over, code, reason) in cases {
        let (mut client, handle, syn) = opening(over);
        assert!(exchange(&mut client, Instant::ZERO, &unreachable(&syn, code)).is_empty());
        assert_eq!(events(&mut client), [Event::Closed(handle, reason)], "{over:?} {code}");
        assert_eq!(client.attempt(handle).expect("it is held").syns, 1);
        client.close(handle);
        assert_eq!(client.census(), crate::shard::Census::default());
    }
}

#[test]
fn a_soft_error_is_readable_while_the_attempt_goes_on() {
    for (over, code, error) in [
        (Over::V4, 0, SoftError::NetworkUnreachable),
        (Over::V4, 1, SoftError::HostUnreachable),
        (Over::V6, 0, SoftError::NetworkUnreachable),
        (Over::V6, 3, SoftError::HostUnreachable),
    ] {
        let (mut client, handle, syn) = opening(over);
        exchange(&mut client, Instant::ZERO, &unreachable(&syn, code));
        assert_eq!(client.soft_error(handle), Some(error));
        assert_eq!(client.state(handle), Some(State::SynSent));
        client.abort(handle);
    }
}

#[test]
fn an_established_connection_outlives_whatever_is_said_of_it() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        send(&mut hosts.client, client, b"text");
        let text = sent(&mut hosts.client).remove(0);
        for code in 0..16 {
            exchange(&mut hosts.client, hosts.now, &unreachable(&text, code));
        }
        assert_eq!(hosts.client.state(client), Some(State::Established));
        assert!(hosts.client.soft_error(client).is_some());
        hosts.run(Duration::from_secs(1));
        assert_eq!(drain(&mut hosts.server, server).0, b"text");
        assert_eq!(hosts.client.soft_error(client), None);
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn errors_that_do_not_quote_what_is_in_flight_change_nothing() {
    for over in BOTH {
        let (mut client, handle, syn) = opening(over);
        let tcp = if over == Over::V4 { 20 } else { 40 };
        let hard = if over == Over::V4 { 3 } else { 4 };
        let mut other_number = syn.clone();
        other_number[tcp + 4] ^= 0x40;
        let mut other_port = syn.clone();
        other_port[tcp] ^= 1;
        let datagram = packet(over, Protocol::UDP, &syn[tcp..]);
        for quoted in [&other_number, &other_port, &datagram] {
            exchange(&mut client, Instant::ZERO, &unreachable(quoted, hard));
        }
        // Sent by another host, reported to us.
        let stranger =
            packet_from(server_addr(over), client_addr(over), Protocol::TCP, &syn[tcp..]);
        let spoof = match over {
            Over::V4 => {
                let quoted = &stranger;
                icmp(&syn, &IcmpMessage::DestinationUnreachable { code: hard, quoted })
            }
            Over::V6 => {
                let quoted = &stranger;
                icmpv6(&syn, &Icmpv6Message::DestinationUnreachable { code: hard, quoted })
            }
        };
        exchange(&mut client, Instant::ZERO, &spoof);
        let mut corrupt = unreachable(&syn, hard);
        *corrupt.last_mut().expect("bytes") ^= 1;
        exchange(&mut client, Instant::ZERO, &corrupt);
        assert_eq!(client.state(handle), Some(State::SynSent));
        assert_eq!(client.counters().icmp_out_of_window, 1);
        assert_eq!(client.ip_counters().dropped(FrameDrop::IcmpNoSocket), 2);
        assert_eq!(client.ip_counters().dropped(FrameDrop::IcmpQuote), 1);
        assert_eq!(client.ip_counters().dropped(FrameDrop::IcmpHeader), 1);
        client.abort(handle);
    }
}

#[test]
fn source_quench_and_redirect_are_ignored_and_counted() {
    let (mut client, handle, syn) = opening(Over::V4);
    let quoted = &syn[..28];
    let gateway = std::net::Ipv4Addr::new(10, 0, 0, 66);
    for message in
        [IcmpMessage::SourceQuench { quoted }, IcmpMessage::Redirect { code: 1, gateway, quoted }]
    {
        exchange(&mut client, Instant::ZERO, &icmp(&syn, &message));
    }
    let counters = client.ip_counters();
    assert_eq!(counters.dropped(FrameDrop::SourceQuench), 1);
    assert_eq!(counters.dropped(FrameDrop::Redirect), 1);
    assert_eq!((client.state(handle), client.soft_error(handle)), (Some(State::SynSent), None));
    client.abort(handle);
}

#[test]
fn a_hard_error_about_a_syn_ack_removes_the_half_open_entry() {
    for over in BOTH {
        let hard = if over == Over::V4 { 3 } else { 4 };
        let mut hosts = Hosts::new();
        hosts.listen(over, 8);
        let client = hosts.client.connect(server_at(over), None).expect("a free port");
        let syn = sent(&mut hosts.client).remove(0);
        let syn_ack = exchange(&mut hosts.server, hosts.now, &syn).remove(0);
        let mut other_number = syn_ack.clone();
        other_number[if over == Over::V4 { 24 } else { 44 }] ^= 1;
        exchange(&mut hosts.server, hosts.now, &unreachable(&other_number, hard));
        exchange(&mut hosts.server, hosts.now, &unreachable(&syn_ack, 0));
        assert_eq!(hosts.server.census().syn_entries, 1);
        exchange(&mut hosts.server, hosts.now, &unreachable(&syn_ack, hard));
        assert_eq!(hosts.server.census().syn_entries, 0);
        hosts.client.abort(client);
        hosts.assert_no_leaks();
    }
}

#[test]
fn narrow_path_is_found_without_timeout() {
    for (over, mtu) in [(Over::V4, 600), (Over::V4, 1_400), (Over::V6, 1_280)] {
        let mut hosts = Hosts::new();
        hosts.wire = Wire::Narrow(mtu);
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        let text: Vec<u8> = (0..100_000u32).map(|at| at as u8).collect();
        send(&mut hosts.client, client, &text);
        let mut received = Vec::new();
        for _ in 0..100 {
            hosts.run(Duration::from_millis(10));
            received.extend(drain(&mut hosts.server, server).0);
        }
        assert!(received == text, "{} bytes of {over:?}", received.len());
        let counters = hosts.client.counters();
        assert_eq!((counters.timeouts, counters.path_mtu_lowered), (0, 1));
        assert_eq!(hosts.client.path_mtu(&server_addr(over)), Some(mtu));
        assert_eq!(hosts.server.path_mtu(&client_addr(over)), None);

        // The next connection knows, from either side.
        let (second, then) = hosts.connected(over, listener);
        let before = hosts.client.counters().retrans_segs;
        send(&mut hosts.client, second, &text[..50_000]);
        hosts.run_until_quiet();
        assert!(drain(&mut hosts.server, then).0 == text[..50_000]);
        assert_eq!(hosts.client.counters().retrans_segs, before);

        hosts.run(Duration::from_secs(600));
        hosts.client.advance(hosts.now, 64);
        assert_eq!(hosts.client.path_mtu(&server_addr(over)), None);
        for (one, other) in [(client, server), (second, then)] {
            hosts.client.close(one);
            hosts.server.close(other);
        }
        hosts.assert_no_leaks();
    }
}

#[test]
fn narrow_path_is_remembered_only_after_timeout() {
    for (over, mtu) in [(Over::V4, 1_000), (Over::V6, 1_280)] {
        let mut tunables = Tunables::default();
        tunables.set_by_name("ack_every", "1").expect("it is one");
        tunables.loss_probe = false;
        let mut hosts = Hosts::with(&tunables);
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        let text = [5; 20_000];
        send(&mut hosts.client, client, &text);
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.server, server).0, text);
        for forged in [true, false] {
            send(&mut hosts.client, client, &text[..1_300]);
            let packets = sent(&mut hosts.client);
            let report = too_big(&packets[0], mtu);
            exchange(&mut hosts.client, hosts.now, &report);
            assert_eq!(hosts.client.path_mtu(&server_addr(over)), None);
            if forged {
                // It was not too big, and arrives.
                let acks = exchange(&mut hosts.server, hosts.now, &packets[0]);
                acks.iter().for_each(|ack| drop(exchange(&mut hosts.client, hosts.now, ack)));
                assert_eq!(hosts.client.counters().path_mtu_refuted, 1);
            }
            hosts.run(Duration::from_secs(1));
            let known = hosts.client.path_mtu(&server_addr(over));
            assert_eq!(known, (!forged).then_some(mtu), "{over:?}");
            assert_eq!(drain(&mut hosts.server, server).0, text[..1_300]);
        }
        assert_eq!(hosts.client.counters().path_mtu_held, 2);
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_sibling_learns_of_the_narrow_path_when_its_timer_runs_out() {
    let over = Over::V4;
    let mut hosts = Hosts::new();
    let listener = hosts.listen(over, 8);
    let (first, _) = hosts.connected(over, listener);
    let (second, then) = hosts.connected(over, listener);
    for client in [first, second] {
        send(&mut hosts.client, client, &[5; 4_000]);
    }
    // What both sent is lost, and the router speaks of the first only.
    let packets = sent(&mut hosts.client);
    let of_first = packets.iter().find(|packet| packet.len() > 1_000).expect("a full segment");
    let report = too_big(of_first, 1_000);
    hosts.wire = Wire::Narrow(1_000);
    exchange(&mut hosts.client, hosts.now, &report);
    assert_eq!(hosts.client.counters().path_mtu_lowered, 1);
    hosts.run(Duration::from_secs(1));
    assert_eq!(hosts.client.counters().path_mtu_lowered, 2);
    assert_eq!(drain(&mut hosts.server, then).0, [5; 4_000]);
    for handle in [first, second] {
        hosts.client.abort(handle);
    }
}

#[test]
fn impossible_path_mtus_are_not_believed() {
    for (over, mtus) in [
        (Over::V4, &[1_500, 9_000, u16::MAX][..]),
        (Over::V6, &[0, 68, 1_279, 1_500, 9_000, u16::MAX][..]),
    ] {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(over, 8);
        let (client, _) = hosts.connected(over, listener);
        send(&mut hosts.client, client, &[1; 1_428]);
        let full = sent(&mut hosts.client).remove(0);
        for mtu in mtus {
            exchange(&mut hosts.client, hosts.now, &too_big(&full, *mtu));
        }
        let believed = hosts.client.ip_counters().dropped(FrameDrop::PathMtu);
        assert_eq!(believed, mtus.len() as u64);
        assert_eq!(hosts.client.path_mtu(&server_addr(over)), None);
        hosts.client.abort(client);
    }
}

#[test]
fn a_path_mtu_below_the_least_is_taken_for_the_least() {
    for mtu in [1, 68, 551, 552] {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(Over::V4, 8);
        let (client, _) = hosts.connected(Over::V4, listener);
        send(&mut hosts.client, client, &[1; 1_428]);
        let full = sent(&mut hosts.client).remove(0);
        exchange(&mut hosts.client, hosts.now, &too_big(&full, mtu));
        assert_eq!(hosts.client.path_mtu(&server_addr(Over::V4)), Some(552), "{mtu}");
        hosts.client.abort(client);
    }
}

#[test]
fn path_below_552_gets_fragmentable_packets() {
    for mtu in [68, 296, 551, 552, 576] {
        let mut hosts = Hosts::new();
        hosts.wire = Wire::Narrow(mtu);
        let listener = hosts.listen(Over::V4, 8);
        let (client, server) = hosts.connected(Over::V4, listener);
        send(&mut hosts.client, client, &[7; 4_000]);
        hosts.run(Duration::from_millis(100));
        assert_eq!(drain(&mut hosts.server, server).0, [7; 4_000], "{mtu}");
        assert_eq!(hosts.client.counters().timeouts, 0, "{mtu}");
        assert_eq!(hosts.client.path_mtu(&server_addr(Over::V4)), Some(mtu.max(552)));
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

/// A client that heard of a path of so many bytes, and its connection.
fn narrowed(mtu: u16) -> (Hosts, Handle) {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, _) = hosts.connected(Over::V4, listener);
    send(&mut hosts.client, client, &[1; 4_344]);
    let full = sent(&mut hosts.client).remove(0);
    assert!(full[6] == 0x40, "Don't Fragment");
    hosts.client.rx(hosts.now, &[RxFrame::new(&too_big(&full, mtu), SegMeta::SINGLE)]);
    (hosts, client)
}

#[test]
fn fragmentable_packets_have_own_identifications() {
    let (mut hosts, client) = narrowed(551);
    let packets = sent(&mut hosts.client);
    assert!(packets.len() > 8, "{} packets", packets.len());
    let numbers: BTreeSet<[u8; 2]> = packets.iter().map(|packet| [packet[4], packet[5]]).collect();
    assert_eq!(numbers.len(), packets.len());
    for packet in &packets {
        assert!(may_be_cut(packet) && packet.len() <= 552);
        // Parsed with the header's checksum.
        tcp(packet);
    }
    hosts.client.abort(client);
}

#[test]
fn forgotten_path_gets_packets_with_dont_fragment() {
    let (mut hosts, client) = narrowed(551);
    assert!(sent(&mut hosts.client).iter().all(|packet| may_be_cut(packet)));
    hosts.client.advance(hosts.now + Duration::from_secs(599), 64);
    let again = sent(&mut hosts.client);
    assert!(!again.is_empty() && again.iter().all(|packet| may_be_cut(packet)));
    hosts.client.advance(hosts.now + Duration::from_secs(600), 64);
    hosts.client.abort(client);
    let reset = sent(&mut hosts.client);
    assert!(!reset.is_empty() && !reset.iter().any(|packet| may_be_cut(packet)));
}

#[test]
fn others_keep_dont_fragment_where_one_path_is_narrow() {
    let (mut hosts, client) = narrowed(551);
    sent(&mut hosts.client);
    let other = Endpoint::new(Address::from_v4_bytes([10, 0, 0, 9]), 80);
    let second = hosts.client.connect(other, None).expect("a free port");
    let syn = sent(&mut hosts.client).remove(0);
    assert!(!may_be_cut(&syn));
    for handle in [client, second] {
        hosts.client.abort(handle);
    }
}

#[test]
fn a_router_that_names_no_mtu_means_the_next_common_one() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, _) = hosts.connected(Over::V4, listener);
    send(&mut hosts.client, client, &[1; 1_448]);
    let full = sent(&mut hosts.client).remove(0);
    exchange(&mut hosts.client, hosts.now, &too_big(&full, 0));
    assert_eq!(hosts.client.path_mtu(&server_addr(Over::V4)), Some(1_492));
    hosts.client.abort(client);
}

#[test]
fn an_ipv6_peer_that_does_not_speak_tcp_refuses() {
    let (mut client, handle, syn) = opening(Over::V6);
    let message = Icmpv6Message::ParameterProblem { code: 1, pointer: 6, quoted: &syn };
    exchange(&mut client, Instant::ZERO, &icmpv6(&syn, &message));
    assert_eq!(events(&mut client), [Event::Closed(handle, CloseReason::Refused)]);
    client.close(handle);
}

#[test]
fn what_paths_carry_can_be_forgotten() {
    let mut hosts = Hosts::new();
    hosts.wire = Wire::Narrow(1_400);
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    send(&mut hosts.client, client, &[0; 5_000]);
    hosts.run_until_quiet();
    assert_eq!(drain(&mut hosts.server, server).0.len(), 5_000);
    assert_eq!(hosts.client.path_mtu(&server_addr(Over::V4)), Some(1_400));
    hosts.client.purge_paths();
    assert_eq!(hosts.client.path_mtu(&server_addr(Over::V4)), None);
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn hard_errors_end_no_attempt_if_they_may_not() {
    let rules = Tunables { icmp_aborts: false, ..Tunables::default() };
    for over in BOTH {
        let mut client = host(client_addr, 1, &rules);
        let handle = client.connect(server_at(over), None).expect("a free port");
        let syn = sent(&mut client).remove(0);
        let code = if over == Over::V4 { 3 } else { 4 };
        exchange(&mut client, Instant::ZERO, &unreachable(&syn, code));
        assert_eq!(client.state(handle), Some(State::SynSent));
        assert_eq!(client.soft_error(handle), Some(SoftError::Refused));
        assert_eq!(client.counters().icmp_aborts, 0);
        assert_eq!(client.take_soft_error(handle), Some(SoftError::Refused));
        assert_eq!(client.take_soft_error(handle), None);
    }
}

#[test]
fn a_connection_finds_a_narrow_path_again_that_was_forgotten() {
    for forgets in [false, true] {
        let mut hosts = Hosts::new();
        hosts.wire = Wire::Narrow(296);
        let listener = hosts.listen(Over::V4, 8);
        let (client, server) = hosts.connected(Over::V4, listener);
        // The second time larger segments were acknowledged: a time-out has to bear the report out.
        for timeouts in 0..3 {
            send(&mut hosts.client, client, &[7; 4_000]);
            hosts.run(Duration::from_secs(10));
            assert_eq!(drain(&mut hosts.server, server).0, [7; 4_000], "{forgets}");
            assert_eq!(hosts.client.counters().timeouts, timeouts, "{forgets}");
            assert_eq!(hosts.client.path_mtu(&server_addr(Over::V4)), Some(552));
            if forgets {
                hosts.client.purge_paths();
            } else {
                hosts.run(Duration::from_secs(600));
            }
        }
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}
