use whimbrel_base::Key;
use whimbrel_wire::Address;
use whimbrel_wire::tcp::FastOpen;

use super::{CookieVerdict, FastOpenKeys};

const SERVER: Address = Address::from_v4_bytes([192, 0, 2, 1]);
const CLIENT: Address = Address::from_v4_bytes([198, 51, 100, 7]);
const OTHER: Address = Address::from_v4_bytes([198, 51, 100, 8]);

fn keys() -> FastOpenKeys {
    FastOpenKeys::new(&Key([1; 16]))
}

#[test]
fn cookie_is_valid_only_for_the_address_it_was_granted_to() {
    let cookie = keys().grant(&SERVER, &CLIENT);
    assert_eq!(cookie.cookie().len(), 8);
    assert_eq!(keys().judge(&SERVER, &CLIENT, &cookie), CookieVerdict::Valid);
    assert_eq!(keys().judge(&SERVER, &OTHER, &cookie), CookieVerdict::Invalid);
    assert_eq!(keys().judge(&OTHER, &CLIENT, &cookie), CookieVerdict::Invalid);
}

#[test]
fn ipv6_addresses_count_whole() {
    let ends =
        |last| Address::from_bytes([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    let cookie = keys().grant(&ends(1), &ends(2));
    assert_eq!(keys().judge(&ends(1), &ends(2), &cookie), CookieVerdict::Valid);
    assert_eq!(keys().judge(&ends(1), &ends(3), &cookie), CookieVerdict::Invalid);
}

#[test]
fn any_changed_byte_or_length_makes_it_invalid() {
    let cookie = keys().grant(&SERVER, &CLIENT);
    for place in 0..8 {
        let mut bytes = cookie.cookie().to_vec();
        bytes[place] ^= 1;
        let forged = FastOpen::from_cookie(&bytes).unwrap();
        assert_eq!(keys().judge(&SERVER, &CLIENT, &forged), CookieVerdict::Invalid);
    }
    let longer = FastOpen::from_cookie(&[cookie.cookie(), &[0, 0]].concat()).unwrap();
    let shorter = FastOpen::from_cookie(&cookie.cookie()[..6]).unwrap();
    for forged in [longer, shorter, FastOpen::REQUEST] {
        assert_eq!(keys().judge(&SERVER, &CLIENT, &forged), CookieVerdict::Invalid);
    }
}

#[test]
fn the_experimental_form_has_the_same_cookie() {
    let cookie = keys().grant(&SERVER, &CLIENT).into_experimental();
    assert_eq!(keys().judge(&SERVER, &CLIENT, &cookie), CookieVerdict::Valid);
}

#[test]
fn a_key_is_good_for_one_rotation_after_it_was_replaced() {
    let mut keys = keys();
    let cookie = keys.grant(&SERVER, &CLIENT);
    keys.rotate(&Key([2; 16]));
    assert_eq!(keys.judge(&SERVER, &CLIENT, &cookie), CookieVerdict::Outdated);
    let renewed = keys.grant(&SERVER, &CLIENT);
    assert_ne!(renewed, cookie);
    assert_eq!(keys.judge(&SERVER, &CLIENT, &renewed), CookieVerdict::Valid);
    keys.rotate(&Key([3; 16]));
    assert_eq!(keys.judge(&SERVER, &CLIENT, &cookie), CookieVerdict::Invalid);
    assert_eq!(keys.judge(&SERVER, &CLIENT, &renewed), CookieVerdict::Outdated);
}

#[test]
fn a_backup_is_taken_and_never_granted() {
    let both = FastOpenKeys::new(&Key([2; 16])).with_backup(&Key([1; 16]));
    let outdated = keys().grant(&SERVER, &CLIENT);
    assert_eq!(both.judge(&SERVER, &CLIENT, &outdated), CookieVerdict::Outdated);
    assert_eq!(
        keys().judge(&SERVER, &CLIENT, &both.grant(&SERVER, &CLIENT)),
        CookieVerdict::Invalid
    );
}

#[test]
fn its_bytes_are_those_of_linux() {
    // Of another implementation of SipHash-2-4; that Linux hashes just this, a script shows.
    let bytes = [0xcf, 0xea, 0x0d, 0xe3, 0x49, 0x56, 0xb9, 0x8b];
    assert_eq!(keys().grant(&SERVER, &CLIENT).cookie(), bytes);
}
