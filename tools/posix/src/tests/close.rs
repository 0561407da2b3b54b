//! `shutdown` and `close`, lingering or not.

use std::time::Duration;

use whimbrel_stack::shard::SocketState;

use super::world::{Side, World, get, nonblocking, recv_now, send_now, server_at, stream};
use crate::{
    BlockedOn, Errno, Linger, OptionValue, Outcome, Shut, SocketFlags, SocketOption, Sockets,
};

#[test]
fn peer_can_read_and_answer_after_write_shutdown() {
    let (mut world, _, client, server) = World::joined();
    send_now(&mut world.client, client, b"question").expect("room");
    world.client.shutdown(client, Shut::Write).expect("connected");
    assert_eq!(send_now(&mut world.client, client, b"x"), Err(Errno::EPIPE));
    assert_eq!(world.recv(Side::Server, server, 100), Ok(b"question".to_vec()));
    assert_eq!(world.recv(Side::Server, server, 100), Ok(Vec::new()));
    world.run_until_quiet();
    assert_eq!(world.count(Side::Server, SocketState::CloseWait), 1);
    assert_eq!(world.count(Side::Client, SocketState::FinWait2), 1);
    send_now(&mut world.server, server, b"answer").expect("room");
    assert_eq!(world.server.close(server), Outcome::Done(Ok(())));
    assert_eq!(world.recv(Side::Client, client, 100), Ok(b"answer".to_vec()));
    assert_eq!(world.recv(Side::Client, client, 100), Ok(Vec::new()));
    assert_eq!(world.count(Side::Client, SocketState::TimeWait), 1);
    assert_eq!(world.client.shutdown(client, Shut::Write), Err(Errno::ENOTCONN));
    world.end();
}

#[test]
fn read_shutdown_returns_eof_then_later_data() {
    let (mut world, _, client, server) = World::joined();
    world.client.shutdown(client, Shut::Read).expect("connected");
    assert_eq!(recv_now(&mut world.client, client, 9), Ok(Vec::new()));
    send_now(&mut world.server, server, b"late").expect("room");
    world.run_until_quiet();
    assert_eq!(recv_now(&mut world.client, client, 9), Ok(b"late".to_vec()));
    assert_eq!(send_now(&mut world.client, client, b"fine"), Ok(4));
    world.run_until_quiet();
    world.end();
}

#[test]
fn closing_with_something_unread_resets() {
    let (mut world, _, client, server) = World::joined();
    send_now(&mut world.client, client, b"unread").expect("room");
    world.run_until_quiet();
    assert_eq!(world.server.close(server), Outcome::Done(Ok(())));
    assert_eq!(world.recv(Side::Client, client, 1), Err(Errno::ECONNRESET));
    world.end();
}

#[test]
fn listener_can_listen_again_after_shutdown() {
    let mut world = World::new();
    let listener = world.listen(8);
    world.server.shutdown(listener, Shut::Write).expect("nothing to do");
    assert_eq!(world.count(Side::Server, SocketState::Listen), 1);
    world.server.shutdown(listener, Shut::Read).expect("listening");
    assert_eq!(world.count(Side::Server, SocketState::Listen), 0);
    assert_eq!(world.server.accept(listener, SocketFlags::NONE), Outcome::fail(Errno::EINVAL));
    world.server.listen(listener, 8).expect("still bound");
    let (_, _) = world.connected(listener);
    world.end();
}

#[test]
fn shutting_down_while_connecting_ends_the_attempt() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    nonblocking(&mut world.client, fd);
    let _ = world.client.connect(fd, server_at());
    world.client.shutdown(fd, Shut::Both).expect("connecting");
    assert_eq!(world.count(Side::Client, SocketState::SynSent), 0);
    assert_eq!(get(&mut world.client, fd, SocketOption::Error), Errno::ECONNRESET.number());
    world.end();
}

#[test]
fn lingering_close_waits_for_the_last_acknowledgment() {
    let (mut world, _, client, server) = World::joined();
    linger(&mut world.client, client, 5);
    nonblocking(&mut world.client, client);
    send_now(&mut world.client, client, b"to be delivered").expect("room");
    let started = world.now;
    let wait = World::blocks(world.client.close(client));
    assert_eq!(wait, BlockedOn::Lingering(client, started + Duration::from_secs(5)));
    assert_eq!(recv_now(&mut world.client, client, 1), Err(Errno::EBADF));
    assert_eq!(world.call(Side::Client, |it| it.close(client)), Ok(()));
    assert!(world.now < started + Duration::from_millis(50));
    assert_eq!(recv_now(&mut world.server, server, 99), Ok(b"to be delivered".to_vec()));
    assert_eq!(world.client.close(client), Outcome::fail(Errno::EBADF));
    world.end();
}

#[test]
fn lingering_close_gives_up_when_its_time_is_over() {
    let (mut world, _, client, _) = World::joined();
    linger(&mut world.client, client, 3);
    world.cut = true;
    let started = world.now;
    assert_eq!(world.call(Side::Client, |it| it.close(client)), Ok(()));
    assert_eq!(world.now, started + Duration::from_secs(3));
    assert_eq!(world.count(Side::Client, SocketState::FinWait1), 1, "without an owner");
    world.cut = false;
    world.end();
}

#[test]
fn lingering_for_no_time_resets() {
    let (mut world, _, client, server) = World::joined();
    linger(&mut world.client, client, 0);
    assert_eq!(world.client.close(client), Outcome::Done(Ok(())));
    assert_eq!(world.client.shard().census().connections, 0);
    assert_eq!(world.recv(Side::Server, server, 1), Err(Errno::ECONNRESET));
    world.end();
}

#[test]
fn closed_listener_resets_waiting_connections() {
    let mut world = World::new();
    let listener = world.listen(8);
    let client = stream(&mut world.client);
    world.call(Side::Client, |it| it.connect(client, server_at())).expect("a listener");
    world.run_until_quiet();
    assert_eq!(world.server.close(listener), Outcome::Done(Ok(())));
    assert_eq!(world.recv(Side::Client, client, 1), Err(Errno::ECONNRESET));
    world.end();
}

fn linger(sockets: &mut Sockets, fd: crate::Fd, seconds: u32) {
    let value = OptionValue::Linger(Linger::Seconds(seconds));
    sockets.setsockopt(fd, SocketOption::Linger, &value).expect("it takes effect");
    assert_eq!(sockets.getsockopt(fd, SocketOption::Linger), Ok(value));
}
