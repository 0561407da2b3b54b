//! Other rules for a host that runs, connections dropped by name, paths forgotten.

use std::string::ToString;
use std::time::Duration;

use whimbrel_tcp::conn::State;
use whimbrel_tcp::{CloseReason, Tunables};
use whimbrel_wire::{Endpoint, Flow};

use super::hosts::{BOTH, Hosts, Over, client_addr, events, send, server_addr, server_at};
use crate::shard::SocketState;
use crate::{Event, Recv};

#[test]
fn a_tunable_that_is_changed_holds_from_then_on() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    hosts.client.set_tunable("net.ipv4.tcp_timestamps", "0").expect("it can change");
    hosts.client.set_tunable("net.inet.ip.ttl", "9").expect("an alias");
    let (client, server) = hosts.connected(Over::V4, listener);
    assert!(!hosts.client.snapshot(client).expect("connected").timestamps);
    assert_eq!(hosts.client.tunables().hop_limit, 9);
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn a_shorter_msl_ends_records_that_wait_already() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.client.close(client);
    hosts.run_until_quiet();
    hosts.server.close(server);
    hosts.run_until_quiet();
    assert_eq!(hosts.client.census().time_wait, 1);
    hosts.client.set_tunable("msl", "500ms").expect("it can change");
    hosts.run(Duration::from_secs(2));
    assert_eq!(hosts.client.census().time_wait, 0);
    hosts.assert_no_leaks();
}

#[test]
fn half_open_entries_follow_their_rules_at_once() {
    let mut hosts = Hosts::new();
    hosts.listen(Over::V4, 8);
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.lose = |number| number > 1;
    hosts.run(Duration::from_millis(100));
    assert_eq!(hosts.server.census().syn_entries, 1);
    hosts.server.set_tunable("net.ipv4.tcp_synack_retries", "0").expect("it can change");
    hosts.run(Duration::from_millis(1_500));
    assert_eq!(hosts.server.census().syn_entries, 0);
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn what_cannot_change_is_refused_by_name_and_nothing_changes() {
    let mut hosts = Hosts::new();
    let before = hosts.client.tunables().clone();
    for (name, value, says) in [
        ("isn", "host-wide", "isn cannot be changed"),
        ("net.inet.ip.portrange.randomized", "1", "ports cannot be changed"),
        ("net.ipv4.tcp_retries2", "0", "net.ipv4.tcp_retries2=0"),
        ("ports.first", "65000", "65000"),
        ("no.such.thing", "1", "no tunable is named"),
    ] {
        let refused = hosts.client.set_tunable(name, value);
        let error = refused.expect_err(name).to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(*hosts.client.tunables(), before);
    }
    let fixed = Tunables { isn_step: 1, hop_limit: 1, ..before.clone() };
    assert!(hosts.client.retune(fixed).is_err());
    assert_eq!(*hosts.client.tunables(), before);
    hosts.assert_no_leaks();
}

#[test]
fn abort_flow_notifies_both_applications() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        events(&mut hosts.client);
        events(&mut hosts.server);
        let flow = hosts.client.flow(client).expect("a connection");
        assert!(hosts.client.abort_flow(&flow));
        assert!(!hosts.client.abort_flow(&flow), "it is gone");
        hosts.run_until_quiet();
        let closed = |handle, reason| [Event::Closed(handle, reason)];
        assert_eq!(events(&mut hosts.client), closed(client, CloseReason::Aborted));
        assert_eq!(events(&mut hosts.server), closed(server, CloseReason::Reset));
        assert_eq!(hosts.client.recv(client), Recv::Closed(CloseReason::Aborted));
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn records_of_every_kind_can_be_dropped() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    let flow = hosts.client.flow(client).expect("a connection");
    hosts.client.close(client);
    hosts.run_until_quiet();
    hosts.server.close(server);
    hosts.run_until_quiet();
    assert!(hosts.client.abort_flow(&flow));
    assert_eq!(hosts.client.census().time_wait, 0);

    hosts.lose = |number| number > 0;
    let from = Endpoint::new(client_addr(Over::V4), 4_000);
    let second = hosts.client.connect(server_at(Over::V4), Some(from)).expect("a free port");
    assert_eq!(hosts.client.state(second), Some(State::SynSent));
    assert!(hosts.client.abort_flow(&Flow { local: from, remote: server_at(Over::V4) }));
    assert_eq!(hosts.client.state(second), Some(State::Closed));
    hosts.client.close(second);
    hosts.run_until_quiet();

    let absent = Flow { local: from, remote: Endpoint::new(server_addr(Over::V4), 9) };
    assert!(!hosts.client.abort_flow(&absent));
    hosts.assert_no_leaks();
}

#[test]
fn all_that_are_in_a_state_are_dropped_and_no_others() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (one, its) = hosts.connected(Over::V4, listener);
    let (other, others) = hosts.connected(Over::V4, listener);
    hosts.client.shutdown(other);
    hosts.run_until_quiet();
    assert_eq!(hosts.client.state(other), Some(State::FinWait2));
    assert_eq!(hosts.client.abort_state(SocketState::Listen), 0);
    assert_eq!(hosts.client.abort_state(SocketState::Established), 1);
    assert_eq!(hosts.client.state(one), Some(State::Closed));
    assert_eq!(hosts.client.state(other), Some(State::FinWait2));
    assert_eq!(hosts.client.abort_state(SocketState::FinWait2), 1);
    hosts.run_until_quiet();
    for (client, server) in [(one, its), (other, others)] {
        hosts.client.close(client);
        hosts.server.close(server);
    }
    hosts.assert_no_leaks();
}

#[test]
fn a_half_open_entry_is_dropped_in_silence() {
    let mut hosts = Hosts::new();
    hosts.listen(Over::V4, 8);
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.lose = |number| number > 1;
    hosts.run(Duration::from_millis(100));
    let flow = hosts.client.flow(client).expect("under way");
    assert!(hosts.server.abort_flow(&Flow { local: flow.remote, remote: flow.local }));
    assert_eq!(hosts.server.census().syn_entries, 0);
    assert_eq!(hosts.server.counters().out_rsts, 0);
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn a_connection_that_nobody_accepted_can_be_dropped_too() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    hosts.run_until_quiet();
    let flow = hosts.client.flow(client).expect("connected");
    assert!(hosts.server.abort_flow(&Flow { local: flow.remote, remote: flow.local }));
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("it waits all the same");
    assert_eq!(hosts.server.recv(server), Recv::Closed(CloseReason::Aborted));
    assert_eq!(hosts.client.state(client), Some(State::Closed));
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn what_was_dropped_had_nothing_left_to_send() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    send(&mut hosts.client, client, &[0; 100_000]);
    let flow = hosts.client.flow(client).expect("a connection");
    assert!(hosts.client.abort_flow(&flow));
    hosts.client.close(client);
    hosts.run_until_quiet();
    hosts.server.close(server);
    hosts.assert_no_leaks();
}
