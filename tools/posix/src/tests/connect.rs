//! `connect` and `accept`, blocking and not.

use std::time::Duration;

use whimbrel_stack::shard::SocketState;
use whimbrel_wire::{Address, Endpoint};

use super::world::{
    Side, World, any, client_addr, get, nonblocking, recv_now, send_now, server_addr,
    server_addr_v6, server_at, set, stream,
};
use crate::{
    BlockedOn, Domain, Errno, Fd, FileFlags, Outcome, Protocol, SocketFlags, SocketOption,
    SocketType,
};

#[test]
fn blocking_connect_waits_until_the_handshake_is_over() {
    let mut world = World::new();
    let listener = world.listen(8);
    let fd = stream(&mut world.client);
    assert_eq!(fd, Fd(3));
    let wait = World::blocks(world.client.connect(fd, server_at()));
    assert_eq!(wait, BlockedOn::Connected(fd));
    assert!(!world.client.may_go_on(&wait));
    assert_eq!(world.client.getpeername(fd), Err(Errno::ENOTCONN));
    world.run_until_quiet();
    assert!(world.client.may_go_on(&wait));
    assert_eq!(world.client.connect(fd, server_at()), Outcome::Done(Ok(())));
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::EISCONN));
    assert_eq!(world.client.getpeername(fd), Ok(server_at()));
    let local = world.client.getsockname(fd).expect("connected");
    assert_eq!(local.addr, client_addr());
    assert!(local.port >= 32_768);
    let accepted = world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE));
    let accepted = accepted.expect("the connection");
    assert_eq!((accepted.fd, accepted.peer), (Fd(4), local));
    assert_eq!(world.server.getsockname(accepted.fd), Ok(server_at()));
    world.end();
}

#[test]
fn nonblocking_connect_gives_einprogress_ealready_eisconn() {
    let mut world = World::new();
    world.listen(8);
    let fd = stream(&mut world.client);
    nonblocking(&mut world.client, fd);
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::EINPROGRESS));
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::EALREADY));
    assert_eq!(recv_now(&mut world.client, fd, 1), Err(Errno::EAGAIN));
    assert_eq!(send_now(&mut world.client, fd, b"x"), Err(Errno::EAGAIN));
    assert_eq!(world.count(Side::Client, SocketState::SynSent), 1);
    world.run_until_quiet();
    assert_eq!(get(&mut world.client, fd, SocketOption::Error), 0);
    assert_eq!(world.client.connect(fd, server_at()), Outcome::Done(Ok(())));
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::EISCONN));
    world.end();
}

#[test]
fn refused_connect_tells_so_once_and_the_socket_can_try_again() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    nonblocking(&mut world.client, fd);
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::EINPROGRESS));
    world.run_until_quiet();
    assert_eq!(get(&mut world.client, fd, SocketOption::Error), Errno::ECONNREFUSED.number());
    assert_eq!(get(&mut world.client, fd, SocketOption::Error), 0);
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::ECONNABORTED));
    world.listen(8);
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::EINPROGRESS));
    world.run_until_quiet();
    assert_eq!(world.client.connect(fd, server_at()), Outcome::Done(Ok(())));
    world.end();
}

#[test]
fn blocking_connect_returns_its_error() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    let refused = world.call(Side::Client, |it| it.connect(fd, server_at()));
    assert_eq!(refused, Err(Errno::ECONNREFUSED));
    world.cut = true;
    let silent = world.call(Side::Client, |it| it.connect(fd, server_at()));
    assert_eq!(silent, Err(Errno::ETIMEDOUT));
    world.end();
}

#[test]
fn unreachable_address_fails_at_once() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    let mut connect = |to| world.client.connect(fd, to).done().expect("no waiting");
    let beyond = Address::from_v4_bytes([192, 0, 2, 1]);
    assert_eq!(connect(Endpoint::new(beyond, 80)), Err(Errno::ENETUNREACH));
    assert_eq!(connect(Endpoint::new(server_addr(), 0)), Err(Errno::EADDRNOTAVAIL));
    assert_eq!(connect(Endpoint::new(server_addr_v6(), 80)), Err(Errno::EAFNOSUPPORT));
    let group = Address::from_v4_bytes([224, 0, 0, 1]);
    assert_eq!(connect(Endpoint::new(group, 80)), Err(Errno::ENETUNREACH));
    world.end();
}

#[test]
fn two_sockets_cannot_make_the_same_connection() {
    let mut world = World::new();
    world.listen(8);
    let [one, two] = [(); 2].map(|()| stream(&mut world.client));
    for fd in [one, two] {
        set(&mut world.client, fd, SocketOption::ReuseAddr, 1);
        world.client.bind(fd, any(4_000)).expect("shared");
    }
    world.call(Side::Client, |it| it.connect(one, server_at())).expect("a listener");
    let again = world.client.connect(two, server_at());
    assert_eq!(again, Outcome::fail(Errno::EADDRNOTAVAIL));
    world.end();
}

#[test]
fn accept_waits_or_returns_eagain() {
    let mut world = World::new();
    let listener = world.listen(8);
    let wait = World::blocks(world.server.accept(listener, SocketFlags::NONE));
    assert_eq!(wait, BlockedOn::Accepted(listener));
    assert!(!world.server.may_go_on(&wait));
    nonblocking(&mut world.server, listener);
    let none = world.server.accept(listener, SocketFlags::NONE);
    assert_eq!(none, Outcome::fail(Errno::EAGAIN));
    let client = stream(&mut world.client);
    nonblocking(&mut world.client, client);
    let accepting = world.server.accept(listener, SocketFlags::from_bits(1));
    assert_eq!(accepting, Outcome::fail(Errno::EINVAL));
    assert_eq!(world.client.connect(client, server_at()), Outcome::fail(Errno::EINPROGRESS));
    world.run_until_quiet();
    assert!(world.server.may_go_on(&wait));
    let made =
        world.server.accept(listener, SocketFlags::SOCK_NONBLOCK).done().expect("a connection");
    let flags = world.server.fcntl(made.expect("a connection").fd, crate::Fcntl::GetFl);
    assert_eq!(flags, Ok(FileFlags::O_RDWR | FileFlags::O_NONBLOCK));
    world.end();
}

#[test]
fn backlog_of_one_lets_two_wait() {
    let mut world = World::new();
    let listener = world.listen(1);
    for _ in 0..3 {
        let fd = stream(&mut world.client);
        nonblocking(&mut world.client, fd);
        let _ = world.client.connect(fd, server_at());
        world.run(Duration::from_millis(100));
    }
    assert_eq!(world.count(Side::Server, SocketState::Established), 2);
    world.server.listen(listener, 8).expect("a larger backlog");
    world.run(Duration::from_secs(2));
    assert_eq!(world.count(Side::Server, SocketState::Established), 3);
    world.end();
}

#[test]
fn dual_stack_listener_accepts_v4_unless_v6only() {
    for v6_only in [false, true] {
        let mut world = World::new();
        let made = world.server.socket(
            Domain::Inet6,
            SocketType::Stream,
            SocketFlags::NONE,
            Protocol::Tcp,
        );
        let listener = made.expect("a free descriptor");
        set(&mut world.server, listener, SocketOption::V6Only, i32::from(v6_only));
        let at = Endpoint::new(Domain::Inet6.unspecified(), 80);
        world.server.bind(listener, at).expect("free");
        world.server.listen(listener, 8).expect("bound");
        let v4 = stream(&mut world.client);
        let expected = if v6_only { Err(Errno::ECONNREFUSED) } else { Ok(()) };
        assert_eq!(world.call(Side::Client, |it| it.connect(v4, server_at())), expected);
        let made = world.client.socket(
            Domain::Inet6,
            SocketType::Stream,
            SocketFlags::NONE,
            Protocol::Tcp,
        );
        let v6 = made.expect("a free descriptor");
        let at = Endpoint::new(server_addr_v6(), 80);
        assert_eq!(world.call(Side::Client, |it| it.connect(v6, at)), Ok(()));
        world.end();
    }
}

#[test]
fn disconnecting_resets_and_makes_the_socket_new() {
    let (mut world, listener, client, server) = World::joined();
    world.client.disconnect(client).expect("connected");
    assert_eq!(get(&mut world.client, client, SocketOption::Error), Errno::ECONNRESET.number());
    world.run_until_quiet();
    assert_eq!(recv_now(&mut world.server, server, 1), Err(Errno::ECONNRESET));
    world.call(Side::Client, |it| it.connect(client, server_at())).expect("again");
    assert!(world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE)).is_ok());
    world.end();
}
