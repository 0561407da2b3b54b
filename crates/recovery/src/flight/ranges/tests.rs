//! Ranges against a set of single offsets.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::Ranges;

proptest! {
    #[test]
    fn ranges_are_the_set_that_a_set_of_offsets_would_be(
        steps in vec((0u8..4, 0u64..200, 0u64..40), 1..80),
    ) {
        let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
        for (what, start, len) in steps {
            let range = start..start + len;
            match what {
                0 | 1 => {
                    ranges.insert(range.clone());
                    set.extend(range);
                }
                2 => {
                    ranges.remove(range.clone());
                    set.retain(|offset| !range.contains(offset));
                }
                _ => {
                    ranges.remove_below(start / 4);
                    set.retain(|offset| *offset >= start / 4);
                }
            }
            prop_assert_eq!(ranges.bytes(), set.len() as u64);
            prop_assert_eq!(ranges.is_empty(), set.is_empty());
            prop_assert_eq!(ranges.end(), set.last().map(|last| last + 1));
            prop_assert_eq!(ranges.first().map(|first| first.start), set.first().copied());
            let edges = (0..250).filter(|at| set.contains(at) && !set.contains(&(at + 1)));
            prop_assert_eq!(ranges.len(), edges.count(), "none touch");
            for offset in 0..250 {
                prop_assert_eq!(ranges.contains(offset), set.contains(&offset));
            }
            for within in [0..250, start..start + 60, start + len..start + len + 1] {
                let first = |wanted: bool| {
                    let start = within.clone().find(|at| set.contains(at) == wanted)?;
                    let end = (start..within.end).find(|at| set.contains(at) != wanted);
                    Some(start..end.unwrap_or(within.end))
                };
                prop_assert_eq!(ranges.overlap(within.clone()), first(true));
                prop_assert_eq!(ranges.gap(within.clone()), first(false));
            }
        }
    }
}
