//! Policers, acknowledgments, steps in time, and damage to ECN.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::tcp::{
    AccurateEcn, AccurateEcnOrder, OptionOrder, SackBlock, SackBlocks, TcpFlags, TcpHeader,
    TcpOptions, Timestamps,
};
use whimbrel_wire::{Ecn, IpHeader, Ipv4Header, Protocol, RawWindow, SeqNum, Sum, TrafficClass};

use super::{arrivals, capable_frame, frame, link, push_numbered};
use crate::{Link, LinkOutcome, Loss};

fn at_millis(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Arrival time and length of each frame.
fn times(link: &mut Link) -> Vec<(Instant, usize)> {
    let mut all = Vec::new();
    while let Some(at) = link.next_arrival() {
        all.extend(std::iter::from_fn(|| link.pop(at)).map(|frame| (at, frame.len())));
    }
    all
}

#[test]
fn policer_passes_its_burst_and_then_its_rate() {
    // 8 Mb/s is a byte each microsecond.
    let mut link = link("police=8M:3000");
    let fates: Vec<LinkOutcome> =
        (0..4).map(|_| link.push_frame(Instant::ZERO, frame(1_000))).collect();
    assert_eq!(fates[2..], [LinkOutcome::default(), LinkOutcome::lost(Loss::Policed)]);
    // A nanosecond before the tokens are there, and then.
    let early = Instant::from_nanos(999_999);
    assert_eq!(link.push_frame(early, frame(1_000)), LinkOutcome::lost(Loss::Policed));
    assert!(link.push_frame(at_millis(1), frame(1_000)).is_unharmed());
    // A shorter one may pass where a longer does not, and a dropped one takes no tokens.
    let half = Instant::from_nanos(1_500_000);
    assert_eq!(link.push_frame(half, frame(1_000)), LinkOutcome::lost(Loss::Policed));
    assert!(link.push_frame(half, frame(500)).is_unharmed());
    assert_eq!((link.counters().lost_policed, link.counters().lost()), (3, 3));
    // After any silence the bucket holds no more than its burst.
    let late = at_millis(60_000);
    let passed = (0..10).filter(|_| link.push_frame(late, frame(1_000)).is_unharmed());
    assert_eq!(passed.count(), 3);
}

#[test]
fn policer_passes_rate_times_time_plus_burst_exactly() {
    // Twice the rate for 10 s: 10 Mb/s of 1,250-byte frames are 1,000 each second.
    let mut link = link("police=10M:30000");
    let passed = (0..20_000u64)
        .filter(|number| {
            link.push_frame(Instant::from_nanos(number * 500_000), frame(1_250)).is_unharmed()
        })
        .count();
    // 24 frames of burst; the last frame comes half a frame before 10 s.
    assert_eq!(passed, 24 + 9_999);
}

#[test]
fn waiting_frames_are_sent_at_new_rate() {
    // 1,000 bytes take 1 ms, from 2.5 ms on 10.
    let mut link = link("rate=8M,at=2.5ms:rate=800k,at=40ms:rate=8M");
    for _ in 0..6 {
        link.push_frame(Instant::ZERO, frame(1_000));
    }
    // Half of the third is left, which takes 5 ms; a quarter of the sixth is sent before 40 ms.
    let expected = [1_000, 2_000, 7_500, 17_500, 27_500, 37_500];
    let found = times(&mut link);
    assert_eq!(found.iter().map(|(at, _)| at.as_micros()).collect::<Vec<_>>(), expected);
    link.push_frame(at_millis(39), frame(1_000));
    assert_eq!(
        link.next_arrival().map(Instant::as_micros),
        Some(40_900),
        "a tenth at the old rate"
    );
    assert_eq!(link.backlog(at_millis(39)), 1_000);
}

#[test]
fn rate_that_begins_later_makes_a_queue_then() {
    let mut link = link("at=1s:rate=8k,queue=2p");
    for now in [0, 1_000] {
        let fates = [(); 3].map(|()| link.push_frame(at_millis(now), frame(1_000)).lost);
        let last = (now > 0).then_some(Loss::Queue);
        assert_eq!(fates, [None, None, last]);
    }
}

#[test]
fn shorter_delay_begins_at_its_step_and_overtakes_nothing() {
    let mut link = link("delay=50ms,at=10ms:delay=20ms,at=30ms:delay=60ms");
    for (sent, arrives) in [(9, 59), (10, 59), (25, 59), (29, 59), (30, 90), (40, 100)] {
        link.push_frame(at_millis(sent), frame(100));
        let last = link.in_order.back().map(|last| last.arrives);
        assert_eq!(last, Some(at_millis(arrives)), "sent at {sent} ms");
    }
}

#[test]
fn smaller_mtu_drops_silently_until_restored() {
    let mut link = link("at=1s:mtu=1200,at=2s:mtu=1500");
    for (now, bytes, lost) in [
        (999, 1_500, None),
        (1_000, 1_201, Some(Loss::TooLong)),
        (1_500, 1_200, None),
        (2_000, 1_500, None),
        (2_001, 1_501, Some(Loss::TooLong)),
    ] {
        assert_eq!(link.push_frame(at_millis(now), frame(bytes)).lost, lost, "{now} ms");
    }
    assert_eq!((link.counters().lost_too_long, link.config().mtu), (2, 1_500));
}

#[test]
fn step_down_loses_frames_under_way() {
    let mut link = link("delay=10ms,at=15ms:down,at=30ms:up");
    push_numbered(&mut link, 40);
    // Those sent until 5 ms arrive by 15 ms; those sent from 30 ms on arrive.
    let expected: Vec<u32> = (0..=5).chain(30..40).collect();
    assert_eq!(arrivals(&mut link), expected);
    assert_eq!((link.counters().lost_down, link.counters().lost()), (24, 24));
    assert!(link.is_empty() && link.held == 0);
}

#[test]
fn steps_draw_no_chance() {
    let run = |steps: &str| {
        let mut link = link(&format!("delay=5ms,jitter=9ms,loss=5%,reorder=5%:9ms,dup=5%{steps}"));
        push_numbered(&mut link, 500);
        arrivals(&mut link)
    };
    let all = run("");
    assert_eq!(run(",at=1s:down,at=2s:up,at=3s:delay=1ms,at=4s:rate=1k"), all);
    let early: Vec<u32> =
        run(",at=400ms:mtu=68").into_iter().filter(|number| *number < 300).collect();
    assert_eq!(early, all.into_iter().filter(|number| *number < 300).collect::<Vec<_>>());
}

/// An acknowledgment with this number, from port 1.
fn ack(number: u32) -> Segment {
    Segment { port: 1, ack: number, flags: TcpFlags::ACK, options: TcpOptions::default(), text: 0 }
}

#[derive(Clone, Copy)]
struct Segment {
    port: u16,
    ack: u32,
    flags: TcpFlags,
    options: TcpOptions,
    text: usize,
}

impl Segment {
    fn packet(&self) -> Bytes {
        let tcp = TcpHeader {
            src_port: self.port,
            dst_port: 80,
            seq: SeqNum::new(7),
            ack: SeqNum::new(self.ack),
            flags: self.flags,
            window: RawWindow::new(1_000),
            urgent: 0,
            options: self.options,
        };
        let len = tcp.header_len(OptionOrder::default()) + self.text;
        let ip = Ipv4Header {
            tos: TrafficClass::new(0, Ecn::Ect0),
            ..Ipv4Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::TCP, len)
        };
        let mut packet = vec![0; 20 + len];
        ip.emit(&mut packet);
        tcp.emit(OptionOrder::default(), &mut packet[20..]);
        let sum = Sum::pseudo_header(ip.src.into(), ip.dst.into(), Protocol::TCP.0, len as u32);
        let checksum = sum.add_bytes(&packet[20..]).finish();
        TcpHeader::set_checksum(&mut packet[20..], checksum);
        packet.into()
    }
}

/// Acknowledgment numbers of arrivals, whose checksums must be right.
fn acks(link: &mut Link) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(at) = link.next_arrival() {
        while let Some(packet) = link.pop(at) {
            all.push(read(&packet).ack.raw());
        }
    }
    all
}

fn read(packet: &[u8]) -> TcpHeader {
    let (ip, segment) = IpHeader::parse(packet).expect("intact");
    let sum = Sum::pseudo_header(ip.src, ip.dst, ip.protocol.0, segment.len() as u32);
    assert!(sum.add_bytes(segment).is_valid(), "the checksum is right");
    TcpHeader::parse(segment).expect("intact").0
}

#[test]
fn acknowledgments_leave_together_and_text_does_not_wait() {
    let mut link = link("ack-batch=10ms,delay=1ms");
    for now in [1, 5, 9] {
        assert!(link.push_frame(at_millis(now), ack(now as u32).packet()).batched);
    }
    let text = Segment { text: 100, ..ack(100) };
    assert!(!link.push_frame(at_millis(9), text.packet()).batched);
    let fin = Segment { flags: TcpFlags::ACK | TcpFlags::FIN, ..ack(101) };
    assert!(!link.push_frame(at_millis(9), fin.packet()).batched);
    assert_eq!(link.in_flight(), 5);
    assert_eq!(
        times(&mut link),
        [(10, 140), (10, 40), (11, 40), (11, 40), (11, 40)]
            .map(|(at, bytes)| (at_millis(at), bytes))
    );
    assert!(!link.push_frame(at_millis(20), ack(1).packet()).batched, "it leaves at once");
    assert_eq!((link.counters().batched, link.counters().delivered), (3, 5));
    assert_eq!(link.held, super::super::held(&ack(1).packet()));
}

#[test]
fn batch_enters_queue_when_it_leaves() {
    // 40 bytes take 1 ms; the text of 9 ms is sent before the batch.
    let mut link = link("ack-batch=10ms,rate=320k,loss=0%");
    for now in [1, 2] {
        link.push_frame(at_millis(now), ack(now as u32).packet());
    }
    link.push_frame(at_millis(9), Segment { text: 40, ..ack(9) }.packet());
    assert_eq!(
        times(&mut link).iter().map(|(at, _)| at.as_micros()).collect::<Vec<_>>(),
        [11_000, 12_000, 13_000]
    );
    // A link that goes down loses the waiting ones.
    link.push_frame(at_millis(21), ack(3).packet());
    link.set_state(crate::LinkState::Down);
    assert!(link.is_empty() && link.held == 0 && link.next_arrival().is_none());
    assert_eq!(link.counters().lost_down, 1);
}

#[test]
fn newer_acknowledgment_takes_place_of_older_one_that_waits() {
    let mut link = link("rate=320k,ack-filter,delay=1ms");
    // The first is being sent, the second waits, the others take its place.
    let fates = [1, 2, 3, 4].map(|number| link.push_frame(Instant::ZERO, ack(number).packet()));
    assert_eq!(fates.map(|fate| fate.replaces), [false, false, true, true]);
    assert_eq!(
        (link.in_flight(), link.counters().lost_replaced, link.counters().lost()),
        (2, 2, 2)
    );
    // Once its first bit is sent it cannot be replaced.
    assert!(!link.push_frame(at_millis(1), ack(5).packet()).replaces);
    assert_eq!(acks(&mut link), [1, 4, 5]);
    assert_eq!((link.counters().sent, link.counters().delivered), (5, 3));
}

#[test]
fn acknowledgment_with_more_is_not_replaced() {
    let first = ack(100);
    let mut blocks = SackBlocks::NONE;
    blocks.push(SackBlock { left: SeqNum::new(200), right: SeqNum::new(300) });
    let sack = TcpOptions { sack: blocks, ..TcpOptions::default() };
    let timestamps =
        TcpOptions { timestamps: Some(Timestamps { val: 1, ecr: 2 }), ..TcpOptions::default() };
    let newer = |options| Segment { options, ..ack(101) };
    let cases = [
        ("newer", first, ack(101), true),
        ("duplicate", first, ack(100), false),
        ("older", first, ack(99), false),
        ("SACK behind", first, newer(sack), false),
        ("SACK in front", Segment { options: sack, ..first }, newer(sack), false),
        ("timestamps", Segment { options: timestamps, ..first }, newer(timestamps), true),
        ("ECE begins", first, Segment { flags: TcpFlags::ACK | TcpFlags::ECE, ..ack(101) }, false),
        ("text", first, Segment { text: 1, ..ack(101) }, false),
        ("FIN", first, Segment { flags: TcpFlags::ACK | TcpFlags::FIN, ..ack(101) }, false),
        ("other connection", first, Segment { port: 2, ..ack(101) }, false),
    ];
    for (name, older, newer, replaces) in cases {
        let mut link = link("rate=320k,ack-filter");
        link.push_frame(Instant::ZERO, frame(40));
        link.push_frame(Instant::ZERO, older.packet());
        assert_eq!(link.push_frame(Instant::ZERO, newer.packet()).replaces, replaces, "{name}");
    }
    // Frames after a duplicate or text do not pass it.
    let mut link = link("rate=320k,ack-filter");
    for segment in [ack(1), ack(2), Segment { text: 5, ..ack(2) }, ack(3), ack(4)] {
        link.push_frame(Instant::ZERO, segment.packet());
    }
    assert_eq!(acks(&mut link), [1, 2, 2, 4]);
}

#[test]
fn bleaching_and_stripping_leave_right_checksums() {
    let mut link = link("ecn-bleach,accecn-strip,ecn=0");
    let options = TcpOptions {
        accurate_ecn: Some(AccurateEcn::new(AccurateEcnOrder::Ect0First, &[1, 2, 3])),
        timestamps: Some(Timestamps { val: 1, ecr: 2 }),
        ..TcpOptions::default()
    };
    let segment = Segment { text: 30, options, ..ack(1) };
    let fate = link.push_frame(Instant::ZERO, segment.packet());
    assert_eq!(fate, LinkOutcome { bleached: true, stripped: true, ..LinkOutcome::default() });
    assert_eq!(fate.to_string(), "ECN bleached, AccECN option stripped");
    let arrived = link.pop(Instant::ZERO).expect("arrived");
    let (ip, _) = IpHeader::parse(&arrived).expect("its checksum is right");
    assert_eq!(ip.traffic_class.ecn(), Ecn::NotEct);
    let tcp = read(&arrived);
    assert_eq!((tcp.options.accurate_ecn, tcp.options.timestamps), (None, options.timestamps));
    assert_eq!(arrived.len(), segment.packet().len());
    let counters = link.counters();
    assert_eq!((counters.bleached, counters.stripped, counters.marked), (1, 1, 0));
    assert!(link.push_frame(Instant::ZERO, frame(100)).is_unharmed(), "no packet at all");
}

#[test]
fn waits_are_those_of_queue_computed_by_hand() {
    // Each second frame comes when the one before it has half a millisecond left.
    let mut link = link("rate=8M,delay=5ms");
    link.measure_waits(at_millis(1));
    for millis in 0..100 {
        link.push_frame(at_millis(2 * millis), frame(1_000));
        link.push_frame(Instant::from_nanos(2_000_000 * millis + 500_000), frame(1_000));
    }
    let waits = link.waits().expect("measured");
    // 99 pairs of 0 and 0.5 ms: the first came before.
    assert_eq!(waits.mean(), Some(Duration::from_micros(250)));
    assert_eq!(waits.percentile(50), Some(Duration::ZERO));
    assert_eq!(waits.percentile(99), Some(Duration::from_micros(500)));
}

#[test]
fn keys_that_are_off_change_no_fate_and_no_time() {
    let text = "rate=8M,delay=5ms,jitter=3ms,loss=5%,burst-loss=1%:50%,reorder=5%:9ms,dup=5%,corrupt=1%,\
                ecn=3000,queue=20p";
    let run = |more: &str| {
        let mut link = link(&format!("{text}{more}"));
        let fates: Vec<_> = (0..2_000)
            .map(|number| link.push_frame(at_millis(number / 2), capable_frame()))
            .collect();
        (fates, times(&mut link), *link.counters())
    };
    let off = ",police=1000G:1G,ack-batch=0s,ack-filter=off,ecn-bleach=off,accecn-strip=off,at=3000s:down";
    assert_eq!(run(off), run(""));
    assert_eq!(run(",ack-filter,ack-batch=5ms,accecn-strip"), run(""), "no frame is a segment");
}
