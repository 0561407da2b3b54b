//! Bounds on what stations can make a host do.

use std::time::Duration;
use std::vec::Vec;

use proptest::prelude::*;
use whimbrel_base::Instant;
use whimbrel_base::packet::SegMeta;
use whimbrel_wire::MacAddress;
use whimbrel_wire::ethernet::EtherType;

use super::super::hosts::{BOTH, Over};
use super::station::{Host, OURS, Sent, address, answers, asks, frame, station};
use crate::RxFrame;
use crate::link::neighbours::{
    ASKS_AT_ONCE, ASKS_PER_SECOND, MOST, MOST_SOUGHT, MOST_WAITING, NeighbourState,
};

#[test]
fn three_packets_wait_for_a_neighbour_the_newest_ones() {
    for over in BOTH {
        let mut host = Host::new();
        for _ in 0..5 {
            host.ping(over, 9);
        }
        assert_eq!(host.neighbours().waiting(), MOST_WAITING);
        let sent = host.take(&answers(over, 9, station(9)));
        assert_eq!(sent, [3, 4, 5].map(|number| Sent::Echo(number, station(9))));
        assert_eq!(host.counters().out_queue_full, 2);
    }
}

#[test]
fn neighbour_in_use_outlives_a_thousand_others() {
    for over in BOTH {
        let mut host = Host::new();
        host.ping(over, 9);
        host.take(&answers(over, 9, station(9)));
        for number in 100..100 + 3 * MOST as u16 {
            host.take(&asks(over, number, station(number)));
            if number % 500 == 0 {
                host.ping(over, 9);
            }
            assert!(host.neighbours().len() <= MOST);
        }
        assert_eq!(host.neighbours().len(), MOST);
        assert_eq!(host.state(over, 9), Some(NeighbourState::Reachable));
        assert_eq!(host.state(over, 100), None, "the longest unused went");
        assert_eq!(host.counters().evicted, 2 * MOST as u64 + 1);
    }
}

#[test]
fn sought_neighbours_are_bounded_and_oldest_gives_way() {
    for over in BOTH {
        let mut host = Host::new();
        for number in 100..300 {
            host.ping(over, number);
        }
        assert_eq!((host.neighbours().sought(), host.neighbours().waiting()), (MOST_SOUGHT, 128));
        assert_eq!((host.counters().evicted, host.counters().out_queue_full), (72, 72));
        assert_eq!((host.state(over, 171), host.state(over, 172).is_some()), (None, true));
        // A neighbour that is found now stays while others are sought.
        assert_eq!(host.take(&answers(over, 299, station(9))).len(), 1);
        host.run_seconds(4);
        assert_eq!((host.neighbours().len(), host.neighbours().waiting()), (1, 0));
        assert_eq!(host.counters().out_neighbour_failed, 127);
    }
}

#[test]
fn questions_to_all_neighbours_together_are_limited() {
    let mut host = Host::new();
    let asked: usize = (0..2_000).map(|number| host.ping(Over::V4, 100 + number).len()).sum();
    assert_eq!(asked, ASKS_AT_ONCE as usize);
    assert_eq!(host.counters().ask_limited, 2_000 - u64::from(ASKS_AT_ONCE));
    // Those that were not asked about have their turn a second later.
    let later = host.run_seconds(4).len();
    assert!((128..=4 * ASKS_PER_SECOND as usize).contains(&later), "{later}");
}

/// In a millisecond the host is made to seek ten made-up neighbours; returns what it sends.
fn seek_made_up(host: &mut Host, milli: u16) -> Vec<Sent> {
    let ping = |number| super::station::ping(address(Over::V4, 1_000 + number % 50_000), 1);
    let frames: Vec<_> = (0..10).map(|at| ping(milli.wrapping_mul(10).wrapping_add(at))).collect();
    let burst: Vec<_> = frames.iter().map(|it| RxFrame::new(it, SegMeta::SINGLE)).collect();
    host.shard.rx(host.now, &burst);
    let mut sent = host.sent();
    sent.extend(host.run(Duration::from_millis(1)));
    sent
}

#[test]
fn known_neighbour_is_served_amid_flood_of_made_up_ones() {
    let mut host = Host::new();
    let (known, at) = (address(Over::V4, 9), station(9));
    host.ping(Over::V4, 9);
    host.take(&answers(Over::V4, 9, at));
    // Beyond the longest REACHABLE_TIME: its next use has to ask it.
    host.run_seconds(46);
    let (mut asked, mut answered) = (0, 0);
    for milli in 0..10_000 {
        if milli % 1_000 == 0 {
            let sent = host.ping(Over::V4, 9);
            answered +=
                usize::from(sent.iter().any(|it| matches!(it, Sent::Echo(_, to) if *to == at)));
        }
        if seek_made_up(&mut host, milli).contains(&Sent::Ask(known, Some(at))) {
            asked += 1;
            host.take(&answers(Over::V4, 9, at));
        }
    }
    assert_eq!((asked, answered), (1, 10));
    assert!(host.counters().ask_limited > 50_000 && host.neighbours().sought() <= MOST_SOUGHT);
}

#[test]
fn question_is_not_wasted_while_made_up_neighbours_are_sought() {
    let mut host = Host::new();
    for milli in 0..1_000 {
        seek_made_up(&mut host, milli);
    }
    let sent = seek_made_up(&mut host, 1_000);
    let asked =
        sent.iter().find_map(|it| if let Sent::Ask(to, None) = it { Some(*to) } else { None });
    let asked = asked.expect("one question in each millisecond");
    // A round trip of 100 ms, in which a thousand others come.
    for milli in 1_001..1_101 {
        seek_made_up(&mut host, milli);
    }
    assert!(host.neighbours().get(&asked).is_some());
}

#[test]
fn no_neighbour_loses_its_address_without_being_asked() {
    let mut host = Host::new();
    for number in 10..1_010 {
        host.ping(Over::V4, number);
        host.take(&answers(Over::V4, number, station(number)));
        host.run(Duration::from_millis(2));
    }
    host.run_seconds(2);
    let rival = |number: u16| station(number + 5_000);
    let mut sent = Vec::new();
    for number in 10..1_010 {
        sent.extend(host.take(&asks(Over::V4, number, rival(number))));
    }
    sent.extend(host.run_seconds(2));
    let mut moved = 0;
    for number in 10..1_010 {
        let at = host.neighbours().get(&address(Over::V4, number)).and_then(|(_, mac)| mac);
        let question = Sent::Ask(address(Over::V4, number), Some(station(number)));
        let asked = sent.iter().filter(|it| **it == question).count();
        assert!(at == Some(station(number)) || asked == 3, "{number} was asked {asked} times");
        moved += usize::from(asked == 3);
    }
    assert!((1..1_000).contains(&moved), "{moved}: all questions are used up");
}

#[test]
fn answers_wait_in_a_bounded_queue() {
    let mut host = Host::new();
    let question = asks(Over::V4, 9, station(9));
    for _ in 0..1_000 {
        host.shard.rx(host.now, &[RxFrame::new(&question, SegMeta::SINGLE)]);
    }
    assert_eq!((host.counters().answered, host.counters().answer_limited), (256, 744));
    assert_eq!(host.frames().len(), 256);
}

/// Bytes that are nearly ARP or Neighbour Discovery.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let valid = prop_oneof![
        (0..2u16, 0..20u16).prop_map(|(over, number)| asks(
            BOTH[usize::from(over)],
            number,
            station(number)
        )),
        (0..2u16, 0..20u16).prop_map(|(over, number)| answers(
            BOTH[usize::from(over)],
            number,
            station(number + 1)
        )),
        (0..20u16).prop_map(|number| super::station::ping(address(Over::V4, number), 1)),
    ];
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let changed = (valid, prop::collection::vec(change, 0..3), 0..30usize).prop_map(
        |(mut bytes, changes, cut)| {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(bytes.len() - cut.saturating_sub(25).min(bytes.len()));
            bytes
        },
    );
    let kinds = [EtherType::ARP, EtherType::IPV4, EtherType::IPV6, EtherType(0x1234)];
    let noise = (prop::sample::select(kinds.to_vec()), prop::collection::vec(any::<u8>(), 0..100))
        .prop_map(|(kind, bytes)| frame(OURS, MacAddress([6; 6]), kind, &bytes));
    prop_oneof![4 => changed, 1 => noise, 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #[test]
    fn whatever_arrives_is_counted_once_and_leaves_a_bounded_table(
        frames in prop::collection::vec((nearly(), 0..3_000u64), 1..60),
    ) {
        let mut host = Host::new();
        for (frame, millis) in &frames {
            host.now = host.now + Duration::from_millis(*millis);
            while host.shard.advance(host.now, 4) {}
            host.shard.rx(host.now, &[RxFrame::new(frame, SegMeta::SINGLE)]);
            host.frames();
            prop_assert!(host.neighbours().len() <= MOST);
            prop_assert!(host.neighbours().waiting() <= MOST_WAITING * host.neighbours().sought());
        }
        let counters = host.shard.ip_counters();
        let dropped: u64 = counters.drops().map(|(_, count)| count).sum();
        prop_assert_eq!(counters.in_receives, frames.len() as u64);
        // What looks like a fragment of something waits for the rest of it.
        let held = host.shard.census().fragmented as u64 + counters.reassembly_timeouts;
        prop_assert_eq!(counters.in_receives, counters.in_delivers + dropped + held);
        host.run_seconds(60);
        prop_assert_eq!((host.neighbours().sought(), host.neighbours().waiting()), (0, 0));
        prop_assert!(host.shard.next_deadline().is_none_or(|next| next > Instant::ZERO));
    }
}
