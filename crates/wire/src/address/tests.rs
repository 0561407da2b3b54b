//! Tests of `address`.

use std::string::ToString;

use proptest::prelude::*;

use super::*;

#[test]
fn both_families_print_as_people_write_them() {
    assert_eq!(Address::from(Ipv4Addr::new(192, 0, 2, 1)).to_string(), "192.0.2.1");
    assert_eq!(Address::from("2001:db8::1".parse::<IpAddr>().unwrap()).to_string(), "2001:db8::1");
}

#[test]
fn groups_and_nobody_are_recognised_in_both_families() {
    let parse = |text: &str| Address::from(text.parse::<IpAddr>().unwrap());
    for group in ["224.0.0.1", "255.255.255.255", "ff02::1"] {
        assert!(parse(group).is_multicast_or_broadcast(), "{group}");
    }
    for host in ["192.0.2.255", "fe80::1", "::"] {
        assert!(!parse(host).is_multicast_or_broadcast(), "{host}");
    }
    assert!(parse("0.0.0.0").is_unspecified());
    assert!(parse("::").is_unspecified());
    assert!(!parse("::1").is_unspecified());
}

proptest! {
    #[test]
    fn an_ipv4_address_survives_the_common_form(bytes: [u8; 4]) {
        let address = Address::from_v4_bytes(bytes);
        prop_assert_eq!(address.family(), Family::V4);
        prop_assert_eq!(address.v4_bytes(), bytes);
        prop_assert_eq!(address.to_ip(), IpAddr::from(bytes));
        prop_assert_eq!(Address::from(address.to_ip()), address);
    }

    #[test]
    fn an_ipv6_address_survives_the_common_form(bytes: [u8; 16]) {
        prop_assume!(Ipv6Addr::from(bytes).to_ipv4_mapped().is_none());
        let address = Address::from_bytes(bytes);
        prop_assert_eq!(address.family(), Family::V6);
        prop_assert_eq!(address.to_ip(), IpAddr::from(bytes));
        prop_assert_eq!(Address::from(address.to_ip()), address);
    }
}
