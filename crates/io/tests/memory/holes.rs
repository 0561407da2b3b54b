//! A peer that makes a thousand holes of one byte: in what it sends, and in what it acknowledges.

use bytes::Bytes;
use whimbrel_stack::Handle;
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{SackBlock, SackBlocks, TcpFlags};

use crate::budget::{Peer, Server};

const ACK: TcpFlags = TcpFlags::ACK;
const HOLES: u32 = 1_000;

/// Returns the memory pinned by a thousand single bytes with one byte missing between them, and how
/// many were accepted.
fn pinned_by_pieces(server: &mut Server, peer: &Peer, handle: Handle) -> (u64, u64) {
    let before = server.real(0);
    for number in 0..HOLES {
        server.take(peer, ACK, peer.seq + 1 + 2 * number, &[7]);
    }
    let pinned = server.real(0) - before;
    let taken = server.shard.counters().out_of_order;
    server.shard.abort(handle);
    server.pass(1, 0);
    assert_eq!(server.shard.memory().text, 0);
    (pinned, taken)
}

/// docs/BOUNDS.md: "twice the text, 64 a range (`max_out_of_order` of them, and in a large buffer one for two
/// segments that fit in it: 2 % of it) and 4,096".
#[test]
fn a_thousand_holes_of_one_byte_pin_no_more_than_the_bounds_say() {
    let mut server = Server::new(Tunables::default());
    let (peer, handle) = server.connected(0, 2_000);
    let (pinned, taken) = pinned_by_pieces(&mut server, &peer, handle);
    let most = u64::from(Tunables::default().max_out_of_order);
    assert_eq!(taken, most);
    assert!(pinned <= 2 * most + 64 * most + 4_096, "{pinned} B");

    // In a buffer of 2 MiB there is one for two segments that fit in it.
    let tunables = Tunables { recv_buffer: 2 << 20, ..Tunables::default() };
    let scaled = (2 << 20) / 1_460 / 2;
    let mut server = Server::new(tunables);
    let (peer, handle) = server.connected(0, 2_000);
    let (pinned, taken) = pinned_by_pieces(&mut server, &peer, handle);
    assert_eq!(taken, scaled);
    assert!(pinned <= 2 * scaled + 64 * scaled + 4_096, "{pinned} B");
}

/// docs/BOUNDS.md: "48 for each segment in flight, some 100 for each range that is named, lost or sent
/// again, of which there are no more than segments, or 64".
#[test]
fn thousand_sack_ranges_of_one_byte_stay_within_bounds() {
    let mut server = Server::new(Tunables::default());
    let (mut peer, handle) = server.connected(0, 2_000);
    let sent = server.shard.send(handle, &mut Bytes::from_static(&[7; 200_000]));
    assert!(sent.is_ok());
    server.pass(1, 0);
    let before = server.real(0);
    let first = peer.ack + 1;
    for number in (0..HOLES).step_by(3) {
        peer.sack = SackBlocks::NONE;
        for left in [0, 1, 2].map(|more| first + 2 * (number + more)) {
            assert!(peer.sack.push(SackBlock { left, right: left + 1 }));
        }
        server.take(&peer, ACK, peer.seq, &[]);
    }
    let pinned = server.real(0) - before;
    let in_flight = server.shard.snapshot(handle).unwrap().snd;
    let segments = u64::from(in_flight.nxt.distance_from(in_flight.una) as u32).div_ceil(1_448);
    let ranges = segments.max(64);
    assert!(pinned <= 48 * segments + 3 * 100 * ranges, "{pinned} B for {segments} segments");
    server.shard.abort(handle);
    server.pass(1, 0);
    assert_eq!(server.shard.memory().text, 0);
}
