use std::net::IpAddr;

use whimbrel_stack::InterfaceAddress;

use super::{PublishOption, PublishedProtocol};

#[test]
fn published_ports_are_read_in_each_form() {
    for (typed, outside, inside_port, protocol) in [
        ("8080:80", "127.0.0.1:8080", 80, PublishedProtocol::Tcp),
        ("0.0.0.0:8080:80", "0.0.0.0:8080", 80, PublishedProtocol::Tcp),
        ("[::1]:8080:80/tcp", "[::1]:8080", 80, PublishedProtocol::Tcp),
        ("5353:53/udp", "127.0.0.1:5353", 53, PublishedProtocol::Udp),
    ] {
        let published = typed.parse::<PublishOption>().unwrap().on_machine();
        assert_eq!(published.outside.to_string(), outside, "{typed}");
        assert_eq!((published.inside_port, published.protocol), (inside_port, protocol), "{typed}");
    }
    for typed in ["", "80", ":80", "80:", "0:80", "80:0", "host:80:80", "80:80/sctp", "70000:80"] {
        assert!(typed.parse::<PublishOption>().is_err(), "{typed}");
    }
}

#[test]
fn published_port_is_at_each_address_of_a_wire_that_is_meant() {
    let own = ["192.0.2.1", "2001:db8::1", "192.0.2.2"].map(|addr| InterfaceAddress {
        addr: addr.parse::<IpAddr>().unwrap().into(),
        prefix_len: 32,
    });
    for (typed, places) in [
        ("8080:80", &["192.0.2.1:8080", "[2001:db8::1]:8080", "192.0.2.2:8080"][..]),
        ("0.0.0.0:8080:80", &["192.0.2.1:8080", "192.0.2.2:8080"]),
        ("[::]:8080:80", &["[2001:db8::1]:8080"]),
        ("192.0.2.2:8080:80", &["192.0.2.2:8080"]),
    ] {
        let published = typed.parse::<PublishOption>().unwrap().on_wire(&own).unwrap();
        let found: Vec<_> = published.iter().map(|it| it.outside.to_string()).collect();
        assert_eq!(found, places, "{typed}");
    }
    let refused = "127.0.0.1:8080:80".parse::<PublishOption>().unwrap().on_wire(&own).unwrap_err();
    assert!(format!("{refused:?}").contains("use one of 192.0.2.1, 2001:db8::1, 192.0.2.2"));
}
