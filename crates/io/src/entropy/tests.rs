use super::*;

#[test]
fn two_draws_give_different_and_independent_keys() {
    let (first, second) = (secrets().unwrap(), secrets().unwrap());
    assert_ne!(first.isn.0, second.isn.0);
    assert_ne!(first.isn.0, first.ports.0);
    assert_ne!(first.flows.0, first.cookies.0);
}
