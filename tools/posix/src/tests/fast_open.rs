//! `MSG_FASTOPEN`, `TCP_FASTOPEN`, `TCP_FASTOPEN_KEY`, `TCP_FASTOPEN_CONNECT`.

use std::vec::Vec;

use bytes::Bytes;
use whimbrel_wire::tcp::TcpFlags;

use super::world::{
    DELAY, Side, World, get, nonblocking, recv_now, send_now, server_at, set, stream,
};
use crate::{
    Errno, Fd, MsgFlags, OptionValue, Outcome, Outgoing, PollEvents, PollFd, SocketFlags,
    SocketOption,
};

const TEXT: &[u8] = b"GET /";

/// A listener with Fast Open, and a client that has a cookie.
fn acquainted() -> (World, Fd) {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::FastOpen, 4);
    let fd = stream(&mut world.client);
    nonblocking(&mut world.client, fd);
    assert_eq!(fast(&mut world, fd), Err(Errno::EINPROGRESS));
    world.run_until_quiet();
    let accepted = accept(&mut world, listener);
    assert_eq!(recv_now(&mut world.server, accepted, 9), Err(Errno::EAGAIN));
    for (side, fd) in [(Side::Client, fd), (Side::Server, accepted)] {
        world.call(side, |it| it.close(fd)).expect("open");
    }
    world.run_until_quiet();
    world.log.clear();
    (world, listener)
}

/// `sendto` with `MSG_FASTOPEN` that must not block.
fn fast(world: &mut World, fd: Fd) -> Result<usize, Errno> {
    let mut out = Outgoing::new(Bytes::from_static(TEXT));
    let outcome = world.client.send_to(fd, &mut out, MsgFlags::MSG_FASTOPEN, Some(server_at()));
    outcome.done().expect("it does not block")
}

fn accept(world: &mut World, listener: Fd) -> Fd {
    let accepted = world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE));
    accepted.expect("a connection").fd
}

/// The text of the client's SYNs.
fn texts_of_syns(world: &World) -> Vec<Vec<u8>> {
    let sent = world.sent_by(Side::Client).into_iter();
    sent.filter(|sent| sent.has(TcpFlags::SYN)).map(|sent| sent.text).collect()
}

fn events(world: &mut World, fd: Fd) -> PollEvents {
    let mut fds = [PollFd { fd, events: PollEvents::from_bits(0x2fff), revents: PollEvents::NONE }];
    let now = world.now;
    let _ = world.client.poll(&mut fds, now);
    fds[0].revents
}

#[test]
fn socket_that_does_not_block_hears_how_much_the_syn_brings() {
    let (mut world, listener) = acquainted();
    let fd = stream(&mut world.client);
    nonblocking(&mut world.client, fd);
    assert_eq!(fast(&mut world, fd), Ok(TEXT.len()));
    assert_eq!(fast(&mut world, fd), Err(Errno::EALREADY));
    world.run(DELAY);
    // The server's end can be used within the handshake.
    let accepted = accept(&mut world, listener);
    assert_eq!(recv_now(&mut world.server, accepted, 99).as_deref(), Ok(TEXT));
    assert_eq!(recv_now(&mut world.server, accepted, 99), Err(Errno::EAGAIN));
    assert_eq!(send_now(&mut world.server, accepted, b"204"), Ok(3));
    assert_eq!(world.server.tcp_info(accepted).expect("a socket").field("tcpi_state"), Some(3));
    world.run(DELAY);
    assert_eq!(recv_now(&mut world.client, fd, 99).as_deref(), Ok(b"204".as_slice()));
    assert_eq!(fast(&mut world, fd), Err(Errno::EISCONN));
    assert_eq!(texts_of_syns(&world), [TEXT]);
    let options = world.client.tcp_info(fd).expect("a socket").field("tcpi_options");
    assert_eq!(options.map(|options| options & 32), Some(32));
    world.end();
}

#[test]
fn blocking_fast_open_waits_for_connection_and_sends_rest() {
    let (mut world, listener) = acquainted();
    let fd = stream(&mut world.client);
    let mut out = Outgoing::new(Bytes::from(vec![7; 3_000]));
    let sent = world.call(Side::Client, |it| {
        it.send_to(fd, &mut out, MsgFlags::MSG_FASTOPEN, Some(server_at()))
    });
    assert_eq!(sent, Ok(3_000));
    assert_eq!(texts_of_syns(&world)[0].len(), 1_420);
    world.run_until_quiet();
    let accepted = accept(&mut world, listener);
    assert_eq!(recv_now(&mut world.server, accepted, 9_999), Ok(vec![7; 3_000]));
    world.end();
}

#[test]
fn fast_open_needs_an_address_and_the_tunable() {
    let (mut world, _) = acquainted();
    let fd = stream(&mut world.client);
    let mut out = Outgoing::new(Bytes::from_static(TEXT));
    let sent = world.client.send(fd, &mut out, MsgFlags::MSG_FASTOPEN);
    assert_eq!(sent, Outcome::fail(Errno::EINVAL));
    let off = world.client.shard_mut().set_tunable("net.ipv4.tcp_fastopen", "2");
    off.expect("a value");
    assert_eq!(fast(&mut world, fd), Err(Errno::EOPNOTSUPP));
    let asked = world.client.setsockopt(fd, SocketOption::FastOpenConnect, &OptionValue::Int(1));
    assert_eq!(asked, Err(Errno::EOPNOTSUPP));
    assert_eq!(world.client.listen(fd, 1), Ok(()));
    world.end();
}

#[test]
fn deferred_connect_is_made_by_the_first_write() {
    let (mut world, listener) = acquainted();
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::FastOpenConnect, 1);
    nonblocking(&mut world.client, fd);
    assert_eq!(world.client.connect(fd, server_at()), Outcome::Done(Ok(())));
    assert_eq!(world.client.connect(fd, server_at()), Outcome::fail(Errno::EISCONN));
    let ready = events(&mut world, fd);
    assert_eq!(ready, PollEvents::POLLOUT | PollEvents::POLLWRNORM);
    world.run_until_quiet();
    assert_eq!(world.sent_by(Side::Client).len(), 0, "nothing to bring yet");
    assert_eq!(send_now(&mut world.client, fd, TEXT), Ok(TEXT.len()));
    world.run_until_quiet();
    assert_eq!(texts_of_syns(&world), [TEXT]);
    let accepted = accept(&mut world, listener);
    assert_eq!(recv_now(&mut world.server, accepted, 99).as_deref(), Ok(TEXT));
    world.end();
}

#[test]
fn syn_without_cookie_requests_one_at_once() {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::FastOpen, 4);
    for (asked, deferred) in
        [(true, Outcome::fail(Errno::EINPROGRESS)), (false, Outcome::Done(Ok(())))]
    {
        let fd = stream(&mut world.client);
        set(&mut world.client, fd, SocketOption::FastOpenConnect, 1);
        nonblocking(&mut world.client, fd);
        assert_eq!(world.client.connect(fd, server_at()), deferred);
        world.run_until_quiet();
        if asked {
            accept(&mut world, listener);
        }
    }
    world.end();
}

#[test]
fn keys_are_one_or_two_of_sixteen_bytes_and_hold_from_listen_on() {
    let mut world = World::new();
    let early = stream(&mut world.server);
    let key = |len: u8| OptionValue::Bytes((0..len).collect());
    for len in [0, 8, 15, 17, 31, 33, 48] {
        let set = world.server.setsockopt(early, SocketOption::FastOpenKey, &key(len));
        assert_eq!(set, Err(Errno::EINVAL), "{len} bytes");
    }
    let number = world.server.setsockopt(early, SocketOption::FastOpenKey, &OptionValue::Int(1));
    assert_eq!(number, Err(Errno::EINVAL));
    let told = world.server.getsockopt(early, SocketOption::FastOpenKey);
    assert_eq!(told, Ok(key(0)), "the stack's key is not told");
    for len in [32, 16] {
        assert_eq!(world.server.setsockopt(early, SocketOption::FastOpenKey, &key(len)), Ok(()));
        assert_eq!(world.server.getsockopt(early, SocketOption::FastOpenKey), Ok(key(len)));
    }
    set(&mut world.server, early, SocketOption::FastOpen, 4);
    assert_eq!(world.server.bind(early, server_at()), Ok(()));
    assert_eq!(world.server.listen(early, 8), Ok(()));
    let mut cookies = Vec::new();
    // Set before listening; the same again; another.
    for given in [None, Some(key(16)), Some(OptionValue::Bytes(std::vec![7; 16]))] {
        if let Some(value) = given {
            let set = world.server.setsockopt(early, SocketOption::FastOpenKey, &value);
            assert_eq!(set, Ok(()));
        }
        let fd = stream(&mut world.client);
        nonblocking(&mut world.client, fd);
        world.client.shard_mut().purge_paths();
        assert_eq!(fast(&mut world, fd), Err(Errno::EINPROGRESS));
        world.run_until_quiet();
        accept(&mut world, early);
        let granted =
            world.sent_by(Side::Server).iter().rev().find_map(|it| it.tcp.options.fast_open);
        cookies.push(granted.expect("it was asked for"));
    }
    assert!(cookies[0] == cookies[1] && cookies[1] != cookies[2], "{cookies:?}");
    world.end();
}

#[test]
fn fast_open_options_are_returned_and_not_inherited() {
    let (mut world, listener) = acquainted();
    assert_eq!(get(&mut world.server, listener, SocketOption::FastOpen), 4);
    set(&mut world.server, listener, SocketOption::FastOpen, 1 << 20);
    assert_eq!(get(&mut world.server, listener, SocketOption::FastOpen), 4_096);
    let (client, accepted) = world.connected(listener);
    assert_eq!(get(&mut world.server, accepted, SocketOption::FastOpen), 0);
    let refused = [
        (client, SocketOption::FastOpen, 1),
        (client, SocketOption::FastOpenConnect, 1),
        (client, SocketOption::FastOpenConnect, 2),
    ];
    for (fd, option, value) in refused {
        let set = world.client.setsockopt(fd, option, &OptionValue::Int(value));
        assert_eq!(set, Err(Errno::EINVAL), "{option:?}={value}");
    }
    let negative = OptionValue::Int(-1);
    let set = world.server.setsockopt(listener, SocketOption::FastOpen, &negative);
    assert_eq!(set, Err(Errno::EINVAL));
    world.end();
}
