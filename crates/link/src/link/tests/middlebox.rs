//! A middlebox that removes options, forgets flows and forges resets.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader, TcpOptions, Timestamps};
use whimbrel_wire::{IpHeader, Ipv4Header, Protocol, SeqNum, Sum, WindowScale};

use super::link;
use crate::{Link, LinkOutcome, Loss};

/// A segment of one flow, with these options.
fn segment(flags: TcpFlags, seq: u32, options: TcpOptions, text: &[u8]) -> Bytes {
    let header = TcpHeader {
        src_port: 7,
        dst_port: 80,
        seq: SeqNum::new(seq),
        ack: SeqNum::new(900),
        flags,
        options,
        ..TcpHeader::default()
    };
    let mut bytes = vec![0; header.header_len(OptionOrder::Linux)];
    header.emit(OptionOrder::Linux, &mut bytes);
    bytes.extend_from_slice(text);
    let ends = [[10, 0, 0, 1], [10, 0, 0, 2]];
    let [src, dst] = ends.map(whimbrel_wire::Address::from_v4_bytes);
    let sum = Sum::pseudo_header(src, dst, 6, bytes.len() as u32).add_bytes(&bytes).finish();
    TcpHeader::set_checksum(&mut bytes, sum);
    let ip = Ipv4Header::new(ends[0].into(), ends[1].into(), Protocol::TCP, bytes.len());
    let mut packet = vec![0; Ipv4Header::LEN];
    ip.emit(&mut packet);
    packet.extend(bytes);
    packet.into()
}

fn plain(flags: TcpFlags, seq: u32, text: &[u8]) -> Bytes {
    segment(flags, seq, TcpOptions::default(), text)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Header of the packet that arrives next, its TTL and its time.
fn next(link: &mut Link) -> (TcpHeader, u8, Instant) {
    loop {
        let due = link.next_arrival().expect("a packet is on the way");
        let Some(packet) = link.pop(due) else { continue };
        let (ip, payload) = IpHeader::parse(&packet).unwrap();
        let sum = Sum::pseudo_header(ip.src, ip.dst, 6, payload.len() as u32);
        assert!(sum.add_bytes(payload).is_valid(), "the checksum holds");
        return (TcpHeader::parse(payload).unwrap().0, ip.hop_limit, due);
    }
}

#[test]
fn strip_removes_named_options_only() {
    let options = TcpOptions {
        window_scale: Some(WindowScale::new(7)),
        sack_permitted: true,
        timestamps: Some(Timestamps { val: 1, ecr: 0 }),
        ..TcpOptions::default()
    };
    let mut link = link("strip=wscale+timestamps");
    let fate = link.push_frame(at(0), segment(TcpFlags::SYN, 1, options, b""));
    assert_eq!(fate, LinkOutcome { options_stripped: true, ..LinkOutcome::default() });
    let (tcp, ..) = next(&mut link);
    let left = TcpOptions { window_scale: None, timestamps: None, ..options };
    assert_eq!(tcp.options, left);
    assert!(link.push_frame(at(0), plain(TcpFlags::ACK, 2, b"")).is_unharmed());
    assert_eq!(link.counters().options_stripped, 1);
}

#[test]
fn forget_loses_idle_flow_until_its_next_syn() {
    let mut link = link("forget=10s");
    let mut push = |millis, flags, seq| link.push_frame(at(millis), plain(flags, seq, b"")).lost;
    assert_eq!(push(0, TcpFlags::SYN, 1), None);
    assert_eq!(push(9_999, TcpFlags::ACK, 2), None);
    assert_eq!(push(19_998, TcpFlags::ACK, 2), None);
    assert_eq!(push(29_998, TcpFlags::ACK, 2), Some(Loss::Forgotten));
    // A lost one does not bring it back.
    assert_eq!(push(29_999, TcpFlags::ACK, 2), Some(Loss::Forgotten));
    assert_eq!(push(30_000, TcpFlags::SYN, 7), None);
    assert_eq!(push(30_001, TcpFlags::ACK, 8), None);
    assert_eq!(link.counters().lost_forgotten, 2);
}

#[test]
fn forget_rst_resets_idle_flow_at_the_number_expected_next() {
    let mut link = link("forget=10s:rst,delay=1ms");
    link.push_frame(at(0), plain(TcpFlags::SYN, 1, b""));
    link.push_frame(at(4_000), plain(TcpFlags::ACK, 2, b"text"));
    next(&mut link);
    next(&mut link);
    let (tcp, ttl, due) = next(&mut link);
    assert_eq!((tcp.flags, tcp.seq), (TcpFlags::RST | TcpFlags::ACK, SeqNum::new(6)));
    assert_eq!((ttl, due), (125, at(14_000) + Duration::from_millis(1)));
    assert_eq!((link.next_arrival(), link.counters().resets_forged), (None, 1));
}

#[test]
fn forget_rst_spares_closing_flow() {
    let mut link = link("forget=10s:rst");
    link.push_frame(at(0), plain(TcpFlags::FIN | TcpFlags::ACK, 1, b""));
    while let Some(due) = link.next_arrival() {
        link.pop(due);
    }
    assert_eq!((link.counters().delivered, link.counters().resets_forged), (1, 0));
}

#[test]
fn inject_resets_receiver_of_first_text_once() {
    let mut link = link("inject=rst");
    assert!(link.push_frame(at(0), plain(TcpFlags::SYN, 1, b"")).is_unharmed());
    let fate = link.push_frame(at(1), plain(TcpFlags::ACK, 2, b"text"));
    assert_eq!(fate, LinkOutcome { reset_follows: true, ..LinkOutcome::default() });
    assert!(link.push_frame(at(2), plain(TcpFlags::ACK, 6, b"more")).is_unharmed());
    let flags: Vec<_> = (0..4).map(|_| next(&mut link)).map(|(it, ttl, _)| (it.seq, ttl)).collect();
    let expected = [(1, 64), (2, 64), (6, 125), (6, 64)];
    assert_eq!(flags, expected.map(|(seq, ttl)| (SeqNum::new(seq), ttl)));
}
