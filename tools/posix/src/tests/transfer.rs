//! `recv` and `send`, blocking and not, and their flags.

use bytes::Bytes;
use whimbrel_base::Instant;

use super::world::{Side, World, nonblocking, recv_now, recv_with, send_now, set, stream};
use crate::{
    BlockedOn, Errno, Incoming, Ioctl, MsgFlags, Outcome, Outgoing, PollEvents, PollFd,
    SocketOption,
};

#[test]
fn blocking_recv_waits_for_data_and_returns_what_fits() {
    let (mut world, _, client, server) = World::joined();
    let mut into = Incoming::new(4);
    let wait = World::blocks(world.server.recv(server, &mut into, MsgFlags::NONE));
    assert_eq!(wait, BlockedOn::Readable(server));
    assert_eq!(world.send(Side::Client, client, b"hello"), Ok(5));
    assert_eq!(world.recv(Side::Server, server, 4), Ok(b"hell".to_vec()));
    assert_eq!(world.server.ioctl(server, Ioctl::Fionread), Ok(1));
    assert_eq!(world.recv(Side::Server, server, 4), Ok(b"o".to_vec()));
    assert_eq!(recv_now(&mut world.server, server, 4), Err(Errno::EAGAIN));
    assert_eq!(recv_now(&mut world.server, server, 0), Ok(Vec::new()));
    world.end();
}

#[test]
fn peek_leaves_data_unread_and_window_unchanged() {
    let (mut world, _, client, server) = World::joined();
    world.send(Side::Client, client, b"question").expect("room");
    world.run_until_quiet();
    let before = world.server.tcp_info(server).expect("connected").tcpi_rcv_wnd;
    for _ in 0..2 {
        let peeked = recv_with(&mut world.server, server, 5, MsgFlags::MSG_PEEK);
        assert_eq!(peeked, Ok(b"quest".to_vec()));
    }
    assert_eq!(world.server.tcp_info(server).expect("connected").tcpi_rcv_wnd, before);
    assert_eq!(world.server.ioctl(server, Ioctl::Inq), Ok(8));
    assert_eq!(recv_now(&mut world.server, server, 100), Ok(b"question".to_vec()));
    let nothing = recv_with(&mut world.server, server, 5, MsgFlags::MSG_PEEK);
    assert_eq!(nothing, Err(Errno::EAGAIN));
    world.end();
}

#[test]
fn truncating_throws_away_and_tells_the_number() {
    let (mut world, _, client, server) = World::joined();
    world.send(Side::Client, client, b"question").expect("room");
    world.run_until_quiet();
    let mut into = Incoming::new(5);
    let read = world.server.recv(server, &mut into, MsgFlags::MSG_TRUNC);
    assert_eq!((read, into.to_vec()), (Outcome::Done(Ok(5)), Vec::new()));
    assert_eq!(recv_now(&mut world.server, server, 100), Ok(b"ion".to_vec()));
    world.end();
}

#[test]
fn waitall_blocks_until_all_or_eof() {
    let (mut world, _, client, server) = World::joined();
    let mut into = Incoming::new(6);
    send_now(&mut world.client, client, b"abc").expect("room");
    world.run_until_quiet();
    let wait = World::blocks(world.server.recv(server, &mut into, MsgFlags::MSG_WAITALL));
    assert_eq!((wait, into.len()), (BlockedOn::Readable(server), 3));
    send_now(&mut world.client, client, b"defg").expect("room");
    let read = world.call(Side::Server, |it| it.recv(server, &mut into, MsgFlags::MSG_WAITALL));
    assert_eq!((read, into.to_vec()), (Ok(6), b"abcdef".to_vec()));
    world.client.shutdown(client, crate::Shut::Write).expect("connected");
    let mut into = Incoming::new(6);
    let read = world.call(Side::Server, |it| it.recv(server, &mut into, MsgFlags::MSG_WAITALL));
    assert_eq!((read, into.to_vec()), (Ok(1), b"g".to_vec()));
    world.end();
}

#[test]
fn blocking_send_takes_all_and_nonblocking_what_fits() {
    let (mut world, _, client, server) = World::joined_with(&super::world::exact());
    set(&mut world.client, client, SocketOption::SendBuffer, 10_000);
    set(&mut world.server, server, SocketOption::RecvBuffer, 4_000);
    let bytes: Bytes = (0..1_000_000_u32).map(|at| (at ^ (at >> 9)) as u8).collect();
    let mut out = Outgoing::new(bytes.clone());
    let wait = World::blocks(world.client.send(client, &mut out, MsgFlags::NONE));
    assert_eq!((wait, out.sent()), (BlockedOn::Writable(client), 10_000));
    assert_eq!(send_now(&mut world.client, client, b"more"), Err(Errno::EAGAIN));
    let mut received = Vec::new();
    while received.len() < bytes.len() {
        world.run_until_quiet();
        received.extend(recv_now(&mut world.server, server, 3_000).expect("something came"));
        if world.client.may_go_on(&wait) && !out.rest().is_empty() {
            let _ = world.client.send(client, &mut out, MsgFlags::NONE);
        }
    }
    assert_eq!(out.sent(), bytes.len());
    assert!(received == bytes);
    nonblocking(&mut world.client, client);
    assert_eq!(send_now(&mut world.client, client, &bytes), Ok(10_000));
    world.end();
}

#[test]
fn ioctl_counts_unsent_and_unacknowledged_bytes() {
    let (mut world, _, client, _) = World::joined();
    send_now(&mut world.client, client, &[1; 500]).expect("room");
    assert_eq!(world.client.ioctl(client, Ioctl::Outq), Ok(500));
    assert_eq!(world.client.ioctl(client, Ioctl::OutqUnsent), Ok(500));
    world.run_until_quiet();
    assert_eq!(world.client.ioctl(client, Ioctl::Outq), Ok(0));
    world.cut = true;
    world.client.shutdown(client, crate::Shut::Write).expect("connected");
    assert_eq!(world.client.ioctl(client, Ioctl::Outq), Ok(1), "FIN counts");
    world.cut = false;
    world.end();
}

#[test]
fn more_holds_a_small_segment_back_until_the_next_call() {
    let (mut world, _, client, server) = World::joined();
    let mut out = Outgoing::gather([&b"head"[..], b"er "]);
    let sent = world.client.send(client, &mut out, MsgFlags::MSG_MORE);
    assert_eq!(sent, Outcome::Done(Ok(7)));
    world.run(std::time::Duration::from_millis(50));
    assert_eq!(recv_now(&mut world.server, server, 100), Err(Errno::EAGAIN));
    send_now(&mut world.client, client, b"body").expect("room");
    world.run_until_quiet();
    assert_eq!(recv_now(&mut world.server, server, 100), Ok(b"header body".to_vec()));
    world.end();
}

#[test]
fn cork_delays_small_segments_until_removed_or_timeout() {
    let (mut world, _, client, server) = World::joined();
    set(&mut world.client, client, SocketOption::Cork, 1);
    for _ in 0..3 {
        send_now(&mut world.client, client, b"drip ").expect("room");
        world.run(std::time::Duration::from_millis(20));
    }
    assert_eq!(recv_now(&mut world.server, server, 100), Err(Errno::EAGAIN));
    set(&mut world.client, client, SocketOption::Cork, 0);
    world.run_until_quiet();
    assert_eq!(recv_now(&mut world.server, server, 100), Ok(b"drip drip drip ".to_vec()));
    set(&mut world.client, client, SocketOption::Cork, 1);
    send_now(&mut world.client, client, b"drop").expect("room");
    world.run(std::time::Duration::from_millis(1_500));
    assert_eq!(recv_now(&mut world.server, server, 100), Ok(b"drop".to_vec()));
    world.end();
}

#[test]
fn transfers_before_the_handshake_is_over_wait_for_it() {
    let mut world = World::new();
    let listener = world.listen(8);
    let fd = stream(&mut world.client);
    let _ = world.client.connect(fd, super::world::server_at());
    let mut out = Outgoing::new(Bytes::from_static(b"early"));
    let wait = World::blocks(world.client.send(fd, &mut out, MsgFlags::NONE));
    assert_eq!((wait, wait.until()), (BlockedOn::Connected(fd), Instant::NEVER));
    let mut into = Incoming::new(1);
    let wait = World::blocks(world.client.recv(fd, &mut into, MsgFlags::NONE));
    assert_eq!(wait, BlockedOn::Connected(fd));
    let sent = world.call(Side::Client, |it| it.send(fd, &mut out, MsgFlags::NONE));
    assert_eq!(sent, Ok(5));
    let server = world.call(Side::Server, |it| it.accept(listener, crate::SocketFlags::NONE));
    let server = server.expect("a connection").fd;
    assert_eq!(world.recv(Side::Server, server, 9), Ok(b"early".to_vec()));
    world.end();
}

#[test]
fn reading_stops_in_front_of_the_urgent_byte() {
    let (mut world, _, client, server) = World::joined();
    world.urgent = Some(4);
    send_now(&mut world.client, client, b"stop and go").expect("room");
    world.run_until_quiet();
    let mut polled =
        [PollFd { fd: server, events: PollEvents::POLLPRI, revents: PollEvents::NONE }];
    assert_eq!(world.server.poll(&mut polled, Instant::ZERO), Outcome::Done(Ok(1)));
    set(&mut world.server, server, SocketOption::OobInline, 1);
    let peeked = recv_with(&mut world.server, server, 100, MsgFlags::MSG_PEEK);
    assert_eq!(peeked, Ok(b"sto".to_vec()));
    let read = recv_with(&mut world.server, server, 100, MsgFlags::MSG_WAITALL);
    assert_eq!(read, Ok(b"sto".to_vec()));
    assert_eq!(world.server.ioctl(server, Ioctl::AtMark), Ok(1));
    assert_eq!(recv_now(&mut world.server, server, 100), Ok(b"p and go".to_vec()));
    assert_eq!(world.server.ioctl(server, Ioctl::AtMark), Ok(0));
    assert_eq!(world.server.poll(&mut polled, Instant::ZERO), Outcome::Done(Ok(0)));
    world.urgent = None;
    world.end();
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    let (mut world, _, client, _) = World::joined();
    for flag in [MsgFlags::MSG_EOR, MsgFlags::MSG_ZEROCOPY] {
        let mut out = Outgoing::new(Bytes::from_static(b"x"));
        let sent = world.client.send(client, &mut out, flag);
        assert_eq!(sent, Outcome::fail(Errno::EOPNOTSUPP), "{flag:?}");
    }
    let recv = |world: &mut World, flag| recv_with(&mut world.client, client, 1, flag);
    assert_eq!(recv(&mut world, MsgFlags::MSG_OOB), Err(Errno::EINVAL));
    assert_eq!(recv(&mut world, MsgFlags::MSG_ERRQUEUE), Err(Errno::EAGAIN));
    assert_eq!(recv(&mut world, MsgFlags::MSG_EOR), Err(Errno::EOPNOTSUPP));
    world.end();
}
