//! Each impairment on its own, and properties of all of them.

use std::time::Duration;

use bytes::Bytes;
use whimbrel_base::Instant;
use whimbrel_wire::{Ecn, IpHeader, Ipv4Header, Protocol, TrafficClass};

use super::{Link, LinkState};
use crate::{LinkConfig, LinkOutcome, Loss};

mod hostile;
mod keys;
mod middlebox;

fn link(text: &str) -> Link {
    Link::new(text.parse().expect(text), 7)
}

fn frame(bytes: usize) -> Bytes {
    Bytes::from(vec![0; bytes])
}

/// Pushes `count` numbered frames, one per millisecond.
fn push_numbered(link: &mut Link, count: u32) {
    for number in 0..count {
        let now = Instant::from_millis(u64::from(number));
        link.push_frame(now, Bytes::copy_from_slice(&number.to_be_bytes()));
    }
}

/// Numbers of all frames in order of arrival.
fn arrivals(link: &mut Link) -> Vec<u32> {
    let mut arrived = Vec::new();
    while let Some(next) = link.next_arrival() {
        let frame = link.pop(next).expect("due");
        arrived.push(u32::from_be_bytes(frame[..].try_into().expect("four bytes")));
    }
    arrived
}

#[test]
fn perfect_link_hands_over_at_once_and_in_order() {
    let mut link = link("");
    push_numbered(&mut link, 100);
    assert_eq!(link.next_arrival(), Some(Instant::ZERO));
    assert_eq!(arrivals(&mut link), (0..100).collect::<Vec<_>>());
    assert_eq!((link.counters().sent, link.counters().delivered), (100, 100));
    assert!(link.is_empty());
}

#[test]
fn late_pop_returns_time_of_arrival() {
    let mut link = link("rate=8M,delay=35ms");
    link.push_frame(Instant::ZERO, frame(1_000));
    let (arrived, popped) = link.pop_arrival(Instant::from_millis(900)).expect("due");
    assert_eq!((arrived, popped.len()), (Instant::from_millis(36), 1_000));
    assert_eq!((link.counters().delivered, link.pop_arrival(Instant::from_millis(999))), (1, None));
}

#[test]
fn frame_lost_by_user_is_counted_and_takes_no_time() {
    let mut link = link("rate=8M");
    let lost = link.lose(&frame(1_000), Loss::Targeted);
    assert_eq!(lost, LinkOutcome::lost(Loss::Targeted));
    let counters = *link.counters();
    assert_eq!((counters.sent, counters.sent_bytes, counters.lost_targeted), (1, 1_000, 1));
    assert_eq!((link.is_empty(), link.backlog(Instant::ZERO)), (true, 0));
}

#[test]
fn frame_takes_its_time_to_send_and_to_travel() {
    let mut link = link("rate=8M,delay=35ms");
    link.push_frame(Instant::ZERO, frame(1_000));
    link.push_frame(Instant::ZERO, frame(500));
    assert_eq!(link.next_arrival(), Some(Instant::from_millis(36)), "1,000 bytes at 1 MB/s");
    assert_eq!(link.pop(Instant::from_nanos(35_999_999)), None);
    assert!(link.pop(Instant::from_millis(36)).is_some());
    assert_eq!(link.next_arrival(), Some(Instant::from_nanos(36_500_000)));
}

#[test]
fn host_delay_is_one_way_and_does_not_limit_the_queue() {
    let config: LinkConfig = "rate=8k,delay=1s,host-delay=5s,queue=1bdp,mtu=100".parse().unwrap();
    let mut there = Link::new(config.clone(), 1);
    let mut back = Link::new(config.back(), 1);
    for (link, after) in [(&mut there, 6), (&mut back, 1)] {
        // Each takes a tenth of a second to send; none waits for another at the host.
        for number in 1..=2 {
            link.push_frame(Instant::ZERO, frame(100));
            assert_eq!(link.in_flight(), number);
        }
        let first = Instant::ZERO + Duration::from_millis(after * 1_000 + 100);
        assert_eq!(link.next_arrival(), Some(first));
        assert!(link.pop(first).is_some());
        assert_eq!(link.next_arrival(), Some(first + Duration::from_millis(100)));
    }
    // 8 kb/s by 2 s are 2,000 bytes.
    let mut link = Link::new(config, 1);
    for _ in 0..21 {
        link.push_frame(Instant::ZERO, frame(100));
    }
    assert_eq!((link.in_flight(), link.counters().lost_queue), (20, 1));
}

#[test]
fn link_without_rate_bounds_and_counts_its_frames() {
    let mut link = link("delay=3600s,mtu=65535");
    // All share one memory: only the link counts them all.
    let full = frame(65_535);
    let pushed = Link::MAX_BYTES / 65_535 + 10;
    let fates: Vec<_> = (0..pushed).map(|_| link.push_frame(Instant::ZERO, full.clone())).collect();
    assert_eq!(fates.first(), Some(&LinkOutcome::default()));
    assert_eq!(fates.last(), Some(&LinkOutcome::lost(Loss::Crowded)));
    let lost = link.counters().lost_crowded;
    assert!(lost > 0 && link.in_flight() as u64 == pushed - lost, "{:?}", link.counters());
    assert_eq!(link.counters().lost(), lost);
    // Arrived frames make room.
    let hour = Instant::ZERO + Duration::from_secs(3_600);
    for _ in 0..3 {
        assert!(link.pop(hour).is_some());
    }
    assert_eq!(link.push_frame(hour, full.clone()), LinkOutcome::default());
    link.set_state(LinkState::Down);
    link.set_state(LinkState::Up);
    assert_eq!(link.push_frame(hour, full), LinkOutcome::default());
    assert_eq!(link.in_flight(), 1);
}

/// Twice what a link holds is sent over it for ten seconds. All of 100 small packets a second arrive.
#[test]
fn small_packets_arrive_amid_flood_that_fills_link() {
    let mut link = link("delay=1s,mtu=65535");
    let (full, small) = (frame(65_535), frame(100));
    let mut arrived = 0;
    for burst in 0..1_000 {
        let now = Instant::from_millis(burst * 10);
        while let Some(frame) = link.pop(now) {
            arrived += u32::from(frame.len() == small.len());
        }
        (0..330).for_each(|_| _ = link.push_frame(now, full.clone()));
        assert!(link.push_frame(now, small.clone()).is_unharmed());
    }
    assert_eq!(arrived, 900);
    assert!(link.counters().lost_crowded > 150_000, "{:?}", link.counters());
}

#[test]
fn full_queue_drops_and_later_accepts_again() {
    for queue in ["queue=3p", "queue=3000"] {
        let mut link = link(&format!("rate=8M,{queue}"));
        let fates: Vec<LinkOutcome> =
            (0..5).map(|_| link.push_frame(Instant::ZERO, frame(1_000))).collect();
        let lost = LinkOutcome::lost(Loss::Queue);
        assert_eq!(fates[2..], [LinkOutcome::default(), lost, lost], "{queue}");
        assert!(link.push_frame(Instant::from_millis(1), frame(1_000)).is_unharmed());
        assert_eq!((link.counters().lost_queue, link.in_flight()), (2, 4));
    }
}

#[test]
fn losses_come_as_often_as_configured_and_by_reason() {
    let mut random = link("loss=10%");
    push_numbered(&mut random, 20_000);
    assert!((1_800..2_200).contains(&random.counters().lost_random), "{:?}", random.counters());
    // The bad state holds enter / (enter + leave) of the time: a tenth.
    let mut bursts = link("burst-loss=1%:9%");
    push_numbered(&mut bursts, 20_000);
    assert!((1_500..2_500).contains(&bursts.counters().lost_burst), "{:?}", bursts.counters());
    let arrived = arrivals(&mut bursts);
    let gaps = arrived.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(gaps < 400, "{gaps} bursts of eleven frames on average");
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let mut jittery = link("delay=5ms,jitter=20ms");
    push_numbered(&mut jittery, 1_000);
    assert!(arrivals(&mut jittery).is_sorted());
    let mut shuffled = link("delay=5ms,reorder=5%:10ms");
    push_numbered(&mut shuffled, 1_000);
    let arrived = arrivals(&mut shuffled);
    assert_eq!(arrived.len(), 1_000);
    assert!(!arrived.is_sorted());
    assert!((20..80).contains(&shuffled.counters().reordered));
}

#[test]
fn duplicates_and_corrupted_frames_arrive() {
    let mut link = link("dup=100%,corrupt=100%");
    let fate = link.push_frame(Instant::ZERO, frame(64));
    assert_eq!(fate, LinkOutcome { corrupted: true, duplicated: true, ..LinkOutcome::default() });
    for _ in 0..2 {
        let frame = link.pop(Instant::ZERO).expect("two copies");
        assert_eq!(frame.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1, "one bit");
    }
    assert_eq!(link.pop(Instant::ZERO), None);
}

#[test]
fn link_down_loses_frames_and_comes_up_empty() {
    let mut link = link("rate=8M,delay=35ms,queue=2p");
    link.push_frame(Instant::ZERO, frame(1_000));
    link.push_frame(Instant::ZERO, frame(1_000));
    link.set_state(LinkState::Down);
    assert_eq!(link.push_frame(Instant::ZERO, frame(1_000)), LinkOutcome::lost(Loss::Down));
    assert_eq!((link.next_arrival(), link.counters().lost_down), (None, 3));
    link.set_state(LinkState::Up);
    link.push_frame(Instant::ZERO, frame(1_000));
    assert_eq!(link.next_arrival(), Some(Instant::ZERO + Duration::from_millis(36)));
}

#[test]
fn frames_beyond_the_mtu_are_refused() {
    let mut link = link("mtu=100");
    assert!(link.push_frame(Instant::ZERO, frame(100)).is_unharmed());
    assert_eq!(link.push_frame(Instant::ZERO, frame(101)), LinkOutcome::lost(Loss::TooLong));
}

#[test]
fn same_seed_makes_the_same_choices_and_another_does_not() {
    let config: LinkConfig = "jitter=9ms,loss=5%,reorder=5%:9ms,dup=5%".parse().expect("valid");
    let run = |seed| {
        let mut link = Link::new(config.clone(), seed);
        push_numbered(&mut link, 500);
        arrivals(&mut link)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn queue_in_round_trips_holds_the_bdp_or_sixteen_frames() {
    // 8 Mb/s for 2 x 25 ms are 50,000 bytes; 2.5 times that, and for a short path 16 frames.
    for (text, bytes) in [
        ("rate=8M,delay=25ms,queue=1bdp", 50_000),
        ("rate=8M,delay=25ms,queue=2.5bdp", 125_000),
        ("rate=8M,delay=1ms,queue=1bdp", 24_000),
    ] {
        let mut link = link(text);
        let taken =
            (0..200).take_while(|_| link.push_frame(Instant::ZERO, frame(1_000)).lost.is_none());
        assert_eq!(taken.count(), bytes / 1_000, "{text}");
    }
}

#[test]
fn long_queue_marks_capable_frames() {
    let mut link = link("rate=8M,ecn=3000");
    let marked: Vec<bool> =
        (0..4).map(|_| link.push_frame(Instant::ZERO, capable_frame()).marked).collect();
    assert_eq!(marked, [false, false, true, true]);
    assert!(!link.push_frame(Instant::ZERO, frame(1_000)).marked, "no packet at all");
    assert_eq!(link.counters().marked, 2);
    // Once the waiting frames have been sent, marking ends.
    assert!(!link.push_frame(Instant::from_millis(10), capable_frame()).marked);
    let mut always = self::link("ecn=0");
    assert!(always.push_frame(Instant::ZERO, capable_frame()).marked);
    let arrived = always.pop(Instant::ZERO).expect("arrived");
    let (header, _) = IpHeader::parse(&arrived).expect("intact");
    assert_eq!(header.traffic_class.ecn(), Ecn::Ce);
}

/// 1,000 bytes of an ECN-capable sender.
fn capable_frame() -> Bytes {
    let mut packet = vec![0; 1_000];
    let header = Ipv4Header {
        tos: TrafficClass::new(0, Ecn::Ect0),
        ..Ipv4Header::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), Protocol::TCP, 980)
    };
    header.emit(&mut packet);
    packet.into()
}
