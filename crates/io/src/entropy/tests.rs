use super::*;

#[test]
fn two_draws_give_different_and_independent_keys() {
    let (first, second) = (secrets().unwrap(), secrets().unwrap());
    assert_ne!(first.isn.0, second.isn.0);
    assert_ne!(first.isn.0, first.ports.0);
    assert_ne!(first.flows.0, first.cookies.0);
}

#[test]
fn stations_are_of_this_place_of_no_group_and_not_alike() {
    let (one, other) = (station().unwrap(), station().unwrap());
    assert_eq!((one.0[0] & 3, other.0[0] & 3), (2, 2));
    assert_ne!(one, other);
}
