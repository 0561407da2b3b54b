//! Sizes of segments, windows and buffers, by socket.

use std::time::Duration;

use whimbrel_tcp::Tunables;
use whimbrel_wire::tcp::TcpFlags;

use super::world::{
    Sent, Side, World, any, get, nonblocking, recv_now, send_now, server_at, set, stream,
};
use crate::{
    Errno, Incoming, MsgFlags, OptionValue, PollEvents, PollFd, SocketFlags, SocketOption,
};

fn syn(world: &World, side: Side) -> Sent {
    let sent = world.sent_by(side);
    sent.into_iter().find(|sent| sent.has(TcpFlags::SYN)).expect("a SYN")
}

fn longest(world: &World, side: Side) -> usize {
    world.sent_by(side).iter().map(|sent| sent.text.len()).max().expect("something was sent")
}

#[test]
fn mss_that_was_set_is_announced_and_used() {
    let mut world = World::new();
    world.listen(8);
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::MaxSeg, 700);
    assert_eq!(get(&mut world.client, fd, SocketOption::MaxSeg), 700);
    world.call(Side::Client, |it| it.connect(fd, server_at())).expect("a listener");
    assert_eq!(syn(&world, Side::Client).tcp.options.mss.map(|mss| mss.get()), Some(700));
    assert_eq!(get(&mut world.client, fd, SocketOption::MaxSeg), 688, "less the timestamps");
    send_now(&mut world.client, fd, &[0; 5_000]).expect("room");
    world.run_until_quiet();
    assert_eq!(longest(&world, Side::Client), 688);
    set(&mut world.client, fd, SocketOption::MaxSeg, 100);
    assert_eq!(get(&mut world.client, fd, SocketOption::MaxSeg), 688, "too late");
    world.end();
}

#[test]
fn accepted_connection_inherits_mss() {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::MaxSeg, 500);
    let (client, server) = world.connected(listener);
    assert_eq!(syn(&world, Side::Server).tcp.options.mss.map(|mss| mss.get()), Some(500));
    send_now(&mut world.client, client, &[0; 5_000]).expect("room");
    send_now(&mut world.server, server, &[0; 5_000]).expect("room");
    world.run_until_quiet();
    assert_eq!((longest(&world, Side::Client), longest(&world, Side::Server)), (488, 488));
    for value in [87, 32_768] {
        let set = world.client.setsockopt(client, SocketOption::MaxSeg, &OptionValue::Int(value));
        assert_eq!(set, Err(Errno::EINVAL));
    }
    world.end();
}

#[test]
fn accepted_connection_inherits_buffers() {
    let mut world = World::with(&super::world::exact());
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::RecvBuffer, 2 << 20);
    set(&mut world.server, listener, SocketOption::SendBuffer, 10_000);
    let (_, server) = world.connected(listener);
    let syn_ack = syn(&world, Side::Server);
    let scale = syn_ack.tcp.options.window_scale.map(|scale| scale.get());
    assert_eq!((scale, syn_ack.tcp.window.get()), (Some(6), 65_535));
    assert_eq!(get(&mut world.server, server, SocketOption::RecvBuffer), 4 << 20);
    assert_eq!(send_now(&mut world.server, server, &[0; 20_000]), Ok(10_000));
    world.end();
}

#[test]
fn small_buffer_of_a_listener_shows_in_the_syn_ack() {
    let mut world = World::with(&super::world::exact());
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::RecvBuffer, 8_000);
    let (client, server) = world.connected(listener);
    let syn_ack = syn(&world, Side::Server);
    assert_eq!(syn_ack.tcp.window.get(), 8_000);
    send_now(&mut world.client, client, &[0; 20_000]).expect("room");
    world.run(Duration::from_secs(1));
    let info = world.server.tcp_info(server).expect("connected");
    assert_eq!((info.tcpi_bytes_received, info.tcpi_rcv_wnd), (8_000, 0));
    while recv_now(&mut world.server, server, 1 << 20).is_ok_and(|text| !text.is_empty()) {
        world.run(Duration::from_secs(1));
    }
    world.end();
}

#[test]
fn exact_sizes_scale_the_window_for_the_set_buffer() {
    let rules = Tunables { recv_buffer_max: 6 << 20, ..super::world::exact() };
    assert_eq!(scales(World::with(&rules), None), [Some(7); 2]);
    assert_eq!(scales(World::with(&rules), Some(100_000)), [Some(1); 2]);
}

#[test]
fn window_scale_fits_the_largest_buffer_at_any_request() {
    for size in [None, Some(100_000)] {
        assert_eq!(scales(World::new(), size), [Some(11); 2], "64 MiB");
    }
}

/// Window scales that both sides announce if their sockets request receive buffers of `size`.
fn scales(mut world: World, size: Option<i32>) -> [Option<u8>; 2] {
    let listener = world.listen(8);
    let fd = stream(&mut world.client);
    if let Some(size) = size {
        set(&mut world.server, listener, SocketOption::RecvBuffer, size);
        set(&mut world.client, fd, SocketOption::RecvBuffer, size);
    }
    world.call(Side::Client, |it| it.connect(fd, server_at())).expect("a listener");
    let scale = |side| syn(&world, side).tcp.options.window_scale.map(|scale| scale.get());
    let scales = [Side::Client, Side::Server].map(scale);
    world.end();
    scales
}

#[test]
fn segment_size_has_a_minimum() {
    let mut world = World::with(&Tunables { least_mss: 300, ..Tunables::default() });
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::MaxSeg, 100);
    let (client, _) = world.connected(listener);
    send_now(&mut world.client, client, &[0; 5_000]).expect("room");
    world.run_until_quiet();
    assert_eq!(longest(&world, Side::Client), 288);
    world.end();
}

#[test]
fn no_window_exceeds_the_clamp() {
    let mut world = World::new();
    let listener = world.listen(8);
    let fd = stream(&mut world.client);
    set(&mut world.client, fd, SocketOption::WindowClamp, 6_000);
    world.call(Side::Client, |it| it.connect(fd, server_at())).expect("a listener");
    let accepted = world.call(Side::Server, |it| it.accept(listener, SocketFlags::NONE));
    let server = accepted.expect("a connection").fd;
    assert_eq!(syn(&world, Side::Client).tcp.window.get(), 6_000);
    assert_eq!(syn(&world, Side::Client).tcp.options.window_scale.map(|it| it.get()), Some(0));
    send_now(&mut world.server, server, &[0; 60_000]).expect("room");
    let mut into = Incoming::new(60_000);
    let read = world.call(Side::Client, |it| it.recv(fd, &mut into, MsgFlags::MSG_WAITALL));
    assert_eq!(read, Ok(60_000));
    assert!(world.sent_by(Side::Client).iter().all(|sent| sent.tcp.window.get() <= 6_000));
    let none = world.client.setsockopt(fd, SocketOption::WindowClamp, &OptionValue::Int(0));
    assert_eq!(none, Err(Errno::EINVAL), "there is a connection");
    world.end();
}

#[test]
fn unsent_data_stays_below_low_water_mark() {
    let (mut world, _, client, server) = World::joined();
    set(&mut world.client, client, SocketOption::NotSentLowAt, 10_000);
    nonblocking(&mut world.client, client);
    assert_eq!(send_now(&mut world.client, client, &[0; 50_000]), Ok(10_000));
    assert_eq!(send_now(&mut world.client, client, &[0; 50_000]), Err(Errno::EAGAIN));
    let mut polled =
        [PollFd { fd: client, events: PollEvents::POLLOUT, revents: PollEvents::NONE }];
    let mut poll = |world: &mut World| {
        world.client.poll(&mut polled, whimbrel_base::Instant::ZERO).done().expect("no wait")
    };
    assert_eq!(poll(&mut world), Ok(0));
    world.run(Duration::from_micros(1));
    assert_eq!(poll(&mut world), Ok(1), "all of it was sent, none is acknowledged");
    assert_eq!(world.client.tcp_info(client).expect("connected").tcpi_unacked, 7);
    assert_eq!(send_now(&mut world.client, client, &[0; 50_000]), Ok(10_000));
    nonblocking(&mut world.server, server);
    world.run_until_quiet();
    let text = recv_now(&mut world.server, server, 1 << 20).map(|text| text.len());
    assert_eq!(text, Ok(20_000));
    world.end();
}

#[test]
fn quickack_acknowledges_at_once() {
    for (quick, acks) in [(0, 0), (1, 1)] {
        let (mut world, _, client, server) = World::joined();
        set(&mut world.server, server, SocketOption::QuickAck, quick);
        world.run_until_quiet();
        world.log.clear();
        send_now(&mut world.client, client, b"one").expect("room");
        world.run(Duration::from_millis(5));
        assert_eq!(world.sent_by(Side::Server).len(), acks);
        set(&mut world.server, server, SocketOption::QuickAck, 1);
        world.run(Duration::from_millis(5));
        assert_eq!(world.sent_by(Side::Server).len(), 1, "what was owed goes, too");
        world.end();
    }
}

#[test]
fn nagle_and_cork_are_inherited() {
    let mut world = World::new();
    let listener = world.listen(8);
    set(&mut world.server, listener, SocketOption::NoDelay, 1);
    let (_, server) = world.connected(listener);
    world.log.clear();
    for _ in 0..2 {
        send_now(&mut world.server, server, b"tick").expect("room");
        world.run(Duration::from_micros(100));
    }
    assert_eq!(world.sent_by(Side::Server).len(), 2);
    set(&mut world.server, listener, SocketOption::Cork, 1);
    let (_, corked) = world.connected(listener);
    world.run_until_quiet();
    world.log.clear();
    send_now(&mut world.server, corked, b"tick").expect("room");
    world.run(Duration::from_millis(1));
    assert_eq!(world.sent_by(Side::Server).len(), 0);
    world.end();
}

#[test]
fn port_can_be_shared_but_not_listened_on_twice() {
    let mut world = World::new();
    let [one, other, third] = [0; 3].map(|_| stream(&mut world.server));
    for fd in [one, other] {
        set(&mut world.server, fd, SocketOption::ReusePort, 1);
        assert_eq!(world.server.bind(fd, any(80)), Ok(()));
    }
    assert_eq!(world.server.bind(third, any(80)), Err(Errno::EADDRINUSE));
    assert_eq!(world.server.listen(one, 1), Ok(()));
    assert_eq!(world.server.listen(other, 1), Err(Errno::EADDRINUSE));
    world.end();
}
