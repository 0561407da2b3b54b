//! Named segments are lost once, and no others.

use std::vec::Vec;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::tcp::{OptionOrder, TcpFlags, TcpHeader};
use whimbrel_wire::{Ipv4Header, Protocol, SeqNum};

use crate::{Link, LinkOutcome, Loss};

/// The last numbers before the wrap, so that every stream crosses it.
const ISN: SeqNum = SeqNum::new(u32::MAX - 2_000);

/// Room for text with `mtu=1040`.
const MSS: u32 = 1_000;

fn link(text: &str) -> Link {
    Link::new(format!("mtu=1040,{text}").parse().expect(text), 7)
}

fn frame(port: u16, flags: TcpFlags, seq: SeqNum, text: u32) -> Bytes {
    let tcp = TcpHeader { src_port: port, dst_port: 80, seq, flags, ..TcpHeader::default() };
    let len = 40 + text as usize;
    let mut packet = std::vec![0; len];
    let ip = Ipv4Header::new(
        [10, 0, 0, 1].into(),
        [10, 0, 0, 2].into(),
        Protocol::TCP,
        len - Ipv4Header::LEN,
    );
    ip.emit(&mut packet);
    tcp.emit(OptionOrder::default(), &mut packet[20..]);
    packet.into()
}

/// Sends `len` bytes of text, the first of them `at` bytes into the stream of `port`.
fn is_lost(link: &mut Link, port: u16, at: u32, len: u32) -> bool {
    let fate = link.push_frame(Instant::ZERO, frame(port, TcpFlags::ACK, ISN + 1 + at, len));
    assert!(fate.is_unharmed() || fate == LinkOutcome::lost(Loss::Targeted), "{fate}");
    !fate.is_unharmed()
}

fn open(link: &mut Link, port: u16) {
    assert!(link.push_frame(Instant::ZERO, frame(port, TcpFlags::SYN, ISN, 0)).is_unharmed());
}

#[test]
fn named_segments_are_lost_once() {
    let mut link = link("drop=2+5");
    open(&mut link, 1_000);
    let lost: Vec<u32> =
        (0..8).filter(|number| is_lost(&mut link, 1_000, number * MSS, MSS)).collect();
    assert_eq!(lost, [1, 4]);
    assert!(!is_lost(&mut link, 1_000, MSS, MSS));
    assert!(!is_lost(&mut link, 1_000, 4 * MSS, MSS));
    assert_eq!(link.counters().lost_targeted, 2);
}

#[test]
fn repair_is_named_by_its_number_and_an_empty_segment_is_none() {
    let mut link = link("drop=1/2+1/3");
    open(&mut link, 1_000);
    assert!(!is_lost(&mut link, 1_000, 0, 0), "an acknowledgment before the first text");
    let lost: Vec<bool> = (0..5).map(|_| is_lost(&mut link, 1_000, 0, MSS)).collect();
    assert_eq!(lost, [false, true, true, false, false]);
}

#[test]
fn packet_with_first_byte_of_the_segment_is_lost() {
    let mut link = link("drop=3");
    open(&mut link, 1_000);
    for (at, len, lost) in
        [(0, 999, false), (999, 1_000, false), (1_999, 1, false), (2_000, 1, true)]
    {
        assert_eq!(is_lost(&mut link, 1_000, at, len), lost, "{len} at {at}");
    }
}

#[test]
fn losses_apply_to_each_connection_with_a_seen_syn() {
    let mut link = link("drop=1");
    open(&mut link, 1_000);
    open(&mut link, 1_001);
    // A repeated SYN is the same connection; a new one from the same port starts anew.
    open(&mut link, 1_000);
    assert!(is_lost(&mut link, 1_000, 0, MSS));
    open(&mut link, 1_000);
    assert!(!is_lost(&mut link, 1_000, 0, MSS));
    assert!(is_lost(&mut link, 1_001, 0, MSS));
    assert!(!is_lost(&mut link, 1_002, 0, MSS));
    link.push_frame(Instant::ZERO, frame(1_000, TcpFlags::SYN, ISN + 7, 0));
    assert!(is_lost(&mut link, 1_000, 7, MSS));
}

#[test]
fn text_on_a_syn_is_the_beginning_of_the_first_segment() {
    let mut link = link("drop=1");
    let fate = link.push_frame(Instant::ZERO, frame(1_000, TcpFlags::SYN, ISN, 100));
    assert_eq!(fate, LinkOutcome::lost(Loss::Targeted));
    assert!(!is_lost(&mut link, 1_000, 0, MSS));
}

#[test]
fn packets_other_than_tcp_pass() {
    let mut link = link("drop=1");
    for bytes in [&[][..], &[0x45; 30], &[0; 60]] {
        assert!(link.push_frame(Instant::ZERO, Bytes::copy_from_slice(bytes)).is_unharmed());
    }
}
