//! Counts of SYNs, and of ages.

use alloc::vec::Vec;

use super::*;

#[test]
fn too_many_syns_count_in_the_last_class() {
    let mut counts = SynCounts::default();
    [0, 1, 2, 8, 9, u32::MAX].into_iter().for_each(|syns| counts.count(syns));
    let counted: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(1, 2), (2, 1), (8, 3)]);
    assert_eq!((counts.late(), counts.total()), (4, 6));
}

#[test]
fn attempts_are_classed_by_their_last_due_syn() {
    let mut ages = Ages::default();
    let millis = [0, 999, 1_000, 2_999, 31_000, 127_000, 500_000];
    millis.into_iter().for_each(|age| ages.count(Duration::from_millis(age)));
    let counted: Vec<_> = ages.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(0, 2), (1, 2), (31, 1), (127, 2)]);
    assert_eq!(ages.oldest(), Duration::from_secs(500));

    let mut both = ages;
    both += ages;
    assert_eq!(both.iter().map(|(_, count)| count).sum::<u64>(), 14);
}
