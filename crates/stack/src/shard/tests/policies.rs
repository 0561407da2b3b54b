//! Policies take effect: a server that treats TIME-WAIT as another stack does, ports in another
//! order, SYNs by another schedule.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::Secrets;
use whimbrel_tcp::{CloseReason, DropReason, Tunables};
use whimbrel_wire::Endpoint;

use super::hosts::{Hosts, Over, client_addr, config, events, host, server_addr, server_at};
use crate::shard::ConfigError;
use crate::{Capabilities, Event, Handle, ListenerId, Medium, Shard, ShardConfig, Steering};

fn with(settings: &[(&str, &str)]) -> Tunables {
    let mut tunables = Tunables::default();
    for (name, value) in settings {
        tunables.set_by_name(name, value).unwrap_or_else(|error| panic!("{error}"));
    }
    tunables
}

/// A server by these rules that holds a connection from port 4,000 in TIME-WAIT for 4 s, without
/// timestamps.
fn waiting(settings: &[(&str, &str)]) -> (Hosts, ListenerId) {
    let mut hosts = Hosts::with(&with(&[("tcp_timestamps", "off")]));
    let common = [("tcp_timestamps", "off"), ("msl", "2s")];
    let settings: Vec<_> = common.iter().chain(settings).copied().collect();
    hosts.server = host(server_addr, 2, &with(&settings));
    let listener = hosts.listen(Over::V4, 8);
    let client = again(&mut hosts);
    hosts.run(Duration::from_millis(5));
    let server = hosts.server.accept(listener).expect("connected");
    hosts.server.close(server);
    hosts.run(Duration::from_millis(5));
    hosts.client.close(client);
    hosts.run(Duration::from_millis(5));
    assert_eq!(hosts.server.census().time_wait, 1);
    (hosts, listener)
}

/// The client connects from the same port. Its ISN clock has gone 3.9 bytes/us further.
fn again(hosts: &mut Hosts) -> Handle {
    let bound = Some(Endpoint::new(client_addr(Over::V4), 4_000));
    hosts.client.set_now(hosts.now);
    hosts.client.connect(server_at(Over::V4), bound).expect("a free port")
}

/// Returns the time until the client is connected, ms.
fn connects_after(hosts: &mut Hosts, listener: ListenerId) -> Option<u64> {
    let client = again(hosts);
    let begin = hosts.now;
    let mut waited = None;
    while waited.is_none() && hosts.now < begin + Duration::from_secs(10) {
        hosts.run(Duration::from_millis(1));
        let connected = events(&mut hosts.client).contains(&Event::Connected(client));
        waited = connected.then(|| (hosts.now.as_nanos() - begin.as_nanos()) / 1_000_000);
    }
    hosts.run_until_quiet();
    hosts.client.abort(client);
    hosts.run_until_quiet();
    while let Some(server) = hosts.server.accept(listener) {
        hosts.server.close(server);
    }
    waited
}

#[test]
fn lwip_profile_refuses_near_syn_and_delays_later_one() {
    let lwip = [("tw.syn", "never"), ("tw.answer", "reset-in-window"), ("tw.rst", "ignore")];
    let (mut hosts, listener) = waiting(&lwip);
    let client = again(&mut hosts);
    hosts.run(Duration::from_millis(5));
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Refused)]);
    assert_eq!(hosts.server.counters().challenge_acks, 0, "a reset, 50 kB above RCV.NXT");
    hosts.client.close(client);
    hosts.run(Duration::from_millis(500));
    let waited = connects_after(&mut hosts, listener).expect("TIME-WAIT ends");
    assert!((7_000..7_100).contains(&waited), "{waited} ms: the third repetition");
    assert!(hosts.server.counters().dropped(DropReason::TimeWaitReset) > 0);
    hosts.assert_no_leaks();
}

#[test]
fn a_server_that_keeps_silent_keeps_its_client_waiting() {
    let (mut hosts, listener) = waiting(&[("tw.syn", "never"), ("tw.answer", "silence")]);
    let waited = connects_after(&mut hosts, listener).expect("TIME-WAIT ends");
    assert!((7_000..7_100).contains(&waited), "{waited} ms: the third repetition");
    let counters = hosts.server.counters();
    assert_eq!(counters.dropped(DropReason::TimeWaitSyn), 3);
    assert_eq!((counters.challenge_acks, counters.time_wait_acks_skipped), (0, 0));
    hosts.assert_no_leaks();
}

#[test]
fn reset_ends_time_wait_and_next_syn_opens() {
    for rst in ["challenged", "at-rcv-nxt", "end"] {
        let (mut hosts, listener) = waiting(&[("tw.syn", "never"), ("tw.rst", rst)]);
        let waited = connects_after(&mut hosts, listener).expect("the record went");
        // SYN and challenge, reset and as long again, SYN and SYN-ACK.
        assert!((6..=7).contains(&waited), "{rst}: {waited} ms");
        assert_eq!(hosts.server.counters().time_wait_killed, 1, "{rst}");
        hosts.assert_no_leaks();
    }
}

#[test]
fn syn_in_time_wait_without_listener_is_challenged() {
    let (mut hosts, listener) = waiting(&[]);
    hosts.server.close_listener(listener);
    let client = again(&mut hosts);
    // SYN and challenge, reset and as long again, SYN and reset.
    hosts.run(Duration::from_millis(7));
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Refused)]);
    let counters = hosts.server.counters();
    assert_eq!((counters.time_wait_without_listener, counters.time_wait_killed), (1, 1));
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn client_waits_for_schedule_without_syn_after_reset() {
    let (mut hosts, listener) = waiting(&[("tw.syn", "never")]);
    hosts.client.set_tunable("syn.after_challenge", "off").expect("a tunable");
    let waited = connects_after(&mut hosts, listener).expect("the record went");
    assert!((1_000..1_100).contains(&waited), "{waited} ms");
    hosts.assert_no_leaks();
}

#[test]
fn client_refused_by_time_wait_retries_once_and_says_why() {
    let never = [("tw.syn", "never"), ("tw.rst", "ignore"), ("msl", "60s")];
    let (mut hosts, _) = waiting(&never);
    hosts.client.set_tunable("tcp_syn_retries", "2").expect("a tunable");
    let client = again(&mut hosts);
    hosts.run(Duration::from_secs(8));
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::TimedOut)]);
    let attempt = hosts.client.attempt(client).expect("it is held");
    // One SYN more than the schedule has; it comes too soon to be challenged again.
    assert_eq!((attempt.syns, attempt.challenges), (4, 3));
    assert!((7_000..=8_000).contains(&attempt.lasted.as_millis()), "{:?}", attempt.lasted);
    assert_eq!(hosts.client.counters().syn_challenged, 3);
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn by_sequence_and_as_linux_a_later_syn_is_accepted_at_once() {
    for syn in ["rfc6191", "by-sequence", "linux"] {
        let (mut hosts, listener) = waiting(&[("tw.syn", syn)]);
        assert_eq!(connects_after(&mut hosts, listener), Some(2), "{syn}");
        hosts.assert_no_leaks();
    }
}

#[test]
fn illumos_refuses_within_the_window_and_accepts_beyond() {
    let illumos = [("tw.syn", "illumos"), ("tw.answer", "reset-in-window")];
    let (mut hosts, listener) = waiting(&illumos);
    let client = again(&mut hosts);
    hosts.run(Duration::from_millis(5));
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Refused)]);
    hosts.client.close(client);
    hosts.run(Duration::from_secs(1));
    assert_eq!(connects_after(&mut hosts, listener), Some(2));
    hosts.assert_no_leaks();
}

#[test]
fn ports_come_in_the_order_that_is_asked_for() {
    let settings = [("ports", "sequential"), ("ip_local_port_range", "50000 50002")];
    let mut hosts = Hosts::with(&with(&settings));
    let ports = [80, 81, 80].map(|port| {
        let at = Endpoint::new(server_addr(Over::V4), port);
        let client = hosts.client.connect(at, None).expect("a free port");
        let flow = hosts.client.flow(client).expect("it is held");
        hosts.client.abort(client);
        flow.local.port
    });
    assert_eq!(ports, [50_000, 50_001, 50_002]);
    hosts.assert_no_leaks();
}

#[test]
fn a_syn_is_repeated_when_its_schedule_says() {
    let settings = [("syn.retry", "1s,1.2s,3s"), ("tcp_syn_retries", "3")];
    let mut hosts = Hosts::with(&with(&settings));
    hosts.lose = |_| true;
    let client = hosts.client.connect(server_at(Over::V4), None).expect("a free port");
    let mut sent = Vec::new();
    for millis in 0..9_000 {
        let before = hosts.carried;
        hosts.run(Duration::from_millis(1));
        if hosts.carried > before {
            sent.push(millis);
        }
    }
    let near = |at: u64, due: u64| at.abs_diff(due) < 5;
    assert_eq!(sent.len(), 4, "{sent:?}");
    assert!(sent.iter().zip([0, 1_000, 2_200, 5_200]).all(|(at, due)| near(*at, due)), "{sent:?}");
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::TimedOut)]);
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn tunables_out_of_range_make_no_shard() {
    let config = ShardConfig {
        tunables: Tunables { port_first: 2, port_last: 1, ..Tunables::default() },
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1500),
        addresses: Vec::new(),
        routes: Vec::new(),
    };
    let error = Shard::new(config).expect_err("no port from 2 to 1");
    assert!(matches!(error, ConfigError::Tunable(_)));
    assert!(error.to_string().starts_with("ports.last=1: give a port from 2"), "{error}");
}

#[test]
fn ports_come_home_where_the_queue_is_computed() {
    let mut config = config(client_addr, 1, &Tunables::default());
    config.capabilities.steering = Steering::Computable { queue: 2, queues: 5 };
    let mut shard = Shard::new(config).unwrap();
    for _ in 0..50 {
        let handle = shard.connect(server_at(Over::V4), None).unwrap();
        let flow = shard.flow(handle).unwrap();
        assert_eq!(((flow.local.port ^ flow.remote.port) >> 1) % 5, 2, "{flow:?}");
        shard.abort(handle);
    }
}
