use alloc::format;

use whimbrel_wire::Address;

use super::PairHasher;
use crate::Secrets;

#[test]
fn a_hash_that_was_remembered_is_that_of_its_own_pair() {
    let hasher = PairHasher::new(&Secrets::from_seed(1).timestamps);
    let [one, other, third] = [1, 2, 3].map(|last| Address::from_v4_bytes([10, 0, 0, last]));
    let fresh = |local, remote| hasher.clone().hash(local, remote);
    let hashes = [fresh(&one, &other), fresh(&other, &one), fresh(&one, &third)];
    for _ in 0..2 {
        let again = [(one, other), (one, other), (other, one), (one, third)];
        let [first, repeated, back, last] =
            again.map(|(local, remote)| hasher.hash(&local, &remote));
        assert_eq!([first, back, last], hashes);
        assert_eq!(first, repeated);
    }
    assert!(hashes[0] != hashes[1] && hashes[0] != hashes[2]);
}

#[test]
fn debug_output_prints_no_key() {
    let hasher = PairHasher::new(&Secrets::from_seed(1).timestamps);
    assert_eq!(format!("{hasher:?}"), "PairHasher(..)");
}
