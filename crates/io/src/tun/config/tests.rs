use std::net::IpAddr;

use super::*;

fn network(text: &str) -> InterfaceAddress {
    let (addr, len) = text.split_once('/').unwrap();
    let addr: IpAddr = addr.parse().unwrap();
    InterfaceAddress { addr: addr.into(), prefix_len: len.parse().unwrap() }
}

fn addr(text: &str) -> Address {
    text.parse::<IpAddr>().unwrap().into()
}

fn config(addresses: &[&str]) -> Result<TunConfig, ConfigError> {
    TunConfig::new("whim0", addresses.iter().map(|text| network(text)).collect())
}

#[test]
fn the_machine_gets_the_first_address_that_the_stack_has_not() {
    let cases: [(&[&str], &[&str]); 6] = [
        (&["10.9.0.2/24"], &["10.9.0.1/24"]),
        (&["10.9.0.1/24"], &["10.9.0.2/24"]),
        (&["10.9.0.1/24", "10.9.0.2/24"], &["10.9.0.3/24"]),
        (&["fd09::2/64", "10.9.0.2/30"], &["fd09::1/64", "10.9.0.1/30"]),
        (&["10.9.0.0/31", "fd09::1/127"], &["10.9.0.1/31", "fd09::/127"]),
        (&["10.9.0.7/32", "fd09::7/128"], &[]),
    ];
    for (stack, machine) in cases {
        let expected: Vec<_> = machine.iter().map(|text| network(text)).collect();
        assert_eq!(config(stack).unwrap().hosts(), expected, "{stack:?}");
    }
}

#[test]
fn an_address_alone_in_its_network_needs_a_route() {
    let config = config(&["10.9.0.2/24", "192.0.2.7/32"]).unwrap();
    assert_eq!(config.lone_addresses().collect::<Vec<_>>(), [network("192.0.2.7/32")]);
}

#[test]
fn host_address_takes_the_prefix_of_its_network() {
    let config = config(&["10.9.0.2/16", "fd09::2/64"]).unwrap();
    let config = config.with_hosts(&[addr("10.9.3.4")]).unwrap();
    assert_eq!(config.hosts(), [network("10.9.3.4/16"), network("fd09::1/64")]);
}

#[test]
fn addresses_that_name_no_single_host_are_refused() {
    for text in ["10.9.0.0/24", "10.9.0.255/24", "fd09::/64", "224.0.0.1/4", "ff02::1/64"] {
        let error = config(&[text]).unwrap_err();
        assert_eq!(error, ConfigError::NotAHost(network(text).addr), "{text}");
    }
    assert_eq!(config(&["0.0.0.0/32"]), Err(ConfigError::NotAHost(addr("0.0.0.0"))));
}

#[test]
fn senseless_values_are_refused_with_what_is_allowed() {
    assert_eq!(config(&[]), Err(ConfigError::NoAddress));
    let error = config(&["10.9.0.2/33"]).unwrap_err();
    assert!(error.to_string().contains("give 0 to 32"), "{error}");
    assert_eq!(config(&["10.9.0.2/24", "10.9.0.2/24"]), Err(ConfigError::Twice(addr("10.9.0.2"))));
    let good = || config(&["10.9.0.2/24", "fd09::2/64"]).unwrap();
    assert_eq!(
        good().with_hosts(&[addr("10.8.0.1")]),
        Err(ConfigError::HostOutside(addr("10.8.0.1")))
    );
    assert_eq!(good().with_hosts(&[addr("10.9.0.2")]), Err(ConfigError::Twice(addr("10.9.0.2"))));
    assert_eq!(
        good().with_mtu(1279),
        Err(ConfigError::Mtu { mtu: 1279, least: 1280, most: 65_535 })
    );
    assert_eq!(good().with_queues(0), Err(ConfigError::Queues(0)));
    assert_eq!(good().with_queues(257), Err(ConfigError::Queues(257)));
}

#[test]
fn names_are_what_the_kernel_takes_literally() {
    let addresses = || vec![network("10.9.0.2/24")];
    assert!(TunConfig::new("whim0.5_a-b", addresses()).is_ok());
    for name in ["", ".", "..", "a/b", "a b", "tun%d", "a:1", "ü"] {
        assert_eq!(TunConfig::new(name, addresses()), Err(ConfigError::Name(name.into())));
    }
    let error = TunConfig::new("sixteen-letter-x", addresses()).unwrap_err();
    assert!(error.to_string().contains("has 16 bytes; the kernel takes at most 15"), "{error}");
}

#[test]
fn the_stack_reaches_the_rest_of_the_world_through_the_machine() {
    let routes = config(&["10.9.0.2/24", "10.8.0.2/24"]).unwrap().routes();
    assert_eq!(routes.len(), 1);
    assert_eq!((routes[0].prefix_len, routes[0].gateway), (0, Some(addr("10.9.0.1"))));
    let routes = config(&["10.9.0.2/24", "fd09::2/128"]).unwrap().routes();
    assert_eq!((routes[1].network, routes[1].gateway), (addr("::"), None));
}

#[test]
fn ethernet_layer_has_one_queue_and_mtu_of_at_most_65521() {
    let good = || config(&["10.9.0.2/24"]).unwrap();
    let mac = MacAddress([2, 0, 0, 0, 0, 1]);
    let ethernet = || good().with_layer(Layer::Ethernet(Some(mac)));
    assert_eq!(ethernet().unwrap().layer(), Layer::Ethernet(Some(mac)));
    for mac in [MacAddress::BROADCAST, MacAddress([0; 6]), MacAddress([3, 0, 0, 0, 0, 1])] {
        let error = good().with_layer(Layer::Ethernet(Some(mac)));
        assert_eq!(error, Err(ConfigError::Station(mac)));
    }
    assert_eq!(ethernet().unwrap().with_queues(2), Err(ConfigError::EthernetQueues(2)));
    let two = good().with_queues(2).unwrap();
    assert_eq!(two.with_layer(Layer::Ethernet(None)), Err(ConfigError::EthernetQueues(2)));
    assert!(ethernet().unwrap().with_mtu(65_521).is_ok());
    let error = ConfigError::Mtu { mtu: 65_522, least: 68, most: 65_521 };
    assert_eq!(ethernet().unwrap().with_mtu(65_522), Err(error.clone()));
    let large = good().with_mtu(65_522).unwrap();
    assert_eq!(large.with_layer(Layer::Ethernet(None)), Err(error));
}
