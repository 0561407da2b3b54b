use whimbrel_wire::Address;

use super::*;

#[test]
fn addresses_of_one_network_count_once() {
    let source = |addr| Source::of(Some(Endpoint::new(addr, 1)));
    let of = |network: u8, host: u8| {
        let mut bytes = [0; 16];
        (bytes[0], bytes[7], bytes[15]) = (0xfd, network, host);
        source(Address::from_octets(bytes))
    };
    assert!(of(1, 1) == of(1, 2) && of(1, 1) != of(2, 1));
    let v4 = |last| source(Address::from_v4_octets([10, 9, 0, last]));
    assert!(v4(1) == v4(1) && v4(1) != v4(2) && v4(1) != Source::of(None));
}
