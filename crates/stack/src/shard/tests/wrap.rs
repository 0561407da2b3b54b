//! Virtual time passes 2^31 and 2^32 ms and us, with connections and TIME-WAITs alive.

use std::time::Duration;

use whimbrel_base::Instant;
use whimbrel_tcp::DropReason;
use whimbrel_tcp::conn::State;
use whimbrel_wire::Endpoint;

use super::hosts::{Hosts, Over, client_addr, drain, events, send, server_at};
use crate::{Handle, ListenerId};

/// A connection from a port of its own, which one side closes first; no side waits for it.
fn talk(hosts: &mut Hosts, listener: ListenerId, port: u16, client_first: bool) {
    let local = Some(Endpoint::new(client_addr(Over::V4), port));
    hosts.client.set_now(hosts.now);
    let client = hosts.client.connect(server_at(Over::V4), local).expect("a free port");
    hosts.run(Duration::from_millis(3));
    assert_eq!(hosts.client.state(client), Some(State::Established), "no delay");
    let server = hosts.server.accept(listener).expect("complete");
    let ends = [(0, client), (1, server)];
    let [first, second] = if client_first { ends } else { [ends[1], ends[0]] };
    let close = |hosts: &mut Hosts, (side, handle): (usize, Handle)| {
        let host = if side == 0 { &mut hosts.client } else { &mut hosts.server };
        host.close(handle);
    };
    close(hosts, first);
    hosts.run(Duration::from_millis(3));
    close(hosts, second);
    hosts.run(Duration::from_millis(3));
}

/// Bytes there and back.
fn exchange(hosts: &mut Hosts, [client, server]: [Handle; 2], round: u8) {
    send(&mut hosts.client, client, &[round; 3_000]);
    hosts.run(Duration::from_millis(50));
    assert_eq!(drain(&mut hosts.server, server).0, [round; 3_000]);
    send(&mut hosts.server, server, &[round; 2_000]);
    hosts.run(Duration::from_millis(50));
    assert_eq!(drain(&mut hosts.client, client).0, [round; 2_000]);
}

/// 12 s before a moment until 24 s after it.
fn across(moment: Instant) {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    hosts.now = Instant::from_nanos(moment.as_nanos() - 12_000_000_000);
    hosts.client.set_now(hosts.now);
    hosts.server.set_now(hosts.now);
    let (client, server) = hosts.connected(Over::V4, listener);
    // One that says nothing for all the time, but is there at its end.
    let (idle, idle_there) = hosts.connected(Over::V4, listener);
    for round in 0..120 {
        exchange(&mut hosts, [client, server], round);
        // Each port comes back every second, in TIME-WAIT at either side in turn.
        let (port, client_first) = (4_000 + u16::from(round % 10), round % 20 < 10);
        talk(&mut hosts, listener, port + 100 * u16::from(client_first), client_first);
        hosts.run(Duration::from_millis(90));
    }
    assert!(hosts.now > moment + Duration::from_secs(10));
    for host in [&hosts.client, &hosts.server] {
        let counters = host.counters();
        let again = (counters.retrans_segs, counters.loss_probes, counters.timeouts);
        assert_eq!((again, counters.challenge_acks), ((0, 0, 0), 0));
        assert_eq!(counters.dropped(DropReason::Paws), 0);
        assert_eq!(host.census().time_wait, 10);
    }
    assert_eq!(hosts.client.counters().time_wait_taken_over, 50);
    assert_eq!(hosts.server.counters().time_wait_reused_by_timestamp, 50);
    // The last ones wait for 20 s, and no longer.
    hosts.run(Duration::from_millis(16_000));
    assert!(hosts.client.census().time_wait + hosts.server.census().time_wait > 0);
    hosts.run(Duration::from_millis(5_000));
    assert_eq!(hosts.client.census().time_wait + hosts.server.census().time_wait, 0);
    exchange(&mut hosts, [idle, idle_there], 7);
    for handle in [client, idle] {
        hosts.client.close(handle);
    }
    hosts.run_until_quiet();
    for handle in [server, idle_there] {
        hosts.server.close(handle);
    }
    hosts.run_until_quiet();
    events(&mut hosts.client);
    hosts.assert_no_leaks();
}

#[test]
fn nothing_is_late_early_or_refused_where_milliseconds_wrap() {
    across(Instant::from_millis(1 << 32));
}

#[test]
fn nor_half_a_circle_before() {
    across(Instant::from_millis(1 << 31));
}

#[test]
fn nor_where_microseconds_wrap() {
    across(Instant::from_nanos((1 << 32) * 1_000));
}

#[test]
fn nor_half_a_circle_of_microseconds_before() {
    across(Instant::from_nanos((1 << 31) * 1_000));
}
