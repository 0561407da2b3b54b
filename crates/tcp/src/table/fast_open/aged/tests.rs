use super::Aged;

#[test]
fn oldest_goes_at_the_bound_and_noting_again_makes_young() {
    let mut aged = Aged::<u8, char, 2>::new();
    aged.note(1, 'a');
    aged.note(2, 'b');
    aged.note(1, 'c');
    aged.note(3, 'd');
    assert_eq!([1, 2, 3].map(|key| aged.get(&key)), [Some('c'), None, Some('d')]);
    assert_eq!((aged.values.len(), aged.by_age.len()), (2, 2));
    aged.forget(&1);
    assert_eq!((aged.get(&1), aged.by_age.len()), (None, 1));
    aged.clear();
    assert_eq!((aged.get(&3), aged.by_age.len()), (None, 0));
}
