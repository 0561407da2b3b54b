//! IP header settings of a socket's packets: time to live and type of service.

use std::time::Duration;
use std::vec;
use std::vec::Vec;

use whimbrel_tcp::Tunables;
use whimbrel_wire::Endpoint;
use whimbrel_wire::tcp::TcpFlags;

use super::world::{
    Sent, Side, World, get, send_now, server_addr_v6, server_at, set, stream, stream_of,
};
use crate::{Domain, Errno, Linger, OptionValue, SocketFlags, SocketOption};

fn said(sent: &[Sent]) -> Vec<(u8, u8)> {
    sent.iter().map(|sent| (sent.ip.hop_limit, sent.ip.traffic_class.0)).collect()
}

#[test]
fn ip_settings_apply_to_every_segment() {
    let mut world = World::new();
    world.listen(8);
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::Ttl, 7);
    set(&mut world.client, fd, SocketOption::Tos, 0x2b);
    assert_eq!(get(&mut world.client, fd, SocketOption::Ttl), 7);
    assert_eq!(get(&mut world.client, fd, SocketOption::Tos), 0x28, "ECN is not the user's");
    world.call(Side::Client, |it| it.connect(fd, server_at())).expect("a listener");
    send_now(&mut world.client, fd, b"lost").expect("room");
    world.cut = true;
    world.run(Duration::from_millis(700));
    world.cut = false;
    world.run(Duration::from_secs(2));
    let reset = OptionValue::Linger(Linger::Seconds(0));
    world.client.setsockopt(fd, SocketOption::Linger, &reset).expect("known");
    world.call(Side::Client, |it| it.close(fd)).expect("open");
    world.run_until_quiet();
    let sent = world.sent_by(Side::Client);
    assert!(sent.iter().filter(|sent| !sent.text.is_empty()).count() >= 2, "it was sent again");
    for flag in [TcpFlags::SYN, TcpFlags::RST] {
        assert!(sent.iter().any(|sent| sent.has(flag)), "{flag:?}");
    }
    assert_eq!(said(&sent), vec![(7, 0x28); sent.len()]);
    world.end();
}

#[test]
fn ip_settings_change_later_segments() {
    let (mut world, _, client, _) = World::joined();
    assert_eq!(said(&world.sent_by(Side::Client)), [(64, 0), (64, 0)]);
    set(&mut world.client, client, SocketOption::Ttl, 255);
    world.log.clear();
    send_now(&mut world.client, client, b"x").expect("room");
    world.run_until_quiet();
    assert_eq!(said(&world.sent_by(Side::Client)), [(255, 0)]);
    set(&mut world.client, client, SocketOption::Ttl, -1);
    assert_eq!(get(&mut world.client, client, SocketOption::Ttl), 64);
    world.end();
}

#[test]
fn listener_settings_apply_from_the_syn_ack_on() {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::Ttl, 9);
    set(&mut world.server, listener, SocketOption::Tos, 0x10);
    let (client, server) = world.connected(listener);
    assert_eq!(get(&mut world.server, server, SocketOption::Ttl), 9);
    send_now(&mut world.client, client, b"x").expect("room");
    world.run_until_quiet();
    let sent = world.sent_by(Side::Server);
    assert!(sent[0].has(TcpFlags::SYN) && sent.len() > 1);
    assert_eq!(said(&sent), vec![(9, 0x10); sent.len()]);
    world.end();
}

#[test]
fn both_families_have_their_own() {
    let mut world = World::new();
    let listener = stream_of(&mut world.server, Domain::Inet6);
    for (option, value) in
        [(SocketOption::Ttl, 4), (SocketOption::UnicastHops, 6), (SocketOption::TrafficClass, 0x60)]
    {
        set(&mut world.server, listener, option, value);
    }
    let at = Endpoint::new(Domain::Inet6.unspecified(), 80);
    world.server.bind(listener, at).expect("the port is free");
    world.server.listen(listener, 8).expect("bound");
    for (domain, to, expected) in [
        (Domain::Inet, server_at(), (4, 0)),
        (Domain::Inet6, Endpoint::new(server_addr_v6(), 80), (6, 0x60)),
    ] {
        world.log.clear();
        let fd = stream_of(&mut world.client, domain);
        world.call(Side::Client, |it| it.connect(fd, to)).expect("a listener");
        let accepted = world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE));
        let accepted = accepted.expect("a connection");
        send_now(&mut world.server, accepted.fd, b"x").expect("room");
        world.run_until_quiet();
        let sent = world.sent_by(Side::Server);
        assert_eq!(said(&sent), vec![expected; sent.len()]);
    }
    world.end();
}

#[test]
fn usual_time_to_live_is_a_tunable_and_none_is_zero() {
    let mut world = World::with(&Tunables { hop_limit: 3, ..Tunables::default() });
    let listener = world.listen(8);
    world.connected(listener);
    let log = core::mem::take(&mut world.log);
    assert_eq!(said(&log), vec![(3, 0); log.len()]);
    let fd = stream(&mut world.client);
    let v6 = stream_of(&mut world.client, Domain::Inet6);
    for (fd, option, value, errno) in [
        (fd, SocketOption::Ttl, 0, Errno::EINVAL),
        (fd, SocketOption::Ttl, 256, Errno::EINVAL),
        (fd, SocketOption::UnicastHops, 5, Errno::ENOPROTOOPT),
        (fd, SocketOption::TrafficClass, 5, Errno::ENOPROTOOPT),
        (v6, SocketOption::UnicastHops, 0, Errno::EINVAL),
        (v6, SocketOption::TrafficClass, 256, Errno::EINVAL),
    ] {
        let set = world.client.setsockopt(fd, option, &OptionValue::Int(value));
        assert_eq!(set, Err(errno), "{} {value}", option.name());
    }
    world.end();
}
