extern crate std;

use alloc::boxed::Box;
use alloc::vec::Vec;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{PLACES, Slab};

#[test]
fn a_record_stays_where_it_was_put_until_it_is_removed() {
    let mut slab = Slab::new();
    let first = slab.insert('a');
    let second = slab.insert('b');
    assert_eq!(slab.get(first), Some(&'a'));
    *slab.get_mut(second).unwrap() = 'c';
    assert_eq!(slab.remove(first), Some('a'));
    assert_eq!(slab.get(first), None);
    assert_eq!(slab.remove(first), None);
    assert_eq!(slab.remove(second), Some('c'));
    assert!(slab.is_empty());
}

#[test]
fn an_index_never_handed_out_names_nothing() {
    let mut slab: Slab<u8> = Slab::new();
    assert_eq!(slab.get(0), None);
    assert_eq!(slab.get(u32::MAX), None);
    assert_eq!(slab.remove(1 << 29), None);
    assert_eq!(slab.generation(7), 0);
}

#[test]
fn insert_reuses_the_last_vacated_place_in_a_new_generation() {
    let mut slab = Slab::new();
    let indices: Vec<u32> = (0..10).map(|value| slab.insert(value)).collect();
    assert_eq!(slab.generation(indices[4]), 0);
    slab.remove(indices[4]);
    assert_eq!(slab.generation(indices[4]), 1);
    assert_eq!(slab.insert(99), indices[4]);
    assert_eq!(slab.generation(indices[4]), 1);
    assert_eq!(slab.generation(indices[5]), 0);
}

#[test]
fn generations_outlive_the_memory_of_their_chunk() {
    let mut slab = Slab::new();
    let indices: Vec<u32> = (0..4 * PLACES).map(|value| slab.insert(value)).collect();
    for index in &indices {
        slab.remove(*index);
    }
    assert!(indices.iter().all(|index| slab.generation(*index) == 1));
    let again: Vec<u32> = (0..4 * PLACES).map(|value| slab.insert(value)).collect();
    assert!(again.iter().all(|index| slab.generation(*index) == 1));
}

#[test]
fn removal_frees_all_empty_chunks_but_one() {
    let mut slab = Slab::new();
    let indices: Vec<u32> = (0..64 * PLACES).map(|_| slab.insert(Box::new(0_u64))).collect();
    let full = slab.memory();
    for index in indices {
        slab.remove(index);
    }
    assert_eq!(full - slab.memory(), 63 * PLACES * size_of::<Box<u64>>());
    assert!(slab.is_empty());
}

#[test]
fn place_costs_four_bytes_if_a_bit_pattern_is_unused() {
    let mut slab = Slab::new();
    for _ in 0..64 * PLACES {
        slab.insert((false, [0_u32; 15]));
    }
    let overhead = slab.memory() as f64 / (64 * PLACES) as f64 - 64.0;
    assert!(overhead < 4.2, "{overhead}");
}

#[test]
fn a_walk_in_steps_meets_every_record_once() {
    let mut slab = Slab::new();
    let indices: Vec<u32> = (0..1000_u32).map(|value| slab.insert(value)).collect();
    for index in indices.iter().filter(|index| *index % 3 == 0) {
        slab.remove(*index);
    }
    let (mut met, mut from) = (Vec::new(), 0);
    while let Some(step) = slab.first_from(from) {
        from = match step {
            Ok((index, value)) => {
                met.push(*value);
                index + 1
            }
            Err(next) => next,
        };
    }
    assert_eq!(met, (0..1000).filter(|value| value % 3 != 0).collect::<Vec<u32>>());
}

proptest! {
    #[test]
    fn behaves_as_a_map_from_index_to_record(steps in proptest::collection::vec(any::<(u8, u16)>(), 0..4000)) {
        let mut slab = Slab::new();
        let mut model = BTreeMap::new();
        // Phases of growth and of decline, so that chunks fill, empty and are reused.
        for (count, (choice, pick)) in steps.into_iter().enumerate() {
            let grow = if (count / 1000) % 2 == 0 { 220 } else { 40 };
            if choice < grow {
                let index = slab.insert(pick);
                prop_assert_eq!(model.insert(index, pick), None, "a taken place was handed out");
            } else if let Some((index, _)) = model.range(u32::from(pick) % 1100..).next() {
                let index = *index;
                let generation = slab.generation(index);
                prop_assert_eq!(slab.remove(index), model.remove(&index));
                prop_assert_eq!(slab.generation(index), generation.wrapping_add(1));
            }
            prop_assert_eq!(slab.len(), model.len());
        }
        for (index, value) in &model {
            prop_assert_eq!(slab.get(*index), Some(value));
        }
    }
}
