//! The output of a connection leaves as segments, one behind the other.

use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_wire::IpHeader;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};

use super::hosts::{Hosts, Over, send};
use crate::{Shard, TxBatch};

/// All that a host has to send, taken so many at a time.
fn sent(shard: &mut Shard, now: Instant, at_a_time: usize) -> Vec<(TcpHeader, usize)> {
    shard.set_now(now);
    let mut batch = TxBatch::new(at_a_time);
    let mut headers = Vec::new();
    loop {
        let more = shard.tx(&mut batch);
        for segment in batch.pending() {
            assert_eq!(segment.gso_size, 0, "nothing is left to the device");
            let packet = segment.to_vec();
            let (_, payload) = IpHeader::parse(&packet).expect("an IP packet");
            let (header, len) = TcpHeader::parse(payload).expect("a TCP header");
            headers.push((header, payload.len() - len));
        }
        batch.consume(batch.pending().len());
        if !more {
            return headers;
        }
    }
}

#[test]
fn segments_of_turn_are_consecutive_and_last_ends_text() {
    for at_a_time in [1, 3, 64] {
        let mut hosts = Hosts::new();
        let listener = hosts.listen(Over::V4, 8);
        let (client, _) = hosts.connected(Over::V4, listener);
        assert_eq!(send(&mut hosts.client, client, &[7; 14_000]), 14_000);
        hosts.client.shutdown(client);
        let headers = sent(&mut hosts.client, hosts.now, at_a_time);
        let texts: Vec<_> = headers.iter().map(|(_, text)| *text).collect();
        assert_eq!(texts, [1_448, 1_448, 1_448, 1_448, 1_448, 1_448, 1_448, 1_448, 1_448, 968]);
        let ((last, _), others) = headers.split_last().expect("ten");
        for ((header, text), (next, _)) in others.iter().zip(headers.iter().skip(1)) {
            assert_eq!(next.seq, header.seq + *text as u32);
            assert_eq!(header.flags, TcpFlags::ACK);
            assert_eq!((header.ack, header.window), (last.ack, last.window));
        }
        assert!(last.flags.contains(TcpFlags::FIN | TcpFlags::PSH), "{}", last.flags);
        hosts.client.check_invariants().expect("what must hold");
    }
}

#[test]
fn a_reset_does_not_overtake_what_was_sent_before_it() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (client, _) = hosts.connected(Over::V4, listener);
    assert_eq!(send(&mut hosts.client, client, &[7; 14_000]), 14_000);
    let mut batch = TxBatch::new(3);
    hosts.client.tx(&mut batch);
    assert_eq!(batch.pending().len(), 3);
    hosts.client.abort(client);
    let headers = sent(&mut hosts.client, hosts.now, 3);
    assert_eq!(headers.len(), 8, "seven of text, and the reset");
    let resets = headers.iter().map(|(header, _)| header.flags.contains(TcpFlags::RST));
    assert_eq!(resets.collect::<Vec<_>>(), [false, false, false, false, false, false, false, true]);
}

#[test]
fn connections_send_in_turns_of_sixteen_segments() {
    let mut hosts = Hosts::new();
    let listener = hosts.listen(Over::V4, 8);
    let (one, _) = hosts.connected(Over::V4, listener);
    let (other, _) = hosts.connected(Over::V4, listener);
    for client in [one, other] {
        assert_eq!(send(&mut hosts.client, client, &[7; 14_000]), 14_000);
    }
    let headers = sent(&mut hosts.client, hosts.now, 64);
    let ports: Vec<_> = headers.iter().map(|(header, _)| header.src_port).collect();
    let changes = ports.iter().zip(ports.iter().skip(1)).filter(|(one, next)| one != next);
    assert_eq!((ports.len(), changes.count()), (20, 1), "one after the other: {ports:?}");
}
