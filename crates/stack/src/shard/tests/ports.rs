//! Which end of this side a connection takes, and what becomes of it.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::conn::State;
use whimbrel_tcp::{CloseReason, DropReason, Tunables};
use whimbrel_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{Address, Endpoint, IpHeader};

use super::hosts::{Hosts, Over, client_addr, config, events, host, server_addr, server_at};
use super::packets::sent;
use super::refuse::segment_between;
use crate::shard::{ConnectError, NotLocal};
use crate::{Event, Handle, InterfaceAddress, ListenerId, RxFrame, Shard, Steering};

/// Both hosts by these rules; the client has 20 ports.
fn hosts(settings: &[(&str, &str)]) -> (Hosts, ListenerId) {
    let mut tunables = Tunables::default();
    let range = ("net.ipv4.ip_local_port_range", "50000 50019");
    for (name, value) in core::iter::once(&range).chain(settings) {
        tunables.set_by_name(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let mut hosts = Hosts::with(&tunables);
    let listener = hosts.listen(Over::V4, 64);
    (hosts, listener)
}

fn connect(hosts: &mut Hosts, local: Option<Endpoint>) -> Result<Handle, ConnectError> {
    hosts.client.set_now(hosts.now);
    hosts.client.connect(server_at(Over::V4), local)
}

/// A connection that the client closes first: 4 ms.
fn talk(
    hosts: &mut Hosts,
    listener: ListenerId,
    local: Option<Endpoint>,
) -> Result<u16, ConnectError> {
    let client = connect(hosts, local)?;
    let port = port_of(&hosts.client, client);
    hosts.run(Duration::from_millis(3));
    assert_eq!(hosts.client.state(client), Some(State::Established), "no delay");
    let server = hosts.server.accept(listener).expect("complete");
    hosts.client.close(client);
    hosts.run(Duration::from_millis(1));
    hosts.server.close(server);
    hosts.run(Duration::from_millis(3));
    Ok(port)
}

fn port_of(shard: &Shard, handle: Handle) -> u16 {
    shard.flow(handle).expect("it is held").local.port
}

fn from(port: u16) -> Option<Endpoint> {
    Some(Endpoint::new(client_addr(Over::V4), port))
}

/// The figures of an error at exhaustion: in use, waiting, ms to the next.
fn figures(error: &ConnectError) -> (u32, u32, Option<u128>) {
    match error {
        ConnectError::PortsExhausted { in_use, waiting, next, .. } => {
            (*in_use, *waiting, next.map(|next| next.as_millis()))
        }
        _ => panic!("{error}"),
    }
}

#[test]
fn unanswered_syn_counts_if_others_are_open() {
    for (others, unheard) in [(0, 0), (2, 1)] {
        let (mut hosts, _) = hosts(&[]);
        for _ in 0..others {
            connect(&mut hosts, None).expect("a free port");
        }
        hosts.run_until_quiet();
        hosts.lose = |_| true;
        connect(&mut hosts, None).expect("a free port");
        hosts.run(Duration::from_millis(1_100));
        let counters = hosts.client.counters();
        assert_eq!((counters.syn_retrans, counters.syns_unheard), (1, unheard), "{others} others");
    }
}

#[test]
fn client_that_closes_first_gets_ports_by_reuse_delay() {
    // 20 ports, for each a connection of 5 ms and 1 s of rest: one each 51 ms, though TIME-WAIT
    // lasts 20 s.
    let (mut hosts, listener) = hosts(&[]);
    for round in 0..200 {
        let next = hosts.now + Duration::from_millis(51);
        talk(&mut hosts, listener, None).unwrap_or_else(|error| panic!("{round}: {error}"));
        hosts.run(next.since(hosts.now));
    }
    let counters = hosts.client.counters();
    assert_eq!((counters.time_wait_taken_over, counters.ports_exhausted), (180, 0));
    assert_eq!(counters.syn_retrans + hosts.server.counters().challenge_acks, 0);
    assert_eq!(hosts.client.census().time_wait, 20);
    hosts.assert_no_leaks();
}

#[test]
fn at_exhaustion_the_answer_says_when_the_next_port_comes() {
    let (mut hosts, listener) = hosts(&[("tw.reuse_delay", "300ms")]);
    let kept: Vec<_> = (0..5).map(|_| connect(&mut hosts, None).expect("a free port")).collect();
    hosts.run_until_quiet();
    let accepted: Vec<_> = core::iter::from_fn(|| hosts.server.accept(listener)).collect();
    for _ in 0..15 {
        talk(&mut hosts, listener, None).expect("a free port");
    }
    // The first of them closed 15 x 7 - 5 ms ago.
    let error = connect(&mut hosts, None).expect_err("none is free");
    let (in_use, waiting, next) = figures(&error);
    assert_eq!((in_use, waiting), (5, 15));
    let next = next.expect("they have timestamps");
    assert!((190..210).contains(&next), "{next} ms");
    let text = error.to_string();
    let expected = std::format!(
        "ports exhausted towards 10.0.0.2:80: from 50000 to 50019 5 are in use and 15 wait in \
         TIME-WAIT, of which the next comes free in {next} ms; widen net.ipv4.ip_local_port_range \
         or add source addresses"
    );
    assert_eq!(text, expected);
    hosts.run(Duration::from_millis(next as u64 - 1));
    assert_eq!(figures(&connect(&mut hosts, None).expect_err("not yet")).2, Some(1));
    hosts.run(Duration::from_millis(1));
    talk(&mut hosts, listener, None).expect("now");
    assert_eq!(hosts.client.counters().ports_exhausted, 2);
    for handle in kept {
        hosts.client.close(handle);
    }
    for handle in accepted {
        hosts.server.close(handle);
    }
    hosts.assert_no_leaks();
}

#[test]
fn answering_time_wait_does_not_block_other_ports() {
    for (last, count) in [("50019", 20), ("50099", 100)] {
        let (mut hosts, listener) = hosts(&[("ports.last", last)]);
        let ports: Vec<_> =
            (0..count).map(|_| talk(&mut hosts, listener, None).expect("a free port")).collect();
        // The one that waits for longest gets something that it has to answer.
        let ends = [(server_addr(Over::V4), 80), (client_addr(Over::V4), ports[0])];
        let stray =
            segment_between(ends, TcpFlags::SYN | TcpFlags::ACK, [1, 1], TcpOptions::default());
        for _ in 0..6 {
            hosts.client.rx(hosts.now, &[RxFrame::new(&stray, SegMeta::SINGLE)]);
            hosts.run(Duration::from_millis(520));
        }
        assert_eq!(hosts.client.counters().challenge_acks, 6);
        assert_eq!(talk(&mut hosts, listener, None), Ok(ports[1]), "of {count}");
        assert_eq!(hosts.client.counters().ports_exhausted, 0);
        hosts.assert_no_leaks();
    }
}

#[test]
fn oldest_time_wait_ends_at_bound_and_frees_port() {
    let (mut hosts, listener) = hosts(&[("net.ipv4.tcp_max_tw_buckets", "15")]);
    let ports: Vec<_> =
        (0..20).map(|_| talk(&mut hosts, listener, None).expect("a free port")).collect();
    assert_eq!(hosts.client.census().time_wait, 15);
    let counters = hosts.client.counters();
    assert_eq!((counters.time_wait_overflow, counters.time_wait_taken_over), (5, 0));
    // Round again: each that comes makes room by the next.
    for port in ports {
        assert_eq!(talk(&mut hosts, listener, None), Ok(port));
    }
    assert_eq!(hosts.client.counters().time_wait_overflow, 25);
    assert_eq!(hosts.client.counters().time_wait_taken_over, 0);
    hosts.assert_no_leaks();
}

#[test]
fn a_lower_bound_of_records_is_reached_a_budget_at_a_time() {
    let (mut hosts, listener) = hosts(&[("ports.last", "50999"), ("msl.link", "255s")]);
    for _ in 0..500 {
        talk(&mut hosts, listener, None).expect("a free port");
    }
    let waiting = |hosts: &Hosts| hosts.client.census().time_wait;
    assert_eq!(waiting(&hosts), 500);
    hosts.client.set_tunable("net.ipv4.tcp_max_tw_buckets", "100").expect("a value");
    assert!(hosts.client.next_deadline() <= Some(hosts.now), "there is something to do");
    assert!(hosts.client.advance(hosts.now, 64));
    assert!((436..440).contains(&waiting(&hosts)), "{}", waiting(&hosts));
    while hosts.client.advance(hosts.now, 64) {}
    assert_eq!((waiting(&hosts), hosts.client.counters().time_wait_overflow), (100, 400));
    talk(&mut hosts, listener, None).expect("a free port");
    assert_eq!((waiting(&hosts), hosts.client.counters().time_wait_overflow), (100, 401));
    hosts.run(Duration::from_secs(400));
    hosts.assert_no_leaks();
}

#[test]
fn port_shortages_of_two_shards_add_up() {
    let tunables = Tunables { port_first: 50_000, port_last: 50_199, ..Tunables::default() };
    let errors = [0, 1].map(|queue| {
        let mut config = config(client_addr, 1, &tunables);
        config.capabilities.steering = Steering::Computable { queue, queues: 2 };
        let mut client = Shard::new(config).expect("a valid configuration");
        let mut held = Vec::new();
        let error = loop {
            match client.connect(server_at(Over::V4), None) {
                Ok(handle) => held.push(handle),
                Err(error) => break error,
            }
        };
        assert_eq!(held.len(), 100);
        for handle in held {
            client.abort(handle);
        }
        error
    });
    assert_eq!([&errors[0], &errors[1]].map(figures), [(100, 0, None); 2]);
    let [one, other] = errors;
    assert_eq!(figures(&one.and_then(other)), (200, 0, None));
}

#[test]
fn without_timestamps_or_by_policy_nothing_is_taken_over() {
    for setting in [("tcp_timestamps", "off"), ("tcp_tw_reuse", "0"), ("tcp_tw_reuse", "2")] {
        let (mut hosts, listener) = hosts(&[setting]);
        for _ in 0..20 {
            talk(&mut hosts, listener, None).expect("a free port");
        }
        hosts.run(Duration::from_secs(5));
        let error = connect(&mut hosts, None).expect_err("all wait");
        let (in_use, waiting, next) = figures(&error);
        assert_eq!((in_use, waiting), (0, 20), "{setting:?}");
        let next = next.expect("TIME-WAIT ends");
        assert!((14_000..15_000).contains(&next), "{next} ms of 20 s: {setting:?}");
        hosts.run(Duration::from_millis(next as u64));
        talk(&mut hosts, listener, None).expect("it ended");
        assert_eq!(hosts.client.counters().time_wait_taken_over, 0);
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_successor_begins_beyond_all_that_its_predecessor_sent() {
    let (mut hosts, listener) = hosts(&[("isn.tick", "1ms")]);
    let client = connect(&mut hosts, from(4_000)).expect("free");
    let iss = hosts.client.snapshot(client).expect("held").snd.una;
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("complete");
    let mut left = bytes::Bytes::from(vec![7; 100_000]);
    while !left.is_empty() {
        hosts.client.send(client, &mut left).expect("open");
        hosts.run_until_quiet();
        while let crate::Recv::Data(_) = hosts.server.recv(server) {}
    }
    hosts.client.close(client);
    hosts.run_until_quiet();
    hosts.server.close(server);
    hosts.run_until_quiet();
    let before = connect(&mut hosts, from(4_000));
    let in_use =
        ConnectError::InUse { local: from(4_000).expect("some"), remote: server_at(Over::V4) };
    assert_eq!(before, Err(in_use), "its last segment is 0.4 s old");
    hosts.run(Duration::from_secs(1));
    let again = connect(&mut hosts, from(4_000)).expect("a second later");
    let [syn] = &sent(&mut hosts.client)[..] else { panic!("one SYN") };
    let (_, tcp) = IpHeader::parse(syn).expect("an IP packet");
    let (syn, _) = TcpHeader::parse(tcp).expect("a segment");
    assert_eq!(syn.flags, TcpFlags::SYN);
    // SYN, text and FIN were 100,002; the ISN clock has gone by some 3,000 since.
    assert_eq!(syn.seq.distance_from(iss), 100_002 + 65_536);
    assert_eq!(hosts.client.counters().time_wait_taken_over, 1);
    hosts.client.abort(again);
    hosts.assert_no_leaks();
}

#[test]
fn an_old_syn_of_the_predecessors_peer_is_not_for_its_successor() {
    let (mut hosts, listener) = hosts(&[]);
    talk(&mut hosts, listener, from(4_000)).expect("free");
    let ends = [(server_addr(Over::V4), 80), (client_addr(Over::V4), 4_000)];
    let arrive = |hosts: &mut Hosts, packet: &[u8]| {
        hosts.client.rx(hosts.now, &[RxFrame::new(packet, SegMeta::SINGLE)]);
    };
    // What the record answers tells what it remembers.
    let stray = TcpFlags::SYN | TcpFlags::ACK;
    arrive(&mut hosts, &segment_between(ends, stray, [1, 1], TcpOptions::default()));
    let [ack] = &sent(&mut hosts.client)[..] else { panic!("an acknowledgment") };
    let (ack, _) = TcpHeader::parse(&ack[20..]).expect("a segment");
    let recent = ack.options.timestamps.expect("negotiated").ecr;
    hosts.run(Duration::from_secs(2));
    let again = connect(&mut hosts, from(4_000)).expect("two seconds later");
    sent(&mut hosts.client);
    for (val, state) in [(recent.wrapping_sub(1), State::SynSent), (recent, State::SynReceived)] {
        let timestamps = Some(Timestamps { val, ecr: 0 });
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        let syn = segment_between(ends, TcpFlags::SYN, [77, 0], options);
        arrive(&mut hosts, &syn);
        assert_eq!(hosts.client.state(again), Some(state));
    }
    assert_eq!(hosts.client.counters().dropped(DropReason::Paws), 1);
    hosts.client.abort(again);
}

#[test]
fn source_addresses_are_used_in_turn_and_each_has_its_ports() {
    let second = Address::from_v4_bytes([10, 0, 0, 7]);
    let tunables = Tunables { port_first: 50_000, port_last: 50_004, ..Tunables::default() };
    let mut config = config(client_addr, 1, &tunables);
    config.addresses.push(InterfaceAddress { addr: second, prefix_len: 24 });
    let client = Shard::new(config).expect("a valid configuration");
    let mut hosts = Hosts::of(client, host(server_addr, 2, &Tunables::default()));
    hosts.listen(Over::V4, 64);
    let foreign = server_addr(Over::V4);
    assert_eq!(hosts.client.set_source_pool(&[second, foreign]), Err(NotLocal(foreign)));
    hosts.client.set_source_pool(&[client_addr(Over::V4), second]).expect("both are its own");
    // One address lost a port to an explicit request.
    let bound = Endpoint::new(second, 50_002);
    let mut opened = std::vec![connect(&mut hosts, Some(bound)).expect("free")];
    opened.extend((0..9).map(|_| connect(&mut hosts, None).expect("a free port")));
    let of_second =
        opened.iter().filter(|it| hosts.client.flow(**it).expect("held").local.addr == second);
    assert_eq!(of_second.count(), 5);
    let error = connect(&mut hosts, None).expect_err("all ten are taken");
    assert_eq!(figures(&error), (10, 0, None));
    // IPv6 has none in the pool: as without one.
    let v6 = hosts.client.connect(server_at(Over::V6), None).expect("a free port");
    for handle in opened.into_iter().chain([v6]) {
        hosts.client.abort(handle);
    }
    hosts.assert_no_leaks();
}

#[test]
fn each_family_has_its_turn_among_source_addresses() {
    let more = [[10, 0, 0, 7], [10, 0, 0, 8]].map(Address::from_v4_bytes);
    let mut config = config(client_addr, 1, &Tunables::default());
    config.addresses.extend(more.map(|addr| InterfaceAddress { addr, prefix_len: 24 }));
    let mut client = Shard::new(config).expect("a valid configuration");
    let v6 = client_addr(Over::V6);
    client.set_source_pool(&[more[0], v6, more[1]]).expect("all are its own");
    // As a client that tries both families for each name does.
    let sources = [Over::V4, Over::V6, Over::V4, Over::V6, Over::V4].map(|over| {
        let handle = client.connect(server_at(over), None).expect("a free port");
        client.flow(handle).expect("held").local.addr
    });
    assert_eq!(sources, [more[0], v6, more[1], v6, more[0]]);
}

#[test]
fn reserved_ports_are_not_drawn_but_can_be_bound() {
    let (mut hosts, _) = hosts(&[("ip_local_reserved_ports", "50000-50016,50018")]);
    let drawn: Vec<_> = (0..2).map(|_| connect(&mut hosts, None).expect("a free port")).collect();
    let mut ports: Vec<_> = drawn.iter().map(|it| port_of(&hosts.client, *it)).collect();
    ports.sort_unstable();
    assert_eq!(ports, [50_017, 50_019]);
    assert_eq!(figures(&connect(&mut hosts, None).expect_err("two are all")), (2, 0, None));
    let bound = connect(&mut hosts, from(50_018)).expect("it is asked for");
    hosts.client.set_tunable("net.ipv4.ip_local_reserved_ports", "none").expect("it is live");
    let drawn_now = connect(&mut hosts, None).expect("no port is reserved");
    for handle in drawn.into_iter().chain([bound, drawn_now]) {
        hosts.client.abort(handle);
    }
    hosts.assert_no_leaks();
}

#[test]
fn challenging_server_is_remembered_as_refusing() {
    assert_eq!(place_of_a_refused_port("last"), 19, "it comes back after all others");
    assert!(place_of_a_refused_port("forget") < 19, "it has the place that it had");
}

/// Returns how many of twenty ports are drawn before one whose connection was refused just now.
fn place_of_a_refused_port(rule: &str) -> usize {
    let refusing = [("tw.syn", "never"), ("tw.rst", "ignore"), ("ports.refused", rule)];
    let (mut hosts, listener) = hosts(&refusing);
    let client = connect(&mut hosts, from(50_003)).expect("free");
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("complete");
    hosts.server.close(server);
    hosts.run_until_quiet();
    hosts.client.close(client);
    hosts.run_until_quiet();
    let client = connect(&mut hosts, from(50_003)).expect("it does not wait here");
    hosts.run(Duration::from_millis(100));
    assert_eq!(hosts.client.state(client), Some(State::SynSent));
    assert_eq!(hosts.client.counters().syn_challenged, 1);
    hosts.client.abort(client);
    let opened: Vec<_> = (0..20).map(|_| connect(&mut hosts, None).expect("a free port")).collect();
    let place = opened.iter().position(|it| port_of(&hosts.client, *it) == 50_003);
    for handle in opened {
        hosts.client.abort(handle);
    }
    hosts.run_until_quiet();
    let census = hosts.client.census();
    assert_eq!((census.connections, census.destinations), (0, 0));
    place.expect("all twenty are drawn")
}

#[test]
fn connection_without_time_wait_frees_its_port() {
    let (mut hosts, _) = hosts(&[("tcp_syn_retries", "0")]);
    let absent = Endpoint::new(server_addr(Over::V4), 81);
    for _ in 0..3 {
        let opened: Vec<_> =
            (0..20).map(|_| hosts.client.connect(absent, None).expect("a free port")).collect();
        hosts.run_until_quiet();
        let refused = |it: &Event| matches!(it, Event::Closed(_, CloseReason::Refused));
        assert!(events(&mut hosts.client).iter().all(refused));
        for handle in opened {
            hosts.client.close(handle);
        }
    }
    assert_eq!(hosts.client.census().destinations, 0);
    assert_eq!(hosts.server.counters().dropped(DropReason::NoSocket), 60);
    hosts.assert_no_leaks();
}
