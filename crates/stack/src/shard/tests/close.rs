//! Closing, TIME-WAIT, and ports that come back.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_tcp::conn::State;
use whimbrel_tcp::{CloseReason, Tunables};
use whimbrel_wire::Endpoint;

use super::hosts::{BOTH, Hosts, Over, client_addr, drain, events, send, server_at};
use crate::shard::SendError;
use crate::{Event, Recv};

#[test]
fn time_wait_lasts_twice_the_msl_of_its_path() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.server.close(server);
    hosts.settle();
    hosts.client.close(client);
    hosts.settle();
    hosts.run(Duration::from_millis(19_500));
    assert_eq!(hosts.server.census().time_wait, 1, "2 x 10 s on a link");
    hosts.run(Duration::from_secs(1));
    assert_eq!(hosts.server.census().time_wait, 0);
    hosts.assert_no_leaks();
}

#[test]
fn a_port_in_time_wait_at_the_server_serves_the_next_connection_at_once() {
    for timestamps in [true, false] {
        let mut hosts = Hosts::with(&Tunables { timestamps, ..Tunables::default() });
        let listener = hosts.listen(Over::V4, 8);
        let bound = Some(Endpoint::new(client_addr(Over::V4), 4_000));
        for round in 0..50 {
            let client = hosts.client.connect(server_at(Over::V4), bound).expect("a free port");
            hosts.run(Duration::from_millis(5));
            let server = hosts.server.accept(listener).expect("no delay");
            hosts.server.close(server);
            hosts.run(Duration::from_millis(5));
            hosts.client.close(client);
            hosts.run(Duration::from_millis(5));
            assert_eq!(hosts.server.census().time_wait, 1, "round {round}");
        }
        assert_eq!(hosts.server.counters().time_wait_recycled, 49);
        hosts.assert_no_leaks();
    }
}

#[test]
fn both_sides_closing_at_once_both_wait() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.settle();
    assert_eq!((hosts.client.census().time_wait, hosts.server.census().time_wait), (1, 1));
    hosts.assert_no_leaks();
}

#[test]
fn what_was_received_can_be_read_after_the_connection_is_over() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    send(&mut hosts.client, client, b"last words");
    hosts.settle();
    hosts.server.shutdown(server);
    hosts.client.close(client);
    hosts.settle();
    assert_eq!(hosts.server.state(server), Some(State::TimeWait));
    assert_eq!(drain(&mut hosts.server, server), (b"last words".to_vec(), Recv::End));
    hosts.server.close(server);
    hosts.assert_no_leaks();
}

#[test]
fn a_reset_reaches_the_application_with_its_reason() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    events(&mut hosts.client);
    hosts.server.abort(server);
    hosts.settle();
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Reset)]);
    assert_eq!(hosts.client.recv(client), Recv::Closed(CloseReason::Reset));
    let sent = hosts.client.send(client, &mut Bytes::from_static(b"more"));
    assert_eq!(sent, Err(SendError::Closed));
    hosts.client.close(client);
    assert_eq!(hosts.client.recv(client), Recv::Unknown, "the handle names nothing any more");
    hosts.assert_no_leaks();
}

#[test]
fn megabytes_cross_whole_over_both_families_with_loss() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        hosts.lose = |number| number % 50 == 3;
        let octets: Bytes = (0..2 << 20).map(|at: u32| (at ^ (at >> 7)) as u8).collect();
        let mut rest = octets.clone();
        let mut received = Vec::new();
        for _ in 0..20_000 {
            if !rest.is_empty() {
                hosts.client.send(client, &mut rest).expect("open for sending");
            }
            hosts.run(Duration::from_millis(20));
            received.extend(drain(&mut hosts.server, server).0);
            if received.len() == octets.len() {
                break;
            }
        }
        assert!(received == octets, "{} of {} octets", received.len(), octets.len());
        hosts.lose = |_| false;
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}
