//! SYNs for any destination wait for an answer, and their peers see what was decided.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::conn::RouteMetrics;
use whimbrel_tcp::conn::State;
use whimbrel_tcp::tunables::SynCookies;
use whimbrel_tcp::{CloseReason, DropReason, Tunables};
use whimbrel_wire::tcp::{TcpFlags, TcpOptions};
use whimbrel_wire::{Address, Endpoint, Flow, IcmpMessage, IpHeader, Protocol, QuotedSegment};

use super::hosts::{
    BOTH, Hosts, Over, Wire, client_addr, config, drain, events, host, send, server_addr, server_at,
};
use super::packets::{exchange, packet_from, sent};
use super::refuse::segment_between;
use crate::ip::{FrameDrop, Unreachable};
use crate::{
    Answer, Event, Handle, InterfaceAddress, ListenerId, Recv, Route, RxFrame, Shard, SynRequest,
    Withdrawal,
};

/// Returns an endpoint at which nothing is.
fn elsewhere(over: Over) -> Endpoint {
    let addr = match over {
        Over::V4 => other(7),
        Over::V6 => Address::from(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7)),
    };
    Endpoint::new(addr, 443)
}

fn other(number: u32) -> Address {
    Address::from_v4_bytes((0xcb00_0000 + number).to_be_bytes())
}

/// A client with routes to everywhere, and a server that speaks for everybody.
fn hosts_with(tunables: &Tunables) -> (Hosts, ListenerId) {
    let mut client = config(client_addr, 1, tunables);
    client.routes = ["0.0.0.0", "::"].map(default_route).into();
    let mut server = host(server_addr, 2, tunables);
    server.take_any_address();
    let listener = server.listen_any().expect("the only listener");
    (Hosts::of(Shard::new(client).expect("valid"), server), listener)
}

fn hosts() -> (Hosts, ListenerId) {
    hosts_with(&Tunables::default())
}

fn default_route(network: &str) -> Route {
    let network = network.parse::<std::net::IpAddr>().expect("an address").into();
    Route { network, prefix_len: 0, gateway: None, metric: 0, metrics: RouteMetrics::default() }
}

fn server() -> (Shard, ListenerId) {
    server_with(&Tunables::default())
}

fn server_with(tunables: &Tunables) -> (Shard, ListenerId) {
    let mut server = host(server_addr, 2, tunables);
    server.take_any_address();
    let listener = server.listen_any().expect("the only listener");
    (server, listener)
}

/// A segment of a client at this port to a destination in IPv4.
fn segment(port: u16, to: (Address, u16), flags: TcpFlags, numbers: [u32; 2]) -> Vec<u8> {
    segment_between([(client_addr(Over::V4), port), to], flags, numbers, TcpOptions::default())
}

fn syn(port: u16, to: (Address, u16)) -> Vec<u8> {
    segment(port, to, TcpFlags::SYN, [100, 0])
}

fn all_asked(shard: &mut Shard, listener: ListenerId) -> Vec<SynRequest> {
    std::iter::from_fn(|| shard.asked(listener)).collect()
}

#[test]
fn syn_for_any_destination_waits_until_accepted() {
    for over in BOTH {
        let (mut hosts, listener) = hosts();
        let client = hosts.client.connect(elsewhere(over), None).expect("a free port");
        // Long enough for two repetitions.
        hosts.run(Duration::from_millis(3_500));
        assert_eq!(hosts.client.state(client), Some(State::SynSent));
        assert_eq!(hosts.carried, 3, "no answer came");
        assert_eq!(events(&mut hosts.server), [Event::Asked(listener)]);
        let asked = hosts.server.asked(listener).expect("a SYN");
        assert_eq!(hosts.server.asked(listener), None, "repetitions are no others");
        let flow = hosts.client.flow(client).expect("open");
        assert_eq!(asked.flow, Flow { local: flow.remote, remote: flow.local });

        assert!(hosts.server.answer_syn(asked.syn, Answer::Accept));
        assert!(!hosts.server.answer_syn(asked.syn, Answer::Reset), "it is answered");
        hosts.run_until_quiet();
        let opened = events(&mut hosts.server);
        assert_eq!(opened, [Event::Opened(asked.syn)]);
        let server = hosts.server.opened(asked.syn).expect("a connection");
        assert_eq!(hosts.server.opened(asked.syn), None, "it is taken");
        assert_eq!(hosts.server.flow(server), Some(asked.flow));
        send(&mut hosts.client, client, b"to nowhere");
        send(&mut hosts.server, server, b"and back");
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.server, server).0, b"to nowhere");
        assert_eq!(drain(&mut hosts.client, client).0, b"and back");
        assert_eq!(hosts.server.census().other_addresses, 1);

        hosts.server.close(server);
        hosts.run_until_quiet();
        hosts.client.close(client);
        hosts.run_until_quiet();
        assert_eq!(hosts.server.census().time_wait, 1);
        assert_eq!(hosts.server.census().other_addresses, 1, "its record has the address");
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_syn_that_is_reset_and_sent_again_at_once_is_another() {
    let (mut server, listener) = server();
    let to = (other(7), 443);
    let arrive = |server: &mut Shard, flags, numbers| {
        let packet = segment(5_000, to, flags, numbers);
        server.rx(Instant::ZERO, &[RxFrame::new(&packet, SegMeta::SINGLE)]);
    };
    arrive(&mut server, TcpFlags::SYN, [100, 0]);
    let first = server.asked(listener).expect("a SYN").syn;
    arrive(&mut server, TcpFlags::RST, [101, 0]);
    arrive(&mut server, TcpFlags::SYN, [100, 0]);
    let second = server.asked(listener).expect("another").syn;
    assert_ne!(first, second, "though its place and our ISS are the same");
    let news = events(&mut server);
    assert!(news.contains(&Event::Withdrawn(first, Withdrawal::Reset)), "{news:?}");
    assert!(!server.answer_syn(first, Answer::Reset), "it is gone");
    assert!(server.answer_syn(second, Answer::Accept));
}

#[test]
fn what_the_path_carries_is_heard_of_at_any_address() {
    for over in BOTH {
        let (mut hosts, listener) = hosts();
        hosts.wire = Wire::Narrow(1_300);
        let client = hosts.client.connect(elsewhere(over), None).expect("a free port");
        hosts.run_until_quiet();
        let asked = hosts.server.asked(listener).expect("a SYN");
        hosts.server.answer_syn(asked.syn, Answer::Accept);
        hosts.run_until_quiet();
        let server = hosts.server.opened(asked.syn).expect("a connection");
        send(&mut hosts.server, server, &[7; 5_000]);
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.client, client).0.len(), 5_000);
        assert_eq!(hosts.server.counters().path_mtu_lowered, 1);
        hosts.server.abort(server);
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.client, client).1, Recv::Closed(CloseReason::Reset));
        hosts.client.close(client);
    }
}

#[test]
fn a_refused_syn_is_answered_as_by_a_closed_port() {
    for over in BOTH {
        let (mut hosts, listener) = hosts();
        let client = hosts.client.connect(elsewhere(over), None).expect("a free port");
        hosts.run_until_quiet();
        let asked = hosts.server.asked(listener).expect("a SYN");
        assert!(hosts.server.answer_syn(asked.syn, Answer::Reset));
        hosts.run_until_quiet();
        assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Refused)]);
        assert_eq!(events(&mut hosts.server), [Event::Asked(listener)], "no word of its own doing");
        hosts.client.close(client);
        hosts.assert_no_leaks();
    }
}

#[test]
fn unreachable_answer_is_icmp_error_that_quotes_syn() {
    let codes = [
        (Unreachable::Network, 0),
        (Unreachable::Host, 1),
        (Unreachable::Port, 3),
        (Unreachable::Prohibited, 13),
    ];
    for (what, code) in codes {
        let (mut server, listener) = server();
        let to = (other(7), 443);
        assert_eq!(exchange(&mut server, Instant::ZERO, &syn(4_000, to)).len(), 0);
        let asked = server.asked(listener).expect("a SYN");
        assert!(server.answer_syn(asked.syn, Answer::Unreachable(what)));
        let errors = sent(&mut server);
        let (ip, payload) = IpHeader::parse(&errors[0]).expect("an IP packet");
        assert_eq!((ip.src, ip.dst), (server_addr(Over::V4), client_addr(Over::V4)));
        let message = IcmpMessage::parse(payload).expect("a message");
        let IcmpMessage::DestinationUnreachable { code: told, quoted } = message else {
            panic!("{message:?}")
        };
        assert_eq!(told, code);
        let quoted = QuotedSegment::parse(quoted).expect("a segment");
        assert_eq!((quoted.src, quoted.dst), (client_addr(Over::V4), to.0));
        assert_eq!((quoted.src_port, quoted.dst_port), (4_000, 443));
        assert_eq!(quoted.seq.map(|seq| seq.raw()), Some(100));
        assert_eq!(server.census().other_addresses, 0);
    }
}

#[test]
fn an_unreachable_one_is_told_so_in_ipv6() {
    let (mut hosts, listener) = hosts();
    let client = hosts.client.connect(elsewhere(Over::V6), None).expect("a free port");
    hosts.run_until_quiet();
    let asked = hosts.server.asked(listener).expect("a SYN");
    // Our own client takes this for a hard error of a SYN's.
    assert!(hosts.server.answer_syn(asked.syn, Answer::Unreachable(Unreachable::Port)));
    hosts.run_until_quiet();
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Refused)]);
    hosts.client.close(client);
}

#[test]
fn an_ignored_syn_is_asked_about_again_when_it_comes_again() {
    let (mut hosts, listener) = hosts();
    let client = hosts.client.connect(elsewhere(Over::V4), None).expect("a free port");
    for repetition in 1..=3 {
        hosts.run(Duration::from_millis(if repetition == 1 { 500 } else { 2_100 }));
        let asked = all_asked(&mut hosts.server, listener);
        assert_eq!(asked.len(), 1, "{repetition}");
        assert!(hosts.server.answer_syn(asked[0].syn, Answer::Ignore));
        assert_eq!(hosts.server.census().syn_entries, 0);
    }
    assert_eq!(hosts.client.state(client), Some(State::SynSent));
    hosts.client.abort(client);
    hosts.assert_no_leaks();
}

#[test]
fn who_resets_its_syn_withdraws_it_and_who_guesses_does_not() {
    let (mut server, listener) = server();
    let to = (other(7), 443);
    for seen in [true, false] {
        exchange(&mut server, Instant::ZERO, &syn(4_000, to));
        let asked = seen.then(|| server.asked(listener).expect("a SYN"));
        for seq in [99, 100, 102, 70_000] {
            let reset = segment(4_000, to, TcpFlags::RST, [seq, 0]);
            assert_eq!(exchange(&mut server, Instant::ZERO, &reset).len(), 0);
        }
        // Another SYN of this flow is no reason to believe that the first is none.
        let another = segment(4_000, to, TcpFlags::SYN, [5_000, 0]);
        assert_eq!(exchange(&mut server, Instant::ZERO, &another).len(), 0);
        assert_eq!(server.census().syn_entries, 1);
        exchange(&mut server, Instant::ZERO, &segment(4_000, to, TcpFlags::RST, [101, 0]));
        let mut expected = Vec::from([Event::Asked(listener)]);
        expected.extend(asked.map(|it| Event::Withdrawn(it.syn, Withdrawal::Reset)));
        assert_eq!(events(&mut server), expected);
        assert_eq!(server.asked(listener), None, "what is gone is not asked about");
        assert!(asked.is_none_or(|it| !server.answer_syn(it.syn, Answer::Accept)));
        assert_eq!(server.census().other_addresses, 0);
    }
    assert_eq!(server.counters().verdict_withdrawn, 2);
    assert_eq!(server.counters().dropped(DropReason::ResetOutsideWindow), 8);
}

#[test]
fn ack_of_unsent_data_gets_reset_as_by_listener() {
    let (mut server, listener) = server();
    let to = (other(7), 443);
    exchange(&mut server, Instant::ZERO, &syn(4_000, to));
    let third = segment(4_000, to, TcpFlags::ACK, [101, 77]);
    let reply = exchange(&mut server, Instant::ZERO, &third);
    let reset = super::packets::tcp(&reply[0]).0;
    assert_eq!((reset.flags, reset.seq.raw()), (TcpFlags::RST, 77));
    assert_eq!(all_asked(&mut server, listener).len(), 1);
    // Of what has no record at all the same, from the address that it was for.
    let stray = segment(4_001, (other(8), 9), TcpFlags::ACK, [101, 78]);
    let reply = exchange(&mut server, Instant::ZERO, &stray);
    assert_eq!(IpHeader::parse(&reply[0]).expect("a packet").0.src, other(8));
    assert_eq!(server.census().other_addresses, 1);
}

#[test]
fn unanswered_syn_expires_when_its_peer_gives_up() {
    let (mut server, listener) = server();
    exchange(&mut server, Instant::ZERO, &syn(4_000, (other(7), 443)));
    let asked = server.asked(listener).expect("a SYN");
    assert_eq!(events(&mut server), [Event::Asked(listener)]);
    server.advance(Instant::from_millis(126_999), 64);
    assert_eq!(events(&mut server), []);
    assert_eq!(server.next_deadline(), Some(Instant::from_millis(127_000)));
    server.advance(Instant::from_millis(127_000), 64);
    assert_eq!(events(&mut server), [Event::Withdrawn(asked.syn, Withdrawal::TimedOut)]);
    assert_eq!((server.census().syn_entries, server.census().other_addresses), (0, 0));
}

#[test]
fn accepted_syn_of_vanished_peer_times_out() {
    let (mut server, listener) = server();
    exchange(&mut server, Instant::ZERO, &syn(4_000, (other(7), 443)));
    let asked = server.asked(listener).expect("a SYN");
    server.answer_syn(asked.syn, Answer::Accept);
    let mut answers = 0;
    while let Some(due) = server.next_deadline() {
        answers += sent(&mut server).len();
        server.advance(due, 64);
    }
    assert_eq!(answers, 1 + usize::from(Tunables::default().synack_retries));
    let [Event::Asked(_), Event::Withdrawn(syn, Withdrawal::TimedOut)] = events(&mut server)[..]
    else {
        panic!("it timed out")
    };
    assert_eq!(syn, asked.syn);
}

#[test]
fn dials_to_a_black_hole_keep_no_other_destination_waiting() {
    let (mut server, listener) = server();
    let hole = (other(9), 80);
    for port in 0..1_000 {
        exchange(&mut server, Instant::ZERO, &syn(4_000 + port, hole));
    }
    assert_eq!(server.counters().verdict_crowded, 1_000 - 64);
    // Another port of the same address, and another address.
    for (number, to) in (0..).zip([(other(9), 81), (other(10), 80)]) {
        exchange(&mut server, Instant::ZERO, &syn(9_000 + number, to));
    }
    let asked = all_asked(&mut server, listener);
    assert_eq!(asked.len(), 66);
    assert_eq!(asked.iter().filter(|it| it.flow.local.addr == hole.0).count(), 65);
    // Who is answered makes room.
    assert!(server.answer_syn(asked[0].syn, Answer::Ignore));
    exchange(&mut server, Instant::ZERO, &syn(9_100, hole));
    assert_eq!(all_asked(&mut server, listener).len(), 1);
}

#[test]
fn a_scan_holds_no_more_than_its_bound_and_leaves_nothing() {
    let (mut server, listener) = server();
    for number in 0..10_000 {
        exchange(&mut server, Instant::ZERO, &syn(4_000, (other(number), 80)));
    }
    let census = server.census();
    assert_eq!((census.syn_entries, census.other_addresses), (4_096, 4_096));
    assert_eq!(server.counters().verdict_overflows, 10_000 - 4_096);
    for asked in all_asked(&mut server, listener) {
        server.answer_syn(asked.syn, Answer::Reset);
    }
    while !sent(&mut server).is_empty() {}
    assert_eq!(server.census().other_addresses, 0);
    assert_eq!(server.counters().out_rsts, 768, "as many answers as may wait to leave");
}

/// 4,096 dials, each to a destination of its own, numbered from `first`.
fn fill(server: &mut Shard, first: u32) {
    let numbers: Vec<u32> = (first..first + 4_096).collect();
    for burst in numbers.chunks(64) {
        let packets: Vec<_> = burst.iter().map(|it| syn(4_000, (other(*it), 80))).collect();
        let frames: Vec<_> = packets.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
        server.rx(Instant::ZERO, &frames);
    }
}

#[test]
fn oldest_dial_gives_way_decided_or_not() {
    for accepts in [true, false] {
        let (mut server, listener) = server();
        fill(&mut server, 0);
        let asked = all_asked(&mut server, listener);
        assert_eq!(asked.len(), 4_096);
        if accepts {
            assert!(asked.iter().all(|it| server.answer_syn(it.syn, Answer::Accept)));
            while !sent(&mut server).is_empty() {}
        }
        events(&mut server);
        for (number, oldest) in (0..).zip(&asked[..3]) {
            let to = (other(5_000 + number), 80);
            assert_eq!(exchange(&mut server, Instant::ZERO, &syn(4_000, to)).len(), 0);
            let newest = server.asked(listener).expect("it is asked about at once");
            assert_eq!(newest.flow.local.addr, to.0);
            let withdrawn = Event::Withdrawn(oldest.syn, Withdrawal::Displaced);
            assert_eq!(events(&mut server), [withdrawn, Event::Asked(listener)]);
            assert!(!server.answer_syn(oldest.syn, Answer::Accept));
            assert_eq!(sent(&mut server).len(), 0, "what was decided of one hits no other");
        }
        assert_eq!(server.census().pending_dials, 4_096);
        server.check_invariants().expect("what must hold");
    }
}

#[test]
fn oldest_dial_to_one_destination_gives_way() {
    let (mut server, listener) = server();
    let hole = (other(9), 80);
    for port in 0..64 {
        exchange(&mut server, Instant::ZERO, &syn(4_000 + port, hole));
    }
    exchange(&mut server, Instant::ZERO, &syn(4_000, (other(10), 80)));
    let asked = all_asked(&mut server, listener);
    assert!(server.answer_syn(asked[0].syn, Answer::Accept));
    assert_eq!(sent(&mut server).len(), 1);
    events(&mut server);
    for oldest in &asked[..3] {
        exchange(&mut server, Instant::ZERO, &syn(5_000 + oldest.flow.remote.port, hole));
        assert!(server.asked(listener).is_some());
        let withdrawn = Event::Withdrawn(oldest.syn, Withdrawal::Displaced);
        assert!(events(&mut server).contains(&withdrawn));
    }
    assert_eq!((server.counters().verdict_crowded, server.counters().verdict_overflows), (3, 0));
    assert_eq!(server.census().pending_dials, 65);
}

#[test]
fn tunable_bounds_dials_to_one_destination() {
    for (most, kept) in [(1, 1), (500, 500), (4_096, 600)] {
        let tunables = Tunables { max_dials_per_destination: most, ..Tunables::default() };
        let (mut server, listener) = server_with(&tunables);
        for port in 0..600 {
            exchange(&mut server, Instant::ZERO, &syn(4_000 + port, (other(9), 80)));
        }
        exchange(&mut server, Instant::ZERO, &syn(4_000, (other(10), 80)));
        let census = server.census();
        assert_eq!(census.pending_dials, kept + 1, "{most}");
        assert_eq!(server.counters().verdict_crowded, 600 - kept as u64, "{most}");
        // Decided ones make room.
        let asked = all_asked(&mut server, listener);
        for asked in &asked {
            server.answer_syn(asked.syn, Answer::Ignore);
        }
        assert_eq!(server.census().pending_dials, 0);
        exchange(&mut server, Instant::ZERO, &syn(4_000, (other(9), 80)));
        assert_eq!(server.counters().verdict_crowded, 600 - kept as u64, "{most}");
        server.check_invariants().expect("what must hold");
    }
    for beyond in ["0", "4097"] {
        let error = Tunables::default().set_by_name("max_dials_per_destination", beyond);
        assert!(error.is_err(), "{beyond}");
    }
}

#[test]
fn syn_ack_of_withdrawn_dial_answers_no_other() {
    let arrive = |server: &mut Shard, packet: &[u8]| {
        server.rx(Instant::ZERO, &[RxFrame::new(packet, SegMeta::SINGLE)]);
    };
    for withdraws_by_reset in [true, false] {
        let (mut server, listener) = server();
        arrive(&mut server, &syn(4_000, (other(7), 443)));
        let first = server.asked(listener).expect("a SYN").syn;
        // The device takes nothing: its SYN-ACK waits.
        assert!(server.answer_syn(first, Answer::Accept));
        if withdraws_by_reset {
            arrive(&mut server, &segment(4_000, (other(7), 443), TcpFlags::RST, [101, 0]));
            arrive(&mut server, &syn(4_001, (other(8), 443)));
        } else {
            fill(&mut server, 100);
        }
        let told = events(&mut server);
        assert!(told.iter().any(|it| matches!(it, Event::Withdrawn(syn, _) if *syn == first)));
        assert_eq!(sent(&mut server).len(), 0, "the others are undecided");
    }
}

#[test]
fn foreign_source_carries_data_and_frees_its_number() {
    for over in BOTH {
        let (mut hosts, _) = hosts();
        let listener = hosts.client.listen(Endpoint::new(client_addr(over), 80), 8).expect("free");
        let to = Endpoint::new(client_addr(over), 80);
        let from = Endpoint::new(elsewhere(over).addr, 0);
        let server = hosts.server.connect(to, Some(from)).expect("as any host");
        hosts.run_until_quiet();
        let client = hosts.client.accept(listener).expect("it is open");
        let flow = hosts.client.flow(client).expect("open");
        assert_eq!(flow.remote.addr, from.addr);
        assert_eq!(hosts.server.flow(server).map(|it| it.local), Some(flow.remote));
        send(&mut hosts.server, server, b"as another");
        send(&mut hosts.client, client, b"to another");
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.server, server).0, b"to another");
        assert_eq!(drain(&mut hosts.client, client).0, b"as another");
        assert_eq!(hosts.server.census().other_addresses, 1);
        hosts.server.close(server);
        hosts.run_until_quiet();
        hosts.client.close(client);
        hosts.run_until_quiet();
        let census = hosts.server.census();
        assert_eq!(
            (census.time_wait, census.other_addresses),
            (1, 1),
            "its record has the address"
        );
        hosts.client.close_listener(listener);
        hosts.assert_no_leaks();
    }
}

#[test]
fn only_unicast_of_other_hosts_is_foreign_source() {
    let (mut server, _) = server();
    let to = Endpoint::new(client_addr(Over::V4), 80);
    for from in ["224.0.0.1", "255.255.255.255", "127.0.0.1", "2001:db8::7", "169.254.0.1"] {
        let from = Endpoint::new(from.parse::<std::net::IpAddr>().expect("valid").into(), 0);
        assert!(server.connect(to, Some(from)).is_err(), "{from}");
    }
    let own = Endpoint::new(server_addr(Over::V4), 80);
    let from = Endpoint::new(other(7), 0);
    assert!(server.connect(own, Some(from)).is_err(), "nor to itself");
    let reset = server.connect(to, Some(from)).expect("as any host");
    server.abort(reset);
    while !sent(&mut server).is_empty() {}
    assert_eq!((server.census().connections, server.census().other_addresses), (0, 0));
    // A host that takes only its own is as before.
    let mut plain = host(server_addr, 2, &Tunables::default());
    assert!(plain.connect(to, Some(from)).is_err());
}

#[test]
fn there_is_no_cookie_and_no_other_answer_before_the_verdict() {
    let tunables = Tunables { syn_cookies: SynCookies::Always, ..Tunables::default() };
    let (mut hosts, listener) = hosts_with(&tunables);
    hosts.server.join_group(Duration::ZERO);
    let client = hosts.client.connect(elsewhere(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    assert_eq!((hosts.carried, hosts.server.counters().cookies_sent), (1, 0));
    assert_eq!(all_asked(&mut hosts.server, listener).len(), 1);
    let third = segment(4_000, (other(7), 443), TcpFlags::ACK, [101, 77]);
    exchange(&mut hosts.server, Instant::ZERO, &third);
    assert_eq!(hosts.server.counters().cookies_failed, 0, "nor is one looked for");
    hosts.client.abort(client);
}

#[test]
fn listener_at_own_address_precedes_listener_for_any() {
    let (mut server, any) = server();
    let at = Endpoint::new(Address::from_v4_bytes([0; 4]), 80);
    let own = server.listen(at, 8).expect("the port is free");
    assert!(server.listen_any().is_err(), "there is one such listener");
    // Its own address, and another's, at the same port; its own at another port.
    let tos = [(server_addr(Over::V4), 80), (other(7), 80), (server_addr(Over::V4), 81)];
    let answers = tos.map(|to| exchange(&mut server, Instant::ZERO, &syn(4_000, to)).len());
    assert_eq!(answers, [1, 0, 0]);
    let asked = all_asked(&mut server, any);
    let to: Vec<_> = asked.iter().map(|it| (it.flow.local.addr, it.flow.local.port)).collect();
    assert_eq!(to, tos[1..]);
    assert_eq!(server.listener(own).map(|it| it.half_open()), Some(1));
}

#[test]
fn when_nobody_listens_any_more_who_waits_is_refused() {
    let (mut server, listener) = server();
    for port in [4_000, 4_001] {
        exchange(&mut server, Instant::ZERO, &syn(port, (other(7), 443)));
    }
    let asked = server.asked(listener).expect("a SYN");
    server.close_listener(listener);
    assert_eq!(sent(&mut server).len(), 2);
    let told = events(&mut server);
    assert_eq!(told, [Event::Asked(listener), Event::Withdrawn(asked.syn, Withdrawal::Reset)]);
    // Without a listener it is as a host with this address and no open port.
    let refused = exchange(&mut server, Instant::ZERO, &syn(4_002, (other(7), 443)));
    assert_eq!(super::packets::tcp(&refused[0]).0.flags, TcpFlags::RST | TcpFlags::ACK);
    assert!(server.listen_any().is_ok());
}

#[test]
fn a_connection_that_nobody_took_is_reset_with_the_listener() {
    let (mut hosts, listener) = hosts();
    let client = hosts.client.connect(elsewhere(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    let asked = hosts.server.asked(listener).expect("a SYN");
    hosts.server.answer_syn(asked.syn, Answer::Accept);
    hosts.run_until_quiet();
    hosts.server.close_listener(listener);
    hosts.run_until_quiet();
    assert_eq!(drain(&mut hosts.client, client).1, Recv::Closed(CloseReason::Reset));
    assert_eq!(hosts.server.opened(asked.syn), None);
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn only_segments_and_datagrams_pass_for_foreign_addresses() {
    let (mut server, _) = server();
    let echo = [8, 0, 0xf7, 0xfe, 0, 0, 0, 1];
    let (src, to) = (client_addr(Over::V4), other(7));
    // The second time the address has a number.
    for _ in 0..2 {
        for (protocol, payload) in [(Protocol::ICMP, &echo), (Protocol(200), &[0; 8])] {
            let packet = packet_from(src, to, protocol, payload);
            assert_eq!(exchange(&mut server, Instant::ZERO, &packet).len(), 0);
        }
        exchange(&mut server, Instant::ZERO, &syn(4_000, (to, 443)));
    }
    assert_eq!(server.ip_counters().dropped(FrameDrop::OtherHost), 4);
    // Addresses that no host has, or that this host should not speak for.
    for addr in [[0, 0, 0, 0], [127, 0, 0, 1], [224, 0, 0, 5], [255; 4], [10, 0, 0, 255]] {
        let to = (Address::from_v4_bytes(addr), 80);
        assert_eq!(exchange(&mut server, Instant::ZERO, &syn(4_000, to)).len(), 0);
    }
    let itself =
        segment_between([(to, 443), (to, 443)], TcpFlags::SYN, [100, 0], TcpOptions::default());
    assert_eq!(exchange(&mut server, Instant::ZERO, &itself).len(), 0);
    assert_eq!(server.ip_counters().dropped(FrameDrop::OtherHost), 10);
    assert_eq!(server.census().other_addresses, 1);
}

#[test]
fn refused_syn_in_time_wait_leaves_record() {
    let (mut hosts, listener) = hosts_with(&Tunables { timestamps: false, ..Tunables::default() });
    let client = hosts.client.connect(elsewhere(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    let asked = hosts.server.asked(listener).expect("a SYN");
    hosts.server.answer_syn(asked.syn, Answer::Accept);
    hosts.run_until_quiet();
    let server = hosts.server.opened(asked.syn).expect("a connection");
    let flow = hosts.client.flow(client).expect("open");
    hosts.server.close(server);
    hosts.run_until_quiet();
    hosts.client.close(client);
    hosts.run_until_quiet();
    let ends = [(flow.local.addr, flow.local.port), (flow.remote.addr, flow.remote.port)];
    for answer in [Answer::Reset, Answer::Ignore] {
        // Beyond whatever number it ended at.
        let seq = 0x4000_0000 + hosts.client.now().as_nanos() as u32;
        for seq in [seq, seq.wrapping_add(0x4000_0000), seq.wrapping_add(0x8000_0000)] {
            let syn = segment_between(ends, TcpFlags::SYN, [seq, 0], TcpOptions::default());
            exchange(&mut hosts.server, hosts.now, &syn);
        }
        assert_eq!(hosts.server.census().time_wait, 1);
        let asked = hosts.server.asked(listener).expect("a SYN that is newer");
        assert!(hosts.server.answer_syn(asked.syn, answer));
        sent(&mut hosts.server);
    }
    assert_eq!(hosts.server.counters().time_wait_returned, 2);
    assert_eq!(hosts.server.census().time_wait, 1);
}

/// A host with so many addresses of its own that it can speak for 300 others: of 65,534 numbers 64 are kept for
/// addresses of its own to come.
fn crowded() -> (Shard, ListenerId) {
    let mut config = config(server_addr, 2, &Tunables::default());
    let own = |number: u32| InterfaceAddress {
        addr: Address::from_v4_bytes((0x0b00_0000 + number).to_be_bytes()),
        prefix_len: 8,
    };
    config.addresses.extend((1..=65_534 - 64 - 300 - 2).map(own));
    let mut server = Shard::new(config).expect("valid");
    server.take_any_address();
    let listener = server.listen_any().expect("the only listener");
    (server, listener)
}

/// Opens a connection of port 4,000 to another address, and returns it with our ISS.
fn dial(server: &mut Shard, listener: ListenerId, now: Instant, number: u32) -> (Handle, u32) {
    let to = (other(number), 80);
    exchange(server, now, &syn(4_000, to));
    let asked = server.asked(listener).expect("room for it");
    server.answer_syn(asked.syn, Answer::Accept);
    let iss = super::packets::tcp(&sent(server)[0]).0.seq.raw();
    exchange(server, now, &segment(4_000, to, TcpFlags::ACK, [101, iss + 1]));
    (server.opened(asked.syn).expect("a connection"), iss)
}

/// The last segment of a peer that the server has closed before.
fn last_fin(number: u32, iss: u32) -> Vec<u8> {
    segment(4_000, (other(number), 80), TcpFlags::FIN | TcpFlags::ACK, [101, iss + 2])
}

#[test]
fn oldest_waiting_address_gives_way_when_numbers_run_out() {
    let (mut server, listener) = crowded();
    for number in 0..1_000 {
        let (handle, iss) = dial(&mut server, listener, Instant::ZERO, number);
        server.close(handle);
        sent(&mut server);
        exchange(&mut server, Instant::ZERO, &last_fin(number, iss));
        assert!(server.census().other_addresses <= 300);
    }
    // As many as the frames of two bursts have a number to spare.
    let spare = 2 * crate::tcp_host::found::BURST;
    assert_eq!(server.census().time_wait, 300 - spare);
    assert_eq!(server.ip_counters().addresses_recycled, (1_000 - 300 + spare) as u64);
    assert_eq!(server.ip_counters().dropped(FrameDrop::AddressLimit), 0);
}

/// A hundred connections a second to as many addresses, which the server closes, for ten seconds. One that
/// stays open has its text taken all the time, and of those that went the last hundred wait for a FIN that
/// comes again.
#[test]
fn connection_keeps_its_address_amid_flood_of_others() {
    let (mut server, listener) = crowded();
    let (honest, own) = dial(&mut server, listener, Instant::ZERO, 9_999);
    let mut flood = Vec::new();
    for number in 0..1_000 {
        let now = Instant::from_millis(u64::from(number) * 10);
        server.advance(now, 64);
        let (handle, iss) = dial(&mut server, listener, now, number);
        server.close(handle);
        sent(&mut server);
        exchange(&mut server, now, &last_fin(number, iss));
        flood.push(iss);
        if number % 100 == 99 {
            let text = segment(4_000, (other(9_999), 80), TcpFlags::ACK, [101, own + 1]);
            exchange(&mut server, now, &text);
            assert_eq!(server.state(honest), Some(State::Established), "{number}");
            // RFC 9293 3.10.7.4: TIME-WAIT acknowledges a FIN that comes again, at most one in 500 ms.
            let again = number - 99;
            let answers = exchange(&mut server, now, &last_fin(again, flood[again as usize]));
            assert_eq!(super::packets::tcp(&answers[0]).0.flags, TcpFlags::ACK, "{number}");
        }
    }
    assert!(server.ip_counters().addresses_recycled > 700);
    assert_eq!(server.ip_counters().dropped(FrameDrop::AddressLimit), 0);
    server.check_invariants().expect("what must hold");
}

#[test]
fn without_a_number_to_give_a_segment_is_dropped_and_counted() {
    let (mut server, listener) = crowded();
    // A whole burst at a time: what one brings the next must see.
    let frames: Vec<_> = (0..320).map(|number| syn(4_000, (other(number), 80))).collect();
    let burst: Vec<_> = frames.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
    server.rx(Instant::ZERO, &burst);
    assert_eq!(server.census().other_addresses, 300);
    assert_eq!(server.ip_counters().dropped(FrameDrop::AddressLimit), 20);
    assert_eq!(all_asked(&mut server, listener).len(), 300);
}

#[test]
fn address_released_and_used_in_one_burst_keeps_number() {
    let (mut server, listener) = server();
    let to = (other(7), 443);
    exchange(&mut server, Instant::ZERO, &syn(4_000, to));
    let frames = [
        segment(4_000, to, TcpFlags::RST, [101, 0]),
        syn(4_000, (other(8), 443)),
        syn(4_000, to),
        segment(4_000, to, TcpFlags::RST, [101, 0]),
        syn(4_000, to),
    ];
    let burst: Vec<_> = frames.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
    server.rx(Instant::ZERO, &burst);
    let asked = all_asked(&mut server, listener);
    let to: Vec<_> = asked.iter().map(|it| it.flow.local.addr).collect();
    assert_eq!(to, [other(8), other(7)]);
    server.check_invariants().expect("what must hold");
}

#[test]
fn what_listens_elsewhere_is_as_before() {
    let mut server = host(server_addr, 2, &Tunables::default());
    let listener = server.listen_any().expect("the only listener");
    // Without taking any address there is none but its own.
    exchange(&mut server, Instant::ZERO, &syn(4_000, (other(7), 443)));
    assert_eq!(server.ip_counters().dropped(FrameDrop::OtherHost), 1);
    exchange(&mut server, Instant::ZERO, &syn(4_000, (server_at(Over::V4).addr, 443)));
    assert_eq!(all_asked(&mut server, listener).len(), 1);
}
