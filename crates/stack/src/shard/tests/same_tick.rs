//! Paths so short that two connections of the same ends share a tick of the timestamp clock.

use std::time::Duration;
use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::conn::State;
use whimbrel_wire::Endpoint;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};

use super::hosts::{Hosts, Over, client_addr, server_at};
use super::packets::{sent, tcp};
use crate::shard::ConnectError;
use crate::{Handle, ListenerId, RxFrame};

/// Both ends of a path that takes no time.
fn hosts(reuse_delay: &str) -> (Hosts, ListenerId) {
    let mut tunables = Tunables::default();
    tunables.set_by_name("tw.reuse_delay", reuse_delay).expect("a time");
    let mut hosts = Hosts::with(&tunables);
    let listener = hosts.listen(Over::V4, 8);
    (hosts, listener)
}

fn connect(hosts: &mut Hosts) -> Result<Handle, ConnectError> {
    let bound = Endpoint::new(client_addr(Over::V4), 4_000);
    hosts.client.set_now(hosts.now);
    hosts.client.connect(server_at(Over::V4), Some(bound))
}

/// Packets cross until there are none; no time goes by. Returns the segments of the client's.
fn cross(hosts: &mut Hosts) -> Vec<TcpHeader> {
    let mut seen = Vec::new();
    loop {
        let (there, back) = (sent(&mut hosts.client), sent(&mut hosts.server));
        if there.is_empty() && back.is_empty() {
            return seen;
        }
        for (packets, to) in [(&there, &mut hosts.server), (&back, &mut hosts.client)] {
            for packet in packets {
                to.rx(hosts.now, &[RxFrame::new(packet, SegMeta::SINGLE)]);
            }
        }
        seen.extend(there.iter().map(|packet| tcp(packet).0));
    }
}

fn tsval(header: &TcpHeader) -> u32 {
    header.options.timestamps.expect("they are on by default").val
}

/// A connection, from SYN to the last acknowledgment. Returns the last segment of the client's.
fn talk(hosts: &mut Hosts, listener: ListenerId, first: First) -> TcpHeader {
    let client = connect(hosts).expect("free");
    cross(hosts);
    let server = hosts.server.accept(listener).expect("complete");
    if first == First::Client {
        hosts.client.close(client);
        cross(hosts);
    }
    hosts.server.close(server);
    let mut seen = cross(hosts);
    if first == First::Server {
        hosts.client.close(client);
        seen = cross(hosts);
    }
    seen.pop().expect("a FIN, or its acknowledgment")
}

/// The successor is whole on both sides, and goes.
fn end(mut hosts: Hosts, listener: ListenerId, client: Handle) {
    let server = hosts.server.accept(listener).expect("complete");
    hosts.client.abort(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

/// The side that closes first, and so waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum First {
    Client,
    Server,
}

/// Three microseconds before the clock turns to `millis`.
fn just_before(millis: u64) -> Instant {
    Instant::from_millis(millis - 1) + Duration::from_micros(997)
}

#[test]
fn syn_is_new_by_number_in_same_tick_and_then_by_time() {
    // SYN and FIN are two numbers; the ISN clock makes four in a microsecond.
    for (later, verdicts) in [(2, [0, 1]), (900, [0, 1]), (1_000, [1, 0])] {
        let (mut hosts, listener) = hosts("1s");
        hosts.now = Instant::from_millis(5);
        talk(&mut hosts, listener, First::Server);
        assert_eq!(hosts.server.census().time_wait, 1);
        hosts.now = hosts.now + Duration::from_micros(later);
        let client = connect(&mut hosts).expect("it does not wait here");
        cross(&mut hosts);
        assert_eq!(hosts.client.state(client), Some(State::Established), "at once");
        assert_eq!(hosts.server.census().time_wait, 0, "nothing is left of the old one");
        let counters = hosts.server.counters();
        let by = [counters.time_wait_reused_by_timestamp, counters.time_wait_reused_by_sequence];
        assert_eq!(by, verdicts, "{later} us later");
        end(hosts, listener, client);
    }
}

#[test]
fn outrun_syn_of_same_tick_is_challenged_and_returns() {
    let (mut hosts, listener) = hosts("1s");
    hosts.now = Instant::from_millis(5);
    talk(&mut hosts, listener, First::Server);
    // No time at all: its number is that of the predecessor's SYN.
    let client = connect(&mut hosts).expect("it does not wait here");
    cross(&mut hosts);
    let counters = hosts.server.counters();
    assert_eq!((counters.time_wait_old_sequence, counters.time_wait_killed), (1, 1));
    assert_eq!(hosts.client.state(client), Some(State::SynSent));
    hosts.run(Duration::from_millis(5));
    assert_eq!(hosts.client.state(client), Some(State::Established));
    assert_eq!(hosts.client.counters().syn_challenged, 1);
    end(hosts, listener, client);
}

#[test]
fn client_reuses_port_only_after_a_tick_of_both_clocks() {
    for (delay, free_at) in [("0", 11), ("1ms", 12), ("2ms", 13)] {
        let (mut hosts, listener) = hosts(delay);
        hosts.now = just_before(11);
        let last = talk(&mut hosts, listener, First::Client);
        assert_eq!(hosts.client.census().time_wait, 1);
        for at in [hosts.now + Duration::from_micros(1), just_before(free_at)] {
            hosts.now = at;
            assert!(matches!(connect(&mut hosts), Err(ConnectError::InUse { .. })), "{delay}");
        }
        hosts.now = Instant::from_millis(free_at);
        let client = connect(&mut hosts).expect("the clocks have ticked");
        let syn = cross(&mut hosts)[0];
        assert_eq!(syn.flags, TcpFlags::SYN);
        assert!(tsval(&syn).wrapping_sub(tsval(&last)).cast_signed() > 0, "RFC 7323 B.2");
        assert_eq!(hosts.client.state(client), Some(State::Established));
        end(hosts, listener, client);
    }
}
