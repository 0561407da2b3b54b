//! What nobody can make a host do more of, whatever they send.

use std::vec::Vec;

use proptest::prelude::*;
use whimbrel_base::Instant;
use whimbrel_tcp::SegMeta;
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
fn the_neighbour_in_use_stays_while_a_thousand_others_come_and_go() {
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
fn those_sought_are_few_and_the_oldest_gives_way_with_its_packets() {
    for over in BOTH {
        let mut host = Host::new();
        for number in 100..300 {
            host.ping(over, number);
        }
        assert_eq!((host.neighbours().sought(), host.neighbours().waiting()), (MOST_SOUGHT, 128));
        assert_eq!((host.counters().evicted, host.counters().out_queue_full), (72, 72));
        assert_eq!((host.state(over, 171), host.state(over, 172).is_some()), (None, true));
        // Whoever is found now stays while others are sought.
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

/// Octets that are nearly ARP or Neighbour Discovery.
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
        |(mut octets, changes, cut)| {
            for (at, octet) in changes {
                let at = at.index(octets.len());
                octets[at] = octet;
            }
            octets.truncate(octets.len() - cut.saturating_sub(25).min(octets.len()));
            octets
        },
    );
    let kinds = [EtherType::ARP, EtherType::IPV4, EtherType::IPV6, EtherType(0x1234)];
    let noise = (prop::sample::select(kinds.to_vec()), prop::collection::vec(any::<u8>(), 0..100))
        .prop_map(|(kind, octets)| frame(OURS, MacAddress([6; 6]), kind, &octets));
    prop_oneof![4 => changed, 1 => noise, 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #[test]
    fn whatever_arrives_is_counted_once_and_leaves_a_bounded_table(
        frames in prop::collection::vec((nearly(), 0..3_000u64), 1..60),
    ) {
        let mut host = Host::new();
        for (frame, millis) in &frames {
            host.now = host.now + std::time::Duration::from_millis(*millis);
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
