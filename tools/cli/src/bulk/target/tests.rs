use super::*;

#[test]
fn a_target_is_an_address_with_a_port_or_without() {
    let at = |text: &str| match resolve(text, None, false) {
        Ok(found) => found[0].at.to_string(),
        Err(_) => String::new(),
    };
    assert_eq!(at("10.9.0.1"), "10.9.0.1:5201");
    assert_eq!(at("10.9.0.1:7"), "10.9.0.1:7");
    assert_eq!(at("fd09::1"), "[fd09::1]:5201");
    assert_eq!(at("[fd09::1]"), "[fd09::1]:5201");
    assert_eq!(at("[fd09::1]:7"), "[fd09::1]:7");
    for wrong in ["", ":7", "10.9.0.1:0", "10.9.0.1:65536", "10.9.0.1:x", "a b", "[fd09::1", "-"] {
        assert!(at(wrong).is_empty(), "{wrong}");
    }
}

#[test]
fn address_of_other_family_is_refused() {
    assert!(resolve("10.9.0.1", Some(Family::V4), false).is_ok());
    assert!(resolve("10.9.0.1", Some(Family::V6), false).is_err());
    assert!(resolve("fd09::1", Some(Family::V4), false).is_err());
}
