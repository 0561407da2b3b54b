//! Two hosts on one Ethernet.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::packet::SoftError;
use whimbrel_tcp::Tunables;
use whimbrel_udp::{Bind, DatagramError, Local, SocketError};
use whimbrel_wire::{Address, MacAddress};

use super::super::hosts::{BOTH, Hosts, Over, client_addr, config, drain, server_addr};
use crate::link::neighbours::NeighbourState;
use crate::ping::{Ping, PingFailure};
use crate::{Medium, SendTo, Shard};

fn host(addr: fn(Over) -> Address, number: u8) -> Shard {
    let mut config = config(addr, number.into(), &Tunables::default());
    config.capabilities.medium = Medium::Ethernet { mac: MacAddress([2, 0, 0, 0, 0, number]) };
    Shard::new(config).expect("valid")
}

fn hosts() -> Hosts {
    Hosts::of(host(client_addr, 1), host(server_addr, 2))
}

fn asked(shard: &Shard) -> u64 {
    shard.link().expect("an Ethernet").counters().asked
}

#[test]
fn a_connection_needs_one_question_and_carries_a_megabyte() {
    for over in BOTH {
        let mut hosts = hosts();
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        assert_eq!((asked(&hosts.client), asked(&hosts.server)), (1, 0));
        let bytes: Bytes = (0..1 << 20).map(|at: u32| (at ^ (at >> 7)) as u8).collect();
        let (mut rest, mut received) = (bytes.clone(), Vec::new());
        while received.len() < bytes.len() {
            if !rest.is_empty() {
                hosts.client.send(client, &mut rest).expect("open for sending");
            }
            hosts.run(Duration::from_millis(20));
            received.extend(drain(&mut hosts.server, server).0);
        }
        assert!(received == bytes, "{} bytes", received.len());
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_connection_opens_although_the_first_question_is_lost() {
    for over in BOTH {
        let mut hosts = hosts();
        hosts.run_until_quiet();
        let listener = hosts.listen(over, 8);
        // Four announcements were carried.
        hosts.lose = |number| number == 5;
        let client =
            hosts.client.connect(super::super::hosts::server_at(over), None).expect("free");
        hosts.run(Duration::from_millis(1_200));
        let server = hosts.server.accept(listener).expect("a complete connection");
        assert!((2..=3).contains(&asked(&hosts.client)), "{}", asked(&hosts.client));
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn talking_hosts_probe_at_most_once_in_30s() {
    let mut hosts = hosts();
    let listener = hosts.listen(Over::V6, 8);
    let (client, server) = hosts.connected(Over::V6, listener);
    for _ in 0..300 {
        hosts.client.send(client, &mut Bytes::from_static(b"whimbrel")).expect("open");
        hosts.run(Duration::from_secs(1));
        drain(&mut hosts.server, server);
    }
    for (shard, peer) in
        [(&hosts.client, server_addr(Over::V6)), (&hosts.server, client_addr(Over::V6))]
    {
        let asked = asked(shard);
        assert!((5..=20).contains(&asked), "{asked} in five minutes");
        let neighbours = shard.link().expect("an Ethernet").neighbours();
        assert_ne!(neighbours.get(&peer).expect("known").0, NeighbourState::Incomplete);
    }
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn connect_to_absent_neighbour_is_soft_error() {
    let mut hosts = hosts();
    let absent = whimbrel_wire::Endpoint::new(Address::from_v4_bytes([10, 0, 0, 77]), 80);
    let client = hosts.client.connect(absent, None).expect("a free port");
    hosts.run(Duration::from_secs(4));
    assert_eq!(hosts.client.soft_error(client), Some(SoftError::HostUnreachable));
    hosts.run(Duration::from_secs(400));
    let link = hosts.client.link().expect("an Ethernet");
    assert!(link.neighbours().is_empty());
    assert!(link.counters().out_neighbour_failed > 0);
    hosts.client.close(client);
    hosts.assert_no_leaks();
}

#[test]
fn third_retransmission_probes_neighbour() {
    for over in BOTH {
        let mut hosts = hosts();
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        let state = |hosts: &Hosts| {
            let neighbours = hosts.client.link().expect("an Ethernet").neighbours();
            neighbours.get(&server_addr(over)).expect("known").0
        };
        hosts.lose = |_| true;
        hosts.client.send(client, &mut Bytes::from_static(b"anybody?")).expect("open");
        hosts.run(Duration::from_millis(1_400));
        assert_eq!(state(&hosts), NeighbourState::Reachable, "two retransmissions");
        hosts.run(Duration::from_millis(400));
        assert_eq!(state(&hosts), NeighbourState::Delay);
        assert_eq!(hosts.client.counters().paths_doubted, 1);
        hosts.lose = |_| false;
        hosts.run(Duration::from_secs(10));
        assert_eq!(drain(&mut hosts.server, server).0, b"anybody?");
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

#[test]
fn a_syn_that_nobody_answers_has_the_neighbour_asked_too() {
    let mut hosts = hosts();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.lose = |_| true;
    let second = hosts.client.connect(super::super::hosts::server_at(Over::V4), None);
    hosts.run(Duration::from_secs(8));
    assert_eq!(hosts.client.counters().paths_doubted, 1);
    hosts.lose = |_| false;
    for handle in [Ok(client), second] {
        hosts.client.close(handle.expect("a free port"));
    }
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn ping_and_datagram_to_absent_neighbour_report_it() {
    let mut hosts = hosts();
    let absent = Address::from_v4_bytes([10, 0, 0, 77]);
    let mut ping = Ping::new(absent.to_ip());
    ping.timeout = Duration::from_secs(10);
    let id = hosts.client.ping(&ping).expect("room");
    let socket = hosts.client.udp_bind(&Bind::new(Local::Both, 0)).expect("a free port");
    hosts.client.udp_keep_errors(socket);
    let to = whimbrel_wire::Endpoint::new(absent, 7);
    hosts.client.udp_send(socket, Bytes::from_static(b"?"), &SendTo::peer(to)).expect("room");
    hosts.run(Duration::from_secs(4));
    let (from, error) = (client_addr(Over::V4), SocketError::HostUnreachable);
    let report = hosts.client.udp_take_report(socket);
    assert_eq!(report, Some(DatagramError::new(to, from, error)));
    let end = hosts.client.poll_ping().expect("it has ended");
    let failure = PingFailure::Reported { from, error, code: 1 };
    assert_eq!((end.id, end.result), (id, Err(failure)));
    assert!(hosts.client.udp_close(socket));
}
