//! Memory and work for fragments that never become whole: a shard, with every allocation counted.

use whimbrel_base::packet::SegMeta;
use whimbrel_base::{Instant, Secrets};
use whimbrel_stack::{
    Capabilities, InterfaceAddress, Medium, RxFrame, Shard, ShardConfig, TxBatch,
};
use whimbrel_tcp::Tunables;
use whimbrel_wire::{Address, Fragment, Ipv4Header, Protocol};

use crate::allocator::held;

/// Bytes of the trees and lists that all senders share.
const SLACK: isize = 16 << 10;
const TOTAL: isize = 1 << 20;
const OF_ONE: isize = 256 << 10;

/// Returns a fragment of the datagram `id` of the host of this number.
fn fragment(host: u16, id: u16, offset: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0; Ipv4Header::LEN];
    let [high, low] = host.to_be_bytes();
    let header = Ipv4Header {
        identification: id,
        dont_fragment: false,
        fragment: Some(Fragment { identification: u32::from(id), offset, more: true }),
        ..Ipv4Header::new([198, 18, high, low].into(), [192, 0, 2, 1].into(), Protocol::ICMP, len)
    };
    header.emit(&mut packet);
    packet.resize(Ipv4Header::LEN + len, 7);
    packet
}

fn server() -> Shard {
    let own = InterfaceAddress { addr: Address::from_v4_bytes([192, 0, 2, 1]), prefix_len: 24 };
    let config = ShardConfig {
        tunables: Tunables::default(),
        secrets: Secrets::from_seed(1),
        capabilities: Capabilities::plain(Medium::Ip, 1_500),
        addresses: vec![own],
        routes: Vec::new(),
    };
    Shard::new(config).unwrap()
}

/// Passes every fragment to the shard and checks that their memory stays within `most` and the
/// reported number.
fn pour(most: isize, fragments: impl Iterator<Item = Vec<u8>>) {
    let mut server = server();
    let base = held();
    let mut peak = 0;
    for packet in fragments {
        let before = held();
        server.rx(Instant::ZERO, &[RxFrame::new(&packet, SegMeta::SINGLE)]);
        let taken = held() - before;
        let held = held() - base - packet.capacity() as isize;
        let said = server.census().fragment_bytes as isize;
        assert!(held <= said + SLACK, "{held} bytes held, {said} said");
        assert!(taken <= packet.len() as isize + SLACK, "{taken} bytes for one fragment");
        peak = peak.max(held);
    }
    assert!(peak <= most + SLACK, "{peak} bytes held");
    while server.advance(Instant::from_millis(60_000), 64) {}
    let mut batch = TxBatch::new(64);
    while server.tx(&mut batch) || !batch.is_empty() {
        batch.consume(batch.pending().len());
    }
    drop(batch);
    assert_eq!(server.census().fragment_bytes, 0);
    assert!(held() - base <= SLACK, "{} bytes left", held() - base);
}

/// Returns offsets of pieces of `len` bytes that never touch: from the front, from behind, and
/// alternating.
fn places(len: usize) -> [Vec<u16>; 3] {
    let step = (len / 8 * 8).max(8) + 8;
    let ascending: Vec<u16> = (1..65_000 / step).map(|at| (at * step) as u16).collect();
    let descending = ascending.iter().rev().copied().collect();
    let (left, right) = ascending.split_at(ascending.len() / 2);
    let by_turns = left.iter().zip(right.iter().rev()).flat_map(|(a, b)| [*a, *b]).collect();
    [ascending, descending, by_turns]
}

#[test]
fn fragments_of_one_source_stay_within_its_share() {
    for len in [1, 8, 64, 512, 1_480, 60_000] {
        for order in places(len) {
            let fragments = (0..300)
                .flat_map(|id| order.iter().take(130).map(move |at| fragment(1, id, *at, len)));
            pour(OF_ONE, fragments.take(40_000));
        }
    }
}

#[test]
fn what_many_sources_pin_stays_within_the_bound_of_all() {
    for len in [1, 8, 1_480] {
        for order in places(len) {
            let order = &order;
            let fragments = (0..40_000_usize).map(|at| {
                let place = order[at / 1_000 % order.len()];
                fragment((at % 1_000) as u16, 1, place, len)
            });
            pour(TOTAL, fragments);
        }
    }
}
