//! Addresses and routes come and go while a host runs.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_tcp::conn::State;
use whimbrel_tcp::{CloseReason, Tunables};
use whimbrel_udp::{Bind, Local};
use whimbrel_wire::{Address, Endpoint};

use super::hosts::{
    BOTH, Hosts, Over, client_addr, config, drain, events, send, server_addr, server_at,
};
use super::packets::sent;
use crate::shard::{AddressError, ConfigError, ConnectError, RouteError};
use crate::{Event, InterfaceAddress, Route, RouteMetrics, SendTo, Shard, UdpError};

/// Another address in the server's network.
fn second(over: Over) -> InterfaceAddress {
    match over {
        Over::V4 => own([10, 0, 0, 7].into(), 24),
        Over::V6 => own(std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7).into(), 64),
    }
}

fn own(addr: std::net::IpAddr, prefix_len: u8) -> InterfaceAddress {
    InterfaceAddress { addr: addr.into(), prefix_len }
}

fn everywhere(over: Over) -> Endpoint {
    match over {
        Over::V4 => Endpoint::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 80),
        Over::V6 => Endpoint::new(std::net::Ipv6Addr::UNSPECIFIED.into(), 80),
    }
}

fn route(network: Address, prefix_len: u8, gateway: Option<Address>) -> Route {
    Route { network, prefix_len, gateway, metric: 0, metrics: RouteMetrics::default() }
}

#[test]
fn added_address_accepts_connects_and_receives_datagrams() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let added = second(over);
        let at = Endpoint::new(added.addr, 80);
        let listener = hosts.server.listen(everywhere(over), 4).expect("the port is free");
        let early = hosts.client.connect(at, None).expect("a free port");
        hosts.run_until_quiet();
        assert_eq!(hosts.client.state(early), Some(State::SynSent), "no listener is there yet");
        hosts.server.add_address(added).expect("it is free");
        hosts.run(Duration::from_secs(2));
        assert_eq!(hosts.client.state(early), Some(State::Established));
        let server = hosts.server.accept(listener).expect("a complete connection");
        assert_eq!(hosts.server.flow(server).map(|flow| flow.local), Some(at));
        // From it, too.
        let back = Endpoint::new(client_addr(over), 81);
        let there = hosts.client.listen(back, 4).expect("the port is free");
        let from = Endpoint::new(added.addr, 0);
        let out = hosts.server.connect(back, Some(from)).expect("an address of this host");
        let socket = hosts.server.udp_bind(&Bind::new(Local::Address(added.addr), 53));
        let asks = hosts.client.udp_bind(&Bind::new(Local::Both, 0)).expect("free");
        let to = SendTo::peer(Endpoint::new(added.addr, 53));
        hosts.client.udp_send(asks, Bytes::from_static(b"?"), &to).expect("room");
        hosts.run_until_quiet();
        let accepted = hosts.client.accept(there).expect("a complete connection");
        assert_eq!(hosts.client.flow(accepted).map(|it| it.remote.addr), Some(added.addr));
        assert!(hosts.server.udp_recv(socket.expect("an address of this host")).is_some());
        for handle in [early, accepted] {
            hosts.client.close(handle);
        }
        for handle in [server, out] {
            hosts.server.close(handle);
        }
        hosts.run(Duration::from_secs(200));
    }
}

#[test]
fn listener_does_not_serve_next_address_of_its_number() {
    let mut hosts = Hosts::new();
    let (before, after) = (second(Over::V4), own([10, 0, 0, 8].into(), 24));
    hosts.server.add_address(before).expect("it is free");
    let at = |address: InterfaceAddress| Endpoint::new(address.addr, 80);
    let listener = hosts.server.listen(at(before), 4).expect("the port is free");
    let client = hosts.client.connect(at(before), None).expect("a free port");
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("a complete connection");
    hosts.server.abort(server);
    hosts.client.abort(client);
    hosts.run_until_quiet();
    hosts.server.remove_address(&before.addr).expect("it was added");
    hosts.server.add_address(after).expect("it is free");
    let refused = hosts.client.connect(at(after), None).expect("a free port");
    hosts.run_until_quiet();
    assert_eq!(hosts.client.state(refused), Some(State::Closed), "no listener is there");
}

#[test]
fn a_socket_that_sent_there_before_hears_that_its_way_is_gone() {
    let mut hosts = Hosts::new();
    let client = &mut hosts.client;
    let socket = client.udp_bind(&Bind::new(Local::Both, 0)).expect("free");
    let peer = Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), 53);
    let sends =
        |client: &mut Shard| client.udp_send(socket, Bytes::from_static(b"?"), &SendTo::peer(peer));
    assert_eq!(sends(client), Err(UdpError::NoRoute(peer)));
    let way = route(Address::from_v4_bytes([192, 0, 2, 0]), 24, None);
    client.add_route(way).expect("there is none");
    assert_eq!([sends(client), sends(client)], [Ok(()), Ok(())]);
    client.remove_route(&way).expect("it was added");
    assert_eq!(sends(client), Err(UdpError::NoRoute(peer)));
    // An address in that network brings a route to it, and takes it away again.
    client.add_address(own([192, 0, 2, 9].into(), 24)).expect("it is free");
    assert_eq!(sends(client), Ok(()));
    client.remove_address(&Address::from_v4_bytes([192, 0, 2, 9])).expect("it was added");
    assert_eq!(sends(client), Err(UdpError::NoRoute(peer)));
}

#[test]
fn what_hangs_on_an_address_ends_with_it_and_no_segment_tells() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let added = second(over);
        hosts.server.add_address(added).expect("it is free");
        let at = Endpoint::new(added.addr, 80);
        let bound = hosts.server.listen(at, 4).expect("the port is free");
        let others = hosts.listen(over, 4);
        let stays = hosts.connected(over, others);
        // One that is open, one whose third segment is on its way, one in TIME-WAIT.
        let open = hosts.client.connect(at, None).expect("a free port");
        hosts.run_until_quiet();
        let server = hosts.server.accept(bound).expect("a complete connection");
        let waits = hosts.client.connect(at, None).expect("a free port");
        hosts.run_until_quiet();
        let ended = hosts.server.accept(bound).expect("a complete connection");
        hosts.server.close(ended);
        hosts.client.close(waits);
        hosts.run_until_quiet();
        hosts.lose = |_| true;
        let half = hosts.client.connect(at, None).expect("a free port");
        let syn = sent(&mut hosts.client).pop().expect("a SYN");
        assert_eq!(super::packets::exchange(&mut hosts.server, hosts.now, &syn).len(), 1);
        let census = hosts.server.census();
        assert_eq!((census.connections, census.syn_entries, census.time_wait), (2, 1, 1));
        send(&mut hosts.server, server, b"this does not leave");
        while hosts.server.poll_event().is_some() {}

        hosts.server.remove_address(&added.addr).expect("it was added");
        assert!(sent(&mut hosts.server).is_empty(), "an invalid address sends nothing");
        let census = hosts.server.census();
        assert_eq!((census.connections, census.syn_entries, census.time_wait), (2, 0, 0));
        assert_eq!(events(&mut hosts.server), [Event::Closed(server, CloseReason::Aborted)]);
        hosts.server.close(server);
        hosts.server.check_invariants().expect("what must hold");
        // It is not there any more, and the others are as they were.
        hosts.lose = |_| false;
        send(&mut hosts.client, stays.0, b"still here");
        hosts.run(Duration::from_secs(3));
        assert_eq!(drain(&mut hosts.server, stays.1).0, b"still here");
        assert_eq!(hosts.client.state(half), Some(State::SynSent));
        let refused = hosts.server.connect(server_at(over), Some(at));
        assert_eq!(refused, Err(ConnectError::NotLocal(at)));
        // The listener stayed, and hears when the address comes back.
        hosts.server.add_address(added).expect("it is free");
        hosts.run(Duration::from_secs(8));
        let again = hosts.server.accept(bound).expect("a complete connection");
        for handle in [open, half, stays.0] {
            hosts.client.abort(handle);
        }
        for handle in [again, stays.1] {
            hosts.server.abort(handle);
        }
        hosts.run(Duration::from_secs(200));
    }
}

#[test]
fn closed_but_held_connection_keeps_number_of_its_address() {
    let mut hosts = Hosts::new();
    let (one, other) = (second(Over::V4), own([10, 0, 0, 8].into(), 24));
    hosts.server.add_address(one).expect("it is free");
    let at = Endpoint::new(one.addr, 80);
    let listener = hosts.server.listen(at, 4).expect("the port is free");
    let client = hosts.client.connect(at, None).expect("a free port");
    hosts.run_until_quiet();
    let held = hosts.server.accept(listener).expect("a complete connection");
    hosts.server.remove_address(&one.addr).expect("it was added");
    hosts.server.add_address(other).expect("it is free");
    assert_eq!(hosts.server.flow(held), None, "not a flow of 10.0.0.8");
    hosts.server.close(held);
    hosts.client.abort(client);
    hosts.run(Duration::from_secs(1));
}

#[test]
fn a_host_without_an_address_is_silent_until_it_has_another() {
    let mut hosts = Hosts::new();
    for over in BOTH {
        hosts.server.remove_address(&server_addr(over)).expect("it has it");
    }
    let listener = hosts.server.listen(everywhere(Over::V4), 4).expect("the port is free");
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run(Duration::from_secs(1));
    let nowhere = hosts.server.connect(Endpoint::new(client_addr(Over::V4), 9), None);
    assert!(matches!(nowhere, Err(ConnectError::NoRoute(_))), "{nowhere:?}");
    hosts.server.add_address(own([10, 0, 0, 2].into(), 24)).expect("it is free");
    hosts.run(Duration::from_secs(3));
    let server = hosts.server.accept(listener).expect("a complete connection");
    hosts.client.abort(client);
    hosts.server.abort(server);
    hosts.run(Duration::from_secs(1));
}

#[test]
fn what_cannot_be_added_or_removed_is_said_by_name() {
    let mut shard = Shard::new(config(server_addr, 2, &Tunables::default())).expect("valid");
    let addr = |text: &str| Address::from(text.parse::<std::net::IpAddr>().expect("an address"));
    let add = |shard: &mut Shard, text, prefix_len| {
        shard.add_address(InterfaceAddress { addr: addr(text), prefix_len })
    };
    let exists = Err(AddressError::Exists(addr("10.0.0.2")));
    assert_eq!(add(&mut shard, "10.0.0.2", 24), exists);
    let loopback = Err(AddressError::Loopback(addr("127.0.0.5")));
    assert_eq!(add(&mut shard, "127.0.0.5", 8), loopback);
    let group = Err(ConfigError::NotAHost(addr("ff02::1")).into());
    assert_eq!(add(&mut shard, "ff02::1", 64), group);
    let long = Err(ConfigError::PrefixLength { len: 33, bits: 32 }.into());
    assert_eq!(add(&mut shard, "10.0.0.9", 33), long);
    let unknown = addr("10.0.0.99");
    assert_eq!(shard.remove_address(&unknown), Err(AddressError::Unknown(unknown)));
    let mut narrow = config(server_addr, 2, &Tunables::default());
    narrow.capabilities.mtu = 576;
    narrow.addresses.truncate(1);
    let mut narrow = Shard::new(narrow).expect("valid");
    let mtu = Err(ConfigError::Mtu { mtu: 576, least: 1_280 }.into());
    assert_eq!(add(&mut narrow, "fd00::9", 64), mtu);

    let far = addr("192.0.2.0");
    let away = route(far, 24, Some(addr("10.9.0.1")));
    assert_eq!(shard.add_route(away), Err(RouteError::Gateway(addr("10.9.0.1"))));
    let itself = route(far, 24, Some(addr("10.0.0.2")));
    assert_eq!(shard.add_route(itself), Err(RouteError::Gateway(addr("10.0.0.2"))));
    let other = route(far, 24, Some(addr("fe80::1")));
    assert_eq!(shard.add_route(other), Err(RouteError::NotANetwork(far)));
    let over = route(far, 24, Some(addr("10.0.0.1")));
    let unknown = RouteError::Unknown { network: far, prefix_len: 24 };
    assert_eq!(shard.remove_route(&over), Err(unknown));
    assert_eq!(shard.add_route(over), Ok(()));
    let again = RouteError::Exists { network: far, prefix_len: 24 };
    assert_eq!(shard.add_route(Route { metric: 9, ..over }), Err(again));
    let implied = route(addr("10.0.0.0"), 24, None);
    let kept = RouteError::Unknown { network: addr("10.0.0.0"), prefix_len: 24 };
    assert_eq!(shard.remove_route(&implied), Err(kept));
    assert!(matches!(shard.check_address(far), Ok(Some(it)) if it.conflict.is_none()));
}

#[test]
fn a_route_that_goes_stops_its_connections_until_it_comes_back() {
    for over in BOTH {
        let far = match over {
            Over::V4 => Address::from_v4_bytes([192, 0, 2, 1]),
            Over::V6 => std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
        };
        let mut hosts = Hosts::new();
        hosts.server.add_address(InterfaceAddress { addr: far, prefix_len: 32 }).expect("free");
        let listener = hosts.server.listen(everywhere(over), 4).expect("the port is free");
        let at = Endpoint::new(far, 80);
        assert_eq!(hosts.client.connect(at, None), Err(ConnectError::NoRoute(at)));
        let way = route(far, 24, Some(server_addr(over)));
        hosts.client.add_route(way).expect("its gateway is on the link");
        let client = hosts.client.connect(at, None).expect("a free port");
        hosts.run_until_quiet();
        let server = hosts.server.accept(listener).expect("a complete connection");
        hosts.client.remove_route(&way).expect("it was added");
        assert_eq!(hosts.client.connect(at, None), Err(ConnectError::NoRoute(at)));
        let before = hosts.carried;
        send(&mut hosts.client, client, b"anybody?");
        hosts.run(Duration::from_millis(900));
        assert_eq!(hosts.carried, before, "nothing leaves");
        assert!(hosts.client.ip_counters().out_no_routes > 0);
        // A longer prefix in addition to the shorter one serves as well.
        hosts
            .client
            .add_route(Route { prefix_len: 32, ..way })
            .expect("its gateway is on the link");
        hosts.run(Duration::from_secs(3));
        assert_eq!(drain(&mut hosts.server, server).0, b"anybody?");
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.run(Duration::from_secs(200));
    }
}

#[test]
fn path_mtus_go_with_their_route_only() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 4);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.wire = super::hosts::Wire::Narrow(1_000);
    send(&mut hosts.client, client, &[7; 3_000]);
    hosts.run(Duration::from_secs(2));
    let peer = server_addr(Over::V4);
    assert_eq!(hosts.client.path_mtu(&peer), Some(1_000));
    let other = route(Address::from_v4_bytes([192, 0, 2, 0]), 24, Some(peer));
    hosts.client.add_route(other).expect("its gateway is on the link");
    assert_eq!(hosts.client.path_mtu(&peer), Some(1_000));
    let hosts_route = route(peer, 32, None);
    hosts.client.add_route(hosts_route).expect("directly connected");
    assert_eq!(hosts.client.path_mtu(&peer), None, "its way may be another");
    hosts.client.abort(client);
    hosts.server.abort(server);
    hosts.run(Duration::from_secs(1));
}

#[test]
fn foreign_address_that_becomes_own_ends_its_connections() {
    let mut hosts = Hosts::new();
    hosts.server.take_any_address();
    let listener = hosts.server.listen_any().expect("the only listener");
    let far = second(Over::V4);
    let client = hosts.client.connect(Endpoint::new(far.addr, 80), None).expect("a free port");
    hosts.run_until_quiet();
    let asked = hosts.server.asked(listener).expect("a SYN");
    hosts.server.answer_syn(asked.syn, crate::Answer::Accept);
    hosts.run_until_quiet();
    let handle = hosts.server.opened(asked.syn).expect("a connection");
    hosts.server.add_address(far).expect("numbers are kept for such");
    assert_eq!(hosts.server.state(handle), Some(State::Closed));
    hosts.server.close(handle);
    hosts.client.abort(client);
    hosts.run(Duration::from_secs(1));
    assert_eq!(hosts.server.census().other_addresses, 0);
}
