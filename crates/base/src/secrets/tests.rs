use alloc::format;
use alloc::vec::Vec;

use super::{Key, Secrets};

fn keys(secrets: &Secrets) -> [[u8; 16]; 6] {
    let Secrets { isn, ports, timestamps, cookies, fast_open, flows } = *secrets;
    [isn, ports, timestamps, cookies, fast_open, flows].map(|Key(bytes)| bytes)
}

#[test]
fn entropy_becomes_six_keys_in_the_order_of_the_fields() {
    let mut entropy = [0; Secrets::LEN];
    for (place, byte) in entropy.iter_mut().enumerate() {
        *byte = place as u8;
    }
    let joined: Vec<u8> = keys(&Secrets::from_entropy(entropy)).concat();
    assert_eq!(joined, entropy);
}

#[test]
fn equal_seeds_give_equal_keys_and_others_do_not() {
    assert_eq!(keys(&Secrets::from_seed(7)), keys(&Secrets::from_seed(7)));
    let (seven, eight) = (keys(&Secrets::from_seed(7)), keys(&Secrets::from_seed(8)));
    for (a, b) in seven.iter().zip(eight) {
        assert_ne!(*a, b);
    }
}

#[test]
fn the_keys_of_one_seed_all_differ() {
    let mut all = keys(&Secrets::from_seed(0)).to_vec();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn debug_output_prints_no_key() {
    let secrets = Secrets::from_entropy([0xab; Secrets::LEN]);
    assert_eq!(format!("{secrets:?}"), "Secrets { .. }");
    assert_eq!(format!("{:?}", secrets.isn), "Key(..)");
}
