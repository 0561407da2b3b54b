#![allow(clippy::disallowed_methods, reason = "ignored tests measure time")]
extern crate std;

use alloc::vec::Vec;
use core::time::Duration;
use std::collections::BTreeMap;
use std::println;

use proptest::prelude::*;
use whimbrel_base::Instant;

use super::{TICK_BITS, TimerNode, TimerNodes, Wheel};

struct Nodes(Vec<TimerNode>);

impl TimerNodes for Nodes {
    fn node(&self, id: u32) -> &TimerNode {
        &self.0[id as usize]
    }

    fn node_mut(&mut self, id: u32) -> &mut TimerNode {
        &mut self.0[id as usize]
    }
}

fn nodes(count: usize) -> Nodes {
    Nodes(alloc::vec![TimerNode::UNARMED; count])
}

/// Everything due at `now`.
fn due(wheel: &mut Wheel, nodes: &mut Nodes, now: Instant) -> Vec<u32> {
    let mut budget = usize::MAX;
    core::iter::from_fn(|| wheel.pop_due(nodes, now, &mut budget)).collect()
}

const TICK: u64 = 1 << TICK_BITS;
const START: Instant = Instant::from_millis(12_345);

#[test]
fn a_timer_fires_once_at_its_instant_and_not_before() {
    let (mut wheel, mut nodes) = (Wheel::new(START), nodes(1));
    let at = START + Duration::from_millis(200);
    wheel.arm(&mut nodes, 0, at);
    assert_eq!(due(&mut wheel, &mut nodes, Instant::from_nanos(at.as_nanos() - 1)), []);
    assert_eq!(due(&mut wheel, &mut nodes, Instant::from_nanos(at.as_nanos() + TICK)), [0]);
    assert!(wheel.is_empty() && !nodes.0[0].is_armed());
    assert_eq!(due(&mut wheel, &mut nodes, at + Duration::from_secs(1)), []);
    assert_eq!(wheel.next_deadline(), None);
}

#[test]
fn arming_again_forgets_the_earlier_deadline() {
    let (mut wheel, mut nodes) = (Wheel::new(START), nodes(2));
    wheel.arm(&mut nodes, 1, START + Duration::from_millis(10));
    wheel.arm(&mut nodes, 1, START + Duration::from_secs(10));
    assert_eq!(wheel.len(), 1);
    assert_eq!(due(&mut wheel, &mut nodes, START + Duration::from_secs(9)), []);
    assert_eq!(due(&mut wheel, &mut nodes, START + Duration::from_secs(11)), [1]);
}

#[test]
fn a_disarmed_timer_never_fires_wherever_it_stands_in_its_slot() {
    for gone in 0..3 {
        let (mut wheel, mut nodes) = (Wheel::new(START), nodes(3));
        for id in 0..3 {
            wheel.arm(&mut nodes, id, START + Duration::from_secs(5));
        }
        wheel.disarm(&mut nodes, gone);
        wheel.disarm(&mut nodes, gone);
        let mut fired = due(&mut wheel, &mut nodes, START + Duration::from_secs(6));
        fired.sort_unstable();
        assert_eq!(fired, (0..3).filter(|id| *id != gone).collect::<Vec<_>>());
    }
}

#[test]
fn a_timer_armed_for_the_past_fires_at_the_next_tick() {
    let (mut wheel, mut nodes) = (Wheel::new(START), nodes(1));
    wheel.arm(&mut nodes, 0, Instant::ZERO);
    assert_eq!(due(&mut wheel, &mut nodes, Instant::from_nanos(START.as_nanos() + TICK)), [0]);
}

#[test]
fn timers_of_one_tick_fire_as_budget_allows() {
    let (mut wheel, mut nodes) = (Wheel::new(START), nodes(16_000));
    let at = START + Duration::from_secs(60);
    for id in 0..16_000 {
        wheel.arm(&mut nodes, id, at);
    }
    let (mut calls, mut fired, now) = (0, 0, at + Duration::from_millis(2));
    while wheel.next_deadline().is_some_and(|deadline| deadline <= now) {
        let mut budget = 64;
        while wheel.pop_due(&mut nodes, now, &mut budget).is_some() {
            fired += 1;
        }
        calls += 1;
    }
    assert_eq!(fired, 16_000);
    // 250 to fire them, and as many for each of at most two cascades.
    assert!((250..=760).contains(&calls), "{calls}");
}

#[test]
fn timer_cancelled_in_firing_slot_does_not_fire() {
    for after in 1..12 {
        let (mut wheel, mut nodes) = (Wheel::new(START), nodes(4));
        let at = START + Duration::from_secs(7);
        for id in 0..4 {
            wheel.arm(&mut nodes, id, at);
        }
        let (now, mut budget) = (at + Duration::from_secs(1), after);
        let mut fired = Vec::new();
        while let Some(id) = wheel.pop_due(&mut nodes, now, &mut budget) {
            fired.push(id);
        }
        let left: Vec<u32> = (0..4).filter(|id| !fired.contains(id)).collect();
        for id in &left {
            wheel.disarm(&mut nodes, *id);
        }
        assert_eq!(due(&mut wheel, &mut nodes, now), []);
        assert!(wheel.is_empty());
        assert_eq!(wheel.next_deadline(), None);
    }
}

#[test]
fn a_two_hour_timer_and_one_of_a_year_are_kept_apart() {
    let (mut wheel, mut nodes) = (Wheel::new(START), nodes(2));
    wheel.arm(&mut nodes, 0, START + Duration::from_secs(7200));
    let year = Duration::from_secs(365 * 86_400);
    wheel.arm(&mut nodes, 1, START + year);
    assert_eq!(due(&mut wheel, &mut nodes, START + Duration::from_secs(7199)), []);
    assert_eq!(due(&mut wheel, &mut nodes, START + Duration::from_secs(7201)), [0]);
    let horizon = Duration::from_nanos(Wheel::HORIZON << TICK_BITS);
    assert_eq!(due(&mut wheel, &mut nodes, START + (horizon + Duration::from_secs(1))), []);
    assert_eq!(due(&mut wheel, &mut nodes, START + (year - Duration::from_secs(1))), []);
    assert_eq!(due(&mut wheel, &mut nodes, START + (year + Duration::from_secs(1))), [1]);
}

#[test]
fn next_deadline_misses_no_timer_and_wakes_few_times() {
    let (mut wheel, mut nodes) = (Wheel::new(START), nodes(1));
    for seconds in [0, 1, 59, 7200, 300_000] {
        let at = START + Duration::from_secs(seconds);
        let (mut wheel_at, mut wakes) = (Wheel::new(START), 0);
        core::mem::swap(&mut wheel, &mut wheel_at);
        wheel.arm(&mut nodes, 0, at);
        while let Some(now) = wheel.next_deadline() {
            wakes += 1;
            for _ in due(&mut wheel, &mut nodes, now) {
                assert!(now >= at && now.since(at).as_nanos() <= u128::from(TICK));
            }
        }
        assert!(wakes <= 6, "{wakes} for {seconds} s");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Never early, at most one tick late, nothing lost, and
    /// `next_deadline` never late; near the start and where 36 bits of ticks end.
    #[test]
    fn behaves_as_a_map_from_timer_to_deadline(
        start in prop_oneof![Just(0_u64), any::<u32>().prop_map(u64::from), Just((1 << 56) - (1 << 33))],
        steps in proptest::collection::vec((0..40_u32, 0..5_u8, any::<u64>(), 0..44_u32), 1..400),
    ) {
        let mut now = start;
        let mut wheel = Wheel::new(Instant::from_nanos(now));
        let (mut nodes, mut model) = (nodes(40), BTreeMap::new());
        for (id, choice, amount, bits) in steps {
            let span = amount % (1 << bits);
            match choice {
                0 | 1 => {
                    wheel.arm(&mut nodes, id, Instant::from_nanos(now + span));
                    model.insert(id, now + span);
                }
                2 => {
                    wheel.disarm(&mut nodes, id);
                    model.remove(&id);
                }
                _ => {
                    now += span;
                    let mut budget = if choice == 3 { 3 } else { usize::MAX };
                    while let Some(id) = wheel.pop_due(&mut nodes, Instant::from_nanos(now), &mut budget) {
                        let at = model.remove(&id).expect("fired what was not armed");
                        prop_assert!(now >= at, "early by {}", at - now);
                    }
                    if choice == 4 {
                        let late = model.values().filter(|at| **at + TICK <= now).count();
                        prop_assert_eq!(late, 0);
                    }
                }
            }
            prop_assert_eq!(wheel.len(), model.len());
            let bound = model.values().map(|at| (*at).max(now) + TICK).min();
            let next = wheel.next_deadline().map(Instant::as_nanos);
            prop_assert_eq!(next.is_some(), bound.is_some());
            prop_assert!(next <= bound, "{:?} after {:?}", next, bound);
        }
        for id in 0..40 {
            wheel.disarm(&mut nodes, id);
        }
        prop_assert!(wheel.is_empty() && wheel.next_deadline().is_none());
    }
}

/// cargo test --release -p whimbrel-stack wheel -- --ignored --nocapture
#[test]
#[ignore = "measures"]
fn measure_arm_and_fire() {
    for count in [1_000_u32, 1_000_000] {
        let (mut wheel, mut nodes) = (Wheel::new(START), nodes(count as usize));
        let wait = |id: u32| {
            Duration::from_micros(200_000 + u64::from(id.wrapping_mul(2_654_435_761) >> 12))
        };
        for id in 0..count {
            wheel.arm(&mut nodes, id, START + wait(id));
        }
        let rounds = 10_000_000_u32;
        let start = std::time::Instant::now();
        for round in 0..rounds {
            let id = round % count;
            wheel.arm(&mut nodes, id, START + wait(round));
        }
        let arm = start.elapsed().as_nanos() as f64 / f64::from(rounds);
        let start = std::time::Instant::now();
        let (mut now, mut fired) = (START, 0_u32);
        while !wheel.is_empty() {
            now = now + Duration::from_millis(1);
            fired += due(&mut wheel, &mut nodes, now).len() as u32;
        }
        let fire = start.elapsed().as_nanos() as f64 / f64::from(fired);
        println!("{count} timers: re-arm {arm:.1} ns, cascades and firing {fire:.1} ns a timer");
    }
}
