//! Echo requests, their replies, and what is said of those that do not arrive.

use std::time::Duration;

use whimbrel_tcp::Tunables;
use whimbrel_udp::{Fragmenting, SocketError};
use whimbrel_wire::{Address, IcmpMessage, IpHeader};

use super::hosts::{BOTH, DELAY, Hosts, Over, Wire, client_addr, config, host, server_addr};
use super::packets::{exchange, sent, unreachable};
use crate::ip::FrameDrop;
use crate::{InterfaceAddress, Ping, PingEnd, PingError, PingFailure, Pong, Shard};

fn pong(from: Address, millis: u64, size: usize) -> Pong {
    Pong { from, round_trip: Duration::from_millis(millis), hop_limit: 64, size }
}

#[test]
fn ping_reports_time_and_passes_fragments_both_ways() {
    for over in BOTH {
        for size in [0, 7, 8, 56, 8_000, 65_507] {
            let mut hosts = Hosts::new();
            let to = server_addr(over);
            let id = hosts.client.ping(&Ping { size, ..Ping::new(to.to_ip()) }).expect("room");
            hosts.run(Duration::from_millis(100));
            let end = hosts.client.poll_ping().expect("a reply");
            let expected = Ok(pong(to, 2 * DELAY.as_millis() as u64, size.into()));
            assert_eq!(end, PingEnd { id, result: expected });
            assert_eq!(hosts.client.ip_counters().echo_requests, 1);
            assert_eq!(hosts.client.ip_counters().fragmented, u64::from(size > 1_472));
            hosts.assert_no_leaks();
        }
    }
}

#[test]
fn a_host_answers_itself() {
    let v6: Address = std::net::Ipv6Addr::LOCALHOST.into();
    for to in
        [server_addr(Over::V4), server_addr(Over::V6), Address::from_v4_bytes([127, 0, 0, 1]), v6]
    {
        let mut hosts = Hosts::new();
        hosts.server.ping(&Ping { size: 8_000, ..Ping::new(to.to_ip()) }).expect("room");
        hosts.run(Duration::from_millis(10));
        let end = hosts.server.poll_ping().map(|end| end.result);
        assert_eq!(end, Some(Ok(pong(to, 0, 8_000))));
        assert_eq!(hosts.carried, 0);
    }
}

#[test]
fn ping_times_out_and_late_reply_is_dropped() {
    let mut hosts = Hosts::new();
    hosts.lose = |_| true;
    let to = server_addr(Over::V4);
    let timeout = Duration::from_millis(700);
    let id = hosts.client.ping(&Ping { timeout, ..Ping::new(to.to_ip()) }).expect("room");
    let request = sent(&mut hosts.client).pop().expect("a request");
    hosts.run(Duration::from_millis(699));
    assert_eq!(hosts.client.poll_ping(), None);
    hosts.run(Duration::from_millis(2));
    let end = PingEnd { id, result: Err(PingFailure::TimedOut(timeout)) };
    assert_eq!(hosts.client.poll_ping(), Some(end));
    let late = exchange(&mut hosts.server, hosts.now, &request).pop().expect("a reply");
    assert!(exchange(&mut hosts.client, hosts.now, &late).is_empty());
    assert_eq!(hosts.client.ip_counters().dropped(FrameDrop::IcmpType), 1);
}

#[test]
fn forged_echo_reply_is_not_believed() {
    let mut hosts = Hosts::new();
    let to = server_addr(Over::V4);
    hosts.client.ping(&Ping::new(to.to_ip())).expect("room");
    let request = sent(&mut hosts.client).pop().expect("a request");
    let reply = exchange(&mut hosts.server, hosts.now, &request).pop().expect("a reply");
    let (_, message) = IpHeader::parse(&reply).expect("an IP packet");
    let Ok(IcmpMessage::EchoReply { identifier, sequence, data }) = IcmpMessage::parse(message)
    else {
        panic!("an echo reply");
    };
    let mut other = data.to_vec();
    *other.last_mut().expect("56 bytes") ^= 1;
    let elsewhere = Address::from_v4_bytes([10, 0, 0, 77]);
    let forgeries = [
        (elsewhere, identifier, data),
        (to, identifier ^ 1, data),
        (to, identifier, &other),
        (to, identifier, &data[..55]),
    ];
    for (from, identifier, data) in forgeries {
        let mut message = vec![0; data.len() + 8];
        IcmpMessage::EchoReply { identifier, sequence, data }.emit(&mut message);
        let forged = super::packets::packet_from(
            from,
            client_addr(Over::V4),
            whimbrel_wire::Protocol::ICMP,
            &message,
        );
        exchange(&mut hosts.client, hosts.now, &forged);
        assert_eq!(hosts.client.poll_ping(), None);
    }
    exchange(&mut hosts.client, hosts.now, &reply);
    assert_eq!(hosts.client.poll_ping().map(|it| it.result), Some(Ok(pong(to, 0, 56))));
}

#[test]
fn what_the_path_says_ends_it_with_who_said_it_and_the_code() {
    for code in [0, 1, 13] {
        let mut hosts = Hosts::new();
        hosts.client.ping(&Ping::new(server_addr(Over::V4).to_ip())).expect("room");
        let request = sent(&mut hosts.client).pop().expect("a request");
        exchange(&mut hosts.client, hosts.now, &unreachable(&request, code));
        let error = match code {
            0 => SocketError::NetworkUnreachable,
            1 => SocketError::HostUnreachable,
            _ => SocketError::Prohibited,
        };
        let failure = hosts.client.poll_ping().map(|it| it.result);
        let Some(Err(PingFailure::Reported { error: said, code: by, .. })) = failure else {
            panic!("{failure:?}");
        };
        assert_eq!((said, by), (error, code));
    }
}

#[test]
fn narrow_path_fragments_ping_or_reports_its_mtu() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        hosts.wire = Wire::Narrow(1_300);
        let to = server_addr(over);
        let ping = Ping { size: 1_400, ..Ping::new(to.to_ip()) };
        hosts.client.ping(&ping).expect("room");
        hosts.run(Duration::from_millis(100));
        // The request came whole, and the answer was too large, of which its sender heard.
        let heard = hosts.server.ip_counters();
        assert_eq!((heard.reassembled, heard.echo_replies), (1, 1));
        assert_eq!(hosts.client.ip_counters().echo_requests, 2);
        assert_eq!(hosts.client.poll_ping(), None);
        // The next answer is in pieces that the path carries.
        hosts.client.ping(&ping).expect("room");
        hosts.run(Duration::from_millis(100));
        assert!(hosts.client.poll_ping().is_some_and(|it| it.result.is_ok()));
        let whole = Ping { fragmenting: Fragmenting::Refused, ..ping };
        let most = match over {
            Over::V4 => 1_300 - 28,
            Over::V6 => 1_300 - 48,
        };
        assert_eq!(hosts.client.ping(&whole), Err(PingError::TooLong { len: 1_400, most }));
        hosts.run(Duration::from_secs(2));
        while hosts.client.poll_ping().is_some() {}
    }
    let mut hosts = Hosts::new();
    hosts.wire = Wire::Narrow(1_300);
    let whole = Ping {
        size: 1_400,
        fragmenting: Fragmenting::Refused,
        ..Ping::new(server_addr(Over::V4).to_ip())
    };
    hosts.client.ping(&whole).expect("it fits the link");
    hosts.run(Duration::from_millis(100));
    let failure = hosts.client.poll_ping().map(|it| it.result);
    let too_big = SocketError::TooBig { mtu: 1_300 };
    assert!(
        matches!(failure, Some(Err(PingFailure::Reported { error, .. })) if error == too_big),
        "{failure:?}"
    );
}

#[test]
fn invalid_pings_are_refused_and_256_are_the_limit() {
    let mut client = host(client_addr, 1, &Tunables::default());
    let to = server_addr(Over::V4);
    let cases = [
        ([224, 0, 0, 1], PingError::NotAHost(Address::from_v4_bytes([224, 0, 0, 1]))),
        ([10, 0, 0, 255], PingError::NotAHost(Address::from_v4_bytes([10, 0, 0, 255]))),
        ([192, 0, 2, 1], PingError::NoRoute(Address::from_v4_bytes([192, 0, 2, 1]))),
        ([127, 0, 0, 2], PingError::NoRoute(Address::from_v4_bytes([127, 0, 0, 2]))),
    ];
    for (to, error) in cases {
        assert_eq!(client.ping(&Ping::new(Address::from_v4_bytes(to).to_ip())), Err(error));
    }
    let foreign = Ping { source: Some(to), ..Ping::new(to.to_ip()) };
    assert_eq!(client.ping(&foreign), Err(PingError::NotLocal(to)));
    let long = Ping { size: 65_508, ..Ping::new(to.to_ip()) };
    assert_eq!(client.ping(&long), Err(PingError::TooLong { len: 65_508, most: 65_507 }));
    for _ in 0..256 {
        client.ping(&Ping::new(to.to_ip())).expect("room");
    }
    let beyond = client.ping(&Ping::new(to.to_ip()));
    assert_eq!(beyond, Err(PingError::TooMany { limit: 256 }));
    // Those that are over count until their end is polled.
    sent(&mut client);
    while client.advance(client.now() + Duration::from_secs(2), 64) {}
    assert_eq!(client.ping(&Ping::new(to.to_ip())), beyond);
    assert!(client.poll_ping().is_some());
    assert!(client.ping(&Ping::new(to.to_ip())).is_ok());
}

#[test]
fn an_address_that_goes_ends_what_was_asked_from_it() {
    let mut shard = Shard::new(config(server_addr, 2, &Tunables::default())).expect("valid");
    let addr = Address::from_v4_bytes([10, 0, 0, 7]);
    shard.add_address(InterfaceAddress { addr, prefix_len: 24 }).expect("it is free");
    let ping = Ping { source: Some(addr), ..Ping::new(client_addr(Over::V4).to_ip()) };
    let id = shard.ping(&ping).expect("room");
    shard.remove_address(&addr).expect("it was added");
    assert!(sent(&mut shard).is_empty());
    let end = PingEnd { id, result: Err(PingFailure::AddressRemoved) };
    assert_eq!(shard.poll_ping(), Some(end));
}
