//! Memory of a host that accepts all addresses, under a scan.

use whimbrel_base::packet::{RxChecksum, SegMeta};
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Answer, Capabilities, InterfaceAddress, ListenerId, Medium, RxFrame, Shard, ShardConfig,
    TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader};
use whimbrel_wire::{Address, Ipv4Header, Protocol, RawWindow, SeqNum};

use crate::allocator::held;

/// Limit in bytes: 4,096 SYNs of 64 and 16 in the flow table, which doubles as slabs do, their
/// addresses of 32 and 48 in the tree that finds them, as much again for their order by age and
/// destination, and 1,024 replies of 128.
const MOST: isize = 4_096 * (2 * (64 + 16) + 2 * (32 + 48)) + 1_024 * 128;

fn host() -> (Shard, ListenerId) {
    let addr = Address::from_v4_bytes([10, 0, 0, 1]);
    let mut shard = Shard::new(ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1_500),
        addresses: vec![InterfaceAddress { addr, prefix_len: 24 }],
        routes: Vec::new(),
    })
    .unwrap();
    shard.take_any_address();
    let listener = shard.listen_any().unwrap();
    (shard, listener)
}

/// Returns a SYN to the destination of this number.
fn syn(number: u32) -> Vec<u8> {
    let header = TcpHeader {
        src_port: 4_000,
        dst_port: 80,
        seq: SeqNum::new(number),
        flags: TcpFlags::SYN,
        window: RawWindow::new(65_535),
        ..TcpHeader::default()
    };
    let len = header.header_len(OptionOrder::Linux);
    let mut packet = vec![0; Ipv4Header::LEN + len];
    let dst = (0x2000_0000 + number).to_be_bytes().into();
    Ipv4Header::new([10, 0, 0, 2].into(), dst, Protocol::TCP, len).emit(&mut packet);
    header.emit(OptionOrder::Linux, &mut packet[Ipv4Header::LEN..]);
    packet
}

fn send_all(shard: &mut Shard, batch: &mut TxBatch) {
    while shard.tx(batch) || !batch.is_empty() {
        batch.consume(batch.pending().len());
    }
}

/// Sends SYNs to a million destinations; `decide` answers each.
fn scan(decide: impl Fn(u32) -> Option<Answer>) {
    let (mut shard, listener) = host();
    let mut batch = TxBatch::new(64);
    send_all(&mut shard, &mut batch);
    let before = held();
    let meta = SegMeta { checksum: RxChecksum::Verified, ..SegMeta::SINGLE };
    let mut asked = 0;
    for first in (0..1_000_000).step_by(64) {
        let packets: Vec<_> = (first..first + 64).map(syn).collect();
        let frames: Vec<_> = packets.iter().map(|it| RxFrame::new(it, meta)).collect();
        // All arrive within ten seconds: nothing expires.
        shard.rx(Instant::from_nanos(u64::from(first) * 10_000), &frames);
        drop(frames);
        drop(packets);
        while shard.poll_event().is_some() {}
        while let Some(dial) = shard.asked(listener) {
            asked += 1;
            if let Some(answer) = decide(asked) {
                shard.answer_syn(dial.syn, answer);
            }
        }
        send_all(&mut shard, &mut batch);
        let census = shard.census();
        assert!(census.syn_entries <= 4_096 && census.other_addresses <= 4_096 + 64, "{census:?}");
        assert!(held() - before <= MOST, "{} B are held, {MOST} may be", held() - before);
    }
    // The clients have given up, and the answered ones expire.
    shard.advance(Instant::from_millis(140_000), usize::MAX);
    while shard.next_deadline().is_some_and(|next| next < Instant::from_millis(400_000)) {
        let next = shard.next_deadline().unwrap();
        shard.advance(next, usize::MAX);
        send_all(&mut shard, &mut batch);
    }
    let census = shard.census();
    assert_eq!((census.syn_entries, census.other_addresses, census.pending_dials), (0, 0, 0));
}

#[test]
fn scan_of_a_million_destinations_stays_within_bounds() {
    scan(|_| None);
    scan(|asked| match asked % 4 {
        0 => Some(Answer::Reset),
        1 => Some(Answer::Ignore),
        2 => Some(Answer::Accept),
        _ => None,
    });
    scan(|_| Some(Answer::Ignore));
}
