//! Datagrams for any destination: their receiver answers from where they were for.

use std::time::Duration;
use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::RouteMetrics;
use whimbrel_udp::{Bind, BindError, DatagramError, Local, SocketError};
use whimbrel_wire::{Address, Endpoint, IpHeader, Ipv4Header, Protocol, UdpHeader};

use super::hosts::{BOTH, Hosts, Over, client_addr, config, host, server_addr};
use super::packets::{exchange, packet_from, sent, too_big};
use crate::ip::{FrameDrop, Unreachable};
use crate::{Event, Route, SendTo, Shard, UdpError, UdpHandle};

/// Returns an endpoint at which nothing is.
fn elsewhere(over: Over, number: u8) -> Endpoint {
    let addr = match over {
        Over::V4 => Address::from_v4_bytes([203, 0, 113, number]),
        Over::V6 => {
            Address::from(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number.into()))
        }
    };
    Endpoint::new(addr, 53)
}

/// A client with routes to everywhere, and a server that speaks for everybody.
fn hosts() -> Hosts {
    let tunables = Tunables::default();
    let mut client = config(client_addr, 1, &tunables);
    client.routes = ["0.0.0.0", "::"].map(default_route).into();
    let mut server = host(server_addr, 2, &tunables);
    server.take_any_address();
    Hosts::of(Shard::new(client).expect("valid"), server)
}

fn default_route(network: &str) -> Route {
    let network = network.parse::<std::net::IpAddr>().expect("an address").into();
    Route { network, prefix_len: 0, gateway: None, metric: 0, metrics: RouteMetrics::default() }
}

/// A socket of the client's that is connected to there.
fn connected(hosts: &mut Hosts, to: Endpoint) -> UdpHandle {
    let client = hosts.client.udp_bind(&Bind::new(Local::Both, 0)).expect("a free port");
    hosts.client.udp_connect(client, to).expect("a peer");
    client
}

fn say(shard: &mut Shard, socket: UdpHandle, data: &[u8]) {
    let data = Bytes::copy_from_slice(data);
    shard.udp_send(socket, data, &SendTo::CONNECTED).expect("sent");
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at >> 3) as u8).collect()
}

#[test]
fn datagram_for_any_is_answered_from_its_destination() {
    for over in BOTH {
        let mut hosts = hosts();
        let any = hosts.server.udp_bind_any().expect("the only listener");
        for number in 7..10 {
            let to = elsewhere(over, number);
            let client = connected(&mut hosts, to);
            for len in [0, 5, 1_400, 9_000] {
                say(&mut hosts.client, client, &text(len));
                hosts.run_until_quiet();
                assert_eq!(hosts.server.poll_event(), Some(Event::Udp(any)));
                let query = hosts.server.udp_recv(any).expect("received");
                let from = hosts.client.udp().local(client).expect("bound");
                assert_eq!((query.from, query.to), (from, to));
                assert!(query.data[..] == text(len)[..], "{len}");
                let answer = SendTo::answer(&query);
                hosts.server.udp_send(any, query.data.clone(), &answer).expect("sent");
                hosts.run_until_quiet();
                let answered = hosts.client.udp_recv(client).expect("it is from whom was asked");
                assert_eq!((answered.from, answered.data.len()), (to, len));
            }
            assert!(hosts.client.udp_close(client));
        }
        assert_eq!(hosts.server.census().other_addresses, 0, "datagrams need no numbers");
        assert!(hosts.server.udp_close(any));
        hosts.server.check_invariants().expect("what must hold");
        hosts.assert_no_leaks();
    }
}

#[test]
fn what_has_a_socket_is_its_and_only_the_rest_is_for_any() {
    let mut hosts = hosts();
    let any = hosts.server.udp_bind_any().expect("the only listener");
    let own = hosts.server.udp_bind(&Bind::new(Local::Both, 53)).expect("free");
    let at = |port| Endpoint::new(server_addr(Over::V4), port);
    for (port, taker) in [(53, own), (54, any)] {
        let client = connected(&mut hosts, at(port));
        say(&mut hosts.client, client, b"?");
        hosts.run_until_quiet();
        assert_eq!(hosts.server.udp_recv(taker).expect("received").to, at(port));
        assert!(hosts.server.udp_recv(own).or(hosts.server.udp_recv(any)).is_none());
    }
    // An unspecified address stands for the host's own: its socket hears nothing of others'.
    let client = connected(&mut hosts, elsewhere(Over::V4, 7));
    say(&mut hosts.client, client, b"?");
    hosts.run_until_quiet();
    assert!(hosts.server.udp_recv(own).is_none());
    assert!(hosts.server.udp_recv(any).is_some());
}

#[test]
fn untaken_datagram_for_any_gets_error_from_destination() {
    for over in BOTH {
        let mut hosts = hosts();
        let to = elsewhere(over, 7);
        let client = connected(&mut hosts, to);
        say(&mut hosts.client, client, b"?");
        hosts.run_until_quiet();
        assert_eq!(hosts.client.udp_take_error(client), Some(SocketError::PortUnreachable));
        assert_eq!(hosts.server.udp().counters.no_ports, 1);
        // The socket for any destination was here, and went.
        let any = hosts.server.udp_bind_any().expect("the only listener");
        assert!(hosts.server.udp_close(any));
        say(&mut hosts.client, client, b"?");
        hosts.run_until_quiet();
        assert_eq!(hosts.client.udp_take_error(client), Some(SocketError::PortUnreachable));
        assert_eq!(hosts.server.census().other_addresses, 0);
    }
    // The error itself is from there, as that host's own would be.
    let mut server = host(server_addr, 2, &Tunables::default());
    server.take_any_address();
    let query = query(client_addr(Over::V4), elsewhere(Over::V4, 9));
    let [error] = exchange(&mut server, Instant::ZERO, &query).try_into().expect("one answer");
    let (ip, _) = IpHeader::parse(&error).expect("a packet");
    assert_eq!((ip.src, ip.protocol), (elsewhere(Over::V4, 9).addr, Protocol::ICMP));
}

/// A datagram in a packet.
fn query(from: Address, to: Endpoint) -> Vec<u8> {
    let mut bytes = vec![0; UdpHeader::LEN + 3];
    let header = UdpHeader { src_port: 4_000, dst_port: to.port };
    header.emit_datagram(from, to.addr, b"???", &mut bytes);
    packet_from(from, to.addr, Protocol::UDP, &bytes)
}

#[test]
fn a_refusal_tells_the_sender_what_was_said() {
    let said = [
        (Unreachable::Port, SocketError::PortUnreachable),
        (Unreachable::Host, SocketError::HostUnreachable),
        (Unreachable::Network, SocketError::NetworkUnreachable),
        (Unreachable::Prohibited, SocketError::Prohibited),
        (Unreachable::HopLimit, SocketError::TimeExceeded),
    ];
    for (over, (what, heard)) in BOTH.into_iter().flat_map(|over| said.map(|it| (over, it))) {
        let mut hosts = hosts();
        let any = hosts.server.udp_bind_any().expect("the only listener");
        let client = connected(&mut hosts, elsewhere(over, 7));
        for len in [0, 3_000] {
            say(&mut hosts.client, client, &text(len));
            hosts.run_until_quiet();
            let query = hosts.server.udp_recv(any).expect("received");
            hosts.server.udp_refuse(&query, what);
            hosts.run_until_quiet();
            assert_eq!(hosts.client.udp_take_error(client), Some(heard), "{what:?} {len}");
        }
        assert_eq!(hosts.server.census().other_addresses, 0);
        assert!(hosts.client.udp_close(client) && hosts.server.udp_close(any));
        hosts.assert_no_leaks();
    }
}

#[test]
fn gateway_passes_on_errors_in_the_name_of_their_router() {
    for over in BOTH {
        let mut hosts = hosts();
        let any = hosts.server.udp_bind_any().expect("the only listener");
        let router = elsewhere(over, 1).addr;
        let client = hosts.client.udp_bind(&Bind::new(Local::Both, 0)).expect("a free port");
        hosts.client.udp_keep_errors(client);
        let to = elsewhere(over, 7);
        let send = SendTo::peer(to);
        hosts.client.udp_send(client, Bytes::from_static(b"?"), &send).expect("room");
        hosts.run_until_quiet();
        let query = hosts.server.udp_recv(any).expect("received");
        hosts.server.udp_refuse_as(&query, Unreachable::HopLimit, router);
        hosts.run_until_quiet();
        let told = DatagramError::new(to, router, SocketError::TimeExceeded);
        assert_eq!(hosts.client.udp_take_report(client), Some(told));
        // One that no packet may come from: the host speaks for itself.
        let broadcast = Address::from_v4_bytes([255; 4]);
        hosts.server.udp_refuse_as(&query, Unreachable::Host, broadcast);
        hosts.run_until_quiet();
        let told = DatagramError::new(to, server_addr(over), SocketError::HostUnreachable);
        assert_eq!(hosts.client.udp_take_report(client), Some(told));
        assert_eq!(hosts.server.census().other_addresses, 0);
        assert!(hosts.client.udp_close(client) && hosts.server.udp_close(any));
        hosts.assert_no_leaks();
    }
}

#[test]
fn refusals_count_against_what_a_host_may_send_of_errors() {
    let mut hosts = hosts();
    let any = hosts.server.udp_bind_any().expect("the only listener");
    let client = connected(&mut hosts, elsewhere(Over::V4, 7));
    say(&mut hosts.client, client, b"?");
    hosts.run_until_quiet();
    let query = hosts.server.udp_recv(any).expect("received");
    for _ in 0..5_000 {
        hosts.server.udp_refuse(&query, Unreachable::Port);
    }
    let counters = hosts.server.ip_counters();
    assert!(counters.icmp_errors_limited >= 3_900, "{}", counters.icmp_errors_limited);
    assert!(hosts.server.census().replies <= 1_024);
    hosts.run_until_quiet();
    assert_eq!(hosts.server.census().other_addresses, 0);
}

#[test]
fn only_socket_for_any_sends_from_foreign_addresses() {
    let mut hosts = hosts();
    let any = hosts.server.udp_bind_any().expect("the only listener");
    assert_eq!(hosts.server.udp_bind_any(), Err(UdpError::Bind(BindError::AnyInUse)));
    let to = Endpoint::new(client_addr(Over::V4), 4_000);
    let refused = hosts.server.udp_connect(any, to);
    assert_eq!(refused, Err(UdpError::Bind(BindError::AnyPeers)));
    let mut from = |socket, source: Option<Address>, source_port| {
        let send = SendTo { source, source_port, ..SendTo::peer(to) };
        hosts.server.udp_send(socket, Bytes::new(), &send)
    };
    let other = elsewhere(Over::V4, 7).addr;
    for absent in [[255; 4], [224, 0, 0, 1], [127, 0, 0, 1], [0; 4], [10, 0, 0, 255]] {
        let absent = Address::from_v4_bytes(absent);
        assert_eq!(from(any, Some(absent), Some(53)), Err(UdpError::NotLocal(absent)));
    }
    assert_eq!(from(any, Some(other), None), Err(UdpError::NoSourcePort));
    assert_eq!(from(any, Some(other), Some(0)), Err(UdpError::NoSourcePort));
    assert_eq!(from(any, Some(other), Some(53)), Ok(()));
    assert_eq!(from(any, None, Some(53)), Ok(()), "by the route");
    let own = hosts.server.udp_bind(&Bind::new(Local::Both, 53)).expect("free");
    let send = SendTo { source: Some(other), ..SendTo::peer(to) };
    let refused = hosts.server.udp_send(own, Bytes::new(), &send);
    assert_eq!(refused, Err(UdpError::NotLocal(other)));
    let send = SendTo { source_port: Some(54), ..SendTo::peer(to) };
    let refused = hosts.server.udp_send(own, Bytes::new(), &send);
    assert_eq!(refused, Err(UdpError::NotItsPort { wish: 54, own: 53 }));
    // A host that speaks for itself alone.
    let any = hosts.client.udp_bind_any().expect("the only listener");
    let to = Endpoint::new(server_addr(Over::V4), 4_000);
    let send = SendTo { source: Some(other), source_port: Some(53), ..SendTo::peer(to) };
    assert_eq!(hosts.client.udp_send(any, Bytes::new(), &send), Err(UdpError::NotLocal(other)));
}

#[test]
fn groups_and_whole_networks_are_nobodys_destination() {
    let mut server = host(server_addr, 2, &Tunables::default());
    server.take_any_address();
    let any = server.udp_bind_any().expect("the only listener");
    for group in [[255; 4], [224, 0, 0, 251], [10, 0, 0, 255], [127, 0, 0, 1]] {
        let to = Endpoint::new(Address::from_v4_bytes(group), 53);
        let answers = exchange(&mut server, Instant::ZERO, &query(client_addr(Over::V4), to));
        assert!(answers.is_empty(), "{group:?}");
    }
    assert!(server.udp_recv(any).is_none());
    assert_eq!(server.ip_counters().dropped(FrameDrop::UdpGroup), 3);
}

#[test]
fn too_big_answer_for_foreign_address_reports_path_mtu() {
    let mut hosts = hosts();
    let any = hosts.server.udp_bind_any().expect("the only listener");
    let from = elsewhere(Over::V4, 7);
    let to = Endpoint::new(client_addr(Over::V4), 4_000);
    let (source, source_port) = (Some(from.addr), Some(from.port));
    let send = SendTo { source, source_port, ..SendTo::peer(to) };
    hosts.server.udp_send(any, Bytes::from(text(1_400)), &send).expect("sent");
    let [answer] = sent(&mut hosts.server).try_into().expect("whole");
    let error = too_big(&answer, 600);
    let error =
        packet_from(client_addr(Over::V4), from.addr, Protocol::ICMP, &error[Ipv4Header::LEN..]);
    exchange(&mut hosts.server, Instant::ZERO, &error);
    assert_eq!(hosts.server.udp_whole(&to.addr), 600 - 28);
    hosts.server.udp_send(any, Bytes::from(text(1_400)), &send).expect("sent");
    let packets = sent(&mut hosts.server);
    assert_eq!(packets.len(), 3, "in fragments");
}

#[test]
fn refusal_of_packet_too_big_narrows_path_of_its_sender() {
    for (over, mtu, header) in [(Over::V4, 700, 28), (Over::V6, 1_300, 48)] {
        let mut hosts = hosts();
        let any = hosts.server.udp_bind_any().expect("the only listener");
        let to = elsewhere(over, 7);
        let client = connected(&mut hosts, to);
        say(&mut hosts.client, client, &text(1_400));
        hosts.run_until_quiet();
        let query = hosts.server.udp_recv(any).expect("received");
        assert!(hosts.client.udp_whole(&to.addr) > 1_400);
        hosts.server.udp_refuse(&query, Unreachable::TooBig { mtu });
        let [error] = sent(&mut hosts.server).try_into().expect("one error");
        let (ip, message) = IpHeader::parse(&error).expect("a packet");
        assert_eq!(ip.src, server_addr(over), "as of a router");
        let (kind, code) = if over == Over::V4 { (3, 4) } else { (2, 0) };
        assert_eq!(message[..2], [kind, code]);
        assert_eq!(message[4..8], u32::from(mtu).to_be_bytes());
        exchange(&mut hosts.client, hosts.now, &error);
        assert_eq!(hosts.client.udp_whole(&to.addr), usize::from(mtu) - header);
        assert!(hosts.client.udp_close(client) && hosts.server.udp_close(any));
    }
}

#[test]
fn datagram_tells_whether_it_may_be_cut() {
    let mut server = host(server_addr, 2, &Tunables::default());
    server.take_any_address();
    let any = server.udp_bind_any().expect("the only listener");
    let whole = query(client_addr(Over::V4), elsewhere(Over::V4, 7));
    for dont_fragment in [true, false] {
        let (header, payload) = Ipv4Header::parse(&whole).expect("a packet");
        let mut packet = vec![0; Ipv4Header::LEN];
        Ipv4Header { dont_fragment, ..header }.emit(&mut packet);
        packet.extend_from_slice(payload);
        exchange(&mut server, Instant::ZERO, &packet);
        assert_eq!(server.udp_recv(any).expect("received").dont_fragment, dont_fragment);
    }
    let over_v6 = query(client_addr(Over::V6), elsewhere(Over::V6, 7));
    exchange(&mut server, Instant::ZERO, &over_v6);
    assert!(server.udp_recv(any).expect("received").dont_fragment);
    assert!(server.udp_close(any));
}

#[test]
fn what_nobody_reads_is_bounded_whoever_it_is_for() {
    let mut server = host(server_addr, 2, &Tunables::default());
    server.take_any_address();
    let any = server.udp_bind_any().expect("the only listener");
    for number in 0..20_000_u32 {
        let addr = Address::from_v4_bytes((0xcb00_0000 + number).to_be_bytes());
        let query = query(client_addr(Over::V4), Endpoint::new(addr, number as u16 | 1));
        let now = Instant::ZERO + Duration::from_micros(u64::from(number));
        assert!(exchange(&mut server, now, &query).is_empty());
    }
    let counters = &server.udp().counters;
    assert_eq!(counters.in_datagrams + counters.rcvbuf_errors, 20_000);
    assert!(server.udp().held() <= 212_992 + 768, "{} bytes", server.udp().held());
    assert_eq!(server.census().other_addresses, 0);
    assert!(server.udp_close(any));
    assert_eq!(server.udp().held(), 0);
}
