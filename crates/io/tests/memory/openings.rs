//! Memory of connections that the application has not accepted: complete ones in the queue, and
//! Fast Open handshakes with the text of their SYNs.

use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{FastOpen, TcpFlags};

use crate::budget::{Peer, Server};

/// The backlog of the server's listener.
const BACKLOG: u64 = 4_096;
/// Bytes of a connection with its places in the tables.
const CONNECTION: u64 = 400;
/// Bytes of a half-open entry with its place in the flow table.
const HALF_OPEN: u64 = 64 + 11;
/// Bytes that do not depend on their number.
const FIXED: u64 = 16 << 10;

fn peer(number: u64) -> Peer {
    Peer::new((number >> 8) as u16, 1_024 + (number & 0xff) as u16)
}

/// Returns the limit of received text, as docs/BOUNDS.md has it.
const fn text(bytes: u64) -> u64 {
    2 * bytes + 64 + 4_096
}

#[test]
fn unaccepted_connections_are_limited_to_the_backlog() {
    for sent in [0, 1_000] {
        let mut server = Server::new(Tunables::default());
        let base = server.real(0);
        for number in 0..BACKLOG {
            let mut peer = peer(number);
            peer.open(&mut server);
            if sent > 0 {
                server.take(&peer, TcpFlags::ACK, peer.seq, &vec![7; sent as usize]);
            }
        }
        // Further SYNs get no reply.
        for number in BACKLOG..2 * BACKLOG {
            let peer = peer(number);
            assert_eq!(server.take(&peer, TcpFlags::SYN, peer.seq, &[]), None);
        }
        let held = server.real(0) - base;
        let census = server.shard.census();
        assert_eq!(census.connections as u64, BACKLOG);
        let each = CONNECTION + if sent > 0 { text(sent) } else { 0 };
        let most = BACKLOG * each + census.syn_entries as u64 * HALF_OPEN + FIXED;
        println!("{sent} sent: {held} held, at most {most}");
        assert!(held <= most, "{held} B where at most {most} may be, {sent} sent by each");
    }
}

#[test]
fn fast_open_handshakes_are_limited_to_the_queue_length() {
    const ALLOWED: u32 = 64;
    const TEXT: u64 = 1_400;
    let mut server = Server::new(Tunables::default());
    assert!(server.shard.set_fast_open(server.listener, ALLOWED));
    let mut peer = peer(0);
    peer.fast_open = Some(FastOpen::REQUEST);
    let granted = server.take(&peer, TcpFlags::SYN, peer.seq, &[]);
    let cookie = granted.and_then(|answer| answer.options.fast_open).expect("a cookie");
    let base = server.real(0);
    for port in 0..1_000 {
        peer.port = 2_000 + port;
        peer.fast_open = Some(cookie);
        server.take(&peer, TcpFlags::SYN, peer.seq, &[7; TEXT as usize]);
    }
    let held = server.real(0) - base;
    let census = server.shard.census();
    assert_eq!(census.fast_opens as u32, ALLOWED);
    let most = u64::from(ALLOWED) * (CONNECTION + text(TEXT))
        + census.syn_entries as u64 * HALF_OPEN
        + FIXED;
    println!("{held} held, at most {most}; {census:?}");
    assert!(held <= most, "{held} B where at most {most} may be");
}
