//! Memory of a capture in addition to its shard, with any number of flows.

use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_link::recorder::{Recorder, RecorderConfig};
use whimbrel_stack::{Medium, Recv, RxFrame};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::TcpFlags;

use crate::allocator::held;
use crate::budget::{Peer, Server};

/// Packets of these tests have no checksum.
const VERIFIED: SegMeta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
/// Bytes of a flow's record: flow, state, and their place in a tree.
const OF_FLOW: isize = 96;
/// Limit in bytes: the remembered states of flows, and the output of a burst.
const BOUND: isize = 65_536 * OF_FLOW + (256 << 10);

#[test]
fn states_of_flows_that_are_gone_are_forgotten() {
    let mut server = Server::new(Tunables::default());
    let base = held();
    let mut recorder = Recorder::begin(RecorderConfig::new("whim0", Medium::Ip));
    let (mut most, mut extra) = (0, held() - base);
    for number in 0..300_000_u32 {
        let peer = Peer::new((number >> 8) as u16, 1_024 + (number & 0xff) as u16);
        let packet = peer.packet(TcpFlags::SYN, peer.seq, &[]);
        let before = held();
        recorder.rx(server.now, &mut server.shard, &[RxFrame::new(&packet, VERIFIED)]);
        let with_both = held();
        let of_shard = server.shard.memory().held;
        recorder.take().clear();
        extra += with_both - before;
        most = most.max(extra - of_shard as isize);
        // The listener's entries time out without a packet that is recorded.
        server.pass(if number % 500 == 0 { 200_000 } else { 0 }, peer.port);
        extra += held() - with_both;
    }
    assert!((BOUND / 2..=BOUND).contains(&most), "{most} bytes");
}

/// SYNs of 100,000 flows pass, of which all but some thousand are gone again. A connection that
/// stays is not forgotten with them: its state is recorded once.
#[test]
fn flood_of_flows_leaves_state_of_connection_that_is_there() {
    let mut server = Server::new(Tunables::default());
    let mut recorder = Recorder::begin(RecorderConfig::new("whim0", Medium::Ip));
    let (mut honest, own) = server.connected_to(Peer::new(u16::MAX - 1, 9));
    let mut said = Vec::new();
    for number in 0..100_000_u32 {
        if number % 10_000 == 0 {
            let packet = honest.packet(TcpFlags::ACK, honest.seq, b"text");
            recorder.rx(server.now, &mut server.shard, &[RxFrame::new(&packet, VERIFIED)]);
            honest.seq += 4;
            let Recv::Data(text) = server.shard.recv(own) else { panic!("{number}: no text") };
            assert_eq!(text, b"text"[..]);
            said.push(recorder.take().windows(18).any(|it| it == b"state: ESTABLISHED"));
        }
        let peer = Peer::new((number >> 8) as u16, 1_024 + (number & 0xff) as u16);
        let packet = peer.packet(TcpFlags::SYN, peer.seq, &[]);
        recorder.rx(server.now, &mut server.shard, &[RxFrame::new(&packet, VERIFIED)]);
        recorder.take().clear();
        server.pass(if number % 500 == 0 { 200_000 } else { 0 }, peer.port);
    }
    assert_eq!(said, [true, false, false, false, false, false, false, false, false, false]);
}
