use std::net::{IpAddr, SocketAddr};

use whimbrel_wire::Endpoint;

use super::{Destinations, Outside, Unreachable, is_denied};
use crate::run::far::EXPIRED;
use crate::run::network::InsideNetwork;

fn destinations(has_host_loopback: bool) -> Destinations {
    let name_servers = vec![endpoint("192.0.2.53:53")];
    Destinations { network: InsideNetwork::choose(&[]).unwrap(), name_servers, has_host_loopback }
}

fn endpoint(text: &str) -> Endpoint {
    text.parse::<SocketAddr>().unwrap().into()
}

#[test]
fn machine_and_its_links_are_denied_in_every_form() {
    for denied in [
        "127.0.0.1",
        "127.255.0.9",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.1.1",
        "224.0.0.1",
        "239.1.2.3",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "febf::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::7f00:1",
        "64:ff9b::a9fe:101",
        "64:ff9b::ffff:ffff",
    ] {
        assert!(is_denied(denied.parse::<IpAddr>().unwrap()), "{denied}");
    }
    for allowed in [
        "192.0.2.1",
        "10.0.0.1",
        "203.0.113.9",
        "2001:db8::1",
        "fd00::1",
        "64:ff9b::c000:201",
        "::ffff:192.0.2.1",
    ] {
        assert!(!is_denied(allowed.parse::<IpAddr>().unwrap()), "{allowed}");
    }
}

#[test]
fn gateway_means_the_machine_only_if_asked_for() {
    let (without, with) = (destinations(false), destinations(true));
    let remote = endpoint("203.0.113.9:80");
    let gateway = Endpoint::new(without.network.gateway_of_family(remote.addr), 8080);
    assert_eq!(without.judge(gateway), Outside::Denied);
    assert_eq!(with.judge(gateway), Outside::At(endpoint("127.0.0.1:8080")));
    assert_eq!(with.judge(endpoint("127.0.0.1:8080")), Outside::Denied);
    assert_eq!(without.judge(remote), Outside::At(remote));
    let names = without.network.name_service();
    assert_eq!(without.judge(names), Outside::NameServer);
    assert_eq!(without.judge(Endpoint::new(names.addr, 80)), Outside::NoPort);
    let unused = without.network.program()[0].addr;
    assert_eq!(without.judge(Endpoint::new(unused, 80)), Outside::NoHost);
}

#[test]
fn clients_that_no_packet_may_come_from_appear_as_the_gateway() {
    let all = destinations(false);
    let remote = endpoint("203.0.113.9:4711");
    assert_eq!(all.inside(remote), remote);
    let gateway = Endpoint::new(all.network.gateway_of_family(remote.addr), 4711);
    assert_eq!(all.inside(endpoint("127.0.0.1:4711")), gateway);
    let program = all.network.program()[0].addr;
    assert_eq!(all.inside(Endpoint::new(program, 4711)), gateway);
}

#[test]
fn gateway_is_a_hop_of_what_it_passes_on() {
    let to = destinations(true);
    let far = endpoint("203.0.113.9:7").addr;
    for hops in [0, 1] {
        assert_eq!(to.hops_left(far, hops), Err((Some(Unreachable::HopLimit), EXPIRED)));
        let own = to.network.name_server();
        assert_eq!(to.hops_left(own, hops), Ok(None), "a packet for the gateway goes no farther");
    }
    assert_eq!((to.hops_left(far, 2), to.hops_left(far, 255)), (Ok(Some(1)), Ok(Some(254))));
}
