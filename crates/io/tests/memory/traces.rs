//! Memory of a trace in addition to its shard, with any number of connections.

use std::collections::VecDeque;

use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_link::tracer::Tracer;
use whimbrel_stack::{Medium, Recv, RxFrame};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::TcpFlags;

use crate::allocator::held;
use crate::budget::{Peer, Server};

/// Packets of these tests have no checksum.
const VERIFIED: SegMeta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
/// Bytes of the last state of a connection, and its place in a tree.
const OF_CONNECTION: isize = 150;
/// Connections that are open at a time.
const OPEN: usize = 1_000;
/// Limit in bytes: those, as many closed ones, and the lines of a burst.
const BOUND: isize = 2 * OPEN as isize * OF_CONNECTION + (16 << 10);

#[test]
fn connections_that_went_without_a_segment_are_forgotten() {
    let mut server = Server::new(Tunables::default());
    let base = held();
    let mut tracer = Tracer::new(Medium::Ip, 0, 1);
    let (mut extra, mut most) = (held() - base, 0);
    let mut open = VecDeque::new();
    for number in 0..20_000_u32 {
        let peer = Peer::new((number >> 8) as u16, 1_024 + (number & 0xff) as u16);
        let (peer, handle) = server.connected_to(peer);
        let packet = peer.packet(TcpFlags::ACK, peer.seq, &[]);
        let before = held();
        tracer.rx(server.now, &server.shard, &[RxFrame::new(&packet, SegMeta::SINGLE)]);
        assert!(!tracer.take().is_empty(), "a connection that was not traced");
        tracer.take().clear();
        extra += held() - before;
        most = most.max(extra);
        open.push_back(handle);
        if open.len() == OPEN {
            // Its reset is not shown to the tracer, as if it had timed out.
            server.shard.abort(open.pop_front().unwrap());
            server.pass(0, peer.port);
        }
    }
    println!("{most} bytes, at most {BOUND}");
    assert!((BOUND / 4..=BOUND).contains(&most), "{most} bytes, at most {BOUND}");
}

/// While 4,000 connections open and close, one that stays is traced as before: its opening is
/// reported once.
#[test]
fn flood_of_connections_leaves_trace_of_one_that_is_there() {
    let mut server = Server::new(Tunables::default());
    let mut tracer = Tracer::new(Medium::Ip, 0, 1);
    let (mut honest, own) = server.connected_to(Peer::new(u16::MAX - 1, 9));
    let mut open = VecDeque::new();
    for number in 0..4_000_u32 {
        let peer = Peer::new((number >> 8) as u16, 1_024 + (number & 0xff) as u16);
        let (peer, handle) = server.connected_to(peer);
        open.push_back(handle);
        if number % 100 == 0 {
            let packet = honest.packet(TcpFlags::ACK, honest.seq, b"text");
            let frame = [RxFrame::new(&packet, VERIFIED)];
            server.shard.rx(server.now, &frame);
            honest.seq += 4;
            let Recv::Data(text) = server.shard.recv(own) else { panic!("{number}: no text") };
            assert_eq!(text, b"text"[..]);
            tracer.rx(server.now, &server.shard, &frame);
            // A forgotten connection would be reported as opened again.
            let line = String::from_utf8(tracer.take().clone()).unwrap();
            let event = if number == 0 { "opened" } else { "received" };
            let line_is_its = line.contains(r#""conn":1,"#) && line.lines().count() == 1;
            assert!(line_is_its && line.contains(&format!(r#"["{event}"]"#)), "{number}: {line}");
        }
        let packet = peer.packet(TcpFlags::ACK, peer.seq, &[]);
        tracer.rx(server.now, &server.shard, &[RxFrame::new(&packet, SegMeta::SINGLE)]);
        tracer.take().clear();
        if open.len() > 200 {
            server.shard.abort(open.pop_front().unwrap());
            server.pass(0, peer.port);
        }
    }
}
