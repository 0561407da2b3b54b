//! Tests of `sip`.

use super::*;

/// Returns the key and the input of the reference: bytes 0, 1, 2, …
fn counting<const N: usize>() -> [u8; N] {
    core::array::from_fn(|index| index as u8)
}

#[test]
fn the_vector_of_the_paper_comes_out() {
    // Appendix A: 15 bytes under the key 00 01 … 0f.
    let hash = SipHasher24::new_with_key(&counting()).hash(&counting::<15>());
    assert_eq!(hash, 0xa129_ca61_49be_45e5);
}

#[test]
fn every_length_hashes_as_another_implementation_has_it() {
    let bytes = counting::<64>();
    let (ours, theirs) =
        (SipHasher24::new_with_keys(7, 9), siphasher::sip::SipHasher24::new_with_keys(7, 9));
    for len in 0..bytes.len() {
        assert_eq!(ours.hash(&bytes[..len]), theirs.hash(&bytes[..len]), "{len} bytes");
    }
}
