//! `epoll`: level, edge, once.

use std::time::Duration;

use whimbrel_base::Instant;

use super::world::{Side, World, recv_now, send_now, set, stream};
use crate::{
    EpollEvents, EpollOp, EpollReport, Errno, Fd, Outcome, PollEvents, PollFd, Shut, SocketOption,
    Sockets,
};

const IN: EpollEvents = EpollEvents::EPOLLIN;
const OUT: EpollEvents = EpollEvents::EPOLLOUT;

fn watch(sockets: &mut Sockets, epoll: Fd, op: EpollOp, fd: Fd, events: EpollEvents) {
    let watch = EpollReport { events, data: fd.0 as u64 };
    sockets.epoll_ctl(epoll, op, fd, watch).expect("it can be watched");
}

/// The events at this moment.
fn reports(sockets: &mut Sockets, epoll: Fd) -> Vec<(EpollEvents, Fd)> {
    let reports = sockets.epoll_wait(epoll, 16, Instant::ZERO).done().expect("it does not wait");
    let reports = reports.expect("an instance");
    reports.into_iter().map(|report| (report.events, Fd(report.data as i32))).collect()
}

#[test]
fn level_triggered_event_repeats_while_it_holds() {
    let (mut world, listener, client, server) = World::joined();
    let epoll = world.server.epoll_create().expect("a free descriptor");
    watch(&mut world.server, epoll, EpollOp::Add, server, IN);
    watch(&mut world.server, epoll, EpollOp::Add, listener, IN);
    assert_eq!(reports(&mut world.server, epoll), []);
    send_now(&mut world.client, client, b"text").expect("room");
    let waited = world.call(Side::Server, |it| it.epoll_wait(epoll, 1, Instant::NEVER));
    assert_eq!(waited, Ok(vec![EpollReport { events: IN, data: server.0 as u64 }]));
    assert_eq!(reports(&mut world.server, epoll), [(IN, server)]);
    recv_now(&mut world.server, server, 9).expect("text");
    assert_eq!(reports(&mut world.server, epoll), []);
    let until = world.now + Duration::from_secs(1);
    let timed_out = world.call(Side::Server, |it| it.epoll_wait(epoll, 1, until));
    assert_eq!((timed_out, world.now), (Ok(Vec::new()), until));
    let other = stream(&mut world.client);
    let _ = world.client.connect(other, super::world::server_at());
    world.run_until_quiet();
    assert_eq!(reports(&mut world.server, epoll), [(IN, listener)]);
    world.end();
}

#[test]
fn edge_is_reported_once_for_each_arrival() {
    let (mut world, _, client, server) = World::joined();
    let epoll = world.server.epoll_create().expect("a free descriptor");
    watch(&mut world.server, epoll, EpollOp::Add, server, IN | EpollEvents::EPOLLET);
    for _ in 0..2 {
        send_now(&mut world.client, client, b"text").expect("room");
        world.run_until_quiet();
        assert_eq!(reports(&mut world.server, epoll), [(IN, server)]);
        assert_eq!(reports(&mut world.server, epoll), [], "nothing new");
    }
    recv_now(&mut world.server, server, 9).expect("text");
    world.end();
}

#[test]
fn oneshot_is_silent_until_rearmed() {
    let (mut world, _, client, server) = World::joined();
    let epoll = world.server.epoll_create().expect("a free descriptor");
    let once = IN | EpollEvents::EPOLLONESHOT;
    watch(&mut world.server, epoll, EpollOp::Add, server, once);
    send_now(&mut world.client, client, b"text").expect("room");
    world.run_until_quiet();
    assert_eq!(reports(&mut world.server, epoll), [(IN, server)]);
    send_now(&mut world.client, client, b"text").expect("room");
    world.run_until_quiet();
    assert_eq!(reports(&mut world.server, epoll), []);
    watch(&mut world.server, epoll, EpollOp::Mod, server, once);
    assert_eq!(reports(&mut world.server, epoll), [(IN, server)]);
    recv_now(&mut world.server, server, 9).expect("text");
    world.end();
}

#[test]
fn room_is_reported_without_a_refused_send() {
    let (mut world, _, client, server) = World::joined_with(&super::world::exact());
    set(&mut world.client, client, SocketOption::SendBuffer, 9_000);
    let epoll = world.client.epoll_create().expect("a free descriptor");
    watch(&mut world.client, epoll, EpollOp::Add, client, OUT);
    assert_eq!(reports(&mut world.client, epoll), [(OUT, client)]);
    send_now(&mut world.client, client, &[0; 8_000]).expect("room");
    assert_eq!(reports(&mut world.client, epoll), []);
    world.run_until_quiet();
    assert_eq!(reports(&mut world.client, epoll), [(OUT, client)]);
    recv_now(&mut world.server, server, 9_000).expect("text");
    world.end();
}

#[test]
fn epoll_reports_established_and_closed_connections() {
    let mut world = World::new();
    let listener = world.listen(8);
    let fd = stream(&mut world.client);
    let epoll = world.client.epoll_create().expect("a free descriptor");
    watch(&mut world.client, epoll, EpollOp::Add, fd, OUT | EpollEvents::EPOLLRDHUP);
    assert_eq!(reports(&mut world.client, epoll), [(OUT | EpollEvents::EPOLLHUP, fd)]);
    let _ = world.client.connect(fd, super::world::server_at());
    assert_eq!(reports(&mut world.client, epoll), []);
    let connected = world.call(Side::Client, |it| it.epoll_wait(epoll, 1, Instant::NEVER));
    assert_eq!(connected.map(|it| it[0].events), Ok(OUT));
    let accepted = world.call(Side::Server, |it| it.accept(listener, crate::SocketFlags::NONE));
    let server = accepted.expect("a connection").fd;
    watch(&mut world.client, epoll, EpollOp::Mod, fd, EpollEvents::EPOLLRDHUP);
    world.server.shutdown(server, Shut::Write).expect("connected");
    world.run_until_quiet();
    assert_eq!(reports(&mut world.client, epoll), [(EpollEvents::EPOLLRDHUP, fd)]);
    world.end();
}

#[test]
fn closed_descriptor_is_not_watched() {
    let (mut world, listener, client, server) = World::joined();
    let epoll = world.server.epoll_create().expect("a free descriptor");
    let mut ctl = |op, fd| {
        let watch = EpollReport { events: IN, data: 0 };
        world.server.epoll_ctl(epoll, op, fd, watch)
    };
    assert_eq!(ctl(EpollOp::Mod, server), Err(Errno::ENOENT));
    assert_eq!(ctl(EpollOp::Add, server), Ok(()));
    assert_eq!(ctl(EpollOp::Add, server), Err(Errno::EEXIST));
    assert_eq!(ctl(EpollOp::Add, epoll), Err(Errno::EINVAL));
    assert_eq!(ctl(EpollOp::Add, Fd(77)), Err(Errno::EBADF));
    assert_eq!(ctl(EpollOp::Add, listener), Ok(()));
    assert_eq!(ctl(EpollOp::Del, listener), Ok(()));
    assert_eq!(ctl(EpollOp::Del, listener), Err(Errno::ENOENT));
    send_now(&mut world.client, client, b"text").expect("room");
    world.run_until_quiet();
    let mut polled = [PollFd { fd: epoll, events: PollEvents::POLLIN, revents: PollEvents::NONE }];
    assert_eq!(world.server.poll(&mut polled, Instant::ZERO), Outcome::Done(Ok(1)));
    assert_eq!(world.server.close(server), Outcome::Done(Ok(())));
    assert_eq!(reports(&mut world.server, epoll), []);
    assert_eq!(world.server.epoll_wait(epoll, 0, Instant::ZERO), Outcome::fail(Errno::EINVAL));
    world.end();
}

#[test]
fn many_ready_descriptors_take_turns() {
    let mut world = World::new();
    let epoll = world.client.epoll_create().expect("a free descriptor");
    let fds: Vec<Fd> = (0..5).map(|_| stream(&mut world.client)).collect();
    for fd in &fds {
        watch(&mut world.client, epoll, EpollOp::Add, *fd, OUT);
    }
    let mut seen = Vec::new();
    for _ in 0..5 {
        let report = world.client.epoll_wait(epoll, 1, Instant::ZERO).done().expect("no waiting");
        seen.extend(report.expect("an instance").into_iter().map(|it| Fd(it.data as i32)));
    }
    assert_eq!(seen, fds);
    world.end();
}
