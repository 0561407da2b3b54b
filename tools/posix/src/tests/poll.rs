//! `poll`: events of each state, as on Linux.

use std::time::Duration;

use whimbrel_base::Instant;

use super::world::{Side, World, get, nonblocking, recv_now, send_now, server_at, set, stream};
use crate::{Errno, Fd, Outcome, PollEvents, PollFd, Shut, SocketFlags, SocketOption, Sockets};

const IN: PollEvents = PollEvents::POLLIN;
const OUT: PollEvents = PollEvents::POLLOUT;
const ERR: PollEvents = PollEvents::POLLERR;
const HUP: PollEvents = PollEvents::POLLHUP;
const RDHUP: PollEvents = PollEvents::POLLRDHUP;

/// All events that `poll` reports without waiting.
fn events(sockets: &mut Sockets, fd: Fd) -> PollEvents {
    let mut one = [PollFd { fd, events: IN | OUT | RDHUP, revents: PollEvents::NONE }];
    let now = sockets.shard().now();
    let count = sockets.poll(&mut one, now).done().expect("it does not wait").expect("no error");
    assert_eq!(count, usize::from(!one[0].revents.is_empty()));
    one[0].revents
}

#[test]
fn each_state_has_its_events() {
    let mut world = World::new();
    let listener = world.listen(8);
    let client = stream(&mut world.client);
    nonblocking(&mut world.client, client);
    assert_eq!(events(&mut world.client, client), OUT | HUP, "fresh");
    assert_eq!(events(&mut world.server, listener), PollEvents::NONE);
    let _ = world.client.connect(client, server_at());
    assert_eq!(events(&mut world.client, client), PollEvents::NONE, "connecting");
    world.run_until_quiet();
    assert_eq!(events(&mut world.client, client), OUT, "connected");
    assert_eq!(events(&mut world.server, listener), IN);
    let accepted = world.server.accept(listener, SocketFlags::NONE).done().expect("a connection");
    let server = accepted.expect("a connection").fd;
    assert_eq!(events(&mut world.server, listener), PollEvents::NONE);
    send_now(&mut world.client, client, b"text").expect("room");
    world.run_until_quiet();
    assert_eq!(events(&mut world.server, server), IN | OUT, "text");
    recv_now(&mut world.server, server, 9).expect("text");
    assert_eq!(events(&mut world.server, server), OUT);
    world.client.shutdown(client, Shut::Write).expect("connected");
    assert_eq!(events(&mut world.client, client), OUT, "our end");
    world.run_until_quiet();
    assert_eq!(events(&mut world.server, server), IN | OUT | RDHUP, "the peer's end");
    world.server.shutdown(server, Shut::Write).expect("connected");
    assert_eq!(events(&mut world.server, server), IN | OUT | HUP | RDHUP, "both");
    world.run_until_quiet();
    assert_eq!(events(&mut world.client, client), IN | OUT | HUP | RDHUP, "over");
    world.end();
}

#[test]
fn failed_connect_is_an_error_and_an_end() {
    let mut world = World::new();
    let fd = stream(&mut world.client);
    nonblocking(&mut world.client, fd);
    let _ = world.client.connect(fd, server_at());
    world.run_until_quiet();
    assert_eq!(events(&mut world.client, fd), IN | OUT | ERR | HUP | RDHUP);
    assert_eq!(get(&mut world.client, fd, SocketOption::Error), Errno::ECONNREFUSED.number());
    assert_eq!(events(&mut world.client, fd), IN | OUT | HUP | RDHUP);
    world.end();
}

#[test]
fn room_is_announced_when_a_third_is_free() {
    let (mut world, _, client, server) = World::joined_with(&super::world::exact());
    set(&mut world.client, client, SocketOption::SendBuffer, 9_000);
    send_now(&mut world.client, client, &[0; 6_000]).expect("room");
    assert_eq!(events(&mut world.client, client), OUT);
    send_now(&mut world.client, client, &[0; 1_000]).expect("room");
    assert_eq!(events(&mut world.client, client), PollEvents::NONE);
    world.run_until_quiet();
    assert_eq!(events(&mut world.client, client), OUT);
    recv_now(&mut world.server, server, 9_000).expect("text");
    world.end();
}

#[test]
fn poll_waits_for_the_first_of_many_or_for_its_time() {
    let (mut world, listener, client, server) = World::joined();
    let mut all = [listener, server, Fd(99), Fd(-1)].map(|fd| PollFd {
        fd,
        events: IN,
        revents: PollEvents::NONE,
    });
    let until = world.now + Duration::from_secs(1);
    let polled = world.call(Side::Server, |it| it.poll(&mut all, until));
    assert_eq!((polled, all[2].revents), (Ok(1), PollEvents::POLLNVAL), "not a descriptor");
    let mut two = [all[0], all[1]];
    assert_eq!(world.call(Side::Server, |it| it.poll(&mut two, until)), Ok(0));
    assert_eq!(world.now, until);
    send_now(&mut world.client, client, b"text").expect("room");
    let polled = world.call(Side::Server, |it| it.poll(&mut two, Instant::NEVER));
    assert_eq!((polled, two[1].revents), (Ok(1), IN));
    assert_eq!(world.server.poll(&mut [], Instant::ZERO), Outcome::Done(Ok(0)));
    recv_now(&mut world.server, server, 9).expect("text");
    world.end();
}
