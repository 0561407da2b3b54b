use super::*;

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

#[test]
fn longest_silent_place_comes_first() {
    let mut list = IdleList::default();
    for (place, millis) in [(5, 1), (0, 2), (3, 3)] {
        list.touch(place, at(millis));
    }
    assert_eq!(list.oldest(), Some((5, at(1))));
    list.touch(5, at(4));
    assert_eq!(list.oldest(), Some((0, at(2))));
    list.remove(3);
    list.remove(0);
    assert_eq!(list.oldest(), Some((5, at(4))));
    list.remove(5);
    list.remove(5);
    assert_eq!(list.oldest(), None);
    list.touch(1, at(5));
    assert_eq!(list.oldest(), Some((1, at(5))));
}
