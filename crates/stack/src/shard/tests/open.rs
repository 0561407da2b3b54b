//! Opening, from either side.

use std::net::Ipv6Addr;
use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::Micros;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::conn::{SocketOptions, SocketOverrides, State};
use whimbrel_tcp::{CloseReason, DropReason, Tunables};
use whimbrel_wire::tcp::TcpHeader;
use whimbrel_wire::{Address, Endpoint};

use super::hosts::{
    BOTH, DELAY, Hosts, Over, client_addr, config, drain, events, host, send, server_addr,
    server_at,
};
use super::packets::sent;
use crate::shard::{ConnectError, ListenError};
use crate::{Event, InterfaceAddress, Recv, RxFrame, Shard};

#[test]
fn connection_opens_carries_data_and_closes_without_trace() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(over, 8);
        let client = hosts.client.connect(server_at(over), None).expect("a free port");
        hosts.run_until_quiet();
        assert_eq!(events(&mut hosts.client), [Event::Connected(client)]);
        assert_eq!(events(&mut hosts.server), [Event::Accepted(listener)]);
        let server = hosts.server.accept(listener).expect("a complete connection");
        assert_eq!(hosts.server.state(server), Some(State::Established));

        send(&mut hosts.client, client, b"question");
        hosts.run_until_quiet();
        assert_eq!(events(&mut hosts.server), [Event::Readable(server)]);
        assert_eq!(drain(&mut hosts.server, server), (b"question".to_vec(), Recv::Pending));
        send(&mut hosts.server, server, b"answer");
        hosts.server.close(server);
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.client, client), (b"answer".to_vec(), Recv::End));
        hosts.client.close(client);
        hosts.run_until_quiet();

        // The server closed first: it waits, and the client holds nothing.
        assert_eq!(hosts.server.census().time_wait, 1);
        assert_eq!(hosts.client.census().connections, 0);
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_thousand_connections_in_sequence_leave_nothing_behind() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    for _ in 0..1_000 {
        let (client, server) = hosts.connected(Over::V4, listener);
        send(&mut hosts.client, client, b"ping");
        hosts.client.shutdown(client);
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.server, server), (b"ping".to_vec(), Recv::End));
        hosts.server.close(server);
        hosts.run_until_quiet();
        hosts.client.close(client);
    }
    assert_eq!(hosts.client.counters().retrans_segs + hosts.server.counters().retrans_segs, 0);
    assert_eq!(hosts.server.counters().passive_opens, 1_000);
    hosts.assert_no_leaks();
}

#[test]
fn a_hundred_connections_at_once_each_keep_their_data() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V6, 128);
    let clients: Vec<_> = (0..100)
        .map(|_| hosts.client.connect(server_at(Over::V6), None).expect("a free port"))
        .collect();
    hosts.run_until_quiet();
    for (number, client) in clients.iter().enumerate() {
        send(&mut hosts.client, *client, number.to_string().as_bytes());
    }
    hosts.run_until_quiet();
    let mut numbers: Vec<usize> = Vec::new();
    while let Some(server) = hosts.server.accept(listener) {
        let (text, _) = drain(&mut hosts.server, server);
        numbers.push(String::from_utf8(text).expect("digits").parse().expect("a number"));
        hosts.server.close(server);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    hosts.run_until_quiet();
    clients.into_iter().for_each(|client| hosts.client.close(client));
    hosts.assert_no_leaks();
}

#[test]
fn nobody_listening_refuses_at_once() {
    let mut hosts = Hosts::new();
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Refused)]);
    assert_eq!(hosts.server.counters().dropped(DropReason::NoSocket), 1);
    let attempt = hosts.client.attempt(client).expect("it is held");
    assert_eq!((attempt.syns, attempt.challenges), (1, 0));
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn nobody_answering_times_out_after_the_schedule() {
    let mut hosts = Hosts::new();
    hosts.lose = |_| true;
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run(Duration::from_secs(122));
    assert_eq!(events(&mut hosts.client), []);
    hosts.run(Duration::from_secs(2));
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::TimedOut)]);
    assert_eq!(hosts.client.counters().syn_retrans, 6);
    let attempt = hosts.client.attempt(client).expect("it is held");
    assert_eq!((attempt.syns, attempt.challenges), (7, 0));
    assert_eq!(attempt.lasted.as_secs(), 123);
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn connect_timeout_may_end_before_first_syn_repeat() {
    for (millis, syns) in [(300, 1), (1_000, 1), (1_500, 2), (3_500, 3)] {
        let connect_timeout = Duration::from_millis(millis);
        let mut hosts = Hosts::with(&Tunables { connect_timeout, ..Tunables::default() });
        hosts.lose = |_| true;
        let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
        hosts.run(Duration::from_millis(millis - 2));
        assert_eq!(events(&mut hosts.client), []);
        hosts.run(Duration::from_millis(4));
        assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::TimedOut)]);
        assert_eq!(hosts.client.attempt(client).expect("it is held").syns, syns);
        hosts.client.close(client);
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_smaller_receive_buffer_costs_nobody_a_syn() {
    let mut hosts = Hosts::new();
    hosts.lose = |_| true;
    let options = SocketOptions { recv_size: 4_096.into(), ..SocketOptions::default() };
    let client = hosts.client.connect_with(server_at(Over::V4), None, &options);
    let client = client.expect("a free port");
    hosts.run(Duration::from_millis(1_100));
    assert_eq!(hosts.client.counters().syn_retrans, 1, "the first time-out is one");
    hosts.run(Duration::from_secs(123));
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::TimedOut)]);
    assert_eq!(hosts.client.counters().syn_retrans, 6);
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn handshakes_survive_the_loss_of_each_of_their_segments() {
    for lose in [|n| n == 1, |n| n == 2, |n| n == 3] as [fn(u64) -> bool; 3] {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(Over::V4, 8);
        hosts.lose = lose;
        let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
        send(&mut hosts.client, client, b"early");
        hosts.run(Duration::from_secs(4));
        let server = hosts.server.accept(listener).expect("a complete connection");
        assert_eq!(drain(&mut hosts.server, server).0, b"early");
        hosts.server.close(server);
        hosts.run_until_quiet();
        hosts.client.close(client);
        hosts.assert_no_leaks();
    }
}

#[test]
fn full_accept_queue_delays_next_connection() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 1);
    let first = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    let second = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    assert!(hosts.server.counters().listen_overflows > 0);
    let accepted = hosts.server.accept(listener).expect("the first");
    hosts.run(Duration::from_secs(4));
    let then = hosts.server.accept(listener).expect("the second, at its SYN's next try");
    for handle in [accepted, then] {
        hosts.server.abort(handle);
    }
    for handle in [first, second] {
        hosts.client.close(handle);
    }
    hosts.assert_no_leaks();
}

#[test]
fn a_listener_that_closes_resets_who_was_not_accepted() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    events(&mut hosts.client);
    hosts.server.close_listener(listener);
    hosts.run_until_quiet();
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Reset)]);
    assert_eq!(hosts.server.census().connections, 0);
    hosts.client.close(client);
    hosts.assert_no_leaks();
    assert_eq!(hosts.server.census().listeners, 0);
}

#[test]
fn a_listener_that_closes_resets_however_many_were_not_accepted() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 1_500);
    let mut clients = Vec::new();
    for number in 1..=1_500 {
        clients.push(hosts.client.connect(server_at(Over::V4), None).expect("a free port"));
        if number % 500 == 0 {
            hosts.run_until_quiet();
        }
    }
    hosts.server.close_listener(listener);
    hosts.run_until_quiet();
    let counters = hosts.server.counters();
    assert_eq!((counters.out_rsts, counters.replies_refused), (1_500, 0));
    for client in clients {
        assert_eq!(hosts.client.state(client), Some(State::Closed));
        hosts.client.close(client);
    }
    hosts.assert_no_leaks();
}

#[test]
fn whoever_listens_now_is_found_whom_the_last_syn_was_for() {
    let mut hosts = Hosts::new();
    let exact = server_at(Over::V4);
    let any = Endpoint::new(Address::from_v4_bytes([0; 4]), exact.port);
    let mut held = Vec::new();
    let mut opens_at = |hosts: &mut Hosts, listener| {
        let client = hosts.client.connect(exact, None).expect("a free port");
        hosts.run_until_quiet();
        let server = hosts.server.accept(listener).expect("it is whom the SYN was for");
        held.push((client, server));
    };
    let at_any = hosts.server.listen(any, 8).unwrap();
    opens_at(&mut hosts, at_any);
    let at_exact = hosts.server.listen(exact, 8).unwrap();
    opens_at(&mut hosts, at_exact);
    opens_at(&mut hosts, at_exact);
    hosts.server.close_listener(at_exact);
    opens_at(&mut hosts, at_any);
    hosts.server.close_listener(at_any);
    let refused = hosts.client.connect(exact, None).expect("a free port");
    hosts.run_until_quiet();
    assert_eq!(hosts.client.state(refused), Some(State::Closed), "the listener is gone");
    hosts.client.close(refused);
    for (client, server) in held {
        hosts.client.abort(client);
        hosts.server.abort(server);
    }
    hosts.assert_no_leaks();
}

#[test]
fn a_third_segment_whose_listener_closed_is_refused_at_once() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run(DELAY);
    assert_eq!(hosts.server.census().syn_entries, 1);
    hosts.server.close_listener(listener);
    hosts.run(3 * DELAY);
    let connected = Event::Connected(client);
    assert_eq!(
        events(&mut hosts.client),
        [connected, Event::Closed(client, CloseReason::Reset)],
        "RFC 9293 3.10.7.1: no listener is there"
    );
    let counters = hosts.server.counters();
    assert_eq!((counters.attempt_fails, counters.dropped(DropReason::NoSocket)), (1, 1));
    assert_eq!((hosts.server.census().syn_entries, hosts.server.census().listeners), (0, 0));
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn listener_completes_handshakes_of_its_predecessor() {
    // The client repeats its SYN before the clock would have found the first entry without a listener.
    let hasty = Tunables { initial_rto: Micros::from_millis(500), ..Tunables::default() };
    let server = host(server_addr, 2, &Tunables::default());
    let mut hosts = Hosts::of(host(client_addr, 1, &hasty), server);
    let before = hosts.listen(Over::V4, 8);
    hosts.lose = |n| n == 2;
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run(Duration::from_millis(250));
    hosts.server.close_listener(before);
    let listener = hosts.listen(Over::V4, 8);
    hosts.run(Duration::from_millis(350));
    assert_eq!(hosts.client.state(client), Some(State::Established));
    let server = hosts.server.accept(listener).expect("complete");
    hosts.client.abort(client);
    hosts.server.abort(server);
    hosts.assert_no_leaks();
}

#[test]
fn half_open_entries_that_nobody_completes_go_by_themselves() {
    let mut hosts = Hosts::new();
    hosts.listen(Over::V4, 8);
    hosts.lose = |n| n > 1;
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run(Duration::from_secs(1));
    assert_eq!(hosts.server.census().syn_entries, 1);
    hosts.client.close(client);
    hosts.run(Duration::from_secs(64));
    assert_eq!(hosts.server.counters().syn_timeouts, 1);
    hosts.assert_no_leaks();
}

#[test]
fn errors_say_what_was_wrong() {
    let mut hosts = Hosts::new();
    hosts.listen(Over::V4, 8);
    let at = server_at(Over::V4);
    assert_eq!(hosts.server.listen(at, 8), Err(ListenError::InUse(at)));
    let foreign = Endpoint::new(client_addr(Over::V4), 80);
    assert_eq!(hosts.server.listen(foreign, 8), Err(ListenError::NotLocal(foreign)));
    let beyond = Endpoint::new(Address::from_v4_bytes([192, 0, 2, 1]), 80);
    assert_eq!(hosts.client.connect(beyond, None), Err(ConnectError::NoRoute(beyond)));
    let bound = Endpoint::new(client_addr(Over::V4), 4_000);
    let first = hosts.client.connect(at, Some(bound)).expect("the port is free");
    assert_eq!(
        hosts.client.connect(at, Some(bound)),
        Err(ConnectError::InUse { local: bound, remote: at })
    );
    hosts.client.abort(first);
}

#[test]
fn all_ports_serve_one_server_and_error_names_limit() {
    let tunables = Tunables { port_first: 50_000, port_last: 50_009, ..Tunables::default() };
    let mut hosts = Hosts::with(&tunables);
    let at = server_at(Over::V4);
    let clients: Vec<_> = (0..10).map(|_| hosts.client.connect(at, None)).collect();
    assert!(clients.iter().all(Result::is_ok));
    let error = hosts.client.connect(at, None).expect_err("all taken");
    assert!(error.to_string().contains("from 50000 to 50009 10 are in use"), "{error}");
    let elsewhere = Endpoint::new(at.addr, 81);
    let other = hosts.client.connect(elsewhere, None).expect("a port serves many peers");
    for client in clients.into_iter().flatten().chain([other]) {
        hosts.client.abort(client);
    }
    hosts.assert_no_leaks();
}

#[test]
fn one_can_listen_on_a_port_while_a_connection_opens_from_it() {
    let mut hosts = Hosts::new();
    hosts.listen(Over::V4, 8);
    let here = Endpoint::new(client_addr(Over::V4), 4_000);
    let opening = hosts.client.connect(server_at(Over::V4), Some(here)).expect("a free port");
    let listener = hosts.client.listen(here, 8).expect("a free port");
    assert_eq!(hosts.client.state(opening), Some(State::SynSent));
    let incoming = hosts.server.connect(here, None).expect("a free port");
    hosts.run_until_quiet();
    let accepted = hosts.client.accept(listener).expect("a complete connection");
    for handle in [opening, accepted] {
        assert_eq!(hosts.client.state(handle), Some(State::Established));
    }
    assert_eq!(hosts.server.state(incoming), Some(State::Established));
}

#[test]
fn connection_keeps_the_address_it_began_with() {
    let second = |over| match over {
        Over::V4 => Address::from_v4_bytes([10, 0, 0, 7]),
        Over::V6 => Address::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7)),
    };
    for over in BOTH {
        let mut config = config(client_addr, 1, &Tunables::default());
        let prefix_len = if over == Over::V4 { 24 } else { 64 };
        config.addresses.push(InterfaceAddress { addr: second(over), prefix_len });
        let client = Shard::new(config).expect("a valid configuration");
        let mut hosts = Hosts::of(client, host(server_addr, 2, &Tunables::default()));
        let listener = hosts.listen(over, 8);
        let from_second = Some(Endpoint::new(second(over), 0));
        let client = hosts.client.connect(server_at(over), from_second).expect("a free port");
        hosts.run_until_quiet();
        let server = hosts.server.accept(listener).expect("a complete connection");
        send(&mut hosts.client, client, b"question");
        hosts.run_until_quiet();
        send(&mut hosts.server, server, b"answer");
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.server, server).0, b"question");
        assert_eq!(drain(&mut hosts.client, client).0, b"answer");
        // And the one that another chose.
        let there = Endpoint::new(second(over), 81);
        let listener = hosts.client.listen(there, 8).expect("the port is free");
        let caller = hosts.server.connect(there, None).expect("a free port");
        hosts.run_until_quiet();
        let called = hosts.client.accept(listener).expect("a complete connection");
        send(&mut hosts.client, called, b"welcome");
        hosts.run_until_quiet();
        assert_eq!(drain(&mut hosts.server, caller).0, b"welcome");
        for handle in [client, called] {
            hosts.client.close(handle);
        }
        for handle in [server, caller] {
            hosts.server.close(handle);
        }
        hosts.run_until_quiet();
        for shard in [&hosts.client, &hosts.server] {
            assert_eq!(shard.counters().dropped(DropReason::NoSocket), 0, "a stranger's address");
        }
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_burst_is_processed_whole_before_any_of_it_is_acknowledged() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    send(&mut hosts.client, client, &[7; 4 * 1_448]);
    let mut packets = sent(&mut hosts.client);
    assert_eq!(packets.len(), 4);
    // The first comes last: what came before it was out of order, and is acknowledged each.
    packets.rotate_left(1);
    let frames: Vec<_> = packets.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
    hosts.server.rx(hosts.now, &frames);
    let acks: Vec<_> = sent(&mut hosts.server)
        .iter()
        .map(|packet| TcpHeader::parse(&packet[20..]).expect("a TCP header").0.ack)
        .collect();
    let end = hosts.client.snapshot(client).expect("it is there").snd.max;
    assert!(!acks.is_empty() && acks.iter().all(|ack| *ack == end), "{acks:?}, not {end:?}");
    assert_eq!(drain(&mut hosts.server, server).0.len(), 4 * 1_448);
}

/// Options of an application are public API: no value of them may end the process, or never end.
#[test]
fn least_mss_and_most_attempts_are_clamped() {
    let overrides =
        SocketOverrides { max_seg: Some(0), retries: Some(u8::MAX), ..SocketOverrides::default() };
    let options = SocketOptions { overrides, ..SocketOptions::default() };
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    assert!(hosts.server.set_listener_options(listener, &options));
    let client = hosts.client.connect_with(server_at(Over::V4), None, &options);
    let client = client.expect("a free port");
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("a complete connection");
    let least = Tunables::default().least_mss;
    for (shard, handle) in [(&hosts.client, client), (&hosts.server, server)] {
        let told = shard.snapshot(handle).map(|it| it.advertised_mss);
        assert_eq!(told, Some(least));
    }
    send(&mut hosts.client, client, &[7; 500]);
    hosts.run_until_quiet();
    assert_eq!(drain(&mut hosts.server, server), (vec![7; 500], Recv::Pending));
    // The rest is not heard, and no side waits for ever.
    hosts.lose = |_| true;
    send(&mut hosts.client, client, &[7; 500]);
    hosts.run(Duration::from_secs(6 * 3_600));
    let told = hosts.client.snapshot(client).and_then(|it| it.closed);
    assert_eq!(told, Some(CloseReason::TimedOut));
    hosts.client.close(client);
    hosts.server.abort(server);
    hosts.assert_no_leaks();
}
