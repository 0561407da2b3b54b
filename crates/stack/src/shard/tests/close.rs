//! Closing, TIME-WAIT, and ports that come back.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_tcp::conn::State;
use whimbrel_tcp::{CloseReason, DropReason, Tunables};
use whimbrel_wire::tcp::TcpFlags;
use whimbrel_wire::{Endpoint, SeqNum};

use super::hosts::{BOTH, Hosts, Over, client_addr, drain, events, send, server_at};
use super::packets::sent;
use super::refuse::segment;
use crate::shard::{SendError, SocketState};
use crate::{Event, Recv, Shard};

#[test]
fn time_wait_lasts_twice_the_msl_of_its_path() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.server.close(server);
    hosts.run_until_quiet();
    hosts.client.close(client);
    hosts.run_until_quiet();
    hosts.run(Duration::from_millis(19_500));
    assert_eq!(hosts.server.census().time_wait, 1, "2 x 10 s on a link");
    hosts.run(Duration::from_secs(1));
    assert_eq!(hosts.server.census().time_wait, 0);
    hosts.assert_no_leaks();
}

#[test]
fn port_in_time_wait_at_server_serves_next_connection() {
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
fn each_socket_is_counted_once_in_the_state_it_is_in() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let states = |shard: &Shard| {
        let states = shard.states().iter().filter(|(_, count)| *count > 0);
        states.map(|(state, count)| format!("{state} {count}")).collect::<Vec<_>>().join(", ")
    };
    hosts.client.connect(server_at(Over::V6), None).expect("a free port");
    hosts.connected(Over::V4, listener);
    let (half, other_half) = hosts.connected(Over::V4, listener);
    hosts.client.shutdown(half);
    let (over, held) = hosts.connected(Over::V4, listener);
    hosts.client.close(over);
    hosts.run_until_quiet();
    hosts.server.shutdown(held);
    hosts.run_until_quiet();
    assert_eq!(states(&hosts.client), "ESTABLISHED 1, FIN-WAIT-2 1, TIME-WAIT 1");
    // What is over counts no more, though its application has not released it.
    assert_eq!(states(&hosts.server), "LISTEN 1, ESTABLISHED 1, CLOSE-WAIT 1");
    let walked = hosts.server.sockets().filter(|socket| socket.state == SocketState::CloseWait);
    assert_eq!(walked.count(), hosts.server.states().of(SocketState::CloseWait));
    let _ = other_half;
}

#[test]
fn both_sides_closing_at_once_both_wait() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    hosts.client.close(client);
    hosts.server.close(server);
    hosts.run_until_quiet();
    assert_eq!((hosts.client.census().time_wait, hosts.server.census().time_wait), (1, 1));
    hosts.assert_no_leaks();
}

#[test]
fn what_was_received_can_be_read_after_the_connection_is_over() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, server) = hosts.connected(Over::V4, listener);
    send(&mut hosts.client, client, b"last words");
    hosts.run_until_quiet();
    hosts.server.shutdown(server);
    hosts.client.close(client);
    hosts.run_until_quiet();
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
    hosts.run_until_quiet();
    assert_eq!(events(&mut hosts.client), [Event::Closed(client, CloseReason::Reset)]);
    assert_eq!(hosts.client.recv(client), Recv::Closed(CloseReason::Reset));
    let sent = hosts.client.send(client, &mut Bytes::from_static(b"more"));
    assert_eq!(sent, Err(SendError::Closed));
    hosts.client.close(client);
    assert_eq!(hosts.client.recv(client), Recv::Unknown, "the handle names nothing any more");
    hosts.assert_no_leaks();
}

#[test]
fn a_reset_behind_both_ends_is_told_and_nothing_is_missing() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let bound = Some(Endpoint::new(client_addr(Over::V4), 4_000));
    for orphan in [false, true] {
        let client = hosts.client.connect(server_at(Over::V4), bound).expect("a free port");
        hosts.run_until_quiet();
        let server = hosts.server.accept(listener).expect("a connection");
        send(&mut hosts.client, client, b"last words");
        hosts.run_until_quiet();
        hosts.client.shutdown(client);
        hosts.run_until_quiet();
        events(&mut hosts.server);
        let heard = drain(&mut hosts.server, server);
        assert_eq!(heard, (b"last words".to_vec(), Recv::End));
        let rcv_nxt = hosts.server.snapshot(server).expect("it is there").rcv.nxt;
        if orphan {
            hosts.server.close(server);
        } else {
            hosts.server.shutdown(server);
        }
        assert_eq!(sent(&mut hosts.server).len(), 1, "a FIN, which is lost");
        let reset = segment(client_addr(Over::V4), TcpFlags::RST, rcv_nxt.raw(), 0);
        assert!(hosts.take_at_server(&reset).is_none());
        if !orphan {
            let closed = [Event::Closed(server, CloseReason::Reset)];
            assert_eq!(events(&mut hosts.server), closed);
            assert_eq!(hosts.server.recv(server), Recv::End, "its end came before");
            hosts.server.close(server);
        }
        assert!(events(&mut hosts.server).is_empty());
        assert_eq!(hosts.server.counters().estab_resets, 0);
        hosts.client.abort(client);
        hosts.run_until_quiet();
    }
    hosts.assert_no_leaks();
}

#[test]
fn megabytes_cross_whole_over_both_families_with_loss() {
    for over in BOTH {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(over, 8);
        let (client, server) = hosts.connected(over, listener);
        hosts.lose = |number| number % 50 == 3;
        let bytes: Bytes = (0..2 << 20).map(|at: u32| (at ^ (at >> 7)) as u8).collect();
        let mut rest = bytes.clone();
        let mut received = Vec::new();
        for _ in 0..20_000 {
            if !rest.is_empty() {
                hosts.client.send(client, &mut rest).expect("open for sending");
            }
            hosts.run(Duration::from_millis(20));
            received.extend(drain(&mut hosts.server, server).0);
            if received.len() == bytes.len() {
                break;
            }
        }
        assert!(received == bytes, "{} of {} bytes", received.len(), bytes.len());
        hosts.lose = |_| false;
        hosts.client.close(client);
        hosts.server.close(server);
        hosts.assert_no_leaks();
    }
}

/// A server in TIME-WAIT towards port 4000 of its client, without timestamps; and RCV.NXT.
fn waiting(tunables: &Tunables) -> (Hosts, SeqNum) {
    let mut hosts = Hosts::with(&Tunables { timestamps: false, ..tunables.clone() });
    let listener = hosts.listen(Over::V4, 8);
    let bound = Some(Endpoint::new(client_addr(Over::V4), 4_000));
    let client = hosts.client.connect(server_at(Over::V4), bound).expect("a free port");
    hosts.run_until_quiet();
    let server = hosts.server.accept(listener).expect("a connection");
    hosts.server.close(server);
    hosts.run_until_quiet();
    let end = hosts.client.snapshot(client).expect("it is there").snd.max + 1;
    hosts.client.close(client);
    hosts.run_until_quiet();
    assert_eq!(hosts.server.census().time_wait, 1);
    (hosts, end)
}

#[test]
fn syn_ack_and_syn_fin_in_time_wait_are_challenged() {
    for flags in [TcpFlags::SYN_ACK, TcpFlags::SYN | TcpFlags::FIN] {
        let (mut hosts, rcv_nxt) = waiting(&Tunables::default());
        let syn = segment(client_addr(Over::V4), flags, (rcv_nxt + 1_000).raw(), 77);
        let answer = hosts.take_at_server(&syn).expect("a challenge");
        assert_eq!((answer.flags, answer.ack), (TcpFlags::ACK, rcv_nxt));
        assert!(hosts.take_at_server(&syn).is_none(), "one is enough");
        assert_eq!(hosts.server.counters().dropped(DropReason::SynChallenged), 2);
        // Nor does the answer invite a reset that ends the record (RFC 1337).
        let reset = segment(client_addr(Over::V4), TcpFlags::RST, rcv_nxt.raw(), 0);
        assert!(hosts.take_at_server(&reset).is_none());
        let census = hosts.server.census();
        assert_eq!((census.time_wait, census.syn_entries), (1, 0));
        hosts.assert_no_leaks();
    }
}

#[test]
fn syn_fin_reopens_time_wait_if_drop_synfin_is_off() {
    let (mut hosts, rcv_nxt) = waiting(&Tunables { drop_synfin: false, ..Tunables::default() });
    let syn_fin = TcpFlags::SYN | TcpFlags::FIN;
    let syn = segment(client_addr(Over::V4), syn_fin, (rcv_nxt + 1_000).raw(), 0);
    let answer = hosts.take_at_server(&syn).expect("an answer");
    assert_eq!((answer.flags, answer.ack), (TcpFlags::SYN_ACK, rcv_nxt + 1_001));
    assert_eq!(hosts.server.counters().time_wait_recycled, 1);
    hosts.assert_no_leaks();
}

#[test]
fn reset_of_reopening_restores_time_wait() {
    let (mut hosts, rcv_nxt) = waiting(&Tunables::default());
    let client = client_addr(Over::V4);
    let syn = segment(client, TcpFlags::SYN, (rcv_nxt + 1_000).raw(), 0);
    let answer = hosts.take_at_server(&syn).expect("an answer");
    assert_eq!((answer.flags, answer.ack), (TcpFlags::SYN_ACK, rcv_nxt + 1_001));
    // A host that sent no such SYN answers so (RFC 9293 3.10.7.1).
    let reset = segment(client, TcpFlags::RST, answer.ack.raw(), 0);
    assert!(hosts.take_at_server(&reset).is_none());
    let census = hosts.server.census();
    assert_eq!((census.time_wait, census.syn_entries, census.connections), (1, 0, 0));
    // The record is the old connection's: it acknowledges what that received.
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    let again = segment(client, fin, (rcv_nxt - 1).raw(), answer.seq.raw());
    assert_eq!(hosts.take_at_server(&again).expect("an acknowledgment").ack, rcv_nxt);
    hosts.assert_no_leaks();
}
