//! Tests of `tcp::fast_open`.

use super::*;

#[test]
fn a_cookie_has_an_even_number_of_four_to_sixteen_bytes() {
    let bytes = [7; 20];
    for len in 0..=20 {
        let valid = matches!(len, 4 | 6 | 8 | 10 | 12 | 14 | 16);
        let option = FastOpen::from_cookie(&bytes[..len]);
        assert_eq!(option.is_some(), valid, "{len} bytes");
        assert!(option.is_none_or(|option| option.cookie() == &bytes[..len]));
    }
}

#[test]
fn an_empty_option_is_a_request() {
    assert_eq!(FastOpen::from_body(&[], false), Some(FastOpen::REQUEST));
    assert!(FastOpen::REQUEST.is_request());
    assert!(FastOpen::REQUEST.into_experimental().is_experimental());
}
