//! Refusals of a host, each with its reason.

use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_tcp::{DropReason, Tunables};
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{Address, Endpoint, Protocol, RawWindow, SeqNum, Sum};

use super::hosts::{Over, client_addr, config, host, server_addr, server_at};
use super::packets::packet_from;
use crate::ip::FrameDrop;
use crate::shard::{ConfigError, ConnectError};
use crate::{RxFrame, Shard, TxBatch};

/// A TCP segment as an IPv4 packet with right checksums.
pub(super) fn segment(src: Address, flags: TcpFlags, seq: u32, ack: u32) -> Vec<u8> {
    segment_with(src, flags, [seq, ack], TcpOptions::default())
}

fn segment_with(
    src: Address,
    flags: TcpFlags,
    [seq, ack]: [u32; 2],
    options: TcpOptions,
) -> Vec<u8> {
    segment_between([(src, 4_000), (server_addr(Over::V4), 80)], flags, [seq, ack], options)
}

/// Returns a segment between any endpoints.
pub(super) fn segment_between(
    [(src, src_port), (dst, dst_port)]: [(Address, u16); 2],
    flags: TcpFlags,
    [seq, ack]: [u32; 2],
    options: TcpOptions,
) -> Vec<u8> {
    let header = TcpHeader {
        src_port,
        dst_port,
        seq: SeqNum::new(seq),
        ack: SeqNum::new(ack),
        flags,
        window: RawWindow::new(65_535),
        options,
        ..TcpHeader::default()
    };
    let mut tcp = vec![0; header.header_len(OptionOrder::Linux)];
    header.emit(OptionOrder::Linux, &mut tcp);
    let pseudo = Sum::pseudo_header(src, dst, Protocol::TCP.0, tcp.len() as u32);
    let sum = pseudo.add_bytes(&tcp);
    TcpHeader::set_checksum(&mut tcp, sum.finish());
    packet_from(src, dst, Protocol::TCP, &tcp)
}

pub(super) fn take(server: &mut Shard, packet: &[u8]) -> Option<TcpHeader> {
    server.rx(Instant::ZERO, &[RxFrame::new(packet, SegMeta::SINGLE)]);
    let mut batch = TxBatch::new(4);
    server.tx(&mut batch);
    let reply = batch.pending().first()?.to_vec();
    Some(TcpHeader::parse(&reply[20..]).expect("a TCP header").0)
}

#[test]
fn strays_are_answered_by_the_reset_that_fits_them() {
    let mut server = host(server_addr, 2, &Tunables::default());
    let client = client_addr(Over::V4);
    let reset = take(&mut server, &segment(client, TcpFlags::SYN, 100, 0)).expect("a reset");
    assert_eq!(reset.flags, TcpFlags::RST | TcpFlags::ACK);
    assert_eq!((reset.seq, reset.ack), (SeqNum::new(0), SeqNum::new(101)));
    let reset = take(&mut server, &segment(client, TcpFlags::ACK, 100, 77)).expect("a reset");
    assert_eq!((reset.flags, reset.seq), (TcpFlags::RST, SeqNum::new(77)));
    assert!(take(&mut server, &segment(client, TcpFlags::RST, 100, 0)).is_none());
    assert_eq!(server.counters().dropped(DropReason::NoSocket), 2);
    assert_eq!(server.counters().dropped(DropReason::ResetWithoutSocket), 1);
    assert_eq!(server.counters().out_rsts, 2);
}

#[test]
fn a_listener_answers_syn_refuses_ack_and_ignores_the_rest() {
    let mut server = host(server_addr, 2, &Tunables::default());
    server.listen(server_at(Over::V4), 8).expect("free");
    let client = client_addr(Over::V4);
    let syn_fin = TcpFlags::SYN | TcpFlags::FIN;
    for flags in [TcpFlags::FIN, TcpFlags::NONE, TcpFlags::PSH, syn_fin, TcpFlags::RST] {
        assert!(take(&mut server, &segment(client, flags, 100, 0)).is_none(), "{flags:?}");
    }
    let reset = take(&mut server, &segment(client, TcpFlags::SYN_ACK, 100, 77)).expect("a reset");
    assert_eq!((reset.flags, reset.seq), (TcpFlags::RST, SeqNum::new(77)));
    let syn_ack = take(&mut server, &segment(client, TcpFlags::SYN, 100, 0)).expect("an answer");
    assert_eq!((syn_ack.flags, syn_ack.ack), (TcpFlags::SYN_ACK, SeqNum::new(101)));
}

#[test]
fn a_syn_with_fin_opens_a_connection_only_if_it_may() {
    let mut server = host(server_addr, 2, &Tunables { drop_synfin: false, ..Tunables::default() });
    server.listen(server_at(Over::V4), 8).expect("free");
    let syn_fin = segment(client_addr(Over::V4), TcpFlags::SYN | TcpFlags::FIN, 100, 0);
    let syn_ack = take(&mut server, &syn_fin).expect("an answer");
    assert_eq!((syn_ack.flags, syn_ack.ack), (TcpFlags::SYN_ACK, SeqNum::new(101)));
}

#[test]
fn handshake_reset_has_timestamps_and_other_resets_none() {
    let mut server = host(server_addr, 2, &Tunables::default());
    server.listen(server_at(Over::V4), 8).expect("free");
    let client = client_addr(Over::V4);
    let options =
        TcpOptions { timestamps: Some(Timestamps { val: 7, ecr: 0 }), ..TcpOptions::default() };
    let stray = segment_with(client, TcpFlags::ACK, [100, 55], options);
    let reset = take(&mut server, &stray).expect("a reset");
    assert_eq!((reset.flags, reset.options.timestamps), (TcpFlags::RST, None));
    let syn_ack = take(&mut server, &segment_with(client, TcpFlags::SYN, [100, 0], options));
    let stamps = syn_ack.expect("an answer").options.timestamps.expect("negotiated");
    let wrong = segment_with(client, TcpFlags::ACK, [101, 55], options);
    let reset = take(&mut server, &wrong).expect("a reset");
    assert_eq!((reset.flags, reset.seq), (TcpFlags::RST, SeqNum::new(55)));
    // Without ACK, nothing is echoed.
    assert_eq!(reset.options.timestamps, Some(Timestamps { val: stamps.val, ecr: 0 }));
}

#[test]
fn corrupt_and_impossible_packets_are_dropped_silently() {
    let mut server = host(server_addr, 2, &Tunables::default());
    let client = client_addr(Over::V4);
    let good = segment(client, TcpFlags::SYN, 100, 0);
    let mut wrong_sum = good.clone();
    wrong_sum[25] ^= 1;
    let mut wrong_header = good.clone();
    wrong_header[8] ^= 1;
    let multicast = segment(Address::from_v4_bytes([224, 0, 0, 1]), TcpFlags::SYN, 1, 0);
    let own = segment(server_addr(Over::V4), TcpFlags::SYN, 1, 0);
    let everybody = segment(Address::from_v4_bytes([10, 0, 0, 255]), TcpFlags::SYN, 1, 0);
    let cases: [(&[u8], FrameDrop); 7] = [
        (&wrong_sum, FrameDrop::TcpChecksum),
        (&wrong_header, FrameDrop::Checksum),
        (&multicast, FrameDrop::Martian),
        (&own, FrameDrop::Martian),
        (&everybody, FrameDrop::Martian),
        (&good[..30], FrameDrop::Header),
        (&[], FrameDrop::Header),
    ];
    for (packet, reason) in cases {
        let before = server.ip_counters().dropped(reason);
        assert!(take(&mut server, packet).is_none());
        assert_eq!(server.ip_counters().dropped(reason), before + 1, "{reason:?}");
    }
    assert_eq!(server.census(), crate::shard::Census::default());
}

#[test]
fn every_segment_is_accepted_or_counted_under_one_reason() {
    let mut server = host(server_addr, 2, &Tunables::default());
    server.listen(server_at(Over::V4), 8).expect("free");
    let client = client_addr(Over::V4);
    for bits in 0..64 {
        for seq in [99, 100, 101, 200, 1 << 31] {
            take(&mut server, &segment(client, TcpFlags::from_bits(bits), seq, seq ^ 5));
        }
    }
    let counters = server.counters();
    let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
    assert_eq!(counters.in_segs, counters.accepted_segs + dropped);
    assert_eq!(counters.in_segs, 320);
}

#[test]
fn answers_that_find_no_room_are_counted() {
    let mut server = host(server_addr, 2, &Tunables::default());
    let stray = segment(client_addr(Over::V4), TcpFlags::ACK, 100, 5);
    for _ in 0..2_000 {
        server.rx(Instant::ZERO, &[RxFrame::new(&stray, SegMeta::SINGLE)]);
    }
    assert_eq!((server.census().replies, server.counters().replies_refused), (768, 1_232));
}

#[test]
fn nobody_connects_to_all_hosts_of_a_network() {
    let mut client = host(client_addr, 1, &Tunables::default());
    for bytes in [[10, 0, 0, 255], [255; 4], [224, 0, 0, 1], [0; 4]] {
        let all = Endpoint::new(Address::from_v4_bytes(bytes), 80);
        assert_eq!(client.connect(all, None), Err(ConnectError::NotAPeer(all)));
    }
    assert_eq!(client.census(), crate::shard::Census::default());
}

#[test]
fn a_link_that_carries_less_than_every_link_must_makes_no_host() {
    let with = |mtu, addresses: usize| {
        let mut config = config(server_addr, 2, &Tunables::default());
        config.capabilities.mtu = mtu;
        config.addresses.truncate(addresses);
        Shard::new(config).map(|_| ())
    };
    assert_eq!(with(68, 1), Ok(()));
    assert_eq!(with(67, 1), Err(ConfigError::Mtu { mtu: 67, least: 68 }));
    assert_eq!(with(1_280, 2), Ok(()));
    assert_eq!(with(1_279, 2), Err(ConfigError::Mtu { mtu: 1_279, least: 1_280 }));
}
