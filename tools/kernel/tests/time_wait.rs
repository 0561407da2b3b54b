//! Replies of this machine's kernel to a SYN in TIME-WAIT: the last column of
//! `tests/tw_vectors.tsv`, row by row.
//!
//! Needs root. Without it the test reports that and passes; `WHIMBREL_REQUIRE_NET=1` makes it fail.

#![allow(clippy::unwrap_used)] // the helpers of tests, as the tests themselves

use whimbrel_posix::SocketFlags;
use whimbrel_script::call::Call;
use whimbrel_script::host::Network;
use whimbrel_wire::SeqNum;
use whimbrel_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};

use peer::{Peer, kernel};

#[path = "common/peer.rs"]
mod peer;

const TS_RECENT: u32 = 1_000;

/// Returns a segment of the peer, with this TSval if any.
fn segment(flags: TcpFlags, seq: u32, ack: u32, tsval: Option<u32>) -> TcpHeader {
    let timestamps = tsval.map(|val| Timestamps { val, ecr: 0 });
    TcpHeader {
        seq: SeqNum::new(seq),
        ack: SeqNum::new(ack),
        flags,
        options: TcpOptions { timestamps, ..TcpOptions::default() },
        ..TcpHeader::default()
    }
}

/// Opens a connection that the kernel closes first, which leaves it in TIME-WAIT. Returns its
/// RCV.NXT.
fn leave_waiting(peer: &mut Peer, listener: i32, ts_recent: Option<u32>) -> u32 {
    let ours = 500_000;
    peer.send_as(&segment(TcpFlags::SYN, ours, 0, ts_recent));
    assert_eq!(peer.receive().tcp.flags, TcpFlags::SYN_ACK);
    peer.send_as(&segment(TcpFlags::ACK, ours + 1, peer.next.1, ts_recent));
    let fd = peer.value(Call::Accept { fd: listener, flags: SocketFlags::NONE });
    peer.value(Call::Close { fd });
    assert!(peer.receive().tcp.flags.contains(TcpFlags::FIN));
    let closing = TcpFlags::FIN | TcpFlags::ACK;
    peer.send_as(&segment(closing, ours + 1, peer.next.1, ts_recent));
    let last = peer.receive().tcp;
    assert_eq!((last.flags, last.ack.raw()), (TcpFlags::ACK, ours + 2));
    ours + 2
}

/// Returns whether the kernel opens the connection again, in the words of the table.
fn verdict(peer: &mut Peer, rcv_nxt: u32, syn: &TcpHeader) -> &'static str {
    peer.send_as(syn);
    let answer = peer.receive().tcp;
    if answer.flags == TcpFlags::SYN_ACK {
        assert_eq!(answer.ack, syn.seq + 1);
        peer.send_as(&segment(TcpFlags::RST, answer.ack.raw(), 0, None));
        return "reuse";
    }
    assert_eq!((answer.flags, answer.ack.raw()), (TcpFlags::ACK, rcv_nxt));
    "challenge"
}

#[test]
fn the_kernel_judges_each_syn_as_the_table_says_of_it() {
    let Some(mut peer) = kernel(&Network::v4()) else { return };
    let listener = peer.listener();
    let mut wrong = Vec::new();
    let table = include_str!("../../../tests/tw_vectors.tsv");
    let rows: Vec<_> = table.lines().filter(|line| !line.starts_with('#')).collect();
    for (number, row) in (0..).zip(&rows) {
        let fields: Vec<_> = row.split('\t').collect();
        let [old, tsval, _, gap, _, _, linux] = fields[..] else { panic!("seven fields: {row}") };
        peer.ports.0 = 40_000 + number;
        let rcv_nxt =
            leave_waiting(&mut peer, listener, (old == "timestamps").then_some(TS_RECENT));
        let tsval = match tsval {
            "absent" => None,
            "newer" => Some(TS_RECENT + 1),
            "older" => Some(TS_RECENT - 1),
            _ => Some(TS_RECENT),
        };
        let gap: i64 = gap.parse().unwrap();
        let syn = segment(TcpFlags::SYN, rcv_nxt.wrapping_add(gap as u32), 0, tsval);
        let said = verdict(&mut peer, rcv_nxt, &syn);
        if said != linux {
            wrong.push(format!("{row}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert_eq!(rows.len(), 48);
}
