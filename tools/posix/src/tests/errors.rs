//! Results of calls on sockets that are not ready for them, or over.

use std::time::Duration;

use bytes::Bytes;

use super::world::{Side, World, get, recv_now, send_now, server_at, set, stream};
use crate::{
    Domain, Errno, Fd, Ioctl, Linger, MsgFlags, OptionValue, Outcome, Outgoing, Protocol, Shut,
    SocketFlags, SocketOption, SocketType, Sockets,
};

#[test]
fn unconnected_socket_returns_enotconn() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    assert_eq!(recv_now(&mut world.client, fd, 1), Err(Errno::ENOTCONN));
    assert_eq!(send_now(&mut world.client, fd, b"x"), Err(Errno::EPIPE));
    assert_eq!(world.client.shutdown(fd, Shut::Write), Err(Errno::ENOTCONN));
    assert_eq!(world.client.getpeername(fd), Err(Errno::ENOTCONN));
    assert_eq!(world.client.accept(fd, SocketFlags::NONE), Outcome::fail(Errno::EINVAL));
    assert_eq!(world.client.ioctl(fd, Ioctl::Inq), Ok(0));
    let unbound = whimbrel_wire::Endpoint::new(Domain::Inet.unspecified(), 0);
    assert_eq!(world.client.getsockname(fd), Ok(unbound));
    world.end();
}

#[test]
fn listener_carries_no_data() {
    let mut world = World::new();
    let fd = world.listen(8);
    assert_eq!(recv_now(&mut world.server, fd, 1), Err(Errno::ENOTCONN));
    assert_eq!(send_now(&mut world.server, fd, b"x"), Err(Errno::EPIPE));
    assert_eq!(world.server.ioctl(fd, Ioctl::Inq), Err(Errno::EINVAL));
    assert_eq!(world.server.connect(fd, server_at()), Outcome::fail(Errno::EISCONN));
    assert_eq!(world.server.bind(fd, server_at()), Err(Errno::EINVAL));
    world.end();
}

#[test]
fn number_that_is_no_descriptor_is_refused_everywhere() {
    let mut world = World::new();
    let sockets = &mut world.client;
    for fd in [Fd(-1), Fd(0), Fd(3), Fd(i32::MIN), Fd(i32::MAX)] {
        assert_eq!(recv_now(sockets, fd, 1), Err(Errno::EBADF));
        assert_eq!(send_now(sockets, fd, b"x"), Err(Errno::EBADF));
        assert_eq!(sockets.bind(fd, server_at()), Err(Errno::EBADF));
        assert_eq!(sockets.listen(fd, 1), Err(Errno::EBADF));
        assert_eq!(sockets.connect(fd, server_at()), Outcome::fail(Errno::EBADF));
        assert_eq!(sockets.accept(fd, SocketFlags::NONE), Outcome::fail(Errno::EBADF));
        assert_eq!(sockets.shutdown(fd, Shut::Both), Err(Errno::EBADF));
        assert_eq!(sockets.close(fd), Outcome::fail(Errno::EBADF));
        assert_eq!(sockets.getsockopt(fd, SocketOption::Error), Err(Errno::EBADF));
        assert_eq!(sockets.ioctl(fd, Ioctl::Outq), Err(Errno::EBADF));
        assert_eq!(sockets.fcntl(fd, crate::Fcntl::GetFl), Err(Errno::EBADF));
    }
    let epoll = sockets.epoll_create().expect("a free descriptor");
    assert_eq!(recv_now(sockets, epoll, 1), Err(Errno::ENOTSOCK));
    assert_eq!(sockets.ioctl(epoll, Ioctl::Inq), Err(Errno::ENOTTY));
    world.end();
}

#[test]
fn descriptors_are_the_lowest_free_and_have_a_bound() {
    let mut world = World::new();
    let made: Vec<Fd> = (0..Sockets::USUAL_LIMIT).map(|_| stream(&mut world.client)).collect();
    assert_eq!(made.last(), Some(&Fd(1026)));
    let more = |sockets: &mut Sockets| {
        sockets.socket(Domain::Inet6, SocketType::Stream, SocketFlags::NONE, Protocol::Tcp)
    };
    assert_eq!(more(&mut world.client), Err(Errno::EMFILE));
    assert_eq!(world.client.epoll_create(), Err(Errno::EMFILE));
    for fd in [Fd(9), Fd(5)] {
        assert_eq!(world.client.close(fd), Outcome::Done(Ok(())));
    }
    assert_eq!(more(&mut world.client), Ok(Fd(5)));
    assert_eq!(more(&mut world.client), Ok(Fd(9)));
    world.end();
}

/// Connections whose clients are gone have all descriptors but those of a client that is served meanwhile, for
/// ten seconds. Another waits until one is free.
#[test]
fn client_is_served_while_all_descriptors_are_used() {
    let (mut world, listener, client, server) = World::joined();
    let mut left = None;
    for _ in 2..Sockets::USUAL_LIMIT {
        let (gone, accepted) = world.connected(listener);
        world.call(Side::Client, |it| it.close(gone)).expect("open");
        left = Some(accepted);
    }
    let late = stream(&mut world.client);
    world.call(Side::Client, |it| it.connect(late, server_at())).expect("it listens");
    for _ in 0..10 {
        let accepted = world.server.accept(listener, SocketFlags::NONE);
        assert_eq!(accepted, Outcome::fail(Errno::EMFILE));
        for [(from, fd), (to, peer)] in [
            [(Side::Client, client), (Side::Server, server)],
            [(Side::Server, server), (Side::Client, client)],
        ] {
            assert_eq!(world.send(from, fd, b"text"), Ok(4));
            assert_eq!(world.recv(to, peer, 9), Ok(b"text".to_vec()));
        }
        world.run(Duration::from_secs(1));
    }
    world.call(Side::Server, |it| it.close(left.expect("many"))).expect("open");
    let accepted = world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE));
    assert_eq!(world.send(Side::Server, accepted.expect("it waited").fd, b"at last"), Ok(7));
    assert_eq!(world.recv(Side::Client, late, 9), Ok(b"at last".to_vec()));
    world.end();
}

#[test]
fn types_and_protocols_go_together_or_do_not_exist() {
    let mut world = World::new();
    let mut make =
        |kind, protocol| world.client.socket(Domain::Inet, kind, SocketFlags::NONE, protocol);
    assert_eq!(make(SocketType::Dgram, Protocol::Tcp), Err(Errno::EPROTONOSUPPORT));
    assert_eq!(make(SocketType::Raw, Protocol::Udp), Err(Errno::ESOCKTNOSUPPORT));
    assert_eq!(make(SocketType::Raw, Protocol::Tcp), Err(Errno::ESOCKTNOSUPPORT));
    assert_eq!(make(SocketType::Stream, Protocol::Udp), Err(Errno::EPROTONOSUPPORT));
    world.end();
}

#[test]
fn reset_is_reported_once_then_eof() {
    let (mut world, _, client, server) = World::joined();
    send_now(&mut world.server, server, b"last words").expect("room");
    world.run_until_quiet();
    let linger = OptionValue::Linger(Linger::Seconds(0));
    world.server.setsockopt(server, SocketOption::Linger, &linger).expect("it takes effect");
    assert_eq!(world.server.close(server), Outcome::Done(Ok(())));
    world.run_until_quiet();
    assert_eq!(recv_now(&mut world.client, client, 4), Ok(b"last".to_vec()));
    assert_eq!(recv_now(&mut world.client, client, 100), Ok(b" words".to_vec()));
    assert_eq!(recv_now(&mut world.client, client, 1), Err(Errno::ECONNRESET));
    assert_eq!(recv_now(&mut world.client, client, 1), Ok(Vec::new()));
    assert_eq!(send_now(&mut world.client, client, b"x"), Err(Errno::EPIPE));
    assert_eq!(world.client.shutdown(client, Shut::Write), Err(Errno::ENOTCONN));
    assert_eq!(world.client.getpeername(client), Err(Errno::ENOTCONN));
    world.end();
}

#[test]
fn send_after_reset_gives_econnreset_then_epipe() {
    let (mut world, _, client, server) = World::joined();
    set_abort(&mut world.server, server);
    world.run_until_quiet();
    assert_eq!(send_now(&mut world.client, client, b"x"), Err(Errno::ECONNRESET));
    assert_eq!(send_now(&mut world.client, client, b"x"), Err(Errno::EPIPE));
    world.end();
}

#[test]
fn reset_after_the_peers_end_is_a_broken_pipe() {
    let (mut world, _, client, server) = World::joined();
    world.server.shutdown(server, Shut::Write).expect("connected");
    world.run_until_quiet();
    set_abort(&mut world.server, server);
    world.run_until_quiet();
    assert_eq!(recv_now(&mut world.client, client, 1), Ok(Vec::new()), "the end comes first");
    assert_eq!(get(&mut world.client, client, SocketOption::Error), Errno::EPIPE.number());
    world.end();
}

#[test]
fn reset_in_last_ack_is_reported_after_eof() {
    let (mut world, _, client, server) = World::joined();
    world.server.shutdown(server, Shut::Write).expect("connected");
    world.run_until_quiet();
    // The reset crosses our FIN.
    world.client.shutdown(client, Shut::Write).expect("connected");
    set_abort(&mut world.server, server);
    world.run_until_quiet();
    assert_eq!(recv_now(&mut world.client, client, 1), Ok(Vec::new()), "the end comes first");
    assert_eq!(get(&mut world.client, client, SocketOption::Error), Errno::ECONNRESET.number());
    assert_eq!(get(&mut world.client, client, SocketOption::Error), 0, "once");
    assert_eq!(recv_now(&mut world.client, client, 1), Ok(Vec::new()));
    world.end();
}

#[test]
fn blocked_send_returns_bytes_sent_then_next_the_error() {
    let (mut world, _, client, server) = World::joined();
    set(&mut world.client, client, SocketOption::SendBuffer, 5_000);
    let mut out = Outgoing::new(Bytes::from(vec![7; 2 << 20]));
    World::blocks(world.client.send(client, &mut out, MsgFlags::NONE));
    set_abort(&mut world.server, server);
    let sent = world.call(Side::Client, |it| it.send(client, &mut out, MsgFlags::NONE));
    assert_eq!(sent, Ok(out.sent()));
    assert_eq!(send_now(&mut world.client, client, b"x"), Err(Errno::ECONNRESET));
    world.end();
}

#[test]
fn silence_ends_a_connection_with_a_time_out() {
    let mut world = World::with(&whimbrel_tcp::Tunables { retries: 3, ..Default::default() });
    let listener = world.listen(8);
    let (client, _) = world.connected(listener);
    world.cut = true;
    send_now(&mut world.client, client, b"anybody there?").expect("room");
    assert_eq!(world.recv(Side::Client, client, 1), Err(Errno::ETIMEDOUT));
    world.cut = false;
    world.end();
}

/// The process at this end dies.
fn set_abort(sockets: &mut Sockets, fd: Fd) {
    let linger = OptionValue::Linger(Linger::Seconds(0));
    sockets.setsockopt(fd, SocketOption::Linger, &linger).expect("it takes effect");
    assert_eq!(sockets.close(fd), Outcome::Done(Ok(())));
}

#[test]
fn timeout_returns_the_routers_icmp_error() {
    for (code, errno) in
        [(None, Errno::ETIMEDOUT), (Some(0), Errno::ENETUNREACH), (Some(1), Errno::EHOSTUNREACH)]
    {
        let mut world = World::new();
        (world.cut, world.unreachable) = (true, code);
        let fd = stream(&mut world.client);
        assert_eq!(world.call(Side::Client, |it| it.connect(fd, server_at())), Err(errno));
        (world.cut, world.unreachable) = (false, None);
        let listener = world.listen(8);
        let (client, _) = world.connected(listener);
        (world.cut, world.unreachable) = (true, code);
        send_now(&mut world.client, client, b"text").expect("room");
        world.run(Duration::from_secs(1_200));
        assert_eq!(recv_now(&mut world.client, client, 1), Err(errno));
        (world.cut, world.unreachable) = (false, None);
        world.end();
    }
}
