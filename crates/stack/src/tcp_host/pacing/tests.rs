extern crate std;

use alloc::vec::Vec;
use core::time::Duration;
use std::collections::BTreeMap;

use proptest::prelude::*;
use whimbrel_base::Instant;

use super::{PacingWheel, SLOT_BITS, SLOTS};

const SLOT: u64 = 1 << SLOT_BITS;
/// The longest wait, nanoseconds.
const HORIZON: u64 = (SLOTS as u64 - 1) << SLOT_BITS;
const START: Instant = Instant::from_millis(12_345);

/// The number of connections that wait.
fn waiting(wheel: &PacingWheel) -> usize {
    wheel.slots.as_deref().map_or(0, |slots| slots.waiting)
}

/// Every connection whose wait is over at `now`.
fn due(wheel: &mut PacingWheel, now: Instant) -> Vec<u32> {
    let mut budget = usize::MAX;
    core::iter::from_fn(|| wheel.pop_due(now, &mut budget)).collect()
}

#[test]
fn wait_ends_at_its_instant_and_not_before() {
    let mut wheel = PacingWheel::default();
    let at = START + Duration::from_micros(900);
    wheel.wait(7, at, START);
    assert_eq!(due(&mut wheel, Instant::from_nanos(at.as_nanos() - 1)), []);
    let deadline = wheel.next_deadline().expect("a connection waits");
    assert!((at.as_nanos()..at.as_nanos() + SLOT).contains(&deadline.as_nanos()));
    assert_eq!(due(&mut wheel, deadline), [7]);
    assert_eq!((waiting(&wheel), wheel.next_deadline()), (0, None));
}

#[test]
fn second_wait_of_a_connection_changes_nothing() {
    let mut wheel = PacingWheel::default();
    wheel.wait(0, START + Duration::from_millis(2), START);
    wheel.wait(0, START + Duration::from_millis(1), START);
    assert_eq!(waiting(&wheel), 1);
    assert_eq!(due(&mut wheel, START + Duration::from_micros(1_500)), []);
    assert_eq!(due(&mut wheel, START + Duration::from_millis(3)), [0]);
}

#[test]
fn wait_beyond_the_horizon_ends_there() {
    let mut wheel = PacingWheel::default();
    wheel.wait(3, START + Duration::from_secs(10), START);
    let horizon = START + Duration::from_nanos(HORIZON);
    assert_eq!(due(&mut wheel, START + Duration::from_millis(33)), []);
    assert_eq!(due(&mut wheel, horizon), [3]);
}

#[test]
fn budget_bounds_what_one_call_does() {
    let mut wheel = PacingWheel::default();
    for index in 0..10 {
        wheel.wait(index, START, START);
    }
    let (later, mut budget) = (START + Duration::from_millis(1), 4);
    let first: Vec<_> = core::iter::from_fn(|| wheel.pop_due(later, &mut budget)).collect();
    assert_eq!((first.len(), budget, waiting(&wheel)), (4, 0, 6));
    assert!(wheel.next_deadline().is_some_and(|at| at <= later));
    assert_eq!(due(&mut wheel, later).len(), 6);
}

#[test]
fn nothing_is_allocated_before_the_first_wait() {
    let mut wheel = PacingWheel::default();
    assert_eq!((due(&mut wheel, START), wheel.memory()), (Vec::new(), 0));
}

#[test]
fn waits_take_4_bytes_a_connection_and_17_kib_a_shard() {
    let mut wheel = PacingWheel::default();
    for index in 0..10_000 {
        wheel.wait(index, START + Duration::from_micros(u64::from(index)), START);
    }
    // The array grows by doubling.
    assert!(wheel.memory() <= 17 * 1_024 + 2 * 4 * 10_000, "{}", wheel.memory());
    assert_eq!(due(&mut wheel, START + Duration::from_millis(50)).len(), 10_000);
}

/// A step of a random history.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many nanoseconds pass, and what is due ends.
    Pass(u64),
    /// This connection waits so many nanoseconds.
    Wait(u32, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let times = || prop_oneof![0..3 * SLOT, 0..200 * SLOT, 0..2 * HORIZON];
    let step = prop_oneof![
        times().prop_map(Step::Pass),
        (0..40_u32, times()).prop_map(|(index, nanos)| Step::Wait(index, nanos)),
        (0..40_u32, times()).prop_map(|(index, nanos)| Step::Wait(index, nanos)),
    ];
    proptest::collection::vec(step, 1..300)
}

proptest! {
    #[test]
    fn waits_end_as_a_sorted_list_says(steps in steps()) {
        let (mut wheel, mut now) = (PacingWheel::default(), START);
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Wait(index, nanos) => {
                    let at = now + Duration::from_nanos(nanos);
                    wheel.wait(index, at, now);
                    model.entry(index).or_insert((at, now));
                }
                Step::Pass(nanos) => {
                    now = now + Duration::from_nanos(nanos);
                    for index in due(&mut wheel, now) {
                        let (at, since) = model.remove(&index).expect("it waits");
                        let horizon = HORIZON - 2 * SLOT;
                        prop_assert!(at.min(since + Duration::from_nanos(horizon)) <= now);
                    }
                    let late = model.values().find(|(at, _)| at.as_nanos() + SLOT <= now.as_nanos());
                    prop_assert!(late.is_none());
                }
            }
            prop_assert_eq!(waiting(&wheel), model.len());
            let first = model.values().map(|(at, _)| *at).min();
            let told = wheel.next_deadline();
            prop_assert_eq!(told.is_some(), first.is_some());
            if let (Some(told), Some(first)) = (told, first) {
                prop_assert!(told.as_nanos() <= first.as_nanos() + SLOT);
            }
        }
    }
}
