#![allow(clippy::disallowed_methods, reason = "ignored tests measure time")]
extern crate std;

use alloc::vec::Vec;
use std::collections::BTreeMap;
use std::println;

use proptest::prelude::*;

use super::{BLOCK, CHUNK, MAX_SPAN, NUMBER_MASK, Ring};
use crate::table::time_wait::tests::entered_at;

/// A ring whose numbers wrap after `BLOCK` records.
fn about_to_wrap() -> Ring {
    let start = NUMBER_MASK + 1 - BLOCK;
    Ring { head: start, tail: start, ..Ring::new() }
}

fn push(ring: &mut Ring, tag: u32) -> u32 {
    ring.push(entered_at(tag, 0))
}

fn tag(ring: &Ring, number: u32) -> Option<u32> {
    ring.get(number).map(|record| record.entered().raw())
}

#[test]
fn records_leave_in_order_across_the_end_of_numbers() {
    let mut ring = about_to_wrap();
    for value in 0..3 * BLOCK {
        push(&mut ring, value);
    }
    for value in 0..3 * BLOCK {
        let (number, record) = ring.front().unwrap();
        assert_eq!(record.entered().raw(), value);
        assert!(ring.remove(number).is_some());
    }
    assert!(ring.front().is_none() && ring.len() == 0);
    assert!(ring.memory() < 1024, "{}", ring.memory());
}

#[test]
fn a_number_that_was_not_handed_out_or_has_gone_names_nothing() {
    let mut ring = Ring::new();
    assert_eq!(tag(&ring, 0), None);
    let number = push(&mut ring, 1);
    assert_eq!(tag(&ring, number + 1), None);
    assert!(ring.remove(number).is_some());
    assert!(ring.remove(number).is_none());
    assert_eq!(tag(&ring, number), None);
    assert_eq!(tag(&ring, NUMBER_MASK), None);
}

#[test]
fn one_unused_record_does_not_hold_memory_of_millions() {
    let mut ring = Ring::new();
    let stubborn = push(&mut ring, 0);
    for value in 1..5_000_000 {
        let number = push(&mut ring, value);
        if value != 4_999_999 {
            ring.remove(number);
        }
    }
    assert!(ring.memory() < 64 << 10, "{}", ring.memory());
    ring.remove(stubborn);
    let (last, record) = ring.front().unwrap();
    assert_eq!(record.entered().raw(), 4_999_999);
    ring.remove(last);
    assert_eq!(ring.len(), 0);
}

/// A ring of `count` live records, some of which were taken and entered anew: by their places.
fn reused_at_random(count: u32) -> (Ring, Vec<u32>) {
    let mut ring = Ring::new();
    let mut live: Vec<u32> = (0..count).map(|value| push(&mut ring, value)).collect();
    reuse_at_random(&mut ring, &mut live, 12 * count);
    (ring, live)
}

#[inline(never)]
fn reuse_at_random(ring: &mut Ring, live: &mut [u32], times: u32) {
    let mut random = 1_u64;
    for value in 0..times {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let pick = (random >> 33) as usize % live.len();
        ring.remove(live[pick]);
        live[pick] = push(ring, value);
    }
}

#[test]
fn live_record_costs_a_tenth_more_under_random_reuse() {
    let (ring, live) = reused_at_random(100_000);
    let each = ring.memory() as f64 / 100_000.0;
    assert!(each < 54.0, "{each} bytes");
    assert!(live.iter().all(|number| tag(&ring, *number).is_some()));
}

#[test]
fn numbers_run_out_a_block_before_they_would_meet() {
    let mut ring = Ring::new();
    push(&mut ring, 0);
    ring.tail = MAX_SPAN;
    assert!(!ring.is_exhausted());
    ring.tail += 1;
    assert!(ring.is_exhausted());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn behaves_as_an_ordered_map_with_running_keys(seed: u64, wraps: bool) {
        let mut ring = if wraps { about_to_wrap() } else { Ring::new() };
        let first = ring.head;
        let (mut model, mut random) = (BTreeMap::new(), seed);
        for step in 0..60_000_u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let (choice, pick) = ((random >> 60) as u32, (random >> 33) as u32 % (4 * BLOCK));
            let entering = if (step / 10_000) % 2 == 0 { 11 } else { 3 };
            if choice < entering {
                let number = push(&mut ring, step);
                prop_assert!(model.insert(number.wrapping_sub(first) & NUMBER_MASK, step).is_none());
            } else if choice == 15 {
                if let Some((number, record)) = ring.front() {
                    let (offset, value) = model.pop_first().expect("the ring has one");
                    prop_assert_eq!(number, first.wrapping_add(offset) & NUMBER_MASK);
                    prop_assert_eq!(record.entered().raw(), value);
                    ring.remove(number);
                }
            } else if let Some((offset, value)) = model.range(pick..).next() {
                let (offset, value) = (*offset, *value);
                let number = first.wrapping_add(offset) & NUMBER_MASK;
                prop_assert_eq!(ring.remove(number).map(|record| record.entered().raw()), Some(value));
                prop_assert!(ring.get(number).is_none());
                model.remove(&offset);
            }
            prop_assert_eq!(ring.len(), model.len());
            let front = ring.front().map(|(_, record)| record.entered().raw());
            prop_assert_eq!(front, model.values().next().copied());
        }
        for (offset, value) in &model {
            prop_assert_eq!(tag(&ring, first.wrapping_add(*offset) & NUMBER_MASK), Some(*value));
        }
        for offset in model.keys() {
            ring.remove(first.wrapping_add(*offset) & NUMBER_MASK);
        }
        prop_assert_eq!(ring.len(), 0);
        prop_assert!(ring.memory() <= (CHUNK * 48) + 8192, "{}", ring.memory());
    }
}

/// For callgrind with `--toggle-collect='*in_order*'` or `'*reuse_at_random*'`.
#[test]
#[ignore = "counts"]
fn count() {
    let mut ring = Ring::new();
    for value in 0..20_000 {
        push(&mut ring, value);
    }
    enter_and_expire_in_order(&mut ring, 1_000_000);
    let mut ring = Ring::new();
    let mut live: Vec<u32> = (0..20_000).map(|value| push(&mut ring, value)).collect();
    reuse_at_random(&mut ring, &mut live, 1_000_000);
    println!("{:.1} bytes", ring.memory() as f64 / 2e4);
}

#[inline(never)]
fn enter_and_expire_in_order(ring: &mut Ring, times: u32) {
    for value in 0..times {
        push(ring, value);
        if let Some((number, _)) = ring.front() {
            ring.remove(number);
        }
    }
}
