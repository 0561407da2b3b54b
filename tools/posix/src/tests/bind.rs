//! `bind` and `listen`: conflicts of addresses.

use whimbrel_wire::Endpoint;

use super::world::{Side, World, any, client_addr, server_addr, set, stream};
use crate::{Domain, Errno, Fd, Outcome, Protocol, SocketFlags, SocketOption, SocketType, Sockets};

#[test]
fn port_zero_draws_a_free_port() {
    let mut world = World::new();
    let [one, two] = [(); 2].map(|()| stream(&mut world.server));
    for fd in [one, two] {
        world.server.bind(fd, any(0)).expect("a free port");
    }
    let ports = [one, two].map(|fd| world.server.getsockname(fd).expect("bound").port);
    assert!(ports.iter().all(|port| (32_768..=60_999).contains(port)) && ports[0] != ports[1]);
    let unbound = stream(&mut world.server);
    world.server.listen(unbound, 1).expect("it binds itself");
    assert_ne!(world.server.getsockname(unbound).expect("bound").port, 0);
    world.end();
}

#[test]
fn port_is_shared_only_if_both_say_so_and_neither_listens() {
    for (reuse_one, reuse_two, listens, expected) in [
        (0, 0, false, Err(Errno::EADDRINUSE)),
        (1, 0, false, Err(Errno::EADDRINUSE)),
        (0, 1, false, Err(Errno::EADDRINUSE)),
        (1, 1, false, Ok(())),
        (1, 1, true, Err(Errno::EADDRINUSE)),
    ] {
        let mut world = World::new();
        let [one, two] = [(); 2].map(|()| stream(&mut world.server));
        set(&mut world.server, one, SocketOption::ReuseAddr, reuse_one);
        set(&mut world.server, two, SocketOption::ReuseAddr, reuse_two);
        world.server.bind(one, any(80)).expect("free");
        if listens {
            world.server.listen(one, 1).expect("bound");
        }
        assert_eq!(world.server.bind(two, any(80)), expected, "{reuse_one} {reuse_two} {listens}");
        world.end();
    }
}

#[test]
fn second_listener_on_a_shared_port_fails() {
    let mut world = World::new();
    let [one, two] = [(); 2].map(|()| stream(&mut world.server));
    for fd in [one, two] {
        set(&mut world.server, fd, SocketOption::ReuseAddr, 1);
        world.server.bind(fd, any(80)).expect("shared");
    }
    world.server.listen(one, 1).expect("the first");
    assert_eq!(world.server.listen(two, 1), Err(Errno::EADDRINUSE));
    assert_eq!(world.server.close(one), Outcome::Done(Ok(())));
    world.server.listen(two, 1).expect("now it is alone");
    world.end();
}

#[test]
fn addresses_that_do_not_overlap_do_not_conflict() {
    let mut world = World::new();
    let made = |sockets: &mut Sockets| {
        sockets.socket(Domain::Inet6, SocketType::Stream, SocketFlags::NONE, Protocol::Tcp)
    };
    let v4 = stream(&mut world.server);
    world.server.bind(v4, Endpoint::new(server_addr(), 80)).expect("free");
    let dual = made(&mut world.server).expect("a free descriptor");
    let v6_any = Endpoint::new(Domain::Inet6.unspecified(), 80);
    assert_eq!(world.server.bind(dual, v6_any), Err(Errno::EADDRINUSE), "it would take IPv4 too");
    set(&mut world.server, dual, SocketOption::V6Only, 1);
    assert_eq!(world.server.bind(dual, v6_any), Ok(()));
    let foreign = stream(&mut world.server);
    let elsewhere = Endpoint::new(client_addr(), 80);
    assert_eq!(world.server.bind(foreign, elsewhere), Err(Errno::EADDRNOTAVAIL));
    assert_eq!(world.server.bind(foreign, v6_any), Err(Errno::EAFNOSUPPORT));
    assert_eq!(world.server.bind(v4, any(81)), Err(Errno::EINVAL), "bound already");
    world.end();
}

/// A server that served one client, closed first, and ended.
fn restarted(reuse: i32) -> (World, Fd) {
    let mut world = World::new();
    let listener = stream(&mut world.server);
    set(&mut world.server, listener, SocketOption::ReuseAddr, reuse);
    world.server.bind(listener, any(80)).expect("free");
    world.server.listen(listener, 8).expect("bound");
    let (client, server) = world.connected(listener);
    for fd in [server, listener] {
        assert_eq!(world.server.close(fd), Outcome::Done(Ok(())));
    }
    assert_eq!(world.recv(Side::Client, client, 1), Ok(Vec::new()));
    assert_eq!(world.client.close(client), Outcome::Done(Ok(())));
    world.run_until_quiet();
    assert_eq!(world.server.shard().census().time_wait, 1);
    let fd = stream(&mut world.server);
    (world, fd)
}

#[test]
fn port_in_time_wait_is_in_use_without_reuse_on_both() {
    for (before, after, expected) in [
        (0, 0, Err(Errno::EADDRINUSE)),
        (0, 1, Err(Errno::EADDRINUSE)),
        (1, 0, Err(Errno::EADDRINUSE)),
        (1, 1, Ok(())),
    ] {
        let (mut world, fd) = restarted(before);
        set(&mut world.server, fd, SocketOption::ReuseAddr, after);
        assert_eq!(world.server.bind(fd, any(80)), expected, "{before} {after}");
        world.end();
    }
}

#[test]
fn port_is_free_again_when_time_wait_is_over() {
    let (mut world, fd) = restarted(0);
    world.run(std::time::Duration::from_secs(21));
    assert_eq!(world.server.bind(fd, any(80)), Ok(()));
    world.end();
}

#[test]
fn address_can_be_bound_and_its_port_left_to_connect() {
    let mut world = World::new();
    let listener = stream(&mut world.server);
    world.server.bind(listener, any(80)).expect("free");
    world.server.listen(listener, 8).expect("bound");
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::BindAddressNoPort, 1);
    let address = Endpoint::new(client_addr(), 0);
    world.client.bind(fd, address).expect("it takes no port");
    assert_eq!(world.client.getsockname(fd), Ok(address));
    let to = Endpoint::new(server_addr(), 81);
    // There is no listener: the drawn port is released, the address stays.
    assert!(!matches!(world.client.connect(fd, to), Outcome::Done(Ok(()))));
    world.run_until_quiet();
    assert_eq!(world.client.connect(fd, to), Outcome::fail(Errno::ECONNREFUSED));
    assert_eq!(world.client.getsockname(fd), Ok(address));
    let to = Endpoint::new(server_addr(), 80);
    assert!(!matches!(world.client.connect(fd, to), Outcome::Done(Ok(()))));
    world.run_until_quiet();
    assert_eq!(world.client.connect(fd, to), Outcome::Done(Ok(())));
    let local = world.client.getsockname(fd).expect("connected");
    assert!((32_768..=60_999).contains(&local.port) && local.addr == client_addr());
    // Nor is the port a listener's before it listens.
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::BindAddressNoPort, 1);
    world.client.bind(fd, any(0)).expect("it takes no port");
    world.client.listen(fd, 1).expect("now it draws one");
    assert_ne!(world.client.getsockname(fd).expect("bound").port, 0);
    world.end();
}
