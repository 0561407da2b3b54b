use fastrand::Rng;

use super::play;

#[test]
fn any_octets_are_a_siege_that_the_host_outlives() {
    for seed in 0..400 {
        let mut chance = Rng::with_seed(seed);
        let len = chance.usize(..2_000);
        let octets: Vec<u8> = (0..len).map(|_| chance.u8(..)).collect();
        let outcome = play(&octets);
        assert!(outcome.is_ok(), "seed {seed}: {}", outcome.expect_err("a fault"));
    }
}

#[test]
fn a_siege_of_no_octets_is_over_at_once() {
    assert_eq!(play(&[]), Ok(()));
}
