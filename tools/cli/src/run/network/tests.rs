use super::{InsideNetwork, is_in, leads_to};
use whimbrel_stack::InterfaceAddress;
use whimbrel_wire::Address;

#[test]
fn routes_into_a_network_occupy_it() {
    let line = |destination: &str, mask: &str| {
        format!("eth0\t{destination}\t00000000\t0001\t0\t0\t0\t{mask}\t0\t0\t0")
    };
    for (destination, mask, leads) in [
        ("0002000A", "00FFFFFF", true),  // 10.0.2.0/24
        ("0003000A", "00FFFFFF", false), // 10.0.3.0/24
        ("0000000A", "000000FF", true),  // 10.0.0.0/8
        ("0502000A", "FFFFFFFF", true),  // 10.0.2.5/32
        ("00000000", "00000000", false),
        ("0002A8C0", "00FFFFFF", false), // 192.168.2.0/24
    ] {
        assert_eq!(leads_to(&line(destination, mask), 2), leads, "{destination}/{mask}");
    }
    assert!(!leads_to("Iface\tDestination\tGateway \tFlags", 2));
}

#[test]
fn addresses_of_the_network_are_known() {
    let network = InsideNetwork { third: 2, has_ipv6: true };
    let parse = |text: &str| Address::from(text.parse::<std::net::IpAddr>().unwrap());
    assert!(network.is_gateway(parse("10.0.2.2")) && !network.is_gateway(parse("10.0.2.100")));
    assert!(network.contains(parse("10.0.2.77")) && !network.contains(parse("10.0.3.77")));
    let v6 = network.gateway_of_family(parse("2001:db8::1"));
    assert!(network.contains(v6) && !network.contains(parse("2001:db8::1")), "{}", v6.to_ip());
    assert_eq!(v6.to_ip().to_string(), "fd77:6869:6d62::2");
}

#[test]
fn network_of_a_wire_is_not_chosen() {
    for (addr, prefix_len, third, overlaps) in [
        ([10, 0, 2, 5], 24, 2, true),
        ([10, 0, 3, 5], 24, 2, false),
        ([10, 9, 9, 9], 8, 2, true),
        ([10, 0, 2, 5], 32, 2, true),
        ([203, 0, 113, 1], 24, 2, false),
    ] {
        let own = InterfaceAddress { addr: Address::from_v4_bytes(addr), prefix_len };
        assert_eq!(is_in(&own, third), overlaps, "{addr:?}/{prefix_len}");
    }
}
