use std::net::Ipv4Addr;

use whimbrel_wire::tcp::{SackBlock, TcpFlags, TcpHeader};
use whimbrel_wire::{Endpoint, SeqNum};

use super::Sacked;

fn flow() -> [Endpoint; 2] {
    [Endpoint::new(Ipv4Addr::LOCALHOST.into(), 80); 2]
}

/// An acknowledgment that names one block.
fn naming(ack: u32, left: u32, right: u32) -> TcpHeader {
    let block = SackBlock { left: SeqNum::new(left), right: SeqNum::new(right) };
    let mut header =
        TcpHeader { ack: SeqNum::new(ack), flags: TcpFlags::ACK, ..Default::default() };
    assert!(header.options.sack.push(block));
    header
}

#[test]
fn sacked_range_may_not_be_dropped() {
    let mut sacked = Sacked::default();
    sacked.on_segment(flow(), &naming(1000, 2000, 3000)).unwrap();
    sacked.on_segment(flow(), &naming(1500, 4000, 5000)).unwrap();
    let wanted = sacked.on_segment(flow(), &naming(2000, 4000, 5000)).unwrap_err();
    assert!(wanted.starts_with("wants again what SACK named, 2000 to 3000: "), "{wanted}");
}

#[test]
fn duplicate_text_is_discarded() {
    let mut sacked = Sacked::default();
    for behind in [1, 1000, (1 << 31) - 1, 1 << 31] {
        let (ack, left) = (1 << 31, (1 << 31) - behind);
        sacked.on_segment(flow(), &naming(ack, left, left + 1)).unwrap();
    }
}

#[test]
fn range_beyond_a_taken_fin_may_be_dropped() {
    let mut sacked = Sacked::default();
    sacked.on_fin(flow(), SeqNum::new(2000));
    sacked.on_segment(flow(), &naming(1000, 2000, 3000)).unwrap();
    sacked.on_segment(flow(), &naming(2000, 0, 0)).unwrap();
    sacked.on_segment(flow(), &naming(2001, 0, 0)).unwrap_err();
}
