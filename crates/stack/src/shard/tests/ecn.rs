//! Explicit congestion notification between two hosts: marks of routers, in bursts, in IPv4 and IPv6.

use core::time::Duration;
use std::format;
use std::vec::Vec;

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::Tunables;
use whimbrel_tcp::tunables::EcnNegotiation;
use whimbrel_wire::ip::mark_congestion;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader};
use whimbrel_wire::{Ecn, IpHeader};

use super::hosts::{BOTH, Hosts, Over, drain, send};
use crate::{Handle, RxFrame, Shard, TxBatch};

/// Two hosts of which the client asks for ECN, and a connection of theirs.
fn connected(over: Over) -> (Hosts, Handle, Handle) {
    connected_by(EcnNegotiation::Ask, over)
}

fn connected_by(ecn: EcnNegotiation, over: Over) -> (Hosts, Handle, Handle) {
    let mut hosts = Hosts::with(&Tunables { ecn, ..Tunables::default() });
    let listener = hosts.listen(over, 8);
    let (client, server) = hosts.connected(over, listener);
    (hosts, client, server)
}

/// Packets that a host sends now.
fn sent(shard: &mut Shard, now: Instant) -> Vec<Vec<u8>> {
    shard.set_now(now);
    let mut batch = TxBatch::new(64);
    shard.tx(&mut batch);
    batch.pending().iter().map(|segment| segment.to_vec()).collect()
}

fn arrive(shard: &mut Shard, now: Instant, packets: &[Vec<u8>]) {
    let lent: Vec<_> = packets.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
    shard.rx(now, &lent);
}

/// The ECN field and the flags of a packet.
fn shown(packet: &[u8]) -> (Ecn, TcpFlags) {
    let (ip, payload) = IpHeader::parse(packet).expect("a packet");
    let (header, _) = TcpHeader::parse(payload).expect("a segment");
    (ip.traffic_class.ecn(), header.flags)
}

#[test]
fn window_cut_into_segments_has_ect_on_each_and_cwr_on_first() {
    for over in BOTH {
        let (mut hosts, client, _) = connected(over);
        assert_eq!(send(&mut hosts.client, client, &[7; 40_000]), 40_000);
        let mut packets = sent(&mut hosts.client, hosts.now);
        assert!(packets.len() >= 10, "{} packets", packets.len());
        let all_ect = |packets: &[Vec<u8>]| packets.iter().all(|it| shown(it).0 == Ecn::Ect0);
        assert!(all_ect(&packets));
        assert!(mark_congestion(&mut packets[0]), "it may be marked");
        arrive(&mut hosts.server, hosts.now, &packets);
        let echoes = sent(&mut hosts.server, hosts.now);
        assert!(!echoes.is_empty());
        for echo in &echoes {
            assert_eq!(shown(echo), (Ecn::NotEct, TcpFlags::ACK | TcpFlags::ECE));
        }
        assert_eq!(hosts.server.ip_counters().in_ce, 1);
        arrive(&mut hosts.client, hosts.now, &echoes);
        assert_eq!(hosts.client.counters().ecn_reductions, 1);
        assert!(hosts.client.counters().delivered_ce > 0);
        let next = sent(&mut hosts.client, hosts.now);
        assert!(next.len() > 1 && all_ect(&next));
        let cwr = |packet: &[u8]| shown(packet).1.contains(TcpFlags::CWR);
        assert_eq!(next.iter().map(|it| cwr(it)).collect::<Vec<_>>().first(), Some(&true));
        assert_eq!(next.iter().filter(|it| cwr(it)).count(), 1, "{over:?}");
    }
}

#[test]
fn marked_burst_does_what_its_segments_do_one_by_one() {
    for over in BOTH {
        for marked in 0..10 {
            let (mut whole, client, first) = connected(over);
            let (mut single, again, second) = connected(over);
            let mut packets = Vec::new();
            for (hosts, handle) in [(&mut whole, client), (&mut single, again)] {
                assert_eq!(send(&mut hosts.client, handle, &[7; 14_000]), 14_000);
                packets = sent(&mut hosts.client, hosts.now);
            }
            assert!(mark_congestion(&mut packets[marked]));
            arrive(&mut whole.server, whole.now, &packets);
            for packet in &packets {
                arrive(&mut single.server, single.now, core::slice::from_ref(packet));
            }
            let counters = |hosts: &Hosts| format!("{:?}", hosts.server.counters());
            assert_eq!(counters(&whole), counters(&single), "{over:?} {marked}");
            let echoes = sent(&mut whole.server, whole.now);
            assert_eq!(echoes, sent(&mut single.server, single.now), "{over:?} {marked}");
            assert!(echoes.iter().all(|it| shown(it).1.contains(TcpFlags::ECE)));
            let read = drain(&mut whole.server, first);
            assert_eq!(read, drain(&mut single.server, second));
            assert_eq!(read.0.len(), 14_000);
        }
    }
}

#[test]
fn accurate_feedback_counts_each_mark() {
    for over in BOTH {
        for period in [1, 2, 3, 7] {
            let (mut hosts, client, server) = connected_by(EcnNegotiation::AskAccurate, over);
            assert_eq!(send(&mut hosts.client, client, &[7; 200_000]), 200_000);
            let (mut count, mut marks) = (0, 0);
            for _ in 0..200 {
                let mut there = sent(&mut hosts.client, hosts.now);
                for packet in &mut there {
                    count += 1;
                    marks += u64::from(count % period == 0 && mark_congestion(packet));
                }
                arrive(&mut hosts.server, hosts.now, &there);
                drain(&mut hosts.server, server);
                let back = sent(&mut hosts.server, hosts.now);
                // The server gets no marks, and its counter stays.
                assert!(back.iter().all(|it| marks == 0 || !shown(it).1.is_empty()));
                arrive(&mut hosts.client, hosts.now, &back);
                hosts.now = hosts.now + super::hosts::DELAY;
                hosts.client.advance(hosts.now, 1_000);
                hosts.server.advance(hosts.now, 1_000);
            }
            assert!(marks > 10, "{marks} marks");
            let counters = hosts.client.counters();
            assert_eq!(counters.delivered_ce, marks, "{over:?}, each {period}th");
            assert!(counters.ecn_reductions > 0 && counters.retrans_segs == 0);
            assert_eq!(hosts.server.counters().delivered_ce, 0);
        }
    }
}

/// Text that the side with marks in its counter sends is cut with its whole ACE field.
#[test]
fn each_segment_of_a_cut_one_has_the_whole_counter() {
    for over in BOTH {
        for marks in 0..8_u8 {
            let (mut hosts, client, server) = connected_by(EcnNegotiation::AskAccurate, over);
            for _ in 0..marks {
                assert_eq!(send(&mut hosts.client, client, &[7; 100]), 100);
                let mut there = sent(&mut hosts.client, hosts.now);
                assert_eq!(
                    there.iter_mut().filter_map(|it| mark_congestion(it).then_some(())).count(),
                    1
                );
                arrive(&mut hosts.server, hosts.now, &there);
                // An acknowledgment that is delayed is due by then.
                hosts.now = hosts.now + Duration::from_secs(1);
                hosts.server.advance(hosts.now, 1_000);
                let back = sent(&mut hosts.server, hosts.now);
                arrive(&mut hosts.client, hosts.now, &back);
            }
            assert_eq!(send(&mut hosts.server, server, &[7; 10_000]), 10_000);
            let packets = sent(&mut hosts.server, hosts.now);
            assert!(packets.len() > 5, "{} packets", packets.len());
            for packet in &packets {
                assert_eq!(shown(packet).1.ace(), (5 + marks) & 7, "{over:?} {marks}");
            }
        }
    }
}

#[test]
fn marked_transfer_arrives_whole_and_leaves_nothing() {
    for ecn in [EcnNegotiation::Ask, EcnNegotiation::AskAccurate] {
        transfer_marked(ecn);
    }
}

fn transfer_marked(ecn: EcnNegotiation) {
    for over in BOTH {
        let (mut hosts, client, server) = connected_by(ecn, over);
        assert_eq!(send(&mut hosts.client, client, &[7; 100_000]), 100_000);
        hosts.client.shutdown(client);
        hosts.server.shutdown(server);
        let mut read = 0;
        // The router marks whatever it may.
        for _ in 0..200 {
            let mut there = sent(&mut hosts.client, hosts.now);
            there.iter_mut().for_each(|it| _ = mark_congestion(it));
            arrive(&mut hosts.server, hosts.now, &there);
            read += drain(&mut hosts.server, server).0.len();
            let back = sent(&mut hosts.server, hosts.now);
            arrive(&mut hosts.client, hosts.now, &back);
            hosts.now = hosts.now + super::hosts::DELAY;
            hosts.client.advance(hosts.now, 1_000);
            hosts.server.advance(hosts.now, 1_000);
        }
        assert_eq!(read, 100_000, "{over:?}");
        assert!(hosts.client.counters().ecn_reductions > 2, "{over:?}");
        assert_eq!(hosts.client.counters().retrans_segs, 0);
        hosts.client.check_invariants().expect("what must hold");
        hosts.server.check_invariants().expect("what must hold");
    }
}
