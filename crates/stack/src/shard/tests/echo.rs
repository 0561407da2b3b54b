//! ICMP echo.

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_wire::{IcmpMessage, Icmpv6Message, IpHeader, Protocol};

use super::hosts::{Over, client_addr, host, server_addr};
use super::packets::{exchange, fix_checksum, packet, too_big};
use crate::ip::FrameDrop;
use crate::{RxFrame, TxBatch};
use whimbrel_tcp::Tunables;

#[test]
fn echo_requests_are_answered_over_both_families() {
    let data = [7; 56];
    let mut message = [0; 64];
    IcmpMessage::EchoRequest { identifier: 5, sequence: 9, data: &data }.emit(&mut message);
    let reply = answer(Over::V4, Protocol::ICMP, &message);
    let (ip, payload) = IpHeader::parse(&reply).expect("an IP packet");
    assert_eq!((ip.src, ip.dst), (server_addr(Over::V4), client_addr(Over::V4)));
    let expected = IcmpMessage::EchoReply { identifier: 5, sequence: 9, data: &data };
    assert_eq!(IcmpMessage::parse(payload), Ok(expected));

    let v6 = |addr: whimbrel_wire::Address| std::net::Ipv6Addr::from(*addr.as_bytes());
    let (here, there) = (v6(client_addr(Over::V6)), v6(server_addr(Over::V6)));
    Icmpv6Message::EchoRequest { identifier: 5, sequence: 9, data: &data }.emit(
        here,
        there,
        &mut message,
    );
    let reply = answer(Over::V6, Protocol::ICMPV6, &message);
    let (_, payload) = IpHeader::parse(&reply).expect("an IP packet");
    let expected = Icmpv6Message::EchoReply { identifier: 5, sequence: 9, data: &data };
    assert_eq!(Icmpv6Message::parse(there, here, payload), Ok(expected));
}

fn answer(over: Over, protocol: Protocol, message: &[u8]) -> Vec<u8> {
    let mut server = host(server_addr, 2, &Tunables::default());
    let request = packet(over, protocol, message);
    server.rx(Instant::ZERO, &[RxFrame::new(&request, SegMeta::SINGLE)]);
    let mut batch = TxBatch::new(4);
    assert!(!server.tx(&mut batch));
    assert_eq!(batch.pending().len(), 1);
    batch.pending()[0].to_vec()
}

#[test]
fn what_is_said_of_echo_replies_holds_for_icmp_alone() {
    let mut server = host(server_addr, 2, &Tunables::default());
    let client = client_addr(Over::V4);
    let mut message = [0; 1_400];
    IcmpMessage::EchoRequest { identifier: 5, sequence: 9, data: &[7; 1_392] }.emit(&mut message);
    let request = packet(Over::V4, Protocol::ICMP, &message);
    let before = server.udp_whole(&client);
    let [reply] = exchange(&mut server, Instant::ZERO, &request).try_into().expect("one reply");
    assert!(exchange(&mut server, Instant::ZERO, &too_big(&reply, 1_300)).is_empty());
    let pieces = exchange(&mut server, Instant::ZERO, &request);
    assert_eq!(pieces.iter().map(Vec::len).max(), Some(1_300), "{} pieces", pieces.len());
    assert_eq!(server.udp_whole(&client), before, "no port was needed to say so");
    assert_eq!(server.path_mtu(&client), None);
}

#[test]
fn a_time_to_live_that_ran_out_here_does_no_harm() {
    // RFC 1122 3.2.1.7: it is the gateways' to look at.
    let mut message = [0; 64];
    IcmpMessage::EchoRequest { identifier: 5, sequence: 9, data: &[7; 56] }.emit(&mut message);
    for ttl in [0, 1] {
        let mut server = host(server_addr, 2, &Tunables::default());
        let mut request = packet(Over::V4, Protocol::ICMP, &message);
        request[8] = ttl;
        fix_checksum(&mut request);
        assert_eq!(exchange(&mut server, Instant::ZERO, &request).len(), 1, "{ttl}");
    }
}

#[test]
fn a_corrupted_echo_request_is_dropped_and_counted() {
    let mut message = [0; 64];
    IcmpMessage::EchoRequest { identifier: 5, sequence: 9, data: &[7; 56] }.emit(&mut message);
    message[20] ^= 1;
    let mut server = host(server_addr, 2, &Tunables::default());
    let request = packet(Over::V4, Protocol::ICMP, &message);
    server.rx(Instant::ZERO, &[RxFrame::new(&request, SegMeta::SINGLE)]);
    assert_eq!(server.census().replies, 0);
    assert_eq!(server.ip_counters().dropped(FrameDrop::IcmpHeader), 1);
}

#[test]
fn echo_replies_wait_in_a_bounded_queue() {
    let mut message = [0; 64];
    IcmpMessage::EchoRequest { identifier: 5, sequence: 9, data: &[7; 56] }.emit(&mut message);
    let request = packet(Over::V4, Protocol::ICMP, &message);
    let mut server = host(server_addr, 2, &Tunables::default());
    for _ in 0..2_000 {
        server.rx(Instant::ZERO, &[RxFrame::new(&request, SegMeta::SINGLE)]);
    }
    assert_eq!(server.census().replies, 768);
    let counters = server.ip_counters();
    assert_eq!((counters.in_receives, counters.in_delivers), (2_000, 768));
    assert_eq!(counters.dropped(FrameDrop::ReplyLimit), 1_232);
}

#[test]
fn large_echo_replies_wait_within_a_bound_of_bytes() {
    let mut message = vec![0; 60_008];
    IcmpMessage::EchoRequest { identifier: 5, sequence: 9, data: &[7; 60_000] }.emit(&mut message);
    let request = packet(Over::V4, Protocol::ICMP, &message);
    let mut server = host(server_addr, 2, &Tunables::default());
    for _ in 0..100 {
        server.rx(Instant::ZERO, &[RxFrame::new(&request, SegMeta::SINGLE)]);
    }
    assert_eq!(server.census().replies, 17, "1 MiB");
    assert_eq!(server.ip_counters().dropped(FrameDrop::ReplyLimit), 83);
    // Whatever left is room again.
    let mut batch = TxBatch::new(16);
    while server.tx(&mut batch) || !batch.is_empty() {
        batch.consume(16);
    }
    server.rx(Instant::ZERO, &[RxFrame::new(&request, SegMeta::SINGLE)]);
    assert_eq!(server.census().replies, 1);
}
