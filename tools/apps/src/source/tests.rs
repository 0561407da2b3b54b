use std::net::{Ipv4Addr, Ipv6Addr};

use whimbrel_wire::Address;

use super::*;

#[test]
fn addresses_of_one_network_count_once() {
    let source = |addr| Source::of(Some(Endpoint::new(addr, 1)));
    let of =
        |network, host| source(Address::from(Ipv6Addr::new(0xfd00, 0, 0, network, 0, 0, 0, host)));
    assert!(of(1, 1) == of(1, 2) && of(1, 1) != of(2, 1));
    let v4 = |last| source(Address::from(Ipv4Addr::new(10, 9, 0, last)));
    assert!(v4(1) == v4(1) && v4(1) != v4(2) && v4(1) != Source::of(None));
}
