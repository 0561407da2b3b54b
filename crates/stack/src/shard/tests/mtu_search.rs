//! Paths that drop large packets in silence, and what connections to the same host know of them (RFC 4821).

use std::time::Duration;
use std::vec::Vec;

use whimbrel_tcp::conn::PathFinding;

use super::hosts::{BOTH, Hosts, Over, Wire, client_addr, drain, send, server_addr};
use crate::Handle;

const MTU: u16 = 1_300;

/// Sends so much from the client to the server and waits for it.
fn transfer(hosts: &mut Hosts, client: Handle, server: Handle, len: usize) {
    let text: Vec<u8> = (0..len).map(|at| (at ^ (at >> 8)) as u8).collect();
    let (mut sent, mut received) = (0, Vec::new());
    for _ in 0..3_000 {
        let end = text.len().min(sent + 50_000);
        if sent < end {
            sent += send(&mut hosts.client, client, &text[sent..end]);
        }
        hosts.run(Duration::from_millis(10));
        received.extend(drain(&mut hosts.server, server).0);
        if received.len() == len {
            break;
        }
    }
    assert!(received == text, "{} bytes of {len}", received.len());
}

fn mss(hosts: &Hosts, handle: Handle) -> u16 {
    hosts.client.snapshot(handle).expect("it is there").mss
}

#[test]
fn next_connection_begins_with_what_probes_found() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        hosts.wire = Wire::Silent(MTU);
        let listener = hosts.listen(over, 8);
        let (first, then) = hosts.connected(over, listener);
        transfer(&mut hosts, first, then, 400_000);
        let found = mss(&hosts, first);
        let known = hosts.client.path_mtu(&server_addr(over)).expect("a probe was lost");
        let headers = if over == Over::V4 { 52 } else { 72 };
        assert_eq!(known, found + headers);
        assert!(known <= MTU, "{known}");
        // Neither datagrams nor the other host follow a guess.
        let net = &hosts.client.net;
        assert_eq!(net.ip.datagram_mtu(hosts.now, &server_addr(over)), 1_500);
        assert!(!net.ip.path_mtus.has_fragments(hosts.now, &server_addr(over)));
        assert_eq!(hosts.server.path_mtu(&client_addr(over)), None);

        let timeouts = hosts.client.counters().timeouts;
        let (second, last) = hosts.connected(over, listener);
        assert_eq!(mss(&hosts, second), found);
        transfer(&mut hosts, second, last, 100_000);
        assert_eq!(hosts.client.counters().timeouts, timeouts);
        for (one, other) in [(first, then), (second, last)] {
            hosts.client.close(one);
            hosts.server.close(other);
        }
        hosts.assert_no_leaks();
    }
}

#[test]
fn accepted_connection_begins_with_what_probes_found() {
    let mut hosts = Hosts::new();
    let found = PathFinding::Narrow(1_100);
    hosts.server.net.note_path_finding(hosts.now, client_addr(Over::V4), found);
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    assert_eq!(hosts.server.snapshot(server).expect("it is there").mss, 1_048);
    assert_eq!(mss(&hosts, client), 1_448);
    hosts.client.abort(client);
    hosts.server.abort(server);
}

#[test]
fn findings_age_are_replaced_and_can_be_forgotten() {
    let mut hosts = Hosts::new();
    let remote = server_addr(Over::V4);
    let note = |hosts: &mut Hosts, found| {
        hosts.client.net.note_path_finding(hosts.now, remote, found);
        hosts.client.path_mtu(&remote)
    };
    assert_eq!(note(&mut hosts, PathFinding::Narrow(1_100)), Some(1_100));
    assert_eq!(note(&mut hosts, PathFinding::Narrow(1_200)), Some(1_200));
    assert_eq!(note(&mut hosts, PathFinding::Wide), None);
    assert_eq!(note(&mut hosts, PathFinding::Narrow(1_500)), None);
    for forget in [true, false] {
        assert_eq!(note(&mut hosts, PathFinding::Narrow(1_200)), Some(1_200));
        if forget {
            hosts.client.purge_paths();
        } else {
            hosts.run(Duration::from_secs(600));
            hosts.client.set_now(hosts.now);
        }
        assert_eq!(hosts.client.path_mtu(&remote), None);
    }
    // A router's report holds as well, and the lesser counts.
    hosts.client.net.note_path_mtu(hosts.now, remote, 1_000);
    assert_eq!(note(&mut hosts, PathFinding::Narrow(1_200)), Some(1_000));
    assert_eq!(note(&mut hosts, PathFinding::Narrow(900)), Some(900));
    assert_eq!(note(&mut hosts, PathFinding::Wide), Some(1_000));
}

#[test]
fn outage_leaves_no_trace_of_a_narrow_path() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.lose = |_| true;
    send(&mut hosts.client, client, &[7; 20_000]);
    hosts.run(Duration::from_secs(3));
    assert!(mss(&hosts, client) < 1_448);
    hosts.lose = |_| false;
    hosts.run(Duration::from_secs(5));
    assert_eq!(drain(&mut hosts.server, server).0.len(), 20_000);
    transfer(&mut hosts, client, server, 50_000);
    assert_eq!((mss(&hosts, client), hosts.client.path_mtu(&server_addr(Over::V4))), (1_448, None));
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}
