use super::*;

fn own(addr: &str, prefix_len: u8) -> InterfaceAddress {
    let addr: std::net::IpAddr = addr.parse().unwrap();
    InterfaceAddress { addr: addr.into(), prefix_len }
}

fn config() -> PacketConfig {
    PacketConfig::new("eth0", vec![own("10.9.0.2", 24), own("fd09::2", 64)]).unwrap()
}

#[test]
fn only_a_family_with_a_router_has_a_default_route() {
    assert_eq!(config().routes(), []);
    let routes = config().with_gateways(&[own("fd09::1", 0).addr]).unwrap().routes();
    let [route] = routes[..] else { panic!("{routes:?}") };
    assert_eq!((route.prefix_len, route.gateway), (0, Some(own("fd09::1", 0).addr)));
}

#[test]
fn what_cannot_be_is_refused() {
    let gateway = |addr: &str| config().with_gateways(&[own(addr, 0).addr]).unwrap_err();
    assert!(matches!(gateway("10.8.0.1"), ConfigError::GatewayOutside(_)));
    assert!(matches!(gateway("10.9.0.2"), ConfigError::Twice(_)));
    assert!(matches!(gateway("10.9.0.255"), ConfigError::NotAHost(_)));
    let group = MacAddress([1, 0, 0x5e, 0, 0, 1]);
    assert_eq!(config().with_mac(Some(group)).unwrap_err(), ConfigError::Station(group));
    assert_eq!(config().with_fanout(257).unwrap_err(), ConfigError::Fanout(257));
    assert_eq!(config().with_fanout(256).unwrap().fanout(), 256);
    let small = ConfigError::Mtu { mtu: 576, least: 1280, most: u16::MAX };
    assert_eq!(config().check_mtu(576).unwrap_err(), small);
}
